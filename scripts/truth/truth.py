"""What truly happened in a recording: the cause and culprit of every rebalance, and the facts that findings should report.

There are two sources: the broker's reason for each rebalance (`rebalances.jsonl`), and the list of what was done to the consumers
(`truth.jsonl`). docs/score.md says how they are combined, and what each label asks for. Nothing here depends on a group, a member or a
time of a particular recording.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from scripts.truth.recordings import Recording, Row

FAILOVER: Final = "COORDINATOR_FAILOVER"
FAILOVER_MS: Final = 60_000  # how long after it a rebalance may be its effect: a session, and the search for the new coordinator
FOLLOW_UP_MS: Final = 10_000  # from the end of one cooperative round to the start of the next
FACT_MS: Final = 60_000  # how long after an action, and the timeout that it runs into, its effect may come

FINDING_CODES: Final[dict[str, tuple[str, ...]]] = {
    "SESSION_TIMEOUT": ("SESSION_TIMEOUT",),
    "LEADER_DIED_IN_SYNC": ("SESSION_TIMEOUT",),
    "POLL_TIMEOUT": ("POLL_TIMEOUT",),
    "SLOW_JOINER": ("SLOW_JOINER",),
    "SYNC_TIMEOUT": ("SYNC_TIMEOUT",),
    "FENCED": ("FENCED_INSTANCE",),
    "ZOMBIE": ("UNKNOWN_MEMBER", "ILLEGAL_GENERATION", "FENCED_INSTANCE", "ZOMBIE_COMMIT"),
    "ZOMBIE_COMMIT": ("ZOMBIE_COMMIT",),
    "STORM": ("REBALANCE_STORM",),
    "ROLLING_RESTART": ("ROLLING_RESTART",),
    "INCONSISTENT_PROTOCOL": ("INCONSISTENT_PROTOCOL",),
    "INVALID_SESSION_TIMEOUT": ("INVALID_SESSION_TIMEOUT",),
    "GROUP_MAX_SIZE": ("GROUP_TOO_LARGE",),
    FAILOVER: ("COORDINATOR_MOVED",),
}
"""Labels that a finding with one of these codes must report."""

REBALANCE_CAUSES: Final = {
    "PARTITIONS_ADDED": "METADATA_CHANGED",
    "SUBSCRIPTION_CHANGE": "SUBSCRIPTION_CHANGED",
    "ENFORCED": "MEMBER_REJOINED",
}
"""Labels that a rebalance with this cause must show."""

OF_TABLES: Final = ("JOIN", "LEAVE", "GROUP_EMPTY", "GROUP_DELETED", "OFFSETS_EXPIRED", "STATIC_REJOIN_NO_REBALANCE", "NONE")
"""Labels that the tables show in other ways."""

OF_GROUPS: Final = frozenset({"STORM", "ROLLING_RESTART", "FENCED", FAILOVER})
"""Labels of a group: the finding may name any member."""

LASTING: Final = frozenset({"STORM", "ROLLING_RESTART", "FENCED", "INCONSISTENT_PROTOCOL", "INVALID_SESSION_TIMEOUT", "GROUP_MAX_SIZE"})
"""Labels of facts that last for a while: their two lines (begin and end, or action and observation) count once."""

_CLIENT_WORDS: Final = (
    ("consumer poll timeout has expired", "POLL_TIMEOUT"),
    ("worker poll timeout has expired", "POLL_TIMEOUT"),
    ("removed by an admin", "ADMIN_REMOVED"),
    ("subscription has changed", "SUBSCRIPTION_CHANGED"),
    ("cached metadata has changed", "METADATA_CHANGED"),
    ("need to revoke partitions and re-join", "REVOCATION_FOLLOW_UP"),
    ("rebalance enforced by user", "MEMBER_REJOINED"),
)
_FOLLOWING_OTHERS: Final = (
    "rebalance failed due to",
    "group is already rebalancing",
    "need to re-join with",
    "encountered ",
    "consumer pro-actively",
)
"""Reasons of the client library for joining a rebalance that others began. Any other reason is the application's."""

