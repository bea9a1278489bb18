"""Archives as folders: the files in a zip or tar, plain or compressed, without unpacking them to disk.

Nothing is ever extracted: the names of members only name them. They are cleaned of what a file system would follow (`/`, `..`). A zip
and a plain tar are read where they lie. A compressed tar has to be read from its start to find anything in it, so it is unpacked once
(UnpackedSource). Archives stay open: each member would otherwise cost a look through its whole archive.
"""

from __future__ import annotations

import errno
import lzma
import os
import re
import stat
import struct
import tarfile
import threading
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from jobs.logs.formats.compression import BEGIN_BYTES, ByteStream, RawStream, UnpackedSource, ZipMemberStream, decompressed, first_bytes
from jobs.logs.formats.sources import FileSource, Source, SourceFile, Stretch, special_kind

MOST_NESTED: Final = 3  # archives in each other that are opened: there are zips that contain themselves

_HEADER: Final = b"PK\x03\x04"  # of a member of a zip
_ZIP: Final = (_HEADER, b"PK\x05\x06")
_LOCAL: Final = struct.Struct("<4s5H3I2H")
_IN_EXTRA: Final = 0xFFFFFFFF  # a size that stands elsewhere in the header
_UTF8: Final = 0x800  # a flag: of the name
_SIZES_FOLLOW: Final = 8  # a flag: whoever wrote the member did not know its sizes when its header was written
_CHECKSUM: Final = re.compile(rb"[ 0-7\0]{8}", re.DOTALL)
_MOST_OPEN: Final = 24  # archives, or archives in an archive: each holds a file
_MOST_MEMBERS: Final = 200_000
_MOST_HEADER: Final = 32 << 20  # bytes of a header, or of a zip's directory: what the libraries hold in memory
_STEP_BYTES: Final = 64 << 10  # always the same, so that a damage comes at the same place
_ZIP_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2)
_DRIVE: Final = re.compile(r"[A-Za-z]:")
_BROKEN: Final = (zipfile.BadZipFile, tarfile.TarError, zlib.error, lzma.LZMAError, OSError, EOFError, ValueError, NotImplementedError)
_LOCK: Final = threading.RLock()
_OPEN: Final[OrderedDict[str, tuple[tuple[int, int, int], Archive]]] = OrderedDict()  # by path, with what the file was


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

    def stream(self, name: str) -> ByteStream:
        """The bytes of a member, from the start."""
        place = self.place(name)
        assert place is not None
        return RawStream(place)

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
        at: int | None = 0
        while at is not None and len(self.members) < _MOST_MEMBERS:
            at = self._next_header(self._read_from(at))
        self.damage = self.damage or source.damage

    def _read_from(self, start: int) -> int:
        """Takes the members from a header on. Returns the place where the next header should be and is not."""
        tar, whole = None, self._source
        source = Stretch(whole, start, whole.size() - start, "") if start else whole
        try:
            tar = tarfile.open(fileobj=SourceFile(source, _MOST_HEADER), mode="r:")  # noqa: SIM115 - it has nothing to close
            while (member := tar.next()) is not None and len(self.members) < _MOST_MEMBERS:
                tar.members.clear()  # type: ignore[attr-defined] # it would hold them all
                self._take(member, start)
        except _BROKEN as error:
            self.damage = self.damage or whole.damage or f"damaged tar: {error}"
            return start + tarfile.BLOCKSIZE + (0 if tar is None else tar.offset)
        return start + tar.offset

    def _next_header(self, at: int) -> int | None:
        """The first header from a place on, behind padding. What else lies there is a damage. None: there is none."""
        while block := self._source.all_at(at, tarfile.BLOCKSIZE):
            if _is_tar(block):
                return at
            if not self.damage and block.strip(b"\0"):
                self.damage = self._source.damage or "damaged tar: no header where one has to be"
            at += tarfile.BLOCKSIZE
        return None

    def _take(self, member: tarfile.TarInfo, start: int) -> None:
        if member.isreg() and not member.issparse():
            name = self._add(member.name, member.size)
            self._starts[name] = start + member.offset_data
            if len(self.members) >= _MOST_MEMBERS:
                self.damage = f"more than {_MOST_MEMBERS:,} files: the others are not read"
        elif not member.isdir():
            self.others["links" if member.issym() or member.islnk() else "special files"] += 1

    def place(self, name: str) -> Source:
        """A stretch of the archive."""
        return Stretch(self._source, self._starts[name], self.members[name], self._cut)


