"""Facts worth a person's time, in words that say what happened and what to change."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from coordinator_model.diagnosis import advice, compared_answers
from coordinator_model.errors import Error
from coordinator_model.events import OFFSET_COMMIT, TXN_OFFSET_COMMIT, Event
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import FINDINGS, Ref, evidence_json, ref
from coordinator_model.view.view import EndedMembership, FoundCoordinator, Incident, ObservedMember, PastRebalance, Rebalance, Suspect

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


def session_timeout(g: Emitter, member: ObservedMember, at_ms: int, signs: list[Ref]) -> dict[str, Any]:
    """The coordinator heard nothing of a member for its session timeout (onExpireHeartbeat). To be told unless a broker is why."""
    silence = at_ms - member.seen_ms if member.seen_ms >= 0 else None
    limit = f" (session.timeout.ms {member.session_timeout_ms})" if member.session_timeout_ms >= 0 else ""
    heard = f"; last heard {advice.seconds(silence)} before" if silence is not None else ""
    return _row(
        g,
        SESSION_TIMEOUT,
        ERROR,
        at_ms,
        (member.member_id, member.client(), member.client_host),
        f"The coordinator removed the member because it heard no heartbeat within the session timeout{limit}{heard}.",
        "Find out what stopped the process or its network at that time (crash, SIGKILL, long pause of the JVM or the "
        "container, CPU limit). Let a planned stop call close(), so that the member leaves at once. If it only paused, "
        f"session.timeout.ms{advice.now(member.session_timeout_ms)} must be longer than the pause{advice.usual(member)}.",
        signs,
        session_timeout_ms=advice.known(member.session_timeout_ms),
        silent_ms=silence,
        longest_gap_before_ms=advice.known(member.longest_gap_ms),
    )


def poll_timeout(g: Emitter, member: ObservedMember, at_ms: int, signs: list[Ref]) -> dict[str, Any]:
    """The client left by itself because poll() was not called within max.poll.interval.ms. A static one does not leave (KIP-345)."""
    limit = member.rebalance_timeout_ms
    went = "stopped its heartbeats, being static," if member.instance_id else "left the group"
    named = f" (max.poll.interval.ms {limit})" if limit >= 0 else ""
    return _row(
        g,
        POLL_TIMEOUT,
        ERROR,
        at_ms,
        (member.member_id, member.client(), member.client_host),
        f"The client {went} because the application did not call poll() within its limit{named}.",
        "Make the work between two polls shorter (lower max.poll.records, move slow calls off the polling thread) or raise "
        f"max.poll.interval.ms{advice.now(limit)} above the longest processing time.",
        signs,
        max_poll_interval_ms=advice.known(limit),
    )


def with_poll_gap(row: dict[str, Any], limit_ms: int, gap_ms: int, sign: Ref) -> dict[str, Any]:
    """A POLL_TIMEOUT whose client has polled again: for how long it had not, and what that asks for. `sign`: it joins anew."""
    told = [Ref(**one) for one in json.loads(row["evidence"])]
    went, _, _ = row["message"].partition(" because ")
    details = {**json.loads(row["details"]), "poll_gap_ms": gap_ms}
    return {
        **row,
        "message": f"{went} because the application did not call poll() for about {advice.seconds(gap_ms)}; "
        f"max.poll.interval.ms is {limit_ms}.",
        "advice": f"Raise max.poll.interval.ms above {gap_ms}, or make the work between two polls shorter: move slow calls off the polling "
        f"thread, or, if the time goes by the number of records, set max.poll.records to less than {max(100 * limit_ms // gap_ms, 1)} % "
        "of what it is.",
        "evidence": evidence_json([*told, sign]),
        "details": json.dumps(details, sort_keys=True, separators=(",", ":"), ensure_ascii=False),
    }


def sync_timeout(g: Emitter, member: ObservedMember, at_ms: int, signs: list[Ref], *, led: bool) -> None:
    """A member did not ask for its assignment within the rebalance timeout (expirePendingSync, Kafka 2.8+)."""
    limit = f" ({advice.seconds(member.rebalance_timeout_ms)})" if member.rebalance_timeout_ms >= 0 else ""
    _tell(
        g,
        SYNC_TIMEOUT,
        ERROR,
        at_ms,
        (member.member_id, member.client(), member.client_host),
        f"The {'leader' if led else 'member'} joined, and then did not send SyncGroup within the rebalance timeout{limit}: everybody "
        "waited, and had to join again.",
        (
            "It led the group, so its assignor took too long, or its process stopped: use a faster assignor, or fewer partitions and "
            f"members, or raise max.poll.interval.ms{advice.now(member.rebalance_timeout_ms)} above what the assignment takes."
            if led
            else "Its process stopped between joining and polling again: find out why. All wait for max.poll.interval.ms"
            f"{advice.now(member.rebalance_timeout_ms)} at most; a lower one shortens the wait."
        ),
        signs,
        rebalance_timeout_ms=advice.known(member.rebalance_timeout_ms),
        leader=led,
    )


_REFUSALS: Final[dict[int, tuple[str, Callable[[Emitter, Event], tuple[str, str]]]]] = {
    int(Error.INCONSISTENT_GROUP_PROTOCOL): (INCONSISTENT_PROTOCOL, advice.inconsistent_protocol),
    int(Error.INVALID_SESSION_TIMEOUT): (INVALID_SESSION_TIMEOUT, advice.session_refused),
    int(Error.GROUP_MAX_SIZE_REACHED): (GROUP_TOO_LARGE, advice.too_large),
}


def refused_join(g: Emitter, event: Event) -> None:
    """A client that asks to join and may not, told once however often it asks (KIP-389 and others)."""
    code, words = _REFUSALS[event.error_code]
    if _first_time(g, code, f"{event.client_id} {event.client_host} {event.instance_id}", -1):
        message, what_to_do = words(g, event)
        _tell(
            g,
            code,
            ERROR,
            event.at_ms,
            (event.member_id, event.client_id, event.client_host),
            message,
            what_to_do,
            [ref(event)],
            session_timeout_ms=advice.known(event.session_timeout_ms),
            protocols=[p.name for p in event.protocols],
        )


REFUSALS: Final = frozenset(_REFUSALS)


def slow_joiner(
    g: Emitter, rebalance: Rebalance, member_id: str, client_id: str, client_host: str, why: str, signs: list[Ref], limit_ms: int
) -> None:
    """One member kept all others waiting for the end of the join phase. `limit_ms`: its max.poll.interval.ms, -1 if not known."""
    waited_ms = rebalance.joined_ms - rebalance.started_ms
    _tell(
        g,
        SLOW_JOINER,
        WARNING,
        rebalance.joined_ms,
        (member_id, client_id, client_host),
        f"The group waited {advice.seconds(waited_ms)} for this member: {why}.",
        "A member rejoins when it polls, and until then nobody's new assignment begins. Make its work between two polls shorter "
        f"(max.poll.records), lower max.poll.interval.ms{advice.now(limit_ms)} to what it really needs: nobody is waited for longer. With "
        "the cooperative assignor the others work on meanwhile.",
        signs,
        join_ms=waited_ms,
        generation=rebalance.generation,
        max_poll_interval_ms=advice.known(limit_ms),
    )


def rolling_restart(g: Emitter, burst: list[PastRebalance], restarted: list[str]) -> None:
    """Members were restarted one after the other: many rebalances, one act."""
    first, last = burst[0], burst[-1]
    longest = advice.longest_restart_ms(burst)
    _tell(
        g,
        ROLLING_RESTART,
        WARNING,
        first.started_ms,
        ("", "", ""),
        f"{len(restarted)} members were restarted one after the other: {len(burst)} rebalances in "
        f"{advice.seconds(last.started_ms - first.started_ms)}{advice.bill_in_words(burst)}.",
        "Give every consumer a group.instance.id (static membership) and a session.timeout.ms longer than a restart"
        + (f", which took up to {advice.seconds(longest)} here" if longest >= 0 else "")
        + ": then a rolling restart causes no rebalance at all.",
        [past.sign for past in burst if past.sign is not None],
        rebalances=len(burst),
        span_ms=last.started_ms - first.started_ms,
        restarted=sorted(restarted),
        longest_restart_ms=advice.known(longest),
        **advice.bill(burst),
    )


def rebalance_storm(g: Emitter, burst: list[PastRebalance], culprit: PastRebalance, count: int) -> None:
    """One member after the other comes and goes: the group does little else than rebalance."""
    first, last = burst[0], burst[-1]
    causes = sorted({past.cause for past in burst})
    counted = Counter(past.cause for past in burst)
    common = max(causes, key=lambda cause: counted[cause])
    who = culprit.client_id or culprit.client_host or "one client"
    _tell(
        g,
        REBALANCE_STORM,
        ERROR,
        first.started_ms,
        ("", culprit.client_id, culprit.client_host),
        f"{len(burst)} rebalances in {advice.seconds(last.started_ms - first.started_ms)}, {count} of them by {who}, mostly {common} "
        f"({counted[common]}){advice.bill_in_words(burst)}.",
        advice.against_storm(common) + " Until then every consumer of the group is stopped again and again.",
        [past.sign for past in burst if past.sign is not None],
        rebalances=len(burst),
        by_culprit=count,
        span_ms=last.started_ms - first.started_ms,
        causes=causes,
        common_cause=common,
        **advice.bill(burst),
    )


def illegal_generation(g: Emitter, event: Event) -> None:
    """A member spoke with a generation that is not the group's (validateClassicGroup…: ILLEGAL_GENERATION)."""
    member = g.view.members.get(event.member_id)
    if _first_time(g, ILLEGAL_GENERATION, event.member_id, event.generation):
        _tell(
            g,
            ILLEGAL_GENERATION,
            WARNING,
            event.at_ms,
            (event.member_id, event.client_id, event.client_host),
            f"{event.kind} with generation {event.generation} was refused: the group had moved on"
            + (f" to generation {g.view.generation}." if g.view.generation > event.generation else "."),
            "The member missed a rebalance: a member must poll, and so rejoin, within max.poll.interval.ms"
            f"{advice.now(member.rebalance_timeout_ms if member is not None else -1)} of its begin. Look at what held it up: a stalled "
            "poll loop or a paused process.",
            [ref(event)],
            api=event.kind,
            sent_generation=event.generation,
        )


