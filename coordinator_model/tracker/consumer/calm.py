"""Calm stretches of groups of the consumer protocol: while nothing changes, the steady heartbeats of all members are taken at once.

A steady heartbeat is accepted and says nothing new. Its answer has the epoch that the member had, and no assignment. While no rebalance
runs it moves nothing but what is known of its member: when it was heard, how often, and its longest gap. A commit moves nothing.
`take` does for a stretch what `heartbeats.take` does for each of them, as tracker/quiet/steady.py does for classic groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from coordinator_model import events as kinds
from coordinator_model.diagnosis import margins
from coordinator_model.events import Event
from coordinator_model.tracker.consumer import members, prediction
from coordinator_model.tracker.order import sort_key
from coordinator_model.tracker.quiet import runs, steady
from coordinator_model.view.consumer_view import ConsumerMember, ConsumerView
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import ref


def is_calm(g: Emitter) -> bool:
    """Whether no rebalance runs and nothing waits for the next line."""
    view = g.view.consumer
    if view is None or not view.heard or view.episode is not None or view.changes or not steady.is_at_home(g.view):
        return False
    if g.view.silences or view.given_up is not None or any(gone.gone_signs for gone in view.gone):
        return False  # the next heartbeat may show why a member departed, that one before had waited, or who coordinates the group
    return any(not one.regex or one.topics or one.partitions for one in view.members.values())  # else expressions may match no topic


def take(g: Emitter, signs: Sequence[Event], until_ms: int) -> tuple[list[Event], Event | None]:
    """Takes signs before `until_ms`, as many as can be taken at once, in a calm group. Returns what is left, and the last event taken."""
    view = g.view.consumer
    assert view is not None
    departed: dict[str, int] = {}
    for gone in view.gone:
        departed[gone.member_id] = max(gone.gone_ms, departed.get(gone.member_id, -1))
    of_others = (sign.at_ms for sign in signs if not _is_steady(g, view, sign) or sign.received_ms <= departed.get(sign.member_id, -1))
    until = min([until_ms, *of_others])
    while True:
        taken, rest = runs.divided(signs, until)
        by_member: dict[str, list[Event]] = {}
        for run in (sign for sign in taken if sign.beats):
            by_member.setdefault(run.member_id, []).append(run)
        times = {member_id: sorted(_arrivals(runs)) for member_id, runs in by_member.items()}
        again = min((_unusual_ms(view, view.members[member_id], own, until) for member_id, own in times.items()), default=until)
        if again >= until:
            break
        until = again
    prediction.take_steady(view, sum(map(len, times.values())))
    for member_id, own in by_member.items():
        _note_heard(view, view.members[member_id], own, times[member_id])
    return rest, max(map(runs.last_of, taken), key=sort_key, default=None)


def _is_steady(g: Emitter, view: ConsumerView, sign: Event) -> bool:
    if not sign.beats:
        return sign.broker == g.view.broker  # a commit
    member = view.members.get(sign.member_id)
    if sign.kind != kinds.CONSUMER_GROUP_HEARTBEAT or member is None or sign.instance_id not in ("", member.instance_id):
        return False
    if member.away_ms >= 0 or member.heard_ms < 0:
        return False
    return sign.generation == member.epoch <= view.epoch and sign.heartbeat_interval_ms != 0


def _arrivals(runs: Iterable[Event]) -> Iterable[int]:
    return (run.received_ms + beat for run in runs for beat in run.beats)


def _unusual_ms(view: ConsumerView, member: ConsumerMember, times: Sequence[int], until_ms: int) -> int:
    """When a heartbeat comes that may be a copy of the one before it, or long after it; `until_ms` if none does."""
    widest = margins.usual_ms(view)
    for before, later in pairwise((margins.silent_since_ms(view, member), *times)):
        if later <= max(before, member.heard_ms) or (later - before >= widest and before >= 0):
            return later
    return until_ms


def _note_heard(view: ConsumerView, member: ConsumerMember, own: list[Event], times: Sequence[int]) -> None:
    own.sort(key=lambda run: sort_key(runs.last_of(run)))
    for run in own:
        members.learn(member, run)
    silences = pairwise((margins.silent_since_ms(view, member), *times))
    view.survived_ms = max([view.survived_ms, *(later - before for before, later in silences)])
    gaps = pairwise((member.heard_ms, *times))
    member.longest_gap_ms = max([member.longest_gap_ms, *(later - before for before, later in gaps)])
    member.heard_ms, member.heartbeats, member.last_sign = times[-1], member.heartbeats + len(times), ref(runs.last_of(own[-1]))
    member.caught_up, member.classic = view.frees, False
