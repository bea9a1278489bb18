"""Steady stretches: while nothing happens in a group, the heartbeats of its members are taken at once.

A group is calm if it is Stable and nothing waits to be decided. Then an accepted heartbeat of the present generation moves nothing but its
member's session, in the view and in the specification. So of a run only the last beat matters, and the longest gap, as long as no
session comes near its end and nothing else falls due. `take` does for such runs what `GroupTracker.observe` does for each of their beats,
and leaves everything else to it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from operator import sub
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.diagnosis import bursts, departures, incidents
from coordinator_model.diagnosis.margins import NEAR_MISS
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.specification.timers import NEVER, SESSION
from coordinator_model.states import State
from coordinator_model.tracker import hindsight, membership, prediction, rebase
from coordinator_model.tracker.order import heartbeats, sort_key
from coordinator_model.view.emit import Emitter
from coordinator_model.view.rows import Ref
from coordinator_model.view.view import ObservedMember

_WIDEST_MS: Final = 300_000
"""A run with a longer gap is no run."""
_WINDOW_MS: Final = hindsight.HINDSIGHT_MS + hindsight.STEP_MS
"""A request waits for the specification no longer than this."""

_POSITION: Final = Event._fields.index("position")  # then come at_ms and received_ms
_RECEIVED: Final = Event._fields.index("received_ms")
_CORRELATION: Final = Event._fields.index("correlation_id")
_BEATS: Final = Event._fields.index("beats")  # then come positions

_Taken = tuple[Event, int]
"""A run, and how many of its beats are taken."""


def as_runs(event: Event) -> list[Event]:
    """A row of heartbeats as runs whose beats may be taken at once; beat by beat where it has other heartbeats."""
    is_accepted = event.error_code == Error.NONE and event.source == kinds.REQUEST_SOURCE and len(event.beats) == len(event.positions) > 0
    if is_accepted and event.at_ms - event.received_ms <= kinds.PROMPT_MS:
        gaps = [*_gaps(event, len(event.beats))]
        if not gaps or (min(gaps) > 0 and max(gaps) <= _WIDEST_MS):
            # A prompt answer counts at the arrival of its request. The correlation id is known of the first of a run only.
            return [_changed(event, event.received_ms, event.position, event.beats, event.positions)]
    return heartbeats(event)


def is_run(event: Event) -> bool:
    """Whether an event is one of `as_runs` with accepted heartbeats."""
    is_beat = event.kind == kinds.HEARTBEAT and event.error_code == Error.NONE and event.at_ms == event.received_ms
    return is_beat and event.source == kinds.REQUEST_SOURCE and 0 < len(event.beats) == len(event.positions)


def last_ms(event: Event) -> int:
    """The time of the last beat of a run, or of any other event."""
    return event.at_ms + event.beats[-1] if event.beats else event.at_ms


def split(run: Event, at_ms: int) -> tuple[Event | None, Event | None]:
    """The beats of a run before a time, and those since."""
    count = bisect_left(run.beats, at_ms - run.received_ms)
    if not count or count == len(run.beats):
        return (run, None) if count else (None, run)
    first = run.received_ms + run.beats[count]
    base = run.beats[count]
    since = tuple([beat - base for beat in run.beats[count:]])
    before = _changed(run, run.received_ms, run.position, run.beats[:count], run.positions[:count])
    return before, _changed(run, first, run.positions[count], since, run.positions[count:])


def beat(run: Event, number: int) -> Event:
    """One beat of a run as an event of its own."""
    position = run.positions[number]
    return _changed(run, run.received_ms + run.beats[number], position, (0,), (position,))


def _changed(run: Event, at_ms: int, position: int, beats: tuple[int, ...], positions: tuple[int, ...]) -> Event:
    """The run with other beats. As `_replace`, in a fifth of its time."""
    head, middle, tail = run[:_POSITION], run[_RECEIVED + 1 : _CORRELATION], run[_CORRELATION + 1 : _BEATS]
    return Event._make((*head, position, at_ms, at_ms, *middle, -1, *tail, beats, positions, *run[_BEATS + 2 :]))


def take(g: Emitter, runs: list[Event], until_ms: int) -> tuple[list[Event], Event | None]:
    """Takes beats before `until_ms`, as many as can be taken at once. Returns what is left of the runs, and the last beat taken."""
    if not _is_calm(g):
        return runs, None
    due = [incidents.next_ms(g), departures.next_ms(g), bursts.next_ms(g)]
    until = min([until_ms, *(at_ms for at_ms in due if at_ms is not None)])
    while True:
        taken = [(run, count) for run in runs if (count := bisect_left(run.beats, until - run.received_ms))]
        taken.sort(key=lambda one: (one[0].received_ms, one[0].member_id))
        if not taken:
            return runs, None
        bound = _bound_ms(g, taken, until)
        if bound >= until:
            break
        until = bound
    _hand_to_specification(g, taken)
    for run, count in taken:
        _renew(g.view.members[run.member_id], run, count)
    last = max(last_of(run, count) for run, count in taken)
    g.view.last_ok_ms = max(g.view.last_ok_ms, last)
    rest = [left for run in runs if last_ms(run) >= until and (left := split(run, until)[1]) is not None]
    return rest, max((beat(run, count - 1) for run, count in taken if last_of(run, count) == last), key=sort_key)


def last_of(run: Event, count: int) -> int:
    """The time of the last of the first `count` beats of a run."""
    return run.received_ms + run.beats[count - 1]


def _is_calm(g: Emitter) -> bool:
    """Whether the group is Stable and nothing but time can make anything happen."""
    view = g.view
    if view.open is not None or view.closing or view.state is not State.STABLE or view.consumer_protocol or not view.broker:
        return False
    found = view.found_coordinator
    if found is not None and [broker for broker, node in view.nodes.items() if node == found.node] != [view.broker]:
        return False
    p = view.prediction
    if p.crossed or p.parked or any(not _waits_quietly(event, view.generation) for event in p.queue):
        return False
    made = p.generations.get(view.generation)
    if made is not None and made.joined_ms > min(p.oldest_ms, view.last_ok_ms):
        return False
    if p.group is None:
        return not (p.since_ms < 0 and 1 in p.generations) and rebase.begun(g) is None
    group = p.group
    return group.state is State.STABLE and group.generation == view.generation and group.version.one_session_timer_per_member


def _waits_quietly(event: Event, generation: int) -> bool:
    """Whether a request that waits for the specification is a heartbeat like those of runs."""
    is_prompt = event.kind == kinds.HEARTBEAT and event.error_code == Error.NONE and event.at_ms == event.received_ms
    return is_prompt and event.generation == generation


def _bound_ms(g: Emitter, taken: Sequence[_Taken], until_ms: int) -> int:
    """The time before which all these beats can be taken at once; `until_ms` if they all can."""
    view, group = g.view, g.view.prediction.group
    bound = until_ms
    last: dict[str, int] = {}
    for run, count in taken:
        if not _fits(g, run, count, last.get(run.member_id)):
            return run.received_ms
        last[run.member_id] = last_of(run, count)
    room = hindsight.CAPACITY - len(view.prediction.queue)
    if sum(count for _, count in taken) > room and sum(_waiting(run, count) for run, count in taken) > room:
        return taken[0][0].received_ms
    if not view.logged:
        for member_id, member in view.members.items():
            deadline = member.deadline_ms()
            if member_id in last and member.session_timeout_ms >= 0:
                deadline = last[member_id] + member.session_timeout_ms
            if deadline >= 0:
                bound = min(bound, deadline + g.settings.grace_ms + 1)
    if group is not None:
        for (kind, member_id, _), deadline in group.timers.deadlines.items():
            if kind != SESSION or member_id not in last:
                bound = min(bound, deadline)
    return bound


def _fits(g: Emitter, run: Event, count: int, last: int | None) -> bool:
    """Whether these beats do nothing but renew their member's session. `last`: the beat of the member before, if it is taken with them."""
    view, group = g.view, g.view.prediction.group
    member = view.members.get(run.member_id)
    if member is None or run.broker != view.broker or run.generation != view.generation:
        return False
    limit = member.session_timeout_ms
    since = last if last is not None else max(member.renewed_ms, member.busy_ms)
    if not member.sessions_seen or member.renewed_ms < 0 or run.received_ms <= max(since, member.seen_ms, member.beat_ms):
        return False
    if limit > 0 and max(run.received_ms - since, _widest(run, count)) >= NEAR_MISS * limit:
        return False
    if group is None:
        return True
    if limit <= 0 or group.validate_member(run.member_id, run.instance_id or None) is not Error.NONE:
        return False
    return group.timers.deadlines.get((SESSION, run.member_id, 0), -1) > member.renewed_ms


