"""The state of one group as the tracker estimates it: its members, its rebalances, and what is still undecided.

Times are epoch ms. -1 stands for an unknown number and "" for an unknown text: a log may begin anywhere, so any field may be unknown.

The records are stored as arrays in the order of their fields (tracker/codec.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from coordinator_model.events import Event
from coordinator_model.specification.config import MAX_INT
from coordinator_model.specification.timers import NEVER
from coordinator_model.states import State
from coordinator_model.view.client_troubles import Said
from coordinator_model.view.consumer_view import ConsumerView
from coordinator_model.view.found_coordinator import FoundCoordinator, Suspect
from coordinator_model.view.members import EndedMembership, LostMember, ObservedMember
from coordinator_model.view.rows import Ref

if TYPE_CHECKING:
    from coordinator_model.specification.group import ClassicGroup
else:
    ClassicGroup = bytes  # for msgspec: the stored form of a group, which tracker/codec.py decodes

MADE_KEPT: Final = 8


class RebalanceTrigger(Struct, array_like=True):
    """A reason for a rebalance: it starts one, unless one is already running."""

    at_ms: int
    cause: str
    member_id: str = ""
    instance_id: str = ""
    client_id: str = ""
    client_host: str = ""
    reason: str = ""
    sign: Ref | None = None
    error_code: int = 0  # of the answer that shows it, if it was refused

    def with_cause(self, cause: str) -> RebalanceTrigger:
        """The same with another cause."""
        return replace(self, cause=cause)


class Rebalance(Struct, array_like=True):
    """One rebalance, from PreparingRebalance to its end. `exact`: the coordinator's own line gave the start, else the earliest sign did."""

    started_ms: int
    exact: bool
    from_state: State
    old_generation: int
    generation: int = -1
    joined_ms: int = -1
    ended_ms: int = -1
    outcome: str = ""
    cause: str = ""  # from the coordinator's reason; empty: the earliest trigger
    triggers: list[RebalanceTrigger] = []
    first_sign_ms: int = -1  # earliest answer to any member that shows the join phase
    count_before: int = -1
    count_after: int = -1
    added: list[str] = []
    departed: list[str] = []
    joins: dict[str, int] = {}  # member id: arrival of the JoinGroup that the phase answered
    synced: dict[str, int] = {}  # member id: when its SyncGroup was answered
    owned_before: dict[str, str] = {}  # partition: member id
    kept: dict[str, tuple[str, ...]] = {}  # member id: partitions it kept while rejoining
    stopped: dict[str, int] = {}  # member id: when a member that departed stopped working
    assigned: dict[str, tuple[str, ...]] | None = None
    leader_id: str = ""
    protocol: str = ""
    listed: bool = False  # the full member list of the new generation is known
    transitions_written: int = 0
    floor_ms: int = -1  # latest proof that the rebalance had not started
    vacant_ms: int = -1  # when the last known member departed
    evidence: list[Ref] = []
    resubscribed: list[str] = []  # members that came back with other topics
    named: str = ""  # the member that the coordinator's reason, or the specification, names
    settled: bool = False  # the specification gave the start
    leader_answered_ms: int = -1  # when the leader's JoinGroup was answered
    leader_ready_ms: int = -1  # arrival of the leader's SyncGroup with the assignment
    fetched: dict[str, int] = {}  # member id: arrival of its first OffsetFetch after that
    bounded: bool = False  # only the end was seen: the start is the latest possible one
    stored: bool = False  # the assignment is known only from a stored record or a poll
    unnamed: int = 0  # members that joined, by the coordinator's count, and that no line has named
    missing: int = 0  # members that the join phase lost, by the coordinator's count, and that no line has named yet
    proven: bool = False  # a later line shows that the assignment was stored: brokers log that it came before they store it
    vacant: list[str] = []  # partitions that the rebalance before left without an owner at work
    next_state: str = ""  # of one whose end no line shows: the state in which the next line finds the group
    owners_unknown: bool = False  # who had which partitions before it is not known
    called: dict[str, int] = {}  # members that an answer told to join again: when
    decided: RebalanceTrigger | None = None  # what began it, once a row has said so
    unannounced: bool = False  # the coordinator logged the end of its join phase, and its beginning is missing
    waits: bool = False  # a line, or a timer, shows that its members still waited for the assignment when the next one began
    absent: list[str] = []  # a static leader that did not join again in time, by the coordinator's word
    end_seen: bool = True  # whether a line shows when it ended; else `ended_ms` is the time of its last line


class Incident(Struct, array_like=True):
    """A coordinator in trouble, or its replacement by another broker."""

    began_ms: int
    last_ms: int  # latest sign of the trouble
    moved_ms: int = -1
    from_broker: str = ""
    to_broker: str = ""  # empty: the coordinator stayed
    lost: list[str] = []  # members whose session ended meanwhile
    signs: list[Ref] = []
    generation: int = -1  # the group's when it began


