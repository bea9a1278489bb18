"""What the logs of real brokers of Kafka 0.9 to 2.7 tell (tests/data/old): every line is read, times are true, nobody is blamed wrongly."""

import json
from collections import Counter
from datetime import datetime, timezone

import pyarrow as pa
import pytest

from coordinator_model import events as e
from jobs.parsing import batch
from jobs.parsing.inspection import recognise
from jobs.parsing.request_text import decoded
from jobs.parsing.rows import Refusal
from jobs.pipeline.tracking.packets import packed
from jobs.pipeline.tracking.spread import Spread
from tests.parsing.old_brokers import (
    FOLDER,
    RELEASES,
    REQUESTS,
    SERVER,
    WITH_ANSWERS,
    WITHOUT_REASONS,
    coordinators_lines,
    event,
    lines,
    phases,
    sentence,
)
from tests.parsing.reading import read_lines
from tests.pipeline.tracking.packed_events import events_in
from tests.tracker.story import play

STORY = [
    ("MEMBER_JOINED", "orders-1"), ("MEMBER_JOINED", "orders-2"), ("MEMBER_JOINED", "orders-3"), ("MEMBER_LEFT", "orders-3"),
    ("SESSION_TIMEOUT", "orders-2"), ("MEMBER_JOINED", "orders-2"), ("SESSION_TIMEOUT", "orders-1"), ("MEMBER_JOINED", "orders-1"),
    ("MEMBER_JOINED", "orders-3"), ("MEMBER_LEFT", "orders-1"),
]  # fmt: skip
"""Causes and clients of the generations of `orders`, in the order of old_broker.play."""
MEMBERS = [(0, 1), (1, 2), (2, 3), (3, 2), (2, 1), (1, 2), (2, 1), (1, 2), (2, 3)]
"""Members before and after each. The last three consumers leave so soon after each other that one rebalance may take two of them."""


def rebalances(events, group="orders"):
    rows = [row.values for row in play([events]) if row.table == "rebalances"]
    return sorted((row for row in rows if row["group_id"] == group), key=lambda row: row["ended_at"])


def durations(rows):
    return {row["generation"]: (row["join_ms"], row["sync_ms"], row["total_ms"]) for row in rows if row["outcome"] == "COMPLETED"}


def logged(release, group="orders"):
    return {
        generation: (t["stabilized"] - t["preparing"], t["assigned"] - t["stabilized"], t["assigned"] - t["preparing"])
        for generation, t in phases(release, group).items()
    }


@pytest.mark.parametrize("release", RELEASES)
def test_a_template_reads_every_line_of_the_coordinator(release):
    texts = [text for _, _, text in coordinators_lines(release)]
    assert len(texts) > 50
    assert [text for text in texts if sentence(text) is None or event(0, 0, text) is None] == []


@pytest.mark.parametrize("release", RELEASES)
def test_what_the_recorded_broker_says_of_its_starts_and_ends(release):
    """It was started three times and shut down twice before the recording ended. 1.0 and later name the signal first."""
    starts = ["BROKER_RELEASE", "BROKER_STARTED"]
    kinds = [known.kind for _, _, text in lines(release, SERVER) if (known := recognise(text, "broker-1")).source == e.BROKER_SOURCE]
    stopping = ["BROKER_STOPPING"] * (1 if release.startswith("0.") else 2)
    assert kinds == [*[*starts, *stopping, "BROKER_STOPPED"] * 2, *starts]


@pytest.mark.parametrize("release", RELEASES)
def test_the_coordinators_log_alone_gives_the_true_durations(release):
    found = rebalances([event(*line) for line in coordinators_lines(release)])
    assert len(logged(release)) >= 10
    assert durations(found) == logged(release)


@pytest.mark.parametrize("release", WITHOUT_REASONS)
def test_without_a_reason_nobody_is_blamed_but_a_member_whose_session_ended(release):
    found = rebalances([event(*line) for line in coordinators_lines(release)])
    told = [(row["cause"], (row["member_id"] or "")[:8]) for row in found]
    expiries = 0 if release in ("0.9.0.1", "0.10.2.2") else 2  # logged since 0.11
    assert told.count(("UNKNOWN", "")) == len(found) - 1 - expiries
    assert [one for one in told if one != ("UNKNOWN", "")] == [
        ("MEMBER_JOINED", ""),
        ("SESSION_TIMEOUT", "orders-2"),
        ("SESSION_TIMEOUT", "orders-1"),
    ][: 1 + expiries]
    assert {row["members_before"] for row in found[1:]} == {None}


@pytest.fixture(scope="module")
def read():
    """Of both logs of each release: the tracker's events by release and source, and the reasons for which lines were refused."""
    rows = [
        (release, "broker-1", "line", log, number, datetime.fromtimestamp(at / 1_000, timezone.utc), text, None, 1, None, None)
        for release in RELEASES
        for log in (SERVER, REQUESTS)
        for number, at, text in lines(release, log)
    ]
    told = read_lines(rows)
    verdicts = Counter((row["cluster"], row["origin"], row["verdict"], row["refusal"]) for row in told.to_pylist())
    packets = pa.Table.from_batches(packed(Spread(1, 1), batch.events(told, 0).combine_chunks().to_batches(), "")).to_pandas()
    return {release: events_in(packets[packets["cluster"] == release]) for release in RELEASES}, verdicts


