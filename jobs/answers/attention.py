"""Folds findings into what needs attention: one entry for each incident, with what it cost.

A bad day has hundreds of findings and a handful of incidents. Four rules fold them:

* All that a broker did to its groups is one entry, a row of `incidents`, with what clients were refused in those groups meanwhile.
* What follows from a removal belongs to it: a frozen member loses its session, then its heartbeat is refused, then its commit. A static
  one is waited for as it does not rejoin, then as it does not sync. So do the sessions that end in a storm or a rolling restart.
* Consumers of sink tasks whose session ended with that of their Connect worker belong to the loss of the worker.
* The same code in the same group is one entry, however often it came.
"""

from __future__ import annotations

import json
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from operator import itemgetter
from typing import Final, NamedTuple, cast

from coordinator_model.diagnosis import catalogue, client_catalogue, consumer_catalogue, offset_catalogue
from coordinator_model.diagnosis.findings import FIGURES, seconds
from coordinator_model.diagnosis.incidents import SPAN_MS
from coordinator_model.diagnosis.kinds.settings import SINK_TASK
from coordinator_model.view.members import client_in
from jobs.answers.duckdb_views import Key, Row, key_of
from jobs.answers.incidents.bills import Bill, Rebalanced, RebalanceTimes, Records, bill_of, billed, bound, span_of
from jobs.answers.incidents.rows import by_finding
from jobs.common.text import many, printable
from jobs.common.times import epoch_ms

SEVERITIES: Final = ("ERROR", "WARNING", "INFO")

BURSTS: Final = (catalogue.REBALANCE_STORM.code, catalogue.ROLLING_RESTART.code)
_REFUSALS: Final = (catalogue.UNKNOWN_MEMBER.code, catalogue.ZOMBIE_COMMIT.code, catalogue.ILLEGAL_GENERATION.code)
_AFTER_OUTAGES: Final = (*_REFUSALS, catalogue.GROUP_TOO_LARGE.code, catalogue.HEARTBEAT_NEAR_MISS.code)
"""What clients are told, and how their heartbeats fare, while member ids are lost that they have given up, and what passes by itself."""
_UNANSWERED: Final = client_catalogue.NO_HEARTBEAT_RESPONSE.code
_STUCK: Final = consumer_catalogue.STUCK_RECONCILING.code
_REMOVALS: Final = (
    *(catalogue.SESSION_TIMEOUT.code, _UNANSWERED, catalogue.POLL_TIMEOUT.code, catalogue.SYNC_TIMEOUT.code),
    consumer_catalogue.REBALANCE_TIMEOUT.code,
)
_PROLONGING: Final = (*_REMOVALS, catalogue.SLOW_JOINER.code, _STUCK)
"""What begins a rebalance or holds it up."""
_ENDING: Final = (*_PROLONGING, catalogue.FENCED_INSTANCE.code)
"""What ends a membership: its client may be refused later."""
_STOPPED_WITHIN_MS: Final = 10_000
"""From the last heartbeat of a worker of Connect to that of the consumer of a sink task in the same process, at most: a few intervals."""
_COST_MS: Final = 1_000  # what costs less comes after what costs more, even if it is an error
_SOON_MS: Final = 1_000  # a removal's rebalance begins in the same moment; two logs may differ by up to a second


class Refusals(NamedTuple):
    """How often the coordinator refused to let clients join, and when it last did."""

    requests: int
    last_at: datetime
    pending_at: datetime | None = None  # when it last refused one that has not joined since; None: all have

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Refusals | None:
        """Those of clients, one row each, in the order of time; None if there is none."""
        pending_at = max((row["last_at"] for row in rows if not row["joined"]), default=None)
        return cls(sum(row["requests"] for row in rows), rows[-1]["last_at"], pending_at) if rows else None


