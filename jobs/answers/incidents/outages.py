"""Folds findings about coordinators into outages: a broker is lost, and what that did to all groups is one matter.

When a broker is lost, its groups move, and they come back when it does. Groups of other brokers are held up meanwhile: their coordinator
cannot write until the lost replica leaves the ISR (coordinator_model/diagnosis/incidents.py). How brokers went away and came back, their
own logs and those of the others say (sql/views/broker_departures.sql).
"""

from __future__ import annotations

from bisect import bisect
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from coordinator_model import events as e
from coordinator_model.diagnosis.catalogue import COORDINATOR_MOVED
from coordinator_model.diagnosis.findings import broker_name
from coordinator_model.diagnosis.incidents import SPAN_MS, removed
from jobs.answers.duckdb_views import Row
from jobs.common.text import many, printable
from jobs.common.times import duration, epoch_ms, instant

SHUT_DOWN: Final = "BROKER_SHUT_DOWN"
CRASHED: Final = "BROKER_CRASHED"
RESTARTED: Final = "BROKERS_RESTARTED"
"""The cause of an incident of several brokers that were shut down one after the other."""

_REMEDIES: Final = {
    "BROKER_FAILED": "Repair the log directories of {broker}.",
    CRASHED: "Read the end of the log of {broker} and check its host to see why it died (OOM killer, kill -9, JVM crash, disk).",
    SHUT_DOWN: "If this was planned, restart brokers one at a time, each once the previous one is back in all ISRs.",
    "BROKER_EXPIRED": "Check {broker} for a long JVM pause, and its network: it lost its ZooKeeper session.",
    "BROKER_LOST": "Check the process, the host and the network of {broker}: the others lost it.",
}
"""What to do, by the cause that the lines show."""


@dataclass(frozen=True)
class Departure:
    """Why groups left a broker. `signs`: rows of broker_departures, in the order of time."""

    signs: tuple[Row, ...]

    @property
    def began_at(self) -> datetime:
        """When the first line said so."""
        at: datetime = self.signs[0]["occurred_at"]
        return at

    @property
    def is_dated(self) -> bool:
        """Whether a line shows when it went. What it finds when it starts does not."""
        return any(sign["kind"] != e.BROKER_UNCLEAN for sign in self.signs)

    def sentence(self, broker: str) -> str:
        """What its lines say, for people. `broker`: its name in a sentence."""
        _, text = self._told(broker)
        started_at = self.signs[0]["started_at"]
        if started_at is not None:
            return f"{text}; down for {duration(epoch_ms(started_at) - epoch_ms(self.began_at))}."
        is_there = self._has(e.BROKER_EXPIRED) or not self.is_dated
        return f"{text}." if is_there else f"{text}; no line shows that it restarted."

    def tells(self, crash: Row) -> bool:
        """Whether it is the crash that the broker found when it started."""
        first, at = self.signs[0], crash["occurred_at"]
        return first["clean"] is False and first["occurred_at"] <= at <= (first["started_at"] or first["again_at"] or at)

    def was_lost_at(self, at: datetime) -> bool:
        """Whether it was away and had not shut down: then others wait for its replicas."""
        started_at = self.signs[0]["started_at"]
        return self.cause not in (SHUT_DOWN, "BROKER_EXPIRED") and self.began_at <= at and (started_at is None or at < started_at)

    @property
    def cause(self) -> str:
        """What its lines say, as a code of the table `incidents`."""
        return self._told("")[0]

    def remedy(self, broker: str) -> str:
        """What to do about the broker."""
        return _REMEDIES[self.cause].format(broker=broker)

    def _told(self, broker: str) -> tuple[str, str]:
        first, told = self.signs[0], self._has(e.BROKER_STOPPING)
        unclean = "was told to stop and killed before it did" if told else "crashed or was killed"
        texts = (
            (self._has(e.BROKER_FAILED), "BROKER_FAILED", f"{broker} shut itself down: all its log directories had failed"),
            (first["clean"] is False, CRASHED, f"{broker} {unclean}: no clean shutdown"),
            (first["clean"] or first["stopped_at"] is not None, SHUT_DOWN, f"{broker} was shut down cleanly"),
            (told, SHUT_DOWN, f"{broker} was told to stop"),
            (self._has(e.BROKER_EXPIRED), "BROKER_EXPIRED", f"{broker} lost its ZooKeeper session while it was running"),
            (self._has(e.BROKER_UNREACHABLE), "BROKER_LOST", f"Other brokers lost their connection to {broker}"),
            (True, "BROKER_LOST", f"The controller lost {broker}"),
        )
        return next((cause, text) for holds, cause, text in texts if holds)

    def _has(self, kind: str) -> bool:
        return any(sign["kind"] == kind for sign in self.signs)


