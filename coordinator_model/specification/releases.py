"""Values that depend on a release of Kafka: fields of a dataclass, each with the releases that changed it.

@dataclass(frozen=True)
class Version:
static_members: bool = field(metadata=since(2, 3))

Version(**values_of(Version, "3.9.1"))
"""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any, Final

Release = tuple[int, ...]

NEWEST: Final = (4, 4, 0)
"""The newest release whose rules are known. A newer one is taken for it."""
_LAST_OF_MAJOR: Final = {0: 11, 1: 1, 2: 8, 3: 9}
"""The last second number of each first one that has ended."""


def release_numbers(name: str) -> Release:
    """The numbers of a release name: "0.10.2.2" => (0, 10, 2, 2). ValueError: there is no such release, and none may come."""
    numbers = tuple(int(part) for part in name.split(".")) if re.fullmatch(r"\d+(\.\d+)+", name, re.ASCII) else ()
    if not numbers or numbers[1] > _LAST_OF_MAJOR.get(numbers[0], numbers[1]):
        raise ValueError(f"not a Kafka release: {name!r}")
    return numbers


def is_known(name: str) -> bool:
    """Whether a release is named, and its rules are known."""
    return bool(name) and not is_newer(name)


def is_newer(name: str) -> bool:
    """Whether the release called `name` came after the newest one whose rules are known."""
    return release_numbers(name) > NEWEST


def since(*release: int) -> dict[str, Any]:
    """True from `release` on."""
    return changing(False, {release: True})


def before(*release: int) -> dict[str, Any]:
    """True up to the release before `release`."""
    return changing(True, {release: False})


def changing(first: object, changes: dict[Release, Any]) -> dict[str, Any]:
    """`first`, until a release changes it. The releases in their order, each with the value from then on."""
    return {"first": first, "changes": changes}


def values_of(version: Any, name: str) -> dict[str, Any]:
    """The fields of the dataclass `version` in the release called `name`."""
    release = release_numbers(name)
    return {
        field.name: [field.metadata["first"], *(value for start, value in field.metadata["changes"].items() if release >= start)][-1]
        for field in fields(version)
        if field.metadata
    }
