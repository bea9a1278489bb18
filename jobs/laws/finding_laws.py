"""Laws of the rows of `findings`: what a sentence says stands in its details, and in what the group was at that time."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from coordinator_model.diagnosis import catalogue, client_catalogue, consumer_catalogue, offset_catalogue
from jobs.laws.group_rows import Breaches, GroupRows, Row

_NUMBER: Final = re.compile(r"(?<![\w.:/@-])\d+(?:\.\d+)?(?=[ ,.;:%)]|$)(?!\.\d|:\d\d:)")
"""A number in a sentence, as opposed to one inside a name, an address, a version or a time of day."""

_DURATION: Final = re.compile(r"(?<![\w.])(?:(\d+) h(?: (\d+) min)?|(\d+) min(?: (\d+) s)?|(\d+(?:\.\d)?) s)\b")
_ROUNDED: Final = {" tenths": 0.1, " s": 1, " min": 60}  # marks a number of seconds that may be rounded, also up, by how many

_NAMES: Final = ("member_id", "client_id", "client_host", "group_id")
_TEXTS: Final = [
    value
    for module in (catalogue, client_catalogue, consumer_catalogue, offset_catalogue)
    for value in vars(module).values()
    if isinstance(value, catalogue.Text)
]
_SECOND_MS: Final = 1_000


def numbers_in_details(group: GroupRows) -> Breaches:
    """Every number in a finding's words stands in its details, or in a column of its row."""
    for row in group.findings:
        details = json.loads(row["details"])
        shown = _numbers_of(details) | _numbers_of(row["generation"])
        fixed = {n for text in _TEXTS if text.code == row["code"] for n in _NUMBER.findall(f"{text.message} {text.advice}")}
        missing = [n for n in _in_words(row, details) if n not in fixed and not _stands(n, shown)]
        if missing:
            yield row, f"{row['code']} says {', '.join(missing)}, which its details do not have"


def generation_of_its_time(group: GroupRows) -> Breaches:
    """A finding's generation is one that the group had by then."""
    for row in group.findings:
        later = [r["generation"] for r in group.rebalances if r["generation"] is not None and _made_at(r) > row["occurred_at"]]
        removed = any(t["to_state"] == "Dead" for t in group.transitions)
        if row["generation"] is not None and later and not removed and row["generation"] >= min(later):
            yield row, f"{row['code']} names generation {row['generation']}, but {min(later)} was made later"


def _made_at(rebalance: Row) -> Any:
    """When a rebalance made its generation. In the consumer protocol it begins with a new epoch."""
    if rebalance["group_protocol"] == "consumer":
        return rebalance["started_at"]
    return rebalance["joined_at"] or rebalance["ended_at"]


def told_once(group: GroupRows) -> Breaches:
    """One fact is one row."""
    seen: set[tuple[Any, ...]] = set()
    for row in group.findings:
        key = (row["occurred_at"], row["code"], row["member_id"], row["client_id"], row["message"])
        if key in seen:
            yield row, f"{row['code']} of {row['member_id'] or row['client_id'] or 'the group'} stands twice"
        seen.add(key)


LAWS: Final = (numbers_in_details, generation_of_its_time, told_once)


def _in_words(row: Row, details: dict[str, Any]) -> list[str]:
    """The numbers of a finding's sentences, without the names that stand in them."""
    words = f"{row['message']} {row['advice']}"
    names = {str(row[name]) for name in _NAMES if row.get(name)} | set(_texts_of(details))
    for name in sorted(names, key=len, reverse=True):
        words = words.replace(name, "\N{BULLET}")
    return [*_NUMBER.findall(_DURATION.sub(" ", words)), *(_in_seconds(match) for match in _DURATION.finditer(words))]


def _in_seconds(duration: re.Match[str]) -> str:
    if duration[5]:
        return f"{duration[5]} tenths"
    hours, of_hour, minutes, of_minute = (int(number or 0) for number in duration.groups()[:4])
    return f"{(hours * 60 + of_hour) * 60} min" if duration[1] else f"{minutes * 60 + of_minute} s"


def _texts_of(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value:
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from (*_texts_of(key), *_texts_of(inner))
    elif isinstance(value, list):
        for inner in value:
            yield from _texts_of(inner)


def _numbers_of(value: Any) -> set[float]:
    """All numbers of a JSON value, and the lengths of its lists."""
    if isinstance(value, bool) or value is None:
        return set()
    if isinstance(value, (int, float)):
        return {float(value)}
    if isinstance(value, (list, dict)):
        inner = value.values() if isinstance(value, dict) else value
        return {float(len(value))}.union(*map(_numbers_of, inner))
    return set()


def _stands(number: str, shown: set[float]) -> bool:
    """Whether a number stands there: as it is, as seconds of milliseconds, or as what follows from two (a difference, a share)."""
    amount, mark, unit = number.partition(" ")
    if mark:  # seconds have tenths, minutes leave the fractions of seconds out, hours the seconds
        half = _ROUNDED[mark + unit]
        least, most = ((float(amount) + more) * _SECOND_MS for more in (-half, half))
        return any(least <= value <= most for value in shown | {one - other for one in shown for other in shown})
    value = float(number)
    if value in shown or round(value * _SECOND_MS, 3) in shown:
        return True
    pairs = [(one, other) for one in shown for other in shown]
    if any(one - other in {value, value * _SECOND_MS} for one, other in pairs):
        return True
    return any(other and max(100 * one // other, 1) == value for one, other in pairs)
