"""The state of one classic group, and the steps on it that more than one API takes.

A `GroupState` says who is a member, whose request is parked, what the members support, and which timers run. The handlers
decide; `group.ClassicGroup` calls them. Kafka: `ClassicGroup` (4.x), `GroupMetadata` (to 3.9).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from coordinator_model.errors import Error
from coordinator_model.specification.config import CoordinatorConfig, KafkaVersion
from coordinator_model.specification.effects import (
    Effect,
    GroupWritten,
    LeaderChanged,
    MemberAdded,
    MemberRemoved,
    RemovalCause,
    Transition,
)
from coordinator_model.specification.hash_maps import MapOrder, first_of_most
from coordinator_model.specification.member import Member, StoredGroup
from coordinator_model.specification.refusals import RefusedRequestError
from coordinator_model.specification.requests import Answer, JoinAnswer, JoinedMember, Protocols, Reply, Ticket
from coordinator_model.specification.timers import Timers
from coordinator_model.specification.transitions import Trigger, next_state
from coordinator_model.states import State


@dataclass(slots=True, eq=False)
class GroupState:
    """The state of a group between two requests. A new group has no members."""

    group_id: str
    config: CoordinatorConfig
    now_ms: int
    version: KafkaVersion = field(init=False)
    state: State = field(init=False)
    state_since_ms: int = field(init=False)
    map_order: MapOrder = field(init=False)
    """The iteration order of the map that holds the members."""
    previous_state: State = State.DEAD
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    leader: str | None = None
    members: dict[str, Member] = field(default_factory=dict)
    supported_protocols: dict[str, int] = field(default_factory=dict)
    """How many members support each protocol."""
    static_members: dict[str, str] = field(default_factory=dict)
    """Instance id => member id."""
    pending_members: dict[str, None] = field(default_factory=dict)
    """Ids handed out with MEMBER_ID_REQUIRED and not used yet. A dictionary, because it keeps the order."""
    pending_sync_members: dict[str, None] = field(default_factory=dict)
    """Members of this generation that have not sent SyncGroup yet."""
    awaiting_join: dict[str, Ticket] = field(default_factory=dict)
    """Parked JoinGroups (`ClassicGroupMember.isAwaitingJoin`)."""
    awaiting_sync: dict[str, Ticket] = field(default_factory=dict)
    """Parked SyncGroups (`ClassicGroupMember.isAwaitingSync`)."""
    new_member_added: bool = False
    """A member was added during the initial delay (`ClassicGroup.newMemberAdded`)."""
    initial_delay_ms: int = 0
    """The length of the running initial delay."""
    initial_remaining_ms: int = 0
    """By how much the initial delay may still be extended."""
    timers: Timers = field(default_factory=Timers)
    session_ends: dict[str, int] = field(default_factory=dict)
    open_sessions: dict[str, list[int]] = field(default_factory=dict)
    """Only where a member may have several session timers: see handlers/sessions.py."""
    orphans: list[tuple[int, int]] = field(default_factory=list)
    """Only 0.10.0: see `rebalance.check_orphans`."""
    append_error: Error = Error.NONE
    """The error of every write to the log while the present request is handled."""
    replies: list[Reply] = field(default_factory=list)
    effects: list[Effect] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.version = self.config.version
        self.state = State.EMPTY if self.version.empty_state else State.STABLE
        self.state_since_ms = self.now_ms
        self.map_order = MapOrder(self.version.member_map)

    # Answers and state.

    def reply(self, ticket: Ticket, answer: Answer) -> None:
        """Answer the request that was asked with `ticket`."""
        self.replies.append(Reply(ticket, self.now_ms, answer))

    def join_error(self, error: Error, member_id: str) -> JoinAnswer:
        """The answer to a refused JoinGroup (`joinError`)."""
        return JoinAnswer(error, member_id, -1 if self.version.join_errors_with_generation_minus_one else 0)

    def transition_to(self, trigger: Trigger, member_id: str = "") -> None:
        """`ClassicGroup.transitionTo`: the cause decides the next state."""
        to_state = next_state(self.state, trigger)
        self.effects.append(Transition(self.now_ms, self.state, to_state, self.generation, trigger, member_id))
        self.previous_state = self.state
        self.state = to_state
        self.state_since_ms = self.now_ms
        if to_state is State.DEAD:  # nothing can happen to the group any more
            self.timers.clear()
            self.open_sessions.clear()
            self.pending_members.clear()

    def append(self, stored: StoredGroup | None) -> Error:
        """Write the group to the log; None writes a tombstone. Kafka's writes take time, these end at once."""
        error = self.append_error_as_answered()
        if error is Error.NONE:
            self.effects.append(GroupWritten(self.now_ms, stored))
        return error

    def append_error_as_answered(self) -> Error:
        """`appendGroupMetadataErrorToResponseError`: the error that clients get for a failed write."""
        error = self.append_error
        return self.version.log_errors.get(error, error)

    def stored(self, assignments: dict[str, bytes] | None = None) -> StoredGroup:
        """The group as the log keeps it, with `assignments` in the place of those that the members have."""
        protocol = self.protocol or ""
        members = []
        for member in self.members_in_map_order():
            assignment = member.assignment if assignments is None else assignments.get(member.member_id, b"")
            chosen = ((protocol, member.metadata(protocol)),)
            members.append(member._replace(protocols=chosen, assignment=assignment, is_new=False))
        since = self.state_since_ms
        return StoredGroup(self.generation, self.protocol_type, self.protocol, self.leader, tuple(members), since)

    # Members.

    def validate_member(self, member_id: str, instance_id: str | None) -> Error:
        """`ClassicGroup.validateMember`: fencing is checked first."""
        if instance_id is not None and self.version.static_members:
            current = self.static_members.get(instance_id)
            if current is None:
                if self.version.unknown_instance_checked_first:
                    return Error.UNKNOWN_MEMBER_ID
            elif current != member_id:
                return Error.FENCED_INSTANCE_ID
        return Error.NONE if member_id in self.members else Error.UNKNOWN_MEMBER_ID

    def check_member(self, member_id: str, instance_id: str | None) -> None:
        """Refuse what is sent to a Dead group, or not by a member."""
        error = self.dead_error if self.state is State.DEAD else self.validate_member(member_id, instance_id)
        if error is not Error.NONE:
            raise RefusedRequestError(error)

    @property
    def dead_error(self) -> Error:
        """The answer of a Dead group. It makes the client look for the coordinator, or join again."""
        if self.version.dead_is_coordinator_not_available:
            return Error.COORDINATOR_NOT_AVAILABLE
        return Error.UNKNOWN_MEMBER_ID

    def add(self, member: Member, ticket: Ticket | None) -> None:
        """`ClassicGroup.add`. The first member of a group without members brings the protocol type."""
        if self.leader is None:
            self.leader = member.member_id
        self._put(member)
        self._count_protocols(member.protocols, 1)
        if ticket is not None:
            self.awaiting_join[member.member_id] = ticket
            self.effects.append(MemberAdded(self.now_ms, member.member_id, member.instance_id))
        self.pending_members.pop(member.member_id, None)

    def update_member(self, member: Member, protocols: Protocols, timeouts_ms: tuple[int, int], ticket: Ticket | None) -> None:
        """`ClassicGroup.updateMember`. `timeouts_ms` are session and rebalance timeout. Without a ticket, no JoinGroup is parked."""
        session_timeout_ms, rebalance_timeout_ms = timeouts_ms
        self._count_protocols(member.protocols, -1)
        self._count_protocols(protocols, 1)
        self.members[member.member_id] = member._replace(
            protocols=protocols, session_timeout_ms=session_timeout_ms, rebalance_timeout_ms=rebalance_timeout_ms
        )
        if ticket is not None:
            self.awaiting_join[member.member_id] = ticket

    def remove(self, member_id: str, cause: RemovalCause) -> None:
        """`ClassicGroup.remove`, for a member or a pending id. The caller stops its timers."""
        member = self.members.get(member_id)
        if member is not None:
            self._take_out(member)
            self._count_protocols(member.protocols, -1)
            self.awaiting_join.pop(member_id, None)
            self.awaiting_sync.pop(member_id, None)
            self.session_ends.pop(member_id, None)
            if member.instance_id is not None:
                self.static_members.pop(member.instance_id, None)
        if member is not None or member_id in self.pending_members:
            self.effects.append(MemberRemoved(self.now_ms, member_id, member is None, cause))
        if self.leader == member_id:
            self.change_leader(self.map_order.first(self.members))
        self.pending_members.pop(member_id, None)
        self.pending_sync_members.pop(member_id, None)

    def replace_static_member(self, old: Member, new: Member) -> None:
        """`ClassicGroup.replaceStaticMember`: the instance id, and with it leadership, moves to a new member id."""
        self._take_out(old)
        self._put(new)
        if self.leader == old.member_id:
            self.leader = new.member_id

    def change_leader(self, leader: str | None) -> None:
        """Make another member the leader."""
        self.effects.append(LeaderChanged(self.now_ms, self.leader or "", leader))
        self.leader = leader

    def _put(self, member: Member) -> None:
        self.members[member.member_id] = member
        self.map_order.added(member.member_id, len(self.members))
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id

    def _take_out(self, member: Member) -> None:
        del self.members[member.member_id]
        self.map_order.removed(member.member_id)

    def members_in_map_order(self) -> list[Member]:
        """The members as Kafka's hash map yields them (`allMembers`)."""
        members = self.members
        return [members[member_id] for member_id in self.map_order.keys(members)]

    def is_parked(self, member_id: str) -> bool:
        """A JoinGroup or SyncGroup of the member waits for its answer."""
        return member_id in self.awaiting_join or member_id in self.awaiting_sync

    def has_all_members_joined(self) -> bool:
        """`hasAllMembersJoined`: every member has rejoined and every id that was handed out has been used."""
        return len(self.awaiting_join) == len(self.members) and not self.pending_members

    def rebalance_timeout_ms(self) -> int:
        """`rebalanceTimeoutMs`: the largest of the members."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    def joined_members(self) -> tuple[JoinedMember, ...]:
        """`currentClassicGroupMembers`: the members in the answer to the leader."""
        protocol = self.protocol or ""
        return tuple(
            JoinedMember(member.member_id, member.instance_id, member.metadata(protocol)) for member in self.members_in_map_order()
        )

    # Protocols.

    def _count_protocols(self, protocols: Protocols, by: int) -> None:
        for name, _ in protocols:
            self.supported_protocols[name] = self.supported_protocols.get(name, 0) + by

    def candidate_protocols(self) -> frozenset[str]:
        """`candidateProtocols`: the protocols that all members support."""
        size = len(self.members)
        return frozenset(name for name, count in self.supported_protocols.items() if count == size)

    def supports_protocols(self, protocol_type: str, protocols: Protocols) -> bool:
        """`supportsProtocols`: whether a member with these protocols can join the group."""
        binding = self.version.empty_protocols_refused
        if self.state is State.EMPTY:
            return not binding or (protocol_type != "" and len(protocols) > 0)
        if self.protocol_type is not None and protocol_type != self.protocol_type:
            return False
        size = len(self.members)
        if size == 0 and not binding:
            return True
        return any(self.supported_protocols.get(name, 0) == size for name, _ in protocols)

    def select_protocol(self) -> str:
        """`selectProtocol`: each member votes for the first of its protocols that all support."""
        candidates = self.candidate_protocols()
        votes: dict[str, int] = {}
        for member in self.members_in_map_order():
            vote = member.vote(candidates)
            votes[vote] = votes.get(vote, 0) + 1
        return first_of_most(votes, self.version.member_map)
