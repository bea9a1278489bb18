"""The rows of the table `incidents`: what happened to each broker, and what that did to all groups.

They follow from the findings COORDINATOR_MOVED of the groups and from the lines about brokers. A crash of which no finding tells, as in
the log of that broker alone, is a row of its own; brokers that were restarted one after the other are one row. Track writes the table;
report, dashboard and questions show its rows as they are.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from operator import attrgetter, itemgetter
from typing import Final

from coordinator_model.diagnosis.catalogue import AFTER_A_MOVE, COORDINATOR_MOVED, WHEN_HELD_UP
from coordinator_model.diagnosis.findings import broker_name
from coordinator_model.diagnosis.incidents import SLOW_MS, removed, session_advice
from jobs.answers.duckdb_views import QuestionReader, Row
from jobs.answers.incidents.bills import LONG_MS, Bill, RebalanceTimes, bill_of, span_of
from jobs.answers.incidents.outages import HELD_UP, RESTARTED, SHUT_DOWN, Departure, Departures, Outage, outages, restarts
from jobs.common.places import own_query
from jobs.common.text import many, printable
from jobs.common.times import EPOCH, LATEST_MS, duration, epoch_ms, instant

EVERYTHING: Final = {"cluster": None, "group": None, "since": EPOCH, "until": EPOCH + timedelta(milliseconds=LATEST_MS)}
_EVIDENCE_KEPT: Final = 32
_PARTS: Final = (attrgetter("left"), attrgetter("returned"), attrgetter("held_up"))


def incidents(reader: QuestionReader) -> list[Row]:
    """All rows of the table, by cluster and time. MissingTableError: the lakehouse lacks a table."""
    moved = [{**row, "details": json.loads(row["details"])} for row in reader.ask(own_query("moved"), {}).by_name()]
    crashes = reader.ask(own_query("crashes"), {}).by_name()
    if not moved and not crashes:
        return []
    departures = Departures(reader.ask(own_query("departures"), EVERYTHING).by_name())
    times = RebalanceTimes(reader.ask(own_query("times"), {**EVERYTHING, "long_ms": LONG_MS}).rows)
    found = outages(moved, departures)
    slow = sorted(reader.ask(own_query("waited"), {"slow_ms": SLOW_MS}).by_name(), key=itemgetter("ms")) if found else []
    for outage in found:
        outage.waited = {row["group_id"]: row["ms"] for row in outage.held_up_too(slow)}
    rows = [_row(run, times) for run in restarts(found)]
    untold = [one for one in crashes if not any(outage.tells(one) for outage in found)]
    rows += [_row([Outage(one["broker"], served=one["groups"], departure=Departure((one,)))], times) for one in untold]
    return sorted(rows, key=lambda row: (row["cluster"], row["began_at"], row["broker"], row["id"]))


def _row(run: Sequence[Outage], times: RebalanceTimes) -> Row:
    """Of one outage, or of several restarts."""
    outage, departure = run[0], run[-1].departure
    findings = [row for one in run for row in one.findings]
    signs = findings or list(departure.signs if departure else ())
    first, last_at = signs[0], max(row["occurred_at"] for row in signs)
    lost = sorted({member for row in findings for member in row["details"].get("members_lost") or ()})
    bill = bill_of(found := times.blamed_on(findings))
    began_at, back_at = outage.began_at, departure.signs[0]["started_at"] if departure else None
    left, returned, held_up = ({row["group_id"] for one in run for row in rows(one)} for rows in _PARTS)
    return {
        "cluster": first["cluster"],
        "id": _id(first["cluster"], outage.broker, epoch_ms(first["occurred_at"])),
        "broker": ", ".join(one.broker for one in run),
        "cause": RESTARTED if run[1:] else departure.cause if departure else COORDINATOR_MOVED.code if left else HELD_UP,
        "severity": _severity(outage, bill, lost),
        "began_at": began_at,
        "last_at": max(filter(None, [began_at, last_at, back_at, *(span_of(found) or ())])),
        "stopped_at": departure.signs[0]["stopped_at"] if departure else None,
        "back_at": back_at,
        "groups": sorted({group for one in run for group in one.groups}),
        "groups_moved": len(left),
        "groups_returned": len(returned),
        "groups_held_up": len(held_up),
        "groups_waited": len({group for one in run for group in one.waited}),
        "members_lost": lost,
        "unheard_ms": _longest_unheard(findings).get("unheard_ms"),
        "rebalances": bill.rebalances,
        "rebalance_ms": bill.total_ms,
        "unavailable_partition_ms": bill.unavailable_partition_ms,
        "at_least": bill.at_least and bill.at_least.replace("total_ms", "rebalance_ms"),
        "message": _restarts(run, times) if run[1:] else outage.sentence(),
        "advice": _advice(run),
        "findings": [row["id"] for row in findings],
        "evidence": json.dumps(list(_evidence(run))[:_EVIDENCE_KEPT]),
    }


def _severity(outage: Outage, bill: Bill, lost: Sequence[str]) -> str:
    """ERROR: members were removed, groups rebalanced, or several groups lost a broker that nobody shut down.

    A restart that cost nothing of this is a WARNING: members that cannot reach their coordinator cannot commit meanwhile.
    """
    unplanned = len(outage.groups) > 1 and not (outage.departure is not None and outage.departure.cause == SHUT_DOWN)
    return "ERROR" if lost or bill.rebalances or unplanned else "WARNING"


def _restarts(run: Sequence[Outage], times: RebalanceTimes) -> str:
    """What happened when brokers were restarted, with what each restart cost."""
    *names, last = (broker_name(outage.broker) for outage in run)
    text = f"{', '.join(names)} and {last} were restarted one after another."
    for outage, name in zip(run, (*names, last), strict=True):
        bill = bill_of(times.blamed_on(outage.findings))
        took = f" of {duration(bill.total_ms)}" if bill.total_ms else ""
        cost = many(bill.rebalances, "rebalance") + took if bill.rebalances else "no rebalance"
        moved = many(len({row["group_id"] for row in outage.left}), "group")
        back = duration(epoch_ms(outage.back_at or outage.began_at) - epoch_ms(outage.began_at))
        text += f" At {instant(epoch_ms(outage.began_at))[11:19]} UTC {name}: down for {back}, at least {moved} moved, {cost}."
    lost, gave_up = (
        {one for o in run for row in o.findings for one in row["details"].get(key) or ()} for key in ("members_lost", "gave_up")
    )
    return text + removed(len(lost - gave_up), len(gave_up))


def _advice(run: Sequence[Outage]) -> str:
    """What to do about a broker that was not restarted in its turn, and what session timeout its groups would have taken: the longest."""
    outage = run[0]
    remedy = outage.departure.remedy(broker_name(outage.broker)) if outage.departure else AFTER_A_MOVE if outage.left else WHEN_HELD_UP
    missed = [row for one in run for row in one.findings if row["details"].get("setting")]
    by_setting: dict[str, list[Row]] = defaultdict(list)
    for row in missed:
        by_setting[row["details"]["setting"]].append(row)
    measured_first = sorted(by_setting.items(), key=lambda one: (_longest_unheard(one[1])["unheard_ms"] is None, one[0]))
    return "".join(["" if run[1:] else remedy, *(_for_setting(rows) for _, rows in measured_first)]).strip()


def _for_setting(missed: Sequence[Row]) -> str:
    """What session timeout the groups would have taken that have it from one setting."""
    groups, limits = {row["group_id"] for row in missed}, {ms for row in missed for ms in row["details"]["session_timeouts_ms"]}
    polls = {ms for row in missed for ms in row["details"].get("max_poll_intervals_ms") or ()}
    whose = f" of the {len(groups)} groups that lost members" if len(groups) > 1 else f" of {printable(min(groups), 60)}"
    return session_advice(_longest_unheard(missed), limits, polls, whose)


def _longest_unheard(findings: Iterable[Row]) -> Row:
    """Details of the finding whose member was unheard for longest, of those with `setting`: what all groups would have had to take."""
    own = (row["details"] for row in findings if row["details"].get("setting"))
    return max(own, key=lambda of: (of["unheard_ms"] or 0, *of["session_timeouts_ms"][-1:]), default={})


def _evidence(run: Sequence[Outage]) -> Iterator[Row]:
    """The lines about the brokers, then one line of each finding in turn, until there are no more."""
    signs = (sign for outage in run if outage.departure is not None for sign in outage.departure.signs)
    yield from ({"source": "broker", "origin": sign["origin"], "position": sign["position"]} for sign in signs)
    lines = [json.loads(row["evidence"]) for outage in run for row in outage.findings]
    for place in range(max(map(len, lines), default=0)):
        yield from (of_one[place] for of_one in lines if place < len(of_one))


def _id(cluster: str, broker: str, at_ms: int) -> str:
    return "i" + hashlib.md5(f"{cluster}|{broker}|{at_ms}".encode(), usedforsecurity=False).hexdigest()[:11]


def by_finding(rows: Iterable[Row]) -> dict[tuple[str, str], Row]:
    """The incident that each finding is part of, by cluster and id of the finding; one of which none tells stands for them itself."""
    return {(row["cluster"], finding): row for row in rows for finding in row["findings"] or [row["id"]]}
