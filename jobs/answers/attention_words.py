"""What an entry of the report says, in words that are made here alone: the text report and the pages lay them out."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from coordinator_model.diagnosis import titles
from coordinator_model.diagnosis.catalogue import COORDINATOR_MOVED, REBALANCE_STORM
from coordinator_model.diagnosis.findings import above, broker_name, current
from coordinator_model.diagnosis.incidents import SLOW_MS
from coordinator_model.view.members import client_in
from jobs.answers.attention import BURSTS, SEVERITIES, AttentionEntry
from jobs.answers.client_words import Said
from jobs.answers.duckdb_views import Row
from jobs.answers.incidents.bills import bound
from jobs.answers.incidents.outages import CRASHED, HELD_UP, RESTARTED
from jobs.answers.judgement import Gap, Judgement
from jobs.answers.rebalance_words import CODE as OPEN_REBALANCE
from jobs.common.text import many, printable, some, who
from jobs.common.times import duration, epoch_ms, is_known, to_second

EXPLAINED: Final = {
    "STARTUP": "the first rebalance of a group that was new or empty",
    "COORDINATOR_MOVED": "another broker took over the group, or its own broker did not answer in time",
    "REVOCATION_FOLLOW_UP": "the second round of a cooperative rebalance: what members gave up in the first is given out",
    "CONNECTOR_CHANGED": "a connector of the Connect cluster, or its tasks, were created, changed or deleted",
    "DELAY_ENDED": "the scheduled delay of Connect was over: the tasks of a lost worker were given out",
    "PROBING_REBALANCE": "Streams planned it, to see whether warm-up tasks had caught up",
    "METADATA_CHANGED": "topics that the group reads gained partitions, appeared or disappeared: the members divide them again",
    "SUBSCRIPTION_CHANGED": "a member changed its subscription",
    "MEMBER_REJOINED": "a member rejoined by itself, as after enforceRebalance()",
    "ADMIN_REMOVED": "an administrator removed a member (kafka-consumer-groups.sh, Admin)",
    "GROUP_CONFIG_CHANGED": "somebody changed a group setting that affects the assignment",
    "SUPERSEDED": "the next rebalance began before this one had ended",
    "ABANDONED": "no line shows its end: its coordinator moved or restarted, its protocol changed, or lines are missing",
}
"""Words for rebalances that are not plain."""

CLIENTS_SAY: Final = "What clients say (there are no broker lines about these groups)"

STILL_ON: Final = "still going on when the logs end"
OVER: Final = "over"

STYLES: Final = {"ERROR": "bold red", "WARNING": "yellow", "INFO": "cyan"}
"""How a severity looks in a terminal."""

TOO_SHORT: Final = "Settings that were too low"

_SESSION: Final = "session.timeout.ms"
_POLL: Final = "max.poll.interval.ms"
_SILENT: Final = [("silent_ms", _SESSION, "session_timeout_ms"), ("silent_ms", _POLL, "max_poll_interval_ms")]
_SETTINGS: Final = {
    "POLL_TIMEOUT": [("poll_gap_ms", _POLL, "max_poll_interval_ms")],
    "COORDINATOR_MOVED": [("unheard_ms", _SESSION, "session_timeouts_ms")],
    "SESSION_TIMEOUT": [("away_ms", _SESSION, "session_timeout_ms")],
    "UNKNOWN_MEMBER": [*_SILENT, ("sync_ms", _POLL, "max_poll_interval_ms")],
    "ZOMBIE_COMMIT": _SILENT,
}
"""By the code of a finding: the figure of what it took, the setting that was too short, and the figure of its value."""
_CONDITIONS: Final = {"away_ms": ", if that was a restart"}
"""A static member that stops for good is silent, too: its session should end then."""
_OF_GROUP: Final = "the group's session timeout"
_GROUP_SETTINGS: Final = frozenset({"", *(f"{kind}.{_SESSION}" for kind in ("consumer", "share", "streams"))})
"""The setting in the protocols in which it is the group's. No line has its value, but a session that ended shows that it was too short."""