class Departures:
    """The signs of a lakehouse."""

    def __init__(self, signs: Iterable[Row]) -> None:
        """Rows of sql/rows/departures.sql, in the order of time."""
        self._of: dict[tuple[str, str], list[Row]] = {}
        self._crashed: dict[tuple[str, str], list[Row]] = {}  # starts after a shutdown that was not clean
        for sign in signs:
            known = self._crashed if sign["kind"] == e.BROKER_UNCLEAN else self._of
            known.setdefault((sign["cluster"], sign["broker"]), []).append(sign)

    def of_another(self, cluster: str, broker: str, at_ms: int) -> str | None:
        """Another broker that went away soon before a time, and was not there again: the last of them."""
        near = [
            (epoch_ms(sign["occurred_at"]), other)
            for (of_cluster, other), signs in self._of.items()
            for sign in signs
            if of_cluster == cluster and other != broker and at_ms - SPAN_MS <= epoch_ms(sign["occurred_at"]) <= at_ms
            if sign["started_at"] is None or epoch_ms(sign["started_at"]) > at_ms
        ]
        return max(near)[1] if near else None

    def crash(self, cluster: str, broker: str, since_ms: int, until_ms: int, left_at: datetime | None = None) -> Departure | None:
        """That a broker had crashed, as its own log says where it starts again in that time. No line shows it alive `left_at` a time."""
        near = [
            one
            for one in self._crashed.get((cluster, broker), ())
            if since_ms <= epoch_ms(one["occurred_at"]) <= until_ms
            and (left_at is None or (one["heard_at"] or left_at) <= left_at <= (one["again_at"] or left_at))
        ]
        return Departure((next(one for one in near if one["heard_at"] == near[-1]["heard_at"]),)) if near else None

    def before(self, cluster: str, broker: str, first_at: datetime, last_at: datetime) -> Departure | None:
        """Why groups left a broker between two times. A sign counts if it came soon before the first of them left.

        A broker that was there again before any left did not make them leave. Where no sign shows how it went, it may find that later.
        """
        first_ms, last_ms = epoch_ms(first_at), epoch_ms(last_at)
        signs = [
            sign
            for sign in self._of.get((cluster, broker), ())
            if first_ms - SPAN_MS <= epoch_ms(sign["occurred_at"]) <= last_ms
            and (sign["started_at"] is None or epoch_ms(sign["started_at"]) > first_ms)
        ]
        known = Departure(tuple(signs)) if signs and epoch_ms(signs[0]["occurred_at"]) <= first_ms else None
        is_told = known is not None and signs[0]["clean"] is not None
        return known if is_told else self.crash(cluster, broker, first_ms - SPAN_MS, last_ms + SPAN_MS, first_at) or known


HELD_UP: Final = "COORDINATOR_HELD_UP"
"""The cause of an incident in which no group left the broker."""

_NAMED: Final = 3  # brokers in a sentence
_BETWEEN: Final = timedelta(minutes=10)  # from the return of a broker to the restart of the next one


