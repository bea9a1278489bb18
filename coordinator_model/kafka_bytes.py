"""Reads Kafka's encodings field by field: the classic one, and the compact one of flexible versions (KIP-482).

The bytes may be anything. UnreadableError says what is wrong with them, and a wrong length costs no memory.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Final, TypeVar

_T = TypeVar("_T")

_MAX_VARINT_BYTES: Final = 5
_UUID_BYTES: Final = 16


class UnreadableError(ValueError):
    """The bytes are not what Kafka or a client of it writes."""


class FieldReader:
    """Reads the fields of a record one after the other. `compact`: in the encoding of flexible versions."""

    def __init__(self, data: bytes, *, compact: bool = False) -> None:
        self._data = data
        self._at = 0
        self.compact = compact

    @property
    def left(self) -> int:
        """Bytes not read yet."""
        return len(self._data) - self._at

    def int8(self) -> int:
        """One byte."""
        return int.from_bytes(self.take(1), "big", signed=True)

    def int16(self) -> int:
        """Two bytes."""
        return int.from_bytes(self.take(2), "big", signed=True)

    def int32(self) -> int:
        """Four bytes."""
        return int.from_bytes(self.take(4), "big", signed=True)

    def int64(self) -> int:
        """Eight bytes."""
        return int.from_bytes(self.take(8), "big", signed=True)

    def unsigned_varint(self) -> int:
        """Seven bits a byte, the lowest first."""
        value = 0
        for place in range(_MAX_VARINT_BYTES):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                return value
        raise UnreadableError("a number that does not end")

    def uuid(self) -> str:
        """The id of a topic, as Kafka prints it."""
        return uuid_text(self.take(_UUID_BYTES))

    def string(self) -> str:
        """A text that may not be null."""
        return _present(self.nullable_string())

    def nullable_string(self) -> str | None:
        """A text, or None for null."""
        length = self.unsigned_varint() - 1 if self.compact else self.int16()
        if length == -1:
            return None
        try:
            return self.take(_length(length)).decode("utf-8")
        except UnicodeDecodeError:
            raise UnreadableError("a name is not UTF-8") from None

    def bytes_(self) -> bytes:
        """Bytes that may not be null."""
        return _present(self.nullable_bytes())

    def nullable_bytes(self) -> bytes | None:
        """Bytes, or None for null."""
        length = self.unsigned_varint() - 1 if self.compact else self.int32()
        return None if length == -1 else self.take(_length(length))

    def array(self, element: Callable[[], _T], smallest: int) -> list[_T]:
        """Elements that take at least `smallest` bytes each, so that a wrong count costs no memory."""
        count = _length(self.unsigned_varint() - 1 if self.compact else self.int32())
        if count * smallest > self.left:
            raise UnreadableError("ends too early")
        return [element() for _ in range(count)]

    def tagged_fields(self) -> dict[int, bytes]:
        """The fields at the end of a flexible record by their tags. A later version may have added some."""
        fields = {}
        for _ in range(self.unsigned_varint() if self.compact else 0):
            tag = self.unsigned_varint()
            fields[tag] = self.take(self.unsigned_varint())
        return fields

    def take(self, size: int) -> bytes:
        """So many bytes as they are."""
        if size > self.left:
            raise UnreadableError("ends too early")
        self._at += size
        return self._data[self._at - size : self._at]


def uuid_text(data: bytes) -> str:
    """What org.apache.kafka.common.Uuid.toString makes of its 16 bytes: base64 for URLs, without the padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _present(value: _T | None) -> _T:
    if value is None:
        raise UnreadableError("a negative length")
    return value


def _length(length: int) -> int:
    if length < 0:
        raise UnreadableError("a negative length")
    return length
