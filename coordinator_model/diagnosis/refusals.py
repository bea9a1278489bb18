"""Findings about requests that the coordinator refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from coordinator_model.diagnosis import catalogue, removals, silences
from coordinator_model.diagnosis.findings import above, current, emit, first_time, is_new, seconds, since
from coordinator_model.diagnosis.incidents import lost_in_a_move
from coordinator_model.diagnosis.kinds import settings, workers
from coordinator_model.errors import Error
from coordinator_model.events import CONNECT, COORDINATOR_SOURCE, HEARTBEAT, OFFSET_COMMIT, SYNC_GROUP, TXN_OFFSET_COMMIT, Event
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import EndedMembership, ObservedMember
from coordinator_model.view.rows import or_none, ref

OWN_LEAVE_MS: Final = 10_000
"""A client's last heartbeats and commits can cross its own LeaveGroup: that they are refused for so long after it is no finding."""

DEFAULT_MIN_SESSION_MS: Final = 6_000
DEFAULT_MAX_SESSION_MS: Final = 1_800_000
"""group.min.session.timeout.ms and group.max.session.timeout.ms as Kafka ships them (GroupCoordinatorConfig)."""

_COMMITS: Final = frozenset({OFFSET_COMMIT, TXN_OFFSET_COMMIT})
_BY_END: Final = {
    reasons.SESSION_TIMEOUT: catalogue.REMOVED_UNHEARD,
    reasons.POLL_TIMEOUT: catalogue.SEE_ITS_FINDING,
    reasons.SYNC_TIMEOUT: catalogue.SEE_ITS_FINDING,
    reasons.LEFT: catalogue.LEFT_AND_RAN_ON,
    reasons.REPLACED: catalogue.INSTANCE_TAKEN,
}


def judge(g: Emitter, event: Event) -> None:
    """Reports a refused request, by its error code.

    REBALANCE_IN_PROGRESS in answer to a commit is no finding: the member has joined and has no assignment yet.
    """
    ended = g.view.ended_membership(event.member_id) if event.member_id else _ended_on(g, event.connection)
    if ended is not None and not event.member_id and event.kind == HEARTBEAT:
        event = event._replace(member_id=ended.member_id)
    if ended is not None and ended.back_ms < 0 and event.error_code in (Error.UNKNOWN_MEMBER_ID, Error.ILLEGAL_GENERATION):
        ended.back_ms = event.received_ms
    if event.error_code == Error.FENCED_INSTANCE_ID:
        fenced_instance(g, event)
    elif event.error_code == Error.ILLEGAL_GENERATION:
        if event.kind in _COMMITS and event.member_id:
            _zombie_commit(g, event, ended)
        else:
            _illegal_generation(g, event)
    elif event.error_code == Error.UNKNOWN_MEMBER_ID and (event.member_id or ended is not None):
        if ended is not None and ended.kind == reasons.LEFT and event.received_ms - ended.at_ms < OWN_LEAVE_MS:
            return
        if event.kind in _COMMITS:
            _zombie_commit(g, event, ended)
        else:
            _unknown_member(g, event, ended)


def fenced_instance(g: Emitter, event: Event) -> None:
    """Reports two clients with one group.instance.id: the older one is fenced (KIP-345)."""
    instance_id, member_id = event.instance_id, event.member_id
    if event.source == COORDINATOR_SOURCE and not member_id and any(member.sessions_seen for member in g.view.members.values()):
        return  # the answer to the request follows in the request log, and says whose it was
    if instance_id:
        is_new(g.view.fenced, instance_id)
    if not first_time(g, catalogue.FENCED_INSTANCE, f"{instance_id} {member_id}", -1):
        return
    owner = next((m for m in g.view.members.values() if m.instance_id == instance_id != "" and m.member_id != member_id), None)
    _, client_id, client_host = g.view.identity(member_id)  # the coordinator's line has only the member id
    client = (member_id, event.client_id or client_id, event.client_host or client_host)
    words = {"owner": ""}
    if owner is not None:
        elsewhere = f" at {owner.client_host}" if owner.client_host not in ("", client[2]) else ""
        words["owner"] = f" ({owner.client_name() or owner.member_id}{elsewhere})"
    holder = (owner.client_id, owner.client_host) if owner is not None and owner.client_id else None
    was_member = event.generation >= 0  # a request of one that never joined has no generation
    by_itself = not member_id and (was_member if holder is None else holder == client[1:])
    text = catalogue.FENCED_BY_ITSELF if by_itself else catalogue.FENCED_INSTANCE
    emit(g, text, event.at_ms, client, [ref(event)], words, instance_id=instance_id, holder=owner.member_id if owner else None)


