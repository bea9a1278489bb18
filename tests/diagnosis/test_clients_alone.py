"""Groups of which only clients' logs are read: what they say of themselves is told, and that nobody knows who began what."""

from __future__ import annotations

import json

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import CONNECT, Event
from coordinator_model.tracker.shard import Shard
from tests.diagnosis.narrated import finding, findings
from tests.tracker.batching import batches
from tests.tracker.story import START_MS, Story, play, table

MEMBER = "c1-00000001-0000-4000-8000-000000000001"
UNKNOWN = {"state": kinds.UNKNOWN_MEMBER_ID, "reason": "The coordinator is not aware of this member."}


class Log(Story):
    """The log of one client."""

    def __init__(self, client: str = "c1", **who: str) -> None:
        super().__init__(broker="clients")
        self.who = {"client_id": client, **who}

    def says(self, ms: int, kind: str, **fields: object) -> Log:
        """A line."""
        self.at(ms).add("client", kind, **{**self.who, **fields})
        return self


def storm(rounds: int = 20, step_ms: int = 220, *, failed: bool = True, log: Log | None = None) -> Log:
    log = log or Log("w1", software=CONNECT)
    for number in range(rounds):
        log.says(number * step_ms, kinds.CLIENT_JOINED, member_id=MEMBER, generation=76_000 + number)
        if failed:
            log.says(number * step_ms + 1, kinds.CLIENT_ROUND_FAILED, member_id=MEMBER, generation=76_000 + number)
        log.says(number * step_ms + 2, kinds.CLIENT_REJOINS, reason="rebalance failed due to 'The group is rebalancing'")
    return log


def test_a_storm_is_told_as_one_client_sees_it():
    rows = storm().rows()
    assert findings(rows) == [("REBALANCE_STORM", "w1")]
    told = finding(rows, "REBALANCE_STORM")
    assert told["message"].startswith("The client w1 joined 20 generations in 4.2 s; 20 times the next rebalance began before it had")
    assert "No broker's log shows who began these rebalances." in told["message"]
    assert "rebalance.timeout.ms and session.timeout.ms of the workers" in told["advice"]
    assert "max.poll" not in told["advice"]
    details = json.loads(told["details"])
    assert (details["rebalances"], details["span_ms"], details["failed"], details["clients"]) == (20, 4_181, 20, ["w1"])
    assert not table(rows, "rebalances")


def test_a_client_that_is_refused_for_good_is_told_with_the_error():
    """As the client that brings another topology of Kafka Streams."""
    error = "INVALID_REQUEST: Topology updates are not supported yet."
    rows = Log().says(0, kinds.CLIENT_NOTE, reason=f"StreamsGroupHeartbeatRequest failed due to {error}").rows()
    assert findings(rows) == [("CLIENT_REFUSED", "c1")]
    assert finding(rows, "CLIENT_REFUSED")["message"] == f"The coordinator refused the client, which gave up: {error}"


@pytest.mark.parametrize(("before_ms", "blamed"), [(2_000, False), (59_000, False), (900, True), (61_000, True)])
def test_poll_is_not_blamed_where_the_coordinator_could_not_be_reached_before(before_ms, blamed):
    """A client whose process stood still says all at once."""
    gone = "Group coordinator broker:9092 (id: 1 rack: null) is unavailable or invalid due to cause: coordinator unavailable."
    log = Log().says(100_000 - before_ms, kinds.CLIENT_NOTE, reason=gone)
    log.says(100_000, kinds.CLIENT_POLL_TIMEOUT).says(100_001, kinds.CLIENT_COMMIT_REFUSED)
    for code in ("POLL_TIMEOUT", "ZOMBIE_COMMIT"):
        advice = finding(log.rows(), code)["advice"]
        assert ("max.poll" in advice, "what happened to that broker" in advice) == (blamed, not blamed)


