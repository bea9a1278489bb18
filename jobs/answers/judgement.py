"""What may be said of each group: that nothing needs attention, or what could not be judged, why, and which line would tell.

The rule of every all-clear is here, and nowhere else. Nothing needs attention in a group only if all of this holds:

* a broker, its records or its answers tell of the group: an application's log alone shows neither who began a rebalance nor who missed;
* its last state is known and nothing is going on in it; or heartbeats were answered; or its clients commit without membership;
* the log of its coordinator reaches the end of the time, and no generation is missing in it;
* the cause and the end of each of its rebalances are known;
* track has read its events up to the last minute of the time: what was read from the logs only is not judged;
* no line with a word of trouble (jobs/common/trouble.py) is about it, except those that prove a finding, or are about its member or its
  group.instance.id, and those that a broker cannot be reached while an incident tells of its trouble.

A group that an entry is about is judged by the entry, but for where it went on once its coordinator gave it up. Lines that were not
understood may be about any group, and no group that they name is healthy.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain, islice
from typing import Any, Final, NamedTuple

from coordinator_model import events as e
from coordinator_model.diagnosis.findings import broker_name
from coordinator_model.diagnosis.incidents import HINDSIGHT_MS
from coordinator_model.view.members import client_in
from jobs.answers.attention import AttentionEntry
from jobs.answers.duckdb_views import Key, QuestionReader, Row, key_of
from jobs.common.places import own_query
from jobs.common.text import many, printable, short_member, some
from jobs.common.times import EPOCH, epoch_ms, is_known, milliseconds, moment, second
from jobs.common.trouble import NO_ERROR, OVERTAKEN, ROUTINE, UNREACHED, WORDS
from jobs.lakehouse.folder import is_followed

_LATE: Final = timedelta(minutes=1)  # logs of one cluster end within this time of each other
_NAMED: Final = 4  # members
_SENTENCE: Final = 160  # characters of a line that is quoted

_BY_WORDS: Final = (e.COORDINATOR_NOTE, e.CONSUMER_GROUP_LOG, e.PREPARING_REBALANCE, e.CLIENT_LEAVES, e.CLIENT_REJOINS, e.CLIENT_NOTE)
_PATTERNS: Final = {
    "words": WORDS, "no_error": NO_ERROR, "routine": ROUTINE, "overtaken": OVERTAKEN, "unreached": UNREACHED, "by_words": list(_BY_WORDS)
}  # fmt: skip
_CALM: Final = frozenset({"Stable", "Empty", "Dead"})
_MOVED: Final = "UNKNOWN"  # of sql/views/group_states.sql

ONLY_CLIENTS: Final = "only application logs mention it: they show neither who began a rebalance nor whom the coordinator removed"
NO_STATE: Final = "no line shows its state"
_ON_THE_WAY: Final = "Wait for the lines that come next: `rebalance run` reads them."


class Gap(NamedTuple):
    """What could not be judged."""

    cluster: str
    groups: tuple[str, ...]  # empty: it may be any group
    why: str
    next: str  # what to fetch, or to do, so that it can be


@dataclass(frozen=True)
class Judgement:
    """What may be said of the groups of a report."""

    healthy: list[Key] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    span_ms: int = 0  # of the time that the lines cover; 0: they have no times
    waited_ms: int = 0  # how long a healthy group waited for a broker's answer, the longest

    @property
    def all_clear(self) -> bool:
        """Whether nothing needs attention, of a report without entries."""
        return bool(self.healthy) and not self.gaps

    @property
    def of_clients(self) -> set[Key]:
        """The groups that only clients name."""
        return {(gap.cluster, group) for gap in self.gaps if gap.why == ONLY_CLIENTS for group in gap.groups}


def judged(
    reader: QuestionReader,
    values: Mapping[str, Any],
    states: Iterable[Row],
    entries: Sequence[AttentionEntry],
    incidents: Iterable[Row],
    times: Mapping[str, tuple[datetime, datetime]],
) -> Judgement:
    """Judges each group that a line names.

    `states`: of each group at the end of the time. `incidents`: all, also of other groups. `times`: the first and the last, by cluster.
    """
    state_of = {key_of(row): row for row in states}
    told = {key for entry in entries for key in entry.keys}
    ends: dict[Key, datetime] = {(row["cluster"], row["broker"]): row["last_at"] for row in reader.found(own_query("ends"), values)}
    outages = json.dumps([*_outages(incidents)])
    troubles = {key_of(row): row for row in reader.found(own_query("troubles"), {**values, **_PATTERNS, "outages": outages})}
    causes = {key_of(row): row for row in reader.found(own_query("causes"), values)}
    unreadable = {key_of(row): row for row in reader.found(own_query("unreadable"), values)}
    untracked = _untracked(reader)
    first_at: dict[str, datetime] = {}
    for (cluster, _), at in untracked.items():
        first_at[cluster] = min(at, first_at.get(cluster, at))
    healthy, found, waited_ms = [], [], 0
    for row in reader.found(own_query("evidence"), values):
        key, until = key_of(row), min(values["until"], times[row["cluster"]][1])
        why: list[tuple[str, str]] = [*_without_brokers(row), *_without_track(untracked.get(key), first_at.get(key[0]), until)]
        state = state_of.get(key, {})
        if state.get("state") == _MOVED:
            why.append((_lost(state["crashed"]), f"{_of_coordinator(row)} since then."))
        if key not in told:
            if why:
                why = [*([_untold(troubles[key])] if key in troubles else []), *why]
            else:
                goes_on = until < times[row["cluster"]][1]
                of_lines = _of_lines(row, state, troubles.get(key), causes.get(key), goes_on=goes_on, is_live=is_followed(reader.house))
                why = [*islice(chain(of_lines, _of_end(row, ends, until)), 1)]
            if not (why or key in unreadable):
                healthy.append(key)
                waited_ms = max(waited_ms, row["waited_ms"] or 0)
        found += [(*key, *gap) for gap in why]
    gaps = _folded(found)
    gaps += [Gap(row["cluster"], (), *_untold(row)) for row in troubles.values() if not row["group_id"]]
    gaps += [
        Gap(
            cluster,
            (group,) if group else (),
            f"{many(row['lines'], 'line')} that may be about {'it' if group else 'a group'} could not be read, such as"
            f" {printable(row['one'], _SENTENCE)}",
            "`rebalance inspect` shows some of them, by what is wrong with them.",
        )
        for (cluster, group), row in unreadable.items()
    ]
    spans = [min(values["until"], last) - max(values["since"], first) for first, last in times.values() if is_known(first)]
    return Judgement(healthy, gaps, max((milliseconds(span) for span in spans), default=0), waited_ms)


def _outages(incidents: Iterable[Row]) -> Iterator[dict[str, Any]]:
    """When clients could not reach which broker: those of all groups, also where a report is limited to one without a finding."""
    for incident in incidents:
        since_ms, until_ms = epoch_ms(incident["began_at"]), epoch_ms(incident["last_at"])
        for broker in incident["broker"].split(", "):
            where = {"cluster": incident["cluster"], "broker": broker}
            yield where | {"since": since_ms - HINDSIGHT_MS, "until": until_ms + HINDSIGHT_MS}


def _without_brokers(row: Row) -> Iterator[tuple[str, str]]:
    if not row["told"]:
        first, last = second(row["first_at"]), second(row["last_at"])
        span = f"from {first} UTC and just before" if first == last else f"from {first} to {last} UTC"
        span = span if is_known(row["first_at"]) else "from the time of these lines and just before"
        tell = "`Preparing to rebalance … (reason: …)` says who began a rebalance, `Member … has failed` whom the coordinator removed."
        name = "Say which group it is: --group GROUP, or a folder clients/GROUP/. " if row["group_id"] == e.NAMELESS_GROUP else ""
        yield ONLY_CLIENTS, f"{name}{_of_coordinator(row)} {span}: {tell}"


def _untracked(reader: QuestionReader) -> dict[Key, datetime]:
    """When the first event of each group happened of which no rows were made yet."""
    if not is_followed(reader.house):
        return {}
    from jobs.lakehouse import followers  # it loads PyArrow, which takes as long as a report

    return reader.first_of(followers.untracked(reader.house))


def _without_track(own: datetime | None, first_at: datetime | None, until: datetime) -> Iterator[tuple[str, str]]:
    """Why a group cannot be judged of which no rows were made yet since a time; `first_at`: the first of these times in its cluster."""
    if own is not None and first_at is not None and own < until - _LATE:
        why = f"lines since {moment(first_at)} were read but not evaluated yet"
        yield why, "Start `rebalance run` again: it continues where it stopped (on a cluster: jobs/track.py)."


def _of_lines(row: Row, last: Row, trouble: Row | None, causes: Row | None, *, goes_on: bool, is_live: bool) -> Iterator[tuple[str, str]]:
    """Why a group cannot be called healthy by what its lines say, and what to fetch.

    `last`: its state. `goes_on`: there are lines after the time. `is_live`: more lines may come by themselves.
    """
    state, later = last.get("state"), _ON_THE_WAY if is_live else f"{_of_coordinator(row)} after {moment(row['last_at'])}."
    if trouble is not None:
        yield _untold(trouble)
    if causes is not None and causes["troubled"]:
        yield (
            f"{many(causes['troubled'], 'rebalance')} began with an error that nothing above explains",
            "Get the client's own log for that time.",
        )
    if causes is not None and causes["abandoned"]:
        after = f"{_of_coordinator(row)} after {moment(causes['abandoned_at'])}."
        yield f"the end of {causes['abandoned']} of its {many(causes['rebalances'], 'rebalance')} is not known", after
    if newcomers := last.get("newcomers"):
        names = some([f"{printable(client_in(one, ''), 60)} {short_member(one)}".strip() for one in sorted(newcomers)], _NAMED)
        came = "a new member that had its id but had not joined with it yet"
        then = "" if state in _CALM else ": it is rebalancing when the lines end"
        yield f"it was {state} with {came} ({names}){then}", later
    elif returned := last.get("returned"):
        names = some([printable(one, 60) for one in sorted(returned)], _NAMED)
        why = f"it was {state} when the static member {names} came back under a new member id, and no line shows a rebalance"
        yield why, later
    elif row["looked_up"]:
        yield "it was only looked up (FIND_COORDINATOR), and no line shows a member", later
    elif state is None and not row["works"]:
        why = f"it was converted to the {row['converted']} protocol, and {NO_STATE}" if row["converted"] else NO_STATE
        yield why, f"{_of_coordinator(row)} from before {moment(row['first_at'])}."
    elif state is not None and state not in _CALM and goes_on:
        yield f"it is {state} at the end of the time shown", "Show a later end: --until TIME."
    elif state is not None and state not in _CALM:
        yield f"it is {state} when the lines end", later
    if causes is not None and causes["unknown"]:
        group = printable(row["group_id"], 60)
        line = f"with `[GroupId {group}]`" if causes["by_epoch"] else f"`Preparing to rebalance group {group}`"
        yield (
            f"the cause of {causes['unknown']} of its {many(causes['rebalances'], 'rebalance')} is not known",
            f"Get the line {line} of {moment(causes['first_at'])} or just before, or the request log (docs/capture.md).",
        )
    elif causes is not None and causes["waiting"]:
        yield f"the cause of {causes['waiting']} of its {many(causes['rebalances'], 'rebalance')} is not known yet", _ON_THE_WAY


def _lost(crashed: str | None) -> str:
    if crashed is None:
        return "the broker that coordinated it gave it up"
    return f"{broker_name(printable(crashed, 30))} coordinated it and crashed or was killed, and no line shows which broker took over"


def _of_coordinator(row: Row) -> str:
    group = "GROUP" if row["group_id"] == e.NAMELESS_GROUP else printable(row["group_id"], 60)
    return (
        f"Get the lines with '{group}' from the server.log of the broker that coordinates the group"
        f" (`kafka-consumer-groups.sh --bootstrap-server HOST:9092 --describe --state --group '{group}'` names it),"
    )


def _of_end(row: Row, ends: Mapping[Key, datetime], until: datetime) -> Iterator[tuple[str, str]]:
    """Why a group cannot be called healthy up to the end of the time: the log of its coordinator ends before."""
    end = ends.get((row["cluster"], row["coordinator"]))
    if end is not None and end < until - _LATE:
        broker = printable(row["coordinator"], 30)
        yield f"the log of its coordinator, {broker}, ends at {moment(end)}", f"Get the log of {broker} after {moment(end)}."


def _untold(row: Row) -> tuple[str, str]:
    first = row["first"]
    said = [*([] if first["k"] in _BY_WORDS else [first["k"]]), *([f"“{printable(first['r'], _SENTENCE)}”"] if first["r"] else [])]
    place = f"{printable(first['o'])}:{first['p']}"
    more = f", and {row['lines'] - 1:,} more" if row["lines"] > 1 else ""
    look = (
        "looks like an error, and nothing above explains it" if row["lines"] == 1 else "look like errors, and nothing above explains them"
    )
    return (
        f"{many(row['lines'], 'line')} {look}: {' '.join(said)} ({place}{more})",
        f"Read the other lines of the broker and of the client at {moment(EPOCH + timedelta(milliseconds=first['a']))}.",
    )


def _folded(found: Sequence[tuple[str, str, str, str]]) -> list[Gap]:
    """One gap for all groups of which the same is missing. What to fetch is said of the first of them."""
    gaps: dict[tuple[str, str], tuple[list[str], str]] = {}
    for cluster, group, why, after in found:
        gaps.setdefault((cluster, why), ([], after))[0].append(group)
    return [Gap(cluster, tuple(groups), why, after) for (cluster, why), (groups, after) in gaps.items()]