def _ended_on(g: Emitter, connection: str) -> EndedMembership | None:
    """The latest ended membership of this connection."""
    return next((old for old in reversed(g.view.ended) if connection and old.connection == connection), None)


def _emit(g: Emitter, text: catalogue.Text, event: Event, ended: EndedMembership | None, words: dict[str, Any], **details: Any) -> None:
    signs = [ref(event), *([ended.sign] if ended is not None and ended.sign else [])]
    emit(g, text, event.at_ms, (event.member_id, event.client_id, event.client_host), signs, words, **details)


def _illegal_generation(g: Emitter, event: Event) -> None:
    """A member sent a generation that is not the group's (validateClassicGroup…: ILLEGAL_GENERATION)."""
    if first_time(g, catalogue.ILLEGAL_GENERATION, event.member_id, event.generation):
        member = g.view.members.get(event.member_id)
        paused = member is not None and silences.why(member, -1, event.received_ms) == silences.PAUSED
        remedy = catalogue.PAUSE if paused else catalogue.MISSED_A_REBALANCE
        moved_on = g.view.generation > event.generation
        words = {
            "why": f"the group had moved on to generation {g.view.generation}" if moved_on else "the group has a different one",
            "remedy": remedy.format(
                current=current(member.rebalance_timeout_ms if member is not None else -1),
                since=since(member.heard_until_ms() if member is not None else -1),
            ),
        }
        details = {"group_generation": or_none(g.view.generation), "max_poll_interval_ms": _poll_limit(member)}
        _emit(g, catalogue.ILLEGAL_GENERATION, event, None, words, api=event.kind, sent_generation=event.generation, **details)


def _unknown_member(g: Emitter, event: Event, ended: EndedMembership | None) -> None:
    """A client used a member id that the group does not have. `ended`: that membership, if the log shows how it ended."""
    if first_time(g, catalogue.UNKNOWN_MEMBER, event.member_id, -1):
        details = {"api": event.kind, **_former(g, ended, event)}
        meanwhile = catalogue.WAITED_FOR if workers.is_waited_for(g, event.member_id) else catalogue.MAY_BE_TAKEN
        words = {
            "removal": removal(ended.kind, event.received_ms - ended.at_ms) if ended else removal("", None),
            "remedy": (catalogue.STILL_RAN.format(meanwhile=meanwhile) if ended else "") + _remedy(g, ended),
        }
        joined_ms = next((at_ms for at_ms, number in g.view.made if number == event.generation), -1)
        if ended is not None and ended.kind == reasons.SYNC_TIMEOUT and event.kind == SYNC_GROUP and joined_ms >= 0:
            took_ms = details["sync_ms"] = event.received_ms - joined_ms  # the coordinator's timer may have been late
            limit = current(ended.rebalance_timeout_ms)
            words["removal"] += catalogue.LATE_SYNC.format(took=seconds(took_ms), least=above(took_ms), current=limit)
        _emit(g, catalogue.UNKNOWN_MEMBER, event, ended, words, **details)


