"""Findings that are no fault yet: members that nearly ran out of time, were away for long, have no partitions, or many more than others."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import catalogue, consumer_catalogue, incidents
from coordinator_model.diagnosis.findings import NOBODY, emit, first_time, seconds
from coordinator_model.diagnosis.kinds.settings import SINK_TASK, STREAMS_ASSIGNOR
from coordinator_model.events import Event
from coordinator_model.view.consumer_view import ConsumerMember, ConsumerView
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import ObservedMember
from coordinator_model.view.rebalance import Rebalance
from coordinator_model.view.rows import Ref, ref
from coordinator_model.view.view import Silence

NEAR_MISS: Final = 0.8
"""Share of its session timeout that a member was silent for. Healthy clients use a third of it."""

SKEW_FACTOR: Final = 3
SKEW_AT_LEAST: Final = 6
"""A member has many more partitions than another if it has three times as many, and at least six more."""
SESSION_TIMEOUT_MS: Final = 45_000
"""group.consumer.session.timeout.ms, unless the broker or the group has another one."""
LONG_AWAY_MS: Final = 15_000
"""Three heartbeat intervals: partitions that nobody reads for longer are worth a look."""
RESOLVED_MS: Final = 15_000
"""Expressions are resolved at most 10 s after they are new; the next heartbeat brings the partitions."""


def check_heartbeat(g: Emitter, member: ObservedMember, event: Event) -> None:
    """Reports an accepted heartbeat that came just before the session would have ended, once for each generation of a member."""
    limit_ms, silent_ms = member.session_timeout_ms, event.received_ms - max(member.renewed_ms, member.busy_ms)
    if member.renewed_ms < 0 or limit_ms <= 0 or not member.sessions_seen or g.view.open is not None:
        return
    if not NEAR_MISS * limit_ms <= silent_ms < limit_ms:
        return
    signs = [ref(event), *([member.last_sign] if member.last_sign else [])]
    told = {"generation": g.view.generation, "signs": signs, "silent_ms": silent_ms}
    incidents.hold_back(g, Silence(**member.shared() | told, at_ms=event.received_ms, seen_ms=member.seen_ms))


def check_assignment(g: Emitter, rebalance: Rebalance) -> None:
    """Reports how a rebalance divided the partitions: members without any, or one with many more than another."""
    of_tasks = rebalance.of_connect or rebalance.protocol == STREAMS_ASSIGNOR
    if of_tasks or not rebalance.assigned or not any(rebalance.assigned.values()) or g.view.aftermath.revoked:
        return  # connectors and tasks, which differ in weight; unknown; nothing to share; a cooperative round that another one follows
    shares = {member_id: len(partitions) for member_id, partitions in rebalance.assigned.items()}
    idle = sorted(member_id for member_id, count in shares.items() if count == 0)
    least, most = min(shares.values()), max(shares.values())
    if idle and len(shares) > sum(shares.values()):
        _idle_members(g, rebalance, idle, sum(shares.values()))
    elif most >= SKEW_FACTOR * least and most - least >= SKEW_AT_LEAST:
        _skew(g, rebalance, shares, least, most)


def _idle_members(g: Emitter, rebalance: Rebalance, idle: list[str], partitions: int) -> None:
    """Once for each number of them."""
    members = len(rebalance.assigned or {})
    if first_time(g, catalogue.IDLE_MEMBERS, f"{len(idle)} of {members}", partitions):
        details = {"idle": idle, "members": members, "partitions": partitions}
        words = {"count": len(idle), "have": "has" if len(idle) == 1 else "have"}
        text = catalogue.IDLE_TASKS if all(member_id.startswith(SINK_TASK) for member_id in idle) else catalogue.IDLE_MEMBERS
        emit(g, text, rebalance.ended_ms, NOBODY, rebalance.evidence, words, generation=rebalance.generation, **details)


def _skew(g: Emitter, rebalance: Rebalance, shares: dict[str, int], least: int, most: int) -> None:
    """Once for each such division."""
    if first_time(g, catalogue.ASSIGNMENT_SKEW, f"{least} to {most}", len(shares)):
        busiest = min(member_id for member_id, count in shares.items() if count == most)
        member = g.view.members.get(busiest)
        client = member.client() if member is not None else (busiest, "", "")
        remedy = catalogue.SKEW_OF_RANGE if rebalance.protocol == "range" else catalogue.SKEW_OF_OTHERS
        words = {"least": least, "most": most, "remedy": remedy.format(assignor=rebalance.protocol or "not known")}
        details = {"partitions": dict(sorted(shares.items())), "assignor": rebalance.protocol}
        generation = rebalance.generation
        emit(g, catalogue.ASSIGNMENT_SKEW, rebalance.ended_ms, client, rebalance.evidence, words, generation=generation, **details)


def check_silence(g: Emitter, view: ConsumerView, member: ConsumerMember, event: Event) -> None:
    """Reports an accepted heartbeat that came just before the session would have ended, once for each epoch of a member.

    No line has the session timeout. It is what members of this group were removed after, else Kafka's default, unless a member of the
    group survived a longer silence.
    """
    since_ms = silent_since_ms(view, member)
    if member.heard_ms < 0 or member.away_ms >= 0 or event.generation <= 0:
        return
    silent_ms = event.received_ms - since_ms
    view.survived_ms = max(view.survived_ms, silent_ms)
    limit_ms = _limit_ms(view)
    if not NEAR_MISS * limit_ms <= silent_ms < limit_ms or view.survived_ms >= limit_ms:
        return
    signs = [ref(event), *([member.last_sign] if member.last_sign is not None else [])]
    told = {"generation": view.epoch, "signs": signs, "silent_ms": silent_ms, "session_timeout_ms": limit_ms, "of_group": True}
    near = Silence(**member.shared() | told, at_ms=event.received_ms, seen_ms=since_ms, limit_seen=view.expired_after_ms >= 0)
    incidents.hold_back(g, near)


def silent_since_ms(view: ConsumerView, member: ConsumerMember) -> int:
    """Since when a member has sent nothing, or its session began anew."""
    return max(member.heard_ms, member.tried_ms, view.loaded_ms)


def usual_ms(view: ConsumerView) -> float:
    """A silence that is shorter is no near miss."""
    return NEAR_MISS * _limit_ms(view)


def _limit_ms(view: ConsumerView) -> int:
    return view.expired_after_ms if view.expired_after_ms >= 0 else SESSION_TIMEOUT_MS


def learn_session_timeout(view: ConsumerView, member: ConsumerMember, at_ms: int) -> None:
    """The coordinator logged that a session ended, which shows the session timeout. That of a classic member is its own."""
    if member.session_timeout_ms >= 0:
        return
    since_ms = max(member.heard_ms, view.loaded_ms)
    if member.heard_ms >= 0 and at_ms > since_ms:
        known_ms = view.expired_after_ms
        view.expired_after_ms = at_ms - since_ms if known_ms < 0 else min(known_ms, at_ms - since_ms)


def long_away(g: Emitter, view: ConsumerView, member: ConsumerMember, at_ms: int, signs: list[Ref], *, came_back: bool) -> None:
    """Reports a static member that was away for long, or whose session ended before it came back."""
    away_ms = at_ms - member.away_ms
    if came_back and away_ms < LONG_AWAY_MS:
        return
    count = len(member.partitions) if member.partitions is not None else None
    text = consumer_catalogue.STATIC_MEMBER_AWAY if came_back else consumer_catalogue.STATIC_MEMBER_GONE
    # GroupMetadataManager.consumerGroupStaticMemberGroupLeave renews no session.
    unheard_ms = at_ms - (member.heard_ms if 0 <= member.heard_ms < member.away_ms else member.away_ms)
    words = {
        "away": seconds(away_ms),
        "unheard": seconds(unheard_ms),
        "meanwhile": "Nobody read its partitions in the meantime." if count is None else f"Partitions unread in the meantime: {count}.",
    }
    details = {"instance_id": member.instance_id, "away_ms": away_ms, "partitions": count, "came_back": came_back or None}
    details |= {} if came_back else {"unheard_ms": unheard_ms}
    before = member.epoch if member.epoch >= 0 else view.epoch - 1  # its removal raised the epoch
    emit(g, text, at_ms, member.client(), signs, words, generation=view.epoch if came_back else before, **details)


def check_expressions(g: Emitter, view: ConsumerView, event: Event) -> None:
    """Reports regular expressions that match no topic: all members have nothing else, and nobody has a partition, long after they were new.

    If one of them matched a topic, one of its members would have that partition.
    """
    members = view.members.values()
    if view.episode is not None or not view.complete or not members:
        return
    if any(not one.regex or one.topics or one.partitions is None or one.partitions or one.regex_ms < 0 for one in members):
        return
    span_ms = event.received_ms - max(one.regex_ms for one in members)
    expressions = ", ".join(sorted({one.regex or "" for one in members}))
    if span_ms >= RESOLVED_MS and first_time(g, consumer_catalogue.REGEX_WITHOUT_TOPICS, expressions, -1):
        signs = [ref(event), *(one.last_sign for one in members if one.last_sign is not None)]
        words = {"expressions": expressions, "span": seconds(span_ms)}
        text, details = consumer_catalogue.REGEX_WITHOUT_TOPICS, {"members": len(view.members), "without_partitions_ms": span_ms}
        emit(g, text, event.received_ms, NOBODY, signs, words, generation=view.epoch, **details)
