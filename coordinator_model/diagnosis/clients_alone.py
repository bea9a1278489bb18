"""What clients' own logs show of a group whose coordinator is not heard: troubles of single clients, and storms as one of them sees them.

No rebalance follows from such lines: who began one, and who else took part, only the coordinator knows. Each statement waits a minute. If a
broker speaks of the group by then, its lines tell the same better, and the statement is not told. Neither is one from between the lines of
brokers: what they do not say did not happen. After their last line, clients are alone again.

Clients say things in other words again (Java logs the error of a commit three times), so statements of one client about one thing within a
minute are one trouble. That a client is put out after a silence belongs to the silence.
"""

from __future__ import annotations

import re
from typing import Any, Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis import client_catalogue, removals
from coordinator_model.diagnosis.bursts import LONGEST_MS, QUIET_MS, REPLACED_AT_LEAST, STORM_AT_LEAST
from coordinator_model.diagnosis.client_catalogue import COORDINATOR_AWAY, TEXTS
from coordinator_model.diagnosis.findings import NOBODY, Client, current, emit, seconds
from coordinator_model.diagnosis.kinds.settings import OF_PROGRAMS, SETTINGS, SINK_TASK
from coordinator_model.events import Event
from coordinator_model.specification.timers import NEVER
from coordinator_model.view import reasons
from coordinator_model.view.client_troubles import Rounds, Said, Trouble
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import MAX_EVIDENCE, or_none, ref

UNREACHED_MS: Final = 10_000
"""A client that cannot reach its coordinator for so long is in trouble: in less, another broker takes over. Nor does it take as long until
a client that was told so begins to join."""
SLOW_MS: Final = 15_000  # to reconcile; as STUCK_RECONCILING of a coordinator
_AT_ONCE_MS: Final = 1_000  # members that are restarted do not make generations faster
_KEPT: Final = 64  # clients, generations
_SAID_AFTER: Final = frozenset({"NO_HEARTBEAT_RESPONSE", "POLL_TIMEOUT"})
"""Of which a client learns afterwards that it was put out."""

_REFUSED: Final = re.compile("HeartbeatRequest failed due to (.*)")  # Java's words where it gives up (AbstractHeartbeatRequestManager)
_CODES: Final = {
    kinds.CLIENT_POLL_TIMEOUT: "POLL_TIMEOUT",
    kinds.CLIENT_SESSION_TIMEOUT: "NO_HEARTBEAT_RESPONSE",
    kinds.CLIENT_COMMIT_REFUSED: "ZOMBIE_COMMIT",
}
_PUT_OUT: Final = {
    kinds.UNKNOWN_MEMBER_ID: "UNKNOWN_MEMBER",
    kinds.ILLEGAL_GENERATION: "ILLEGAL_GENERATION",
    kinds.FENCED_INSTANCE_ID: "FENCED_INSTANCE",
    kinds.FENCED_MEMBER_EPOCH: "FENCED_MEMBER_EPOCH",
    kinds.UNRELEASED_INSTANCE_ID: "UNRELEASED_INSTANCE_ID",
}


CALLS: Final = re.compile("(?i:group is (?:already )?rebalancing|^it is rebalancing)")
"""How a client says that the coordinator told it to join again."""
_UNREACHED: Final = re.compile(
    r"\AGroup coordinator (\S+) \(id: (\d+).*? is unavailable or invalid(?!.*error response)"
    r"|\AConnection to node \d+ .*could not be established"
)
_HIGHEST: Final = 2_147_483_647
"""Java's client numbers its connection to the coordinator so, less the id of the node (ConsumerCoordinator)."""
_SAID: Final = {
    "CLIENT_REFUSED": (kinds.CLIENT_NOTE, _REFUSED),
    "COORDINATOR_UNREACHABLE": (kinds.CLIENT_NOTE, _UNREACHED),
    "NOT_REJOINED": (kinds.CLIENT_REJOINS, CALLS),
}
"""Codes that depend on the words."""
_JOINED: Final = frozenset({kinds.CLIENT_JOINED, kinds.CLIENT_ROUND_FAILED, kinds.CLIENT_ASSIGNED})
_JOINS: Final = ("(Re-)joining group", "Successfully synced group")
_AFTER_CALL: Final = frozenset({"POLL_TIMEOUT", "NO_HEARTBEAT_RESPONSE", "UNKNOWN_MEMBER", "ILLEGAL_GENERATION"})
"""What happens to a client that does not join when it is told to."""