_MEANS: Final = {"SESSION_TIMEOUT": ": silent without close(), as after a crash or SIGKILL"}
"""What a code that is only counted tells of the clients."""

_ASIDE: Final = re.compile(r" \((?!now )[^()]*(?:\(\)[^()]*)*\)")
_PART: Final = re.compile(r"(?<=[.:]) ")
_ORDER: Final = re.compile(
    r"(?:.*, )?(?:abort|call|check|commit|find out|get|give|look|make|raise|read|restart|run|set|shorten|stop|tell|use)(?= )", re.IGNORECASE
)
_VALUE: Final = re.compile(r"\babove \d")

_QUIET: Final = timedelta(minutes=1)
_NAMED: Final = 4  # clients, or groups, in a line
_SENTENCES: Final = 1_200  # characters of a message or of advice
_BANDS: Final = {
    COORDINATOR_MOVED.code: "groups left {}",
    HELD_UP: "{} unresponsive",
    "BROKER_EXPIRED": "{} expired",
    RESTARTED: "{} restarted",
}
"""What a band is called by the cause of its incident. A broker was away only where a line says that it went."""
_WITHOUT_DEPARTURE: Final = (COORDINATOR_MOVED.code, HELD_UP, RESTARTED)


class End(NamedTuple):
    """The end of the time that is shown of a cluster."""

    at: datetime
    of_logs: bool  # else the logs go on


