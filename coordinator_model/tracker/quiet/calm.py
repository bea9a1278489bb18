"""Calm groups: the signs of life of their members wait until anything else happens in the group, or may happen.

While a group is calm (steady.py), a heartbeat or commit of a member moves nothing that anybody sees. So the shard keeps such signs beside
the packed view and unpacks it once for many batches: at the first event of another kind, when something falls due, or after KEEP_MS. Plain
heartbeats wait as numbers (numbers.py), others as one run for each member. What the group's events lead to does not depend on when they
are handled, so signs wait here even if their broker's log was not read past them.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.group_beats import GroupBeats, Run
from coordinator_model.tracker.codec import Calm, Hearing
from coordinator_model.tracker.quiet import steady
from coordinator_model.tracker.quiet.numbers import Numbers, renews, runs_of
from coordinator_model.view.emit import Emitter

KEEP_MS: Final = 60_000
"""Signs wait no longer than this, in log time."""


def calm(g: Emitter) -> Calm | None:
    """How a group is while only signs of life of these members come. None: the next event may be about anything."""
    if not steady.is_calm(g):
        return None
    view, group = g.view, g.view.prediction.group
    members = {}
    for member_id, member in view.members.items():
        widest = int(steady.widest_ms(member, group))
        is_valid = group is None or group.validate_member(member_id, member.instance_id or None) is Error.NONE
        if steady.is_heard(member) and widest and is_valid:
            since = steady.silent_since_ms(member)
            members[member_id] = Hearing(member.instance_id, widest, since, max(since, member.seen_ms, member.beat_ms))
    if not members:
        return None
    now_ms = view.horizon_ms
    awaited = {member_id for member_id, hearing in members.items() if hearing.since_ms + hearing.widest_ms > now_ms}
    return Calm(view.broker, view.generation, members, due_ms=steady.next_ms(g, awaited), since_ms=now_ms)


def next_ms(calm: Calm) -> int:
    """When a calm group is to be handled, if no more signs come. A member that is awaited may be missed before its session ends."""
    sessions = [hearing.since_ms + hearing.widest_ms for hearing in calm.members.values()]
    due = [calm.due_ms, *(at_ms for at_ms in sessions if at_ms > calm.since_ms)]
    return min(due) if calm.until_ms < 0 else min(calm.until_ms, *due)


def keep(calm: Calm, events: Collection[Event], beats: Sequence[GroupBeats]) -> bool:
    """Lets signs of life wait, which come in any order. False, and `calm` is used up: something else came, or one changes something."""
    numbers = Numbers(calm)
    last = {sign.member_id: number for number, sign in enumerate(calm.signs)}
    signs: Iterable[Event | Run] = chain.from_iterable(group.runs() for group in beats)
    if events or len(beats) > 1:  # in one piece the runs of a member are in order
        signs = sorted(chain(events, signs), key=_place)
    for sign in signs:
        if isinstance(sign, Run):
            if numbers.take(sign):
                continue
            sign = sign.event()  # noqa: PLW2901 - the same sign
        if not _waits(calm, sign, last):
            return False
    numbers.store()
    return True


def _place(sign: Event | Run) -> tuple[int, int]:
    return (sign.arrivals[0], sign.positions[0]) if isinstance(sign, Run) else (sign.received_ms, sign.position)


def _waits(calm: Calm, event: Event, last: dict[str, int]) -> bool:
    """Lets an event wait. `last`: the place of each member's last sign. False: it is no sign, or changes something."""
    hearing = calm.members.get(event.member_id)
    if (
        hearing is None
        or not steady.is_sign(event)
        or event.kind == kinds.CONSUMER_GROUP_HEARTBEAT
        or event.instance_id != hearing.instance_id
    ):
        return False
    if (event.broker, event.generation) != (calm.broker, calm.generation):
        return False
    if not renews(hearing, [event.received_ms + beat for beat in event.beats] or [event.received_ms]):
        return False
    number = last.get(event.member_id, -1)
    run = steady.joined(calm.signs[number], event) if number >= 0 else None
    if run is not None:
        calm.signs[number] = run
    else:
        last[event.member_id] = len(calm.signs)
        calm.signs.append(event)
    return True


def waiting(calm: Calm) -> list[Event]:
    """The signs of life that wait."""
    return [*calm.signs, *(run.event() for run in runs_of(calm))]


def begin(calm: Calm, group_id: str, at_ms: int) -> None:
    """A sign of this time begins to wait, if none waits yet. Groups take turns to be handled, so that batches take equally long."""
    if calm.until_ms < 0:
        calm.until_ms = at_ms + KEEP_MS - zlib.crc32(group_id.encode()) % (KEEP_MS // 2)