def is_unheard(g: Emitter) -> bool:
    """Whether no line of a broker is about the group so far."""
    return kinds.PSEUDO_BROKERS.issuperset(g.view.brokers)


def take(g: Emitter, event: Event, member_id: str) -> None:
    """Takes a line of a client about a group of which no broker has spoken, or none does any more. `member_id`: whose it is, if known."""
    event = event._replace(member_id=member_id)
    said = g.view.said = g.view.said or Said(after_brokers=not is_unheard(g))
    if event.kind in (kinds.CLIENT_JOINED, kinds.CLIENT_ROUND_FAILED) and event.at_ms >= kinds.TIMES_FROM_MS:
        _note_round(g, said, event)
    code = _code(event)
    _note_end(said, event, code)
    if event.kind == kinds.CLIENT_STATE:
        _note_state(said, event)
    elif code and not (g.view.consumer_protocol and code == "POLL_TIMEOUT"):  # which is told as it comes
        _note_trouble(said, code, event)


def _code(event: Event) -> str:
    """The code of the finding that a line gives; empty if it gives none."""
    if event.kind == kinds.CLIENT_PUT_OUT:
        return _PUT_OUT[event.state]
    if event.kind == kinds.CLIENT_LEAVES and reasons.of_leave(event.reason, by_admin=False) == reasons.POLL_TIMEOUT:
        return "POLL_TIMEOUT"
    if event.kind == kinds.CLIENT_ASSIGNED and event.rebalance_timeout_ms > 0:
        return "CONNECT_TASKS_WAIT"
    said = (code for code, (kind, words) in _SAID.items() if event.kind == kind and words.search(event.reason))
    return next(said, _CODES.get(event.kind, ""))


def _note_end(said: Said, event: Event, code: str) -> None:
    """Notes whether the client joins again, or is answered again."""
    joins = event.kind in _JOINED or event.reason.startswith(_JOINS)
    ends = {
        "NOT_REJOINED": joins or (event.kind == kinds.CLIENT_LEAVES and not code),
        "COORDINATOR_UNREACHABLE": (joins and event.kind != kinds.CLIENT_NOTE)
        or event.kind == kinds.CLIENT_PUT_OUT
        or code == "NOT_REJOINED",
    }
    if not any(ends.values()):
        return
    is_said = event.kind == kinds.CLIENT_NOTE  # a client may have begun to join long before it has joined: only some say that they begin
    told = []
    for one in said.troubles:
        if not ends.get(one.code) or one.ended_ms >= 0 or not _is_of(one, event):
            told.append(one)
        elif one.code != "NOT_REJOINED" or is_said:
            told.append(one.changed(ended_ms=event.at_ms))
    said.troubles = told


def _name(event: Event) -> str:
    return event.client_id or event.instance_id or event.connection


def _settings(event: Event) -> str:
    """Whose settings a client has: a key of SETTINGS."""
    if event.software or (event.connection and event.connection in SETTINGS):
        return event.software or event.connection
    if "#" in event.connection:
        return "librdkafka"
    return "sink" if event.client_id.startswith(SINK_TASK) else "logstash" if event.client_id.startswith("logstash") else ""


