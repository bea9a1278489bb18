"""A broker in trouble: what it does to a group is one finding, not one for each member.

When a broker is lost, the groups that it coordinated move, and every session starts again at the new coordinator. The groups of
the remaining brokers suffer too: their coordinator cannot write to __consumer_offsets until the lost replica leaves the ISR, heartbeats
wait behind commits, and sessions end although every client is well. The finding about the broker names the members that are lost in
this way. Either line may come first in the log, so the finding of a session timeout is held back for HINDSIGHT_MS, and that of a near miss.

What counts is when a request arrives, and a broker reads no other of a connection while it handles one (SocketServer mutes the channel).
So heartbeats that waited behind a slow commit, or before a broker that stood still, are read late though they were sent in time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis import catalogue, removals
from coordinator_model.diagnosis.findings import NOBODY, above, broker_name, emit, first_time, seconds
from coordinator_model.diagnosis.kinds.settings import of_member
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.specification.timers import NEVER
from coordinator_model.view import reasons
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import EndedMembership, client_in
from coordinator_model.view.rows import Ref, ref
from coordinator_model.view.view import Incident, Silence

HINDSIGHT_MS: Final = 10_000
SPAN_MS: Final = 60_000
"""How long a broker's trouble can affect a group: a session, and the search for the new coordinator."""
OVER_MS: Final = SPAN_MS + HINDSIGHT_MS
"""When trouble is over: the last session that it may have ended has been decided, however late anybody looks."""

GIVEN_UP_MS: Final = 20_000
"""How long after an election clients may give up the ids that they had: librdkafka waits for an answer for some seconds."""

SIGNS_KEPT: Final = 8

SLOW_MS: Final = 2_000
"""A request of _PROMPT whose answer takes longer waits for the broker's log."""

QUEUED_MS: Final = 100
"""Heartbeats of one member that come so soon after each other were sent at other times, and waited together."""

_SECOND_MS: Final = 1_000
_TIMER_MS: Final = 200
"""How late a timer of the coordinator may be."""
_READ_MS: Final = 20
"""A group that is read back has its timers before the line that says so."""

_PROMPT: Final = frozenset({kinds.HEARTBEAT, kinds.CONSUMER_GROUP_HEARTBEAT, kinds.OFFSET_COMMIT})
"""Requests that wait for no other member. The answer to a commit waits for the replicas of __consumer_offsets."""

_TROUBLE: Final = frozenset(
    {Error.REQUEST_TIMED_OUT, Error.COORDINATOR_NOT_AVAILABLE, Error.COORDINATOR_LOAD_IN_PROGRESS, Error.NOT_COORDINATOR}
)


def watch(g: Emitter, event: Event) -> None:
    """Takes a request; its answer may show that the coordinator is in trouble."""
    if event.broker != g.view.broker or event.source == "coordinator":
        return
    _disprove(g, event)
    parked = event.kind not in _PROMPT and event.error_code != Error.UNKNOWN_MEMBER_ID
    slow = event.at_ms - event.received_ms >= SLOW_MS and not parked
    if slow and (member := g.view.members.get(event.member_id)) is not None:
        since_ms, until_ms = member.held_ms
        member.held_ms = (min(since_ms, event.received_ms) if event.received_ms <= until_ms else event.received_ms, event.at_ms)
    if slow or (event.error_code in _TROUBLE and event.kind != kinds.TXN_OFFSET_COMMIT):
        _sign(g, event.at_ms, ref(event))


def coordinator_moved(g: Emitter, at_ms: int, from_broker: str, to_broker: str, sign: Ref) -> None:
    """Notes that another broker coordinates the group."""
    running = g.view.incident
    if running is not None and running.to_broker:
        _close(g, at_ms, at_once=True)
    incident = _sign(g, at_ms, sign)
    incident.moved_ms, incident.from_broker, incident.to_broker = at_ms, from_broker, to_broker


def hold_back(g: Emitter, silence: Silence, held_ms: tuple[int, int] = (-1, -1)) -> None:
    """Keeps a session timeout or a near miss until it is known whether a broker was the reason. `held_ms`: see ObservedMember."""
    silence.waited = held_ms[0] <= silence.at_ms < held_ms[1]
    g.view.silences.append(silence)


