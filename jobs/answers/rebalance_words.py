"""What a rebalance is called, and whom it is blamed on, wherever its row is shown: in the report, by `watch`, on the pages."""

from __future__ import annotations

from coordinator_model.diagnosis.titles import rebalance_title
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
    """A rebalance for a page: what it is `called`, whom it is blamed on (`by`), both in words (`title`), and what it waits for (`note`)."""
    blamed = culprit_of(row, host=False, member=False)
    title = rebalance_title(row["blamed"], printable(row["group_id"], 60), None if blamed == "-" else blamed)
    words = {"called": row["blamed"], "by": culprit_of(row), "title": title}
    return row | words | {"note": waits_note(row) if row["waits_for"] else ""}
