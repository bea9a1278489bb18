"""What docs/tables.md says of each table: what its page in schemas/ says, and all columns with their comments."""

from __future__ import annotations

from typing import Final

from pyspark.sql.types import StructField, StructType

from coordinator_model.tracker import unended
from coordinator_model.tracker.closing import WAITS
from schemas.tables import FOLDED_TABLES, HEALTH_TABLES, INGEST_TABLES, PROVISIONAL_TABLES, TRACK_TABLES, about
from scripts.docs.findings import RULES

OUTCOMES: Final = {
    "COMPLETED": "The group is Stable: the leader's assignment arrived, or all members have theirs (consumer protocol).",
    "SUPERSEDED": "The next rebalance began before this one had ended.",
    "EMPTIED": "The last member went.",
    "ABANDONED": "The coordinator went away with it: moved, restarted, or its log ends. Or lines are missing.",
    "OPEN": "It has not ended when the logs end (only in rebalances_provisional).",
    "ENDED": "It is no longer OPEN: the row takes back what was told (only in rebalances_provisional, in no view).",
}

CAUSES: Final = {
    "MEMBER_JOINED": "A new member joined.",
    "MEMBER_LEFT": "A member left by itself: closed, or unsubscribed.",
    "SESSION_TIMEOUT": "The coordinator received no heartbeat of a member for session.timeout.ms.",
    "POLL_TIMEOUT": "A member left because the application did not poll for max.poll.interval.ms.",
    "SYNC_TIMEOUT": "Members that had joined did not ask for their assignment in time.",
    "SUBSCRIPTION_CHANGED": "A member subscribes to other topics than before.",
    "METADATA_CHANGED": "Topics or their partitions changed, and the leader, or the coordinator, made a new assignment.",
    "LEADER_REJOINED": "The leader joined again, and did not say why.",
    "MEMBER_REJOINED": "A member asked again: enforced by the application, or its protocols changed.",
    "STATIC_MEMBER_REPLACED": "A static member came back under a new member id, and its protocols differ.",
    "REVOCATION_FOLLOW_UP": "The second round of a cooperative rebalance: members get the partitions that others gave up in the first.",
    "ADMIN_REMOVED": "An administrator removed members.",
    "COORDINATOR_MOVED": "The group's coordinator moved to another broker, or restarted.",
    "ASSIGNMENT_NOT_STORED": "The coordinator could not store the leader's assignment.",
    "GROUP_OVER_CAPACITY": "The group was loaded with more members than group.max.size.",
    "REBALANCE_TIMEOUT": "Consumer protocol: a member did not give partitions up within its rebalance timeout, and was removed.",
    "REGEX_RESOLVED": "Consumer protocol: topics of a regular expression were found: it is new, or matches others than before.",
    "UNKNOWN": "The lines do not show it.",
}

END_KINDS: Final = {
    "LEFT": "Left by itself.",
    "ADMIN_REMOVED": "An administrator removed it.",
    "SESSION_TIMEOUT": "The coordinator received no heartbeat of it for session.timeout.ms.",
    "POLL_TIMEOUT": "Left because the application did not poll for max.poll.interval.ms.",
    "JOIN_TIMEOUT": "Did not join again before the join phase timed out.",
    "SYNC_TIMEOUT": "Joined, but did not ask for its assignment in time.",
    "REBALANCE_TIMEOUT": "Consumer protocol: did not give partitions up within its rebalance timeout.",
    "REPLACED": "A static member's old member id, replaced by its new one.",
    "GROUP_GONE": "The group was deleted, or its coordinator is gone.",
    "UNKNOWN": "It is no longer a member; records and polls do not tell how it went.",
}


def part() -> str:
    """All tables, and the values of some columns."""
    parts = ["## Written by track\n"]
    parts += [section(name, schema) for name, schema in (TRACK_TABLES | PROVISIONAL_TABLES | FOLDED_TABLES).items()]
    parts += ["## Written by ingest\n"]
    parts += [section(name, schema) for name, schema in INGEST_TABLES.items()]
    parts += ["## About the pipeline itself\n"]
    parts += [section(name, schema) for name, schema in HEALTH_TABLES.items()]
    parts += [
        "## Values\n",
        values("rebalances.outcome", OUTCOMES),
        values("rebalances.cause", CAUSES),
        values("rebalances_provisional.waits_for", WAITS | unended.WAITS),
        values("member_sessions.end_kind", END_KINDS),
        values("findings.code", {code: rule.row.partition(". ")[0] for code, rule in RULES.items()}),
    ]
    return "\n".join(parts)


def section(name: str, schema: StructType) -> str:
    """One table."""
    lines = [f"### {name}\n", f"{about(name)}\n", "| column | type | null | meaning |", "|---|---|---|---|"]
    lines += [f"| {field.name} | {kind(field)} | {'yes' if field.nullable else 'no'} | {cell(comment(field))} |" for field in schema]
    return "\n".join(lines) + "\n"


def kind(field: StructField) -> str:
    """The column's type as SQL writes it."""
    return f"`{field.dataType.simpleString()}`"


def comment(field: StructField) -> str:
    """The column's comment, which every column has."""
    return str(field.metadata["comment"])


def cell(text: str) -> str:
    """`text` escaped for a cell of a table."""
    return text.replace("|", "\\|")


def values(name: str, meanings: dict[str, str]) -> str:
    """The values of one column."""
    lines = [f"### {name}\n", "| value | meaning |", "|---|---|"]
    lines += [f"| {value} | {cell(meaning)} |" for value, meaning in meanings.items()]
    return "\n".join(lines) + "\n"
