"""Calm groups: the signs of life of their members wait until anything else happens in the group, or may happen.

While a group is calm (steady.py), a heartbeat or commit of a member moves nothing that anybody sees. So the shard keeps such signs beside
the packed view and unpacks it at the first event of another kind, or when something falls due. Heartbeats wait as numbers (numbers.py),
commits as the events that they are. After KEEP_MS the numbers are counted, member by member; commits are handled. What the group's events
lead to does not depend on when they are handled, so signs wait here even if their broker's log was not read past them.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.group_beats import GroupBeats, Run, run_of
from coordinator_model.tracker import hindsight
from coordinator_model.tracker.codec import Calm, Hearing
from coordinator_model.tracker.quiet import runs, steady
from coordinator_model.tracker.quiet.numbers import Numbers, last_counted, renews, runs_of
from coordinator_model.view.emit import Emitter
from coordinator_model.view.view import View

KEEP_MS: Final = 60_000
"""Signs wait no longer than this, in log time."""


def calm(g: Emitter) -> Calm | None:
    """How a group is while only signs of life of these members come. None: the next event may be about anything."""
    view, group = g.view, g.view.prediction.group
    if not steady.is_calm(g) or steady.next_ms(g) <= view.horizon_ms:  # a request that waits may have come after its session had ended
        return None
    members = {}
    for member_id, member in view.members.items():
        widest = int(steady.widest_ms(member, group))
        is_valid = group is None or group.validate_member(member_id, member.instance_id or None) is Error.NONE
        if steady.is_heard(member) and widest and is_valid:
            newest_ms = max(member.renewed_ms, member.busy_ms, member.seen_ms, member.beat_ms)
            # Since the request, not since its answer: the session of the specification starts with it.
            members[member_id] = Hearing(member.instance_id, widest, member.renewed_ms, newest_ms)
    if not members:
        return None
    now_ms = view.horizon_ms
    awaited = {member_id for member_id, hearing in members.items() if hearing.since_ms + hearing.widest_ms > now_ms}
    due_ms, queued = steady.next_ms(g, awaited), len(view.prediction.queue)
    return Calm(view.broker, view.generation, members, due_ms=due_ms, since_ms=now_ms, queued=queued)


def next_ms(calm: Calm) -> int:
    """When a calm group is to be handled, if no more signs come. A member that is awaited may be missed before its session ends."""
    sessions = [hearing.since_ms + hearing.widest_ms for hearing in calm.members.values()]
    due = [calm.due_ms, *(at_ms for at_ms in sessions if at_ms > calm.since_ms)]
    return min(due) if calm.until_ms < 0 else min(calm.until_ms, *due)


def keep(calm: Calm, events: Iterable[Event], beats: Sequence[GroupBeats], horizon_ms: int) -> bool:
    """Lets signs of life wait, which come in any order. False, and `calm` is used up: something else came, or one changes something.

    `horizon_ms`: all signs before are there.
    """
    counts = calm.until_ms <= horizon_ms
    if counts and calm.commits:
        return False
    numbers = Numbers(calm, horizon_ms - steady.WINDOW_MS if counts else -1)
    signs: Iterable[Event | Run] = chain.from_iterable(group.runs() for group in beats)
    others = [run_of(event) or event for event in events]
    if others or len(beats) > 1:  # in one piece the runs of a member are in order
        signs = sorted(chain(others, signs), key=_place)
    for sign in signs:
        if not numbers.take(sign) if isinstance(sign, Run) else counts or not _waits(calm, sign):
            return False
    numbers.store()
    if not counts:
        return True
    calm.until_ms = -1
    return _fit_the_queue(calm)


def _fit_the_queue(calm: Calm) -> bool:
    """Whether the requests that waited for the specification at the same time were never too many for it to follow the group."""
    return calm.queued + len(calm.members) * (steady.WINDOW_MS // calm.least_ms + 1) <= hindsight.CAPACITY


def _place(sign: Event | Run) -> tuple[int, int]:
    return (sign.arrivals[0], sign.positions[0]) if isinstance(sign, Run) else (sign.received_ms, sign.position)


def _waits(calm: Calm, event: Event) -> bool:
    """Lets a commit wait. False: it is none, or changes something."""
    hearing = calm.members.get(event.member_id)
    if hearing is None or event.kind != kinds.OFFSET_COMMIT or not runs.is_sign(event) or event.instance_id != hearing.instance_id:
        return False
    if (event.broker, event.generation) != (calm.broker, calm.generation) or not renews(hearing, [event.received_ms]):
        return False
    calm.commits.append(event)
    return True


def waiting(calm: Calm) -> list[Event]:
    """The signs of life that wait."""
    return [*calm.commits, *(run.event() for run in runs_of(calm))]


def catch_up(view: View, calm: Calm) -> None:
    """Brings a view to where the signs that wait come next."""
    counted = [(hearing, run.event()) for hearing, run in last_counted(calm)]
    if counted:
        steady.take_counted(view, counted)


def begin(calm: Calm, group_id: str, at_ms: int) -> None:
    """A sign of this time begins to wait, if none waits yet. Groups take turns to be handled, so that batches take equally long."""
    if calm.until_ms < 0:
        calm.until_ms = at_ms + KEEP_MS - zlib.crc32(group_id.encode()) % (KEEP_MS // 2)