@dataclass
class AttentionEntry:
    """One incident. Rows are findings with parsed details; each list is in the order of time, and complete when anything is asked of it."""

    findings: list[Row]
    incident: Row | None = None  # of the table `incidents`
    followed_by: list[Row] = field(default_factory=list)
    bill: Bill = field(default_factory=Bill)
    records: Records = field(default_factory=Records)
    refused: Refusals | None = None
    is_grave: bool = False  # what its rebalances cost makes it an error, whatever its findings are
    rebalanced: tuple[datetime, datetime] | None = None  # from the start of the first of its rebalances to the end of the last

    @cached_property
    def gravest(self) -> Row:
        """The finding that stands for all: that for which a group waited longest, then that of the greatest figure, then the newest."""
        return max(zip(self.figures, self.findings, strict=True), key=lambda one: (one[0], epoch_ms(one[1]["occurred_at"])))[1]

    @cached_property
    def figures(self) -> list[tuple[int, int]]:
        """How grave each finding is: how long a group waited for its member, then its own figure.

        A session that ended is as grave as its client was silent until it was refused, if it was.
        """
        refused = self._refused if self.findings[0]["code"] == catalogue.SESSION_TIMEOUT.code else [[]] * len(self.findings)
        silent = [max((one["details"].get("silent_ms") or 0 for one in rows), default=0) for rows in refused]
        own = [row["details"].get(FIGURES.get(row["code"])) or 0 for row in self.findings]
        waits = [row["details"].get("join_ms") or 0 for row in self.findings]
        return [(wait, max(figure, later)) for wait, figure, later in zip(waits, own, silent, strict=True)]

    @property
    def code(self) -> str:
        """What it is called: the cause of the incident, else the code of its findings."""
        return str(self.incident["cause"] if self.incident else self.gravest["code"])

    @property
    def first_at(self) -> datetime:
        """When it began: with its first finding, or the rebalance that this was part of."""
        if self.incident:
            return cast(datetime, self.incident["began_at"])
        return cast(datetime, min([self.findings[0]["occurred_at"], *(self.rebalanced or ())]))

    @property
    def last_at(self) -> datetime:
        """When the last that is known of it happened, with the end of its last rebalance."""
        if self.incident:
            return cast(datetime, self.incident["last_at"])
        return cast(datetime, max([self.findings[-1]["occurred_at"], self.first_at, *(self.rebalanced or ())]))

    @property
    def severity(self) -> str:
        """The gravest of its findings. ERROR where its cost makes it one; none any more once all that were refused were let in."""
        own = [row["severity"] for row in (*filter(None, [self.incident]), *self._all)]
        is_let_in = self.refused is not None and self.refused.pending_at is None and not self.incident
        severities = own if not is_let_in else [max(one, SEVERITIES[1], key=_rank) for one in own]
        return str(min([SEVERITIES[0]] if self.is_grave else severities, key=_rank))

    @cached_property
    def groups(self) -> list[str]:
        """Its groups, that of most findings first."""
        counted = Counter(row["group_id"] for row in self._all)
        return sorted(counted, key=lambda name: (-counted[name], name))

    @property
    def keys(self) -> list[Key]:
        """Cluster and name of each of its groups."""
        return [(self.findings[0]["cluster"], group) for group in self.groups]

    @property
    def clients(self) -> list[tuple[str | None, str | None, int]]:
        """Client id, host and number of findings of each client, the most first."""
        counted: Counter[tuple[str, str]] = Counter()
        for row in self.findings:
            named = [(row["client_id"] or "", row["client_host"] or "")]
            if not any(named[0]):
                details = row["details"]
                members = details.get("restarted") or details.get("waited_for") or ()
                named = [(name, "") for name in details.get("clients") or [client_in(member, "") or member for member in members]]
            counted.update(name for name in named if any(name))
        hosts = {client: {host for name, host in counted if name == client} - {""} for client, _ in counted}
        for client, of_client in hosts.items():
            if len(of_client) == 1 and (client, "") in counted:  # some of its lines do not name the host
                counted[client, min(of_client)] += counted.pop((client, ""))
        most = sorted(counted.items(), key=lambda item: (-item[1], item[0]))
        return [(client or None, host or None, count) for (client, host), count in most]

    @property
    def members(self) -> set[str]:
        """The member ids that its findings are about."""
        return {row["member_id"] for row in self.findings if row["member_id"]}

    @property
    def ids(self) -> set[str]:
        """The ids of all its findings."""
        return {row["id"] for row in self._all}

    @property
    def message(self) -> str:
        """What happened."""
        return str((self.incident or self.gravest)["message"])

    @property
    def advice(self) -> list[str]:
        """What to change. A client that was heard of again shows what its silence was: that advice, of the longest one, is the sharper."""
        own = max(zip(self.figures, self.findings, strict=True), key=lambda one: (one[0][1], epoch_ms(one[1]["occurred_at"])))[1]
        silences = [row for row in self.followed_by if row["details"].get("silent_ms")]
        zombies = [row for row in self.followed_by if row["code"] == catalogue.ZOMBIE_COMMIT.code]
        if self.incident or own["code"] in BURSTS or not (silences or zombies):
            begun = {row["advice"]: None for row in self.followed_by if row["code"] == offset_catalogue.OFFSET_RESET.code}
            advice = self._advice_of_bursts() if own["code"] in BURSTS else own["advice"]
            return [*filter(None, [self.incident["advice"] if self.incident else advice, *begun])]
        last = (zombies or silences)[-1]
        if own["code"] == catalogue.SESSION_TIMEOUT.code and silences:
            return self._advice_by_case(own, zombies)
        if own["advice"] in last["advice"]:
            return [last["advice"]]
        said_above = " " + catalogue.SEE_ITS_FINDING.format(kind=own["code"])
        return [own["advice"], last["advice"].removesuffix(said_above)] if zombies else [own["advice"]]

    def _advice_of_bursts(self) -> str:
        """That of the last one, by which the group may have the other protocol, with the longest restart of all."""
        took = [row["details"].get("longest_restart_ms") or 0 for row in self.findings]
        said, longest = (catalogue.LONGEST_RESTART.format(longest=seconds(ms)) for ms in (took[-1], max(took)))
        return cast(str, self.findings[-1]["advice"]).replace(said, longest)

    def _advice_by_case(self, own: Row, zombies: list[Row]) -> list[str]:
        """What to change about sessions that ended: of clients that were refused later, of leaders that had to assign, and of others."""

        def grave(row: Row) -> tuple[int, bool]:
            return row["details"].get("silent_ms") or 0, row in zombies

        cases: dict[tuple[bool, bool], list[tuple[Row, Row]]] = {}  # each end of a session with what tells of it
        for row, later in sorted(zip(self.findings, self._refused, strict=True), key=lambda one: one[0] is not own):
            last = max(later, key=grave, default=row)
            cases.setdefault((last is not row, bool(row["details"].get("leader"))), []).append((row, last))
        shown = [max((last for _, last in rows), key=grave) for rows in cases.values()]
        more = [catalogue.BE_IDEMPOTENT] if zombies and not any(row in zombies for row in shown) else []
        return [*(count + row["advice"] for count, row in zip(_whose([*cases.values()]), shown, strict=True)), *more]

    @cached_property
    def _refused(self) -> list[list[Row]]:
        """What followed each finding: in the consumer protocol a client keeps its member id, and the next end of its session begins anew.

        What names no member of a finding belongs to that of its client.
        """
        members, found = self.members, [(row["occurred_at"], list[Row]()) for row in self.findings]
        of: dict[tuple[str, str | None], list[tuple[datetime, list[Row]]]] = defaultdict(list)
        for row, one in zip(self.findings, found, strict=True):
            for name in ("member_id", "client_id"):
                of[name, row[name]].append(one)
        for row in self.followed_by:
            name = "member_id" if row["member_id"] in members else "client_id"
            if place := bisect(of[name, row[name]], row["occurred_at"], key=itemgetter(0)):
                of[name, row[name]][place - 1][1].append(row)
        return [rows for _, rows in found]

    @property
    def _all(self) -> list[Row]:
        return [*self.findings, *self.followed_by]