def unknown_member(g: Emitter, event: Event, gone: EndedMembership | None) -> None:
    """A client spoke as a member that the group does not have. `gone`: its membership as it ended, if seen."""
    if _first_time(g, UNKNOWN_MEMBER, event.member_id, -1):
        why, what_to_do = advice.after_removal(gone, event)
        _tell(
            g,
            UNKNOWN_MEMBER,
            WARNING,
            event.at_ms,
            (event.member_id, event.client_id, event.client_host),
            f"{event.kind} was refused: the member id is not, or no longer, in the group.{why}",
            f"The client still ran after the group had given it up, and others had its partitions meanwhile. {what_to_do}",
            [ref(event), *([gone.sign] if gone is not None and gone.sign else [])],
            api=event.kind,
            removed=gone.kind if gone is not None else None,
            removed_ms_ago=event.received_ms - gone.at_ms if gone is not None else None,
        )


def fenced_instance(g: Emitter, event: Event) -> None:
    """Two clients use one group.instance.id: the older one is fenced (KIP-345)."""
    holder = next((m for m in g.view.members.values() if m.instance_id == event.instance_id != "" and m.member_id != event.member_id), None)
    whose = f": {holder.client() or holder.member_id}" + (f" at {holder.client_host}" if holder.client_host else "") if holder else ""
    if _first_time(g, FENCED_INSTANCE, f"{event.instance_id} {event.member_id}", -1):
        _, client_id, client_host = g.view.identity(event.member_id)  # the coordinator's line names the member alone
        _tell(
            g,
            FENCED_INSTANCE,
            ERROR,
            event.at_ms,
            (event.member_id, event.client_id or client_id, event.client_host or client_host),
            f"group.instance.id {event.instance_id} is taken by another member{whose}. This one was fenced and stops consuming.",
            "Give every running consumer its own group.instance.id, and stop the old process before its replacement starts.",
            [ref(event)],
            instance_id=event.instance_id,
            holder=holder.member_id if holder else None,
        )


