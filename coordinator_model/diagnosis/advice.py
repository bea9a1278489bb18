"""What to change, in the words of findings: the setting, and the value that the evidence supports."""

from __future__ import annotations

from typing import Final

from coordinator_model.events import Event
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.view import EndedMembership, ObservedMember, PastRebalance

DEFAULT_MIN_SESSION_MS: Final = 6_000
DEFAULT_MAX_SESSION_MS: Final = 1_800_000
"""group.min.session.timeout.ms and group.max.session.timeout.ms as Kafka ships them (GroupCoordinatorConfig)."""


def seconds(ms: int) -> str:
    """A duration for people."""
    return f"{ms / 1000:g} s"


def known(value: int) -> int | None:
    """A number for `details`: null where it is not known."""
    return value if value >= 0 else None


def now(value: int) -> str:
    """The value that a setting has, where it is known."""
    return f", now {value}," if value >= 0 else ""


def usual(member: ObservedMember) -> str:
    """How long a member was silent at most while all was well."""
    return f"; before, it was never silent for more than {seconds(member.longest_gap_ms)}" if member.longest_gap_ms >= 0 else ""


def after_removal(gone: EndedMembership | None, event: Event) -> tuple[str, str]:
    """How the membership had ended of a client that still speaks as a member, and what keeps it from ending so."""
    if gone is None:
        return "", "The log does not show when and why the group gave it up: that was before its begin, or in a hole."
    since_ms = event.received_ms - gone.at_ms
    told = f" It had been removed {seconds(since_ms)} before ({gone.kind})." if since_ms >= 0 else f" It had been removed ({gone.kind})."
    if gone.kind == reasons.SESSION_TIMEOUT and 0 <= gone.seen_ms < event.received_ms:
        silent_ms = event.received_ms - gone.seen_ms
        return told, (
            f"The process was silent for {seconds(silent_ms)}: find out what held it up (a pause of the JVM or the container, CPU limit, "
            f"network). To live through such a pause, it needs a session.timeout.ms{now(gone.session_timeout_ms)} above {silent_ms}."
        )
    if gone.kind in _OF_THE_REBALANCE_TIMEOUT:
        return told, (
            f"It did not {_OF_THE_REBALANCE_TIMEOUT[gone.kind]} within max.poll.interval.ms{now(gone.rebalance_timeout_ms)} and came "
            f"{seconds(since_ms)} too late: shorten its work between two polls, or raise the setting by more than that."
        )
    if gone.kind == "LEFT":
        return told, (
            "It had left, and yet ran on: it was not polled within max.poll.interval.ms"
            f"{now(gone.rebalance_timeout_ms)} (then it joins again soon), or something of it goes on after close()."
        )
    return told, _AFTER.get(gone.kind, "Look at why it was removed.")


_OF_THE_REBALANCE_TIMEOUT: Final = {
    reasons.POLL_TIMEOUT: "poll",
    reasons.JOIN_TIMEOUT: "rejoin",
    reasons.SYNC_TIMEOUT: "ask for its assignment",
}
_AFTER: Final = {
    "REPLACED": "Another process came with its group.instance.id: stop the old one before its replacement starts.",
    "FENCED": "Another process came with its group.instance.id: stop the old one before its replacement starts.",
}


def inconsistent_protocol(g: Emitter, event: Event) -> tuple[str, str]:
    """INCONSISTENT_GROUP_PROTOCOL: message and advice."""
    offers = ", ".join(p.name for p in event.protocols) or "nothing that is known"
    used = g.view.protocol
    theirs = f"; the group uses {used}" if used else ""
    strategy = f"the group's partition.assignment.strategy, {used}" if used else "one partition.assignment.strategy with the group"
    return (
        (
            "The client cannot join: it has no assignor in common with the members, or another protocol type "
            f"(INCONSISTENT_GROUP_PROTOCOL). It offers {offers}{theirs}."
        ),
        f"Give the client {strategy}. To change the group's, roll all clients twice: first with both strategies, then with the new one.",
    )


