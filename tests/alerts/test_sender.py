"""Alerts to a real server that fails, hangs, goes away and comes back: everything arrives, once."""

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from prometheus_client import generate_latest

from jobs.alerts import sender as sender_module
from jobs.alerts.finding import Finding
from jobs.alerts.sender import alerting
from jobs.answers.duckdb_views import QuestionReader
from jobs.common.alert_settings import AlertSettings, ReceiverSettings
from jobs.common.errors import UserError
from jobs.common.settings import Settings
from jobs.lakehouse import maintain
from jobs.lakehouse.folder import Lakehouse, check_layout
from tests.alerts.webhooks import QUICK, SECRET, finding, found, hook, now_ms, secret_file
from tests.effort import long
from tests.health.metrics_text import read_metrics
from tests.lakehouse.rows import empty_lakehouse, line, new_lakehouse, open_rebalance, write
from tests.waiting import PATIENCE_SECONDS, wait_until

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[2]


@pytest.fixture
def received():
    with hook() as server:
        yield server


@pytest.fixture
def lake(tmp_path):
    folder = empty_lakehouse(tmp_path / "lake")
    (folder / "_checkpoints").mkdir()
    return folder


@pytest.fixture
def said():
    return []


@contextmanager
def sending(lake, hook, said, *, pauses=QUICK, max_age_ms=3_600_000, **values):
    file = secret_file(lake.parent, hook.url)
    receiver = ReceiverSettings(**({"name": "oncall", "format": "json", "url_file": str(file)} | values))
    settings = AlertSettings(receivers=(receiver,), max_age_ms=max_age_ms)
    with alerting(Lakehouse(lake), settings, said.append, pauses) as alerts:
        yield alerts
    assert SECRET.split("/")[2] not in "".join(said)


def groups(findings):
    return [finding["group"] for finding in findings]


def metrics(alerts):
    return read_metrics(generate_latest(alerts))


def test_only_what_is_found_after_the_first_start_is_posted(lake, received, said):
    found(lake, finding("before"))
    with sending(lake, received, said):
        found(lake, finding("after"))
        wait_until(lambda: received.taken)
    found(lake, finding("while nobody ran"))
    with sending(lake, received, said):
        wait_until(lambda: len(received.taken), 2)
    assert groups(received.findings()) == ["after", "while nobody ran"]
    assert said == []


def test_a_finding_at_the_end_of_logs_that_grow_is_posted_once(lake, received, said):
    certain, uncertain = finding("certain"), finding("uncertain") | {"at_end": True}
    for rows in ([certain, uncertain], [uncertain, finding("new")], [uncertain | {"at_end": False}, finding("last")]):
        with sending(lake, received, said):
            found(lake, *rows)
    assert groups(received.findings()) == ["certain", "uncertain", "new", "last"]


def test_a_new_lakehouse_has_only_new_findings(tmp_path, received, said):
    lake = tmp_path / "lake"
    lake.mkdir()
    with sending(lake, received, said):
        pass
    empty_lakehouse(lake)
    found(lake, finding("first"))
    with sending(lake, received, said):
        wait_until(lambda: received.taken)
    assert groups(received.findings()) == ["first"]


def test_a_receiver_gets_what_it_asks_for(lake, received, said):
    with sending(lake, received, said, severity="WARNING", clusters=("c", "d"), groups=("pay*", "orders"), codes=("[!M]*",)) as alerts:
        found(
            lake,
            finding("payments", severity="INFO"),
            finding("payments", severity="WARNING"),
            finding("orders"),
            finding("stock"),
            finding("payroll", code="MODEL_DIVERGENCE"),
        )
        wait_until(lambda: alerts.senders[0].sent, 2)
        assert metrics(alerts).value("rebalance_alerts_sent_total", receiver="oncall") == 2
    assert groups(received.findings()) == ["payments", "orders"]


def told(ago_ms, total_ms, **values):
    """A row about a rebalance that had lasted so long by then."""
    return open_rebalance(**{"started_at": now_ms() - ago_ms, "ended_at": now_ms() - ago_ms + total_ms, "total_ms": total_ms} | values)