def _waiting(run: Event, count: int) -> int:
    """How many beats of a run may wait for the specification at the same time, at most."""
    return min(count, _WINDOW_MS // max(1, _narrowest(run)) + 1)


def _renew(member: ObservedMember, run: Event, count: int) -> None:
    """The beats renew the session of their member (`membership.renew`, for each)."""
    last, position = last_of(run, count), run.positions[count - 1]
    membership.learn(member, run)
    widest = _widest(run, count)
    if member.seen_ms >= 0:
        widest = max(widest, run.received_ms - max(member.seen_ms, member.busy_ms))
    member.longest_gap_ms = max(member.longest_gap_ms, widest)
    member.seen_ms = member.renewed_ms = member.beat_ms = last
    membership.note_alive(member, last)
    member.last_sign = Ref(run.source, run.origin, position)
    member.heartbeats += count


def _hand_to_specification(g: Emitter, taken: Sequence[_Taken]) -> None:
    """What `prediction.observe` and `prediction.advance` do: the specification handles beats once they have waited long enough."""
    p = g.view.prediction
    now_ms = max(last_of(run, count) for run, count in taken)
    ripe_before = hindsight.step(now_ms) - hindsight.HINDSIGHT_MS
    handled = [event for event in p.queue if event.at_ms < ripe_before]
    waiting = [event for event in p.queue if event.at_ms >= ripe_before]
    last: dict[str, tuple[int, str]] = {}
    total = len(handled)
    for event in handled:
        last[event.member_id] = max(last.get(event.member_id, (-1, "")), (event.at_ms, event.connection))
    for run, count in taken:
        ripe = min(count, bisect_left(run.beats, ripe_before - run.received_ms))
        waiting += [beat(run, number) for number in range(ripe, count)]
        if ripe:
            last[run.member_id] = last_of(run, ripe), run.connection
            total += ripe
    waiting.sort(key=sort_key)
    p.queue = waiting
    p.ripe_ms = min((event.at_ms for event in waiting), default=NEVER) + hindsight.HINDSIGHT_MS + 1
    p.oldest_ms = min((event.received_ms for event in waiting), default=NEVER)
    if p.group is not None and last:
        in_order = sorted((at_ms, connection, member_id) for member_id, (at_ms, connection) in last.items())
        prediction.handle_heartbeats(p, p.group, [(member_id, at_ms) for at_ms, _, member_id in in_order], total)


def _gaps(run: Event, count: int) -> Iterable[int]:
    return map(sub, run.beats[1:count], run.beats)


def _widest(run: Event, count: int) -> int:
    """The longest time between two of the first `count` beats of a run."""
    return max(_gaps(run, count), default=0)


def _narrowest(run: Event) -> int:
    """The shortest time between two beats of a run; a long time for a single beat."""
    return min(_gaps(run, len(run.beats)), default=_WIDEST_MS)
