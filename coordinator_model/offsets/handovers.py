"""Hand-overs: what a rebalance did to each partition that stopped with it.

```
 commit  commit  commit    rebalance             OffsetFetch   commit   commit
   o       o       o────[===============]────────────o───────────o────────o─────► time
               committed_at                     resumed_at   next_commit_at   caught_up_at
```

The client that goes on begins at the last committed offset, so it reads again what the one before had read after its last commit. How much
that was no commit shows, so it is a range. A client that lives commits again after one interval: two intervals after its last commit it had
stopped. It had read what the log had by then at most, or, where no line shows that, what it reads in that time.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from math import ceil
from operator import attrgetter
from statistics import median
from typing import Any, Final

from msgspec.structs import replace

from coordinator_model.offsets import troubles
from coordinator_model.offsets.ends import Ends, intervals
from coordinator_model.offsets.ledger import OF_NOBODY, Client, HandOver, Ledger, Partition, Seen, Start, Stretch
from coordinator_model.offsets.reads import Read, client_key
from coordinator_model.specification.timers import NEVER
from coordinator_model.view import reasons
from coordinator_model.view.rows import REBALANCE_OFFSETS, Row, evidence_json, or_none

COLUMNS: Final = (
    "started_at", "ended_at", "generation", "first_epoch", "group_protocol", "protocol", "cause", "left", "members_before", "members_after",
    "stopped",
)  # fmt: skip
"""What is needed of a row of `rebalances`, and who stopped to work before it (`Row.stopped`)."""
NEAR: Final = 1
"""Records: a lag is what it was if it is no more than that above. Between two ends the end of a log is known no better."""
INTERVALS: Final = 2
"""A client commits again after one interval, if it lives; its last answer may be lost."""
ANSWERED_MS: Final = 1_000
"""A request for records is answered after fetch.max.wait.ms at the latest: half a second, as Kafka ships it."""
FETCHED_MS: Final = 500
"""fetch.max.wait.ms, as Kafka ships it."""
_CONSUMER: Final = "consumer"
_SILENT: Final = frozenset({reasons.SESSION_TIMEOUT, reasons.POLL_TIMEOUT, reasons.SYNC_TIMEOUT})
"""Causes of rebalances before which an owner had stopped to work, nobody knows when."""


def begin(ledger: Ledger, rebalance: Mapping[str, Any]) -> list[Row]:
    """Begins the hand-overs of a rebalance; those of the one before that were read again end.

    Partitions that nobody has read since an earlier rebalance belong to that one.
    """
    for one in list(ledger.open.values()):
        if one.kept_alone and not one.left and one.before.client[0] in rebalance["left"]:
            _take_back(ledger, one, rebalance["started_at"])
    rows = [row for one in list(ledger.open.values()) if one.resumed_ms >= 0 for row in _close(ledger, one)]
    ledger.stopped = {**(ledger.stopped if rebalance["members_before"] == 0 else {}), **rebalance["stopped"]}
    died = rebalance["left"] if rebalance["cause"] in _SILENT else []
    ledger.died = [*(ledger.died if rebalance["members_before"] == 0 else []), *died]
    ledger.rebalance_began_ms = max(ledger.rebalance_began_ms, rebalance["started_at"])
    ledger.rebalanced_ms = max(ledger.rebalanced_ms, rebalance["ended_at"])
    ledger.members = -1 if rebalance["members_after"] is None else rebalance["members_after"]
    if ledger.members == 0:
        return rows  # who comes next takes the partitions over
    for name, partition in sorted(ledger.partitions.items()):
        before = _before(partition, rebalance)
        if before is not None and name not in ledger.open:
            rows += _begin(ledger, name, before, rebalance)
    for name in list(ledger.open):
        rows += know_end(ledger, name)
    return rows


def _take_back(ledger: Ledger, one: HandOver, began_ms: int) -> None:
    """An owner leaves with a rebalance: it had kept a partition in those before that nobody else had begun to read by then."""
    if 0 <= one.resumed_ms < began_ms:
        return
    partition = ledger.partitions[one.partition]
    partition.reached, partition.handed_ms = one.reached, -1
    del ledger.open[one.partition]


def _begin(ledger: Ledger, name: str, before: Stretch, rebalance: Mapping[str, Any]) -> list[Row]:
    partition, started_ms = ledger.partitions[name], rebalance["started_at"]
    left = rebalance["cause"] if before.client[0] in rebalance["left"] else ""
    stopped_ms = ledger.stopped.get(before.client[0], -1)
    one = HandOver(
        name,
        -1 if rebalance["generation"] is None else rebalance["generation"],
        -1 if rebalance["generation"] is None else _first_epoch(rebalance),
        started_ms,
        rebalance["ended_at"],
        rebalance["group_protocol"] == _CONSUMER or "cooperative" in (rebalance["protocol"] or ""),
        left,
        left in _SILENT or rebalance["members_before"] == 0 or 0 <= stopped_ms < started_ms - ANSWERED_MS,
        stopped_ms,
        replace(before),  # the stretch may grow
        max(partition.reached, before.last),
        [commit for commit in partition.recent if commit[0] <= before.last_ms],
        died=before.client[0] in ledger.died,
    )
    ledger.open[name] = one
    later = (s for s in partition.stretches if s.first_ms > before.last_ms)
    after = next((s for s in later if _is_after(one, s.generation, s.client, s.first_ms)), None)
    latest_ms = after.first_ms if after is not None else NEVER
    if partition.start is not None and max(started_ms, before.last_ms, partition.handed_ms + 1) <= partition.start.at_ms <= latest_ms:
        _resume(one, partition, partition.start)
    return _follow(ledger, one, after.first_ms, after.first, after.client) if after is not None else []


def _first_epoch(rebalance: Mapping[str, Any]) -> Any:
    return rebalance["generation"] if rebalance["first_epoch"] is None else rebalance["first_epoch"]


def _before(partition: Partition, rebalance: Mapping[str, Any]) -> Stretch | None:
    """The last commits that belong to the time before a rebalance."""
    first = _first_epoch(rebalance)
    is_new = rebalance["members_before"] == 0  # its generations may begin anew
    for stretch in reversed(partition.stretches):
        of_members = stretch.generation >= 0 and first is not None and not is_new
        if stretch.generation < first if of_members else stretch.first_ms <= rebalance["ended_at"]:
            return stretch
    return None


def _is_after(one: HandOver, generation: int, client: Client, at_ms: int) -> bool:
    """Whether a commit belongs to the time after a rebalance. Within one of several epochs, a new owner may have begun already."""
    if min(generation, one.generation) < 0:
        return at_ms > one.ended_ms
    return generation >= one.generation or (generation >= one.first_epoch and client[0] != one.before.client[0])


def start(ledger: Ledger, name: str) -> None:
    """A client asked for the offset of a partition."""
    one, begun = ledger.open.get(name), ledger.partitions[name].start
    if one is None or begun is None or one.start is not None or one.after is not None:
        return
    if begun.at_ms >= max(one.started_ms, one.before.last_ms):
        _resume(one, ledger.partitions[name], begun)


def begin_elsewhere(ledger: Ledger, name: str, commit: Seen) -> None:
    """The first commit of a client that had no place to begin, of which nothing else shows where it began."""
    one = ledger.open.get(name)
    if one is not None and one.resumed_ms < 0:
        one.start = Start(commit.at_ms, -1, commit.client, commit.sign)


def _resume(one: HandOver, partition: Partition, start: Start) -> None:
    one.start, partition.reached, partition.handed_ms = start, start.offset, start.at_ms
    _note_reader(one, partition, start.client)


def _note_reader(one: HandOver, partition: Partition, heir: Client) -> None:
    """Notes how far its owner had read when a client goes on."""
    client = client_key(*heir[1:])
    earlier = [run for run in partition.runs if run.first_ms < one.resumed_ms]
    # It was set forward to where nobody had read yet.
    is_new = one.before.generation == OF_NOBODY and earlier and all(max(run.position, run.end) <= one.before.last for run in earlier)
    one.reader, one.read_least, one.read_most = (-1, one.reached, one.reached) if is_new else (-1, -1, -1)
    runs = [run for run in earlier if run.first <= one.before.last <= max(run.position, run.end)]
    if is_new or not runs or one.left == reasons.POLL_TIMEOUT:  # its application had stopped, but perhaps not its requests for records
        return
    last = max(runs, key=attrgetter("first_ms"))
    one.asked_ms = last.asked_ms
    if any(run.client == last.client and last.last_ms < run.first_ms < one.resumed_ms for run in partition.runs):
        return  # it read on after a pause, and nothing shows what was between
    if last.has_more or any(run.connection != last.connection and run.last_ms > last.first_ms for run in runs):
        return  # of two clients that read at the same time, one may be of another group
    one.reads_on = last.client == client and not one.gone  # else it is another process of the same name
    one.reader, one.read_more = last.connection, -1 if last.is_ahead else last.step
    one.read_least = last.previous if one.gone else last.position  # what its last answer brought it may not have processed
    # Its last answer brought it more: it commits that, or lives on and reads it before it hears of the rebalance, or dies with it.
    has_all = last.position >= one.reached and not one.reads_on and not one.died
    one.read_most = last.position if has_all else max(last.end, last.position, one.reached)
    if one.before.last_ms > last.last_ms - ANSWERED_MS:
        one.read_least = one.reached  # it asked before it committed: it may have given up what it had in hand


def _judge_itself(one: HandOver, partition: Partition) -> None:
    """Decides how far an owner had read that goes on itself: to where it went back, if it did."""
    own = [run for run in partition.runs if run.connection == one.reader]
    clients = {run.client for run in own}
    if any(run.client in clients and run.first_ms > one.resumed_ms for run in partition.runs):
        return
    if own and own[-1].last_ms > one.resumed_ms + ANSWERED_MS:
        one.read_least = one.read_most = _begins(one)
    elif one.read_most > _begins(one):
        one.read_least = -1  # nothing shows whether it went back


def read(ledger: Ledger, name: str, of: Read) -> None:
    """A client reads on: the one before, too, whose last request is answered a while after it was sent."""
    one = ledger.open.get(name)
    if one is not None and one.reader == of.connection and not one.reads_on and of.first_ms <= one.resumed_ms + ANSWERED_MS:
        run = next(run for run in reversed(ledger.partitions[name].runs) if run.connection == of.connection)
        one.read_most = max(one.read_most, run.end if one.died else run.position)
        one.read_least = run.previous if one.gone else one.read_most


def commit(ledger: Ledger, name: str, at_ms: int, offset: int, seen: Seen) -> list[Row]:
    """A commit of a partition."""
    one = ledger.open.get(name)
    if one is None:
        return []
    if _is_after(one, seen.generation, seen.client, at_ms):
        return _follow(ledger, one, at_ms, offset, seen.client)
    if one.after is None:  # its owner still commits while it gives the partition up: nobody else has begun
        partition, one.start = ledger.partitions[name], None
        one.end_before = one.lag_before = one.lag_usual = -1
        one.before, one.reached, one.recent = replace(partition.stretches[-1]), max(one.reached, offset), list(partition.recent)
    return []


def _follow(ledger: Ledger, one: HandOver, at_ms: int, offset: int, client: Client) -> list[Row]:
    """A commit after the rebalance."""
    if one.after is None:
        if one.start is None and (ledger.starts_seen or (one.kept_alone and client[0] == one.before.client[0])):
            del ledger.open[one.partition]  # its owner kept it
            return []
        one.after, one.heir = (at_ms, offset), client
        ledger.partitions[one.partition].reached = max(_begins(one), offset) if one.start is not None else offset
        if one.start is None:
            _note_reader(one, ledger.partitions[one.partition], client)
    one.unjudged.append((at_ms, offset))
    if not ledger.partitions[one.partition].ends.times:
        return _close(ledger, one)  # no end of the log is known: there is no lag to wait for
    return know_end(ledger, one.partition)


def know_end(ledger: Ledger, name: str) -> list[Row]:
    """The end of a partition's log became known: judges the lag at the commits before."""
    one, rows = ledger.open.get(name), list[Row]()
    if one is not None:
        _measure(one, ledger.partitions[name].ends)
        if one.caught_up_ms >= 0:
            rows = _close(ledger, one)
    return rows + [row for closed in list(ledger.closed) if closed.partition == name for row in _written(ledger, closed)]