def attention(
    findings: Sequence[Row], times: RebalanceTimes, refused: Iterable[Row] = (), incidents: Sequence[Row] = ()
) -> list[AttentionEntry]:
    """Entries for findings that are given in the order of time, brokers' first, then what cost most (`_order`).

    What a broker did to its groups explains more of what follows than what any client did.

    `refused`: cluster, group, client and host of a client that may not join, the code of its finding, `requests`, their times, and whether
    it `joined` later; a row for each time until it was let in, which may take hours after the finding. `incidents`: rows of that table.
    """
    rows = [{**row, "details": json.loads(row["details"] or "{}")} for row in findings]
    entries = _Folding(rows, incidents).entries
    told: dict[tuple[str | None, ...], list[Row]] = defaultdict(list)
    for row in rows:
        told[_asking(row)].append(row)
    asked = [  # each refusal with the finding that followed, else the last: who was let in may be refused again
        (next((one for one in own if one["occurred_at"] >= row["first_at"]), own[-1])["id"], row)
        for row in refused
        if (own := told.get(_asking(row)))
    ]
    for entry in entries:
        found = _rebalances(entry, times)
        entry.bill, entry.rebalanced, entry.records = _bill(entry, found), span_of(found), times.records(found)
        entry.is_grave = times.is_grave(found, entry.records)
        ids = entry.ids
        entry.refused = Refusals.of([row for one, row in asked if one in ids])
    return sorted(entries, key=_order)


