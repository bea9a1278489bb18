"""Facts worth a person's time, in words that say what happened and what to change."""

from __future__ import annotations

import json
from typing import Any, Final

from coordinator_model.events import OFFSET_COMMIT, TXN_OFFSET_COMMIT, Event
from coordinator_model.tracker import asked
from coordinator_model.tracker.emit import Emitter
from coordinator_model.tracker.rows import FINDINGS, Ref, evidence_json, ref
from coordinator_model.tracker.view import Found, Incident, Member, Suspect

SESSION_TIMEOUT: Final = "SESSION_TIMEOUT"
POLL_TIMEOUT: Final = "POLL_TIMEOUT"
ILLEGAL_GENERATION: Final = "ILLEGAL_GENERATION"
UNKNOWN_MEMBER: Final = "UNKNOWN_MEMBER"
FENCED_INSTANCE: Final = "FENCED_INSTANCE"
ZOMBIE_COMMIT: Final = "ZOMBIE_COMMIT"
MODEL_DIVERGENCE: Final = "MODEL_DIVERGENCE"
COORDINATOR_MOVED: Final = "COORDINATOR_MOVED"

WARNING: Final = "WARNING"
ERROR: Final = "ERROR"
FLAGS_KEPT: Final = 256
SIGNS_KEPT: Final = 8


def _seconds(ms: int) -> str:
    return f"{ms / 1000:g} s"


def _tell(g: Emitter, *arguments: Any, **details: Any) -> None:
    g.emit(FINDINGS, **_row(g, *arguments, **details))


def _row(
    g: Emitter,
    code: str,
    severity: str,
    at_ms: int,
    who: tuple[str, str, str],
    message: str,
    advice: str,
    signs: list[Ref],
    **details: Any,
) -> dict[str, Any]:
    member_id, client_id, client_host = who
    return {
        "at": at_ms,
        "code": code,
        "severity": severity,
        "member_id": member_id or None,
        "client_id": client_id or None,
        "client_host": client_host or None,
        "generation": g.view.generation if g.view.generation >= 0 else None,
        "message": message,
        "advice": advice,
        "evidence": evidence_json(signs),
        "details": json.dumps(details, sort_keys=True, separators=(",", ":"), ensure_ascii=False),
    }


def _first_time(g: Emitter, code: str, member_id: str, generation: int) -> bool:
    """One finding per member and generation: the client repeats itself, the fact does not."""
    flag = (code, member_id, generation)
    if flag in g.view.flagged:
        return False
    g.view.flagged.append(flag)
    del g.view.flagged[:-FLAGS_KEPT]
    return True


def session_timeout(g: Emitter, member: Member, at_ms: int, signs: list[Ref]) -> dict[str, Any]:
    """The coordinator heard nothing of a member for its session timeout (onExpireHeartbeat). To be told unless a broker is why."""
    silence = at_ms - member.seen_ms if member.seen_ms >= 0 else None
    limit = f" (session.timeout.ms {member.session_timeout_ms})" if member.session_timeout_ms >= 0 else ""
    heard = f"; last heard {_seconds(silence)} before" if silence is not None else ""
    return _row(
        g,
        SESSION_TIMEOUT,
        ERROR,
        at_ms,
        (member.member_id, member.client(), member.client_host),
        f"The coordinator removed the member because it heard no heartbeat within the session timeout{limit}{heard}.",
        "Find out what stopped the process or its network at that time (crash, SIGKILL, long pause of the JVM or the "
        "container, CPU limit). Let a planned stop call close(), so that the member leaves at once; if it only paused, raise "
        "session.timeout.ms above the longest pause.",
        signs,
        session_timeout_ms=member.session_timeout_ms if member.session_timeout_ms >= 0 else None,
        silent_ms=silence,
    )


def poll_timeout(g: Emitter, member: Member, at_ms: int, signs: list[Ref]) -> None:
    """The client left by itself because poll() was not called within max.poll.interval.ms."""
    limit = member.rebalance_timeout_ms
    named = f" (max.poll.interval.ms {limit})" if limit >= 0 else ""
    _tell(
        g,
        POLL_TIMEOUT,
        ERROR,
        at_ms,
        (member.member_id, member.client(), member.client_host),
        f"The client left the group because the application did not call poll() within its limit{named}.",
        "Make the work between two polls shorter (lower max.poll.records, move slow calls off the polling thread) or raise "
        "max.poll.interval.ms above the longest processing time.",
        signs,
        max_poll_interval_ms=limit if limit >= 0 else None,
    )


def illegal_generation(g: Emitter, event: Event) -> None:
    """A member spoke with a generation that is not the group's (validateClassicGroup…: ILLEGAL_GENERATION)."""
    if _first_time(g, ILLEGAL_GENERATION, event.member_id, event.generation):
        _tell(
            g,
            ILLEGAL_GENERATION,
            WARNING,
            event.at_ms,
            (event.member_id, event.client_id, event.client_host),
            f"{event.kind} with generation {event.generation} was refused: the group had moved on"
            + (f" to generation {g.view.generation}." if g.view.generation > event.generation else "."),
            "The member missed a rebalance. Look at what held it up before: a stalled poll loop or a paused process.",
            [ref(event)],
            api=event.kind,
            sent_generation=event.generation,
        )