def _zombie_commit(g: Emitter, event: Event, ended: EndedMembership | None) -> None:
    """A member committed what it no longer owns: the coordinator refused it, but the work was done twice."""
    if first_time(g, catalogue.ZOMBIE_COMMIT, event.member_id, event.generation):
        member = g.view.members.get(event.member_id)
        present = member is not None
        ended = None if present else ended
        knew = member is not None and any(at_ms < member.seen_ms and number > event.generation for at_ms, number in g.view.made)
        stale = knew and event.kind == TXN_OFFSET_COMMIT
        details = {"sent_generation": event.generation, "error_code": event.error_code, "api": event.kind, **_former(g, ended, event)}
        text = catalogue.LATE_COMMIT if present else catalogue.ZOMBIE_COMMIT
        act = catalogue.COMMIT_EARLIER if present else catalogue.BE_IDEMPOTENT
        if event.kind == TXN_OFFSET_COMMIT:
            act = catalogue.IN_A_TRANSACTION
        words = {
            "after": f" after its removal ({_REMOVED_FOR.get(ended.kind, ended.kind)})" if ended is not None else "",
            "generation": f"generation {g.view.generation}" if g.view.generation > event.generation else "a later generation",
            "remedy": _remedy(g, ended),
            "act": act,
            "how": catalogue.STALE_METADATA if stale else catalogue.RACED,
        }
        _emit(g, text, event, ended, words, **details, group_generation=or_none(g.view.generation))


def _former(g: Emitter, ended: EndedMembership | None, event: Event) -> dict[str, Any]:
    """The figures of a membership that has ended, for the details of a refusal."""
    if ended is None:
        return {"removed": None, "removed_ms_ago": None, "silent_ms": None, "session_timeout_ms": None, "max_poll_interval_ms": None}
    return {
        "removed": ended.kind,
        "removed_ms_ago": event.received_ms - ended.at_ms,
        "silent_ms": _silent_ms(ended),
        "session_timeout_ms": or_none(ended.session_timeout_ms),
        "max_poll_interval_ms": _poll_limit(ended),
    } | ({"setting": session} if (session := settings.of_member(g.view, ended.client_id).session) != settings.Settings().session else {})


def _poll_limit(member: ObservedMember | None) -> int | None:
    return or_none(member.rebalance_timeout_ms) if member is not None else None


_REMOVED_FOR: Final = {reasons.JOIN_TIMEOUT: "it had not rejoined in time"}
"""Why a member was removed, where no finding has the name of that end."""


def removal(end_kind: str, since_ms: int | None) -> str:
    """Why a member id is unknown: how that membership had ended, empty if no line shows it, and how long before."""
    if not end_kind:
        return "the group has no member with this id"
    before = f" {seconds(since_ms)} before" if since_ms is not None and since_ms >= 0 else ""
    return (
        f"the member had left the group{before}"
        if end_kind == reasons.LEFT
        else f"the group had removed the member{before} ({_REMOVED_FOR.get(end_kind, end_kind)})"
    )


def _remedy(g: Emitter, ended: EndedMembership | None) -> str:
    """How to keep the membership from ending so again."""
    if ended is None:
        return catalogue.REMOVED_BEFORE_THE_LOG
    limit = current(ended.rebalance_timeout_ms)
    if lost_in_a_move(g, ended):
        return catalogue.LOST_IN_A_MOVE
    silent_ms = _silent_ms(ended)
    if ended.kind == reasons.SESSION_TIMEOUT and silent_ms is not None:
        why = removals.why_no_assignment(g, ended.at_ms)
        words = {"silence": seconds(silent_ms), "least": above(silent_ms), "current": current(ended.session_timeout_ms), "why": why}
        poll = poll_limit_too(silent_ms, ended.rebalance_timeout_ms) if g.view.protocol_type != CONNECT else ""
        session = settings.of_member(g.view, ended.client_id).session
        words |= {"since": since(ended.seen_ms), "poll": poll, "session": session}
        return (catalogue.LEADER_UNHEARD if ended.assigning else catalogue.REMOVED_FOR_SILENCE).format(**words)
    if ended.kind == reasons.JOIN_TIMEOUT:
        why = silences.why(ended, ended.at_ms - max(ended.rebalance_timeout_ms, 0), ended.back_ms)
        return catalogue.REMOVED_TOO_LATE[why].format(current=limit, since=since(ended.heard_until_ms()))
    return _BY_END.get(ended.kind, catalogue.REMOVED_OTHERWISE).format(current=limit, kind=ended.kind)


def poll_limit_too(silent_ms: int, limit_ms: int) -> str:
    """That a longer session alone would not have helped, after a space: once the process goes on, its client sees that it has not polled.

    Java: AbstractCoordinator.HeartbeatThread looks at the session first, then at the poll timer. librdkafka has a timer for the latter.
    """
    return catalogue.TOO_LONG_WITHOUT_POLL.format(current=current(limit_ms)) if 0 <= limit_ms < silent_ms else ""


