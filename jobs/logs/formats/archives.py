"""Archives as folders: the files in a zip or tar, plain or compressed, without unpacking them to disk.

Nothing is ever extracted: the names of members only name them. They are cleaned of what a file system would follow (`/`, `..`). A zip
and a plain tar are read where they lie. A compressed tar has to be read from its start to find anything in it, so it is unpacked once
(unpacked.py).
"""

from __future__ import annotations

import lzma
import re
import stat
import tarfile
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable
from typing import Final, cast

from jobs.logs.formats.compression import BEGIN_BYTES, ByteStream, RawStream, decompressed, first_bytes
from jobs.logs.formats.sources import Source, SourceFile, Stretch
from jobs.logs.formats.unpacked import UnpackedSource

MOST_NESTED: Final = 3  # archives in each other that are opened: there are zips that contain themselves

_ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_CHECKSUM: Final = re.compile(rb"[ 0-7\0]{8}", re.DOTALL)
_MOST_OPEN: Final = 24  # archives in an archive: each holds a file
_MOST_MEMBERS: Final = 200_000
_MOST_HEADER: Final = 32 << 20  # bytes of a header, or of a zip's directory: what the libraries hold in memory
_STEP_BYTES: Final = 64 << 10  # always the same, so that a damage comes at the same place
_ZIP_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_BROKEN: Final = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, NotImplementedError)


class Archive(ABC):
    """The files in an archive, by their paths in it, with forward slashes. A member of several with the same path is the last one."""

    def __init__(self, depth: int) -> None:
        self.members: dict[str, int] = {}  # size, bytes
        self.locked: dict[str, str] = {}  # members that cannot be read, and why
        self.others: Counter[str] = Counter()  # what is no file, by kind
        self.damage = ""  # why there may be more members than these
        self._depth = depth
        self._nested: dict[str, Archive | None] = {}

    @abstractmethod
    def place(self, name: str) -> Source | None:
        """The bytes of a member where they lie; None if they lie there compressed."""

    @abstractmethod
    def stream(self, name: str) -> ByteStream:
        """The bytes of a member, from the start."""

    def nested(self, name: str) -> Archive | None:
        """The archive that a member is; None if it is none, or too deep inside of others. OSError: there is no room to unpack it."""
        if name not in self._nested:
            inner = [one for one, archive in self._nested.items() if archive is not None]
            if len(inner) >= _MOST_OPEN:
                del self._nested[inner[0]]
            is_one = name not in self.locked and self._depth + 1 < MOST_NESTED and is_archive(self.begin(name), lambda: self.stream(name))
            source = (self.place(name) or UnpackedSource(self.stream(name))) if is_one else None
            self._nested[name] = opened_archive(source, self._depth + 1) if source is not None else None
        return self._nested[name]

    def begin(self, name: str) -> bytes:
        """The first BEGIN_BYTES of a member."""
        return first_bytes(self.stream(name), BEGIN_BYTES)

    def _add(self, name: str, size: int) -> str:
        """Takes up a member; returns its clean name, which is empty if nobody could name it."""
        parts = [part for part in name.split("/") if part not in ("", ".", "..") and not _DRIVE.fullmatch(part)]
        clean = "/".join(parts)
        if not clean or "\0" in clean:
            self.others["files without a name"] += 1
            return ""
        if clean in self.members:
            self.others["files of the same name as a later one"] += 1
        self.members[clean] = size
        return clean