@dataclass
class Outage:
    """What happened to the groups of one broker, and to others at that time. Rows are findings with parsed details."""

    broker: str  # that the groups left, or that was held up
    left: list[Row] = field(default_factory=list)
    held_up: list[Row] = field(default_factory=list)
    returned: list[Row] = field(default_factory=list)
    departure: Departure | None = None
    waited: dict[str, int] = field(default_factory=dict)  # how long others waited for an answer that lost no member, ms, by group
    served: Sequence[str] = ()  # the groups of a broker that crashed, where no finding tells of any

    @property
    def groups(self) -> list[str]:
        """All groups that it touched."""
        return sorted({*self.served, *(row["group_id"] for row in self.findings)})

    @property
    def began_at(self) -> datetime:
        """When the first line says that the broker goes away; where none says so, when the first group noticed."""
        first: list[datetime] = [row["occurred_at"] for row in self.findings[:1]]
        return min([*first, self.departure.began_at] if self.departure is not None and (self.departure.is_dated or not first) else first)

    @property
    def back_at(self) -> datetime | None:
        """When its broker was back, if it had been shut down cleanly and a line says so."""
        at: datetime | None = self.departure.signs[0]["started_at"] if self.departure and self.departure.cause == SHUT_DOWN else None
        return at

    @property
    def findings(self) -> list[Row]:
        """All findings about it, in the order of time."""
        return sorted([*self.left, *self.held_up, *self.returned], key=lambda row: row["occurred_at"])

    def held_up_too(self, requests: Iterable[Row]) -> Iterator[Row]:
        """The requests that waited meanwhile whose groups have no finding: at any broker while one was lost, else at those held up."""
        signs, departure, groups, since = self.findings, self.departure, {*self.groups}, self.began_at
        until = max(signs[-1]["occurred_at"], (departure and departure.signs[0]["started_at"]) or signs[-1]["occurred_at"])
        where = {self.broker, *(row["details"].get("from_broker") for row in self.held_up)}
        anywhere = departure is not None and departure.is_dated
        for one in requests:
            here = one["cluster"] == signs[0]["cluster"] and one["group_id"] not in groups and (anywhere or one["broker"] in where)
            if here and since <= one["occurred_at"] and one["received_at"] <= until:
                yield one

    def tells(self, crash: Row) -> bool:
        """Whether it says that its broker crashed, as that found when it started."""
        here = (self.findings[0]["cluster"], self.broker) == (crash["cluster"], crash["broker"])
        return here and self.departure is not None and self.departure.tells(crash)

    def sentence(self) -> str:
        """What happened, for people."""
        parts = []
        if self.left:  # at least these: of a group that the lines do not show at its new broker nobody knows
            targets = Counter(row["details"].get("to_broker") for row in self.left)
            parts.append(f"At least {many(_count(self.left), 'group')} moved from {broker_name(self.broker)} to {_brokers(targets)}")
            if self.returned:
                back = _count(self.returned)
                who = f"{back} of them" if back < _count(self.left) else "it" if back == 1 else "all of them"
                parts[0] += f", and {who} had moved back by {instant(_at_ms(self.returned[-1]))[11:19]} UTC"
        if self.served:
            parts.append(f"It had coordinated {many(len(self.served), 'group')}")
        if self.held_up:  # at least these: one that lost no member has no finding
            others = Counter(row["details"].get("from_broker") for row in self.held_up)
            names = sorted({row["group_id"] for row in self.held_up})
            count = f"at least {many(len(names), 'more group' if self.left else 'group')}"
            groups = count if self.left or names[1:] else printable(names[0], 60)
            crashed = self.departure is not None and not self.departure.is_dated
            parts.append(f"{'It' if crashed and not self.left else _brokers(others)} did not answer {groups} in time")
            if self.departure is not None and not crashed and all(self.departure.was_lost_at(row["occurred_at"]) for row in self.held_up):
                parts[-1] += f" while {broker_name(self.broker)} was down: writes to __consumer_offsets wait for its replica"
        lost, gave_up = ({one for row in self.findings for one in row["details"].get(name) or ()} for name in ("members_lost", "gave_up"))
        why = f"{_capital(self.departure.sentence(broker_name(self.broker)))} " if self.departure is not None else ""
        text = why + _capital("; ".join(parts)) + "."
        if self.waited:
            longest = duration(max(self.waited.values()))
            text += f" {many(len(self.waited), 'more group')} waited up to {longest} for a broker's answer and lost no member."
        return text + removed(len(lost - gave_up), len(gave_up))


