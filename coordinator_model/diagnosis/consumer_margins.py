"""Findings about members of the consumer protocol (KIP-848) that nearly ran out of time, were away for long, or have nothing to do."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import consumer_catalogue
from coordinator_model.diagnosis.findings import NOBODY, emit, first_time, row, seconds
from coordinator_model.diagnosis.incidents import hold_back
from coordinator_model.diagnosis.margins import NEAR_MISS
from coordinator_model.events import Event
from coordinator_model.view.consumer_view import ConsumerMember, ConsumerView
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import Ref, ref

SESSION_TIMEOUT_MS: Final = 45_000
"""group.consumer.session.timeout.ms, unless the broker or the group has another one."""
LONG_AWAY_MS: Final = 15_000
"""Three heartbeat intervals: partitions that nobody reads for longer are worth a look."""
RESOLVED_MS: Final = 15_000
"""Expressions are resolved at most 10 s after they are new; the next heartbeat brings the partitions."""


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
    is_seen = view.expired_after_ms >= 0
    words = {
        "silence": seconds(silent_ms),
        "limit": f"this group removed a member after {seconds(limit_ms)}" if is_seen else "the session timeout is 45 s by default",
    }
    signs = [ref(event), *([member.last_sign] if member.last_sign is not None else [])]
    client = member.member_id, member.client_id, member.client_host
    details = {"silent_ms": silent_ms, "session_timeout_ms": limit_ms, "session_timeout_seen": is_seen}
    text = consumer_catalogue.HEARTBEAT_NEAR_MISS
    hold_back(g, since_ms, row(g, text, event.received_ms, client, signs, words, generation=view.epoch, **details))


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
    words = {
        "away": seconds(away_ms),
        "meanwhile": "Nobody read its partitions meanwhile." if count is None else f"Partitions that nobody read meanwhile: {count}.",
    }
    client = member.member_id, member.client_id, member.client_host
    details = {"instance_id": member.instance_id, "away_ms": away_ms, "partitions": count, "came_back": came_back or None}
    before = member.epoch if member.epoch >= 0 else view.epoch - 1  # its removal raised the epoch
    emit(g, text, at_ms, client, signs, words, generation=view.epoch if came_back else before, **details)


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
