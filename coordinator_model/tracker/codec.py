"""The tracker's state as bytes.

Records are written field by field, in the order of their classes, as MessagePack arrays: compact, and free of names that
could change. A version stands in front; a change of any record's fields is a new version, and `Shard.decode` keeps reading
the older ones.
"""

from __future__ import annotations

from typing import Any, Final

import msgpack

from coordinator_model.events import Assignment, Event, MemberEntry, Protocol
from coordinator_model.specification import codec as model_codec
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.states import State
from coordinator_model.tracker.rebase import rules
from coordinator_model.view.clock import BrokerClock
from coordinator_model.view.rows import Ref
from coordinator_model.view.settings import TrackerSettings
from coordinator_model.view.view import (
    EndedMembership,
    FoundCoordinator,
    Generation,
    Incident,
    ObservedMember,
    PastRebalance,
    PendingFinding,
    PollStall,
    Prediction,
    Rebalance,
    RebalanceTrigger,
    Suspect,
    UndecidedDeparture,
    View,
)

MODEL_VERSION: Final = 3
READABLE: Final = frozenset({1, 2, 3})
"""1: without the fields of `View` from `nodes` on. 2: without `BrokerClock.followed` and groups
that are idle. Fields are only ever added, behind the others: what an older version lacks is as if new."""


def pack(data: object) -> bytes:
    """Any nesting of records, lists, dicts and plain values."""
    return bytes(msgpack.packb(data, default=_fields))


def unpack(blob: bytes) -> Any:
    """Plain lists, dicts and values; the functions below turn them back into records."""
    return msgpack.unpackb(blob, strict_map_key=False)


def view(data: list[Any], settings: TrackerSettings) -> View:
    """A group's view."""
    restored = View(*data)
    restored.state = None if restored.state is None else State(restored.state)
    restored.members = {member_id: _member(m) for member_id, m in restored.members.items()}
    restored.gone = [_gone(g) for g in data[_GONE]]
    restored.loose = [_signed(RebalanceTrigger(*t)) for t in data[_LOOSE]]
    restored.open = None if data[_OPEN] is None else _rebalance(data[_OPEN])
    restored.closing = [_rebalance(r) for r in data[_CLOSING]]
    restored.flagged = [(code, member_id, generation) for code, member_id, generation in restored.flagged]
    if len(data) > _PREDICTION:
        restored.found = None if data[_FOUND] is None else _signed(FoundCoordinator(*data[_FOUND]))
        restored.suspect = None if data[_SUSPECT] is None else _signed(Suspect(*data[_SUSPECT]))
        restored.incident = None if data[_INCIDENT] is None else _incident(data[_INCIDENT])
        restored.undecided = [UndecidedDeparture(*u) for u in data[_UNDECIDED]]
        restored.burst = [_signed(PastRebalance(*b)) for b in data[_BURST]]
        restored.held = [PendingFinding(*h) for h in data[_HELD]]
        restored.prediction = _prediction(data[_PREDICTION], settings)
    restored.stalled = [PollStall(*s) for s in data[_STALLED]] if len(data) > _STALLED else []
    return restored


def clock(data: list[Any]) -> BrokerClock:
    """A broker's clock."""
    restored = BrokerClock(*data)
    restored.elections = {at_ms: Ref(*line) for at_ms, line in restored.elections.items()}
    return restored


def event(data: list[Any]) -> Event:
    """An event that waits."""
    # Most of all that is decoded are heartbeats, which have none of these.
    if data[_PROTOCOLS] or data[_MEMBERS] or data[_ASSIGNMENTS]:
        data[_PROTOCOLS] = [Protocol(n, None if t is None else tuple(t), tuple(o), d) for n, t, o, d in data[_PROTOCOLS]]
        data[_MEMBERS] = [MemberEntry(m, i, e, r, None if t is None else tuple(t)) for m, i, e, r, t in data[_MEMBERS]]
        data[_ASSIGNMENTS] = [Assignment(m, None if p is None else tuple(p), d) for m, p, d in data[_ASSIGNMENTS]]
    for index in _TUPLES:
        data[index] = tuple(data[index])
    return Event(*data)