def _measure(one: HandOver, ends: Ends) -> None:
    """Takes from the ends of the log what they show by now."""
    if one.end_before < 0 and (end := ends.at(one.before.last_ms)) is not None:
        one.end_before = max(end, one.before.last)  # a log is as long as what was read of it
        one.lag_before = one.end_before - one.before.last
        lags = [end - offset for at_ms, offset in one.recent if (end := ends.at(at_ms)) is not None]
        one.lag_usual = max([one.lag_before, *lags])
    if one.end_resumed < 0 <= one.resumed_ms and (end := ends.at(one.resumed_ms)) is not None:
        one.end_resumed = max(end, one.end_before)
        one.end_stopped = ends.at(_stopped_ms(one)) or -1
    while one.unjudged and one.caught_up_ms < 0 and (end := ends.at(one.unjudged[0][0])) is not None:
        at_ms, offset = one.unjudged.pop(0)
        if one.lag_usual >= 0 and end - offset <= one.lag_usual + NEAR:
            one.caught_up_ms = at_ms


def overdue(ledger: Ledger, ended_before_ms: int | None) -> list[Row]:
    """Writes hand-overs of rebalances that ended before a time; all if it is None."""
    rows: list[Row] = []
    for one in [*ledger.open.values(), *ledger.closed]:
        if ended_before_ms is None or one.ended_ms < ended_before_ms:
            rows += (_written if one in ledger.closed else _close)(ledger, one, at_once=True)
    return rows


