"""Facts worth a person's time, in words that say what happened and what to change."""

from __future__ import annotations

import json
from typing import Any, Final

from coordinator_model.errors import Error
from coordinator_model.events import OFFSET_COMMIT, TXN_OFFSET_COMMIT, Event
from coordinator_model.tracker import asked
from coordinator_model.tracker.emit import Emitter
from coordinator_model.tracker.rows import FINDINGS, Ref, evidence_json, ref
from coordinator_model.tracker.view import Found, Incident, Member, Past, Rebalance, Suspect

SESSION_TIMEOUT: Final = "SESSION_TIMEOUT"
POLL_TIMEOUT: Final = "POLL_TIMEOUT"
ILLEGAL_GENERATION: Final = "ILLEGAL_GENERATION"
UNKNOWN_MEMBER: Final = "UNKNOWN_MEMBER"
FENCED_INSTANCE: Final = "FENCED_INSTANCE"
ZOMBIE_COMMIT: Final = "ZOMBIE_COMMIT"
MODEL_DIVERGENCE: Final = "MODEL_DIVERGENCE"
COORDINATOR_MOVED: Final = "COORDINATOR_MOVED"
SYNC_TIMEOUT: Final = "SYNC_TIMEOUT"
INCONSISTENT_PROTOCOL: Final = "INCONSISTENT_PROTOCOL"
INVALID_SESSION_TIMEOUT: Final = "INVALID_SESSION_TIMEOUT"
GROUP_TOO_LARGE: Final = "GROUP_TOO_LARGE"
SLOW_JOINER: Final = "SLOW_JOINER"
REBALANCE_STORM: Final = "REBALANCE_STORM"
ROLLING_RESTART: Final = "ROLLING_RESTART"
HEARTBEAT_NEAR_MISS: Final = "HEARTBEAT_NEAR_MISS"
IDLE_MEMBERS: Final = "IDLE_MEMBERS"
ASSIGNMENT_SKEW: Final = "ASSIGNMENT_SKEW"

INFO: Final = "INFO"
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


def was_refused(g: Emitter, member_id: str) -> bool:
    """Whether a finding tells that the member was refused since it went."""
    return any(who == member_id and code in (UNKNOWN_MEMBER, ZOMBIE_COMMIT, ILLEGAL_GENERATION) for code, who, _ in g.view.flagged)


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