def test_an_open_rebalance_is_posted_once_it_exceeds_its_limit_and_again_when_it_has_ended(lake, received, said):
    with sending(lake, received, said) as alerts:
        began = told(60_000, 6_000, limit_ms=30_000)
        found(lake, began)
        over = began | {"ended_at": began["started_at"] + 30_000, "total_ms": 30_000}
        found(lake, over | {"alarm": "RAISED"})
        wait_until(lambda: received.taken)
        found(lake, over | {"awaited": []}, finding("other"))
        found(lake, over | {"outcome": "ENDED", "alarm": "CLEARED"})
        wait_until(lambda: len(received.findings()), 3)
        wait_until(lambda: metrics(alerts).value("rebalance_alerts_sent_total", receiver="oncall"), 3)
    posted = [one for one in received.findings() if one["code"] == "OPEN_REBALANCE"]
    assert [(one["group"], one["severity"], one["open"]) for one in posted] == [("payments", "ERROR", True), ("payments", "ERROR", False)]
    assert "longer than its rebalance timeout of 30.0 s" in posted[0]["message"]
    assert posted[1]["message"].endswith("and lasted longer than 30.0 s has ended.")
    (row,) = QuestionReader(lake).ask("SELECT * FROM rebalances_provisional WHERE alarm = 'RAISED'", {}).by_name()
    assert {one["id"] for one in posted} == {Finding.of(row).id}
    assert posted[0]["key"] != posted[1]["key"]
    assert said == []


def test_what_happened_long_before_it_was_found_is_left_out_and_counted(lake, received, said):
    with sending(lake, received, said, max_age_ms=60_000) as alerts:
        found(lake, finding("old", occurred_at=now_ms() - 120_000), finding("new"))
        wait_until(lambda: alerts.senders[0].sent, 1)
        assert metrics(alerts).value("rebalance_alerts_left_out_total", receiver="oncall", reason="old") == 1
    assert groups(received.findings()) == ["new"]
    assert said == ["alerts: 1 finding not sent to oncall: found more than 1 min after it happened (max_age_ms)"]


def test_what_comes_together_is_one_message_and_a_flood_is_a_few(lake, received, said, monkeypatch):
    monkeypatch.setattr(sender_module, "MOST_FINDINGS", 50)
    with sending(lake, received, said):
        for first in range(0, 400, 40):
            found(lake, *(finding(f"g{number}") for number in range(first, first + 40)))
        wait_until(lambda: len(received.findings()), 400)
    assert groups(received.findings()) == [f"g{number}" for number in range(400)]
    assert len(received.taken) <= 12


def test_what_waits_is_counted_but_not_kept(lake, received, said, monkeypatch):
    monkeypatch.setattr(sender_module, "MOST_FINDINGS", 10)
    received.answers = [(503,)] * 1_000
    with sending(lake, received, said) as alerts:
        (sender,) = alerts.senders
        for first in range(0, 120, 30):
            found(lake, *(finding(f"g{number}") for number in range(first, first + 30)))
        wait_until(lambda: sender.waiting, 120)
        assert metrics(alerts).value("rebalance_alerts_waiting", receiver="oncall") == 120
        received.answers = []
        wait_until(lambda: sender.sent, 120)
        assert sender.waiting == 0
    assert groups(received.findings()) == [f"g{number}" for number in range(120)]


@pytest.mark.parametrize(
    "answer", [long((500,)), (503,), (404,), long((401,)), (302, {"Location": "/elsewhere"}), (429, {"Retry-After": "0"})]
)
def test_a_receiver_that_fails_gets_the_same_message_until_it_takes_it(lake, received, said, answer):
    received.answers = [answer] * 4
    with sending(lake, received, said) as alerts:
        found(lake, finding())
        wait_until(lambda: received.taken)
        (sender,) = alerts.senders
        wait_until(lambda: sender.sent, 1)
        assert metrics(alerts).value("rebalance_alerts_failed_total", receiver="oncall", reason=str(answer[0])) == 4
    assert len(received.got) == 5
    assert len({headers["Idempotency-Key"] for _, headers, _ in received.got}) == 1
    assert len(said) == 2
    assert str(answer[0]) in said[0]
    assert said[1] == "alerts: oncall takes alerts again"


def test_retry_after_is_heeded(lake, received, said):
    received.answers = [(429, {"Retry-After": "3000"})]
    with sending(lake, received, said) as alerts:
        (sender,) = alerts.senders
        found(lake, finding())
        wait_until(lambda: sender.failed["429"])
        assert sender._not_before - sender_module.time.monotonic() > 2_000
    assert received.taken == []
    assert said[-1] == "alerts: 1 finding not sent to oncall yet: the next run sends what waits"


def test_a_receiver_that_hangs_keeps_nobody_waiting_but_itself(lake, received, said):
    received.answers = [(0,), (0,)]
    with hook() as other:
        file = secret_file(lake.parent, received.url), secret_file(lake.parent, other.url, "other.url")
        receivers = tuple(ReceiverSettings(name, "json", str(path), timeout_ms=200) for name, path in zip(("a", "b"), file, strict=True))
        with alerting(Lakehouse(lake), AlertSettings(receivers=receivers), said.append, QUICK) as alerts:
            found(lake, finding())
            wait_until(lambda: other.taken)
            wait_until(lambda: received.taken)
            assert metrics(alerts).value("rebalance_alerts_failed_total", receiver="a", reason="timeout") == 2
    assert "alerts to a: no answer in time; they are kept and sent later" in said