class ZipArchive(Archive):
    """A zip. Where the list of members at its end is lost, or does not lead to them, the header before each tells that it is there."""

    def __init__(self, source: Source, depth: int) -> None:
        super().__init__(depth)
        self._source = source
        self._infos: dict[str, zipfile.ZipInfo] = {}
        try:
            infos = zipfile.ZipFile(SourceFile(source, _MOST_HEADER)).infolist()
            if not all(map(self._leads_to, infos)) or (not infos and source.all_at(0, len(_HEADER)) == _HEADER):
                self.damage = "damaged zip: its list of members does not fit them"
        except _BROKEN as error:
            self.damage = source.damage or f"damaged zip, or one that was cut: {error}"
        for info in self._found() if self.damage else infos:
            self._take(info)

    def _take(self, info: zipfile.ZipInfo) -> None:
        if info.filename.endswith("/"):
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

    def _leads_to(self, info: zipfile.ZipInfo) -> bool:
        """Whether the header of a member stands where the list says, and says the same."""
        name = info.orig_filename.encode("utf-8" if info.flag_bits & _UTF8 else "cp437")
        header = self._source.all_at(info.header_offset, _LOCAL.size + len(name))
        if not header.startswith(_HEADER) or header[_LOCAL.size :] != name:
            return False
        _, _, flags, method, _, _, _, size, *_ = _LOCAL.unpack_from(header)
        packed_alike = (flags & 1, method) == (info.flag_bits & 1, info.compress_type)
        return packed_alike and (bool(info.flag_bits & _SIZES_FOLLOW) or size in (info.compress_size, _IN_EXTRA))

    def _found(self) -> Iterator[zipfile.ZipInfo]:
        """The members by their own headers, as far as these can be found. One whose size leads nowhere reaches to the next."""
        at = -1
        while (at := self._search(at + 1)) >= 0 and len(self.members) < _MOST_MEMBERS:
            info = zipfile.ZipInfo()
            header = self._source.all_at(at, _LOCAL.size)
            if len(header) < _LOCAL.size:
                return
            _, _, info.flag_bits, info.compress_type, _, _, info.CRC, info.compress_size, info.file_size, size, _ = _LOCAL.unpack(header)
            name = self._source.all_at(at + _LOCAL.size, size)
            info.filename, info.header_offset = name.decode("utf-8", "replace"), at
            start = self._start(info)
            end = start + info.compress_size
            if info.flag_bits & _SIZES_FOLLOW or self._source.all_at(end, 2) != _HEADER[:2]:
                end = following if (following := self._search(at + 1)) >= 0 else self._source.size()
            info.compress_size, at = max(0, end - start), max(at, end - 1)
            info.file_size = info.file_size or info.compress_size
            yield info

    def _search(self, at: int) -> int:
        """The place of the next header of a member; -1: there is none."""
        while len(chunk := self._source.all_at(at, _STEP_BYTES)) >= len(_HEADER):
            if (found := chunk.find(_HEADER)) >= 0:
                return at + found
            at += len(chunk) - len(_HEADER) + 1
        return -1

    def _start(self, info: zipfile.ZipInfo) -> int:
        """Where the bytes of a member begin."""
        *_, name, extra = _LOCAL.unpack(self._source.all_at(info.header_offset, _LOCAL.size).ljust(_LOCAL.size, b"\0"))
        return info.header_offset + _LOCAL.size + int(name) + int(extra)

    def place(self, name: str) -> Source | None:
        """None: they may be compressed."""

    def stream(self, name: str) -> ByteStream:
        """As it is unpacked."""
        info = self._infos[name]
        packed = Stretch(self._source, self._start(info), info.compress_size, "the archive ends in the middle")
        crc = None if info.flag_bits & _SIZES_FOLLOW and not info.CRC else info.CRC
        return ZipMemberStream(lambda: RawStream(packed), info.compress_type, info.file_size, crc)


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


def archive_at(path: Path) -> Archive | None:
    """The archive in a file; None if it is none. OSError: it cannot be read, or there is no room to unpack it."""
    key = str(path)
    with _LOCK:
        status = path.stat()
        identity = (status.st_ino, status.st_size, status.st_mtime_ns)
        known = _OPEN.get(key)
        if known is not None and known[0] == identity:
            _OPEN.move_to_end(key)
            return known[1]
        _OPEN.pop(key, None)
        archive = opened_archive(FileSource(path))
        if archive is not None:
            _OPEN[key] = (identity, archive)
            if len(_OPEN) > _MOST_OPEN:
                _OPEN.popitem(last=False)
        return archive


def member_at(path: Path) -> tuple[Archive, str]:
    """The archive that a path leads into, and the member's name in it. OSError: there is none."""
    archive = archive_at(file_of(path))
    rest = path.parts[len(file_of(path).parts) :]
    while archive is not None:
        name = "/".join(rest)
        if name in archive.members:
            return archive, name
        outer = next((n for n in range(1, len(rest)) if "/".join(rest[:n]) in archive.members), None)
        if outer is None:
            break
        archive, rest = archive.nested("/".join(rest[:outer])), rest[outer:]
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))


def file_of(path: Path) -> Path:
    """The file that a path is, or leads into. OSError: there is none."""
    for parent in (path, *path.parents):
        try:
            mode = parent.stat().st_mode
        except NotADirectoryError:
            continue
        if parent != path and special_kind(mode):
            break
        return parent
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