class UndecidedDeparture(Struct, array_like=True):
    """A member left without giving a reason: later lines show whether its client closed or its poll loop stalled."""

    at_ms: int
    member_id: str
    connection: str
    passed_ms: int  # when max.poll.interval.ms had passed, if so; -1: not known
    session: dict[str, Any]  # the row of member_sessions
    finding: dict[str, Any]  # the row of findings, if the poll loop stalled


class PollStall(Struct, array_like=True):
    """A poll loop that stalled, as the client said: its return shows for how long."""

    at_ms: int
    connection: str
    passed_ms: int  # when max.poll.interval.ms had passed
    limit_ms: int  # max.poll.interval.ms
    finding: dict[str, Any]


class PastRebalance(Struct, array_like=True):
    """What the search for storms and rolling restarts keeps of a rebalance that was written."""

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
    generation: int = -1  # the group's when it started
    gone_ms: int = -1  # when the member that departed stopped
    unheard_ms: int = 0  # the time, over all partitions, in which their owners were silent before it started
    error: str = ""  # with which the assignment before was not stored
    members: tuple[int, int] = (-1, -1)  # how many there were before it, and after it
    row_ms: int = -1  # when its row of `rebalances` begins: an epoch of the consumer protocol may share one with others


class PendingFinding(Struct, array_like=True):
    """The finding of a session timeout, held back while a broker may turn out to be the reason."""

    at_ms: int
    seen_ms: int  # when the member was last heard
    member_id: str
    row: dict[str, Any]
    given_up: bool = False  # its client lives and has asked for another id: only a broker in trouble is worth a finding
    waited: bool = False  # a request of it was there before its session ended, and was handled only afterwards


class Generation(Struct, array_like=True):
    """A generation as the answers to its JoinGroups show it."""

    joined_ms: int  # when its join phase ended
    leader: str
    answered: list[str] = []  # members whose JoinGroup was answered
    listed: list[str] | None = None  # all members, from the answer to the leader


class Prediction(Struct, array_like=True):
    """The specification's copy of one group, the requests that wait for it, and its answers."""

    group: ClassicGroup | None = None  # None: not followed
    queue: list[Event] = []  # observed requests that the specification has not handled yet
    parked: dict[int, Event] = {}  # by ticket: handled by the specification, not answered by it yet
    crossed: list[Event] = []  # the specification answered otherwise: the next request may explain it
    earlier: list[tuple[int, ClassicGroup]] = []  # (until, the group as it was until then)
    generations: dict[int, Generation] = {}  # the latest, by number
    starts: dict[int, tuple[int, str, str]] = {}  # old generation: when its rebalance started, trigger, member id
    handled_ms: int = -1  # arrival of the request that the specification handled last
    born: bool = False  # followed from the first generation: the order of its hash map is known too
    ticket: int = 0
    based_ms: int = -1  # requests that arrived before are part of what the group was made from
    since_ms: int = -1  # rebalances that ended before say nothing about the group now
    refused: list[str] = []  # members whose JoinGroup was refused lately
    release: str = ""  # the release whose rules the broker follows, once its answers have shown it
    max_size: int = MAX_INT  # group.max.size, once the broker has refused a member
    ripe_ms: int = NEVER  # when the first request of `queue` has waited long enough
    oldest_ms: int = NEVER  # arrival of the first request of `queue`
    held_ms: int = -1  # when the broker answered a request that it may have handled long after its arrival


