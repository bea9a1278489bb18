"""The state of one group of the consumer protocol (KIP-848) as the tracker estimates it: its members, their epochs, and its episode.

The terms are Kafka's: each change of the group raises its epoch. A member that has the partitions of an epoch is reconciled to it. The
group is Stable when all members are reconciled to the group's epoch. An episode is what is called a rebalance of such a group: from the
change that ended Stable (or Empty) until the group is Stable (or Empty) again. Each change within it is a round.

Only this module writes who is a member, as the roster does of a classic group (roster.py).

Times are epoch ms. -1 stands for an unknown number and "" for an unknown text. The records are stored as arrays in the order of their
fields (tracker/codec.py).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from msgspec import Struct, field

from coordinator_model.events import Event
from coordinator_model.view.members import EndedMembership, Membership
from coordinator_model.view.rows import Ref

_GONE_KEPT: Final = 64


class ConsumerMember(Membership, Struct, array_like=True):
    """One member of a group of the consumer protocol."""

    epoch: int = -1  # that of the last accepted answer
    heard_ms: int = -1  # arrival of its last accepted heartbeat
    topics: tuple[str, ...] | None = None  # by name; None: unknown
    partitions: tuple[str, ...] | None = None  # that it may own, as topic id and number; None: unknown
    told_ms: int = -1  # when it was told to give partitions up, which it has not acknowledged
    giving: tuple[str, ...] = ()  # those partitions
    away_ms: int = -1  # when a static member left for a while
    caught_up: int = 0  # `ConsumerView.frees` at its last answer
    gone_ms: int = -1  # when it departed
    end_kind: str = ""  # how
    regex: str | None = None  # that it subscribes to; "": none; None: unknown
    regex_ms: int = -1  # since when
    epoch_ms: int = -1  # when it was told of `epoch`
    tried_ms: int = -1  # when its last heartbeat was refused
    classic: bool = False  # it speaks the classic protocol
    synced: int = 0  # how many partitions its last SyncGroup brought, if so: it names them otherwise than the others
    revoke_by_ms: int = -1  # until when it has to give partitions up, as a record says; a new coordinator begins the time anew
    waits: int = -1  # whether others still own partitions that it is to have, as a record says: 0 or 1; -1: not known
    gone_signs: list[Ref] = []  # records that show that it departed, until its row is written: another log may show why
    assignor: str = ""  # that it prefers; empty: not known, or none
    stalled_ms: int = -1  # when its client's log said that poll() was not called in time

    def reach(self, epoch: int, at_ms: int) -> None:
        """It is told of an epoch."""
        self.epoch, self.epoch_ms = epoch, at_ms

    def as_observed(self, interval_ms: int, **others: Any) -> EndedMembership:
        """What its silences are judged by, as those of a classic member whose heartbeats come so long after each other."""
        heard_ms = max(self.heard_ms, self.tried_ms)
        beats = {"heartbeats": 2, "seen_ms": heard_ms, "beat_ms": heard_ms, "first_beat_ms": heard_ms - interval_ms}
        return EndedMembership(**self.shared() | {"instance_id": ""} | beats | others)


class Round(Struct, array_like=True):
    """One change of the group and what it took until all members were reconciled to its epoch."""

    epoch: int
    at_ms: int
    logged: bool  # the coordinator's own line or record gave the time
    cause: str = ""  # empty: no line shows it
    member_id: str = ""  # that the cause is about
    computed_ms: int = -1  # the target assignment was there
    reached_ms: int = -1  # all members were reconciled; -1: another round came before, or no line shows it
    signs: list[Ref] = []
    same_metadata: bool = False  # the coordinator says that the subscribed topics and their partitions are those of the epoch before
    stored: bool = False  # a record shows it: then records show what members acknowledge, too
    returned: str = ""  # the static member that came back at that moment
    lost: bool = False  # no line says why: somebody may have come or gone
    members_known: bool = False  # if so: all members were known before
    at_once: bool = False  # the heartbeat that raised it computed the target, too
    other_metadata: bool = False  # the coordinator says that they are others
    without_topics: bool = False  # the coordinator says that no member subscribes to a topic any more
    missing: int = -1  # the first epoch before it that no line has
    known: tuple[int, Ref] | None = None  # the last line before those: when it was written, and where it stands
    target_ms: int = -1  # since when members could move on to it, where a target may come later than its epoch

    def called_ms(self) -> int:
        """Since when members could move on to the epoch."""
        return self.target_ms if self.target_ms >= 0 else self.at_ms

    def note(self, sign: Ref) -> None:
        """A line shows it, too."""
        self.signs.append(sign)


class Revocation(Struct, array_like=True):
    """What a member was told to give up."""

    member_id: str
    client_id: str
    epoch: int  # of the round in which it was told
    told_ms: int
    partitions: int  # how many
    ended_ms: int = -1  # when it had given them up, or had gone
    end: str = ""  # ACKNOWLEDGED, AWAY, or how its membership ended; empty: neither was seen


class Episode(Struct, array_like=True):
    """A rebalance. Partitions are named by topic id and number."""

    from_empty: bool
    members_before: int  # -1: unknown
    rounds: list[Round] = []
    joined: list[str] = []
    left: list[str] = []
    assignor: str = ""
    owners_before: dict[str, str] = {}  # partition: member id
    owners: dict[str, str] = {}  # partition: the member that was assigned it during the episode
    unowned: dict[str, int] = {}  # partition: since when nobody has it
    freed: dict[str, int] = {}  # member id: number of the last time that it gave partitions up, by `ConsumerView.frees`
    unavailable_ms: int = 0  # sum over partitions that found an owner
    changed_ms: int = -1  # the last line that brought the group nearer to Stable
    last_ms: int = -1  # the last line about the episode
    shares: dict[str, int] = {}  # member id: ms for which the group waited for its heartbeat or its acknowledgement
    ended_ms: int = -1
    end_seen: bool = False  # a line shows when it ended
    members_after: int = -1
    is_empty: bool = False  # it ended with the last member
    partitions: int = -1  # assigned at its end
    unheard: list[str] = []  # members whose partitions before it are not known
    start_written: bool = False  # the change of state that began it
    revocations: list[Revocation] = []
    cut_off: bool = False  # the group became classic before it ended
    polled: bool = False  # only polls show it: its one round has no epoch

    def touch(self, at_ms: int) -> None:
        """A line brings the group nearer to Stable."""
        self.changed_ms = self.last_ms = max(self.last_ms, at_ms)

    def come(self, member_id: str) -> None:
        """A member joined in this rebalance."""
        if member_id not in self.joined:
            self.joined.append(member_id)

    def depart(self, member_id: str) -> None:
        """A member is gone. One that came in this rebalance leaves no trace in its counts."""
        if member_id in self.joined:
            self.joined.remove(member_id)
        else:
            self.left.append(member_id)

    def doubt_count(self) -> None:
        """How many members there were before is not known: who came with it may be counted already."""
        self.members_before = -1

    def count(self, members: int) -> None:
        """The rebalance ends with so many members."""
        self.members_after, self.is_empty = members, not members


class Change(Struct, array_like=True):
    """What raises the epoch: the line about the epoch, or an answer with it, follows. A member comes or goes only then."""

    at_ms: int
    cause: str
    member_id: str  # that it is about; empty: none
    sign: Ref
    logged: bool  # the coordinator's own line or record says so
    comer: ConsumerMember | None = None  # who joins
    doubtful: bool = False  # it is the cause only if topics and partitions are the same as before


TopicSize = tuple[int, int, int]
"""Both halves of a topic id, and how many partitions it has; (0, 0, 0): there is no such topic."""


class SettledGroup(Struct, array_like=True):
    """A group at the end of a rebalance, when all members were reconciled: what that shows of it."""

    at_ms: int
    members: list[str]
    topics: dict[str, TopicSize]  # by name, all that members subscribe to


class ConsumerPrediction(Struct, array_like=True):
    """The specification's copy of one group, the requests that wait for it, and what is known of the topics."""

    group: bytes = b""  # specification/consumer/codec.py; empty: not followed
    born: bool = False  # followed from its first member on: the order of its members in Kafka's hash maps is known
    based_ms: int = -1  # requests that arrived before are part of what the group was made from
    queue: list[Event] = []  # requests and expiries that the specification has not handled yet
    busy_ms: int = -1  # the last event while a rebalance ran
    settled: list[SettledGroup] = []  # ends of rebalances whose requests are in `queue`
    epoch: int = -1  # of the group at the last of them
    topics: dict[str, TopicSize] = {}  # by name, as `group` knows them
    names: dict[str, tuple[str, ...]] = {}  # halves of a topic id: the names that it may have
    range_first: bool = False  # the answers showed that the broker prefers the range assignor
    compared: int = 0  # answers
    undecided: dict[str, int] = {}  # why: answers that were not compared, as the evidence does not decide what they should be

    def lose_sight(self) -> None:
        """How the group is, is not known any more."""
        self.group, self.born = b"", False