def test_a_receiver_that_was_away_gets_all_when_it_is_back(lake, said):
    with hook() as gone:
        port = gone.port
    with sending(lake, gone, said) as alerts:
        (sender,) = alerts.senders
        for number in range(5):
            found(lake, finding(f"g{number}"))
        wait_until(lambda: sender.failed["connection"] and sender.waiting == 5)
        with hook(port) as back:
            wait_until(lambda: sender.sent, 5)
            assert groups(back.findings()) == [f"g{number}" for number in range(5)]
    assert said == ["alerts to oncall: Connection refused; they are kept and sent later", "alerts: oncall takes alerts again"]


def test_a_finding_that_a_receiver_cannot_read_does_not_stop_the_others(lake, received, said):
    received.judge = lambda content: (400, {}, b"invalid_payload") if "g3" in groups(content["findings"]) else (200,)
    with sending(lake, received, said) as alerts:
        (sender,) = alerts.senders
        found(lake, *(finding(f"g{number}") for number in range(8)))
        wait_until(lambda: sender.sent == 7 and not sender.waiting)
        assert metrics(alerts).value("rebalance_alerts_left_out_total", receiver="oncall", reason="refused") == 1
    assert groups(received.findings()) == [f"g{number}" for number in range(8) if number != 3]
    assert said[0] == "alerts to oncall: HTTP 400 Bad Request: invalid_payload; they are kept and sent later"
    assert len([line for line in said if line.endswith("3 times: left out")]) == 1


def test_two_processes_do_not_send_to_one_receiver(lake, received, said):
    with sending(lake, received, said), pytest.raises(UserError, match="another process sends alerts"), sending(lake, received, said):
        pass


def test_a_chat_hears_which_broker_was_lost_not_which_one_stood_in(lake, received, said):
    moves = [finding(f"g{n}", code="COORDINATOR_MOVED", details='{"from_broker":"b3","to_broker":"b1"}') for n in range(3)]
    back = finding("g0", code="COORDINATOR_MOVED", details='{"from_broker":"b1","to_broker":"b3"}', occurred_at=now_ms() + 1_000)
    with sending(lake, received, said):
        pass
    found(lake, *moves, back)
    with sending(lake, received, said, format="slack"):
        wait_until(lambda: received.taken)
    (part,) = received.taken[0]["attachments"]
    assert part["title"].startswith("At least 3 groups moved from b3 to b1, and 1 of them had moved back by ")
    assert part["title"].endswith(" UTC (b3 of c)  COORDINATOR_MOVED")


def crashed(lake, *groups, ago_ms):
    """The log of one broker, which served these groups and finds out that it had crashed."""
    at = now_ms() - ago_ms
    theirs = [line(group, occurred_at=at - 1, source="coordinator") for group in groups]
    write(lake, *theirs, line(None, occurred_at=at, kind="BROKER_UNCLEAN", source="broker"), app=groups[0])


def test_a_crash_of_which_no_finding_tells_is_posted_once(lake, received, said):
    crashed(lake, "before", "too", ago_ms=900_000)
    for groups in (["a", "b"], []):
        with sending(lake, received, said, format="slack"):
            if groups:
                crashed(lake, *groups, ago_ms=200_000)
    crashed(lake, "old", "ancient", ago_ms=7_200_000)
    with sending(lake, received, said, format="slack") as alerts:
        wait_until(lambda: alerts.senders[0].left_out["old"])
    (message,) = received.taken
    (part,) = message["attachments"]
    (row,) = QuestionReader(lake).ask("SELECT * FROM incidents WHERE list_contains(groups, 'a')", {}).by_name()
    told = "b1 crashed or was killed (b1 of c)  BROKER_CRASHED"
    assert (part["title"], part["footer"]) == (told, f"rebalance evidence {row['id']}")
    assert part["text"].startswith(row["message"])


