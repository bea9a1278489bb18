"""What rebalances cost in records, and what is wrong with committed offsets: each group noted which records it processed."""

import json

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def reread(told, cluster: str, **values: object) -> dict[str, tuple]:
    """How many records were read twice, by partition."""
    rows = told.rows("rebalance_offsets", cluster, **values)
    assert len({(row["partition"], row["generation"]) for row in rows}) == len(rows)
    return {row["partition"]: (row["reread_min"], row["reread_max"]) for row in rows}


def findings(told, cluster: str) -> list[tuple[str, str]]:
    return [(row["code"], row["message"]) for row in told.rows("findings", cluster)]


def test_a_member_that_fails_on_a_record_and_goes_back_to_it_has_not_stopped_to_commit(told):
    ((code, message),) = findings(told, "poison-loop-in")
    assert code == "PARTITION_NOT_READ"
    assert message.startswith("Nobody reads orders-enrich-1: its committed offset has been 76 for")


def test_a_member_that_commits_each_record_has_read_little_more(told):
    """25 records came in each partition until it was read again."""
    assert all(0 == least <= most <= 25 for least, most in reread(told, "commit-per-record-in", generation=2).values())


def test_a_partition_that_pauses_in_a_fetch_session_was_read_on(told):
    assert reread(told, "pause-in-session-in", generation=2) == {"etl-2": (24, 27), "etl-3": (24, 27)}, "26; it died with the last answer"


def test_what_a_killed_client_had_fetched_it_may_not_have_processed(told):
    """It takes 60 ms for a record. 29, 30 and 33 were read twice; it had asked for records from the 29th, 30th and 36th on."""
    found = {"checkout-0": (26, 33), "checkout-1": (27, 34), "checkout-2": (31, 42)}
    assert reread(told, "outage-without-cost-in", generation=3) == found


def test_an_owner_reads_on_until_it_hears_of_the_rebalance(told):
    assert reread(told, "zombie-kept-partition-in", generation=3)["stock-1"] == (0, 6)


def test_a_partition_is_handed_over_once(told):
    assert reread(told, "one-hand-over-twice-in", generation=5).keys() == {"search-index-0", "search-index-2"}
    assert reread(told, "one-hand-over-twice-in", generation=6).keys() == {"search-index-4", "search-index-5"}


def test_a_partition_that_was_kept_belongs_to_the_rebalance_in_which_its_owner_dies(told):
    assert reread(told, "dies-before-first-commit-in", generation=3).keys() == {"quotes-2"}
    found = reread(told, "dies-before-first-commit-in", generation=4)
    assert {name: least <= read <= most for (name, (least, most)), read in zip(sorted(found.items()), (20, 19), strict=True)} == {
        "quotes-0": True, "quotes-1": True,
    }  # fmt: skip


def test_offsets_are_no_records_where_each_record_is_a_transaction(told):
    """9 records of audit-in-1 were read twice, and 44 came until it was read again; 20 were when its offset had been set back by 40."""
    (row,) = told.rows("rebalance_offsets", "transaction-markers-in", partition="audit-in-1", gaps=True, generation=2)
    assert (row["reread_min"], row["reread_max"], row["lag_added"]) == (0, 26, 87)
    (rewound,) = (message for code, message in findings(told, "transaction-markers-in") if code == "OFFSET_REWOUND")
    assert "up to 40 records are read again" in rewound


def test_who_comes_into_an_empty_group_ends_the_time_in_which_nobody_read(told):
    rows = told.rows("rebalance_offsets", "outage-without-cost-in", generation=3)
    assert all(24_450 <= row["unread_ms"] <= 25_500 for row in rows), "killed at 12:02:11.57; their last requests came up to 0.7 s before"


def test_records_that_retention_deleted_are_not_offsets_that_were_lost(told):
    ((code, message),) = findings(told, "deleted-records-in")
    assert code == "OFFSET_RESET"
    assert "asked for offset 177 of clicks-0, which its log does not have (OFFSET_OUT_OF_RANGE)" in message
    (row,) = told.rows("findings", "deleted-records-in")
    assert json.loads(row["details"])["skipped_max"] == 101
    assert row["advice"].startswith("Retention deleted records before they were read")
    assert {row["partition"]: abs(row["unread_ms"] - 16_250) < 500 for row in told.rows("rebalance_offsets", "deleted-records-in")} == {
        "clicks-0": True, "clicks-1": True,
    }  # fmt: skip


def test_a_client_whose_offset_was_deleted_began_where_no_line_shows(told):
    """It read 147 records of loyalty-1 again."""
    assert ("OFFSETS_EXPIRED", "loyalty-1") in {
        (row["code"], json.loads(row["details"])["partition"]) for row in told.rows("findings", "offset-deleted-records-in")
    }
    assert reread(told, "offset-deleted-records-in", generation=3)["loyalty-1"] == (None, None)
