"""What is wrong with a group's offsets, whatever its rebalances do: rows of `findings`."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median
from typing import Any, Final

from coordinator_model.diagnosis import findings, offset_catalogue
from coordinator_model.diagnosis.catalogue import Text
from coordinator_model.diagnosis.findings import seconds
from coordinator_model.offsets.ends import intervals
from coordinator_model.offsets.ledger import OF_NOBODY, Client, HandOver, Ledger, Partition, Run, Seen
from coordinator_model.offsets.reads import SPAN_MS, client_key
from coordinator_model.view.rows import FINDINGS, Ref, Row, or_none

SELDOM_MS: Final = 10_000
"""Twice auto.commit.interval.ms as Kafka ships it."""
RETRIED_MS: Final = 1_000
"""librdkafka sends a commit again that a former coordinator refused, and it may come after the next one. The commit after that mends it."""
MANY: Final = 100
"""Records: fewer than that are soon read again."""
PATIENCE: Final = 3
"""Of a client that commits seldom, so many intervals pass before its commits are missed."""
ONCE_MS: Final = 300_000
"""After so long the next commit of a group is missed that has committed once: nothing shows how often it does."""
ADMINISTRATOR: Final = "an administrator, or a client that takes no part in the group"


def standing_still(ledger: Ledger, name: str, at_ms: int, sign: Ref, not_read_ms: int) -> list[Row]:
    """PARTITION_NOT_READ, COMMITS_STOPPED, OPEN_TRANSACTION: a log grows, and the committed offset stands, though its owner is there.

    An owner that dies, or stops its heartbeats, is removed within its session timeout, and then there is a rebalance.
    """
    partition = ledger.partitions[name]
    last = partition.last
    if last is None or ledger.members == 0 or partition.told == last.last:
        return []
    passed_ms = partition.ends.passed(last.last)
    if passed_ms is None:
        return []
    since_ms = max(passed_ms, partition.moved_ms, ledger.rebalanced_ms)
    is_early = at_ms < since_ms + not_read_ms or at_ms < since_ms + PATIENCE * _usual_ms(ledger, partition)
    came, then = partition.ends.offsets[-1] - last.last, partition.ends.at(since_ms)
    if is_early or then is None or partition.ends.offsets[-1] <= then:
        return []
    owner = _owner(ledger, name)
    if owner is None:
        return []
    if ledger.members < 0 and ledger.member_commit_ms <= since_ms:
        return []  # nothing shows that a member is there
    partition.told = last.last
    lasts = [other.last for other in ledger.partitions.values()]
    commits = any(other is not None and _is(owner, other.client) and other.last_ms > since_ms for other in lasts)
    is_read = _is_read(partition, since_ms, at_ms - not_read_ms // 2)
    text = offset_catalogue.PARTITION_NOT_READ if commits and not is_read else offset_catalogue.COMMITS_STOPPED
    # Within a fetch session a client asks for it once, and the broker answers for it while its log grows (KIP-227).
    asks = any(run.last_ms > at_ms - not_read_ms // 2 or run.position == partition.stable for run in partition.runs)
    if asks and last.last <= partition.stable and partition.stable_ms <= since_ms + SPAN_MS:
        text = offset_catalogue.OPEN_TRANSACTION
    since = at_ms - partition.moved_ms
    words = {"partition": name, "silence": seconds(since), "came": _records(partition, came), "stable": partition.stable}
    signs = [last.sign, sign]
    return [_row(text, at_ms, owner, signs, words, last.generation, came=came, offset=last.last, stands_ms=since)]


def _records(partition: Partition, offsets: int) -> str:
    """How many records so many offsets are, in words."""
    return f"up to {offsets} records" if partition.gaps else f"{offsets} records"


def _usual_ms(ledger: Ledger, partition: Partition) -> int:
    """How long it takes from one commit to the next at most: of the partition, else of any of the group."""
    took = intervals(partition.recent) or [ms for other in ledger.partitions.values() for ms in intervals(other.recent)]
    return max(took, default=ONCE_MS // PATIENCE)


def _is_read(partition: Partition, since_ms: int, lately_ms: int) -> bool:
    """Whether a client reads on: not one that goes back again and again, nor one that has read on for a moment and paused then."""
    if not partition.runs or partition.read_ms <= since_ms or partition.back_ms > max(since_ms, lately_ms):
        return False
    return partition.read_ms > lately_ms or partition.runs[-1].position >= partition.ends.offsets[-1]


def _owner(ledger: Ledger, name: str) -> Client | None:
    """Who has a partition since the last rebalance: as shares say, else who committed or asked for its offset since that began."""
    partition, began_ms = ledger.partitions[name], ledger.rebalance_began_ms
    last, start = partition.last, partition.start
    if ledger.owners_ms >= began_ms and ledger.owners:
        member_id = ledger.owners.get(name)
        known = [other.last.client for other in ledger.partitions.values() if other.last is not None]
        return None if member_id is None else next((client for client in known if client[0] == member_id), (member_id, "", ""))
    if start is not None and start.at_ms >= began_ms and (last is None or start.at_ms > last.last_ms):
        return start.client
    return last.client if last is not None and last.last_ms >= began_ms and last.generation >= 0 else None


def _is(one: Client, other: Client) -> bool:
    return one[0] == other[0] if one[0] and other[0] else one[1:] == other[1:] and bool(one[1])


def expired(partition: Partition, name: str, offset: int, seen: Seen) -> list[Row]:
    """OFFSETS_EXPIRED: a client asks for the committed offset, and there is none any more."""
    last = partition.last
    if offset >= 0 or last is None or partition.told_lost:
        return []
    partition.lose()
    partition.told_lost = True
    stands_ms = seen.at_ms - last.last_ms
    words = {"partition": name, "silence": seconds(stands_ms)}
    client = seen.client if seen.client[1] else last.client
    text, signs = offset_catalogue.OFFSETS_EXPIRED, [last.sign, seen.sign]
    return [_row(text, seen.at_ms, client, signs, words, -1, offset=last.last, stands_ms=stands_ms)]


def moved(ledger: Ledger, name: str, offset: int, seen: Seen) -> list[Row]:
    """OFFSET_RESET: the first commit of a client that had no place to begin. OFFSET_REWOUND: a commit before the last one."""
    partition = ledger.partitions[name]
    last, lost_at, begun = partition.last, partition.lost, _begun(partition, seen)
    partition.lost, partition.told_lost, partition.begun = -1, False, -1
    if last is None or (offset if begun < 0 else begun) == last.last:
        return []
    words: dict[str, Any] = {"partition": name, "last": last.last}
    if lost_at >= 0:
        where = offset if begun < 0 else begun
        details = {"from_offset": last.last, "to_offset": offset, "begun_offset": or_none(begun)}
        skipped, again = max(where - last.last, 0), max(last.last - where, 0)
        details |= {"skipped_max": skipped, "reread_min": 0 if partition.gaps else again}
        words |= {"again": _records(partition, again), "skipped": _records(partition, skipped)}
        words["least"] = f"records of at least {again} offsets" if partition.gaps else f"at least {again} records"
        what, advice = offset_catalogue.BEGAN[begun >= 0, where < last.last]
        why = offset_catalogue.NONE_COMMITTED
        if partition.out_of_range:
            why, advice = offset_catalogue.NOT_IN_LOG, offset_catalogue.OUT_OF_RANGE[where < last.last]
        words |= {"what": what.format(**details, **words), "advice": advice, "why": why.format(**details, **words)}
        text, signs = offset_catalogue.OFFSET_RESET, [last.sign, seen.sign]
        return [_row(text, seen.at_ms, seen.client, signs, words, seen.generation, **details)]
    # An aborted transaction leaves what was committed before, and the clocks of two brokers give no order.
    if offset >= last.last or last.in_transaction or seen.broker != last.broker:
        return []
    is_member = seen.generation >= 0
    if is_member and seen.client[0] == last.client[0] and seen.at_ms < last.last_ms + RETRIED_MS:
        return []
    who = f"member {seen.client[1] or seen.client[0]}" if is_member else ADMINISTRATOR
    again = last.last - offset
    is_owned = is_member and ledger.owners_of == seen.generation and ledger.owners.get(name, seen.client[0]) != seen.client[0]
    words |= {"who": who, "again": _records(partition, again), "offset": offset, "when": offset_catalogue.WHEN[is_owned]}
    details = {"from_offset": last.last, "to_offset": offset, "reread": 0 if is_owned else again, "by_member": is_member}
    return [_row(offset_catalogue.OFFSET_REWOUND, seen.at_ms, seen.client, [last.sign, seen.sign], words, seen.generation, **details)]


def set_forward(partition: Partition, name: str, offset: int, seen: Seen) -> list[Row]:
    """OFFSET_SET_FORWARD: a commit of nobody was ahead of the last one of the group, and its members have gone on from there.

    It is told with their next commit. A client without a group that reads commits again, or was seen to read.
    """
    if len(partition.stretches) < 2 or seen.generation == OF_NOBODY:
        return []
    before, one = partition.stretches[-2:]
    client, skipped = client_key(*one.client[1:]), one.last - before.last
    if one.generation != OF_NOBODY or before.generation == OF_NOBODY or one.first != one.last or not 0 < skipped <= offset - before.last:
        return []
    if any(run.client == client and run.position > before.last for run in partition.runs):
        return []
    words = {"partition": name, "last": before.last, "offset": one.last, "who": ADMINISTRATOR, "skipped": skipped}
    details = {"from_offset": before.last, "to_offset": one.last, "skipped": skipped}
    return [_row(offset_catalogue.OFFSET_SET_FORWARD, one.first_ms, one.client, [before.sign, one.sign], words, -1, **details)]


def read_again(ledger: Ledger, name: str, seen: Seen) -> list[Row]:
    """READ_AGAIN: a client went back, and no rebalance took the partition from it. It is judged with its next commit.

    What it goes back to without having committed more it may not have processed, unless it began anew at the committed offset: clients go
    back to a record that they failed on.
    """
    partition = ledger.partitions[name]
    client, last = client_key(*seen.client[1:]), partition.last
    runs = [run for run in partition.runs if run.client == client and run.first_ms < seen.at_ms] if client else []
    if not runs or runs[-1].judged or last is None:
        return []
    run, former = runs[-1], runs[-2] if len(runs) > 1 else None
    run.judged = True
    since_ms = max(ledger.rebalance_began_ms, ledger.rebalanced_ms)
    if former is None or not since_ms < former.asked_ms <= former.last_ms <= run.first_ms or last.generation != seen.generation:
        return []
    one = ledger.open.get(name)
    if partition.lost >= 0 or (one is not None and (one.after is None or one.after[0] > run.first_ms)):
        return []
    start = partition.start
    is_anew = start is not None and start.at_ms >= former.asked_ms and start.offset == run.first
    reached = max(last.last, former.previous) if is_anew else last.last
    most = max(former.position, former.end if is_anew else -1, reached)
    return _again(partition, name, offset_catalogue.READ_AGAIN, seen.client, (former, run), (reached, most)) if reached > run.first else []


def none_committed(ledger: Ledger, partition: Partition, name: str) -> list[Row]:
    """NOTHING_COMMITTED: a client began where one had begun before, since the answer to its OffsetFetch had no offset. Told once."""
    start = partition.start
    if ledger.told_none or partition.last is not None or start is None or start.offset >= 0 or len(partition.runs) < 2:
        return []
    former, run = partition.runs[-2:]
    asked = former.last_ms - RETRIED_MS <= start.at_ms <= run.first_ms
    if not asked or run.client != client_key(*start.client[1:]) or not run.first <= former.first < former.previous:
        return []
    ledger.told_none = True
    reached = former.previous, max(former.position, former.end)
    return _again(partition, name, offset_catalogue.NOTHING_COMMITTED, start.client, (former, run), reached)


def _again(partition: Partition, name: str, text: Text, client: Client, runs: tuple[Run, Run], reached: tuple[int, int]) -> list[Row]:
    """What was read in one run and is read in the next one, too. `reached`: what was processed of it at least, and at most."""
    former, run = runs
    least, most = (offset - run.first for offset in reached)
    details = {"from_offset": former.position, "to_offset": run.first, "reread_max": most}
    again = f"{least} to {most} records" if least < most and not partition.gaps else _records(partition, most)
    details["reread_min"] = 0 if partition.gaps else least
    return [_row(text, run.first_ms, client, [former.sign, run.sign], {"partition": name, "again": again, **details}, -1, **details)]


def _begun(partition: Partition, commit: Seen) -> int:
    """Where the client of the first commit began to read, if its offset was lost; -1: that is not known."""
    if partition.lost < 0 or partition.begun >= 0 or partition.start is None:
        return partition.begun if partition.lost >= 0 else -1
    since_ms, client = partition.start.at_ms, client_key(*commit.client[1:])
    return next((run.first for run in partition.runs if run.client == client and run.first_ms >= since_ms), -1)


def behind(ledger: Ledger, one: HandOver, most: int | None) -> list[Row]:
    """COMMIT_BEHIND: commits are so seldom that the next owner reads much again. One for each rebalance: its first such partition."""
    took = intervals(one.recent)
    if (most or 0) < MANY or ledger.told_behind_ms >= one.started_ms or median(took or [0]) < SELDOM_MS:
        return []
    ledger.told_behind_ms = one.started_ms
    interval_ms = round(median(took))
    words = {"partition": one.partition, "interval": seconds(interval_ms), "most": most}
    details, before = {"commit_interval_ms": interval_ms, "reread_max": most}, one.before
    return [_row(offset_catalogue.COMMIT_BEHIND, one.resumed_ms, before.client, [before.sign], words, before.generation, **details)]


def _row(text: Text, at_ms: int, client: Client, signs: Iterable[Ref], words: dict[str, Any], generation: int, **details: Any) -> Row:
    details = {"partition": words["partition"], **details}
    return Row(FINDINGS, findings.values(text, at_ms, client, signs, words, or_none(generation), details))
