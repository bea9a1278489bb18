"""Steady stretches: while nothing happens in a group, the signs of life of its members are taken at once.

A sign of life is an accepted heartbeat or commit that was answered soon. A group is calm if it is Stable and nothing waits to be decided.
Then a sign of the present generation moves nothing but its member's session, in the view and in the specification. So only the last sign
of a member matters, and the longest gap, as long as no session comes near its end and nothing else falls due. `take` does for such signs
what `GroupTracker.observe` does for each of them, and leaves everything else to it.

Heartbeats come as runs: one event with many beats. A commit is an event of its own, and counts when it was answered, like any request.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final, NamedTuple

from coordinator_model import events as kinds
from coordinator_model.diagnosis import bursts, departures, incidents
from coordinator_model.diagnosis.margins import NEAR_MISS
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.timers import NEVER, SESSION
from coordinator_model.states import State
from coordinator_model.tracker import closing, expiry, hindsight, membership, prediction, rebase
from coordinator_model.tracker.codec import Hearing
from coordinator_model.tracker.order import sort_key
from coordinator_model.tracker.quiet import runs
from coordinator_model.view.emit import Emitter
from coordinator_model.view.members import ObservedMember
from coordinator_model.view.rows import ref
from coordinator_model.view.view import Prediction, View

WINDOW_MS: Final = hindsight.HINDSIGHT_MS + hindsight.STEP_MS
"""A request waits for the specification no longer than this."""


class _Series(NamedTuple):
    """The signs of one member that are taken."""

    signs: list[Event]
    """Where a field of them differs, the last one counts."""
    times: list[int]
    """When each counts, ascending."""
    arrivals: list[int]
    """When each arrived."""


def take(g: Emitter, signs: list[Event], until_ms: int) -> tuple[list[Event], Event | None]:
    """Takes signs before `until_ms`, as many as can be taken at once, in a calm group. Returns what is left, and the last event taken."""
    until = min(until_ms, incidents.next_ms(g), departures.next_ms(g), bursts.next_ms(g))
    heard = {member_id for member_id, member in g.view.members.items() if is_heard(member)}
    until = min([until, *(sign.at_ms for sign in signs if sign.member_id not in heard or sign.kind == kinds.CONSUMER_GROUP_HEARTBEAT)])
    while True:
        now, rest = runs.divided(signs, until)
        if not now:
            return rest, None
        taken = _taken(now)
        bound = _bound_ms(g, taken, until)
        if bound >= until:
            break
        until = bound
    _hand_to_specification(g, taken)
    for member_id, series in taken.items():
        _renew(g.view.members[member_id], series)
    g.view.last_ok_ms = max([g.view.last_ok_ms, *(runs.last_ms(sign) for sign in now if sign.beats)])
    last = max(map(runs.last_ms, now))
    return rest, max((runs.last_of(sign) for sign in now if runs.last_ms(sign) == last), key=sort_key)


def is_calm(g: Emitter) -> bool:
    """Whether the group is Stable and nothing but time can make anything happen."""
    view = g.view
    if view.open is not None or view.closing or view.state is not State.STABLE or view.consumer_protocol or not view.broker:
        return False
    if view.silences or not is_at_home(view):  # the next heartbeat may show that one before had waited
        return False
    p = view.prediction
    made = p.generations.get(view.generation)
    arrived_since = made is None or made.joined_ms <= min([view.last_ok_ms, *(event.received_ms for event in p.queue)])
    if p.crossed or p.parked or not arrived_since or any(not _waits_quietly(event, view.generation) for event in p.queue):
        return False
    if p.group is None:
        return not (p.since_ms < 0 and 1 in p.generations) and rebase.begun(g) is None
    group = p.group
    if group.state is not State.STABLE or group.generation != view.generation or not group.version.one_session_timer_per_member:
        return False
    senders = {(event.member_id, event.instance_id) for event in p.queue}
    return all(group.validate_member(member_id, instance_id or None) is Error.NONE for member_id, instance_id in senders)


def next_ms(g: Emitter, besides: Collection[str] = ()) -> int:
    """Of a calm group: when something falls due, whatever signs of life come. NEVER: nothing does.

    `besides`: members whose sessions do not count.
    """
    others = g.view.members.keys() - besides
    found = min(closing.next_ms(g), incidents.next_ms(g), departures.next_ms(g), bursts.next_ms(g), expiry.next_of(g, others))
    prediction = g.view.prediction
    return found if prediction.group is None else min(found, _timers_bound_ms(prediction.queue, prediction.group, {}, besides))


def is_at_home(view: View) -> bool:
    """Whether no answer of the group's broker can show that another one coordinates it."""
    found = view.found_coordinator
    return found is None or [broker for broker, node in view.nodes.items() if node == found.coordinator_id] == [view.broker]


