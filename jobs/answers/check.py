"""Checks the tables of a lakehouse against the laws that they keep (jobs/laws), and its evidence against the logs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from jobs.answers.duckdb_views import QuestionReader
from jobs.answers.evidence import files_of, places_of
from jobs.answers.report import read_report
from jobs.common.places import own_query
from jobs.common.stores import Place
from jobs.common.times import epoch_ms
from jobs.laws.group_rows import LINES, REPORTED, SIGNS, TABLES, Breach, Row
from jobs.laws.laws import LAWS, breaches
from schemas.names import FINDINGS, REBALANCE_OFFSETS, REBALANCE_ROUNDS, REBALANCES, REBALANCES_PROVISIONAL

EVIDENCE_NAMES_ITS_ROW: Final = "EVIDENCE_NAMES_ITS_ROW"
ALL_LAWS: Final = len(LAWS) + 1
"""How many there are, with the one that opens the logs."""

_IDS: Final = ("group_id", "member_id", "instance_id", "client_id", "leader_id", "slowest_member_id")
_LISTS: Final = ("joined", "left")


@dataclass(frozen=True)
class Checked:
    """What was checked, and what is wrong."""

    rows: dict[str, int]  # by table
    laws: int
    breaches: list[Breach]
    lines: int = 0  # that the evidence names
    lines_gone: int = 0  # whose file is gone, or holds another line at that place


def check(folder: Place, inputs: Sequence[Path]) -> Checked:
    """Checks a lakehouse. `inputs`: where its logs are, or were; without any, the lines are not opened.

    LakehouseError: there is no lakehouse.
    """
    reader = QuestionReader(folder)
    final = {REBALANCES: " WHERE waits_for IS NULL"}
    tables = {name: _rows(reader, f"SELECT * FROM {name}_with_id{final.get(name, '')}") for name in TABLES}  # noqa: S608 - from schemas
    others = (REBALANCES_PROVISIONAL, REBALANCE_ROUNDS, REBALANCE_OFFSETS)
    beside = {name: _rows(reader, f"SELECT * FROM {name}") for name in others}  # noqa: S608 - likewise
    beside |= {LINES: _rows(reader, own_query("check_lines")), SIGNS: _rows(reader, own_query("check_signs"))}
    wrong = breaches({**tables, **beside, REPORTED: read_report(reader, limit=1).groups})
    rows = {name: len(tables[name]) for name in TABLES}
    if not inputs:
        return Checked(rows, len(LAWS), wrong)
    refs = {(ref["origin"], int(ref["position"])) for name in TABLES for row in tables[name] for ref in json.loads(row["evidence"])}
    texts = {place: text for place, (_, text) in places_of(reader, refs, files_of(inputs)).items()}
    nameless = {(origin, int(position)) for origin, position in reader.ask(own_query("check_places"), {}).rows}
    for name in (REBALANCES, FINDINGS):
        for row in tables[name]:
            wrong += _strangers(name, row, texts, nameless)
    return Checked(rows, ALL_LAWS, wrong, len(refs), len(refs - texts.keys()))


def _rows(reader: QuestionReader, text: str) -> list[dict[str, Any]]:
    rows = reader.found(text, {})
    return [{name: epoch_ms(value) if isinstance(value, datetime) else value for name, value in row.items()} for row in rows]


def _strangers(table: str, row: Row, texts: Mapping[tuple[str, int], bytes], nameless: set[tuple[str, int]]) -> list[Breach]:
    """The lines of a row's evidence that name nothing the row is about."""
    names = [str(row[name]) for name in _IDS if row.get(name)]
    names += [member_id for name in _LISTS for member_id in row.get(name) or ()]
    spelt = {form for name in names for form in (name.encode(), json.dumps(name)[1:-1].encode())}
    at_ms = row["occurred_at"] if table == FINDINGS else row["started_at"]
    wrong = []
    for ref in json.loads(row["evidence"]):
        place = (ref["origin"], int(ref["position"]))
        text = texts.get(place)
        if text is not None and place not in nameless and not any(form in text for form in spelt):
            words = f"{ref['origin']}:{ref['position']} names neither the group nor a client of the row"
            wrong.append(Breach(EVIDENCE_NAMES_ITS_ROW, row["cluster"], row["group_id"], at_ms, words, row["id"]))
    return wrong