@pytest.mark.parametrize(
    ("rounds", "step_ms", "failed", "told"),
    [
        (9, 1_000, False, []),  # a rolling restart has as many
        (10, 1_000, False, ["REBALANCE_STORM"]),
        (4, 1_000, True, []),
        (5, 1_000, True, ["REBALANCE_STORM"]),
        (20, 60_001, False, []),  # each by itself
        (22, 60_000, False, ["REBALANCE_STORM", "REBALANCE_STORM"]),  # one that does not end is told after ten minutes, and again
        (12, 60_000, False, ["REBALANCE_STORM"]),
    ],
)
def test_few_rounds_are_no_storm(rounds, step_ms, failed, told):
    assert [code for code, _ in findings(storm(rounds, step_ms, failed=failed).rows())] == told


@pytest.mark.parametrize(("step_ms", "failed", "severity"), [(900, False, "ERROR"), (5_000, True, "ERROR"), (5_000, False, "WARNING")])
def test_many_rounds_may_be_a_restart_of_many_members(step_ms, failed, severity):
    told = finding(storm(12, step_ms, failed=failed).rows(), "REBALANCE_STORM")
    assert told["severity"] == severity
    assert told["advice"].startswith("If members were restarted") == (severity == "WARNING")


def test_tasks_of_a_worker_that_went_wait():
    log = Log("w1", software=CONNECT).says(0, kinds.CLIENT_ASSIGNED, generation=4, rebalance_timeout_ms=0)
    assert findings(log.rows()) == []
    log.says(1_000, kinds.CLIENT_ASSIGNED, generation=5, rebalance_timeout_ms=300_000)
    log.says(40_000, kinds.CLIENT_ASSIGNED, generation=6, rebalance_timeout_ms=261_000)
    told = finding(log.rows(), "CONNECT_TASKS_WAIT")
    assert "wait up to 5 min before a worker gets them" in told["message"]
    assert (told["occurred_at"], json.loads(told["details"])) == (1_000, {"waited_ms": 300_000})


def test_several_clients_in_one_log_see_one_storm():
    log = storm(12, failed=False)
    log.who = {"client_id": "w2", "software": CONNECT}
    rows = storm(12, failed=False, log=log).rows()
    assert findings(rows) == [("REBALANCE_STORM", "")]
    told = finding(rows, "REBALANCE_STORM")
    assert told["message"].startswith("2 clients joined 12 generations")
    assert json.loads(told["details"])["clients"] == ["w1", "w2"]


def test_so_does_a_client_whose_log_has_no_generations():
    log = Log("c1", connection="kafkajs")
    for number in range(10):
        log.says(number * 1_000, kinds.CLIENT_JOINED, member_id=MEMBER)
    told = finding(log.rows(), "REBALANCE_STORM")
    assert told["message"].startswith("The client c1 joined 10 generations in 9 s. No broker's log")
    assert "Connect" not in told["advice"]


def test_at_most_64_clients_are_counted():
    log = Log()
    for number in range(70):
        log.says(number, kinds.CLIENT_JOINED, client_id=f"c{number}", generation=number)
    assert json.loads(finding(log.rows(), "REBALANCE_STORM")["details"])["rebalances"] == 64