def reread(one: HandOver) -> tuple[int | None, int | None]:
    """How many records were read twice, at least and at most. None: it was not read again, or nothing tells."""
    if one.resumed_ms < 0 or (one.start is not None and one.start.offset < 0):
        return None, None
    begins = _begins(one)
    reached = max(one.reached, begins)  # a later commit may not be logged
    usual = _read_after_commit(one) if len(one.recent) > 1 else None
    processed = reached if one.read_more < 0 else reached + (one.read_more if usual is None else usual)
    if 0 <= one.read_least <= one.read_most <= processed:  # else it may have asked for more than it processes
        return max(one.read_least, reached) - begins, max(one.read_most, reached) - begins
    most = one.end_stopped if one.end_stopped >= 0 or usual is None else reached + usual
    return reached - begins, max(most, reached, one.read_most) - begins if most >= 0 else None


def _begins(one: HandOver) -> int:
    """Where its new owner begins."""
    return one.start.offset if one.start is not None else one.before.last


def _stopped_ms(one: HandOver) -> int:
    """When its owner had stopped to read, at the latest."""
    took = intervals(one.recent)
    return min(one.before.last_ms + max(round(INTERVALS * median(took)), *took), one.resumed_ms) if took else one.resumed_ms


def _read_after_commit(one: HandOver) -> int:
    """How many records the owner may have read after its last commit, by the fastest of the last steps from commit to commit.

    A step that took less than half of the usual time tells no rate. Where the next owner read less than half as fast, all that there was
    had been read by its first commit: the fastest step was one that caught up.
    """
    steps = _apart(one.recent)
    took, read = intervals(steps), [after - before for (_, before), (_, after) in pairwise(steps)]
    fastest = max(records / max(took_ms, 1) for took_ms, records in zip(took, read, strict=True) if 2 * took_ms >= median(took))
    most = ceil(fastest * (_stopped_ms(one) - one.before.last_ms))
    again, for_ms = (one.after[1] - _begins(one), one.after[0] - one.resumed_ms - FETCHED_MS) if one.after is not None else (0, 0)
    if 0 < 2 * again < fastest * for_ms:
        most = min(most, max(_begins(one) + again - one.reached, 0))
    return most