def _note_trouble(said: Said, code: str, event: Event) -> None:
    held = next((one for one in reversed(said.troubles) if _is_same(one, code, event)), None)
    own = event.member_id, event.client_id, event.instance_id, _settings(event)
    why = refused[1] if (refused := _REFUSED.search(event.reason)) is not None else ""
    one = held or Trouble(code, _name(event), event.at_ms, event.at_ms, *own, times=0, reason=why, was_away=_was_away(said, event))
    call = next((other for other in said.troubles if code in _AFTER_CALL and _is_open_call(other, event)), None)
    where = _where(event) if code == "COORDINATOR_UNREACHABLE" else ""
    one = one.changed(
        times=one.times + (one.code == code and (bool(where) or code != "COORDINATOR_UNREACHABLE")),
        last_ms=event.at_ms,
        client_id=one.client_id or event.client_id,
        member_id=one.member_id or event.member_id,
        put_out=one.put_out or code == "UNKNOWN_MEMBER",
        limit_ms=max(one.limit_ms, event.rebalance_timeout_ms, event.session_timeout_ms),
        generation=max(one.generation, event.generation),
        where=one.where or where,
        place=one.place or event.client_host,
        called_ms=one.called_ms if call is None else call.at_ms,
        signs=[*one.signs, *([] if call is None else call.signs), ref(event)][:MAX_EVIDENCE],
    )
    others = [other for other in said.troubles if other is not call]
    said.troubles = [*others, one] if held is None else [one if other is held else other for other in others]


def _was_away(said: Said, event: Event) -> bool:
    """Whether clients could not reach the coordinator in the minute before. A client that stood still learns of all at once."""
    before = [one for one in said.troubles if one.code == "COORDINATOR_UNREACHABLE" and one.at_ms <= event.at_ms - _AT_ONCE_MS]
    return any(one.last_ms >= event.at_ms - QUIET_MS for one in before)


def _where(event: Event) -> str:
    """The coordinator that a line says was not reached, with its node; empty if it does not say which."""
    named = _UNREACHED.match(event.reason)
    return f"{named[1]} (node {_HIGHEST - int(named[2])})" if named is not None and named[1] else ""


def _is_of(one: Trouble, event: Event) -> bool:
    """Whether a line is of the client of a trouble. Some lines of a library have the name of their client, others have not."""
    if one.place and event.client_host and one.place != event.client_host:
        return False  # processes may share a client id
    both_named = one.client_id and event.client_id
    return one.client_id == event.client_id if both_named else one.settings == _settings(event)


def _is_same(held: Trouble, code: str, event: Event) -> bool:
    """Whether a line is about a trouble that is told already."""
    if held.ended_ms >= 0 or (held.where and _where(event) not in ("", held.where)):
        return False
    return _is_of(held, event) and (held.code == code or (code == "UNKNOWN_MEMBER" and held.code in _SAID_AFTER))


def _is_open_call(one: Trouble, event: Event) -> bool:
    """Whether a client was told to join again, and did not."""
    return one.code == "NOT_REJOINED" and one.ended_ms < 0 and _is_of(one, event)


def _note_state(said: Said, event: Event) -> None:
    """A member of the consumer protocol is in another state (MemberState of Java's client)."""
    name = _name(event)
    began = said.reconciling.pop(name, None)
    if event.state == "RECONCILING":
        said.reconciling = {**dict(list(said.reconciling.items())[-_KEPT:]), name: (event.at_ms, event.generation, ref(event))}
    elif began is not None and event.state in ("ACKNOWLEDGING", "STABLE") and event.at_ms - began[0] >= SLOW_MS:
        slow = Trouble("STUCK_RECONCILING", name, began[0], event.at_ms, event.member_id, event.client_id, event.instance_id)
        slow.waited_ms, slow.generation, slow.signs = event.at_ms - began[0], began[1], [began[2], ref(event)]
        said.troubles.append(slow)