def test_a_crash_is_not_posted_before_its_groups_tell_of_it(lake, received, said):
    with sending(lake, received, said, format="slack", severity="WARNING"):
        crashed(lake, "a", ago_ms=30_000)
    assert not received.taken
    found(lake, finding("b", code="COORDINATOR_MOVED", details='{"from_broker":"b1","to_broker":"b2"}', occurred_at=now_ms() - 29_000))
    with sending(lake, received, said, format="slack", severity="WARNING"):
        wait_until(lambda: received.taken)
    ((part,),) = (message["attachments"] for message in received.taken)
    assert part["title"] == "b1 crashed or was killed: at least 1 group moved (b1 of c)  COORDINATOR_MOVED"
    assert part["text"].startswith("b1 crashed or was killed: no clean shutdown. At least 1 group moved from b1 to b2.")
    assert "*What to change:* Read the end of the log of b1" in part["text"]


def test_settings_may_change_while_a_message_waits(lake, received, said):
    received.answers = [(503,)] * 1_000
    with sending(lake, received, said, severity="WARNING", pauses=replace(QUICK, farewell=0.2)) as alerts:
        (sender,) = alerts.senders
        found(lake, finding("warned", severity="WARNING"))
        found(lake, told(60_000, 40_000, limit_ms=30_000, alarm="RAISED"))
        wait_until(lambda: sender.failed["503"] and sender.waiting == 2)
    assert len([line for line in said if "kept and sent later" in line]) == 1
    wait_until(lambda: [thread for thread in threading.enumerate() if thread.name == "alerts-oncall"], [])  # its last post may take longer
    received.answers = []
    with sending(lake, received, said, codes=("[!O]*",)):
        found(lake, finding("failed"))
        wait_until(lambda: received.taken)
    assert groups(received.findings()) == ["failed"]


def test_what_was_deleted_is_told_and_the_rest_is_sent(lake, received, said):
    with sending(lake, received, said):
        pass
    found(lake, finding("deleted"))
    (data,) = (lake / "findings").glob("*.parquet")
    found(lake, finding("kept"))
    data.unlink()
    with sending(lake, received, said):
        wait_until(lambda: received.taken)
    assert groups(received.findings()) == ["kept"]
    assert said == ["alerts: findings for oncall were deleted from the table before they were sent"]


def test_what_was_not_sent_outlives_maintenance(lake, received, said):
    with sending(lake, received, said):
        pass
    for number in range(12):
        found(lake, finding(f"g{number}"))
    policy = maintain.Policy(grace=timedelta(0))
    done = {table.table: table for table in maintain.maintain(lake, policy, now=datetime.now(timezone.utc))}
    assert done["findings"].files == (12, 12)
    with sending(lake, received, said):
        wait_until(lambda: received.taken)
    assert groups(received.findings()) == [f"g{number}" for number in range(12)]


def test_a_lakehouse_that_replay_made_tells_nothing_twice(lake, received, said):
    start = now_ms()
    told, new = finding("told", occurred_at=start), finding("new", occurred_at=start + 1)
    with sending(lake, received, said):
        found(lake, told)
        wait_until(lambda: received.taken)
    lake.rename(lake.with_name("before"))
    new_lakehouse(lake)
    (lake.with_name("before") / "_checkpoints").rename(lake / "_checkpoints")
    found(lake, told, new)
    with sending(lake, received, said):
        wait_until(lambda: len(received.taken), 2)
    assert groups(received.findings()) == ["told", "new"]


def test_a_process_killed_between_the_post_and_the_note_repeats_it_under_the_same_keys(lake, received):
    url_file = secret_file(lake.parent, received.url)
    check_layout(Lakehouse(lake), Settings())
    command = [sys.executable, "-m", "jobs.cli", "alert", "--lakehouse", str(lake), "--alert", f"json={url_file}"]
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    place = lake / "_checkpoints" / "alerts" / "json.json"

    def started():
        return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    first = started()
    received.before_answer = lambda: first.send_signal(signal.SIGKILL)
    try:
        wait_until(lambda: place.exists() or first.poll() is not None)
        found(lake, finding("one"), finding("two"))
        assert first.wait(PATIENCE_SECONDS) == -signal.SIGKILL, first.communicate()
    finally:
        first.kill()
        first.communicate()
    assert json.loads(place.read_text())["sending"] is not None
    received.before_answer = lambda: None
    received.taken.clear()
    found(lake, finding("three"))
    second = started()
    try:
        wait_until(lambda: len(received.findings()) == 3 or second.poll() is not None)
        second.send_signal(signal.SIGTERM)
        out, err = second.communicate(timeout=PATIENCE_SECONDS)
    finally:
        second.kill()
    assert second.returncode == 0, err
    (killed, repeated, rest) = received.got
    assert killed[1]["Idempotency-Key"] == repeated[1]["Idempotency-Key"]
    assert killed[2] == repeated[2]
    assert groups(rest[2]["findings"]) == ["three"]
    assert SECRET not in out + err