class View(Struct, array_like=True):
    """The estimate of one group. `state` is None until a line shows it."""

    group_id: str
    broker: str = ""  # the coordinator
    since_ms: int = -1  # when it became the coordinator
    brokers: list[str] = []  # every broker that ever answered or logged for the group
    logged: bool = False  # the coordinator's own log has lines about this group
    consumer_protocol: bool = False  # KIP-848: classic phases do not apply
    state: State | None = None
    generation: int = -1
    leader_id: str = ""
    protocol: str = ""
    protocol_type: str = ""
    members: dict[str, ObservedMember] = {}
    complete: bool = False  # `members` are all members
    member_count: int = -1
    pending: dict[str, int] = {}  # member ids that were issued and not used yet: when
    ended: list[EndedMembership] = []
    unclaimed: list[RebalanceTrigger] = []  # triggers that no rebalance has followed yet
    arrived: list[str] = []  # members that joined since the group was last stable
    last_ok_ms: int = -1  # latest proof that the group was not yet rebalancing
    open: Rebalance | None = None
    closing: list[Rebalance] = []
    flagged: list[tuple[str, str, int]] = []  # (code, member, generation) of findings already written
    horizon_ms: int = -1  # events before this were handled
    nodes: dict[str, int] = {}  # broker: its node id, -1 if that is not clear
    found_coordinator: FoundCoordinator | None = None
    suspect: Suspect | None = None
    unowned: dict[str, str] = {}  # partition: the owner from which a cooperative round took it without a new one
    burst: list[PastRebalance] = []  # rebalances that followed each other closely
    undecided: list[UndecidedDeparture] = []
    revoked: list[str] = []  # members that the last rebalance took partitions from: they give them up and rejoin
    revoked_ms: int = -1
    incident: Incident | None = None
    pending_findings: list[PendingFinding] = []
    moved_ms: int = -1  # when another broker became the coordinator
    moved_clients: list[str] = []  # the group's clients at that time
    completed_ms: int = -1  # end of the last rebalance that ended in Stable
    prediction: Prediction = field(default_factory=Prediction)
    client_names: dict[str, str] = {}  # origin and client name in client logs: member id
    fetches: bool = False  # the log shows OFFSET_FETCH of its members
    poll_stalls: list[PollStall] = []
    lost: list[LostMember] = []
    gone: list[str] = []  # members that departed since the last join phase: they belong to the next rebalance
    stored: list[str] | None = None  # members of the last generation that was written to __consumer_offsets; None: unknown
    stored_generation: int = -1  # and its number
    made: list[tuple[int, int]] = []  # the latest generations: when their join phase ended, or the group was empty, and their number
    untold: int = 0  # members that no line has named, less those of `members` that departed without a line that names them
    unnamed: dict[str, int] = {}  # group.instance.id of a static member whose new id no line has named yet: since when
    consumer: ConsumerView | None = None  # while the group follows the consumer protocol
    converted_ms: int = -1  # when the group last became classic
    release: str = ""  # of the broker that coordinates it, by its own lines or the settings; empty: not known
    loaded_ms: int = -1  # when its coordinator wrote that it had read the group back
    unloaded_ms: int = -1  # when its coordinator wrote that it gave the group up
    owners_lost: bool = False  # the last rebalance may have left partitions without an owner that no line shows
    assigned_ms: int = -1  # end of the last rebalance whose assignment took effect
    said: Said | None = None  # by clients, while no broker has spoken of the group
    told_open: dict[str, Any] | None = None  # the row that was told of the rebalance that is open
    line_ms: int = -1  # the last line of a broker that named a generation
    line: Ref | None = None  # and its place
    named: tuple[int, State] | None = None  # when a line named the group's state, and that state; lines of that time may yet come

    def identity(self, member_id: str) -> tuple[str, str, str]:
        """Instance id, client id and host of a member, or of one that departed lately; empty where unknown."""
        member = self.members.get(member_id)
        if member is not None:
            return member.instance_id, member.client_name(), member.client_host
        past = self.ended_membership(member_id)
        return (past.instance_id, past.client_id, past.client_host) if past is not None else ("", "", "")

    def member_of_instance(self, instance_id: str) -> str:
        """The id of the member with this group.instance.id; empty if there is none."""
        return next((m.member_id for m in self.members.values() if instance_id and m.instance_id == instance_id), "")

    def present_or_lost(self, member_id: str) -> ObservedMember | None:
        """A member of the group, or one that is gone while it is not known how."""
        return self.members.get(member_id) or next((lost.member for lost in self.lost if lost.member.member_id == member_id), None)

    def members_are_known(self) -> None:
        """Notes that `members` are all members: a list of all of them was read, or there are none."""
        self.complete = True
        self.unnamed.clear()
        self.untold = 0
        for rebalance in self.unfinished():
            rebalance.missing = 0

    def size(self) -> int:
        """How many members there are, as far as they are known."""
        return len(self.members) + len(self.unnamed) + self.untold - sum(rebalance.missing for rebalance in self.unfinished())

    def unfinished(self) -> list[Rebalance]:
        """The rebalances that are not written yet, oldest first."""
        return [*self.closing, self.open] if self.open is not None else self.closing

    def make_generation(self, at_ms: int, generation: int) -> None:
        """Takes a new generation of the group."""
        self.generation = generation
        self.made = [*((at, number) for at, number in self.made if at <= at_ms and number < generation), (at_ms, generation)][-MADE_KEPT:]

    def generation_at(self, at_ms: int) -> int:
        """The group's generation at a time, as far back as the latest are known."""
        if not self.made or self.generation < self.made[-1][1]:
            return self.generation
        return next((number for at, number in reversed(self.made) if at <= at_ms), self.made[0][1] - 1)

    def ended_membership(self, member_id: str) -> EndedMembership | None:
        """The latest ended membership with this id."""
        return next((old for old in reversed(self.ended) if old.member_id == member_id), None)