def unknown_member(g: Emitter, event: Event, removed: str) -> None:
    """A client spoke as a member that the group does not have. `removed`: how its membership ended, if seen."""
    if _first_time(g, UNKNOWN_MEMBER, event.member_id, -1):
        why = f" It had been removed ({removed})." if removed else ""
        _tell(
            g,
            UNKNOWN_MEMBER,
            WARNING,
            event.at_ms,
            (event.member_id, event.client_id, event.client_host),
            f"{event.kind} was refused: the member id is not, or no longer, in the group.{why}",
            "The client still ran after the group had given it up, so its partitions were processed by others meanwhile. Look "
            "at why it was removed.",
            [ref(event)],
            api=event.kind,
            removed=removed or None,
        )


def fenced_instance(g: Emitter, event: Event) -> None:
    """Two clients use one group.instance.id: the older one is fenced (KIP-345)."""
    if _first_time(g, FENCED_INSTANCE, f"{event.instance_id} {event.member_id}", -1):
        _tell(
            g,
            FENCED_INSTANCE,
            ERROR,
            event.at_ms,
            (event.member_id, event.client_id, event.client_host),
            f"group.instance.id {event.instance_id} is taken by another member: this one was fenced and stops consuming.",
            "Give every running consumer its own group.instance.id, and stop the old process before its replacement starts.",
            [ref(event)],
            instance_id=event.instance_id,
        )


def zombie_commit(g: Emitter, event: Event, removed: str) -> None:
    """A commit of a member that no longer owns what it commits. It was refused, but the work was done twice."""
    if event.kind in (OFFSET_COMMIT, TXN_OFFSET_COMMIT) and _first_time(g, ZOMBIE_COMMIT, event.member_id, event.generation):
        why = f" after its removal ({removed})" if removed else ""
        _tell(
            g,
            ZOMBIE_COMMIT,
            ERROR,
            event.at_ms,
            (event.member_id, event.client_id, event.client_host),
            f"The member tried to commit offsets with generation {event.generation}{why}: refused, what it processed will be "
            "processed again by the new owner.",
            "The application went on working after it had lost its partitions. Keep processing shorter than "
            "max.poll.interval.ms and stop on revocation; make processing idempotent.",
            [ref(event)],
            sent_generation=event.generation,
            error_code=event.error_code,
            api=event.kind,
            removed=removed or None,
        )


def model_divergence(g: Emitter, event: Event, predicted: dict[str, Any] | None, release: str) -> None:
    """The broker answered otherwise than the specification, which was asked the same (coordinator_model.group)."""
    observed = asked.observed(event)
    instead = "no answer at that time" if predicted is None else asked.in_words(predicted)
    _tell(
        g,
        MODEL_DIVERGENCE,
        WARNING,
        event.at_ms,
        (event.member_id or event.answer_member_id, event.client_id, event.client_host),
        f"The broker answered {event.kind} with {asked.in_words(observed)}; by the rules of Kafka {release} it is {instead}.",
        "If lines are missing from this log, or damaged, that is why. Otherwise the coordinator does not do what Kafka's code "
        "says: keep these lines for a report, and look at the broker's version, its clock and its disk.",
        [ref(event)],
        api=event.kind,
        release=release,
        observed=observed,
        predicted=predicted,
    )


def not_the_coordinator(g: Emitter, suspect: Suspect, found: Found, again: Ref) -> None:
    """A broker answered for a group that another one coordinates (Kafka: NOT_COORDINATOR)."""
    if not _first_time(g, MODEL_DIVERGENCE, suspect.broker, found.node):
        return
    _tell(
        g,
        MODEL_DIVERGENCE,
        ERROR,
        suspect.at_ms,
        (suspect.member_id, suspect.client_id, suspect.client_host),
        f"Broker {suspect.broker} (node {suspect.node}) answered {suspect.api} for the group, while FIND_COORDINATOR named node "
        f"{found.node} before and after: it should have answered NOT_COORDINATOR.",
        "Two brokers may hold the group's partition of __consumer_offsets for theirs: compare its leader in the metadata of both, and "
        "restart the one that is wrong. Members that were told different things process partitions twice.",
        [found.sign, suspect.sign, again],
        api=suspect.api,
        broker=suspect.broker,
        node=suspect.node,
        coordinator=found.node,
        observed={"error": asked.error_name(suspect.error_code)},
        predicted={"error": "NOT_COORDINATOR"},
    )


def coordinator_moved(g: Emitter, incident: Incident) -> None:
    """Another broker took the group over, or the one that has it could not hear its members for a while."""
    lost = sorted(set(incident.lost))
    if not incident.to_broker:
        what = f"Broker {g.view.broker}, the group's coordinator, was held up: another broker had gone, or its log could not be written."
    elif incident.from_broker == incident.to_broker:
        what = f"Broker {incident.to_broker} loaded the group anew."
    else:
        what = f"The group moved from broker {incident.from_broker} to broker {incident.to_broker}."
    cost = f" {len(lost)} of its members were not heard in time and lost their place." if lost else ""
    _tell(
        g,
        COORDINATOR_MOVED,
        WARNING,
        incident.moved_ms if incident.moved_ms >= 0 else incident.began_ms,
        ("", "", ""),
        what + cost,
        "Look at why the broker restarted, was lost or gave its partitions up. Members live through it if session.timeout.ms is longer "
        "than the move takes: 45 s, the default, is; a few seconds are not.",
        incident.signs,
        from_broker=incident.from_broker or g.view.broker,
        to_broker=incident.to_broker or g.view.broker,
        members_lost=lost,
    )
