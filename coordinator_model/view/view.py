"""What the tracker knows of one group: its members, its rebalances, and what is still open.

Plain data; codec.py writes and reads it. Times are epoch ms, -1 where unknown; every record can be incomplete,
because a log may begin anywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from coordinator_model.events import Event
from coordinator_model.specification.config import MAX_INT
from coordinator_model.specification.group import ClassicGroup
from coordinator_model.specification.timers import NEVER
from coordinator_model.states import State
from coordinator_model.view.rows import Ref

_UUID_SUFFIX: Final = re.compile(r"-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def client_in(member_id: str, instance_id: str) -> str:
    """The client.id inside a member id: the coordinator makes `<client id>-<uuid>`, and `<instance id>-<uuid>` of a static one."""
    found = _UUID_SUFFIX.search(member_id)
    return member_id[: found.start()] if found is not None and not instance_id else ""


@dataclass(slots=True)
class ObservedMember:
    """One membership, from its first sign to its end."""

    member_id: str
    instance_id: str = ""
    client_id: str = ""
    client_host: str = ""
    software: str = ""
    connection: str = ""
    session_timeout_ms: int = -1
    rebalance_timeout_ms: int = -1
    joined_ms: int = -1
    renewed_ms: int = -1  # when the session timer was last known to restart
    seen_ms: int = -1  # last heartbeat or commit, accepted or told to rejoin
    beat_ms: int = -1  # arrival of the last heartbeat
    heartbeats: int = 0
    longest_gap_ms: int = -1
    protocols: tuple[tuple[str, str], ...] = ()  # (name, digest) of the last JoinGroup: equality is what Kafka compares
    topics: tuple[str, ...] = ()
    partitions: tuple[str, ...] | None = None
    last_sign: Ref | None = None
    sessions_seen: bool = False  # whether a request log shows this member's heartbeats
    commit_ms: int = -1  # last accepted commit
    connections: list[str] = field(default_factory=list)  # the latest that it spoke on
    abandoned: bool = False  # its client lives on, and has asked for a new id
    stalled_ms: int = -1  # when its own log said that poll() was not called in time
    stalled_sign: Ref | None = None
    leaves_because: str = ""  # its own log, as it left
    rejoins_ms: int = -1  # its own log: when it was to join again
    rejoins_because: str = ""  # the cause that this is

    def client(self) -> str:
        """Its client.id: as it told, else as its member id holds it."""
        return self.client_id or client_in(self.member_id, self.instance_id)

    def deadline_ms(self) -> int:
        """When the session runs out, as far as seen; -1 if that cannot be told."""
        if self.renewed_ms < 0 or self.session_timeout_ms < 0 or not self.sessions_seen:
            return -1
        return self.renewed_ms + self.session_timeout_ms


@dataclass(slots=True)
class EndedMembership:
    """A membership that ended, kept a while: its last words may still come."""

    member_id: str
    instance_id: str
    client_id: str
    client_host: str
    connection: str
    at_ms: int
    kind: str
    generation: int
    held_ms: int = -1  # how long after its last JoinGroup or SyncGroup it went
    rebalance_timeout_ms: int = -1
    partitions: tuple[str, ...] = ()  # what it owned
    sign: Ref | None = None  # the line that ended it
    seen_ms: int = -1  # when it was last heard
    session_timeout_ms: int = -1


@dataclass(slots=True)
class RebalanceTrigger:
    """Something that starts a rebalance, or would have, had none been under way."""

    at_ms: int
    cause: str
    member_id: str = ""
    instance_id: str = ""
    client_id: str = ""
    client_host: str = ""
    reason: str = ""
    sign: Ref | None = None


@dataclass(slots=True)
class Rebalance:
    """One rebalance, from entering PreparingRebalance to whatever ends it.

    `exact`: the coordinator's own line gave the start. Otherwise the start is the earliest trigger or sign of it.
    """

    started_ms: int
    exact: bool
    from_state: State
    old_generation: int
    generation: int = -1
    joined_ms: int = -1
    ended_ms: int = -1
    outcome: str = ""
    cause: str = ""  # from the coordinator's reason; empty: the earliest trigger
    triggers: list[RebalanceTrigger] = field(default_factory=list)
    first_sign_ms: int = -1  # earliest answer that shows the phase, whoever got it
    count_before: int = -1
    count_after: int = -1
    added: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    joins: dict[str, int] = field(default_factory=dict)  # member id: arrival of the JoinGroup that the phase answered
    synced: dict[str, int] = field(default_factory=dict)  # member id: when its SyncGroup was answered
    owned_before: dict[str, str] = field(default_factory=dict)  # partition: member id
    kept: dict[str, tuple[str, ...]] = field(default_factory=dict)  # member id: partitions it kept while rejoining
    stopped: dict[str, int] = field(default_factory=dict)  # member id: when it stopped working, if it went
    assigned: dict[str, tuple[str, ...]] | None = None
    leader_id: str = ""
    protocol: str = ""
    listed: bool = False  # the full member list of the new generation is known
    told: int = 0  # how many of its transitions are written
    floor_ms: int = -1  # latest proof that it had not started
    vacant_ms: int = -1  # when the last member that we know of went
    evidence: list[Ref] = field(default_factory=list)
    resubscribed: list[str] = field(default_factory=list)  # members that came back with other topics
    named: str = ""  # member that the coordinator's reason names, or the specification
    settled: bool = False  # the specification gave the start
    told_leader_ms: int = -1  # when the leader was told that it leads
    leader_ready_ms: int = -1  # arrival of its SyncGroup with the assignment
    fetched: dict[str, int] = field(default_factory=dict)  # member id: arrival of its first OffsetFetch after that
    bounded: bool = False  # its start is the latest possible: only its end was seen
    stored: bool = False  # its assignment is known from a record or a poll alone


@dataclass(slots=True)
class FoundCoordinator:
    """The coordinator that FIND_COORDINATOR named last."""

    node: int
    address: str
    at_ms: int
    sign: Ref


@dataclass(slots=True)
class Suspect:
    """A broker that answered for the group though another one was named: its first such answer."""

    at_ms: int
    node: int
    broker: str
    api: str
    member_id: str
    client_id: str
    client_host: str
    error_code: int
    sign: Ref


@dataclass(slots=True)
class Incident:
    """Trouble of the broker that coordinates the group, or its replacement by another."""

    began_ms: int
    last_ms: int  # latest sign of it
    moved_ms: int = -1
    from_broker: str = ""
    to_broker: str = ""  # empty: the coordinator stayed
    lost: list[str] = field(default_factory=list)  # members whose session ended meanwhile
    signs: list[Ref] = field(default_factory=list)


@dataclass(slots=True)
class UndecidedDeparture:
    """A member that left without a word: whether its client closed or its poll loop stalled shows only later."""

    at_ms: int
    member_id: str
    connection: str
    session: dict[str, Any]  # the row that says how the membership ended
    finding: dict[str, Any]  # what is told if the poll loop stalled


@dataclass(slots=True)
class PollStall:
    """A member whose poll loop stalled, as its client said: how long it did shows when it comes back."""

    at_ms: int
    connection: str
    limit_ms: int  # max.poll.interval.ms
    finding: dict[str, Any]


@dataclass(slots=True)
class PastRebalance:
    """A rebalance that was written, as far as a storm or a rolling restart shows in it."""

    started_ms: int
    cause: str
    member_id: str
    client_id: str
    client_host: str
    sign: Ref | None
    total_ms: int = 0
    unavailable_ms: int = -1
    moved: int = -1
    first: bool = False  # the group had been empty


@dataclass(slots=True)
class PendingFinding:
    """A session timeout that is not told yet."""

    at_ms: int
    seen_ms: int  # when the member was last heard
    member_id: str
    row: dict[str, Any]


@dataclass(slots=True)
class Generation:
    """A generation as the answers to its JoinGroups tell it."""

    joined_ms: int  # when its join phase ended
    leader: str
    answered: list[str] = field(default_factory=list)  # members that were told
    listed: list[str] | None = None  # all members, as its leader was told


@dataclass(slots=True)
class Prediction:
    """What the specification is told of one group, and what it has answered. Times are epoch ms."""

    group: ClassicGroup | None = None  # None: not followed
    asked: list[Event] = field(default_factory=list)  # observed, not told yet
    parked: dict[int, Event] = field(default_factory=dict)  # told, not answered by the specification yet: by ticket
    crossed: list[Event] = field(default_factory=list)  # answered otherwise: perhaps by what comes next
    before: list[tuple[int, ClassicGroup]] = field(default_factory=list)  # the group as it was until then
    generations: dict[int, Generation] = field(default_factory=dict)  # the latest, by number
    starts: dict[int, list[Any]] = field(default_factory=dict)  # old generation: when its rebalance started, trigger, member id
    told_ms: int = -1  # arrival of what was told last
    born: bool = False  # followed from its first generation, so that the order of its hash map is known too
    ticket: int = 0
    based_ms: int = -1  # what was asked before is part of what the group was made from
    since_ms: int = -1  # what ended before tells nothing of the group as it is
    refused: list[str] = field(default_factory=list)  # members whose JoinGroup was refused lately
    release: str = ""  # whose rules the broker follows, once its answers have told
    max_size: int = MAX_INT  # group.max.size, once the broker has refused a member
    ripe_ms: int = NEVER  # when the first of `asked` has waited long enough
    oldest_ms: int = NEVER  # arrival of the first of `asked`


@dataclass(slots=True)
class View:
    """The estimate of one group. `state` is None until something tells it."""

    group_id: str
    broker: str = ""  # the coordinator, by its last authoritative word
    since_ms: int = -1  # since when
    brokers: list[str] = field(default_factory=list)  # every broker that ever spoke for the group
    logged: bool = False  # the coordinator's own log speaks of this group
    consumer_protocol: bool = False  # KIP-848: classic phases do not apply
    state: State | None = None
    generation: int = -1
    leader_id: str = ""
    protocol: str = ""
    protocol_type: str = ""
    members: dict[str, ObservedMember] = field(default_factory=dict)
    complete: bool = False  # `members` are all members
    member_count: int = -1
    pending: dict[str, int] = field(default_factory=dict)  # ids handed out and not used yet: when
    gone: list[EndedMembership] = field(default_factory=list)
    loose: list[RebalanceTrigger] = field(default_factory=list)  # triggers since the group was last stable
    arrived: list[str] = field(default_factory=list)  # members that came since then
    last_ok_ms: int = -1  # latest proof that the group was not yet rebalancing
    open: Rebalance | None = None
    closing: list[Rebalance] = field(default_factory=list)
    flagged: list[tuple[str, str, int]] = field(default_factory=list)  # (code, member, generation) already told
    horizon_ms: int = -1  # events before this were told
    nodes: dict[str, int] = field(default_factory=dict)  # broker: its node id, -1 if that is not clear
    found: FoundCoordinator | None = None
    suspect: Suspect | None = None
    unowned: dict[str, str] = field(default_factory=dict)  # partitions that a cooperative round took from their owner, and gave nobody
    burst: list[PastRebalance] = field(default_factory=list)  # rebalances that follow one another closely
    undecided: list[UndecidedDeparture] = field(default_factory=list)
    revoked: list[str] = field(default_factory=list)  # members that the last rebalance took partitions from, to give up and rejoin
    revoked_ms: int = -1
    incident: Incident | None = None
    held: list[PendingFinding] = field(default_factory=list)
    moved_ms: int = -1  # when another broker took the group over
    moved_clients: list[str] = field(default_factory=list)  # who belonged to the group then
    completed_ms: int = -1  # end of the last rebalance that made the group Stable
    prediction: Prediction = field(default_factory=Prediction)
    client_names: dict[str, str] = field(default_factory=dict)  # origin and client in client logs: the member that it is
    fetches: bool = False  # its members are seen to ask for offsets
    stalled: list[PollStall] = field(default_factory=list)

    def identity(self, member_id: str) -> tuple[str, str, str]:
        """Instance id, client id and host of a member, or of one that went lately; empty as far as they are not known."""
        member = self.members.get(member_id)
        if member is not None:
            return member.instance_id, member.client(), member.client_host
        gone = next((old for old in reversed(self.gone) if old.member_id == member_id), None)
        return (gone.instance_id, gone.client_id, gone.client_host) if gone is not None else ("", "", "")