def _note_round(g: Emitter, said: Said, event: Event) -> None:
    """A client joined a generation, or did not get its assignment because the next rebalance had begun."""
    rounds, name = said.rounds, f"{_name(event)}\0{event.client_host}"  # processes may share a client id
    if rounds is not None and (event.at_ms > rounds.last_ms + QUIET_MS or event.at_ms > rounds.first_ms + LONGEST_MS):
        _judge_rounds(g, said)
        rounds = None
    if rounds is None:
        rounds = said.rounds = Rounds(event.at_ms, event.at_ms)
    if name not in rounds.clients and len(rounds.clients) >= _KEPT:
        return
    rounds.last_ms = event.at_ms
    rounds.clients[name] = event.member_id, event.client_id, _settings(event)
    counts = rounds.joined
    if event.kind == kinds.CLIENT_ROUND_FAILED:
        rounds.failed[name] = rounds.failed.get(name, 0) + 1
    if event.generation < 0:
        counts[name] = counts.get(name, 0) + 1
    elif event.generation not in rounds.numbers:
        rounds.numbers = [*rounds.numbers, event.generation][-_KEPT:]
        rounds.count += 1
    rounds.signs = [*rounds.signs, ref(event)][:MAX_EVIDENCE]


def next_ms(g: Emitter) -> int:
    """When `close_due` has work next; NEVER if it has none."""
    said = g.view.said
    if said is None:
        return NEVER
    rounds = [said.rounds.last_ms + QUIET_MS + 1] if said.rounds is not None else []
    return min([*map(_due_ms, said.troubles), *rounds], default=NEVER)


def close_due(g: Emitter, now_ms: int, *, flush: bool = False) -> None:
    """Tells what no broker has spoken of by now. `flush`: nothing more will come."""
    said = g.view.said
    if said is None:
        return
    if not (said.after_brokers or is_unheard(g)):
        g.view.said = None
        return
    if said.rounds is not None and (flush or said.rounds.last_ms + QUIET_MS < now_ms):
        _judge_rounds(g, said)
    due = [one for one in said.troubles if flush or _due_ms(one) <= now_ms]
    said.troubles = [one for one in said.troubles if one not in due]
    for one in due:
        if _is_trouble(one):
            _tell(g, one)


def _due_ms(one: Trouble) -> int:
    quiet_ms = LONGEST_MS if one.code in ("NOT_REJOINED", "COORDINATOR_UNREACHABLE") and one.ended_ms < 0 else QUIET_MS
    return min(one.last_ms + quiet_ms, one.at_ms + LONGEST_MS) + 1


def _is_trouble(one: Trouble) -> bool:
    """Whether what a client says is more than a moment, as each rebalance and each restart of a broker has."""
    is_long = max(one.last_ms, one.ended_ms) - one.at_ms >= UNREACHED_MS
    if one.code == "COORDINATOR_UNREACHABLE":
        return one.times > 1 and (is_long or one.at_ms < kinds.TIMES_FROM_MS)
    return one.code != "NOT_REJOINED" or is_long


