"""Looks through a folder, and through the archives in it, for logs: which there are, and what is left out.

A log is a file whose name is a log's, or that has a line of a broker or of a consumer within its first 64 KB, whatever stands around it.
What was seen of a file is remembered until the file changes, since a folder that is followed is looked through every second.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from jobs.logs.bytes import UNREADABLE, open_log
from jobs.logs.content.copies import repeats
from jobs.logs.content.kinds import is_hidden, is_log_name, kind_by_content, kind_by_name
from jobs.logs.content.verdict import MORE_BYTES, SAMPLE_BYTES, Writer, writer_of
from jobs.logs.formats.archives import Archive, archive_at
from jobs.logs.formats.compression import first_bytes
from jobs.logs.formats.sources import special_kind
from jobs.logs.record_judge import FOLDERS, is_record_file
from jobs.logs.survey.containers import container_of

Parts = tuple[str, ...]  # a path below the input

_FOLDER_SIGNS: Final = (
    (frozenset({"_delta_log"}), "folders of Delta tables"),
    (frozenset({"commits", "offsets", "metadata"}), "folders of Spark checkpoints"),
    (frozenset({"_checkpoints", "_spool"}), "lakehouses"),
    (frozenset({"pyvenv.cfg"}), "folders of Python environments"),
)
"""What a folder with all of these in it is. It is not looked into."""
_FOLDER_NAMES: Final = {"node_modules": "folders named node_modules"}
_MOST_SUSPECTED: Final = 32  # files of a folder that may be copies: nobody keeps that many, and each is compared with the others
_FIRST_LINES: Final = 8
_KINDS_TOLD: Final = 8
_HIDDEN: Final = "hidden files and folders"


class LeftOut(NamedTuple):
    """Files or folders that are no logs."""

    kind: str  # in the plural
    number: int
    example: Parts


@dataclass(frozen=True)
class Found:
    """A log. `size`: bytes, as it lies there. `outside`: how many of its parts lead to a file; those after them are in an archive."""

    parts: Parts
    outside: int
    writer: Writer = Writer.UNKNOWN
    is_named: bool = True  # its name says that it is a log
    is_record: bool = False  # dumped or polled records
    size: int = 0


@dataclass
class Tree:
    """What a folder has."""

    logs: list[Found] = field(default_factory=list)
    left: dict[str, LeftOut] = field(default_factory=dict)  # by kind

    def leave_out(self, kind: str, parts: Parts, count: int = 1) -> None:
        """Counts what is no log."""
        known = self.left.get(kind, LeftOut(kind, 0, parts))
        self.left[kind] = LeftOut(kind, known.number + count, min(known.example, parts))

    def take_unreadable(self, parts: Parts, kind: str) -> None:
        """Counts what cannot be read, unless its name is a log's: then who reads it finds out why, and says so."""
        if is_log_name(parts[-1]):
            self.logs.append(Found(parts, len(parts)))
        else:
            self.leave_out(kind, parts)

    def add(self, other: Tree) -> None:
        """Adds what another one has."""
        self.logs += other.logs
        for kind, count, example in other.left.values():
            self.leave_out(kind, example, count)