def outages(findings: Iterable[Row], departures: Departures) -> list[Outage]:
    """The outages behind the findings COORDINATOR_MOVED, in the order of time. Rows come in the order of time, with parsed details."""
    found: dict[str, list[Outage]] = {}  # by cluster
    away: dict[tuple[str, str], list[Outage]] = {}  # by group: outages whose broker it has left and not come back to
    held_up = []
    for row in findings:
        if row["code"] != COORDINATOR_MOVED.code:
            continue
        source, target = (row["details"].get(name) or "?" for name in ("from_broker", "to_broker"))
        own = away.setdefault((row["cluster"], row["group_id"]), [])
        if source == target:
            held_up.append(row)
        elif former := next((outage for outage in reversed(own) if outage.broker == target), None):
            former.returned.append(row)
            own.remove(former)
        else:
            outage = _running(found.setdefault(row["cluster"], []), source, row)
            outage.left.append(row)
            own.append(outage)
    times = {cluster: [sorted(map(_at_ms, [*outage.left, *outage.returned])) for outage in known] for cluster, known in found.items()}
    for row in held_up:
        of_cluster, near = found.setdefault(row["cluster"], []), times.setdefault(row["cluster"], [])
        distance, number = min(((_distance_ms(signs, _at_ms(row)), number) for number, signs in enumerate(near)), default=(SPAN_MS + 1, 0))
        if distance > SPAN_MS:
            broker = row["details"].get("from_broker") or "?"
            lost = departures.of_another(row["cluster"], broker, _at_ms(row))
            number = len(of_cluster)
            of_cluster.append(Outage(lost or broker))
            near.append([])
        of_cluster[number].held_up.append(row)
        if not of_cluster[number].left:
            near[number].append(_at_ms(row))
    for cluster, known in found.items():
        for outage in known:
            signs = outage.left or outage.held_up
            if any(row["details"].get("to_broker") != outage.broker for row in signs):
                outage.departure = departures.before(cluster, outage.broker, signs[0]["occurred_at"], signs[-1]["occurred_at"])
            else:
                outage.departure = departures.crash(cluster, outage.broker, _at_ms(signs[0]) - SPAN_MS, _at_ms(signs[0]))
    return [outage for cluster in sorted(found) for outage in found[cluster]]


def restarts(found: Iterable[Outage]) -> list[list[Outage]]:
    """The outages, with those together in which brokers were restarted one after the other: each was back before the next one went."""
    runs: list[list[Outage]] = []
    for outage in sorted(found, key=lambda one: one.began_at):
        cluster = outage.findings[0]["cluster"]
        for run in runs:
            last = run[-1].back_at
            is_next = last is not None and outage.back_at is not None and last <= outage.began_at <= last + _BETWEEN
            if is_next and run[0].findings[0]["cluster"] == cluster and outage.broker not in {one.broker for one in run}:
                run.append(outage)
                break
        else:
            runs.append([outage])
    return runs


def _running(of_cluster: list[Outage], broker: str, row: Row) -> Outage:
    """The outage of a broker that groups were leaving just before, or a new one."""
    for outage in reversed(of_cluster):
        if outage.broker == broker and _at_ms(row) - _at_ms(outage.left[-1]) <= SPAN_MS:
            return outage
    of_cluster.append(Outage(broker))
    return of_cluster[-1]


def _at_ms(row: Row) -> int:
    return epoch_ms(row["occurred_at"])


def _distance_ms(times: list[int], at_ms: int) -> int:
    """How far a time is from the nearest of the sorted `times`."""
    index = bisect(times, at_ms)
    return min(abs(at_ms - time) for time in times[max(index - 1, 0) : index + 1])


def _count(rows: Sequence[Row]) -> int:
    return len({row["group_id"] for row in rows})


def _brokers(counted: Counter[str | None]) -> str:
    """Those of most groups first."""
    names = [broker_name(name or "?") for name, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0] or ""))]
    shown = names[:_NAMED] + ([f"{len(names) - _NAMED} more"] if len(names) > _NAMED else [])
    return ", ".join(shown[:-1]) + " and " + shown[-1] if len(shown) > 1 else shown[0]


def _capital(sentence: str) -> str:
    """It begins with "Broker 1", but with the name of a broker as it is."""
    return f"B{sentence[1:]}" if sentence.startswith("broker ") else sentence
