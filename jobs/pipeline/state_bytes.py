"""A shard's state as it is stored: compressed.

It crosses between Spark and Python twice a micro-batch and is written down anew: of 1,000 groups 19 MB, most of them names that repeat.
Compressed it is a tenth, for 0.4 ms a shard.
"""

from __future__ import annotations

import struct
from typing import Final

import pyarrow as pa

_MARK: Final = b"Z"
"""No MessagePack array begins so, which is what a shard's bytes are, and how older versions stored them."""
_HEAD: Final = struct.Struct("<cI")
_CODEC: Final = "zstd"


def compressed(data: bytes) -> bytes:
    """The bytes, compressed."""
    return _HEAD.pack(_MARK, len(data)) + bytes(pa.compress(data, codec=_CODEC, asbytes=True))


def expanded(data: bytes) -> bytes:
    """What `compressed` was given; what it has not made is as it was."""
    if data[:1] != _MARK:
        return data
    _, size = _HEAD.unpack_from(data)
    return bytes(pa.decompress(data[_HEAD.size :], decompressed_size=size, codec=_CODEC, asbytes=True))
