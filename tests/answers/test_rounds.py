"""Rebalances of the consumer protocol, round by round and in words: in `rebalance evidence` and `rebalance ask why`, no JVM."""

import json
from datetime import datetime, timedelta, timezone

import pytest

from jobs.answers.rebalance_words import last_rounds, rounds_in_words
from jobs.cli import entry
from jobs.common.times import EPOCH
from jobs.lakehouse import folder as lakehouses
from tests.answers.asking import asked
from tests.lakehouse.rows import DAY, empty_lakehouse, line, rebalance, row, write

pytestmark = pytest.mark.slow

CONSUMER = {"group_protocol": "consumer", "generation": 6, "first_epoch": 5, "rounds": 2, "cause": "MEMBER_JOINED", "client_id": "app-3"}
TOLD = {"member_id": "AAAAAAAAAAAAAAAAAAAAAA", "client_id": "app-1", "partitions": 2, "told_at": DAY + 21_000, "ended_at": DAY + 22_500}
DATE = (EPOCH + timedelta(milliseconds=DAY)).date().isoformat()


def one_round(epoch, at_ms, **values):
    known = {
        "group_id": "payments",
        "generation": 6,
        "epoch": epoch,
        "started_at": DAY + at_ms,
        "superseded": epoch == 5,
        "revocations": "[]",
    }
    return row("rebalance_rounds", **known | values)


def two_rounds():
    return (
        one_round(5, 20_000, cause="MEMBER_JOINED", client_id="app-3", revocations=json.dumps([{**TOLD, "end": "ACKNOWLEDGED"}])),
        one_round(6, 23_000, cause="METADATA_CHANGED", reconciled_at=DAY + 26_000),
    )


def lakehouse(folder, *more, **values):
    lake = empty_lakehouse(folder / "lake")
    write(lake, line(), line(at=90_000), rebalance(start=20_000, total=6_000, **CONSUMER | values), *more)
    logs = folder / "logs" / "c" / "b1"
    logs.mkdir(parents=True)
    (logs / "server.log").write_text("")
    (lake / "_checkpoints").mkdir()
    lakehouses.remember_input(lakehouses.Lakehouse(lake), folder / "logs")
    return lake


@pytest.mark.parametrize("command", ["ask", "evidence"])
def test_rounds_are_told_with_the_rebalance(tmp_path, capsys, command):
    lake = lakehouse(tmp_path, *two_rounds())
    arguments = ["ask", "why"] if command == "ask" else ["evidence", asked(lake, "rebalances")[0]["id"]]
    assert entry.main([*arguments, "--lakehouse", str(lake)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert f"Epoch 5 at {DATE} 00:00:20.000: app-3 joined; app-1 " in shown
    assert f"was told to give up 2 partitions at {DATE} 00:00:21.000, it had after 1.5 s." in shown
    assert "Epoch 6 followed before all members had the new assignment." in shown
    assert f"topics or partitions of the subscription changed. All members had the new assignment at {DATE} 00:00:26.000." in shown


def test_rounds_in_json_are_those_of_the_table(tmp_path, capsys):
    lake = lakehouse(tmp_path, *two_rounds())
    assert entry.main(["evidence", asked(lake, "rebalances")[0]["id"], "--lakehouse", str(lake), "--format", "json"]) == 0
    (shown,) = json.loads(capsys.readouterr().out)
    assert [(one["epoch"], one["cause"]) for one in shown["rounds"]] == [(5, "MEMBER_JOINED"), (6, "METADATA_CHANGED")]
    assert shown["rounds"][0]["revocations"] == [{**TOLD, "end": "ACKNOWLEDGED"}]


def test_rounds_of_another_rebalance_of_the_same_number_are_not_told(tmp_path):
    lake = lakehouse(tmp_path, *two_rounds(), one_round(6, 60_000, cause="MEMBER_LEFT", client_id="later"))
    (row_id,) = [found["id"] for found in asked(lake, "rebalances")]
    ((_, found),) = last_rounds(lake, [row_id])
    assert [one["epoch"] for one in found] == [5, 6]


def test_classic_rebalances_have_none(tmp_path):
    lake = lakehouse(tmp_path, *two_rounds(), group_protocol="classic")
    assert last_rounds(lake, [asked(lake, "rebalances")[0]["id"]]) == []


def in_words(cause, *revocations, **values):
    at = datetime(2026, 3, 1, 0, 0, 20, tzinfo=timezone.utc)
    known = {
        "epoch": 5, "started_at": at, "cause": cause, "client_id": "app-3", "client_host": None, "member_id": None,
        "instance_id": None,
    }  # fmt: skip
    return rounds_in_words([known | {"reconciled_at": at + timedelta(seconds=6), "revocations": json.dumps(revocations)} | values])[0]


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("AWAY", "it left for a while 1.5 s later"),
        ("LEFT", "it left 1.5 s later"),
        ("SESSION_TIMEOUT", "its session ended 1.5 s later"),
        ("REBALANCE_TIMEOUT", "it had not, and was removed 1.5 s later"),
        ("UNKNOWN", "it was gone 1.5 s later"),
    ],
)
def test_how_a_member_gave_partitions_up_is_told(end, words):
    assert f", {words}. All members" in in_words("MEMBER_JOINED", {**TOLD, "end": end})


def test_who_was_never_seen_to_give_partitions_up_is_told_so():
    told_to = {**TOLD, "partitions": 1, "ended_at": None, "end": None}
    assert "was told to give up 1 partition at" in in_words("MEMBER_JOINED", told_to)
    assert ", no line shows that it did." in in_words("MEMBER_JOINED", told_to)


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("MEMBER_LEFT", "app-3 left."),
        ("SESSION_TIMEOUT", "the session of app-3 ended."),
        ("SYNC_TIMEOUT", "SYNC_TIMEOUT of app-3."),
        ("UNKNOWN", "no line shows why."),
    ],
)
def test_why_an_epoch_was_raised_is_told(cause, words):
    assert in_words(cause).startswith(f"Epoch 5 at 2026-03-01 00:00:20.000: {words}")


def test_a_changed_subscription_of_nobody_known_is_a_members():
    assert ": a member changed its subscription." in in_words("SUBSCRIPTION_CHANGED", client_id=None)


def test_a_table_of_an_older_version_has_no_revocations():
    words = "app-3 joined. All members had the new assignment at 2026-03-01 00:00:26.000."
    assert in_words("MEMBER_JOINED", revocations=None) == f"Epoch 5 at 2026-03-01 00:00:20.000: {words}"