class _Folding:
    """Folds findings into `entries`. Incidents of brokers and bursts come first: they explain what happened meanwhile."""

    def __init__(self, rows: Iterable[Row], incidents: Sequence[Row]) -> None:
        of_incidents: dict[str, AttentionEntry] = {}
        self._same: dict[tuple[str, ...], AttentionEntry] = {}  # by cluster, group and code
        self._bursts: dict[Key, list[tuple[Row, AttentionEntry]]] = defaultdict(list)
        self._workers: dict[tuple[str, str], list[tuple[int, AttentionEntry]]] = defaultdict(list)  # when last heard, by connector
        self._known: dict[tuple[object, ...], list[tuple[int, AttentionEntry]]] = defaultdict(list)  # since when, by what it is known by
        incident_of, others = by_finding(incidents), []
        for row in rows:
            if incident := incident_of.get((row["cluster"], row["id"])):
                entry = of_incidents.setdefault(incident["id"], AttentionEntry([], incident))
                entry.findings.append(row)
                for name in ((), *((member_id,) for member_id in row["details"].get("members_lost") or ())):
                    self._note(name, row, entry)
            else:
                others.append(row)
        for row in others:
            if row["code"] in BURSTS:
                self._bursts[key_of(row)].append((row, self._put(row, None)))
        for row in sorted(others, key=lambda row: _sink_of(row) != ""):
            if row["code"] not in {*BURSTS, *_REFUSALS}:
                self._incident(row)
        for row in others:
            if row["code"] in _REFUSALS:  # a client that has left sends no member id
                told = (row["details"].get("removed"), row["client_id"])
                self._put(row, self._latest((row["member_id"],), row) or self._latest(told, row) or self._latest((), row, SPAN_MS))
        self.entries = [*of_incidents.values(), *self._same.values()]

    def _incident(self, row: Row) -> None:
        """Takes a finding that may be part of a burst, or follow from what a broker did, and that may explain refusals."""
        cause = next((entry for burst, entry in self._bursts[key_of(row)] if _is_part(row, burst)), None)
        if row["code"] in _AFTER_OUTAGES and "join_ms" not in row["details"]:  # else a group waited for it
            cause = cause or self._latest((), row, SPAN_MS)
        if row["code"] == catalogue.SYNC_TIMEOUT.code:  # one stop, if the member had not come into this generation: a static one stays
            cause = cause or self._latest((row["member_id"], row["generation"]), row)
        if row["code"] == offset_catalogue.OFFSET_RESET.code:
            cause = cause or self._latest((row["details"]["partition"],), row)
        if sink := _sink_of(row):
            lost = self._workers[row["cluster"], sink]
            cause = cause or next((one for at_ms, one in lost if abs(_heard_ms(row) - at_ms) <= _STOPPED_WITHIN_MS), None)
        entry = self._put(row, cause)
        for connector in row["details"].get("connectors") or ():
            self._workers[row["cluster"], connector].append((_heard_ms(row), entry))
        if row["code"] == offset_catalogue.OFFSETS_EXPIRED.code:
            self._note((row["details"]["partition"],), row, entry)
        if row["code"] in _ENDING:
            for member_id in {row["member_id"], *(row["details"].get("waited_for") or ())} - {None}:
                self._note((member_id,), row, entry)
                self._note((member_id, row["generation"]), row, entry)
            self._note((row["code"], row["client_id"]), row, entry)

    def _put(self, row: Row, cause: AttentionEntry | None) -> AttentionEntry:
        """Adds a finding to the entry that explains it, else to that of the same code in the same group."""
        entry = cause or self._same.setdefault((*key_of(row), row["code"]), AttentionEntry([]))
        (entry.findings if cause is None else entry.followed_by).append(row)
        return entry

    def _note(self, name: tuple[object, ...], row: Row, entry: AttentionEntry) -> None:
        """Notes what an entry is known by in its group since a finding; what a broker did to the group has no name."""
        self._known[(*key_of(row), *name)].append((epoch_ms(row["occurred_at"]), entry))

    def _latest(self, name: tuple[object, ...], row: Row, within_ms: int | None = None) -> AttentionEntry | None:
        """The entry of that name that came last before a finding, or so soon before it."""
        at_ms = epoch_ms(row["occurred_at"])
        least_ms = 0 if within_ms is None else at_ms - within_ms
        before = [known for known in self._known.get((*key_of(row), *name), ()) if least_ms <= known[0] <= at_ms]
        return max(before, key=lambda known: known[0])[1] if before else None