class _Looker:
    """Looks through one folder again and again."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen: dict[
            Parts, tuple[tuple[int, ...], Tree]
        ] = {}  # with what a file was: inode, size, times. It is the same while they are
        self._compared: dict[Parts, tuple[tuple[Any, ...], Parts | None]] = {}  # what was asked of a file, and which log it repeats

    def look(self) -> Tree:
        """All there is now. OSError: the root cannot be read."""
        tree = Tree()
        before, self._seen = self._seen, {}
        for parts, status in _files(self._root, tree):
            name = parts[-1] if parts else self._root.name
            kind = "" if is_log_name(name) or not parts else kind_by_name(name)
            if kind:
                tree.leave_out(kind, parts)
            elif _is_record(parts):
                tree.logs.append(Found(parts, len(parts), is_record=True))
            else:
                state = (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
                known = before.get(parts)
                try:
                    seen = known if known is not None and known[0] == state else (state, _look_at(self._root, parts, name))
                except OSError as error:
                    if not parts:
                        raise
                    if not isinstance(error, FileNotFoundError):  # gone since it was listed
                        tree.logs.append(Found(parts, len(parts)))  # it may be a log: who reads it finds out why it cannot, and says so
                    continue
                self._seen[parts] = seen
                tree.add(seen[1])
        self._leave_out_unpacked(tree)
        self._leave_out_copies(tree)
        return tree

    def _leave_out_unpacked(self, tree: Tree) -> None:
        """Leaves out archives whose files lie beside them as well."""
        sizes = {found.parts: found.size for found in tree.logs}
        archives: dict[Parts, list[Found]] = {}
        unpacked: set[Found] = set()
        for found in tree.logs:
            if found.outside < len(found.parts):
                archives.setdefault(found.parts[: found.outside], []).append(found)
        for parts, members in archives.items():
            beside = (parts[:-1], (*parts[:-1], stem_of(parts[-1]))) if parts else ()
            if any(all(sizes.get((*folder, *m.parts[m.outside :])) == m.size for m in members) for folder in beside):
                tree.leave_out("archives whose files lie beside them", parts)
                unpacked.update(members)
        tree.logs = [found for found in tree.logs if found not in unpacked]

    def _leave_out_copies(self, tree: Tree) -> None:
        """Leaves out files that repeat another log in their folder. Only files whose names are no logs' are suspected."""
        folders: dict[Parts, list[Found]] = {}
        for found in tree.logs:
            if found.writer is Writer.BROKER:
                folders.setdefault(found.parts[:-1], []).append(found)
        for logs in folders.values():
            if sum(not found.is_named for found in logs) > _MOST_SUSPECTED:
                continue
            kept: list[Found] = []
            for found in sorted(logs, key=lambda found: (not found.is_named, found.parts)):
                original = self._original(found, kept) if not found.is_named and kept else None
                if original is None:
                    kept.append(found)
                else:
                    tree.leave_out(f"logs that repeat {original[-1]}", found.parts)
                    tree.logs.remove(found)

    def _original(self, found: Found, others: list[Found]) -> Parts | None:
        """The log that a file repeats. Once it is known, it stays so while both grow."""
        inode, size, *_ = self._seen[found.parts[: found.outside]][0]
        paths = {self._root.joinpath(*other.parts): other.parts for other in others}
        asked = (inode, size.bit_length(), *paths)  # to ask again when it has grown
        before, original = self._compared.get(found.parts, ((-1,), None))
        if before == asked or (before[0] == inode and original in paths.values()):
            return original
        with suppress(OSError):
            path = repeats(self._root.joinpath(*found.parts), list(paths))
            self._compared[found.parts] = asked, None if path is None else paths[path]
            return self._compared[found.parts][1]
        return None


_LOOKERS: Final[dict[Path, _Looker]] = {}


def look_through(root: Path) -> Tree:
    """What a folder or file has, in a fixed order. OSError: it cannot be read."""
    return _LOOKERS.setdefault(root, _Looker(root)).look()


def stem_of(name: str) -> str:
    """The name of an archive without what says that it is one."""
    base = name
    for suffixes in ((".gz", ".bz2", ".xz", ".zst", ".lz4"), (".tar", ".zip", ".tgz", ".tbz2", ".tbz", ".txz", ".tzst")):
        base = next((base[: -len(suffix)] for suffix in suffixes if base.lower().endswith(suffix)), base)
    return base or name


def _files(root: Path, tree: Tree) -> Iterator[tuple[Parts, os.stat_result]]:
    """The files below `root`, or `root` itself. Linked folders are followed, each once. What is neither is left out."""
    if not root.is_dir():
        yield (), root.stat()
        return
    visited: set[tuple[int, int]] = set()
    folders: list[Parts] = [()]
    while folders:
        parts = folders.pop()
        path = root.joinpath(*parts)
        try:
            folder = path.stat()
            if (folder.st_dev, folder.st_ino) in visited:
                continue
            visited.add((folder.st_dev, folder.st_ino))
            entries = sorted(os.scandir(path), key=lambda entry: entry.name)
        except OSError as error:
            if not parts:
                raise
            if not isinstance(error, FileNotFoundError):
                tree.logs.append(Found(parts, len(parts)))
            continue
        names = {entry.name for entry in entries}
        kind = next((kind for signs, kind in _FOLDER_SIGNS if signs <= names), _FOLDER_NAMES.get(path.name, ""))
        if kind:
            tree.leave_out(kind, parts or (path.name,))
            continue
        inner = []
        for entry in entries:
            status = _status(entry, (*parts, entry.name), tree)
            if status is not None and not stat.S_ISDIR(status.st_mode):
                yield (*parts, entry.name), status
            elif status is not None:
                inner.append((*parts, entry.name))
        folders += reversed(inner)