@pytest.mark.parametrize(
    ("kind", "fields", "code"),
    [
        (kinds.CLIENT_POLL_TIMEOUT, {"rebalance_timeout_ms": 6_000}, "POLL_TIMEOUT"),
        (kinds.CLIENT_LEAVES, {"reason": "consumer poll timeout has expired. This means the time between"}, "POLL_TIMEOUT"),  # 2.4 to 2.8
        (kinds.CLIENT_SESSION_TIMEOUT, {"session_timeout_ms": 45_004}, "NO_HEARTBEAT_RESPONSE"),
        (kinds.CLIENT_SESSION_TIMEOUT, {}, "NO_HEARTBEAT_RESPONSE"),
        (kinds.CLIENT_PUT_OUT, UNKNOWN, "UNKNOWN_MEMBER"),
        (kinds.CLIENT_PUT_OUT, {"state": kinds.ILLEGAL_GENERATION}, "ILLEGAL_GENERATION"),
        (kinds.CLIENT_PUT_OUT, {"state": kinds.FENCED_INSTANCE_ID, "instance_id": "i-1"}, "FENCED_INSTANCE"),
        (kinds.CLIENT_PUT_OUT, {"state": kinds.FENCED_INSTANCE_ID}, "FENCED_INSTANCE"),
        (kinds.CLIENT_PUT_OUT, {"state": kinds.FENCED_MEMBER_EPOCH}, "FENCED_MEMBER_EPOCH"),
        (kinds.CLIENT_PUT_OUT, {"state": kinds.UNRELEASED_INSTANCE_ID, "instance_id": "i-1"}, "UNRELEASED_INSTANCE_ID"),
        (kinds.CLIENT_COMMIT_REFUSED, {"reason": "The coordinator is not aware of this member."}, "ZOMBIE_COMMIT"),
        (kinds.CLIENT_LEAVES, {"reason": "the consumer is being closed"}, None),
        (kinds.CLIENT_REJOINS, {"reason": "subscription has changed"}, None),
        (kinds.CLIENT_NOTE, {"reason": "x"}, None),
        (kinds.CLIENT_JOINED, {"generation": 1}, None),
    ],
)
def test_what_a_client_says_of_itself(kind, fields, code):
    assert findings(Log().says(0, kind, **fields).rows()) == ([(code, "c1")] if code else [])


def test_what_is_known_of_it_is_told():
    log = Log().says(0, kinds.CLIENT_SESSION_TIMEOUT, session_timeout_ms=45_004)
    told = finding(log.rows(), "NO_HEARTBEAT_RESPONSE")["message"]
    assert told == "The client got no answer from the group's coordinator for 45 s, longer than its session timeout."
    static = Log(instance_id="i-1").says(0, kinds.CLIENT_POLL_TIMEOUT, rebalance_timeout_ms=6_000)
    assert "The client, a static member, stopped sending heartbeats: the application" in finding(static.rows(), "POLL_TIMEOUT")["message"]
    fenced = Log().says(0, kinds.CLIENT_PUT_OUT, state=kinds.FENCED_INSTANCE_ID, instance_id="i-1")
    assert "Another member took the client's group.instance.id i-1." in finding(fenced.rows(), "FENCED_INSTANCE")["message"]


def test_a_client_that_is_put_out_after_a_silence_is_one_trouble():
    silent = Log("", connection="kafka-python").says(0, kinds.CLIENT_SESSION_TIMEOUT).says(4_132, kinds.CLIENT_PUT_OUT, **UNKNOWN)
    told = finding(silent.rows(), "NO_HEARTBEAT_RESPONSE")
    assert told["message"].endswith("for longer than its session timeout, and then learned that the group had removed it.")
    assert "Raise session_timeout_ms above the longest pause" in told["advice"]
    assert len(json.loads(told["evidence"])) == 2
    later = Log().says(0, kinds.CLIENT_SESSION_TIMEOUT).says(60_001, kinds.CLIENT_PUT_OUT, **UNKNOWN)
    assert [code for code, _ in findings(later.rows())] == ["NO_HEARTBEAT_RESPONSE", "UNKNOWN_MEMBER"]


def test_the_same_in_other_words_is_one_trouble():
    log = Log().says(0, kinds.CLIENT_COMMIT_REFUSED).says(1, kinds.CLIENT_COMMIT_REFUSED).says(60_001, kinds.CLIENT_COMMIT_REFUSED)
    log.says(120_003, kinds.CLIENT_COMMIT_REFUSED).says(5, kinds.CLIENT_COMMIT_REFUSED, client_id="c2")
    rows = log.rows()
    assert findings(rows) == [("ZOMBIE_COMMIT", "c1"), ("ZOMBIE_COMMIT", "c2"), ("ZOMBIE_COMMIT", "c1")]
    assert [json.loads(row["details"])["times"] for row in table(rows, "findings") if row["client_id"] == "c1"] == [3, 1]
    assert "could not commit offsets (3 times)" in table(rows, "findings")[1]["message"]