def zombie_commit(g: Emitter, event: Event, gone: EndedMembership | None) -> None:
    """A commit of a member that no longer owns what it commits. It was refused, but the work was done twice."""
    if event.kind in (OFFSET_COMMIT, TXN_OFFSET_COMMIT) and _first_time(g, ZOMBIE_COMMIT, event.member_id, event.generation):
        why = f" after its removal ({gone.kind})" if gone is not None else ""
        _, what_to_do = advice.after_removal(gone, event)
        _tell(
            g,
            ZOMBIE_COMMIT,
            ERROR,
            event.at_ms,
            (event.member_id, event.client_id, event.client_host),
            f"The member tried to commit offsets with generation {event.generation}{why}: refused, what it processed will be "
            "processed again by the new owner.",
            f"The application went on working after it had lost its partitions: make its processing idempotent. {what_to_do}",
            [ref(event), *([gone.sign] if gone is not None and gone.sign else [])],
            sent_generation=event.generation,
            error_code=event.error_code,
            api=event.kind,
            removed=gone.kind if gone is not None else None,
        )


def model_divergence(g: Emitter, event: Event, predicted: dict[str, Any] | None, release: str) -> None:
    """The broker answered otherwise than the specification, which was asked the same (coordinator_model.group)."""
    observed = compared_answers.observed(event)
    instead = "no answer at that time" if predicted is None else compared_answers.in_words(predicted)
    _tell(
        g,
        MODEL_DIVERGENCE,
        WARNING,
        event.at_ms,
        (event.member_id or event.answer_member_id, event.client_id, event.client_host),
        f"The broker answered {event.kind} with {compared_answers.in_words(observed)}; by the rules of Kafka {release} it is {instead}.",
        "If lines are missing from this log, or damaged, that is why. Otherwise the coordinator does not do what Kafka's code "
        "says: keep these lines for a report, and look at the broker's version, its clock and its disk.",
        [ref(event)],
        api=event.kind,
        release=release,
        observed=observed,
        predicted=predicted,
    )