def session_refused(_: Emitter, event: Event) -> tuple[str, str]:
    """INVALID_SESSION_TIMEOUT: message and advice."""
    asked_ms = event.session_timeout_ms
    low, high = asked_ms < DEFAULT_MIN_SESSION_MS, asked_ms > DEFAULT_MAX_SESSION_MS
    least = f"at least the broker's group.min.session.timeout.ms ({DEFAULT_MIN_SESSION_MS} unless changed)"
    most = f"at most its group.max.session.timeout.ms ({DEFAULT_MAX_SESSION_MS} unless changed)"
    bounds = f"{least} and {most}" if asked_ms < 0 or low == high else least if low else most.replace("its", "the broker's")
    return (
        (
            f"The client cannot join: its session.timeout.ms{f' ({asked_ms})' if asked_ms >= 0 else ''} is outside what the broker allows "
            "(INVALID_SESSION_TIMEOUT)."
        ),
        f"Set session.timeout.ms to {bounds}.",
    )


def too_large(g: Emitter, _: Event) -> tuple[str, str]:
    """GROUP_MAX_SIZE_REACHED: message and advice."""
    view = g.view
    count = f" It has {len(view.members)}." if view.complete and view.members else ""
    owned = {p for member in view.members.values() for p in member.partitions or ()}
    share = f" ({len(owned)} here)" if owned else ""
    return (
        f"The client cannot join: the group has as many members as group.max.size allows (GROUP_MAX_SIZE_REACHED).{count}",
        f"Run fewer consumers, no more than there are partitions{share}, or raise group.max.size on the brokers.",
    )


def bill(burst: list[PastRebalance]) -> dict[str, int | None]:
    """What the rebalances took together; None where no assignments are known."""
    unavailable = [past.unavailable_ms for past in burst if past.unavailable_ms >= 0]
    moved = [past.moved for past in burst if past.moved >= 0]
    return {
        "total_ms": sum(past.total_ms for past in burst),
        "unavailable_partition_ms": sum(unavailable) if unavailable else None,
        "partitions_moved": sum(moved) if moved else None,
    }


def bill_in_words(burst: list[PastRebalance]) -> str:
    """The bill, for the end of a sentence."""
    lost = bill(burst)["unavailable_partition_ms"]
    without = f", {seconds(lost)} without an owner over all partitions" if lost else ""
    return f", {seconds(sum(past.total_ms for past in burst))} of rebalancing{without}"


def longest_restart_ms(burst: list[PastRebalance]) -> int:
    """The longest time from a client's going to its coming back, as far as both began a rebalance; -1 if none did."""
    gone: dict[tuple[str, str], int] = {}
    took = [-1]
    for past in burst:
        who = (past.client_id, past.client_host)
        if past.cause == reasons.MEMBER_JOINED and who in gone:
            took.append(past.started_ms - gone.pop(who))
        elif past.cause != reasons.MEMBER_JOINED and past.client_id:
            gone[who] = past.started_ms
    return max(took)


_CRASH_LOOP: Final = (
    "Stop the client that comes and goes, and look at why it ends: a crash loop, a failing health check, a record that it cannot process."
)
_AGAINST_STORMS: Final = {
    reasons.POLL_TIMEOUT: "The client comes back, and stalls again: raise its max.poll.interval.ms above what it needs between two polls, "
    "or lower max.poll.records.",
    reasons.SUBSCRIPTION_CHANGED: "The client changes what it subscribes to, again and again: let it subscribe once, to the same topics as "
    "the others.",
    reasons.METADATA_CHANGED: "Topics or partitions that the group reads come and go: create them beforehand, and narrow a subscription by "
    "pattern.",
    reasons.LEADER_REJOINED: "The leader joins again without giving a reason: look at its own log; most often its topics' metadata flap.",
    reasons.MEMBER_REJOINED: "The client joins again by itself: look for enforceRebalance() in it, and at its own log.",
    reasons.STATIC_MEMBER_REPLACED: "Two processes take one group.instance.id from each other: give each its own.",
}


def against_storm(cause: str) -> str:
    """What to do against rebalances that follow one another, by their most common cause."""
    return _AGAINST_STORMS.get(cause, _CRASH_LOOP)
