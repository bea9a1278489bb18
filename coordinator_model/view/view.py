"""The state of one group as the tracker estimates it: its members, its rebalances, and what is still undecided.

Times are epoch ms. -1 stands for an unknown number and "" for an unknown text: a log may begin anywhere, so any field may be unknown.

The records are stored as arrays in the order of their fields (tracker/codec.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import asdict

from coordinator_model.events import Event
from coordinator_model.specification.config import MAX_INT
from coordinator_model.specification.timers import NEVER
from coordinator_model.states import State
from coordinator_model.view.client_troubles import Said
from coordinator_model.view.consumer_view import ConsumerView
from coordinator_model.view.members import EndedMembership, Membership
from coordinator_model.view.rebalance import Aftermath, RebalanceTrigger
from coordinator_model.view.roster import Roster
from coordinator_model.view.rows import Ref

if TYPE_CHECKING:
    from coordinator_model.specification.group import ClassicGroup
else:
    ClassicGroup = bytes  # for msgspec: the stored form of a group, which tracker/codec.py decodes


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


class PastRebalance(RebalanceTrigger, Struct, array_like=True):
    """What the search for storms and rolling restarts keeps of a rebalance that was written: what began it, when it did, and the rest."""

    total_ms: int = 0
    unavailable_ms: int = -1
    moved: int = -1
    first: bool = False  # the group had been empty
    generation: int = -1  # the group's when it started
    gone_ms: int = -1  # when the member that departed stopped
    unheard_ms: int = 0  # the time, over all partitions, in which their owners were silent before it started
    members: tuple[int, int] = (-1, -1)  # how many there were before it, and after it
    row_ms: int = -1  # when its row of `rebalances` begins: an epoch of the consumer protocol may share one with others
    blamed: str = ""  # how another member failed while all waited for it (sql/views/blamed_rebalances.sql); empty: none did

    @classmethod
    def of(cls, began: RebalanceTrigger, **others: Any) -> PastRebalance:
        """What began it, and the rest."""
        return cls(**asdict(began) | others)


class Silence(Membership, Struct, array_like=True):
    """A member was silent until its session ended, or nearly did. It is not told yet, while a broker may turn out to be the reason."""

    at_ms: int = -1  # when the session ended, or the member was heard again
    is_end: bool = False  # the session ended
    seen_ms: int = -1  # when the member was heard before
    generation: int = -1
    signs: list[Ref] = []
    silent_ms: int = -1
    of_group: bool = False  # the session timeout is a setting of the group (KIP-848)
    limit_seen: bool = False  # if so: the group removed a member after that time
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


class View(Roster, Struct, array_like=True):
    """The estimate of one group. `state` is None until a line shows it."""

    broker: str = ""  # the coordinator
    since_ms: int = -1  # when it became the coordinator
    brokers: list[str] = []  # every broker that ever answered or logged for the group
    logged: bool = False  # the coordinator's own log has lines about this group
    consumer_protocol: bool = False  # KIP-848: classic phases do not apply
    state: State | None = None
    leader_id: str = ""
    protocol: str = ""
    protocol_type: str = ""
    last_ok_ms: int = -1  # latest proof that the group was not yet rebalancing
    flagged: list[tuple[str, str, int]] = []  # (code, member, generation) of findings already written, against repeats alone
    not_admitted: list[tuple[str, str, str]] = []  # client id, host and instance id of those that were refused because the group is full
    fenced: list[str] = []  # instance ids of members that were refused because another one has theirs
    horizon_ms: int = -1  # events before this were handled
    nodes: dict[str, int] = {}  # broker: its node id, -1 if that is not clear
    found_coordinator: Event | None = None  # the last answer to FIND_COORDINATOR
    suspect: Event | None = None  # the first answer for the group since then by another broker, whose node is in `coordinator_id`
    aftermath: Aftermath = field(default_factory=Aftermath)  # of the last rebalance that was written
    burst: list[PastRebalance] = []  # rebalances that followed each other closely
    undecided: list[EndedMembership] = []  # whose rows wait for a line that shows how they ended
    incident: Incident | None = None
    silences: list[Silence] = []  # that are not told yet
    moved_ms: int = -1  # when another broker became the coordinator
    moved_clients: list[str] = []  # the group's clients at that time
    completed_ms: int = -1  # end of the last rebalance that ended in Stable
    prediction: Prediction = field(default_factory=Prediction)
    client_names: dict[str, str] = {}  # origin and client name in client logs: member id
    fetches: bool = False  # the log shows OFFSET_FETCH of its members
    poll_stalls: list[EndedMembership] = []  # whose poll loops stalled: the client's return shows for how long
    consumer: ConsumerView | None = None  # while the group follows the consumer protocol
    converted_ms: int = -1  # when the group last became classic
    release: str = ""  # of the broker that coordinates it, by its own lines or the settings; empty: not known
    loaded_ms: int = -1  # when its coordinator wrote that it had read the group back
    unloaded_ms: int = -1  # when its coordinator wrote that it gave the group up
    assigned_ms: int = -1  # end of the last rebalance whose assignment took effect
    said: Said | None = None  # by clients, while no broker has spoken of the group
    told_open: dict[str, Any] | None = None  # the row that was told of the rebalance that is open
    line_ms: int = -1  # the last line of a broker that named a generation
    line: Ref | None = None  # and its place
    named: tuple[int, State] | None = None  # when a line named the group's state, and that state; lines of that time may yet come

    def note_line(self, at_ms: int, line: Ref) -> None:
        """A broker's line names a generation, or an epoch."""
        self.line_ms, self.line = at_ms, line

    @property
    def group_type(self) -> str:
        """The first word in the names of its settings: consumer, share or streams."""
        return (self.consumer.group_type if self.consumer is not None else "") or "consumer"
