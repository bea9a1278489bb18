"""Protocol stories for the tracker's tests: verbs that write what a broker would log.

    story = Story()
    story.at(0).log_preparing(0, "Adding new member a-1 with group instance id null; client reason: not provided.")
    story.at(3_000).log_stabilized(1, members=1)
    story.at(3_010).log_assignment(1, leader="a-1", members=1)
    rows = story.rows()

Times are ms since the start of the story. Each verb adds one event at the current time; requests take `took` ms from
arrival to answer. `rows()` plays the story in one batch and ends the input.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import Any, Final

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.events import Assignment, Event, MemberEntry, Protocol
from coordinator_model.group_beats import SENDER, SEPARATOR, GroupBeats, Shared
from coordinator_model.offsets.reads import Reads
from coordinator_model.tracker.quiet import runs
from coordinator_model.tracker.shard import Shard
from coordinator_model.view.rows import Row
from coordinator_model.view.settings import TrackerSettings

START_MS = 1_800_000_000_000
GROUP = "orders"
JOINED = "Adding new member {} with group instance id null; client reason: not provided"
EXPIRED = "removing member {} on heartbeat expiration"


class Story:
    """Events of one group, in the order told."""

    def __init__(self, group: str = GROUP, broker: str = "broker-1") -> None:
        self.group = group
        self.broker = broker
        self.events: list[Event] = []
        self._now = START_MS
        self._line = 0

    def at(self, ms: int) -> Story:
        """Moves the story's clock."""
        self._now = START_MS + ms
        return self

    def on(self, broker: str) -> Story:
        """The broker that writes from here."""
        self.broker = broker
        return self

    def add(self, source: str, kind: str, took: int = 0, **fields: Any) -> Story:
        """One event as is."""
        self._line += 1
        self.events.append(
            Event(
                self.broker,
                source,
                f"{self.broker}/{source}.log",
                self._line,
                self._now,
                self._now - took,
                kind,
                **{"group_id": self.group, **fields},
            )
        )
        return self

    # the coordinator's own log

    def log(self, kind: str, **fields: Any) -> Story:
        """Any coordinator line."""
        return self.add("coordinator", kind, **fields)

    def log_preparing(self, old_generation: int, reason: str, member: str = "") -> Story:
        """Preparing to rebalance group …"""
        return self.log(kinds.PREPARING_REBALANCE, generation=old_generation, reason=reason, member_id=member)

    def log_stabilized(self, generation: int, members: int) -> Story:
        """Stabilized group …"""
        return self.log(kinds.STABILIZED, generation=generation, member_count=members)

    def log_assignment(self, generation: int, leader: str, members: int) -> Story:
        """Assignment received from leader …"""
        return self.log(kinds.ASSIGNMENT_RECEIVED, generation=generation, leader_id=leader, member_count=members)

    # requests, by their answers

    def request(self, kind: str, member: str, took: int = 1, **fields: Any) -> Story:
        """Any request of a member; its client id, unless given, is the text before the last dash of the member id."""
        client = (member or fields.get("answer_member_id", "")).rpartition("-")[0]
        return self.add("request", kind, took, **{"member_id": member, "client_id": client, "client_host": "10.0.0.7", **fields})

    def heartbeat(self, member: str, generation: int, error: int = 0, **fields: Any) -> Story:
        """HEARTBEAT."""
        row = {"beats": (0,), "positions": (self._line + 1,)}
        return self.request(kinds.HEARTBEAT, member, generation=generation, error_code=error, **row, **fields)

    def id_issued(self, member: str, session_timeout_ms: int = 10_000, rebalance_timeout_ms: int = 30_000, **fields: Any) -> Story:
        """JOIN_GROUP without a member id, answered MEMBER_ID_REQUIRED (KIP-394)."""
        return self.request(
            kinds.JOIN_GROUP,
            "",
            answer_member_id=member,
            error_code=Error.MEMBER_ID_REQUIRED,
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            protocol_type="consumer",
            api_version=9,
            protocols=(Protocol("range", ("orders",), (), "digest-orders"),),
            **fields,
        )

    def join(
        self,
        member: str,
        generation: int,
        leader: str,
        members: Sequence[str] = (),
        *,
        waited: int = 1,
        asked_as: str | None = None,
        topics: tuple[str, ...] = ("orders",),
        owned: tuple[str, ...] = (),
        session_timeout_ms: int = 10_000,
        rebalance_timeout_ms: int = 30_000,
        **fields: Any,
    ) -> Story:
        """JOIN_GROUP answered with success; `members` as the leader's answer lists them."""
        return self.request(
            kinds.JOIN_GROUP,
            member if asked_as is None else asked_as,
            took=waited,
            answer_member_id=member,
            answer_generation=generation,
            leader_id=leader,
            protocol="range",
            protocol_type="consumer",
            api_version=9,
            protocols=(Protocol("range", topics, owned, "digest-" + "-".join(topics)),),
            members=tuple(MemberEntry(m, "", 0, "", topics) for m in members),
            session_timeout_ms=session_timeout_ms,
            rebalance_timeout_ms=rebalance_timeout_ms,
            **fields,
        )

    def sync(self, member: str, generation: int, assigned: dict[str, tuple[str, ...]] | None = None, **fields: Any) -> Story:
        """SYNC_GROUP answered with success; `assigned` by the leader."""
        entries = tuple(Assignment(m, p, str(len(p))) for m, p in (assigned or {member: ()}).items())
        return self.request(kinds.SYNC_GROUP, member, generation=generation, assignments=entries, **fields)

    def leave(self, member: str, reason: str = "", **fields: Any) -> Story:
        """LEAVE_GROUP v5."""
        entry = MemberEntry(member, fields.get("instance_id", ""), 0, reason, None)
        return self.request(kinds.LEAVE_GROUP, member, members=(entry,), **fields)

    def commit(self, member: str, generation: int, error: int = 0, **fields: Any) -> Story:
        """OFFSET_COMMIT."""
        return self.request(kinds.OFFSET_COMMIT, member, generation=generation, error_code=error, **fields)

    def beats(self, members: Iterable[str], generation: int, start: int, stop: int, step: int = 3_000) -> Story:
        """Heartbeats of all members from `start` to before `stop`."""
        for ms in range(start, stop, step):
            for member in members:
                self.at(ms).heartbeat(member, generation)
        return self

    # playing it

    def heard(self, until: int | None = None) -> list[Event]:
        """Clock rows: every broker was heard each second from the first event to `until` (default: its last event)."""
        rows = []
        for broker in sorted({e.broker for e in self.events}):
            times = [e.at_ms for e in self.events if e.broker == broker]
            newest = START_MS + until if until is not None else max(times)
            base = min(times) // 1_000
            rows.append(Event(broker, "clock", "", 0, newest, base * 1_000, kinds.CLOCK, beats=(0, max(newest // 1_000 - base, 0))))
        return rows

    def rows(self, until: int | None = None, settings: TrackerSettings | None = None) -> list[Row]:
        """What the tracker makes of it, in one batch, the input ended."""
        return play([[*self.events, *self.heard(until)]], settings)


def play(
    batches: Iterable[Sequence[Event]],
    settings: TrackerSettings | None = None,
    *,
    snapshot: bool = False,
    shard: Shard | None = None,
    reads: Iterable[Sequence[Reads]] = (),
) -> list[Row]:
    """Feeds batches to one shard, by default a new one, then ends the input.

    `snapshot`: through the codec after every batch, and plain heartbeats as numbers, both as the pipeline does it. `reads`: what clients
    read, for each of the batches.
    """
    shard = shard or Shard(settings)
    rows: list[Row] = []
    newest: dict[str, int] = {}
    for batch, own in zip_longest(batches, reads, fillvalue=()):
        for event in batch:
            newest[event.broker] = max(newest.get(event.broker, 0), event.at_ms)
        rows += shard.observe(*as_numbers(batch), own) if snapshot else shard.observe(batch, (), own)
        if snapshot:
            shard = Shard.decode(shard.encode(), settings)
    rows += shard.observe([Event(b, "clock", "", 0, at, at, kinds.END) for b, at in sorted(newest.items())])
    return rows


_OF_PLAIN: Final = {*Shared._fields, *SENDER, "source", "kind", "position", "at_ms", "received_ms", "correlation_id", "member_id"}
_OF_OTHERS: Final = [name for name in Event._field_defaults if name not in _OF_PLAIN | {"beats", "positions"}]


def as_numbers(batch: Iterable[Event]) -> tuple[list[Event], list[GroupBeats]]:
    """Events that are no plain heartbeats, and those that are: what packets hold (jobs/pipeline/tracking/plain_beats.py)."""
    events, beats = [], []
    known: dict[Shared, Shared] = {}
    for event in batch:
        is_run = event.kind == kinds.HEARTBEAT and len(event.beats) == len(event.positions) > 0 and len(runs.as_runs(event)) == 1
        is_plain = is_run and event.source == kinds.REQUEST_SOURCE and event.at_ms - event.received_ms <= kinds.PROMPT_MS
        if is_plain and event.group_id and all(getattr(event, name) == Event._field_defaults[name] for name in _OF_OTHERS):
            sender = SEPARATOR.join(str(getattr(event, name)) for name in SENDER)
            arrivals = [event.received_ms + beat for beat in event.beats]
            shared = Shared(*(getattr(event, name) for name in Shared._fields))
            shared = known.setdefault(shared, shared)
            beats.append(GroupBeats(shared, [event.member_id], [sender], [len(arrivals)], arrivals, [*event.positions]))
        else:
            events.append(event)
    return events, beats


def table(rows: Iterable[Row], name: str) -> list[dict[str, Any]]:
    """The rows of one table, with times as ms of the story."""
    return [
        {k: v - START_MS if (k.endswith("_at") and v is not None) or k == "occurred_at" else v for k, v in row.values.items()}
        for row in rows
        if row.table == name
    ]
