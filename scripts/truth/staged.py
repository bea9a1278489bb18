"""What happens to groups in staged recordings (scripts/truth/record.py), and what the tables must say of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from jobs.demo import scenes
from jobs.demo.real_consumer import CLASSIC, CONSUMER, JAVA, LIBRDKAFKA
from jobs.demo.scenes import Scene, Stage

JOINED, LEFT, SILENT, STALLED = "MEMBER_JOINED", "MEMBER_LEFT", "SESSION_TIMEOUT", "POLL_TIMEOUT"
NOT_STORED: Final = "ASSIGNMENT_NOT_STORED"
RESOLVED: Final = "REGEX_RESOLVED"
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
    besides: list[str] = field(default_factory=list)  # findings about client 2 that depend on how fast it was
    protocols: list[str] = field(default_factory=list)  # of each rebalance, where they differ
    rounds: list[tuple[str, str | None]] = field(default_factory=list)  # cause and culprit, where a rebalance has more than one


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


def is_one_too_many(stage: Stage) -> Scene:
    """The fourth member of a group whose broker allows three."""
    one, two = yield from stage.two()
    three = stage.enter("3")
    yield stage.share(one, two, three)
    four = stage.enter("4")
    yield lambda: four.failure is not None
    yield stage.share(one, two, three)


QUIET_SECONDS: Final = 62
"""Longer than the time without a rebalance after which restarts are told."""


def migrates_there_and_back(stage: Stage) -> Scene:
    """Three consumers come back with the consumer protocol, and later with the classic one. Nothing happens in between."""
    running = dict(zip("12", (yield from stage.two(protocol=CLASSIC)), strict=True))
    running["3"] = stage.enter("3", protocol=CLASSIC)
    yield stage.share(*running.values())
    for protocol in (CONSUMER, CLASSIC):
        since = time.monotonic()
        yield lambda: time.monotonic() > since + QUIET_SECONDS  # noqa: B023 - asked before it changes
        yield from scenes.come_back(stage, running, protocol)


RECORDED: Final[dict[Callable[[Stage], Scene], tuple[tuple[str, ...], Expected]]] = {
    **{scene: ((LIBRDKAFKA, JAVA), expected) for scene, expected in PLAYED_LIVE.items()},
    scenes.comes_back_static: ((LIBRDKAFKA, JAVA), Expected(TWO, ends=[("2", "REPLACED")])),
    is_one_too_many: ((JAVA,), Expected([*TWO, (JOINED, "3", 2, 3)], [("GROUP_TOO_LARGE", "4")])),  # librdkafka asks again without end
}
"""Scenes that are played side by side, with the kinds of consumer 2."""

UNSTORED: Final = Expected([*TWO, (JOINED, "3", 2, 3), (NOT_STORED, None, 3, 3)], [("ASSIGNMENT_NOT_STORED", None)], again=NOT_STORED)
"""A third member joins while the broker cannot write the assignment."""

ORPHANED: Final = Expected([*TWO, (SILENT, "2", 2, 1)], [(SILENT, "2")], [("2", SILENT)])
"""A member dies while its broker, which is alone, starts again."""

THREE: Final[list[Told]] = [*TWO, (JOINED, "3", 2, 3)]
COME_BACK: Final[list[Told]] = [(LEFT, "1", 2, 1), (JOINED, "1", 1, 2), (LEFT, "2", 2, 1), BACK]
ALL_RESTARTED: Final[list[Told]] = [told for name in "123" for told in ((LEFT, name, 3, 2), (JOINED, name, 2, 3))]
ONE_LEFT: Final = [("1", "LEFT"), ("2", "LEFT")]
ALL_LEFT: Final = [*ONE_LEFT, ("3", "LEFT")]
REMOVED: Final = [("2", SILENT)]
RETURNED: Final = ("UNKNOWN_MEMBER", "ZOMBIE_COMMIT")

OF_CONSUMER_PROTOCOL: Final[dict[Callable[[Stage], Scene], Expected]] = {
    scenes.leaves: PLAYED_LIVE[scenes.leaves],
    scenes.is_killed: PLAYED_LIVE[scenes.is_killed],
    scenes.is_frozen: Expected([*TWO, (SILENT, "2", 2, 1), BACK], [(SILENT, "2"), (RETURNED, "2")], REMOVED),
    # It leaves without a reason: the protocol has none. librdkafka leaves only once it polls again, and comes back at once.
    scenes.stalls: Expected([*TWO, (LEFT, "2", 2, 1), BACK], ends=[("2", "LEFT")], besides=[STALLED]),
    # It leaves for a while (epoch -2), and its session ends.
    scenes.stalls_static: Expected(
        [*TWO, (SILENT, "2", 2, 1), BACK], [((SILENT, "STATIC_MEMBER_AWAY"), "2")], REMOVED, besides=[*RETURNED, STALLED]
    ),
    scenes.comes_back_static: Expected(TWO, ends=[("2", "REPLACED")], besides=["STATIC_MEMBER_AWAY"]),
    scenes.is_refused: Expected(TWO, [("UNRELEASED_INSTANCE_ID", "double")]),
    scenes.revokes_slowly: Expected(THREE, [("STUCK_RECONCILING", "2")]),
    scenes.rolls: Expected([*THREE, *ALL_RESTARTED], [("ROLLING_RESTART", None)], ALL_LEFT),
    scenes.changes_subscription: Expected([*TWO, ("SUBSCRIPTION_CHANGED", "2", 2, 2)]),
    scenes.has_a_growing_topic: Expected([*TWO, ("METADATA_CHANGED", None, 2, 2)]),
    scenes.subscribes_by_expression: Expected([*TWO, (RESOLVED, None, 2, 2)]),
    # The group waits for its first member to give partitions up: they join meanwhile.
    scenes.join_together: Expected([TWO[0], (JOINED, "2", 1, 4)], rounds=[(JOINED, name) for name in "1234"]),
    # The first one that comes back with the other protocol converts the group.
    scenes.becomes_a_consumer_group: Expected([*TWO, *COME_BACK], ends=ONE_LEFT, protocols=[CLASSIC] * 3 + [CONSUMER] * 3),
    # The last one that leaves with the consumer protocol converts it: its departure begins a classic rebalance.
    scenes.becomes_a_classic_group: Expected([*TWO, *COME_BACK], ends=ONE_LEFT, protocols=[CONSUMER] * 4 + [CLASSIC] * 2),
}
"""Scenes of groups whose consumers have group.protocol=consumer (KIP-848), or come back with another one."""

CONSUMER_PLAYED_LIVE: Final[dict[Callable[[Stage], Scene], tuple[str, ...]]] = {
    scenes.leaves: (LIBRDKAFKA,),
    scenes.is_killed: (JAVA,),
    scenes.is_frozen: (LIBRDKAFKA,),
    scenes.stalls: (JAVA,),
    scenes.comes_back_static: (LIBRDKAFKA,),
    scenes.is_refused: (LIBRDKAFKA,),
    scenes.revokes_slowly: (JAVA,),
    scenes.rolls: (LIBRDKAFKA,),
    scenes.changes_subscription: (LIBRDKAFKA,),
    scenes.has_a_growing_topic: (LIBRDKAFKA,),
    scenes.becomes_a_consumer_group: (JAVA,),
    scenes.becomes_a_classic_group: (LIBRDKAFKA,),
}
"""Those of tests/live, with the kinds of the consumers but for the first. A JVM takes its time."""

BOTH_KINDS: Final = (LIBRDKAFKA, JAVA)
CONSUMER_RECORDED: Final[dict[Callable[[Stage], Scene], tuple[str, ...]]] = {
    scenes.leaves: (JAVA,),
    scenes.is_killed: (LIBRDKAFKA,),
    scenes.is_frozen: BOTH_KINDS,
    scenes.stalls: (JAVA,),
    scenes.stalls_static: BOTH_KINDS,
    scenes.comes_back_static: (LIBRDKAFKA,),  # a JVM may start for longer than a session lasts
    scenes.is_refused: BOTH_KINDS,
    scenes.revokes_slowly: BOTH_KINDS,
    scenes.rolls: (LIBRDKAFKA,),
    scenes.changes_subscription: BOTH_KINDS,
    scenes.has_a_growing_topic: (LIBRDKAFKA,),
    scenes.subscribes_by_expression: (JAVA,),
    scenes.join_together: BOTH_KINDS,
    scenes.becomes_a_consumer_group: BOTH_KINDS,
    scenes.becomes_a_classic_group: BOTH_KINDS,
}
"""Those of the recording."""

THERE_AND_BACK: Final = Expected(
    [*THREE, *ALL_RESTARTED, *ALL_RESTARTED],
    [("ROLLING_RESTART", None)],
    [*ALL_LEFT, *ALL_LEFT],
    protocols=[CLASSIC] * 4 + [CONSUMER] * 9 + [CLASSIC] * 2,
)
"""migrates_there_and_back, which is recorded alone: nothing happens for a while in it."""