class ConsumerView(Struct, array_like=True):
    """The estimate of one group of the consumer protocol."""

    epoch: int = -1
    members: dict[str, ConsumerMember] = {}
    complete: bool = False  # `members` are all members
    changes: list[Change] = []  # that no epoch has followed yet
    episode: Episode | None = None
    ended: list[Episode] = []  # not written yet: lines that come after the end name members
    heard: bool = False  # a request log shows heartbeats of this group
    gone: list[ConsumerMember] = []  # the latest that departed: requests of theirs may still come
    frees: int = 0  # how often partitions were given up
    state: str = ""  # of the group after the last change of state that was written
    metadata_hash: str = ""  # of the subscribed topics and their partitions, in the line about the last epoch
    expired_after_ms: int = -1  # the shortest silence after which a session ended: no shorter than the session timeout
    survived_ms: int = -1  # the longest silence that ended no session
    loaded_ms: int = -1  # when a coordinator read the group back: sessions begin anew
    group_type: str = ""  # "share" or "streams"; empty: a consumer group
    stored_epoch: int = -1  # that of the last record with an epoch
    prediction: ConsumerPrediction = field(default_factory=ConsumerPrediction)
    polled: bool = False  # only polls show the group
    epoch_before: int = -1  # that before the last one; higher than the one before by more than 1 if lines are missing
    doubtful_epoch: int = -1  # far higher than `epoch`, and shown by the last answer alone
    hash_epoch: int = -1  # the epoch of `metadata_hash`
    stalls: dict[str, int] = {}  # clients whose logs said that poll() was not called in time: when they said so last
    given_up: tuple[int, Ref] | None = None  # when its coordinator gave it up, and the line; None: a coordinator has it
    since_4_3: int = -1  # whether first epochs showed the rules of Kafka 4.3: 0 or 1; -1: they did not

    def find(self, member_id: str, instance_id: str = "") -> ConsumerMember:
        """The member that a line names. If it was not known, the line about its coming is missing, as may be those about others."""
        self.complete = self.complete and member_id in self.members
        return self.members.setdefault(member_id, ConsumerMember(member_id, instance_id))

    def admit(self, member: ConsumerMember, *, joins: bool) -> ConsumerMember:
        """A member comes, or is known already. `joins`: in the rebalance that runs, if one does."""
        if member.member_id not in self.members and joins and self.episode is not None:
            self.episode.come(member.member_id)
        return self.members.setdefault(member.member_id, member)

    def settle(self, *changes: Change) -> None:
        """An epoch followed these, or none will."""
        self.changes = [one for one in self.changes if one not in changes]

    def changes_about(self, member_id: str) -> list[Change]:
        """Those that no epoch has followed yet."""
        return [one for one in self.changes if one.member_id == member_id]

    def by_join(self) -> list[str]:
        """The members in the order in which they came."""
        return sorted(self.members, key=lambda member_id: (self.members[member_id].joined_ms, member_id))

    def know_all(self, *, is_all: bool = True) -> None:
        """A line shows whether `members` are all members."""
        self.complete = is_all

    def take_list(self, members: dict[str, ConsumerMember]) -> None:
        """A list of all members was read."""
        self.members = members
        self.know_all()

    def found_group(self, episode: Episode) -> None:
        """The epoch that was raised last is the first of a new group: its members so far came with it."""
        self.know_all()
        episode.from_empty, episode.members_before, episode.joined = True, 0, self.by_join()

    def take_out(self, member_id: str, at_ms: int, end_kind: str) -> ConsumerMember | None:
        """A member is gone; None: it was none."""
        member = self.members.pop(member_id, None)
        if member is not None:
            member.gone_ms, member.end_kind = at_ms, end_kind
            self._remember(member)
        return member

    def rename(self, member: ConsumerMember, new_id: str, at_ms: int) -> None:
        """A static member goes on under a new id, with its partitions and its epoch (KIP-848, replaceMember)."""
        old_id = member.member_id
        self.members = {new_id if member_id == old_id else member_id: one for member_id, one in self.members.items()}
        self._remember(ConsumerMember(old_id, member.instance_id, member.client_id, member.client_host))
        member.member_id, member.joined_ms, member.heartbeats, member.longest_gap_ms = new_id, at_ms, 0, -1
        if self.episode is not None:
            owners = self.episode.owners_before
            owners.update({partition: new_id for partition, owner in owners.items() if owner == old_id})

    def lose_sight(self, since_ms: int, keep: Collection[str]) -> None:
        """Lines are missing: who is a member is not known, but for those seen since then, and these."""
        self.members = {m: one for m, one in self.members.items() if m in keep or max(one.heard_ms, one.joined_ms) >= since_ms}
        self.know_all(is_all=False)

    def _remember(self, member: ConsumerMember) -> None:
        """Keeps who departed: the latest, and those whose rows are not written."""
        gone = [*self.gone, member]
        self.gone = [*(one for one in gone[:-_GONE_KEPT] if one.gone_signs), *gone[-_GONE_KEPT:]]

    def unfinished(self) -> list[Episode]:
        """The rebalances that are not written yet, oldest first."""
        return [*self.ended, self.episode] if self.episode is not None else self.ended