def _waits_quietly(event: Event, generation: int) -> bool:
    """Whether a request that waits for the specification is a sign of life of the present generation."""
    return event.generation == generation and runs.is_sign(event)


def _taken(signs: Iterable[Event]) -> dict[str, _Series]:
    """The signs by member."""
    by_member: dict[str, list[Event]] = {}
    for sign in signs:
        by_member.setdefault(sign.member_id, []).append(sign)
    return {member_id: _series(own) for member_id, own in by_member.items()}


def _series(signs: list[Event]) -> _Series:
    if len(signs) > 1:
        signs.sort(key=lambda sign: (runs.last_ms(sign), sign.received_ms))
    times = [sign.received_ms + beat for sign in signs for beat in sign.beats]
    commits = [(sign.at_ms, sign.received_ms) for sign in signs if not sign.beats]
    if not commits:
        times.sort()
        return _Series(signs, times, times)
    moments = sorted([*zip(times, times, strict=True), *commits])
    return _Series(signs, [at_ms for at_ms, _ in moments], [received_ms for _, received_ms in moments])


def _bound_ms(g: Emitter, taken: dict[str, _Series], until_ms: int) -> int:
    """The time before which all these signs can be taken at once; `until_ms` if they all can."""
    view, group = g.view, g.view.prediction.group
    bound = min([_fits_until(g, member_id, series, until_ms) for member_id, series in taken.items()])
    if bound < until_ms:
        return bound
    room = hindsight.CAPACITY - len(view.prediction.queue)
    if sum(len(s.times) for s in taken.values()) > room and sum(map(_waiting, taken.values())) > room:
        return min(series.times[0] for series in taken.values())
    if not view.logged:
        for member_id, member in view.members.items():
            deadline = member.deadline_ms()
            if member_id in taken and member.session_timeout_ms >= 0:
                deadline = taken[member_id].arrivals[-1] + member.session_timeout_ms
            if deadline >= 0:
                bound = min(bound, deadline + g.settings.grace_ms + 1)
    return bound if group is None else min(bound, _timers_bound_ms(view.prediction.queue, group, taken))


def _timers_bound_ms(queue: Iterable[Event], group: ClassicGroup, taken: dict[str, _Series], besides: Collection[str] = frozenset()) -> int:
    """The time before which no timer of the specification ends if it handles the requests that wait, all of them signs, and these.

    `besides`: members whose sessions do not count.
    """
    arrivals: dict[str, list[int]] = {}
    for event in queue:
        arrivals.setdefault(event.member_id, []).append(event.received_ms)
    for member_id, series in taken.items():
        arrivals.setdefault(member_id, []).extend(series.arrivals)
    bound = NEVER
    for (kind, member_id, _), deadline in group.timers.deadlines.items():
        ends_ms = deadline
        if kind == SESSION and member_id in besides:
            continue
        if kind == SESSION and member_id in group.members:
            limit = group.members[member_id].session_timeout_ms
            for arrival_ms in sorted(arrivals.get(member_id, ())):
                if arrival_ms < ends_ms:
                    ends_ms = arrival_ms + limit
        bound = min(bound, ends_ms)
    return bound


def _fits_until(g: Emitter, member_id: str, series: _Series, until_ms: int) -> int:
    """The time before which these signs do nothing but renew their member's session; `until_ms` if they all do."""
    view, group = g.view, g.view.prediction.group
    member = view.members[member_id]
    signs, times, arrivals = series
    for sign in signs:
        is_valid = group is None or group.validate_member(member_id, sign.instance_id or None) is Error.NONE
        present = (view.broker, view.generation, signs[0].connection)
        if not is_valid or (sign.broker, sign.generation, sign.connection) != present:
            return sign.at_ms
    widest = widest_ms(member, group)
    pauses = [arrivals[0] - silent_since_ms(member) if arrivals[0] > max(member.seen_ms, member.beat_ms) else 0, *runs.gaps(arrivals)]
    if min(pauses) > 0 and max(pauses) < widest:
        return until_ms
    return next(at_ms for at_ms, pause in zip(times, pauses, strict=True) if not 0 < pause < widest)