def _silent_ms(ended: EndedMembership) -> int | None:
    """For how long nothing was heard of a member, until the first of its requests that was refused."""
    return ended.back_ms - ended.seen_ms if 0 <= ended.seen_ms < ended.back_ms else None


# A client that may not join.


def refused_join(g: Emitter, event: Event) -> None:
    """Reports a client that the group does not admit, once however often it asks (KIP-389 and others)."""
    text, words = _REFUSED_JOINS[event.error_code]
    client = (event.client_id, event.client_host, event.instance_id)
    is_full = event.error_code == Error.GROUP_MAX_SIZE_REACHED
    if is_new(g.view.not_admitted, client) if is_full else first_time(g, text, " ".join(client), -1):
        details = {"session_timeout_ms": or_none(event.session_timeout_ms), "protocols": [p.name for p in event.protocols]}
        said, more = words(g, event)
        _emit(g, text, event, None, said, **details, **more)


def _no_common_protocol(g: Emitter, event: Event) -> tuple[dict[str, str], dict[str, Any]]:
    used = g.view.protocol
    return {
        "offers": ", ".join(p.name for p in event.protocols) or "nothing known",
        "used": f"; the group uses {used}" if used else "",
        "strategy": f"the group's partition.assignment.strategy, {used}" if used else "one partition.assignment.strategy with the group",
    }, {}


def _session_out_of_bounds(_: Emitter, event: Event) -> tuple[dict[str, str], dict[str, Any]]:
    session_ms = event.session_timeout_ms
    low, high = session_ms < DEFAULT_MIN_SESSION_MS, session_ms > DEFAULT_MAX_SESSION_MS
    least = f"at least the broker's group.min.session.timeout.ms ({seconds(DEFAULT_MIN_SESSION_MS)} unless changed)"
    most = f"at most its group.max.session.timeout.ms ({seconds(DEFAULT_MAX_SESSION_MS)} unless changed)"
    details = {"default_min_ms": DEFAULT_MIN_SESSION_MS, "default_max_ms": DEFAULT_MAX_SESSION_MS}
    if session_ms < 0 or low == high:
        return {"requested": f" ({seconds(session_ms)})" if session_ms >= 0 else "", "bounds": f"{least} and {most}"}, details
    return {"requested": f" ({seconds(session_ms)})", "bounds": least if low else most.replace("its", "the broker's")}, details


def _group_is_full(g: Emitter, _: Event) -> tuple[dict[str, str], dict[str, Any]]:
    """Who asks may hold a place under an id that it has given up: such a client takes one place."""
    limit = len(g.view.members) if g.view.complete and g.view.open is None else 0  # in a join phase only those count that have rejoined
    refused = len(g.view.not_admitted)
    asking = {(client_id, host) for client_id, host, _ in g.view.not_admitted if client_id}
    others = sum((member.client_name(), member.client_host) not in asking for member in g.view.members.values())
    wanted = max(limit + 1, others + refused)
    words = {
        "limit": f" {limit}" if limit else "",
        "asked": f" {refused} clients have been refused." if refused > 1 else "",
        "wanted": f" to {wanted} or more" if limit else "",
    }
    return words, {"group_max_size": limit or None, "refused_clients": refused, "wanted": wanted if limit else None}


_REFUSED_JOINS: Final[dict[int, tuple[catalogue.Text, Callable[[Emitter, Event], tuple[dict[str, str], dict[str, Any]]]]]] = {
    int(Error.INCONSISTENT_GROUP_PROTOCOL): (catalogue.INCONSISTENT_PROTOCOL, _no_common_protocol),
    int(Error.INVALID_SESSION_TIMEOUT): (catalogue.INVALID_SESSION_TIMEOUT, _session_out_of_bounds),
    int(Error.GROUP_MAX_SIZE_REACHED): (catalogue.GROUP_TOO_LARGE, _group_is_full),
}
REFUSED_JOINS: Final = {error: text.code for error, (text, _) in _REFUSED_JOINS.items()}
"""Errors that `refused_join` reports, and the code of the finding."""
