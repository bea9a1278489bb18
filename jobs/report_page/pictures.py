"""The pictures of a report: all groups over time, one group with its members, and what is to be seen of one incident."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Final

from jobs.answers.attention import AttentionEntry
from jobs.answers.duckdb_views import Key, Row, key_of
from jobs.answers.incidents.outages import broker_name
from jobs.common.text import printable, short_member, who
from jobs.common.times import EPOCH, duration, epoch_ms, instant
from jobs.report_page import families
from jobs.report_page.axis import Axis, Lane, Mark, Picture, Span, covering, present
from jobs.report_page.incidents import Incidents, trouble
from jobs.report_page.rows import PageRows

_LANES: Final = 14  # clients, or groups, in a picture of one group or one incident
_TOGETHER_MS: Final = 1_000


class Pictures:
    """Draws the rows of a page."""

    def __init__(
        self,
        rows: PageRows,
        incidents: Incidents,
        time: Callable[[datetime], str],
        group_ids: Mapping[Key, str],
        rebalance_ids: Mapping[str, str],
    ) -> None:
        """`time` shows a time; `group_ids` and `rebalance_ids` say where the page tells more, by group and by id of the rebalance."""
        self._rows = rows
        self._incidents = incidents
        self._entries = incidents.numbered
        self._time = time
        self._group_ids = group_ids
        self._rebalance_ids = rebalance_ids
        self._rebalances: dict[Key, list[Row]] = {}
        for row in rows.report.rebalances:
            self._rebalances.setdefault(key_of(row), []).append(row)

    def overview(self, cluster: str, groups: Sequence[Key], axis: Axis) -> Picture:
        """A lane for each group: its rebalances and findings; brokers that were away go through all lanes."""
        lanes = [self._group_lane(key, axis) for key in groups]
        first, last = instant(axis.first_ms)[:19], instant(axis.last_ms)[:19]
        caption = f"All groups, {first} to {last[11:] if last[:10] == first[:10] else last}"
        return Picture(caption, axis.ticks(), tuple(lanes), self._bands(cluster, axis))

    def group(self, key: Key, axis: Axis) -> Picture:
        """States, rebalances and members of a group."""
        return self._of_group(key, axis, self._incidents.about(key), f"Group {printable(key[1], 60)}, times in")

    def incident(self, number: int, entry: AttentionEntry, whole: Axis) -> Picture:
        """The time around an incident: its group with the members, or the groups that a broker's outage touched."""
        axis = self._around(entry, whole)
        row = entry.gravest
        if entry.incident is None:
            return self._of_group(key_of(row), axis, [(number, entry)], f"Incident {number}, times in")
        keys = [(row["cluster"], group) for group in entry.groups]
        lanes = [self._group_lane(key, axis) for key in keys[:_LANES]]
        more = f"{len(keys) - _LANES} more groups: see the picture of all groups" if len(keys) > _LANES else ""
        return Picture(f"Incident {number}, times in", axis.ticks(), tuple(lanes), self._bands(row["cluster"], axis), more)

    def _of_group(self, key: Key, axis: Axis, entries: Iterable[tuple[int, AttentionEntry]], caption: str) -> Picture:
        found = [(number, row) for number, entry in entries for row in (*entry.findings, *entry.followed_by) if key_of(row) == key]
        lane = Lane("Findings", marks=self._marks(found, axis))
        rebalances = Lane("Rebalances", spans=self._rebalance_spans(key, axis))
        states = Lane("State", spans=self._states(key, axis))
        members, left_out = self._members(key, axis)
        lanes = [one for one in (lane, rebalances, states) if one.marks or one.spans] + members
        more = f"{left_out} more clients" if left_out else ""
        return Picture(caption, axis.ticks(), tuple(lanes), self._bands(key[0], axis), more)

    def _group_lane(self, key: Key, axis: Axis) -> Lane:
        marks = self._marks(self._incidents.marked(key), axis)
        gravest = self._incidents.severity(key)
        name = printable(key[1], 60)
        return Lane(name, "", self._rebalance_spans(key, axis), marks, f"#{self._group_ids.get(key, 'groups')}", gravest)

    def _rebalance_spans(self, key: Key, axis: Axis) -> list[Span]:
        spans = []
        for row in self._rebalances.get(key, ()):
            look = families.of_rebalance(row)
            by, lost = culprit(row), row["unavailable_partition_ms"]
            cause = ("start-up" if row["startup"] else row["blamed"]) + ("" if by == "-" else f" by {by}")
            cost = f", {duration(lost)} of unowned partition time (sum)" if lost is not None else ""
            title = f"{self._time(row['started_at'])} {cause}, {duration(row['total_ms'])}{cost}, {row['outcome']}"
            href = f"#{self._rebalance_ids[row['id']]}" if row["id"] in self._rebalance_ids else ""
            spans.append(axis.span(epoch_ms(row["started_at"]), epoch_ms(row["ended_at"]), look.name, title, letter=look.letter, href=href))
        return present(spans)

    def _marks(self, found: Iterable[tuple[int, Row]], axis: Axis) -> list[Mark]:
        marks = []
        for number, row in found:
            if row["occurred_at"] not in axis:
                continue
            name = who(row["client_id"], row["client_host"], None)
            text = f"{self._time(row['occurred_at'])} {row['severity']} {row['code']}" + ("" if name == "-" else f" {name}")
            marks.append(Mark(axis.x(epoch_ms(row["occurred_at"])), row["severity"].lower(), f"{text} (incident {number})", f"#i{number}"))
        return marks

    def _states(self, key: Key, axis: Axis) -> list[Span]:
        rows = self._rows.states.get(key, [])
        if not rows:
            return []
        times = [epoch_ms(row["occurred_at"]) for row in rows]
        changes = [(axis.first_ms, rows[0]["from_state"]), *zip(times, (row["to_state"] for row in rows), strict=True), (axis.last_ms, "")]
        spans = []
        for (begin, state), (end, _) in pairwise(changes):
            look = families.STATES.get(state)
            if look is not None and end > begin:
                title = f"{state} from {self._time(EPOCH + timedelta(milliseconds=begin))}, {duration(end - begin)}"
                spans.append(axis.span(begin, end, look.name, title, letter=look.letter))
        return present(spans)

    def _members(self, key: Key, axis: Axis) -> tuple[list[Lane], int]:
        """A lane for each client, with its memberships; those of one client that overlap have a lane each. And how many were left out."""
        lanes: dict[tuple[str, int], Lane] = {}
        busy_until: dict[tuple[str, int], int] = {}
        lane_of: dict[str, Lane] = {}  # by member id, and by client id: the lane of its first member
        for row in self._rows.members.get(key, []):
            begin = epoch_ms(row["joined_at"]) if row["joined_at"] is not None else axis.first_ms
            end = epoch_ms(row["ended_at"]) if row["ended_at"] is not None else axis.last_ms
            span = axis.span(begin, end, families.MEMBER.name, self._membership(row))
            if span is None:
                continue
            name = who(row["client_id"], row["client_host"], None, row["instance_id"])
            name = short_member(row["member_id"]) if name == "-" else name
            place = next(place for place in range(len(lanes) + 1) if busy_until.get((name, place), -1) <= begin)
            busy_until[name, place] = end
            lane = lanes.setdefault((name, place), Lane(name + (f" ({place + 1})" if place else "")))
            lane.spans.append(span)
            lane.marks += self._ends(row, axis)
            lane_of[row["member_id"]] = lane
            lane_of.setdefault(row["client_id"] or "", lane)
        for row, span in self._silences(key, axis):
            if its := lane_of.get(row["member_id"] or "") or lane_of.get(row["client_id"] or ""):
                its.spans.append(span)
        ordered = [lanes[name] for name in sorted(lanes)]
        return ordered[:_LANES], max(len(ordered) - _LANES, 0)

    def _silences(self, key: Key, axis: Axis) -> list[tuple[Row, Span]]:
        """How long clients sent no heartbeat or did not poll, as the findings say; of a client, the longest of those that begin at once."""
        found: dict[tuple[str, int], tuple[int, Row, Span]] = {}
        for _, entry in self._incidents.about(key):
            for row in (*entry.findings, *entry.followed_by):
                if key_of(row) != key or (silence := _silence(row)) is None:
                    continue
                begin, gap_ms, what = silence
                span = axis.span(begin, begin + gap_ms, families.SILENT.name, f"{what} {duration(gap_ms)}")
                place = (row["client_id"] or row["member_id"] or "", begin // _TOGETHER_MS)
                if span is not None and gap_ms > found.get(place, (0,))[0]:
                    found[place] = (gap_ms, row, span)
        return [(row, span) for _, row, span in found.values()]

    def _bands(self, cluster: str, axis: Axis) -> tuple[Span, ...]:
        """When brokers were away or held up."""
        bands = []
        for number, entry in self._entries:
            band = trouble(entry)
            if band is None or entry.gravest["cluster"] != cluster:
                continue
            title = f"{band.text} {self._time(band.began_at)[:-4]} to {self._time(band.ended_at)[:-4]} (incident {number})"
            bands.append(axis.span(epoch_ms(band.began_at), epoch_ms(band.ended_at), families.AWAY.name, title, href=f"#i{number}"))
        return tuple(present(bands))

    def _around(self, entry: AttentionEntry, whole: Axis) -> Axis:
        rows = [*entry.findings, *entry.followed_by]
        times = [epoch_ms(entry.first_at)]
        for row in rows:
            at_ms, details = epoch_ms(row["occurred_at"]), row["details"]
            times += [at_ms - (details.get("silent_ms") or 0), at_ms + (details.get("span_ms") or 0)]
        keys = {key_of(row) for row in rows} if entry.incident is None else set()
        first_ms, last_ms = min(times), max(times)
        for key in keys:
            for row in self._rebalances.get(key, ()):
                begin, end = epoch_ms(row["started_at"]), epoch_ms(row["ended_at"])
                if begin <= last_ms + 1_000 and end >= first_ms:
                    first_ms, last_ms = min(first_ms, begin), max(last_ms, end)
        return covering(first_ms, last_ms, whole)

    def _membership(self, row: Row) -> str:
        ended = f", {row['end_kind']} {self._time(row['ended_at'])}" if row["ended_at"] is not None else ", still there at the end"
        began = f"from {self._time(row['joined_at'])}" if row["joined_at"] is not None else "from before"
        return f"member {short_member(row['member_id'])} {began}{ended}"

    def _ends(self, row: Row, axis: Axis) -> list[Mark]:
        """When a membership began and ended."""
        joined_at, ended_at = row["joined_at"], row["ended_at"]
        marks = []
        if joined_at is not None and joined_at in axis:
            marks.append(Mark(axis.x(epoch_ms(joined_at)), families.JOINED.name, f"joined {self._time(joined_at)}"))
        if ended_at is not None and ended_at in axis:
            look = families.of_end(row["end_kind"])
            marks.append(Mark(axis.x(epoch_ms(ended_at)), look.name, f"{row['end_kind']} {self._time(ended_at)}"))
        return marks


def _silence(row: Row) -> tuple[int, int, str] | None:
    """When a finding's client went silent, for how long, both in ms, and in which way."""
    details, at_ms = row["details"], epoch_ms(row["occurred_at"])
    if (gap_ms := details.get("poll_gap_ms")) and (limit_ms := details.get("max_poll_interval_ms")):
        return at_ms - limit_ms, gap_ms, "no poll() for about"  # the client leaves as soon as the interval is over
    gap_ms = details.get("silent_ms")
    return (at_ms - gap_ms, gap_ms, "silent for") if gap_ms else None


def culprit(row: Row) -> str:
    """Who is to blame for a rebalance: a broker or a client."""
    if row["culprit_broker"]:
        return broker_name(printable(row["culprit_broker"], 30))
    instance_id = row["instance_id"] if row["culprit_member_id"] == row["member_id"] else None
    return who(row["culprit_client_id"], row["culprit_client_host"], row["culprit_member_id"], instance_id)


def legend_of(pictures: Collection[Picture]) -> list[families.Look]:
    """What the legend of these pictures explains."""
    seen = {look for picture in pictures for look in picture.looks}
    return [look for look in families.LEGEND if look.name in seen]