@pytest.mark.parametrize(
    ("library", "rows"), [("kafkajs", [("UNKNOWN_MEMBER", "c1")]), ("", [("UNKNOWN_MEMBER", "c2"), ("UNKNOWN_MEMBER", "c1")])]
)
def test_a_line_without_a_name_is_about_the_client_of_the_other(library, rows):
    """KafkaJS names its client in one line, and the group in the next. Two names are two clients."""
    log = Log("" if library else "c2", connection=library).says(0, kinds.CLIENT_PUT_OUT, **UNKNOWN)
    assert findings(log.says(1, kinds.CLIENT_PUT_OUT, client_id="c1", **UNKNOWN).rows()) == rows


def test_a_trouble_that_does_not_end_is_told_after_ten_minutes():
    log = Log()
    for ms in range(0, 700_000, 20_000):
        log.says(ms, kinds.CLIENT_COMMIT_REFUSED)
    assert [json.loads(row["details"])["times"] for row in table(log.rows(), "findings")] == [31, 4]


@pytest.mark.parametrize(
    ("who", "words", "not_words"),
    [
        ({}, ["lower max.poll.records", "max.poll.interval.ms"], ["rebalance.timeout.ms"]),
        ({"software": CONNECT}, ["raise rebalance.timeout.ms of the worker"], ["max.poll"]),
        ({"client_id": "connector-consumer-sink-0"}, ["consumer.override.max.poll.records of the connector"], []),
        ({"client_id": "logstash-0"}, ["max_poll_records of the kafka input", "max_poll_interval_ms of the kafka input"], ["max.poll"]),
        ({"connection": "c1#consumer-1"}, ["max.poll.interval.ms"], ["max.poll.records"]),
        ({"connection": "kafka-python"}, ["lower max_poll_records", "max_poll_interval_ms"], ["max.poll"]),
    ],
)
def test_advice_names_the_settings_of_the_client(who, words, not_words):
    told = finding(Log().says(0, kinds.CLIENT_POLL_TIMEOUT, **who).rows(), "POLL_TIMEOUT")
    assert all(word in told["advice"] for word in words)
    assert not any(word in told["advice"] for word in not_words)


def test_a_library_without_a_poll_timeout_is_not_told_to_poll():
    commit = {"kind": kinds.CLIENT_COMMIT_REFUSED, "reason": "x"}
    assert "max.poll.interval.ms" in finding(Log().says(0, **commit).rows(), "ZOMBIE_COMMIT")["advice"]
    assert "poll()" not in finding(Log(connection="kafkajs").says(0, **commit).rows(), "ZOMBIE_COMMIT")["advice"]


def state(log: Log, ms: int, before: str, after: str, epoch: int = 2, **how: object) -> Log:
    return log.says(ms, kinds.CLIENT_STATE, member_id="oCpRdkCgQGWK7Rq-kJ2BVw", reason=before, state=after, generation=epoch, **how)


def reconciled(took_ms: int, end: str = "ACKNOWLEDGING") -> Log:
    log = state(state(Log(), 0, "UNSUBSCRIBED", "JOINING", 0), 55, "ACKNOWLEDGING", "STABLE")
    return state(state(log, 60_000, "STABLE", "RECONCILING"), 60_000 + took_ms, "RECONCILING", end)


@pytest.mark.parametrize("end", ["ACKNOWLEDGING", "STABLE"])
def test_a_slow_reconciliation_is_told(end):
    rows = reconciled(40_000, end).rows()
    assert findings(rows) == [("STUCK_RECONCILING", "c1")]
    told = finding(rows, "STUCK_RECONCILING")
    assert (told["occurred_at"], told["generation"], json.loads(told["details"])) == (60_000, 2, {"waited_ms": 40_000})
    assert "took 40 s to reconcile" in told["message"]


def test_one_that_is_quick_or_given_up_is_not():
    assert findings(reconciled(14_999).rows()) == []
    assert findings(reconciled(40_000, "FENCED").rows()) == []