def poll_timeout(g: Emitter, member: Member, at_ms: int, signs: list[Ref]) -> dict[str, Any]:
    """The client left by itself because poll() was not called within max.poll.interval.ms."""
    limit = member.rebalance_timeout_ms
    named = f" (max.poll.interval.ms {limit})" if limit >= 0 else ""
    return _row(
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


def sync_timeout(g: Emitter, member: Member, at_ms: int, signs: list[Ref]) -> None:
    """A member did not ask for its assignment within the rebalance timeout (expirePendingSync, Kafka 2.8+)."""
    limit = f" ({_seconds(member.rebalance_timeout_ms)})" if member.rebalance_timeout_ms >= 0 else ""
    _tell(
        g,
        SYNC_TIMEOUT,
        ERROR,
        at_ms,
        (member.member_id, member.client(), member.client_host),
        f"The member joined, and then did not send SyncGroup within the rebalance timeout{limit}: everybody waited, and had to join again.",
        "If it leads the group, its assignor takes too long: use a faster one, or fewer partitions and members. Otherwise the process "
        "stopped between joining and polling again. max.poll.interval.ms is the limit.",
        signs,
        rebalance_timeout_ms=member.rebalance_timeout_ms if member.rebalance_timeout_ms >= 0 else None,
    )


_REFUSALS: Final[dict[int, tuple[str, str, str, str]]] = {
    int(Error.INCONSISTENT_GROUP_PROTOCOL): (
        INCONSISTENT_PROTOCOL,
        ERROR,
        "The client cannot join: it has no assignor in common with the members, or another protocol type (INCONSISTENT_GROUP_PROTOCOL).",
        "Give all clients of the group one partition.assignment.strategy; to change it, roll twice, first with both strategies.",
    ),
    int(Error.INVALID_SESSION_TIMEOUT): (
        INVALID_SESSION_TIMEOUT,
        ERROR,
        "The client cannot join: its session.timeout.ms{session} is outside what the broker allows (INVALID_SESSION_TIMEOUT).",
        "Set session.timeout.ms between the broker's group.min.session.timeout.ms (6000 by default) and group.max.session.timeout.ms.",
    ),
    int(Error.GROUP_MAX_SIZE_REACHED): (
        GROUP_TOO_LARGE,
        ERROR,
        "The client cannot join: the group has as many members as group.max.size allows (GROUP_MAX_SIZE_REACHED).",
        "Run fewer consumers, no more than there are partitions, or raise group.max.size on the brokers.",
    ),
}


def refused_join(g: Emitter, event: Event) -> None:
    """A client that asks to join and may not, told once however often it asks (KIP-389 and others)."""
    code, severity, message, advice = _REFUSALS[event.error_code]
    if _first_time(g, code, f"{event.client_id} {event.client_host} {event.instance_id}", -1):
        session = f" ({event.session_timeout_ms})" if event.session_timeout_ms >= 0 else ""
        _tell(
            g,
            code,
            severity,
            event.at_ms,
            (event.member_id, event.client_id, event.client_host),
            message.format(session=session),
            advice,
            [ref(event)],
            session_timeout_ms=event.session_timeout_ms if event.session_timeout_ms >= 0 else None,
            protocols=[p.name for p in event.protocols],
        )


REFUSALS: Final = frozenset(_REFUSALS)


def slow_joiner(g: Emitter, rebalance: Rebalance, member_id: str, client_id: str, client_host: str, why: str, signs: list[Ref]) -> None:
    """One member kept all others waiting for the end of the join phase."""
    waited_ms = rebalance.joined_ms - rebalance.started_ms
    _tell(
        g,
        SLOW_JOINER,
        WARNING,
        rebalance.joined_ms,
        (member_id, client_id, client_host),
        f"The group waited {_seconds(waited_ms)} for this member: {why}.",
        "While one member has not rejoined, nobody's new assignment begins. Make its work between two polls shorter (max.poll.records), "
        "lower max.poll.interval.ms to what it really needs, or use the cooperative assignor, with which the others work on meanwhile.",
        signs,
        join_ms=waited_ms,
        generation=rebalance.generation,
    )


def rolling_restart(g: Emitter, burst: list[Past], restarted: list[str]) -> None:
    """Members were restarted one after the other: many rebalances, one act."""
    first, last = burst[0], burst[-1]
    _tell(
        g,
        ROLLING_RESTART,
        WARNING,
        first.started_ms,
        ("", "", ""),
        f"{len(restarted)} members were restarted one after the other: {len(burst)} rebalances in "
        f"{_seconds(last.started_ms - first.started_ms)}.",
        "Give every consumer a group.instance.id (static membership) and a session.timeout.ms longer than a restart: then a rolling "
        "restart causes no rebalance at all.",
        [past.sign for past in burst if past.sign is not None],
        rebalances=len(burst),
        span_ms=last.started_ms - first.started_ms,
        restarted=sorted(restarted),
    )


def rebalance_storm(g: Emitter, burst: list[Past], culprit: Past, count: int) -> None:
    """One member after the other comes and goes: the group does little else than rebalance."""
    first, last = burst[0], burst[-1]
    causes = sorted({past.cause for past in burst})
    who = culprit.client_id or culprit.client_host or "one client"
    _tell(
        g,
        REBALANCE_STORM,
        ERROR,
        first.started_ms,
        ("", culprit.client_id, culprit.client_host),
        f"{len(burst)} rebalances in {_seconds(last.started_ms - first.started_ms)}, {count} of them by {who} ({', '.join(causes)}).",
        "Stop the client that comes and goes, and look at why it ends: a crash loop, a failing health check, a record that it cannot "
        "process. Until then every consumer of the group is stopped again and again.",
        [past.sign for past in burst if past.sign is not None],
        rebalances=len(burst),
        by_culprit=count,
        span_ms=last.started_ms - first.started_ms,
        causes=causes,
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


def heartbeat_near_miss(g: Emitter, member: Member, event: Event, silent_ms: int) -> None:
    """A member was heard just before its session would have ended: told once for each of its generations."""
    if not _first_time(g, HEARTBEAT_NEAR_MISS, member.member_id, g.view.generation):
        return
    left_ms = member.session_timeout_ms - silent_ms
    _tell(
        g,
        HEARTBEAT_NEAR_MISS,
        WARNING,
        event.received_ms,
        (member.member_id, member.client(), member.client_host),
        f"The member was silent for {_seconds(silent_ms)} of its session timeout of {_seconds(member.session_timeout_ms)}: "
        f"{_seconds(left_ms)} more, and it would have been removed.",
        "Find out what held the process up (a pause of the JVM or the container, CPU limit, network), or raise session.timeout.ms "
        f"well above {silent_ms}; heartbeat.interval.ms is best a third of it or less.",
        [ref(event), *([member.last_sign] if member.last_sign else [])],
        silent_ms=silent_ms,
        session_timeout_ms=member.session_timeout_ms,
    )


def idle_members(g: Emitter, rebalance: Rebalance, idle: list[str], partitions: int) -> None:
    """Members that were assigned nothing: told once for each number of them."""
    members = len(rebalance.assigned or {})
    if not _first_time(g, IDLE_MEMBERS, f"{len(idle)} of {members}", partitions):
        return
    _tell(
        g,
        IDLE_MEMBERS,
        INFO,
        rebalance.ended_ms,
        ("", "", ""),
        f"{len(idle)} of {members} members have no partition: there are {partitions} to share.",
        "Members beyond the number of partitions only stand by. Run fewer of them, or add partitions if the work needs more consumers.",
        rebalance.evidence,
        idle=idle,
        members=members,
        partitions=partitions,
    )


def assignment_skew(g: Emitter, rebalance: Rebalance, shares: dict[str, int]) -> None:
    """One member has many times the partitions of another: told once for each such division."""
    least, most = min(shares.values()), max(shares.values())
    if not _first_time(g, ASSIGNMENT_SKEW, f"{least} to {most}", len(shares)):
        return
    busiest = min(member_id for member_id, count in shares.items() if count == most)
    known = g.view.members.get(busiest)
    _tell(
        g,
        ASSIGNMENT_SKEW,
        INFO,
        rebalance.ended_ms,
        (busiest, known.client() if known else "", known.client_host if known else ""),
        f"One member has {most} partitions, another {least}.",
        "The range assignor gives the first members one partition more of every topic, which adds up over many topics: use a sticky or "
        "the cooperative-sticky assignor.",
        rebalance.evidence,
        partitions=dict(sorted(shares.items())),
        assignor=rebalance.protocol,
    )