class TarArchive(Archive):
    """A tar. A compressed one comes here unpacked."""

    def __init__(self, source: Source, depth: int) -> None:
        super().__init__(depth)
        self._source = source
        self._starts: dict[str, int] = {}
        self._cut = source.damage or "the archive ends in the middle"
        tar = None
        try:
            tar = tarfile.open(fileobj=SourceFile(source, _MOST_HEADER), mode="r:")  # noqa: SIM115 - it has nothing to close
            while (member := tar.next()) is not None and not self.damage:
                tar.members.clear()  # type: ignore[attr-defined] # it would hold them all
                self._take(member)
        except _BROKEN as error:
            self.damage = source.damage or f"damaged tar: {error}"
        if tar is not None and not self.damage:
            end = source.read_at(tar.offset, tarfile.BLOCKSIZE)
            self.damage = source.damage or ("damaged tar: no header where one has to be" if end.strip(b"\0") else "")

    def _take(self, member: tarfile.TarInfo) -> None:
        if member.isreg() and not member.issparse():
            name = self._add(member.name, member.size)
            self._starts[name] = member.offset_data
            if len(self.members) >= _MOST_MEMBERS:
                self.damage = f"more than {_MOST_MEMBERS:,} files: the others are not read"
        elif not member.isdir():
            self.others["links" if member.issym() or member.islnk() else "special files"] += 1

    def place(self, name: str) -> Source:
        """A stretch of the archive."""
        return Stretch(self._source, self._starts[name], self.members[name], self._cut)

    def stream(self, name: str) -> ByteStream:
        """From where it lies."""
        return RawStream(self.place(name))


class ZipArchive(Archive):
    """A zip."""

    def __init__(self, source: Source, depth: int) -> None:
        super().__init__(depth)
        self._infos: dict[str, zipfile.ZipInfo] = {}
        try:
            self._zip = zipfile.ZipFile(SourceFile(source, _MOST_HEADER))
        except _BROKEN as error:
            self.damage = source.damage or f"damaged zip, or one that was cut: {error}"
            return
        for info in self._zip.infolist():
            self._take(info)

    def _take(self, info: zipfile.ZipInfo) -> None:
        if info.is_dir():
            return
        if stat.S_ISLNK(info.external_attr >> 16):
            self.others["links"] += 1
            return
        name = self._add(info.filename.replace("\\", "/"), info.file_size)
        self._infos[name] = info
        self.locked.pop(name, None)
        if info.flag_bits & 1:
            self.locked[name] = "encrypted"
        elif info.compress_type not in _ZIP_METHODS:
            self.locked[name] = f"compressed by zip's method {info.compress_type}, which is not supported"

    def place(self, name: str) -> Source | None:
        """None: the library knows."""

    def stream(self, name: str) -> ByteStream:
        """As it is unpacked."""
        return _ZipStream(self._zip, self._infos[name])


class _ZipStream:
    """A member of a zip."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        self.damage = ""
        self._position = 0
        self._rest = b""
        try:
            self._file = cast("zipfile.ZipExtFile", archive.open(info))
        except (*_BROKEN, RuntimeError) as error:
            self.damage = f"damaged zip: {error}"

    def position(self) -> int:
        return self._position

    def read(self, size: int) -> bytes:
        if not self._rest and not self.damage:
            try:
                self._rest = self._file.read1(_STEP_BYTES)
            except _BROKEN as error:
                self.damage = f"damaged zip: {error}"
        data, self._rest = self._rest[:size], self._rest[size:]
        self._position += len(data)
        return data


def is_archive(begin: bytes, again: Callable[[], ByteStream]) -> bool:
    """Whether bytes are a zip or a tar, plain or compressed. `begin`: the first BEGIN_BYTES. `again`: all of them, anew."""
    if begin.startswith(_ZIP) or _is_tar(begin):
        return True
    stream = decompressed(begin, again)
    return stream is not None and _is_tar(first_bytes(stream, BEGIN_BYTES))


def _is_tar(head: bytes) -> bool:
    if len(head) < tarfile.BLOCKSIZE or _CHECKSUM.fullmatch(head, 148, 156) is None:
        return False
    try:
        tarfile.TarInfo.frombuf(head[: tarfile.BLOCKSIZE], "utf-8", "surrogateescape")
    except tarfile.HeaderError:
        return False
    return True


def opened_archive(source: Source, depth: int = 0) -> Archive | None:
    """The archive that a source is, inside of `depth` others; None if it is none. OSError: there is no room to unpack it."""
    begin = source.read_at(0, BEGIN_BYTES)
    if not is_archive(begin, lambda: RawStream(source)):
        return None
    if begin.startswith(_ZIP):
        return ZipArchive(source, depth)
    stream = decompressed(begin, lambda: RawStream(source))
    return TarArchive(source if stream is None else UnpackedSource(stream), depth)