def _status(entry: os.DirEntry[str], parts: Parts, tree: Tree) -> os.stat_result | None:
    """What a file or folder is; None if it is neither, or not to be looked at."""
    if is_hidden(entry.name):
        tree.leave_out(_HIDDEN, parts)
        return None
    try:
        status = entry.stat()
    except OSError as error:
        if entry.is_symlink():
            tree.take_unreadable(parts, "dead links")
        elif not isinstance(error, FileNotFoundError):  # gone since it was listed
            tree.take_unreadable(parts, f"files that cannot be read ({error.strerror})")
        return None
    special = "" if stat.S_ISDIR(status.st_mode) else special_kind(status.st_mode)
    if special:
        tree.take_unreadable(parts, f"{special}s")
        return None
    return status


def _is_record(parts: Parts) -> bool:
    return len(parts) > 1 and parts[-2] in FOLDERS and is_record_file(parts[-1])


def _look_at(root: Path, parts: Parts, name: str) -> Tree:
    """What a file is, and what is in it if it is an archive."""
    path = root.joinpath(*parts)
    archive = archive_at(path)
    if archive is not None:
        return _in_archive(root, archive, parts, len(parts))
    return _at_log(root, Found(parts, len(parts), size=path.stat().st_size), name)


def _at_log(root: Path, found: Found, name: str) -> Tree:
    """Whose log a file is, or what it is instead."""
    with open_log(root.joinpath(*found.parts)) as log:
        sample = first_bytes(log, SAMPLE_BYTES)
        writer = writer_of(sample)
        if writer is Writer.UNKNOWN and any(map(container_of, sample.split(b"\n", _FIRST_LINES)[:_FIRST_LINES])):
            writer = writer_of(sample + first_bytes(log, MORE_BYTES))  # other containers may come first
        begin = sample or log.head()
        is_damaged = bool(log.damage) and not sample and not begin.startswith(tuple(start for start, _ in UNREADABLE))
    tree = Tree()
    found = replace(found, writer=writer, is_named=is_log_name(name))
    if found.writer is Writer.UNKNOWN and not found.is_named and found.parts:
        tree.leave_out("damaged files" if is_damaged else kind_by_content(name, begin), found.parts)
    else:
        tree.logs.append(found)
    return tree


def _in_archive(root: Path, archive: Archive, parts: Parts, outside: int) -> Tree:
    """The logs in an archive. One that is damaged stands for itself too, so that its damage is told."""
    tree = Tree()
    if archive.damage:
        tree.logs.append(Found(parts, outside))
    for kind, count in sorted(archive.others.items()):
        tree.leave_out(f"{kind} in archives", parts, count)
    for name in sorted(archive.members):
        inside = tuple(name.split("/"))
        here = (*parts, *inside)
        kind = _kind_in_archive(archive, inside)
        if kind:
            tree.leave_out(kind, here)
        elif _is_record(here):
            tree.logs.append(Found(here, outside, is_record=True, size=archive.members[name]))
        elif (nested := archive.nested(name)) is not None:
            tree.add(_in_archive(root, nested, here, outside))
        else:
            tree.add(_at_log(root, Found(here, outside, size=archive.members[name]), inside[-1]))
    return tree


def _kind_in_archive(archive: Archive, inside: Parts) -> str:
    """Why a member of an archive is not looked at; empty if it is."""
    if any(map(is_hidden, inside)):
        return _HIDDEN
    if any(name in _FOLDER_NAMES for name in inside[:-1]):
        return _FOLDER_NAMES[next(name for name in inside if name in _FOLDER_NAMES)]
    if is_log_name(inside[-1]):
        return ""
    locked = archive.locked.get("/".join(inside))
    return f"files in archives that are {locked}" if locked else kind_by_name(inside[-1])


def left_out_line(left: Sequence[LeftOut]) -> str:
    """What was left out, for people: `Left out 4: .md 3 (such as README.md), images 1 (a.png)`; empty if nothing was. Escapes nothing."""
    if not left:
        return ""
    kinds = [f"{kind} {count:,} ({'such as ' if count > 1 else ''}{'/'.join(example)})" for kind, count, example in left[:_KINDS_TOLD]]
    if len(left) > _KINDS_TOLD:
        kinds.append(f"others {sum(one.number for one in left[_KINDS_TOLD:]):,}")
    return f"Left out {sum(one.number for one in left):,}: {', '.join(kinds)}"