def _disprove(g: Emitter, event: Event) -> None:
    """Drops a near miss of a member of which another request was there before, or whose later heartbeats had waited with that one.

    A member whose session ended while a request of it waited was not silent, either.
    """
    for silence in [one for one in g.view.silences if one.member_id == event.member_id]:
        after_ms = event.received_ms - silence.at_ms
        if silence.is_end:
            silence.waited = silence.waited or after_ms <= 0 < event.at_ms - silence.at_ms
        elif after_ms < 0 or (after_ms and event.kind in kinds.HEARTBEATS and after_ms <= QUEUED_MS):
            g.view.silences.remove(silence)


def lost_in_a_move(g: Emitter, ended: EndedMembership) -> bool:
    """Whether the new coordinator of a group that moved did not hear the member in time."""
    moved_ms = g.view.moved_ms
    return ended.kind == reasons.SESSION_TIMEOUT and 0 <= moved_ms <= ended.at_ms <= moved_ms + SPAN_MS and ended.seen_ms <= moved_ms


def next_ms(g: Emitter) -> int:
    """When `close_due` has work next; NEVER if it has none."""
    view = g.view
    finding_ms = view.silences[0].at_ms + HINDSIGHT_MS + 1 if view.silences else NEVER
    return finding_ms if view.incident is None else min(finding_ms, view.incident.last_ms + OVER_MS + 1)


def close_due(g: Emitter, now_ms: int, *, flush: bool = False) -> None:
    """Writes what has waited long enough. `flush`: nothing more will come."""
    _close(g, now_ms, at_once=flush, is_end=flush)


def _close(g: Emitter, now_ms: int, *, at_once: bool, is_end: bool = False) -> None:
    view = g.view
    while view.silences and (at_once or view.silences[0].at_ms + HINDSIGHT_MS < now_ms):
        silence = view.silences.pop(0)
        _decide(g, silence, now_ms, is_early=is_end and now_ms - silence.at_ms < HINDSIGHT_MS)
    running = view.incident
    if running is not None and (at_once or running.last_ms + OVER_MS < now_ms):
        view.incident = None
        if running.lost or running.to_broker:
            _report(g, running)


def _decide(g: Emitter, silence: Silence, now_ms: int, *, is_early: bool) -> None:
    """Tells of a silence, unless a broker was the reason: then its member was lost to that, or was not silent."""
    member_id = silence.member_id
    if not silence.is_end:
        running = g.view.incident
        meanwhile = running is not None and _amid_trouble(running, silence) and silence.seen_ms <= running.last_ms
        explained = meanwhile or _stood_still(g, silence)
        if not explained and first_time(g, catalogue.HEARTBEAT_NEAR_MISS, member_id, silence.generation):
            removals.near_miss(g, silence)
        return
    incident = _cause_of(g, silence, is_early=is_early)
    if incident is not None:
        incident.lost.append(member_id)
        for sign in sorted(silence.signs)[:1]:
            _keep(incident, sign)
    elif not silence.given_up:
        loaded_ms = g.view.loaded_ms
        is_new = loaded_ms >= 0 and 0 <= silence.at_ms - loaded_ms <= SPAN_MS
        removals.session_timeout(g, silence, _came_back_ms(g, silence, now_ms), loaded_ms if is_new else -1)


