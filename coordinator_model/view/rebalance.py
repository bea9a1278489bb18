"""A rebalance of the classic protocol, what may have begun it, and who came and left with it.

Times are epoch ms. -1 stands for an unknown number and "" for an unknown text.
"""

from __future__ import annotations

from msgspec import Struct, field

from coordinator_model.events import NO_CONFIG
from coordinator_model.states import State
from coordinator_model.view.rows import Record, Ref


class Moves(Struct, array_like=True):
    """Who came and who left within one rebalance. One that came and left again, or the other way round, did neither."""

    by_name: dict[str, bool] = {}  # member id: whether it came; in the order of the lines
    unnamed: int = 0  # members that came, by the coordinator's count, and that no line has named
    missing: int = 0  # members that the join phase lost, by the coordinator's count, and that no line has named yet

    def note(self, member_id: str, *, came: bool, is_new: bool = True) -> None:
        """A member came or left. `is_new`: if not, it was there before, unless it had left in this rebalance: then it is back."""
        if self.by_name.get(member_id, came) is not came:
            del self.by_name[member_id]
        elif is_new:
            self.by_name.setdefault(member_id, came)

    def joined(self) -> list[str]:
        """Those that came."""
        return [member_id for member_id, came in self.by_name.items() if came]

    def left(self) -> list[str]:
        """Those that left."""
        return [member_id for member_id, came in self.by_name.items() if not came]

    def has_joined(self, member_id: str) -> bool:
        """Whether a member is one that came."""
        return self.by_name.get(member_id, False)

    def has_left(self, member_id: str) -> bool:
        """Whether a member is one that left."""
        return not self.by_name.get(member_id, True)


class RebalanceTrigger(Record, Struct, array_like=True):
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

    def columns(self) -> dict[str, str | None]:
        """The cause, and who the client was, as tables have it."""
        told = {"cause": self.cause, "reason": self.reason, "member_id": self.member_id, "instance_id": self.instance_id}
        return {name: text or None for name, text in (told | {"client_id": self.client_id, "client_host": self.client_host}).items()}

    def known_as(self, instance_id: str, client_id: str, client_host: str) -> RebalanceTrigger:
        """The same with what else is known of its client by now."""
        host = client_host or self.client_host
        return self.changed(instance_id=instance_id or self.instance_id, client_id=client_id or self.client_id, client_host=host)


class TasksWait(Record, Struct, array_like=True):
    """Tasks of lost workers of Connect that nobody gets until the scheduled delay is over (KIP-415)."""

    began_ms: int  # when the leader told of the delay first
    delay_ms: int  # how long it was then
    began: RebalanceTrigger  # the loss
    generation: int
    due_ms: int = -1  # when it is over
    since: dict[str, tuple[int, int]] = {}  # task: since when it runs nowhere, and the start of the rebalance that lost it


class Aftermath(Struct, array_like=True):
    """What a rebalance leaves to the next one."""

    unowned: dict[str, str] = {}  # partition: the owner from which a cooperative round took it without a new one
    owners_lost: bool = False  # partitions may be without an owner that no line shows
    revoked: list[str] = []  # members that it took partitions from: they give them up and rejoin
    ended_ms: int = -1
    config_offset: int = NO_CONFIG  # of Connect: how far its leader had read the config topic
    wait: TasksWait | None = None  # of Connect
    changed_by: str = ""  # the worker of Connect that began it, as a connector had changed


class Rebalance(Record, Struct, array_like=True):
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
    moves: Moves = field(default_factory=Moves)
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
    proven: bool = False  # a later line shows that the assignment was stored: brokers log that it came before they store it
    vacant: dict[str, int] = {}  # partition that an earlier rebalance left without an active owner: from when on this one pays for it
    next_state: str = ""  # of one whose end no line shows: the state in which the next line finds the group
    owners_unknown: bool = False  # who had which partitions before it is not known
    called: dict[str, int] = {}  # members that an answer told to join again: when
    decided: RebalanceTrigger | None = None  # what began it, once a row has said so
    unannounced: bool = False  # the coordinator logged the end of its join phase, and its beginning is missing
    waits: bool = False  # a line, or a timer, shows that its members still waited for the assignment when the next one began
    absent: list[str] = []  # a static leader that did not join again in time, by the coordinator's word
    end_seen: bool = True  # whether a line shows when it ended; else `ended_ms` is the time of its last line
    config_offset: int = NO_CONFIG  # of Connect: how far the leader had read the config topic
    delay_ms: int = 0  # of Connect: until lost connectors and tasks are given to others

    @property
    def of_connect(self) -> bool:
        """Whether its assignment is one of workers of Connect."""
        return self.config_offset > NO_CONFIG

    def note(self, *signs: Ref) -> None:
        """These lines show it, too."""
        self.evidence += signs
