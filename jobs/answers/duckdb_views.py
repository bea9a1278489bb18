"""The views and macros of sql/ in DuckDB, over the tables of a lakehouse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import duckdb

from jobs.answers import questions
from jobs.common.errors import LakehouseError, MissingTableError
from jobs.common.places import own_query
from jobs.common.stores import Place
from jobs.lakehouse.folder import replay_advice
from jobs.lakehouse.reader import TableReader, with_zone, without_zone
from schemas.names import READABLE

_FEW_ROWS: Final = frozenset({"rebalances_waiting", "rebalances_open", "blamed_rebalances"})
"""Views whose rows are found once and kept: others name them, each query plans them anew, and many rows were left out to find them."""

Row = dict[str, Any]
"""A row by column name."""
Key = tuple[str, str]
"""Cluster and group."""


def key_of(row: Row) -> Key:
    """The group that a row is about."""
    return row["cluster"], row["group_id"]


@dataclass(frozen=True)
class Answer:
    """Result rows under column names. Times are aware datetimes in UTC."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]

    def by_name(self) -> list[Row]:
        """Rows as dictionaries."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class QuestionReader(TableReader):
    """Answers queries that name tables and views of sql/. It opens a table when the first query names it.

    `keeps`: it finds the rows of each view once, for many queries over tables that do not grow meanwhile. `alone`: see TableReader.
    """

    def __init__(self, folder: Place, *, keeps: bool = False, alone: bool = False) -> None:
        super().__init__(folder, tables=(), alone=alone, keeps=keeps)
        self._keeps = keeps or self.small
        self.newest: dict[str | None, datetime] = {}  # the newest time, by cluster: nearly every question asks for it
        self._views: set[str] = set()
        self._prepared: set[str] = set()  # texts of queries
        self.connection.execute(own_query("macros", "duckdb"))

    def ask(self, text: str, values: Mapping[str, Any]) -> Answer:
        """Result rows of a query with parameters as $name. LakehouseError: the lakehouse lacks a table or a column.

        `values`: also such as the query does not name, which DuckDB would not take.
        """
        try:
            self.prepare(text)
            cursor = self.execute(text, {name: without_zone(value) for name, value in values.items() if f"${name}" in text})
        except duckdb.BinderException as error:
            reason = str(error).splitlines()[0]
            raise LakehouseError(f"the tables of {self.folder} are of another version: {replay_advice(self.folder)} ({reason})") from None
        described = cursor.description or ()
        rows = cursor.fetchall()
        if "TIMESTAMP" in [str(column[1]) for column in described]:  # a call for each of a million values takes 0.3 s
            rows = [tuple(map(with_zone, row)) for row in rows]
        return Answer(tuple(column[0] for column in described), rows)

    def found(self, text: str, values: Mapping[str, Any]) -> list[Row]:
        """Result rows by column name; none where the lakehouse lacks a table."""
        try:
            return self.ask(text, values).by_name()
        except MissingTableError:
            return []

    def prepare(self, text: str) -> None:
        """Makes the views of sql/ and the tables that a query names. MissingTableError: there is no such table."""
        if text in self._prepared:
            return
        views = questions.views()
        named = questions.views_of(text, views)
        for table in sorted(questions.tables_of(" ".join([text, *(views[name] for name in named)]), READABLE) - set(self.tables)):
            if not self.add_view(table):
                raise MissingTableError(f"no table {table} in {self.folder}: what was ingested there has not been tracked yet")
            self.tables += (table,)
        for name in named:
            if name not in self._views:
                self.connection.execute(f"CREATE TEMP {'TABLE' if self._keeps or name in _FEW_ROWS else 'VIEW'} {name} AS {views[name]}")
                self._views.add(name)
        self._prepared.add(text)
