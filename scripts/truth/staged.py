"""What happens to groups in staged recordings (scripts/truth/record.py), and what the tables must say of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from jobs.demo import scenes
from jobs.demo.real_consumer import JAVA, LIBRDKAFKA
from jobs.demo.scenes import Scene, Stage

JOINED, LEFT, SILENT, STALLED = "MEMBER_JOINED", "MEMBER_LEFT", "SESSION_TIMEOUT", "POLL_TIMEOUT"
NOT_STORED: Final = "ASSIGNMENT_NOT_STORED"
ZOMBIE: Final = ("UNKNOWN_MEMBER", "ILLEGAL_GENERATION", "ZOMBIE_COMMIT")

Told: TypeAlias = tuple[str, str | None, int, int]
"""A rebalance: cause, culprit, members before and after. Clients have the name that the scene gives them, such as 2."""


@dataclass(frozen=True)
class Expected:
    """Rebalances, findings as (code or one of these codes, client), ends of memberships as (client, kind)."""

    rebalances: list[Told]
    findings: list[tuple[str | tuple[str, ...], str | None]] = field(default_factory=list)
    ends: list[tuple[str, str]] = field(default_factory=list)
    again: str = ""  # the last rebalance but one may come again and again, with this cause and no culprit


TWO: Final[list[Told]] = [(JOINED, "1", 0, 1), (JOINED, "2", 1, 2)]
BACK: Final[Told] = (JOINED, "2", 1, 2)

PLAYED_LIVE: Final[dict[Callable[[Stage], Scene], Expected]] = {
    scenes.leaves: Expected([*TWO, (LEFT, "2", 2, 1), (LEFT, "1", 1, 0)], ends=[("2", "LEFT"), ("1", "LEFT")]),
    scenes.is_killed: Expected([*TWO, (SILENT, "2", 2, 1)], [(SILENT, "2")], [("2", SILENT)]),
    scenes.is_frozen: Expected([*TWO, (SILENT, "2", 2, 1), BACK], [(SILENT, "2"), (ZOMBIE, "2")], [("2", SILENT)]),
    scenes.stalls: Expected([*TWO, (STALLED, "2", 2, 1), BACK], [(STALLED, "2")], [("2", STALLED)]),
    # It does not leave; that its poll loop had stalled shows when it comes back, after the rebalance was told.
    scenes.stalls_static: Expected([*TWO, (SILENT, "2", 2, 1), BACK], [(STALLED, "2")], [("2", SILENT)]),
    scenes.is_fenced: Expected(TWO, [("FENCED_INSTANCE", "2")], [("2", "REPLACED")]),
}


def comes_back_static(stage: Stage) -> Scene:
    """A static member is closed, which is no leaving, and comes back within its session."""
    one, two = yield from stage.two(static=True)
    two.leave()
    yield lambda: not two.running
    again = stage.enter("2", instance_id=f"{stage.group}-2")
    yield stage.share(one, again)


def is_one_too_many(stage: Stage) -> Scene:
    """The fourth member of a group whose broker allows three."""
    one, two = yield from stage.two()
    three = stage.enter("3")
    yield stage.share(one, two, three)
    four = stage.enter("4")
    yield lambda: four.failure is not None
    yield stage.share(one, two, three)


RECORDED: Final[dict[Callable[[Stage], Scene], tuple[tuple[str, ...], Expected]]] = {
    **{scene: ((LIBRDKAFKA, JAVA), expected) for scene, expected in PLAYED_LIVE.items()},
    comes_back_static: ((LIBRDKAFKA, JAVA), Expected(TWO, ends=[("2", "REPLACED")])),
    is_one_too_many: ((JAVA,), Expected([*TWO, (JOINED, "3", 2, 3)], [("GROUP_TOO_LARGE", "4")])),  # librdkafka asks again without end
}
"""Scenes that are played side by side, with the kinds of consumer 2."""

UNSTORED: Final = Expected([*TWO, (JOINED, "3", 2, 3), (NOT_STORED, None, 3, 3)], [("REBALANCE_STORM", None)], again=NOT_STORED)
"""A third member joins while the broker cannot write the assignment."""

ORPHANED: Final = Expected([*TWO, (SILENT, "2", 2, 1)], [(SILENT, "2")], [("2", SILENT)])
"""A member dies while its broker, which is alone, starts again."""