class AttentionWords:
    """Speaks about entries. `time` and `name` show a time and a group as the rest of the report does; `ends`: by cluster."""

    def __init__(self, time: Callable[[datetime], str], name: Callable[[str, str], str], ends: Mapping[str, End]) -> None:
        self.time = time
        self.name = name
        self._ends = ends

    def of(self, entry: AttentionEntry) -> Row:
        """All words of an entry, each safe to show."""
        begin, end = (to_second(self.time(at)) for at in (entry.first_at, entry.last_at))
        times = f"{len(entry.findings)} times" if len(entry.findings) > 1 and entry.incident is None else ""
        span, outcome = begin + (f" to {end}" if begin != end else ""), self.outcome(entry)
        lasted = duration(epoch_ms(entry.last_at) - epoch_ms(entry.first_at)) if begin != end and is_known(entry.first_at) else ""
        return {
            "id": (entry.incident or entry.gravest)["id"],  # of the row whose lines prove it
            "subject": self.subject(entry),
            "times": times,  # how often, if more than once
            "lasted": lasted,  # for how long, if longer than a moment
            "outcome": outcome,
            "when": ", ".join(filter(None, (times, span, outcome))),
            "clients": clients_of(entry) if entry.incident is None or len(entry.groups) == 1 else "",
            "message": printable(entry.message, _SENTENCES),
            "advice": printable(" ".join(entry.advice), _SENTENCES),
            "change": printable(_orders(" ".join(entry.advice)), _SENTENCES),  # the orders in it, in few words
            "cost": cost_of(entry),
            "away": trouble(entry),
        }

    def subject(self, entry: AttentionEntry) -> str:
        """The group, or the broker and how many groups."""
        row = entry.gravest
        if entry.incident is None:
            return self.name(row["cluster"], row["group_id"])
        count = len(entry.incident["groups"])
        groups = f"{count} groups" if count > 1 else f"group {printable(row['group_id'], 60)}"
        return f"{self.name(row['cluster'], broker_name(entry.incident['broker']))}, {groups}"

    def outcome(self, entry: AttentionEntry) -> str:
        """Whether its trouble goes on where the lines end, or is over; empty where they do not show that.

        It is over once a minute has passed without more of it. A client that is refused may only have stopped to ask, or was let in later,
        a broker may be away although no line says so, and what happens again and again may happen once more.
        """
        incident, pending_at = entry.incident, entry.refused and entry.refused.pending_at
        end, is_storm = self._ends[entry.gravest["cluster"]], entry.code == REBALANCE_STORM.code
        is_quiet = end.at - (entry.last_at if incident else pending_at or entry.last_at) >= _QUIET
        if entry.code == OPEN_REBALANCE or (end.of_logs and not is_quiet and not incident and (pending_at or is_storm)):
            return STILL_ON
        if incident:
            decided = incident["back_at"] is not None or incident["cause"] in (COORDINATOR_MOVED.code, HELD_UP, "BROKER_EXPIRED")
        else:
            decided = not entry.refused and entry.rebalanced is not None and (is_storm or len(entry.findings) == 1)
        return OVER if decided and is_quiet else ""

    def settings(self, entries: Iterable[AttentionEntry]) -> list[str]:
        """The settings that were too short, with what they took, a sentence for each group and setting: all that entries say of it."""
        took: dict[tuple[str, str, str], tuple[int, int]] = {}
        for entry in entries:
            for row in entry.findings if entry.incident else (*entry.findings, *entry.followed_by):
                details, group = row["details"], self.name(row["cluster"], row["group_id"])
                for of_need, setting, of_value in _SETTINGS.get(row["code"], ()):
                    named = details.get("setting") if setting == _SESSION else None
                    own = named or (setting if of_value in details else "")
                    value = details.get(of_value, -1 if setting == _SESSION else None)
                    needed = details.get(of_need)
                    value = max(value, default=-1 if "setting" in details else None) if isinstance(value, list) else value
                    is_own = of_need == "sync_ms" or details.get("removed", "SESSION_TIMEOUT") == "SESSION_TIMEOUT"
                    if is_own and value is not None and needed is not None and needed > value:
                        key = group, _OF_GROUP if own in _GROUP_SETTINGS else own, _CONDITIONS.get(of_need, "")
                        took[key] = max(took.get(key, (0, 0)), (needed, value))
        return [
            f"{group}: {setting}{current(value)} above {above(needed)}{condition}"
            for (group, setting, condition), (needed, value) in took.items()
        ]

    def paragraphs(self, entry: AttentionEntry) -> Iterator[tuple[str, str]]:
        """What happened, who, what followed and what it cost: each with its label."""
        several = len(entry.findings) > 1 and entry.incident is None
        yield "What", self._worst(entry) if several else entry.message
        if entry.incident is not None and len(entry.groups) > 1:
            yield "Groups", _folded(entry.groups)
        # Of the groups and the time that are shown alone: the incident has those of all groups.
        if lost := sorted({member for row in entry.findings for member in row["details"].get("members_lost") or ()}):
            named = {row["member_id"]: row["client_id"] for row in entry.followed_by if row["client_id"]}
            yield "Removed", _counted(client_in(member, "") or named.get(member, member) for member in lost)
        elif clients := clients_of(entry):
            yield "Who", clients
        yield from zip(("Then", *[""] * len(entry.followed_by)), self._then(entry), strict=False)
        if refused := entry.refused:
            later = "" if refused.pending_at else "; later ones were accepted"
            yield "Refused", f"{many(refused.requests, 'join')}, the last at {to_second(self.time(refused.last_at))}{later}"
        if cost := cost_of(entry):
            yield "Cost", cost

    def _worst(self, entry: AttentionEntry) -> str:
        """The gravest of several findings, whose it is, and when the other clients had theirs."""
        row = entry.gravest
        named = {one["client_id"]: to_second(self.time(one["occurred_at"])) for one in (*entry.findings, row) if one["client_id"]}
        own = named.pop(row["client_id"], None) and f"{printable(row['client_id'], 60)}, "
        also = [f"{printable(client, 60)} at {time}" for client, time in named.items()]
        again = (one for one in entry.findings if entry.code in BURSTS and one is not row and not one["client_id"])
        also += [f"at {to_second(self.time(one['occurred_at']))}" for one in again]
        return f"{own or ''}{to_second(self.time(row['occurred_at']))}: {entry.message}{f' Also {some(also, _NAMED)}.' if also else ''}"

    def said(self, one: Said) -> str:
        """When a client says what, and how often."""
        by = some(one.apart, _NAMED)
        more = [
            f"{one.times} times",
            *([f"from {by}"] if by else []),
            *([f"until {self.time(one.until)}"] if one.until > one.occurred_at else []),
        ]
        times = f" ({', '.join(more)})" if one.times > 1 else ""
        return f"{self.time(one.occurred_at)}  {one.who}{f' ({by})' if by and not times else ''} {one.says}{times}"

    def gap(self, gap: Gap) -> str:
        """What could not be judged, and why."""
        return f"{some([self.name(gap.cluster, group) for group in gap.groups], _NAMED) or 'Any group'}: {gap.why}"

    def calm(self, judgement: Judgement) -> str:
        """What the evidence allows to say of a report without entries."""
        healthy = judgement.healthy
        if not healthy:
            alone = " There are only lines of clients, shown below." if judgement.of_clients else ""
            return "No problem found, but too little evidence to call it healthy." + alone
        groups = some([self.name(*key) for key in healthy], 2 * _NAMED)
        waited = f" of clients, but a broker took up to {duration(judgement.waited_ms)} to answer" if judgement.waited_ms >= SLOW_MS else ""
        cover = (
            f"The lines {f'cover {duration(judgement.span_ms)}' if judgement.span_ms else 'have no times'} and show no trouble{waited}."
            if judgement.all_clear
            else "The rest could not be judged."
            if any(gap.groups for gap in judgement.gaps)
            else "What could not be judged is about no group."
        )
        return f"Nothing needs attention in {many(len(healthy), 'group')}: {groups}. {cover}"

    def _then(self, entry: AttentionEntry) -> list[str]:
        """What followed: a sentence for each code if it is about one client, else counts."""
        by_code: dict[str, list[Row]] = {}
        for row in sorted(entry.followed_by, key=lambda row: row["occurred_at"]):
            by_code.setdefault(row["code"], []).append(row)
        if entry.incident is not None or len({row["member_id"] for row in entry.followed_by}) > 1:
            several = entry.incident is not None or len(entry.groups) > 1
            where = {code: f" in {_folded(row['group_id'] for row in rows)}" if several else "" for code, rows in by_code.items()}
            counts = [f"{code} ({len(rows)}{_MEANS.get(code, '')})" if len(rows) > 1 else code for code, rows in by_code.items()]
            texts = [count + where[code] for code, count in zip(by_code, counts, strict=True)]
            return ["; ".join(texts)] if counts else []
        return [f"{to_second(self.time(rows[0]['occurred_at']))} {code}: {rows[0]['message']}" for code, rows in by_code.items()]


