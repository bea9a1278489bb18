"""The names of clusters and brokers that the folders of logs carry, those in archives too.

An archive stands for a folder. Folders that only say where Kafka lay (`var/log/kafka`) name nothing in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from coordinator_model.events import CLIENTS
from jobs.logs.content.tree import Found, Parts, stem_of
from jobs.logs.record_judge import FOLDERS

_SAY_NOTHING: Final = frozenset(
    {"var", "log", "logs", "kafka", "opt", "usr", "srv", "mnt", "home", "root", "tmp", "data", "local", "private"}
)
_SAY_MUCH: Final = FOLDERS | {CLIENTS}


def naming_parts(logs: Sequence[Found]) -> dict[Parts, Parts]:
    """For each log the folders that name its cluster and its broker, and its own name, by its path."""
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
