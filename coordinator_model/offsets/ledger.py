"""What is kept of a group's offsets: the commits of each partition, the ends of its log, and the hand-overs that are not written yet.

A coordinator's state is small beside its offsets. So of the commits only stretches stay: those of one member in one generation, with the
first and the last. A rebalance, which is written some time after it happened, finds there what was committed before and after it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Any, Final, TypeVar

from msgspec import Struct, field, msgpack

from coordinator_model import events as kinds
from coordinator_model.events import Assignment, Event, Offsets
from coordinator_model.offsets.ends import Ends
from coordinator_model.offsets.reads import END_ALONE, NOT_TOLD, End, Read
from coordinator_model.specification.timers import NEVER
from coordinator_model.view.rows import Ref, ref

OF_NOBODY: Final = -2
"""In the place of a generation."""
RECENT: Final = 8
"""Commits of a partition whose rate counts."""
_STRETCHES: Final = 8
_RUNS: Final = 6
_SHARES: Final = frozenset({kinds.SYNC_GROUP, kinds.GROUP_STORED, kinds.GROUP_DESCRIBED, kinds.CONSUMER_GROUP_DESCRIBED})
"""The kinds of events that say who has which partitions: all of them, but for SYNC_GROUP, which may say it of one member."""
_COMMITS: Final = frozenset({kinds.OFFSET_COMMIT, kinds.TXN_OFFSET_COMMIT, kinds.OFFSETS_STORED})

Client = tuple[str, str, str]
"""Member id, client id and host."""
_Waits = TypeVar("_Waits", "Seen", Read)


class Topics(Struct, array_like=True):
    """What is known of topics."""

    by_id: dict[str, tuple[int, str]] = {}  # when the name was told first, and the name
    compacted: dict[str, int] = {}  # by their names: when that was told first


class Seen(Struct, array_like=True, frozen=True, gc=False):
    """Offsets in a line."""

    at_ms: int
    kind: str
    broker: str  # whose log it is in
    sign: Ref
    generation: int
    client: Client
    offsets: Offsets | None
    shares: tuple[Assignment, ...] = ()
    since_ms: int = -1  # OFFSETS_POLLED: the poll before, at which the ends were still those of then

    @property
    def is_commit(self) -> bool:
        """Whether it is a commit that a coordinator accepted."""
        return self.kind in _COMMITS


def seen(event: Event) -> Seen | None:
    """The offsets and the shares of an event. None: it has neither."""
    shares = event.assignments if event.kind in _SHARES and event.error_code == 0 else ()
    if event.offsets is None and not shares:
        return None
    client = (event.member_id, event.client_id, event.client_host)
    since_ms = event.received_ms if event.kind == kinds.OFFSETS_POLLED and event.received_ms < event.at_ms else -1
    return Seen(event.at_ms, event.kind, event.broker, ref(event), event.generation, client, event.offsets, shares, since_ms)


class Stretch(Struct, array_like=True):
    """Commits of one member in one generation, one after the other."""

    client: Client
    generation: int  # -1: not known, or the offsets of no member; OF_NOBODY: the group had no members
    first_ms: int
    first: int  # offset
    last_ms: int
    last: int
    sign: Ref  # of the last one
    broker: str  # ... whose log it is in
    in_transaction: bool = False


class Start(Struct, array_like=True):
    """An answer to OffsetFetch: from where a client begins."""

    at_ms: int
    offset: int  # -1: none is committed
    client: Client
    sign: Ref


class Run(Struct, array_like=True):
    """What a connection read of a partition, without going back."""

    connection: int
    client: str  # reads.client_key
    first_ms: int
    first: int  # where it began
    last_ms: int
    before: int  # its position before the last span
    position: int  # ... in that
    sign: Ref  # of a request at the end
    end: int = -1  # of the log, as it was told last
    step: int = 0  # the most that it went on in a span
    is_ahead: bool = True  # of its commits, as far as is known: it asks for more than its application has processed
    asked_ms: int = -1  # when its last request arrived
    previous: int = -1  # the position in the request before that: what came in between may still be in hand
    judged: bool = False  # it is known whether it went back

    @property
    def has_more(self) -> bool:
        """Whether the last answer brought much of what it reads in a span: it asks again when its application has processed that."""
        return 2 * (self.end - self.position) > self.step


class Partition(Struct, array_like=True):
    """The offsets of one partition."""

    stretches: list[Stretch] = []
    recent: list[tuple[int, int]] = []  # the last commits: time, offset
    ends: Ends = field(default_factory=Ends)
    start: Start | None = None  # the last one
    reached: int = -1  # the highest offset that was committed since it was handed over
    moved_ms: int = -1  # the last commit that was not where the one before was
    lost: int = -1  # what was committed before none was: the client that begins next has no place
    out_of_range: bool = False  # it was still committed, but is none of the log
    told_lost: bool = False  # whether that was told
    handed_ms: int = -1  # the answer with which it was handed over last
    told: int = -1  # the committed offset of which it was told that it stands
    runs: list[Run] = []  # what was read, the last one that began last
    read_ms: int = -1  # when a position was a new one last
    back_ms: int = -1  # when a connection went back last
    begun: int = -1  # the position at which a client began that had no place
    topic_id: str = ""  # if that was told
    stable: int = -1  # the last stable offset, if a transaction is open: where it began
    stable_ms: int = -1  # since when it has been that
    transactions: bool = False  # each one has a marker, which takes an offset, and records of an aborted one are not read
    compacted: bool = False

    @property
    def gaps(self) -> bool:
        """Whether offsets are not records: so many of them are so many records at most."""
        return self.transactions or self.compacted

    @property
    def last(self) -> Stretch | None:
        """The stretch with the last commit."""
        return self.stretches[-1] if self.stretches else None

    def end(self, told: End) -> None:
        """Takes the end of its log. Its last stable offset is one, too, unless it has transactions: one may be open, with records."""
        self.transactions |= bool(told.transactions)
        if told.end >= 0 or not self.transactions:
            self.ends.add(told.at_ms, max(told.end, told.stable), -1)
        if told.stable >= 0:
            is_open = bool(self.ends.offsets) and told.stable < self.ends.offsets[-1]
            if not is_open or told.stable != self.stable:
                self.stable, self.stable_ms = (told.stable, told.at_ms) if is_open else (-1, -1)

    def lose(self, *, out_of_range: bool = False) -> None:
        """No offset is committed any more, or the log does not have it."""
        if self.last is not None and self.lost < 0:
            self.lost, self.begun, self.out_of_range = self.last.last, -1, out_of_range

    def read(self, read: Read) -> None:
        """Takes what was read in a span."""
        run = next((run for run in reversed(self.runs) if run.connection == read.connection), None)
        if run is None or not (read.follows(run.last_ms, run.position) or self._is_after_pause(run, read)):
            began = read.connection, read.client, read.first_ms, read.position, read.first_ms, read.position, read.position, read.sign
            known = () if run is None else (run.end, run.step, run.is_ahead)
            if run is not None and read.position < run.position:
                self.back_ms = read.first_ms
            run = Run(*began, *known)
            self.runs = sorted([*self.runs, run], key=attrgetter("first_ms", "connection"))[-_RUNS:]
            if self.lost >= 0 > self.begun:
                self.begun = read.position
        if read.reached > run.position or run.first_ms == read.first_ms:
            self.read_ms = read.last_ms
        run.step = max(run.step, read.reached - run.position)
        run.before, run.position, run.last_ms, run.sign = run.position, read.reached, read.last_ms, read.sign
        run.asked_ms, run.end = read.asked_ms, max(run.end, read.end)
        run.previous = run.before if read.previous == NOT_TOLD else read.previous

    def _is_after_pause(self, run: Run, read: Read) -> bool:
        """Whether a connection goes on after a pause. Within a fetch session it asks for no partition of which nothing new came (KIP-227).

        Nobody else read meanwhile, or asked for the committed offset, and one answer may have brought what is between.
        """
        is_owner = self.start is not None and self.start.at_ms <= run.last_ms
        return is_owner and 0 <= read.position - run.position <= run.step and all(other.last_ms <= run.last_ms for other in self.runs)

    def commit(self, at_ms: int, offset: int, of: Seen) -> None:
        """Takes a commit that is not before the last one."""
        last, recent, in_transaction = self.last, self.recent, of.kind == kinds.TXN_OFFSET_COMMIT
        if last is None or last.generation != of.generation or last.client[0] != of.client[0]:
            self.stretches.append(Stretch(of.client, of.generation, at_ms, offset, at_ms, offset, of.sign, of.broker, in_transaction))
            del self.stretches[:-_STRETCHES]
        else:
            last.last_ms, last.last, last.in_transaction = at_ms, offset, in_transaction
            last.sign, last.broker = of.sign, of.broker
        if self.runs:
            self.runs[-1].is_ahead = offset < self.runs[-1].before
        self.reached = max(self.reached, offset)
        if not recent or offset != recent[-1][1]:
            self.moved_ms = at_ms
            if recent and offset < recent[-1][1]:
                recent.clear()  # the rate of what comes says nothing of what was before
        recent.append((at_ms, offset))
        if len(recent) > RECENT:
            del recent[0]


class HandOver(Struct, array_like=True):
    """A partition that stops with a rebalance, until it is read again and its lag is what it was."""

    partition: str
    generation: int  # that of the rebalance; -1: none, or not known
    first_epoch: int  # with which it began; the same for a classic group
    started_ms: int  # of the rebalance
    ended_ms: int
    kept_alone: bool  # members keep their partitions: who commits on is no new owner
    left: str  # the cause of the rebalance, if its owner left with it
    gone: bool  # its owner had stopped before the rebalance began
    stopped_ms: int  # until when an owner that left had worked (Row.stopped); -1: it is not known, or it stayed
    before: Stretch
    reached: int  # the highest offset that was committed before
    recent: list[tuple[int, int]]  # the last commits before
    start: Start | None = None
    after: tuple[int, int] | None = None  # the first commit after: time, offset
    heir: Client | None = None  # who made it
    end_before: int = -1  # of the log at the last commit before
    lag_before: int = -1  # then
    lag_usual: int = -1  # the largest at one of the last commits before
    end_resumed: int = -1  # of the log when it was read again
    end_stopped: int = -1  # ... when its owner had stopped at the latest
    unjudged: list[tuple[int, int]] = []  # commits after, until the end of the log is known then
    caught_up_ms: int = -1
    reader: int = -1  # the connection on which its owner had read
    asked_ms: int = -1  # when that asked for records last
    reads_on: bool = False  # it is its owner itself that goes on
    read_least: int = -1  # how far it had read, at least
    read_most: int = -1  # ... at most
    died: bool = False  # its owner fell silent
    read_more: int = -1  # its application keeps up with it: so much it may have read since its last commit; -1: that is not known

    @property
    def resumed_ms(self) -> int:
        """When it was read again; -1: it is not yet."""
        return self.start.at_ms if self.start is not None else self.after[0] if self.after is not None else -1


class Ledger(Struct, array_like=True):
    """The offsets of one group."""

    partitions: dict[str, Partition] = {}
    open: dict[str, HandOver] = {}  # by partition
    closed: list[HandOver] = []  # that wait for the end of the log at their last commit alone
    waiting: list[Seen] = []  # what was seen and not explained yet
    reads: list[Read] = []  # likewise
    rebalances: list[dict[str, Any]] = []  # likewise: of their rows what hand-overs need (handovers.COLUMNS)
    explained_ms: int = -1  # what was before is explained: what comes of it now is late
    starts_seen: bool = False  # requests for offsets are logged: who does not ask for a partition's offset goes on with it
    rebalance_began_ms: int = -1  # the start of the last rebalance
    rebalanced_ms: int = -1  # ... its end
    members: int = -1  # after it; -1: not known
    member_commit_ms: int = -1  # the last commit of a member
    stopped: dict[str, int] = {}  # until when members had worked that left with it, or before it if it found the group empty
    died: list[str] = []  # those of them that fell silent
    told_none: bool = False  # it was told that nothing is committed
    told_behind_ms: int = -1  # the start of the rebalance of which it was told that commits are too seldom

    owners: dict[str, str] = {}  # of each partition that somebody has, as far as shares were seen: a member id
    owners_of: int = -1  # in this generation
    owners_ms: int = -1  # when the last share was seen

    @property
    def waits(self) -> bool:
        """Whether time alone may add rows."""
        return bool(self.waiting or self.reads or self.rebalances or self.open or self.closed)

    def take(self, event: Seen) -> None:
        """Takes what an event shows, if it is not late."""
        if event.at_ms >= self.explained_ms:
            self.waiting.append(event)

    def take_reads(self, reads: Iterable[Read]) -> None:
        """Takes what a client read, if it is not late."""
        self.reads += [read for read in reads if read.at_ms >= self.explained_ms]

    def share(self, of: Seen) -> None:
        """Takes who has which partitions."""
        if of.kind != kinds.SYNC_GROUP or of.generation != self.owners_of:
            self.owners.clear()
        self.owners_of, self.owners_ms = of.generation, of.at_ms
        self.owners.update({p: one.member_id for one in of.shares for p in one.partitions or ()})

    def find(self, named: str, at_ms: int, topics: Topics, topic_id: str = "") -> tuple[str, Partition]:
        """A partition, and its name if that was told by then. One that was not known is not kept.

        `named`: with the name of its topic or, in newer requests, the id. A topic that was made anew has another id, and its offsets begin
        anew.
        """
        topic, _, number = named.rpartition("-")
        told_ms, name = topics.by_id.get(topic, (NEVER, ""))
        if told_ms <= at_ms:
            topic_id, named, topic = topic, f"{name}-{number}", name
        partition = self._of(named, number, topics, topic_id)
        partition.compacted |= topics.compacted.get(topic, NEVER) <= at_ms
        return named, partition

    def _of(self, named: str, number: str, topics: Topics, topic_id: str) -> Partition:
        partition = self.partitions.get(named)
        if not topic_id:
            return Partition() if partition is None else partition
        if partition is not None and partition.topic_id and topics.by_id[topic_id] > topics.by_id[partition.topic_id]:
            partition = None
            del self.partitions[named]
            self.open.pop(named, None)
            self.closed = [one for one in self.closed if one.partition != named]
        by_id = f"{topic_id}-{number}"
        if (before := self.partitions.pop(by_id, None)) is not None:
            partition = self.partitions[named] = partition or before
            if by_id in self.open:
                self.open.setdefault(named, self.open.pop(by_id)).partition = named
            for one in self.closed:
                one.partition = named if one.partition == by_id else one.partition
        if partition is None:
            return Partition(topic_id=topic_id)
        partition.topic_id = partition.topic_id or topic_id
        return partition

    def due(self, until_ms: int) -> Sequence[Seen | Read | End]:
        """What was seen before a time, in its order; it does not wait any more. What was read in a span comes before all else in it."""
        reads, self.reads = _divided(self.reads, until_ms)
        waiting, self.waiting = _divided(self.waiting, until_ms)
        self.explained_ms = max(self.explained_ms, until_ms)
        waiting.sort(key=attrgetter("at_ms", "sign"))
        return sorted([*_merged(reads), *_ends(reads), *waiting], key=attrgetter("at_ms")) if reads else waiting


def _divided(waiting: Iterable[_Waits], until_ms: int) -> tuple[list[_Waits], list[_Waits]]:
    """Those before a time, and the others."""
    before, others = list[_Waits](), list[_Waits]()
    for one in waiting:
        (before if one.at_ms < until_ms else others).append(one)
    return before, others


def _merged(reads: Iterable[Read]) -> list[Read]:
    """What was read in each span, whichever batches it came in: without going back it is one."""
    merged: list[Read] = []
    for one in sorted(read for read in reads if read.kind != END_ALONE):
        if merged and merged[-1].goes_on(one):
            merged[-1] = merged[-1].and_then(one)
        else:
            merged.append(one)
    return merged


def _ends(reads: Iterable[Read]) -> list[End]:
    """The end of each log that was told last in each span."""
    last: dict[tuple[int, str], End] = {}
    for one in reads:
        if max(one.end, one.stable) >= 0 or one.transactions:
            at_ms = one.last_ms if one.end_ms == NOT_TOLD else one.end_ms  # that of a marker
            log, told = (one.at_ms, one.partition), End(at_ms, one.end, one.sign, one.partition, one.transactions, one.stable)
            before = last.get(log, told)
            latest = max(before, told, key=lambda end: (end.end >= 0, end))  # what is stable stands for an end where none is told
            stable = max(end.stable for end in (before, told) if end.end >= 0 or end is latest)
            last[log] = latest._replace(transactions=max(before.transactions, told.transactions), stable=stable)
    return [end for _, end in sorted(last.items())]


def encode(ledger: Ledger) -> bytes:
    """The stored form of a ledger."""
    return _ENCODER.encode(ledger)


def decode(blob: bytes) -> Ledger:
    """The ledger that `encode` stored."""
    return _LEDGERS.decode(blob)


_ENCODER: Final = msgpack.Encoder()
_LEDGERS: Final = msgpack.Decoder(Ledger)
