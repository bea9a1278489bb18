"""What a finding is called in words: who did what. Its code follows as a tag, wherever it is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

TITLES: Final[Mapping[str, str]] = {
    "SESSION_TIMEOUT": "{who} missed the session timeout",
    "POLL_TIMEOUT": "{who} did not poll in time",
    "SYNC_TIMEOUT": "{who} joined but did not sync in time",
    "REBALANCE_TIMEOUT": "{who} did not give up partitions in time",
    "SLOW_JOINER": "{who} kept the group waiting",
    "NOT_REJOINED": "{who} did not rejoin",
    "INCONSISTENT_PROTOCOL": "{who} cannot join: incompatible protocol",
    "INVALID_SESSION_TIMEOUT": "{who} cannot join: session.timeout.ms is out of bounds",
    "UNRELEASED_INSTANCE_ID": "{who} cannot join: group.instance.id is taken",
    "UNSUPPORTED_ASSIGNOR": "{who} cannot join: unknown assignor",
    "INVALID_REGEX": "{who} cannot subscribe: invalid regular expression",
    "CLIENT_REFUSED": "The coordinator rejected {who}, which gave up",
    "GROUP_TOO_LARGE": "{group} is full and refuses clients",
    "COORDINATOR_ERROR": "The coordinator reported a problem with {group}",
    "COORDINATOR_MOVED": "{group} moved to another broker",
    "COORDINATOR_UNREACHABLE": "{who} could not reach the coordinator",
    "ROLLING_RESTART": "{who} restarted one after another",
    "REBALANCE_STORM": "{who} made {group} rebalance {count} times",
    "ASSIGNMENT_NOT_STORED": "The coordinator could not store the assignment of {group}",
    "LINES_MISSING": "Log lines about {group} are missing",
    "ILLEGAL_GENERATION": "{who} sent a wrong generation",
    "UNKNOWN_MEMBER": "{who} sent requests without being a member",
    "FENCED_INSTANCE": "The coordinator fenced {who}",
    "FENCED_MEMBER_EPOCH": "{who} sent a wrong member epoch",
    "ZOMBIE_COMMIT": "{who} had a commit refused",
    "STALE_COMMIT": "{who} committed with an old epoch",
    "MODEL_DIVERGENCE": "A broker's answer does not match Kafka's rules",
    "HEARTBEAT_NEAR_MISS": "{who} nearly missed the session timeout",
    "NO_HEARTBEAT_RESPONSE": "{who} got no heartbeat response in time",
    "IDLE_MEMBERS": "{group} has more members than partitions",
    "ASSIGNMENT_SKEW": "{group} spreads its partitions unevenly",
    "STUCK_RECONCILING": "{who} reconciled slowly",
    "SHARE_LOCK_EXPIRED": "{who} acknowledged records too late",
    "ASSIGNMENT_DELAYED": "{group} waited for the coordinator to assign partitions",
    "CONNECT_TASKS_WAIT": "Tasks of {group} waited for a worker",
    "STATIC_MEMBER_AWAY": "{who} left partitions unread while away",
    "REGEX_WITHOUT_TOPICS": "{group} subscribes to expressions that match no topic",
    "PARTITION_NOT_READ": "Nobody reads {partition}",
    "OPEN_TRANSACTION": "An open transaction blocks {partition}",
    "COMMITS_STOPPED": "Commits stopped for {partition}",
    "OFFSETS_EXPIRED": "The committed offset is gone for {partition}",
    "OFFSET_RESET": "auto.offset.reset applied to {partition}",
    "OFFSET_REWOUND": "The committed offset went back in {partition}",
    "OFFSET_SET_FORWARD": "The committed offset was set forward in {partition}",
    "READ_AGAIN": "{who} went back in {partition}",
    "NOTHING_COMMITTED": "{group} commits no offsets",
    "COMMIT_BEHIND": "{group} commits offsets rarely",
    "BROKER_CRASHED": "A broker crashed or was killed",
    "OPEN_REBALANCE": "{group} was still rebalancing",
}
"""By the code of a finding, or of what the report tells like one."""

_BEGAN: Final[Mapping[str, str]] = {
    "STARTUP": "{group} started up",
    "MEMBER_JOINED": "{who} joined",
    "MEMBER_LEFT": "{who} left",
    "MEMBER_REJOINED": "{who} rejoined",
    "LEADER_REJOINED": "The leader {who} rejoined",
    "JOIN_TIMEOUT": "{who} did not rejoin in time",
    "STATIC_MEMBER_REPLACED": "{who} took the place of a static member",
    "SUBSCRIPTION_CHANGED": "{who} changed its subscription",
    "METADATA_CHANGED": "Topics or partitions of {group} changed",
    "REGEX_RESOLVED": "A regular expression of {group} matched other topics",
    "GROUP_CONFIG_CHANGED": "A setting of {group} changed",
    "REVOCATION_FOLLOW_UP": "{who} gave up partitions, as asked",
    "CONNECTOR_CHANGED": "Connectors of {group} changed",
    "DELAY_ENDED": "{group} gave out the tasks of {who}",
    "PROBING_REBALANCE": "{group} looked whether warm-up tasks had caught up",
    "ADMIN_REMOVED": "An administrator removed {who}",
    "GROUP_OVER_CAPACITY": "{group} has more members than its limit allows",
    "COORDINATOR_MOVED": "{group} rebalanced because of {broker}",
    "ROLLING_RESTART": "{who} restarted",
    "REBALANCE_STORM": "{who} made {group} rebalance",
    "UNKNOWN": "{group} rebalanced, and no line shows why",
}
"""By the cause of one rebalance, where that is no finding or tells less than one."""

_STAYED: Final = "The coordinator did not answer {group} in time"
"""COORDINATOR_MOVED of a group that stayed with its broker."""
_STUCK: Final = "{who} was stuck and left the group"
"""POLL_TIMEOUT of a program that is a member by itself, such as a Connect worker or Schema Registry: no application polls there."""
_NAMED: Final = 2  # of each kind


def title(code: str, groups: Sequence[str], clients: Sequence[str], details: Sequence[Mapping[str, Any]]) -> str:
    """The title of one or several findings of a code: the names of their groups and clients as they are shown, and their details.

    What clients did says how often, if that was more often than once each.
    """
    text, began = TITLES.get(code, code), sum(row.get("by_culprit") or 0 for row in details)
    if "{count}" in text and not began:
        text, began = "{group} rebalanced {count} times", sum(row.get("rebalances") or 0 for row in details)
    if any(row.get("from_broker") == row.get("to_broker") is not None for row in details):
        text = _STAYED
    if any("program" in row for row in details):
        text = _STUCK
    partitions = [str(row.get("partition") or "") for row in details]
    who, group, partition = _named(clients, "client"), _named(groups, "group"), _named(partitions, "partition")
    told = _filled(text, who=who, group=group, partition=partition, count=began) if code in TITLES else code
    happens = text.startswith("{who}") and not any(part in text for part in (":", " one after ", "{count}"))
    return f"{told} {len(details)} times" if happens and len(details) > max(len(set(clients)), 1) else told


def rebalance_title(cause: str, group: str, who: str | None) -> str:
    """The title of one rebalance by its cause, or the code of its finding, and the client or broker that is blamed, if known."""
    if cause not in _BEGAN:
        return title(cause, [group], [who] if who else [], [])
    return _filled(_BEGAN[cause], group=group, who=_named([who or ""], "client"), broker=who or "its coordinator")


def _filled(text: str, *, who: str, **names: object) -> str:
    """A sentence with its names. An article begins it with a capital letter, a name as it is."""
    told = text.format(who=who, **names)
    return f"A{told[1:]}" if text.startswith("{who}") and who == _named((), "client") else told


def _named(names: Sequence[str], noun: str) -> str:
    known = list(dict.fromkeys(filter(None, names)))
    return " and ".join(known) if 0 < len(known) <= _NAMED else f"{len(known):,} {noun}s" if known else f"a {noun}"
