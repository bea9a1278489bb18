"""All laws, and what breaks them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from jobs.laws import evidence_laws, finding_laws, membership_laws, offset_laws, rebalance_laws, round_laws
from jobs.laws.group_rows import Breach, GroupRows, Row, by_group

Law = Callable[[GroupRows], Iterator[Breach]]

LAWS: Final[tuple[Law, ...]] = (
    *rebalance_laws.LAWS,
    *round_laws.LAWS,
    *offset_laws.LAWS,
    *membership_laws.LAWS,
    *finding_laws.LAWS,
    *evidence_laws.LAWS,
)


def breaches(tables: Mapping[str, Iterable[Row]]) -> list[Breach]:
    """What breaks a law in rows of the tables (names: schemas/names.py), group by group."""
    return [breach for group in by_group(tables) for law in LAWS for breach in law(group)]