_REASONS: Final = tuple(
    (re.compile(pattern), cause)
    for pattern, cause in (
        (r"^Adding new member (\S+?)(?:;| with|$)", "MEMBER_JOINED"),
        (r"removing member (\S+) on heartbeat expiration", "SESSION_TIMEOUT"),
        (r"explicit `LeaveGroup` request for \(([^)]*)\)", "MEMBER_LEFT"),
        (r"[Rr]emoving member (\S+) on LeaveGroup", "MEMBER_LEFT"),
        (r"[Rr]emoving (?:Set\(|\[)?([^)\]]*?)[)\]]? on pending sync request expiration", "SYNC_TIMEOUT"),
        (r"^[Ll]eader (\S+) re-joining group", "LEADER_REJOINED"),
        (r"[Uu]pdating metadata for static member (\S+)", "STATIC_MEMBER_REPLACED"),
        (r"static member (\S+) .*selectedProtocol will change", "STATIC_MEMBER_REPLACED"),
        (r"[Uu]pdating metadata for member (\S+)", "MEMBER_REJOINED"),
        (r"storing group assignment()", "ASSIGNMENT_NOT_STORED"),
        (r"over capacity()", "GROUP_OVER_CAPACITY"),
    )
)


@dataclass(frozen=True)
class Cause:
    """The true cause of one rebalance."""

    rebalance: Row  # the broker's
    accepted: tuple[str, ...]  # the first is the exact one; the others are equivalent
    by_log: tuple[str, ...]  # what the coordinator's log alone shows, where that is less
    culprits: frozenset[str]  # member ids, any of them
    rule: str
    of_broker: bool = False  # the broker failed: naming no member, or another id of the client, is right too

    def blames(self, member_id: str) -> bool:
        """Whether naming this member as the culprit is right. Empty: no member is named."""
        if member_id in self.culprits or (not member_id and (self.of_broker or not self.culprits)):
            return True
        return self.of_broker and client_of(member_id) in {client_of(culprit) for culprit in self.culprits}


@dataclass(frozen=True)
class Fact:
    """A fact that the tables must show, from one line of truth.jsonl or several about the same action."""

    label: str
    group: str
    action: str
    client_id: str
    instance_id: str
    member_id: str
    at_ms: int
    start_ms: int  # earliest and latest time of what shows it
    end_ms: int
    required: bool

    def labels(self) -> tuple[str, ...]:
        """The alternative labels."""
        return tuple(self.label.split("|"))

    def codes(self) -> tuple[str, ...]:
        """The findings that report it; empty if it asks for none."""
        if self.action == "sigcont":  # a thawed client may send a commit or a heartbeat first
            return FINDING_CODES["ZOMBIE"]
        return tuple(code for label in self.labels() for code in FINDING_CODES.get(label, ()))

    def concerns(self, member_id: str | None, client_id: str | None) -> bool:
        """Whether the fact is about this member: by its member id, else by its client.id or instance id."""
        if self.member_id and member_id:
            return self.member_id == member_id or (bool(self.instance_id) and client_of(member_id) == self.instance_id)
        names = {self.client_id, self.instance_id} - {""}
        return bool(names & {client_id or "", client_of(member_id or "")})


def client_of(member_id: str) -> str:
    """The client.id, or group.instance.id, in front of a member id's UUID."""
    return member_id[:-37] if len(member_id) > 37 else ""


def labels(row: Row) -> tuple[str, ...]:
    """The alternative labels of a line of truth.jsonl."""
    return tuple(row["expect"].split("|"))


def consumer_protocol_since(recording: Recording) -> dict[str, int]:
    """Groups of the consumer protocol (KIP-848), and since when: the classic tables do not show their labels."""
    since: dict[str, int] = {}
    for row in recording.rebalances:
        if row["protocol"] != "classic":
            since[row["group"]] = min(row["epoch_bumped_at"], since.get(row["group"], row["epoch_bumped_at"]))
    always = since.keys() - {row["group"] for row in recording.classic}
    return {group: 0 if group in always else at_ms for group, at_ms in since.items()}


def own_labels(recording: Recording) -> dict[str, set[str]]:
    """By group: the labels of what was done to it, except for what happened to brokers."""
    own: dict[str, set[str]] = {}
    for row in recording.truth:
        if row["group"] and FAILOVER not in labels(row):
            own.setdefault(row["group"], set()).update(labels(row))
    return own


def healthy_groups(recording: Recording) -> frozenset[str]:
    """Control groups and decoys: their consumers join, and what is done to them should cause nothing."""
    return frozenset(group for group, own in own_labels(recording).items() if "NONE" in own and own <= {"NONE", "JOIN"})


# Causes of rebalances.