_TUPLES: Final = tuple(map(Event._fields.index, ("protocols", "members", "assignments", "beats", "positions")))
_PROTOCOLS, _MEMBERS, _ASSIGNMENTS, *_ = _TUPLES
_VIEW_FIELDS: Final = tuple(View.__slots__)
_GONE: Final = _VIEW_FIELDS.index("gone")
_LOOSE: Final = _VIEW_FIELDS.index("loose")
_OPEN: Final = _VIEW_FIELDS.index("open")
_CLOSING: Final = _VIEW_FIELDS.index("closing")
_ASKED, _PARKED, _CROSSED, _BEFORE, _GENERATIONS = map(
    tuple(Prediction.__slots__).index, ("asked", "parked", "crossed", "before", "generations")
)
_FOUND: Final = _VIEW_FIELDS.index("found")
_SUSPECT: Final = _VIEW_FIELDS.index("suspect")
_INCIDENT: Final = _VIEW_FIELDS.index("incident")
_UNDECIDED: Final = _VIEW_FIELDS.index("undecided")
_BURST: Final = _VIEW_FIELDS.index("burst")
_HELD: Final = _VIEW_FIELDS.index("held")
_PREDICTION: Final = _VIEW_FIELDS.index("prediction")
_STALLED: Final = _VIEW_FIELDS.index("stalled")
_TRIGGERS: Final = tuple(Rebalance.__slots__).index("triggers")


def _fields(record: Any) -> Any:
    if isinstance(record, ClassicGroup):
        return model_codec.encode(record)
    return tuple(getattr(record, name) for name in record.__slots__)


def _member(data: Any) -> ObservedMember:
    member = ObservedMember(*data)
    member.protocols = tuple((name, digest) for name, digest in member.protocols)
    member.topics = tuple(member.topics)
    member.partitions = None if member.partitions is None else tuple(member.partitions)
    member.last_sign = None if member.last_sign is None else Ref(*member.last_sign)
    member.stalled_sign = None if member.stalled_sign is None else Ref(*member.stalled_sign)
    return member


def _gone(data: Any) -> EndedMembership:
    gone: EndedMembership = _signed(EndedMembership(*data))
    gone.partitions = tuple(gone.partitions)
    return gone


def _signed(record: Any) -> Any:
    record.sign = None if record.sign is None else Ref(*record.sign)
    return record


def _rebalance(data: Any) -> Rebalance:
    rebalance = Rebalance(*data)
    rebalance.from_state = State(rebalance.from_state)
    rebalance.triggers = [_signed(RebalanceTrigger(*t)) for t in data[_TRIGGERS]]
    rebalance.kept = {member_id: tuple(p) for member_id, p in rebalance.kept.items()}
    if rebalance.assigned is not None:
        rebalance.assigned = {member_id: tuple(p) for member_id, p in rebalance.assigned.items()}
    rebalance.evidence = [Ref(*r) for r in rebalance.evidence]
    return rebalance


def _incident(data: Any) -> Incident:
    incident = Incident(*data)
    incident.signs = [Ref(*r) for r in incident.signs]
    return incident


def _prediction(data: list[Any], settings: TrackerSettings) -> Prediction:
    restored = Prediction(*data)
    config = rules(settings, restored)
    if restored.group is not None:
        restored.group = model_codec.decode(data[0], config)
    restored.asked = [event(e) for e in data[_ASKED]]
    restored.parked = {ticket: event(e) for ticket, e in data[_PARKED].items()}
    restored.crossed = [event(e) for e in data[_CROSSED]]
    restored.generations = {number: Generation(*made) for number, made in data[_GENERATIONS].items()}
    restored.before = [(until, model_codec.decode(blob, config)) for until, blob in data[_BEFORE]]
    return restored
