"""Calm groups: the signs of life of their members wait until anything else happens in the group, or may happen.

While a group is calm (steady.py), a heartbeat or commit of a member moves nothing that anybody sees. So the shard keeps such signs beside
the packed view, joined to one run for each member, and unpacks the view once for many batches: at the first event of another kind, when
something falls due, or after KEEP_MS. What the group's events lead to does not depend on when they are handled.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Final

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Event
from coordinator_model.tracker.codec import Calm, Hearing
from coordinator_model.tracker.quiet import steady
from coordinator_model.view.emit import Emitter

KEEP_MS: Final = 30_000
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
    return Calm(view.broker, view.generation, members) if members else None


def keep(calm: Calm, events: Iterable[Event]) -> bool:
    """Lets events wait. `events`: in their order. False, and `calm` is used up: not all of them are signs that change nothing."""
    last = {sign.member_id: number for number, sign in enumerate(calm.signs)}
    for event in events:
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
        gaps = [event.received_ms - hearing.since_ms, *steady.gaps(event.beats)]
        if event.received_ms <= hearing.newest_ms or min(gaps) <= 0 or max(gaps) >= hearing.widest_ms:
            return False
        hearing.since_ms = hearing.newest_ms = steady.last_arrival_ms(event)
        number = last.get(event.member_id, -1)
        run = steady.joined(calm.signs[number], event) if number >= 0 else None
        if run is not None:
            calm.signs[number] = run
        else:
            last[event.member_id] = len(calm.signs)
            calm.signs.append(event)
    return True


def kept_until(group_id: str, at_ms: int) -> int:
    """When signs that wait since a time are handled at the latest. Groups take turns, so that batches take equally long."""
    return at_ms + KEEP_MS - zlib.crc32(group_id.encode()) % (KEEP_MS // 2)