def test_reconciliations_of_64_clients_are_remembered():
    log = Log()
    for number in range(70):
        state(log, number, "STABLE", "RECONCILING", client_id=f"c{number}")
    for number in range(70):
        state(log, 20_000 + number, "RECONCILING", "STABLE", client_id=f"c{number}")
    assert len(findings(log.rows())) == 65


@pytest.mark.parametrize(("after_ms", "told"), [(60_000, []), (60_002, [("POLL_TIMEOUT", "c1")])])
def test_a_broker_that_speaks_within_a_minute_tells_it_better(after_ms, told):
    """The lines of a broker about the group begin when it rebalances."""
    log = Log().says(0, kinds.CLIENT_POLL_TIMEOUT)
    log.on("broker-1").at(after_ms).log_preparing(4, "Adding new member b-1 with group instance id null; client reason: not provided.")
    assert [one for one in findings(log.rows()) if one[0] == "POLL_TIMEOUT"] == told


def test_nothing_of_it_is_told_where_a_broker_has_spoken():
    log = Log()
    log.on("broker-1").at(0).log_preparing(4, "Adding new member b-1 with group instance id null; client reason: not provided.")
    log.on("clients")
    for number in range(20):
        log.says(1_000 + number, kinds.CLIENT_JOINED, generation=5 + number)
    state(state(log, 2_000, "STABLE", "RECONCILING"), 42_000, "RECONCILING", "STABLE")
    assert findings(log.rows()) == []


def test_a_storm_into_which_a_broker_speaks_is_its_to_tell():
    log = storm()
    log.on("broker-1").at(5_000).log_preparing(76_020, "Adding new member b-1 with group instance id null; client reason: not provided.")
    log.on("clients")
    assert findings(log.rows()) == []
    again = storm()
    again.on("broker-1").at(5_000).log_preparing(76_020, "Adding new member b-1 with group instance id null; client reason: not provided.")
    again.on("clients").at(70_000).add("client", kinds.CLIENT_JOINED, client_id="w1", generation=76_021)
    assert findings(again.rows()) == []


@pytest.mark.parametrize("count", [1, 2, 5, 13])
def test_batches_do_not_matter(count):
    log = storm()
    log.says(100_000, kinds.CLIENT_SESSION_TIMEOUT, client_id="c2").says(104_000, kinds.CLIENT_PUT_OUT, client_id="c2", **UNKNOWN)
    state(state(log, 110_000, "STABLE", "RECONCILING"), 150_000, "RECONCILING", "STABLE")
    log.says(260_000, kinds.CLIENT_COMMIT_REFUSED)
    expected = log.rows()
    assert len(expected) == 4
    assert sorted(play(batches(log.events, count), snapshot=True), key=str) == sorted(expected, key=str)


def test_a_group_that_only_clients_show_waits_for_the_brokers():
    """One of them may be about to speak of it: its lines come in a later batch."""
    statement = Log().says(0, kinds.CLIENT_POLL_TIMEOUT).events
    others = Story("another").at(0).log_preparing(1, "x").events
    late = Story().at(500).log_preparing(4, "Adding new member b-1 with group instance id null; client reason: not provided.").events
    shard = Shard()
    clocks = [Event(name, "clock", "", 0, START_MS + at, START_MS, kinds.CLOCK) for name, at in (("clients", 900_000), ("broker-1", 100))]
    rows = shard.observe([*statement, *others, *clocks])
    rows += play([late], shard=shard)
    assert [one for one in findings(rows) if one[0] == "POLL_TIMEOUT"] == []


def beside_a_broker(ends_ms: int) -> Log:
    """A broker's log of the group that begins at once and ends so, and what a client says an hour later."""
    log = Log().on("broker-1").at(0).log_preparing(4, "Adding new member b-1 with group instance id null; client reason: not provided.")
    log.at(3_000).log_stabilized(5, members=1)
    log.at(ends_ms).log(kinds.MEMBER_ID_ISSUED, member_id="b-2", group_id="others")
    log.on("clients").says(3_600_000, kinds.CLIENT_SESSION_TIMEOUT).says(3_604_000, kinds.CLIENT_PUT_OUT, **UNKNOWN)
    return log.says(3_700_000, kinds.CLIENT_COMMIT_REFUSED)