def counts_of(entries: Sequence[AttentionEntry]) -> str:
    """How many entries there are of each severity."""
    counted = Counter(entry.severity for entry in entries)
    return ", ".join(many(counted[name], name.lower()) for name in SEVERITIES if counted[name])


def clients_of(entry: AttentionEntry) -> str:
    """The clients of an entry, that of most findings first."""
    clients = entry.clients
    if not clients:
        return some([printable(member, 60) for member in sorted(entry.members)], _NAMED)
    if len(clients) == 1 and not all(clients[0][:2]):  # without a host: several processes may have this client id
        return who(*clients[0][:2], min(entry.members) if len(entry.members) == 1 else None)
    return some([who(client, host, None) + (f" ({count})" if count > 1 else "") for client, host, count in clients], _NAMED)


def _folded(names: Iterable[str]) -> str:
    return some([*dict.fromkeys(printable(name, 60) for name in names)], 2 * _NAMED)


def _counted(names: Iterable[str]) -> str:
    """Names in a line, of which each may be that of several; those beyond the first ones only counted."""
    counts = Counter(printable(name, 60) for name in names)
    shown = [*counts.items()][: 2 * _NAMED]
    rest = counts.total() - sum(count for _, count in shown)
    return ", ".join(f"{name} ({count})" if count > 1 else name for name, count in shown) + (f" and {rest:,} more" if rest else "")


def _orders(advice: str) -> str:
    """What to do first, and which value to set, without the reasons that advice gives for it."""
    parts = [part.rstrip(".:") for part in _PART.split(_ASIDE.sub("", advice))]
    first, *others = [part for part in parts if _ORDER.match(part)] or parts
    value = next((part for part in others if _VALUE.search(part)), "") if not _VALUE.search(first) else ""
    return " ".join(f"{part[0].upper()}{part[1:]}." for part in (first, value) if part)


