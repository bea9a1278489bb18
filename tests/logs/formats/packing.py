"""The ways in which people pack logs."""

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pyarrow as pa


def _by_arrow(codec):
    def pack(data: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, codec) as stream:
            stream.write(data)
        return sink.getvalue().to_pybytes()

    return pack


PACKERS = {"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress, "zstd": _by_arrow("zstd"), "LZ4": _by_arrow("lz4")}


def tar(files: dict[str, bytes], mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def zipped(files: dict[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


ARCHIVERS = {
    "logs.tar": tar,
    "logs.tar.gz": lambda files: tar(files, "w:gz"),
    "logs.tar.bz2": lambda files: tar(files, "w:bz2"),
    "logs.tar.xz": lambda files: tar(files, "w:xz"),
    "logs.tar.zst": lambda files: PACKERS["zstd"](tar(files)),
    "logs.zip": zipped,
    "stored.zip": lambda files: zipped(files, zipfile.ZIP_STORED),
}
