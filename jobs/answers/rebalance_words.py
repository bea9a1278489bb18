"""What a rebalance is called, and whom it is blamed on, wherever its row is shown: in the report, by `watch`, on the pages."""

from __future__ import annotations

from jobs.answers.duckdb_views import Row
from jobs.answers.incidents.outages import broker_name
from jobs.answers.open_rebalances import waits_note
from jobs.common.text import printable, who


def culprit_of(row: Row, *, host: bool = True, member: bool = True) -> str:
    """Whom it is blamed on: the broker, or the client with its host and which of its members. `-`: no line tells."""
    if row["culprit_broker"]:
        return broker_name(printable(row["culprit_broker"], 30))
    static = row["instance_id"] if row["culprit_member_id"] == row["member_id"] else None
    place, which = row["culprit_client_host"] if host else None, row["culprit_member_id"] if member else None
    return who(row["culprit_client_id"], place, which, static)


def with_words(row: Row) -> Row:
    """A rebalance for a page: what it is `called`, whom it is blamed on (`by`), both in one (`title`), and what it waits for (`note`)."""
    called, by = row["blamed"], culprit_of(row)
    title = called if by == "-" else f"{called} by {by}"
    return row | {"called": called, "by": by, "title": title, "note": waits_note(row) if row["waits_for"] else ""}