def _report(g: Emitter, incident: Incident) -> None:
    """Another broker took the group over, or its coordinator could not hear the members for a while."""
    view = g.view
    lost = sorted(set(incident.lost))
    gave_up = sorted({old.member_id for old in view.ended if old.member_id in lost and old.stalled_ms > old.seen_ms})
    missed = [member_id for member_id in lost if member_id not in gave_up]
    limits = sorted({old.session_timeout_ms for old in view.ended if old.member_id in missed and old.session_timeout_ms >= 0})
    unheard = _unheard(g, incident, missed)
    details = {
        "from_broker": incident.from_broker or view.broker,
        "to_broker": incident.to_broker or view.broker,
        "members_lost": lost,
        "session_timeouts_ms": limits,
        "unheard_ms": unheard[0] if unheard else None,
    } | ({"gave_up": gave_up} if gave_up else {})
    is_polling = view.protocol_type != kinds.CONNECT
    polls = sorted({old.rebalance_timeout_ms for old in view.ended if is_polling and old.member_id in missed} - {-1})
    if missed:
        details["max_poll_intervals_ms"] = polls
        of_client = of_member(view, "" if unheard is None else unheard[1].client_id).session
        details["setting"] = f"{view.group_type}.session.timeout.ms" if view.consumer_protocol else of_client
        details["unheard_client"] = unheard[1].client_id or unheard[1].member_id if unheard else None
    words = {
        "what": f"The group moved from {broker_name(incident.from_broker)} to {broker_name(incident.to_broker)}."
        if incident.to_broker
        else catalogue.HELD_UP.format(broker=broker_name(view.broker)),
        "cost": removed(len(missed), len(gave_up), "of its members"),
        "remedy": catalogue.AFTER_A_MOVE if incident.to_broker else catalogue.WHEN_HELD_UP,
        "session": session_advice(details, limits, polls, " of the group" if view.consumer_protocol else ""),
    }
    at_ms = incident.moved_ms if incident.moved_ms >= 0 else incident.began_ms
    text = catalogue.COORDINATOR_MOVED._replace(severity="ERROR") if lost else catalogue.COORDINATOR_MOVED
    emit(g, text, at_ms, NOBODY, incident.signs, words, generation=incident.generation, **details)


def _unheard(g: Emitter, incident: Incident, lost: list[str]) -> tuple[int, EndedMembership] | None:
    """How long before its coordinator could hear it again a lost member sent its last heartbeat, the longest, and which. None: unknown.

    It could when another broker had read the group back, or the client is heard again: it is refused under its old id, or joins under a
    new one. If that was too late, a client that comes soon after it had needed the time until then: librdkafka gives its id up by itself.
    Joins of several that share a name cannot be told apart, and one that may not join (GROUP_TOO_LARGE) asked before.
    Where one broker read the group back that it had before, and no line shows another one, that may have heard them meanwhile.
    A commit prolongs the session at the coordinator, but not that of librdkafka's own timer: so the last heartbeat counts.
    """
    if not incident.to_broker and g.view.loaded_ms >= incident.began_ms - SPAN_MS:
        return None
    refused = not_admitted(g)
    ended = [old for old in g.view.ended if old.member_id in lost and old.seen_ms >= 0]
    joins = [(member.client_name(), member.joined_ms) for member in g.view.members.values()]
    joins += [(old.client_id, old.came_ms()) for old in g.view.ended]
    found = []
    for old in ended:
        is_known = old.client_id not in refused and sum(one.client_id == old.client_id for one in ended) == 1
        back = (old.back_ms, *(at_ms for name, at_ms in joins if name == old.client_id)) if is_known else ()
        reached = min((at_ms for at_ms in (incident.moved_ms, *back) if at_ms > old.seen_ms), default=old.seen_ms)
        if reached - old.seen_ms > old.session_timeout_ms >= 0:
            soon = (at_ms for at_ms in back if reached <= at_ms <= reached + HINDSIGHT_MS)
            beat_ms = max(old.beat_ms, old.joined_ms) if old.beat_ms >= 0 else old.seen_ms
            found.append((min(soon, default=reached) - beat_ms, old))
    return max(found, key=lambda one: one[0], default=None)


def session_advice(details: Mapping[str, Any], limits: Collection[int], polls: Collection[int], whose: str) -> str:
    """What session timeout the trouble would have taken, after a space; empty if no member missed its own.

    `details`: of the finding of the longest silence. `limits`, `polls`: the session timeouts and max.poll.interval.ms, ms, of all that
    missed them. `whose` they are.
    """
    if not (setting := details.get("setting")):
        return ""
    now = _from_to(limits)
    setting = f"{setting}{whose}{now and f' (now {now})'}"
    if (ms := details["unheard_ms"]) is None:
        return catalogue.SESSION_TOO_SHORT.format(setting=setting)
    shorter = _from_to([limit for limit in polls if limit <= ms])
    poll = catalogue.POLL_TOO_SHORT.format(now=shorter) if shorter else ""
    words = {"setting": setting, "client": details["unheard_client"], "unheard": seconds(ms), "least": above(ms), "poll": poll}
    return catalogue.SESSION_NEEDED.format(**words)


