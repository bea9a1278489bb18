"""What the tables must say of scenes, which tests/live plays and scripts/truth/record.py records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from jobs.demo import scenes
from jobs.demo.consumers import CLASSIC, CONSUMER, JAVA, LIBRDKAFKA
from tests.lab import further_scenes

JOINED, LEFT, SILENT, STALLED = "MEMBER_JOINED", "MEMBER_LEFT", "SESSION_TIMEOUT", "POLL_TIMEOUT"
NOT_STORED = "ASSIGNMENT_NOT_STORED"
RESOLVED = "REGEX_RESOLVED"
ZOMBIE = ("UNKNOWN_MEMBER", "ILLEGAL_GENERATION", "ZOMBIE_COMMIT")

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


TWO = [(JOINED, "1", 0, 1), (JOINED, "2", 1, 2)]
BACK = (JOINED, "2", 1, 2)

PLAYED_LIVE = {
    scenes.leaves: Expected([*TWO, (LEFT, "2", 2, 1), (LEFT, "1", 1, 0)], ends=[("2", "LEFT"), ("1", "LEFT")]),
    scenes.is_killed: Expected([*TWO, (SILENT, "2", 2, 1)], [(SILENT, "2")], [("2", SILENT)]),
    scenes.is_frozen: Expected([*TWO, (SILENT, "2", 2, 1), BACK], [(SILENT, "2"), (ZOMBIE, "2")], [("2", SILENT)]),
    scenes.stalls: Expected([*TWO, (STALLED, "2", 2, 1), BACK], [(STALLED, "2")], [("2", STALLED)]),
    # It does not leave; that its poll loop had stalled shows when it comes back, after the rebalance was told.
    further_scenes.stalls_static: Expected([*TWO, (SILENT, "2", 2, 1), BACK], [(STALLED, "2")], [("2", SILENT)]),
    scenes.is_fenced: Expected(TWO, [("FENCED_INSTANCE", "2")], [("2", "REPLACED")]),
}

RECORDED = {
    **{scene: ((LIBRDKAFKA, JAVA), expected) for scene, expected in PLAYED_LIVE.items()},
    scenes.comes_back_static: ((LIBRDKAFKA, JAVA), Expected(TWO, ends=[("2", "REPLACED")])),
    # librdkafka asks again without end.
    further_scenes.is_one_too_many: ((JAVA,), Expected([*TWO, (JOINED, "3", 2, 3)], [("GROUP_TOO_LARGE", "4")])),
}
"""Scenes that are played side by side, with the kinds of consumer 2."""

UNSTORED = Expected([*TWO, (JOINED, "3", 2, 3), (NOT_STORED, None, 3, 3)], [("ASSIGNMENT_NOT_STORED", None)], again=NOT_STORED)
"""A third member joins while the broker cannot write the assignment."""

ORPHANED = Expected([*TWO, (SILENT, "2", 2, 1)], [(SILENT, "2")], [("2", SILENT)])
"""A member dies while its broker, which is alone, starts again."""

THREE = [*TWO, (JOINED, "3", 2, 3)]
COME_BACK = [(LEFT, "1", 2, 1), (JOINED, "1", 1, 2), (LEFT, "2", 2, 1), BACK]
ALL_RESTARTED = [told for name in "123" for told in ((LEFT, name, 3, 2), (JOINED, name, 2, 3))]
ONE_LEFT = [("1", "LEFT"), ("2", "LEFT")]
ALL_LEFT = [*ONE_LEFT, ("3", "LEFT")]
REMOVED = [("2", SILENT)]
RETURNED = ("UNKNOWN_MEMBER", "ZOMBIE_COMMIT")

OF_CONSUMER_PROTOCOL = {
    scenes.leaves: PLAYED_LIVE[scenes.leaves],
    scenes.is_killed: PLAYED_LIVE[scenes.is_killed],
    scenes.is_frozen: Expected([*TWO, (SILENT, "2", 2, 1), BACK], [(SILENT, "2"), (RETURNED, "2")], REMOVED),
    # It leaves without a reason: the protocol has none. librdkafka leaves only once it polls again, and comes back at once.
    scenes.stalls: Expected([*TWO, (LEFT, "2", 2, 1), BACK], ends=[("2", "LEFT")], besides=[STALLED]),
    # It leaves for a while (epoch -2), and its session ends.
    further_scenes.stalls_static: Expected(
        [*TWO, (SILENT, "2", 2, 1), BACK], [((SILENT, "STATIC_MEMBER_AWAY"), "2")], REMOVED, besides=[*RETURNED, STALLED]
    ),
    scenes.comes_back_static: Expected(TWO, ends=[("2", "REPLACED")], besides=["STATIC_MEMBER_AWAY"]),
    further_scenes.is_refused: Expected(TWO, [("UNRELEASED_INSTANCE_ID", "double")]),
    scenes.revokes_slowly: Expected(THREE, [("STUCK_RECONCILING", "2")]),
    further_scenes.rolls: Expected([*THREE, *ALL_RESTARTED], [("ROLLING_RESTART", None)], ALL_LEFT),
    further_scenes.changes_subscription: Expected([*TWO, ("SUBSCRIPTION_CHANGED", "2", 2, 2)]),
    scenes.has_a_growing_topic: Expected([*TWO, ("METADATA_CHANGED", None, 2, 2)]),
    further_scenes.subscribes_by_expression: Expected([*TWO, (RESOLVED, None, 2, 2)]),
    # The group waits for its first member to give partitions up: they join meanwhile.
    further_scenes.join_together: Expected([TWO[0], (JOINED, "2", 1, 4)], rounds=[(JOINED, name) for name in "1234"]),
    # The first one that comes back with the other protocol converts the group.
    scenes.becomes_a_consumer_group: Expected([*TWO, *COME_BACK], ends=ONE_LEFT, protocols=[CLASSIC] * 3 + [CONSUMER] * 3),
    # The last one that leaves with the consumer protocol converts it: its departure begins a classic rebalance.
    scenes.becomes_a_classic_group: Expected([*TWO, *COME_BACK], ends=ONE_LEFT, protocols=[CONSUMER] * 4 + [CLASSIC] * 2),
}
"""Scenes of groups whose consumers have group.protocol=consumer (KIP-848), or come back with another one."""

CONSUMER_PLAYED_LIVE = {
    scenes.leaves: (LIBRDKAFKA,),
    scenes.is_killed: (JAVA,),
    scenes.is_frozen: (LIBRDKAFKA,),
    scenes.stalls: (JAVA,),
    scenes.comes_back_static: (LIBRDKAFKA,),
    further_scenes.is_refused: (LIBRDKAFKA,),
    scenes.revokes_slowly: (JAVA,),
    further_scenes.rolls: (LIBRDKAFKA,),
    further_scenes.changes_subscription: (LIBRDKAFKA,),
    scenes.has_a_growing_topic: (LIBRDKAFKA,),
    scenes.becomes_a_consumer_group: (JAVA,),
    scenes.becomes_a_classic_group: (LIBRDKAFKA,),
}
"""Those of tests/live, with the kinds of the consumers but for the first. A JVM takes its time."""

BOTH_KINDS = (LIBRDKAFKA, JAVA)
CONSUMER_RECORDED = {
    scenes.leaves: (JAVA,),
    scenes.is_killed: (LIBRDKAFKA,),
    scenes.is_frozen: BOTH_KINDS,
    scenes.stalls: (JAVA,),
    further_scenes.stalls_static: BOTH_KINDS,
    scenes.comes_back_static: (LIBRDKAFKA,),  # a JVM may start for longer than a session lasts
    further_scenes.is_refused: BOTH_KINDS,
    scenes.revokes_slowly: BOTH_KINDS,
    further_scenes.rolls: (LIBRDKAFKA,),
    further_scenes.changes_subscription: BOTH_KINDS,
    scenes.has_a_growing_topic: (LIBRDKAFKA,),
    further_scenes.subscribes_by_expression: (JAVA,),
    further_scenes.join_together: BOTH_KINDS,
    scenes.becomes_a_consumer_group: BOTH_KINDS,
    scenes.becomes_a_classic_group: BOTH_KINDS,
}
"""Those of the recording."""

THERE_AND_BACK = Expected(
    [*THREE, *ALL_RESTARTED, *ALL_RESTARTED],
    [("ROLLING_RESTART", None)],
    [*ALL_LEFT, *ALL_LEFT],
    protocols=[CLASSIC] * 4 + [CONSUMER] * 9 + [CLASSIC] * 2,
)
"""further_scenes.migrates, which is recorded alone: nothing happens for a while in it."""


def recorded(protocol):
    """The scenes that are recorded side by side, with the kinds of consumer 2 and what is expected."""
    if protocol == CLASSIC:
        return [(scene, kinds, expected) for scene, (kinds, expected) in RECORDED.items()]
    return [(scene, kinds, OF_CONSUMER_PROTOCOL[scene]) for scene, kinds in CONSUMER_RECORDED.items()]


def alone(protocol):
    """The scenes that need the broker for themselves, with the kind of consumer 2 and what is expected."""
    if protocol == CLASSIC:
        return [(further_scenes.unstored, LIBRDKAFKA, UNSTORED), (further_scenes.orphaned, JAVA, ORPHANED)]
    return [(further_scenes.migrates, JAVA, THERE_AND_BACK)]
