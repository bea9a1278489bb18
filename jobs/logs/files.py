"""Finds log files, and the cluster and the broker or client that each belongs to.

What is in a file decides whether it is a log, or its name (jobs/logs/content). The folder names carry what the lines do not say. These
layouts are understood:

* `INPUT/<cluster>/<broker>/server.log`, the documented layout, any number of clusters;
* `INPUT/<broker>/server.log`: INPUT is itself a cluster and lends it its name;
* `INPUT/server.log`, or INPUT a single file: one broker of one cluster, under default names;
* `clients` in the place of a broker: logs of client applications, `clients/<group>/app.log` where their lines do not name the group. A
  log with lines of consumers and none of a broker is one of a client wherever it lies.

Deeper folders belong to the broker above them. A zip or tar is a folder.

Beside brokers a cluster may have the folders `offsets` and `poll` with files of records (record_judge.py), `*.jsonl[.gz]`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from coordinator_model.events import CLIENTS
from jobs.logs.bytes import open_log
from jobs.logs.content.kinds import is_log_name
from jobs.logs.content.tree import Found, LeftOut, Parts, left_out_line, look_through, stem_of
from jobs.logs.content.verdict import Writer
from jobs.logs.record_judge import FOLDERS, is_record_file, record_source

__all__ = ["LogFile", "discover", "file_name_text", "head_of", "is_log_name", "left_out", "left_out_in"]

DEFAULT_CLUSTER: Final = "default"
DEFAULT_BROKER: Final = "broker-0"
_SAY_NOTHING: Final = frozenset(
    {"var", "log", "logs", "kafka", "opt", "usr", "srv", "mnt", "home", "root", "tmp", "data", "local", "private"}
)
"""Folders that only say where Kafka lay (`var/log/kafka`): they name nothing in an archive."""
_SAY_MUCH: Final = FOLDERS | {CLIENTS}


class LogFile(msgspec.Struct, frozen=True, order=True):
    """One log file. `origin` is its path relative to the input, with forward slashes: what evidence names."""

    cluster: str
    broker: str
    origin: str
    path: Path


def discover(root: Path) -> list[LogFile]:
    """All logs at `root`, a file or a folder, in a fixed order.

    A file as `root` is a log whatever it holds; a zip or tar is a folder. OSError: `root` cannot be read.
    """
    if not root.exists():
        raise FileNotFoundError(f"no such file or folder: {root}")
    found_logs = look_through(root).logs
    itself = [_single(root, found) for found in found_logs if not found.parts]  # a file, or an archive whose damage is to be told
    logs = [found for found in found_logs if found.parts]
    own_name = file_name_text(stem_of(root.resolve().name) if root.is_file() else root.resolve().name) or DEFAULT_CLUSTER
    below = zip(_names(logs, own_name), logs, strict=True)
    return sorted([*itself, *(LogFile(*names, file_name_text("/".join(one.parts)), root.joinpath(*one.parts)) for names, one in below)])


def left_out(root: Path) -> list[LeftOut]:
    """What of `root` is no log, the most frequent kind first. OSError: `root` cannot be read."""
    return sorted(look_through(root).left.values(), key=lambda one: (-one.number, one))


def _single(root: Path, found: Found) -> LogFile:
    broker = DEFAULT_BROKER
    if found.writer is Writer.CLIENT:
        broker = CLIENTS
    elif found.writer is Writer.UNKNOWN and is_record_file(root.name):
        broker = record_source(head_of(root))
    return LogFile(DEFAULT_CLUSTER, broker, file_name_text(root.name), root)


def left_out_in(root: Path) -> str:
    """What of `root` is no log, in a line for people that may hold any character; empty if that is nothing, or it cannot be read."""
    try:
        return left_out_line(left_out(root))
    except OSError:
        return ""


def _names(logs: list[Found], own_name: str) -> Iterator[tuple[str, str]]:
    """Cluster and broker of each log, by which folders are clusters and which are brokers."""
    parts = _naming_parts(logs)
    named = [found for found in logs if found.is_named] or logs
    brokers = {
        parts[found.parts][0]
        for found in named
        if (len(parts[found.parts]) == 2 and found.writer is not Writer.CLIENT) or parts[found.parts][0] == CLIENTS
    }
    clusters = {own[0] for own in parts.values() if len(own) > 2} - brokers
    for found in logs:
        own = parts[found.parts]
        names = [file_name_text(part) for part in own]
        if found.is_record:
            yield (names[0] if len(names) > 2 else own_name), names[-2]
            continue
        if len(names) == 1:
            cluster, broker = own_name if brokers else DEFAULT_CLUSTER, DEFAULT_BROKER
        elif own[0] in brokers:
            cluster, broker = own_name, names[0]
        elif len(names) == 2:
            cluster, broker = (names[0], DEFAULT_BROKER) if own[0] in clusters else (own_name, names[0])
        else:
            cluster, broker = names[0], names[1]
        yield cluster, CLIENTS if found.writer is Writer.CLIENT else broker


def _naming_parts(logs: Sequence[Found]) -> dict[Parts, Parts]:
    """For each log the folders that name its cluster and its broker, and its own name, by its path: an archive stands for a folder."""
    names = {found.parts: found.parts for found in logs if found.outside >= len(found.parts)}
    archives: dict[Parts, list[Parts]] = {}
    for found in logs:
        if found.outside < len(found.parts):
            archives.setdefault(found.parts[: found.outside], []).append(found.parts[found.outside :])
    for archive, members in archives.items():
        names |= zip(((*archive, *member) for member in members), _in_archive(archive, members), strict=True)
    return names


def _in_archive(archive: Parts, members: Sequence[Parts]) -> list[Parts]:
    """The naming parts of the logs in an archive."""
    outer = archive[:-1]
    lead = [stem_of(archive[-1])] if archive else []
    folders = [tuple(stem_of(part) for part in member[:-1]) for member in members]
    shared = _shared(folders)
    lead += [part for part in shared if part.lower() not in _SAY_NOTHING and part not in lead]
    inner = [tuple(part for part in path[len(shared) :] if part.lower() not in _SAY_NOTHING) for path in folders]
    # Where the logs lie in several folders, these are brokers; where each lies in two or more, clusters and brokers.
    if all(len(path) > 1 for path in inner):
        lead = []
    elif any(inner):
        lead = lead[-1:] if not outer else []
    else:
        lead = lead[-2:] if not outer else lead[-1:]
    return [(*outer, *lead, *path, member[-1]) for path, member in zip(inner, members, strict=True)]


def _shared(folders: Iterable[Parts]) -> Parts:
    """The folders in which all logs lie."""
    shared: list[str] = []
    for level in zip(*folders, strict=False):
        if len(set(level)) > 1 or level[0] in _SAY_MUCH:
            break
        shared.append(level[0])
    return tuple(shared)


def head_of(path: Path) -> bytes:
    """The first bytes of a log."""
    with open_log(path) as file:
        return file.head()


def file_name_text(name: str) -> str:
    """A file name as text: bytes that are not UTF-8 become escapes, because a table cannot hold them."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