@pytest.mark.parametrize(
    ("ends_ms", "told"), [(4_000, ["NO_HEARTBEAT_RESPONSE", "ZOMBIE_COMMIT"]), (3_639_999, ["ZOMBIE_COMMIT"]), (4_000_000, [])]
)
@pytest.mark.parametrize("count", [1, 3])
def test_after_the_logs_of_brokers_clients_are_alone_again(ends_ms, told, count):
    """What the broker's log covers is the broker's to tell: it does not say it, so it did not happen, or somebody else did it."""
    log = beside_a_broker(ends_ms)
    assert [code for code, _ in findings(log.rows())] == told
    assert [code for code, _ in findings(play(batches(log.events, count), snapshot=True))] == told


TOLD = {"reason": "group is already rebalancing"}


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([(0, kinds.CLIENT_REJOINS, TOLD), (9_000, kinds.CLIENT_REJOINS, TOLD)], []),
        ([(0, kinds.CLIENT_REJOINS, TOLD), (10_000, kinds.CLIENT_REJOINS, TOLD)], [("NOT_REJOINED", "c1")]),
        ([(0, kinds.CLIENT_REJOINS, TOLD), (20_000, kinds.CLIENT_NOTE, {"reason": "(Re-)joining group"})], [("NOT_REJOINED", "c1")]),
        # Nobody knows since when it waited for the others.
        ([(0, kinds.CLIENT_REJOINS, TOLD), (20_000, kinds.CLIENT_JOINED, {"generation": 7})], []),
        ([(0, kinds.CLIENT_REJOINS, TOLD), (20_000, kinds.CLIENT_LEAVES, {"reason": "the consumer is being closed"})], []),
        ([(0, kinds.CLIENT_REJOINS, TOLD), (20_000, kinds.CLIENT_PUT_OUT, UNKNOWN)], [("UNKNOWN_MEMBER", "c1")]),
    ],
)
def test_a_client_that_does_not_join_when_it_is_told_to(lines, told):
    log = Log()
    for ms, kind, fields in lines:
        log.says(ms, kind, **fields)
    assert findings(log.rows()) == told


LOST = "Group coordinator {}:9092 (id: 2147483646 rack: null) is unavailable or invalid due to cause: {}. Rediscovery will be attempted."


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([(0, "b", "coordinator unavailable"), (12_000, "b", "coordinator unavailable")], "b:9092 (node 1), for 12 s, up to its last line"),
        ([(0, "b", "coordinator unavailable"), (12_000, "c", "coordinator unavailable")], ""),  # another one was elected
        ([(0, "b", "error response NOT_COORDINATOR"), (12_000, "b", "error response NOT_COORDINATOR")], ""),
        ([(0, "b", "coordinator unavailable"), (5_000, "b", "coordinator unavailable")], ""),
    ],
)
def test_a_client_that_cannot_reach_its_coordinator(lines, told):
    log = Log()
    for ms, where, cause in lines:
        log.says(ms, kinds.CLIENT_NOTE, reason=LOST.format(where, cause))
    found = [row["message"] for row in table(log.rows(), "findings")]
    assert [told in message for message in found] == ([True] if told else [])


def test_a_coordinator_that_is_reached_again():
    log = Log()
    for ms in (0, 6_000):
        log.says(ms, kinds.CLIENT_NOTE, reason=LOST.format("b", "coordinator unavailable"))
    (row,) = table(log.says(15_000, kinds.CLIENT_JOINED, generation=7).rows(), "findings")
    assert (row["code"], json.loads(row["details"])["unreached_ms"]) == ("COORDINATOR_UNREACHABLE", 15_000)
    assert "for 15 s. It found" in row["message"]