def causes(recording: Recording) -> list[Cause]:
    """The true cause of every classic rebalance, in the order of rebalances.jsonl."""
    done: dict[str, list[Row]] = {}
    for row in sorted((row for row in recording.truth if row["group"]), key=lambda row: row["ts_ms"]):
        done.setdefault(row["group"], []).append(row)
    before: dict[str, Row] = {}
    result = []
    for row in recording.classic:
        result.append(_cause(row, before.get(row["group"]), done.get(row["group"], []), recording.departures))
        before[row["group"]] = row
    return result


def by_reason(reason: str) -> tuple[str, tuple[str, ...], str]:
    """The cause that the broker's reason names, its members, and the client's reason."""
    head, _, words = reason.partition("client reason: ")
    words = "" if words in {"not provided", "null"} or words.startswith(_FOLLOWING_OTHERS) else words
    for pattern, cause in _REASONS:
        match = pattern.search(head)
        if match:
            members = tuple(name for name in re.split(r",\s*", match.group(1).strip()) if name)
            return cause, members, words
    return "UNKNOWN", (), words


def _cause(row: Row, previous: Row | None, done: Sequence[Row], departures: Mapping[str, str]) -> Cause:
    cause, members, words = by_reason(row["reason_text"])
    at_ms = row["preparing_at"]
    if cause in {"MEMBER_JOINED", "SESSION_TIMEOUT"}:
        failover = _failover(members[0], at_ms, done)
        if failover is not None:
            return _after_failover(row, cause, members, previous, certain=failover["expect"] == FAILOVER)
    if cause == "SESSION_TIMEOUT" and _done_to(members, at_ms, done, "POLL_TIMEOUT"):
        # A static member does not leave when its poll loop stalls: it falls silent.
        return Cause(row, ("POLL_TIMEOUT", cause), (), frozenset(members), "stalled static member: silent instead of leaving")
    if cause == "MEMBER_LEFT":
        return _left(row, members, words or next((departures[m] for m in members if m in departures), ""), done)
    if cause in {"LEADER_REJOINED", "MEMBER_REJOINED"}:
        return _rejoined(row, cause, members, words, previous, done)
    return Cause(row, (cause,), (), frozenset(members), "the broker's reason")


def _after_failover(row: Row, cause: str, members: Sequence[str], previous: Row | None, *, certain: bool) -> Cause:
    accepted: tuple[str, ...] = ("COORDINATOR_MOVED", cause)
    if not certain:
        rule = "a broker was lost, the group's coordinator stayed"
    elif cause == "SESSION_TIMEOUT":
        rule = "not heard by the new coordinator within its session"
    elif previous is not None and previous["became_empty_at"] is not None:
        rule = "back in a group that the failover had emptied"
    else:
        accepted, rule = ("COORDINATOR_MOVED",), "a member of before came back under a new id"
    return Cause(row, accepted, (), frozenset(members), rule, of_broker=True)


def _failover(member_id: str, at_ms: int, done: Sequence[Row]) -> Row | None:
    """The failover that explains a rebalance: nothing was done to this client since, and it was a member before."""
    recent = [row for row in done if FAILOVER in labels(row) and at_ms - FAILOVER_MS <= row["ts_ms"] <= at_ms]
    if not recent:
        return None
    own = [row for row in done if client_of(member_id) in {row.get("client_id"), row.get("instance_id")} and FAILOVER not in labels(row)]
    belonged = any({"JOIN", "NONE"} & set(labels(row)) and row["ts_ms"] < recent[-1]["ts_ms"] for row in own)
    return recent[-1] if belonged and not any(recent[-1]["ts_ms"] <= row["ts_ms"] <= at_ms for row in own) else None


def _done_to(members: Collection[str], at_ms: int, done: Sequence[Row], label: str) -> bool:
    """Whether the last thing done to one of these members carries the label."""
    own = [row for row in done if (row.get("member_id") or "") in members and row["ts_ms"] <= at_ms]
    return bool(own) and label in labels(own[-1])


def _left(row: Row, members: tuple[str, ...], words: str, done: Sequence[Row]) -> Cause:
    at_ms = row["preparing_at"]
    removals = [d for d in done if d["action"].startswith("admin_remove") and at_ms - FACT_MS <= d["ts_ms"] <= at_ms]
    removed = {d["member_id"] for d in removals}
    if removals and (not members or removed & set(members)):
        # Without a member id in the request, Kafka 4.2 logs no member; older brokers look the id up.
        by_log = () if not members or words else ("MEMBER_LEFT",)
        return Cause(row, ("ADMIN_REMOVED",), by_log, frozenset(removed), "an administrator removed it")
    if _done_to(members, at_ms, done, "POLL_TIMEOUT"):
        by_log = () if "poll timeout" in words else ("MEMBER_LEFT",)
        return Cause(row, ("POLL_TIMEOUT",), by_log, frozenset(members), "it left because its poll loop stalled")
    cause = next((cause for text, cause in _CLIENT_WORDS if text in words), "MEMBER_LEFT")
    return Cause(row, (cause,), (), frozenset(members), "the broker's reason")