@pytest.mark.parametrize("release", RELEASES)
def test_requests_are_read_if_their_answers_are_logged_and_refused_aloud_otherwise(read, release):
    events, verdicts = read
    whole = release in WITH_ANSWERS
    told = {key[2:] for key in verdicts if key[:2] == (release, REQUESTS)}
    assert told == {("event", None)} if whole else {("quarantine", Refusal.OLD_FORMAT)}
    assert {key[2:] for key in verdicts if key[:2] == (release, SERVER)} == {("event", None), ("skipped", None)}
    kinds = {event.kind for event in events[release] if event.source == e.REQUEST_SOURCE}
    members = {e.JOIN_GROUP, e.SYNC_GROUP, e.HEARTBEAT, e.LEAVE_GROUP, e.OFFSET_COMMIT, e.OFFSET_FETCH, e.FIND_COORDINATOR}
    assert kinds == (members if whole else set())


@pytest.mark.parametrize("release", WITH_ANSWERS)
def test_both_logs_tell_what_was_done_and_when(read, release):
    found = rebalances(read[0][release])
    assert [(row["cause"], row["client_id"]) for row in found[: len(STORY)]] == STORY
    assert [(row["members_before"], row["members_after"]) for row in found[: len(MEMBERS)]] == MEMBERS
    assert (found[-1]["outcome"], found[-1]["cause"], found[-1]["members_after"]) == ("EMPTIED", "MEMBER_LEFT", 0)
    assert durations(found) == logged(release)
    assert {row["partitions_moved"] for row in found} == {None}  # what was assigned is not in these logs
    acts = [json.loads(line) for line in (FOLDER / f"kafka-{release}" / "truth.jsonl").read_text("utf-8").splitlines()]
    began = [act["ts_ms"] for act in acts if act.get("group") == "orders" and act["action"] != "kill" and act["action"] != "freeze"]
    at_once = [row["started_at"] for row in found if row["cause"] != "SESSION_TIMEOUT"]
    assert all(0 <= started - acted <= 10_000 for started, acted in zip(at_once[: len(STORY) - 2], began, strict=False))


@pytest.mark.parametrize("release", WITH_ANSWERS)
def test_the_request_log_alone_names_the_same_culprits(read, release):
    found = rebalances([event for event in read[0][release] if event.source == e.REQUEST_SOURCE])
    assert [(row["cause"], row["client_id"]) for row in found[: len(STORY)]] == STORY


def heartbeat(group="orders", member="m-1", instance="null", client="web-1"):
    return (
        "[2026-11-22 22:48:12,335] DEBUG Completed request:"
        f"RequestHeader(apiKey=HEARTBEAT, apiVersion=4, clientId={client}, correlationId=12) -- {{group_id={group},generation_id=5,"
        f"member_id={member},group_instance_id={instance},_tagged_fields={{}}}},response:{{throttle_time_ms=0,error_code=27,_tagged_fields={{}}}}"
        " from connection 10.0.0.1:9092-10.0.0.7:51234-3;totalTime:0.5,requestQueueTime:0.1,localTime:0.2,remoteTime:0.0,throttleTime:0,"
        "responseQueueTime:0.1,sendTime:0.1,securityProtocol:PLAINTEXT,principal:User:ANONYMOUS,listener:PLAINTEXT,"
        "clientInformation:ClientInformation(softwareName=a, softwareVersion=1) (kafka.request.logger)"
    )


def leave(group):
    return (
        heartbeat()
        .replace("HEARTBEAT", "LEAVE_GROUP")
        .replace("group_id=orders,generation_id=5,member_id=m-1,group_instance_id=null", f"group_id={group},members=[{{member_id=m-1}}]")
        .replace("error_code=27", "error_code=0,members=[{member_id=m-1,error_code=0}]")
    )


HOSTILE = [
    ({"group": "a,host=b"}, ("a,host=b", 5, "m-1", None, "web-1")),
    ({"group": 'a"b\\c}', "member": "x}],y"}, ('a"b\\c}', 5, "x}],y", None, "web-1")),
    ({"member": "", "instance": "i}"}, ("orders", 5, "", "i}", "web-1")),
    ({"client": 'a:"=b, apiVersion=3'}, ("orders", 5, "m-1", None, 'a:"=b, apiVersion=3')),
    ({"group": '"#5":,}', "instance": ':"@"['}, ('"#5":,}', 5, "m-1", ':"@"[', "web-1")),
]


DOUBTFUL = [
    (Refusal.MALFORMED, heartbeat("a,generation_id=9,member_id=x")),
    (Refusal.MALFORMED, heartbeat(client="a, correlationId=1) -- {group_id=b,generation_id=1,member_id=c},response:{error_code=0}")),
    (Refusal.TRUNCATED, heartbeat()[:-40]),
    (Refusal.MALFORMED, heartbeat().replace("error_code=27", "error_code=2x")),
    (Refusal.MALFORMED, heartbeat().replace("error_code", "error_message=x,error_code=5,error_code")),
]


def test_names_may_hold_the_marks_of_the_text_but_not_its_fields():
    texts = [heartbeat(**names) for names, _ in HOSTILE] + [text for _, text in DOUBTFUL]
    at = datetime(2026, 11, 22, tzinfo=timezone.utc)
    rows = [("c", "b", "line", "f", number, at, text, None, 1, None, None) for number, text in enumerate(texts)]
    told = read_lines(rows).to_pylist()
    names = ("group_id", "generation", "member_id", "instance_id", "client_id")
    assert [tuple(row[name] for name in names) for row in told[: len(HOSTILE)]] == [expected for _, expected in HOSTILE]
    assert [row["refusal"] for row in told[len(HOSTILE) :]] == [refusal for refusal, _ in DOUBTFUL]


def test_a_name_of_a_thousand_fields_is_refused_at_once():
    """It took half an hour while each text could reach over all fields."""
    assert decoded(leave("g")).request.group_id == "g"
    assert decoded(leave("{member_id=a,group_instance_id=b," * 1_000)) is None