def is_heard(member: ObservedMember) -> bool:
    """Whether requests of a member are logged, and renew its session."""
    return member.sessions_seen and member.renewed_ms >= 0


def silent_since_ms(member: ObservedMember) -> int:
    """Since when nothing was heard of a member."""
    return max(member.renewed_ms, member.busy_ms)


def widest_ms(member: ObservedMember, group: ClassicGroup | None) -> float:
    """The gap from which on signs of a member are no calm: a near miss, or any where the specification knows no session of its.

    A follower that joins a Stable group again with the same protocols may name another session timeout. Kafka keeps the one that it has
    (GroupMetadataManager.classicGroupJoinExistingMember).
    """
    limit = member.session_timeout_ms
    if group is not None and member.member_id in group.members:
        own = group.members[member.member_id].session_timeout_ms
        limit = min(limit, own) if limit > 0 else limit
    return NEAR_MISS * limit if limit > 0 else NEVER if group is None else 0


def _waiting(series: _Series) -> int:
    """How many of these signs may wait for the specification at the same time, at most."""
    return min(len(series.times), WINDOW_MS // max(1, min(runs.gaps(series.arrivals), default=runs.WIDEST_MS)) + 1)


def _renew(member: ObservedMember, series: _Series) -> None:
    """The signs renew the session of their member (`membership.renew`, for each)."""
    membership.note_gap(member, series.arrivals[0])
    member.longest_gap_ms = max([member.longest_gap_ms, *runs.gaps(series.arrivals)])
    for sign in series.signs:
        membership.learn(member, sign)
        if sign.beats:
            member.take_beats(sign.received_ms, runs.last_ms(sign), len(sign.beats))
        else:
            member.commit_ms = max(member.commit_ms, sign.received_ms)
    member.last_sign = ref(runs.last_of(series.signs[-1]))
    member.seen_ms = member.renewed_ms = series.arrivals[-1]
    membership.note_alive(member, series.arrivals[-1])


def _hand_to_specification(g: Emitter, taken: dict[str, _Series]) -> None:
    """What `prediction.observe` and `prediction.close_due` do: the specification handles signs once they have waited long enough."""
    p = g.view.prediction
    signs = [*p.queue, *(sign for series in taken.values() for sign in series.signs)]
    ripe_before = hindsight.step(max(series.times[-1] for series in taken.values())) - hindsight.HINDSIGHT_MS
    # Who arrives after a commit that is not ripe waits behind it.
    until = min([ripe_before - 1, *(sign.received_ms for sign in signs if sign.at_ms >= ripe_before)])
    ripe, waiting = runs.divided([sign for sign in signs if sign.beats], until + 1)
    for commit in (sign for sign in signs if not sign.beats):
        (ripe if commit.at_ms < ripe_before and commit.received_ms <= until else waiting).append(commit)
    hindsight.keep(p, sorted(runs.one_by_one(waiting), key=sort_key))
    _renew_sessions(p, map(runs.last_of, ripe), sum(len(sign.beats) or 1 for sign in ripe))


def _renew_sessions(p: Prediction, signs: Iterable[Event], total: int) -> None:
    """Lets the specification handle so many signs, of which the last ones of each member are among these."""
    places = sorted((sign.received_ms, sign.at_ms, sign.connection, sign.correlation_id, sign.kind, sign.member_id) for sign in signs)
    if p.group is not None and places:
        last = {place[-1]: place for place in places}
        in_order = [(member_id, received_ms) for received_ms, *_, member_id in sorted(last.values())]
        prediction.take_signs_of_life(p, p.group, in_order, total)


def take_counted(view: View, counted: Collection[tuple[Hearing, Event]]) -> None:
    """What `take` does, for heartbeats that members have counted: of each member the last one is given.

    Whatever waits for the specification came before. All of these are signs, too, and ripe by now.
    """
    p = view.prediction
    signs = [*p.queue, *(event for _, event in counted)]
    total = len(p.queue) + sum(heard.count for heard, _ in counted)
    hindsight.keep(p, [])
    _renew_sessions(p, signs, total)
    for heard, event in counted:
        member = view.members[event.member_id]
        membership.note_gap(member, heard.first_ms)
        member.longest_gap_ms = max(member.longest_gap_ms, heard.gap_ms)
        member.take_beats(heard.first_ms, event.at_ms, heard.count - 1)
        member.renewed_ms = event.at_ms
        _renew(member, _Series([event], [event.at_ms], [event.at_ms]))
    view.last_ok_ms = max([view.last_ok_ms, *(event.at_ms for _, event in counted)])