def _tell(g: Emitter, one: Trouble) -> None:
    """Writes the finding of a trouble."""
    settings, text = SETTINGS.get(one.settings, OF_PROGRAMS), TEXTS[one.code]
    is_program = one.code == "POLL_TIMEOUT" and (one.settings == "connect" or one.settings not in SETTINGS)
    if is_program:
        text = client_catalogue.POLL_TIMEOUT_OF_WORKER if one.settings in SETTINGS else client_catalogue.POLL_TIMEOUT_OF_PROGRAM
    elif one.code == "POLL_TIMEOUT" and one.was_away:
        text = text._replace(advice=COORDINATOR_AWAY)
    words: dict[str, Any] = {
        **settings._asdict(),
        "program": one.settings,
        "thread": settings.thread.format(program=one.settings),
        "less": settings.less_work(),
        "departure": removals.departure(is_static=bool(one.instance_id)),
        "limit": f" ({seconds(one.limit_ms)})" if one.limit_ms >= 0 else "",
        "of_poll": f"{settings.poll or 'its limit'}{f' ({seconds(one.limit_ms)})' if one.limit_ms >= 0 else ''}",
        "current": current(one.limit_ms),
        "silence": f"{seconds(one.limit_ms)}, longer than" if one.limit_ms >= 0 else "longer than",
        "then": ", and then learned that the group had removed it" if one.put_out else "",
        "reason": one.reason,
        "times": f" ({one.times} times)" if one.times > 1 else "",
        "instance": f" {one.instance_id}" if one.instance_id else "",
        "waited": seconds(one.waited_ms if one.waited_ms >= 0 else one.limit_ms),
        "where": one.where,
        "node": one.where.partition("(")[2].rstrip(")") or "that broker",
        "until": _until(one),
        "again": " It found the same broker each time: the cluster elected no other." if one.times > 1 else "",
        "act": COORDINATOR_AWAY if one.was_away else client_catalogue.POLL_IN_TIME.format(poll=settings.poll) if settings.poll else "",
    }
    if one.called_ms >= 0 and one.at_ms - one.called_ms >= UNREACHED_MS:
        words["called"] = seconds(one.at_ms - one.called_ms)
        text = text._replace(message=text.message + client_catalogue.HAD_NOT_JOINED)
    client: Client = (one.member_id, one.client_id, "")
    span_ms = max(one.last_ms, one.ended_ms) - one.at_ms
    figures: dict[str, dict[str, Any]] = {
        "POLL_TIMEOUT": {"max_poll_interval_ms": or_none(one.limit_ms), **({"program": one.settings} if is_program else {})},
        "NO_HEARTBEAT_RESPONSE": {"silent_ms": or_none(one.limit_ms)},
        "STUCK_RECONCILING": {"waited_ms": one.waited_ms},
        "CONNECT_TASKS_WAIT": {"waited_ms": one.limit_ms},
        "FENCED_INSTANCE": {"instance_id": one.instance_id or None},
        "UNRELEASED_INSTANCE_ID": {"instance_id": one.instance_id or None},
        "COORDINATOR_UNREACHABLE": {"times": one.times, "unreached_ms": span_ms, "where": one.where},
        "NOT_REJOINED": {"waited_ms": span_ms},
    }
    details = figures.get(one.code, {"times": one.times})
    emit(g, text, one.at_ms, client, one.signs, words, generation=one.generation, **details)


def _until(one: Trouble) -> str:
    """For how long, and up to when, where that is known."""
    if one.at_ms < kinds.TIMES_FROM_MS:
        return f"{one.times} times in a row"
    span = f"for {seconds(max(one.last_ms, one.ended_ms) - one.at_ms)}"
    return f"{span}, up to its last line about that" if one.ended_ms < 0 else span


def _judge_rounds(g: Emitter, said: Said) -> None:
    """Reports a storm if the clients joined so many generations, or were overtaken so often, as no restart or scale-out explains."""
    rounds, said.rounds = said.rounds, None
    assert rounds is not None
    count = max([rounds.count, *rounds.joined.values()])
    failed = max(rounds.failed.values(), default=0)
    if count < REPLACED_AT_LEAST and failed < STORM_AT_LEAST:
        return
    own, span_ms = sorted(rounds.clients), rounds.last_ms - rounds.first_ms
    member_id, client_id, settings = rounds.clients[own[0]]
    names = [name.partition("\0")[0] for name in own]
    words = {
        "who": f"The client {names[0]}" if len(names) == 1 else f"{len(names)} clients",
        "span": seconds(span_ms),
        "failed": f"; {failed} times the next rebalance began before it had its assignment" if failed else "",
        "remedy": client_catalogue.OF_WORKERS if settings == "connect" else "",
    }
    client = (member_id, client_id, "") if len(names) == 1 else NOBODY
    figures = {"rebalances": count, "span_ms": span_ms, "total_ms": None, "failed": failed, "clients": names}
    is_restart = failed < STORM_AT_LEAST and span_ms >= count * _AT_ONCE_MS  # perhaps
    text = client_catalogue.MANY_ROUNDS if is_restart else client_catalogue.REBALANCE_STORM
    generation = max(rounds.numbers, default=-1)
    emit(g, text, rounds.first_ms, client, rounds.signs, words, generation=generation, **figures)
