"""The members of a group as the tracker sees them: those that are there, and those that went."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from coordinator_model.events import Event
from coordinator_model.view import reasons
from coordinator_model.view.rows import Record, Ref, evidence_json, or_none, ref

_SILENT: Final = frozenset({reasons.SESSION_TIMEOUT, reasons.JOIN_TIMEOUT, reasons.SYNC_TIMEOUT})
MISSED: Final = 2
"""A member that was silent for two of its heartbeat intervals has missed a heartbeat, however late the last one was."""
_UUID_SUFFIX: Final = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def client_in(member_id: str, instance_id: str) -> str:
    """The client.id inside a member id: the coordinator makes `<client id>-<uuid>`, and `<instance id>-<uuid>` of a static one."""
    match = _UUID_SUFFIX.search(member_id)
    return member_id[: match.start()] if match is not None and not instance_id else ""


def worked_until_ms(kind: str, gone_ms: int, heard_ms: int, rebalance_timeout_ms: int) -> int:
    """Until when a member worked that is gone, by how it went.

    One that fell silent did so until its last accepted request, one whose poll loop stalled until its last call of poll(), at the latest.
    -1: that is not known.
    """
    if kind == reasons.POLL_TIMEOUT:
        return gone_ms - rebalance_timeout_ms if rebalance_timeout_ms >= 0 else -1
    return heard_ms if kind in _SILENT else gone_ms


class Membership(Record, Struct):
    """What is known of a member, whatever protocol it speaks."""

    member_id: str
    instance_id: str = ""
    client_id: str = ""
    client_host: str = ""
    software: str = ""
    connection: str = ""
    session_timeout_ms: int = -1  # that it asked for: in the consumer protocol it is a setting of the group
    rebalance_timeout_ms: int = -1
    joined_ms: int = -1
    heartbeats: int = 0
    longest_gap_ms: int = -1  # that its session survived, from where it began or was renewed to an accepted request
    last_sign: Ref | None = None

    def learn(self, event: Event) -> None:
        """Takes its identity and timeouts from an event."""
        self.instance_id = event.instance_id or self.instance_id
        self.client_id = event.client_id or self.client_id
        self.client_host = event.client_host or self.client_host
        self.software = event.software or self.software
        self.connection = event.connection or self.connection
        if event.session_timeout_ms >= 0:
            self.session_timeout_ms = event.session_timeout_ms
        if event.rebalance_timeout_ms >= 0:
            self.rebalance_timeout_ms = event.rebalance_timeout_ms

    def client_name(self) -> str:
        """The client.id, as far as it is known."""
        return self.client_id

    def client(self) -> tuple[str, str, str]:
        """Member id, client.id and host."""
        return self.member_id, self.client_name(), self.client_host

    def shared(self) -> dict[str, Any]:
        """What stays when the group changes its protocol."""
        return {name: getattr(self, name) for name in Membership.__struct_fields__} | {"client_id": self.client_name()}

    def session(self, at_ms: int, kind: str, signs: Iterable[Ref], *, is_heard: bool, joined_ms: int) -> dict[str, Any]:
        """The row of `member_sessions`. `is_heard`: a request log shows its heartbeats."""
        return {
            "member_id": self.member_id,
            "instance_id": self.instance_id or None,
            "client_id": self.client_name() or None,
            "client_host": self.client_host or None,
            "software": self.software or None,
            "joined_at": or_none(joined_ms),
            "ended_at": at_ms,
            "end_kind": kind,
            "session_timeout_ms": or_none(self.session_timeout_ms),
            "rebalance_timeout_ms": or_none(self.rebalance_timeout_ms),
            "heartbeats": self.heartbeats if is_heard else None,
            "longest_gap_ms": or_none(self.longest_gap_ms),
            "evidence": evidence_json(signs),
        }


class ObservedMember(Membership, Struct, array_like=True):
    """One membership that has not ended, as far as the logs show it."""

    renewed_ms: int = -1  # when the session timer was last known to restart
    seen_ms: int = -1  # when it was last heard: arrival of a heartbeat or commit, answer to a JoinGroup or SyncGroup (membership.hear)
    beat_ms: int = -1  # arrival of the last heartbeat
    protocols: tuple[tuple[str, str], ...] = ()  # (name, digest) of the last JoinGroup: Kafka compares them for equality
    topics: tuple[str, ...] = ()
    partitions: tuple[str, ...] | None = None
    sessions_seen: bool = False  # whether a request log shows this member's heartbeats
    commit_ms: int = -1  # last accepted commit
    connections: list[str] = []  # the latest connections that it sent requests on
    abandoned: bool = False  # its client is alive and has asked for a new member id
    stalled_ms: int = -1  # when the client's log said that poll() was not called in time
    stalled_sign: Ref | None = None
    over_ms: int = 0  # for how much longer than max.poll.interval.ms it had not been polled then
    leaves_because: str = ""  # reason in the client's log when it left
    rejoins_ms: int = -1  # when the client's log said that it would rejoin
    rejoins_because: str = ""  # the cause that the client's log gave for that
    busy_ms: int = -1  # when a request of it was answered that took long: meanwhile the broker reads no other of its connection
    alive_ms: int = -1  # arrival of its last accepted request of any kind
    overdue_ms: int = -1  # when its session ran out, unless its JoinGroup was parked by then, which only the answer shows
    vouched: bool = False  # more than heartbeats and commits shows that it is a member: their lines may be damaged
    found: bool = False  # it was a member when a line first showed it, or may have been: `joined_ms` is the time of that line
    ghost: bool = False  # it had departed, but a new coordinator read it back from the log: the row of its end is written
    held_ms: tuple[int, int] = (-1, -1)  # from the arrival of its last requests that the broker handled late to their answers
    first_beat_ms: int = -1  # arrival of its first heartbeat
    called_ms: int = -1  # arrival of its last heartbeat that was answered REBALANCE_IN_PROGRESS
    woke_ms: int = -1  # when it was last heard again after a silence, while the group rebalanced
    woke_from: str = ""  # what that silence was (diagnosis/silences.py)

    def client_name(self) -> str:
        """The client.id from a request, else the one inside the member id."""
        return self.client_id or client_in(self.member_id, self.instance_id)

    def owned_since(self, at_ms: int) -> tuple[str, ...] | None:
        """The partitions that it owned when an assignment was made for the last time; None if that is not known."""
        return () if self.partitions is None and not self.found and self.joined_ms > at_ms else self.partitions

    def deadline_ms(self) -> int:
        """When the session runs out by the requests seen so far; -1 if unknown."""
        if self.renewed_ms < 0 or self.session_timeout_ms < 0 or not self.sessions_seen:
            return -1
        return self.renewed_ms + self.session_timeout_ms

    def says_it_stalled(self, event: Event) -> None:
        """Takes a line of its client that says that poll() was not called in time."""
        self.stalled_ms, self.over_ms, self.stalled_sign = event.at_ms, event.at_ms - event.received_ms, ref(event)

    def take_beats(self, first_ms: int, last_ms: int, count: int) -> None:
        """Takes heartbeats by the arrival of the first and the last of them."""
        if not self.heartbeats:
            self.first_beat_ms = first_ms
        self.heartbeats += count
        self.beat_ms = last_ms

    def expiry_ms(self) -> int:
        """When the session ran out or will, also where that was not believed at first; -1 if unknown."""
        return max(self.deadline_ms(), self.overdue_ms)

    def came_ms(self) -> int:
        """When it joined; -1: that is not known."""
        return -1 if self.found else self.joined_ms

    def heard_until_ms(self) -> int:
        """When it was last heard, or the answer came that its other requests had to wait for."""
        return max(self.seen_ms, self.busy_ms)

    def interval_ms(self) -> int:
        """The time between its heartbeats, on the average; -1: not known."""
        return (self.beat_ms - self.first_beat_ms) // (self.heartbeats - 1) if self.heartbeats > 1 else -1

    def misses_one(self, at_ms: int, since_ms: int | None = None) -> bool:
        """Whether a heartbeat of it is missing if it is not heard until then. `since_ms`: from then on, else since it was heard."""
        return 0 < MISSED * self.interval_ms() <= at_ms - (self.heard_until_ms() if since_ms is None else since_ms)


class EndedMembership(ObservedMember, Struct, array_like=True):
    """A membership that ended, kept for a while: a later line may show how it did, and late requests of the client may still come."""

    at_ms: int = -1
    kind: str = ""  # how it ended, as far as lines show so far
    generation: int = -1
    signs: list[Ref] = []  # the line that ended it, and what else shows it
    back_ms: int = -1  # arrival of the first request that was refused since
    assigning: bool = False  # the group waited for the assignment that it had to make as the leader
    may_have_stalled: bool = False  # it left without a reason: its client closed, or its poll loop stalled
    passed_ms: int = -1  # when max.poll.interval.ms had passed, if its poll loop stalled; -1: not known
    stalled: bool = False  # a static member, of which a later line showed that its poll loop had stalled

    @classmethod
    def of(cls, member: ObservedMember, **fields: Any) -> EndedMembership:
        """The end of a member. What it offered and subscribed to, nobody asks any more."""
        kept = {name: getattr(member, name) for name in ObservedMember.__struct_fields__ if name not in _OF_THE_PRESENT}
        return cls(**kept | {"client_id": member.client_name()} | fields)

    @property
    def sign(self) -> Ref | None:
        """The line that ended it."""
        return self.signs[0] if self.signs else None

    def stopped_ms(self) -> int:
        """When it stopped working on its partitions: with its last sign of life if it fell silent, else when it departed."""
        silent = self.kind in (reasons.SESSION_TIMEOUT, reasons.JOIN_TIMEOUT) and self.alive_ms >= 0
        return self.alive_ms if silent else self.at_ms


_OF_THE_PRESENT: Final = frozenset({"protocols", "topics", "connections"})