def _from_to(limits: Collection[int]) -> str:
    """The shortest and the longest of these, or the only one; empty if there is none."""
    return " to ".join(map(seconds, sorted({min(limits), max(limits)}))) if limits else ""


def _sign(g: Emitter, at_ms: int, sign: Ref | None, generation: int | None = None) -> Incident:
    view = g.view
    running = view.incident
    if running is None or at_ms > running.last_ms + OVER_MS:
        if running is not None:
            close_due(g, at_ms)
        running = view.incident = Incident(at_ms, at_ms, generation=view.generation_at(at_ms) if generation is None else generation)
    running.last_ms = max(running.last_ms, at_ms)
    if sign is not None:
        _keep(running, sign)
    return running


def _keep(incident: Incident, sign: Ref) -> None:
    if len(incident.signs) < SIGNS_KEPT and sign not in incident.signs:
        incident.signs.append(sign)


def undecided(g: Emitter, member_id: str) -> bool:
    """Whether it is not known yet if the session timeout of a member was a broker's doing."""
    return any(silence.member_id == member_id and silence.is_end for silence in g.view.silences)


def is_lost(g: Emitter, member_id: str) -> bool:
    """Whether a member's session timeout was the doing of a broker that is in trouble."""
    return g.view.incident is not None and member_id in g.view.incident.lost


def _cause_of(g: Emitter, silence: Silence, *, is_early: bool) -> Incident | None:
    """The incident that the session timeout belongs to, if any. `is_early`: the lines end before a live client need have come back."""
    running = g.view.incident
    if silence.waited:
        return running if running is not None and _amid_trouble(running, silence) else _sign(g, silence.at_ms, None, silence.generation)
    if running is not None and _amid_trouble(running, silence):
        # A member that was heard after the trouble was over fell silent by itself. One that is never heard again may as well have died, or
        # have been closed while it had no coordinator.
        moved = running.to_broker and not g.view.consumer_protocol and not was_heard_since(silence.seen_ms, silence.at_ms, running.last_ms)
        silent_since_then = silence.seen_ms <= running.last_ms and ((moved and is_early) or _lived_on(g, silence, running.began_ms))
        return running if silence.given_up or silent_since_then else None
    generation = silence.generation  # its rebalance may be written, and forgotten, by now
    if _stood_still(g, silence) and _lived_on(g, silence, silence.at_ms):
        return _sign(g, silence.at_ms, None, generation)
    elected_ms = g.clock.took_over_between(silence.at_ms - SPAN_MS, silence.at_ms + HINDSIGHT_MS)
    if elected_ms < 0 <= silence.at_ms - g.view.loaded_ms <= SPAN_MS:  # an excerpt may lack the broker's own lines
        elected_ms = g.view.loaded_ms
    if elected_ms < 0 or not _lived_on(g, silence, elected_ms):
        return None
    if silence.seen_ms > elected_ms and not silence.given_up:
        return None
    return _sign(g, silence.at_ms, g.clock.elections.get(elected_ms), generation)


def was_heard_since(seen_ms: int, ended_ms: int, moved_ms: int) -> bool:
    """Whether the new coordinator had heartbeats of a member before it fell silent.

    If there is no request log: the session of one that it never heard ends a whole number of seconds after it has read the group back.
    """
    if seen_ms >= 0:
        return seen_ms >= moved_ms
    return _TIMER_MS < (ended_ms - moved_ms) % _SECOND_MS < _SECOND_MS - _READ_MS


def _amid_trouble(running: Incident, silence: Silence) -> bool:
    return running.began_ms - HINDSIGHT_MS <= silence.at_ms <= running.last_ms + SPAN_MS