def _apart(commits: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Commits that are as far apart as two answers may be. What one answer brought may be committed record by record in a moment."""
    kept = [commits[-1]]
    for commit in reversed(commits[:-1]):
        if commit[0] <= kept[-1][0] - FETCHED_MS or (commit is commits[0] and len(kept) == 1):
            kept.append(commit)
    return kept[::-1]


def _close(ledger: Ledger, one: HandOver, *, at_once: bool = False) -> list[Row]:
    """Ends a hand-over: no later commit belongs to it."""
    if one.reads_on:
        _judge_itself(one, ledger.partitions[one.partition])
    ledger.closed.append(ledger.open.pop(one.partition))
    return _written(ledger, one, at_once=at_once)


def _written(ledger: Ledger, one: HandOver, *, at_once: bool = False) -> list[Row]:
    """Writes a hand-over that has ended, once the end of the log is known at its last commit, if it is ever known."""
    partition = ledger.partitions[one.partition]
    ends = partition.ends
    _measure(one, ends)
    last_ms = max([one.resumed_ms, *(at_ms for at_ms, _ in one.unjudged)])
    if not at_once and one.caught_up_ms < 0 and ends.times and ends.times[-1] < last_ms:
        return []
    ledger.closed.remove(one)
    least, most = reread(one)
    if partition.gaps and least is not None:
        least = 0  # all of it may be markers, records of transactions that were aborted, or gone
    return [_row(one, least, most, gaps=partition.gaps), *troubles.behind(ledger, one, most)]


def _row(one: HandOver, least: int | None, most: int | None, *, gaps: bool) -> Row:
    before, start, resumed_ms = one.before, one.start, one.resumed_ms
    heir = one.heir or (start.client if start is not None else ("", "", ""))
    # An owner that left had worked until its last sign of life: a request for records, or what else the coordinator had of it.
    stopped_ms = max(before.last_ms, one.stopped_ms, min(one.asked_ms, one.started_ms) if one.gone else one.started_ms)
    return Row(
        REBALANCE_OFFSETS,
        {
            "generation": or_none(one.generation),
            "started_at": one.started_ms,
            "ended_at": one.ended_ms,
            "partition": one.partition,
            "from_member_id": before.client[0] or None,
            "from_client_id": before.client[1] or None,
            "committed_at": before.last_ms,
            "committed_offset": before.last,
            "to_member_id": heir[0] or None,
            "to_client_id": heir[1] or None,
            "resumed_at": or_none(resumed_ms),
            "resumed_offset": start.offset if start is not None else None,
            "next_commit_at": one.after[0] if one.after is not None else None,
            "next_commit_offset": one.after[1] if one.after is not None else None,
            "unread_ms": max(resumed_ms - stopped_ms, 0) if resumed_ms >= 0 else None,
            "lag_before": or_none(one.lag_before),
            "lag_added": one.end_resumed - one.end_before if min(one.end_resumed, one.end_before) >= 0 else None,
            "caught_up_at": or_none(one.caught_up_ms),
            "reread_min": least,
            "reread_max": most,
            "gaps": gaps,
            "evidence": evidence_json([before.sign, *([start.sign] if start is not None else [])]),
        },
    )