def _rejoined(row: Row, cause: str, members: tuple[str, ...], words: str, previous: Row | None, done: Sequence[Row]) -> Cause:
    at_ms, since_ms = row["preparing_at"], previous["preparing_at"] if previous else 0
    news = [d for d in done if since_ms < d["ts_ms"] <= at_ms]
    by_words = next((named for text, named in _CLIENT_WORDS if text in words), "MEMBER_REJOINED" if words else cause)
    changes = [REBALANCE_CAUSES[label] for d in news for label in labels(d) if label in REBALANCE_CAUSES]
    if changes:
        return Cause(row, (changes[-1],), () if by_words == changes[-1] else (by_words,), frozenset(members), "what was done to the group")
    ended_ms = previous["assignment_at"] if previous else None
    if not words and not news and ended_ms is not None and at_ms - ended_ms <= FOLLOW_UP_MS:
        return Cause(row, ("REVOCATION_FOLLOW_UP",), (by_words,), frozenset(members), "nothing new since the rebalance right before")
    return Cause(row, (by_words,), (), frozenset(members), "the broker's reason")


# Facts.


def facts(recording: Recording) -> tuple[list[Fact], int]:
    """The facts that the tables must show, by time; and how many lines are of the consumer protocol, or of no group."""
    since = consumer_protocol_since(recording)
    result: list[Fact] = []
    skipped = 0
    rows = sorted(recording.truth, key=lambda row: row["ts_ms"])
    for index, row in enumerate(rows):
        group = row["group"]
        if not group or row.get("protocol") == "consumer" or row["ts_ms"] >= since.get(group, row["ts_ms"] + 1):
            skipped += 1
            continue
        fact = _fact(row, [other for other in rows[index + 1 :] if other["group"] == group])
        same = next((i for i in reversed(range(len(result))) if _goes_on(result[i], fact)), None)
        if same is None:
            result.append(fact)
        else:
            result[same] = replace(result[same], end_ms=fact.end_ms, member_id=result[same].member_id or fact.member_id)
    return result, skipped


def _fact(row: Row, later: Sequence[Row]) -> Fact:
    at_ms = row["ts_ms"]
    end_ms = at_ms + FACT_MS + (row.get("session_timeout_ms") or 0)
    if "POLL_TIMEOUT" in labels(row):
        end_ms += row.get("max_poll_interval_ms") or 0
    if FAILOVER in labels(row):  # up to the next one
        end_ms = min([end_ms, *(other["ts_ms"] - 1 for other in later if FAILOVER in labels(other))])
    elif set(labels(row)) & {"NONE", "STATIC_REJOIN_NO_REBALANCE"}:  # up to the next thing done
        end_ms = min([end_ms, *(other["ts_ms"] - 1 for other in later[:1])])
    return Fact(
        label=row["expect"],
        group=row["group"],
        action=row["action"],
        client_id=row.get("client_id") or "",
        instance_id=row.get("instance_id") or "",
        member_id=row.get("member_id") or "",
        at_ms=at_ms,
        start_ms=at_ms - 2_000,  # the line is written next to the action, not always before its effect
        end_ms=end_ms,
        required="NONE" not in labels(row) or row["expect"] == "NONE",
    )


def _goes_on(earlier: Fact, fact: Fact) -> bool:
    """Whether a line belongs to an earlier fact: its end, its observation, or the consumer's close."""
    if earlier.group != fact.group or earlier.label != fact.label or fact.label not in LASTING:
        return False
    if not fact.action.endswith("_end") and fact.action not in {"observed", "close"}:
        return False
    if fact.label == "FENCED":
        return earlier.instance_id == fact.instance_id
    return not fact.client_id or earlier.client_id == fact.client_id


def unknown_labels(recording: Recording) -> frozenset[str]:
    """Labels without a meaning here."""
    known = {*FINDING_CODES, *REBALANCE_CAUSES, *OF_TABLES}
    return frozenset(label for row in recording.truth for label in labels(row) if label not in known)
