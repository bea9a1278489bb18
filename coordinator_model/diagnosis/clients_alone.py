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
from coordinator_model.diagnosis.bursts import LONGEST_MS, QUIET_MS, REPLACED_AT_LEAST, SINK_TASK, STORM_AT_LEAST
from coordinator_model.diagnosis.client_catalogue import COORDINATOR_AWAY, SETTINGS, TEXTS
from coordinator_model.diagnosis.findings import NOBODY, Client, current, emit, seconds
from coordinator_model.events import Event
from coordinator_model.specification.timers import NEVER
from coordinator_model.view import reasons
from coordinator_model.view.client_troubles import Rounds, Said, Trouble
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import MAX_EVIDENCE, or_none, ref

SLOW_MS: Final = 15_000  # to reconcile; as STUCK_RECONCILING of a coordinator
_AT_ONCE_MS: Final = 1_000  # members that are restarted do not make generations faster
_KEPT: Final = 64  # clients, generations
_SAID_AFTER: Final = frozenset({"NO_HEARTBEAT_RESPONSE", "POLL_TIMEOUT"})
"""Of which a client learns afterwards that it was put out."""

_REFUSED: Final = "HeartbeatRequest failed due to "  # Java's words where it gives up (AbstractHeartbeatRequestManager)
_AWAY: Final = "COORDINATOR_AWAY"  # explains what comes within a minute, and is told with that alone
_UNREACHED: Final = re.compile(r"coordinator .*(?:unavailable|not available)")

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


def is_unheard(g: Emitter) -> bool:
    """Whether no line of a broker is about the group so far."""
    return kinds.PSEUDO_BROKERS.issuperset(g.view.brokers)


def take(g: Emitter, event: Event, member_id: str) -> None:
    """Takes a line of a client about a group of which no broker has spoken, or none does any more. `member_id`: whose it is, if known."""
    event = event._replace(member_id=member_id)
    said = g.view.said = g.view.said or Said(after_brokers=not is_unheard(g))
    if event.kind in (kinds.CLIENT_JOINED, kinds.CLIENT_ROUND_FAILED):
        _note_round(g, said, event)
    elif event.kind == kinds.CLIENT_STATE:
        _note_state(said, event)
    elif (code := _code(event)) and not (g.view.consumer_protocol and code == "POLL_TIMEOUT"):  # which is told as it comes
        _note_trouble(said, code, event)


def _code(event: Event) -> str:
    """The code of the finding that a line gives; empty if it gives none."""
    if event.kind == kinds.CLIENT_PUT_OUT:
        return _PUT_OUT[event.state]
    if event.kind == kinds.CLIENT_LEAVES and reasons.of_leave(event.reason, by_admin=False) == reasons.POLL_TIMEOUT:
        return "POLL_TIMEOUT"
    if event.kind == kinds.CLIENT_NOTE and (_REFUSED in event.reason or _UNREACHED.search(event.reason)):
        return "CLIENT_REFUSED" if _REFUSED in event.reason else _AWAY
    if event.kind == kinds.CLIENT_ASSIGNED and event.rebalance_timeout_ms > 0:
        return "CONNECT_TASKS_WAIT"
    return _CODES.get(event.kind, "")


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
    if held is None:
        # A client that stood still learns of all at once.
        away = any(one.code == _AWAY and one.at_ms <= event.at_ms - _AT_ONCE_MS for one in said.troubles)
        own = event.member_id, event.client_id, event.instance_id, _settings(event)
        held = Trouble(code, _name(event), event.at_ms, event.at_ms, *own, reason=event.reason, was_away=away)
        said.troubles.append(held)
    elif held.code == code:
        held.times += 1
    held.last_ms = event.at_ms
    held.client_id, held.member_id = held.client_id or event.client_id, held.member_id or event.member_id
    held.put_out = held.put_out or code == "UNKNOWN_MEMBER"
    held.limit_ms = max(held.limit_ms, event.rebalance_timeout_ms, event.session_timeout_ms)
    held.generation = max(held.generation, event.generation)
    held.signs = [*held.signs, ref(event)][:MAX_EVIDENCE]


def _is_same(held: Trouble, code: str, event: Event) -> bool:
    """Whether a line is about a trouble that is told already. Some lines of a library have the name of their client, others have not."""
    nameless = held.settings == _settings(event) and not (held.client_id and event.client_id)
    return (held.client == _name(event) or nameless) and (held.code == code or (code == "UNKNOWN_MEMBER" and held.code in _SAID_AFTER))


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
    rounds, name = said.rounds, _name(event)
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
        if one.code != _AWAY:
            _tell(g, one)


def _due_ms(one: Trouble) -> int:
    return min(one.last_ms + QUIET_MS, one.at_ms + LONGEST_MS) + 1


def _tell(g: Emitter, one: Trouble) -> None:
    """Writes the finding of a trouble."""
    settings, text = SETTINGS[one.settings], TEXTS[one.code]
    if one.code == "POLL_TIMEOUT" and one.settings == "connect":
        text = client_catalogue.POLL_TIMEOUT_OF_WORKER
    elif one.code == "POLL_TIMEOUT" and one.was_away:
        text = text._replace(advice=COORDINATOR_AWAY)
    words: dict[str, Any] = {
        **settings._asdict(),
        "records": f"lower {settings.records}, " if settings.records else "",
        "departure": removals.departure(is_static=bool(one.instance_id)),
        "limit": f" ({settings.poll} {one.limit_ms})" if one.limit_ms >= 0 else "",
        "current": current(one.limit_ms),
        "silence": f"{seconds(one.limit_ms)}, longer than" if one.limit_ms >= 0 else "longer than",
        "then": ", and then learned that the group had removed it" if one.put_out else "",
        "reason": one.reason.partition(_REFUSED)[2],
        "times": f" ({one.times} times)" if one.times > 1 else "",
        "instance": f" {one.instance_id}" if one.instance_id else "",
        "waited": seconds(one.waited_ms if one.waited_ms >= 0 else one.limit_ms),
        "act": COORDINATOR_AWAY if one.was_away else client_catalogue.POLL_IN_TIME.format(poll=settings.poll) if settings.poll else "",
    }
    client: Client = (one.member_id, one.client_id, "")
    figures: dict[str, dict[str, Any]] = {
        "POLL_TIMEOUT": {"max_poll_interval_ms": or_none(one.limit_ms)},
        "NO_HEARTBEAT_RESPONSE": {"silent_ms": or_none(one.limit_ms)},
        "STUCK_RECONCILING": {"waited_ms": one.waited_ms},
        "CONNECT_TASKS_WAIT": {"waited_ms": one.limit_ms},
        "FENCED_INSTANCE": {"instance_id": one.instance_id or None},
        "UNRELEASED_INSTANCE_ID": {"instance_id": one.instance_id or None},
    }
    details = figures.get(one.code, {"times": one.times})
    emit(g, text, one.at_ms, client, one.signs, words, generation=one.generation, **details)


def _judge_rounds(g: Emitter, said: Said) -> None:
    """Reports a storm if the clients joined so many generations, or were overtaken so often, as no restart or scale-out explains."""
    rounds, said.rounds = said.rounds, None
    assert rounds is not None
    count = max([rounds.count, *rounds.joined.values()])
    failed = max(rounds.failed.values(), default=0)
    if count < REPLACED_AT_LEAST and failed < STORM_AT_LEAST:
        return
    names, span_ms = sorted(rounds.clients), rounds.last_ms - rounds.first_ms
    member_id, client_id, settings = rounds.clients[names[0]]
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