def not_the_coordinator(g: Emitter, suspect: Suspect, found: FoundCoordinator, again: Ref) -> None:
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
        observed={"error": compared_answers.error_name(suspect.error_code)},
        predicted={"error": "NOT_COORDINATOR"},
    )


def coordinator_moved(g: Emitter, incident: Incident) -> None:
    """Another broker took the group over, or the one that has it could not hear its members for a while."""
    lost = sorted(set(incident.lost))
    if not incident.to_broker:
        what = f"Broker {g.view.broker}, the group's coordinator, was held up: another broker had gone, or its log could not be written."
    else:
        what = f"The group moved from broker {incident.from_broker} to broker {incident.to_broker}."
    limits = sorted({old.session_timeout_ms for old in g.view.ended if old.member_id in lost and old.session_timeout_ms >= 0})
    cost = f" {len(lost)} of its members were not heard in time and lost their place." if lost else ""
    _tell(
        g,
        COORDINATOR_MOVED,
        WARNING,
        incident.moved_ms if incident.moved_ms >= 0 else incident.began_ms,
        ("", "", ""),
        what + cost,
        "Look at why the broker restarted, was lost or gave its partitions up. Members live through it if session.timeout.ms is longer "
        "than the move takes: "
        + (f"{' and '.join(map(str, limits))} was not" if lost and limits else "a few seconds are not")
        + ", 45000, the default, mostly is.",
        incident.signs,
        from_broker=incident.from_broker or g.view.broker,
        to_broker=incident.to_broker or g.view.broker,
        members_lost=lost,
        session_timeouts_ms=limits,
    )


def heartbeat_near_miss(g: Emitter, member: ObservedMember, event: Event, silent_ms: int) -> None:
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
        f"The member was silent for {advice.seconds(silent_ms)} of its session timeout of {advice.seconds(member.session_timeout_ms)}: "
        f"{advice.seconds(left_ms)} more, and it would have been removed.",
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
        f"Members beyond the number of partitions only stand by. Run {partitions} of them, or have at least {members} partitions if the "
        "work needs more consumers.",
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
        (
            "The range assignor gives the first members one partition more of every topic, which adds up over many topics: set "
            "partition.assignment.strategy to the sticky or the cooperative-sticky assignor."
            if rebalance.protocol == "range"
            else f"The assignor ({rebalance.protocol or 'not known'}) spreads evenly what all subscribe to: look whether these members "
            "subscribe to the same topics."
        ),
        rebalance.evidence,
        partitions=dict(sorted(shares.items())),
        assignor=rebalance.protocol,
    )