def cost_of(entry: AttentionEntry) -> str:
    """What an incident cost; empty if it has no rebalance."""
    bill, records = entry.bill, entry.records.in_words()
    if not bill.rebalances:
        return ""
    lost = bill.unavailable_partition_ms
    least = {name: "at least " if bound(name, bill._asdict()) else "" for name in bill._fields}
    owners = f", {least['unavailable_partition_ms']}{duration(lost)} of unowned partition time (sum)" if lost is not None else ""
    took = f", {least['total_ms']}{duration(bill.total_ms)} of rebalancing" if bill.total_ms else ""  # clients' logs alone do not show it
    return f"{many(bill.rebalances, 'rebalance')}{took}{owners}{records and f', {records}'}"


def trouble(entry: AttentionEntry) -> dict[str, Any] | None:
    """When a broker was in trouble, and what that is called; None: the entry is about no broker. A lane shows it, and a band its groups."""
    incident = entry.incident
    if incident is None:
        return None
    away = "{} had crashed" if incident["cause"] == CRASHED and incident["back_at"] is None else "{} down"
    text = _BANDS.get(incident["cause"], away).format(printable(broker_name(incident["broker"]), 30))
    return {"from": incident["began_at"], "to": incident["back_at"] or incident["last_at"], "text": text, "broker": incident["broker"]}


def title(entry: AttentionEntry) -> str:
    """What happened, in words: who did what, and for a broker how long it was down and whom that hit."""
    incident = entry.incident
    if incident is None:
        clients = [printable(client or host, 40) for client, host, _ in entry.clients] or [client_in(one, "") for one in entry.members]
        groups = [printable(group, 60) for group in entry.groups]
        return titles.title(entry.code, groups, clients, [row["details"] for row in entry.findings])
    removed = len(incident["members_lost"])
    lost = f"{many(removed, 'member')} {'was' if removed == 1 else 'were'} removed" if removed else ""
    message = printable(incident["message"], 600)
    if incident["cause"] in _WITHOUT_DEPARTURE:
        return "; ".join(filter(None, (re.split(r"(?<=\.) (?=[A-Z\d])", message, maxsplit=1)[0].removesuffix("."), lost)))
    away = f", back after {duration(epoch_ms(incident['back_at']) - epoch_ms(entry.first_at))}" if incident["back_at"] else ""
    moved, held_up = incident["groups_moved"], incident["groups_held_up"]
    parts = [f"{many(moved, 'group')} moved" if moved else "", f"{many(held_up, 'group')} got no answer in time" if held_up else ""]
    hit = f"at least {' and '.join(filter(None, parts))}" if any(parts) else ""
    told = "; ".join(filter(None, (hit, lost)))
    return f"{re.split(r'[:;.] ', message, maxsplit=1)[0].removesuffix('.')}{away}{told and f': {told}'}"


def title_of(rows: Iterable[Row], incident: Row | None = None) -> str:
    """The title of findings of one code, as tables have them, or of the incident that they are part of."""
    return title(AttentionEntry([row | {"details": json.loads(row["details"])} for row in rows], incident))


def as_row(entry: AttentionEntry) -> Row:
    """An entry for programs."""
    return {
        "severity": entry.severity,
        "code": entry.code,
        "title": title(entry),
        "cluster": entry.gravest["cluster"],
        "groups": entry.groups,
        "clients": [dict(zip(("client_id", "client_host", "findings"), client, strict=True)) for client in entry.clients],
        "incident": entry.incident,
        "first_at": entry.first_at,
        "last_at": entry.last_at,
        **entry.bill._asdict(),
        **entry.records.figures(),
        "refused": entry.refused._asdict() if entry.refused else None,
        "message": entry.message,
        "advice": entry.advice,
        "findings": list(dict.fromkeys(row["id"] for row in entry.findings)),
        "followed_by": [row["id"] for row in entry.followed_by],
    }