def _sink_of(row: Row) -> str:
    """The connector whose sink task has the consumer that missed its session timeout; empty for any other finding."""
    is_sink = row["code"] == catalogue.SESSION_TIMEOUT.code and (row["client_id"] or "").startswith(SINK_TASK)
    return str(row["client_id"]).removeprefix(SINK_TASK).rpartition("-")[0] if is_sink else ""


def _heard_ms(row: Row) -> int:
    """When the client of a session that ended was last heard, about."""
    return epoch_ms(row["occurred_at"]) - (row["details"].get("silent_ms") or row["details"].get("session_timeout_ms") or 0)


def _whose(cases: Sequence[Sequence[tuple[Row, Row]]]) -> list[str]:
    """What begins the advice of each kind of case: the client, if all of them are its, and all of its; else how many they are."""
    clients = [{row["client_id"] for row, _ in rows} for rows in cases]
    named = Counter(name for names in clients for name in names)
    whose = [f"In {many(len(rows), 'other case')}: " for rows in cases]
    whose[0] = f"In {len(cases[0])} of {sum(map(len, cases))} cases: "
    for place, names in enumerate(clients):
        if len(names) == 1 and (name := min(names)) and named[name] == 1:
            whose[place] = f"{printable(name, 60)}: "
    return whose if len(cases) > 1 else [""]


def _asking(row: Row) -> tuple[str | None, ...]:
    return row["cluster"], row["group_id"], row["code"], row["client_id"], row["client_host"]


def _is_part(row: Row, burst: Row) -> bool:
    """Whether a member's removal is one of those that a storm or a rolling restart is made of."""
    since_ms = epoch_ms(row["occurred_at"]) - epoch_ms(burst["occurred_at"])
    if row["code"] not in _REMOVALS or not -_SOON_MS <= since_ms <= burst["details"].get("span_ms", 0) + _SOON_MS:
        return False
    details = burst["details"]
    return row["member_id"] in details["restarted"] if "restarted" in details else row["client_id"] in details.get("clients", ())


def _rebalances(entry: AttentionEntry, times: RebalanceTimes) -> list[Rebalanced]:
    """The rebalances that an entry is about."""
    if entry.incident is None and entry.code in BURSTS:
        return times.at(entry.findings, max(row["details"].get("span_ms") or 0 for row in entry.findings))
    return times.blamed_on([*entry.findings, *entry.followed_by])


def _bill(entry: AttentionEntry, found: Sequence[Rebalanced]) -> Bill:
    """Storms and rolling restarts say what they cost: others may have rebalanced the group meanwhile."""
    if entry.incident is not None or entry.code not in BURSTS:
        return bill_of(found)
    said = [row["details"] for row in entry.findings]
    names = ("total_ms", "unavailable_partition_ms")
    parts = ([part for one in said for part in (one.get(name), *([None] if bound(name, one) else []))] for name in names)
    return billed(sum(one.get("rebalances") or 0 for one in said), *parts)


def _order(entry: AttentionEntry) -> tuple[object, ...]:
    """What a broker did, then what cost most, whatever its severity; then errors and warnings that cost next to nothing, then notes."""
    first, severity = entry.findings[0], _rank(entry.severity)
    cost = (-(entry.bill.unavailable_partition_ms or 0), -(entry.bill.total_ms or 0))
    has_cost = -min(cost) >= _COST_MS
    is_note, is_broker = entry.severity == SEVERITIES[-1], entry.incident is not None and severity == 0
    place = (first["occurred_at"], first["cluster"], first["group_id"], first["code"])
    return (is_note, not is_broker, not has_cost, 0 if has_cost else severity, *cost, severity, *place)


def _rank(severity: str) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else len(SEVERITIES)