def _stood_still(g: Emitter, silence: Silence) -> bool:
    """Whether the broker wrote no line, about nobody, for half of the session or more while the member was silent.

    A client sends two heartbeats or more in that time, so those of the other members waited too. One that is alone proves nothing.
    """
    if silence.session_timeout_ms < 0 or silence.seen_ms < 0:
        return False
    others = [(one.member_id, one.joined_ms, one.alive_ms) for one in g.view.members.values()]
    others += [(old.member_id, old.alive_ms, old.at_ms) for old in g.view.ended]
    if not any(m != silence.member_id and 0 <= since <= silence.seen_ms and until >= silence.at_ms for m, since, until in others):
        return False
    return 2 * g.clock.longest_silence_ms(silence.seen_ms, silence.at_ms) >= silence.session_timeout_ms


def _lived_on(g: Emitter, silence: Silence, elected_ms: int) -> bool:
    """Whether the client joined under another id, as a live one does and a dead one does not. `elected_ms`: when the trouble began.

    librdkafka does so soon after its coordinator stops to answer, Java as soon as it is told that its session has ended.
    """
    asked = [(client_in(member_id, ""), issued_ms) for member_id, issued_ms in g.view.pending.items()]
    joined = [(member.client_name(), member.joined_ms) for member in g.view.members.values()]
    if g.view.consumer is not None:  # a member of the consumer protocol comes back with its id
        joined += [(one.client_id or one.member_id, one.joined_ms) for one in g.view.consumer.members.values()]
    given_up = range(elected_ms - HINDSIGHT_MS, elected_ms + GIVEN_UP_MS)
    own = (silence.client_id, silence.member_id)
    back = any(name in own and (since_ms >= silence.at_ms or since_ms in given_up) for name, since_ms in (*asked, *joined))
    return back or own[0] in not_admitted(g) or _was_fenced(g, silence.member_id)


def _was_fenced(g: Emitter, member_id: str) -> bool:
    """Whether a static member was refused because of another with its instance id: itself, where it joins again after a move."""
    old = g.view.ended_membership(member_id)
    return old is not None and old.instance_id in g.view.fenced


def _came_back_ms(g: Emitter, silence: Silence, now_ms: int) -> int | None:
    """When a client whose session ended was back under a new id; NEVER: it was not. None: that is not known, or is told elsewhere.

    What one was refused under its old id tells more (refusals.py).
    """
    view, at_ms = g.view, silence.at_ms
    old = view.ended_membership(silence.member_id)
    if old is None or old.back_ms >= 0 or not (old.instance_id or old.client_id) or old.client_id in not_admitted(g):
        return None
    own = (old.instance_id, "" if old.instance_id else old.client_id)
    known = [(one.instance_id, one.client_name(), one.joined_ms) for one in view.members.values()]
    later = [one for one in view.ended if one.at_ms > at_ms]
    known += [(one.instance_id, one.client_id, one.came_ms() if one.came_ms() >= 0 else one.at_ms) for one in later]
    came_ms = min((since_ms for instance, client, since_ms in known if (instance, "" if instance else client) == own), default=NEVER)
    is_early = came_ms == NEVER and (view.untold or view.unnamed or now_ms - at_ms < HINDSIGHT_MS)
    return None if came_ms < at_ms or is_early else came_ms  # several have its name, or it is too early to know


def not_admitted(g: Emitter) -> set[str]:
    """The clients that the coordinator refused because the group is full."""
    return {client_id for client_id, _, _ in g.view.not_admitted}


def removed(missed: int, gave_up: int, of_whom: str = "") -> str:
    """That so many members lost their sessions, or gave their ids up by themselves meanwhile, as the end of a message."""
    ways = (
        (missed, "missed its session timeout and was removed", "missed their session timeout and were removed"),
        (gave_up, "gave up its id: its poll timeout had expired", "gave up their ids: their poll timeouts had expired"),
    )
    whom = {True: of_whom or "member", False: of_whom or "members"}
    return "".join(f" {count} {whom[count == 1]} {one if count == 1 else several}." for count, one, several in ways if count)
