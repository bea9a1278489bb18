"""All laws, and what breaks them. The name of a law is that of its function."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from jobs.laws import evidence_laws, finding_laws, membership_laws, offset_laws, rebalance_laws
from jobs.laws.group_rows import Breach, Breaches, GroupRows, Row, by_group

Law = Callable[[GroupRows], Breaches]

LAWS: Final[tuple[Law, ...]] = (*rebalance_laws.LAWS, *offset_laws.LAWS, *membership_laws.LAWS, *finding_laws.LAWS, *evidence_laws.LAWS)


def breaches(tables: Mapping[str, Iterable[Row]], laws: Sequence[Law] = LAWS) -> list[Breach]:
    """What breaks a law in rows of the tables (names: schemas/names.py), group by group."""
    return [group.breach(law.__name__.upper(), *found) for group in by_group(tables) for law in laws for found in law(group)]
