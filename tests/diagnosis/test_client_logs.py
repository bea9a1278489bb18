"""What the logs of clients add to the coordinator's: the reason that librdkafka and old clients do not send."""

from types import SimpleNamespace

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.tracker.lines import client_lines
from coordinator_model.view import reasons
from tests.diagnosis.narrated import CLIENTS, CLOSED, LOG, LOG_AND_CLIENTS, STALLED, Group, causes, ends, finding, findings
from tests.tracker.story import table


def pair(**how) -> Group:
    return Group("a", "b", **how).live(60_000)


def test_a_stalled_poll_loop_says_so_before_it_leaves():
    group = pair().writes("b", kinds.CLIENT_POLL_TIMEOUT, rebalance_timeout_ms=30_000)
    rows = group.is_at(60_002).leaves("b").live(90_000).seen(LOG_AND_CLIENTS)
    assert (causes(rows), ends(rows)[0][1], findings(rows)) == (["POLL_TIMEOUT"], "POLL_TIMEOUT", [("POLL_TIMEOUT", "b")])
    told = finding(rows, "POLL_TIMEOUT")
    assert "max.poll.interval.ms (30 s)" in told["message"]
    assert '"source":"client"' in told["evidence"]


def test_without_its_log_it_just_left():
    group = pair().writes("b", kinds.CLIENT_POLL_TIMEOUT)
    rows = group.is_at(60_002).leaves("b").live(90_000).seen(LOG)
    assert (causes(rows), findings(rows)) == (["MEMBER_LEFT"], [])


def test_a_client_whose_clock_is_ahead_says_so_after_it_left():
    group = pair()
    b = group["b"].member
    group.writes("b", kinds.CLIENT_JOINED, member_id=b, generation=1).is_at(60_002).leaves("b")
    rows = group.writes("b", kinds.CLIENT_POLL_TIMEOUT, 61_500).live(90_000).seen(LOG_AND_CLIENTS)
    assert (causes(rows), ends(rows)[0][1], findings(rows)) == (["POLL_TIMEOUT"], "POLL_TIMEOUT", [("POLL_TIMEOUT", "b")])


def test_a_client_that_closes_says_that_too():
    """Brokers log the reason from 3.2 on; of older ones only the client's log tells."""
    group = pair()
    b = group["b"].member
    group.writes("b", kinds.CLIENT_LEAVES, member_id=b, reason=CLOSED).is_at(60_001).leaves("b")
    assert causes(group.live(90_000).seen(LOG_AND_CLIENTS)) == ["MEMBER_LEFT"]


@pytest.mark.parametrize(
    "reason", [STALLED, "consumer poll timeout has expired. This means the time between subsequent calls to poll() was"]
)
def test_so_does_one_that_leaves_because_it_stalled(reason):
    group = pair()
    b = group["b"].member
    group.writes("b", kinds.CLIENT_LEAVES, member_id=b, reason=reason).is_at(60_001).leaves("b")
    rows = group.live(90_000).seen(LOG_AND_CLIENTS)
    assert (causes(rows), findings(rows)) == (["POLL_TIMEOUT"], [("POLL_TIMEOUT", "b")])


@pytest.mark.parametrize("late_ms", [0, 12_000])
def test_a_static_member_that_stalls_does_not_leave_and_its_session_ends(late_ms):
    """KIP-345. Whether its log comes before the end of its session or after."""
    group = pair(static=True)
    b = group["b"].member
    group.writes("b", kinds.CLIENT_JOINED, member_id=b, generation=1)
    group.writes("b", kinds.CLIENT_POLL_TIMEOUT, group.now + late_ms)
    rows = group.session_ends("b").live(100_000).seen(LOG_AND_CLIENTS)
    assert (causes(rows), findings(rows), ends(rows)) == (["POLL_TIMEOUT"], [("POLL_TIMEOUT", "b")], [("b", "POLL_TIMEOUT")])


def test_a_static_member_that_stalled_long_ago_and_came_back_is_not_blamed_for_it():
    group = pair(static=True).writes("b", kinds.CLIENT_POLL_TIMEOUT, instance_id="i-b")
    rows = group.live(200_000).session_ends("b").live(240_000).seen(LOG_AND_CLIENTS)
    assert (causes(rows), findings(rows)) == (["SESSION_TIMEOUT"], [("SESSION_TIMEOUT", "b")])


def test_a_client_id_that_several_members_share_is_told_by_the_member_that_its_log_named():
    group = pair()
    group.comes("c").live(90_000)
    one, other = group["b"].member, group["c"].member
    # Both log as "b": only what that log named before tells them apart.
    group.writes("b", kinds.CLIENT_JOINED, member_id=other, generation=2, connection="b#consumer-7")
    group.writes("b", kinds.CLIENT_POLL_TIMEOUT, connection="b#consumer-7")
    rows = group.is_at(90_002).leaves("c").live(130_000).seen(LOG_AND_CLIENTS)
    assert findings(rows) == [("POLL_TIMEOUT", "c")]
    assert one not in {row["member_id"] for row in table(rows, "findings")}


@pytest.mark.parametrize(
    ("connection", "words", "cause"),
    [
        # librdkafka, in its debug log
        ("a#consumer-1", "Metadata for subscribed topic(s) has changed", "METADATA_CHANGED"),
        ("a#consumer-1", "subscribe to new subscription", "SUBSCRIPTION_CHANGED"),
        ("a#consumer-1", "rejoining group to redistribute previously owned partitions to other group members", "REVOCATION_FOLLOW_UP"),
        ("a#consumer-1", "Group is rebalancing", "LEADER_REJOINED"),
        ("a#consumer-1", "unsubscribe", "LEADER_REJOINED"),
        # Java 3.0 and later, at INFO; to brokers from 3.2 on
        ("", "cached metadata has changed from (version1: {orders=6}) at the beginning of the rebalance to (...)", "METADATA_CHANGED"),
        ("", "rebalance enforced by user", "MEMBER_REJOINED"),
        ("", "group is already rebalancing", "LEADER_REJOINED"),
        ("", "rebalance failed due to 'The group is rebalancing' (RebalanceInProgressException)", "LEADER_REJOINED"),
    ],
)
def test_a_client_says_in_its_log_why_it_joins_again(connection, words, cause):
    group = pair().writes("a", kinds.CLIENT_REJOINS, reason=words, **({"connection": connection} if connection else {})).is_at(60_003)
    assert causes(group.rejoins("a").live(90_000).seen(LOG_AND_CLIENTS)) == [cause]


def test_a_worker_of_connect_says_in_its_log_that_a_connector_changed():
    """It does so for the rebalance that follows, and not for the one that this one leads to."""
    said = {"reason": "pg-orders-source", "state": "CONNECTOR_CHANGED"}
    group = pair().writes("a", kinds.CLIENT_REJOINS, **said).is_at(60_003).rejoins("a")
    rows = group.is_at(61_000).rejoins("a").live(90_000).seen(LOG_AND_CLIENTS)
    assert causes(rows) == ["CONNECTOR_CHANGED", "LEADER_REJOINED"]


def test_what_it_said_a_minute_ago_is_about_something_else():
    group = pair().writes("a", kinds.CLIENT_REJOINS, reason="subscribe to new subscription", connection="a#consumer-1").live(120_000)
    assert causes(group.rejoins("a").live(160_000).seen(LOG_AND_CLIENTS)) == ["LEADER_REJOINED"]


def test_where_no_broker_is_read_a_stall_is_told_and_nothing_else():
    group = pair()
    b = group["b"].member
    group.writes("b", kinds.CLIENT_JOINED, member_id=b, generation=1, connection="b#consumer-1")
    group.writes("b", kinds.CLIENT_POLL_TIMEOUT, connection="b#consumer-1", rebalance_timeout_ms=8_000)
    rows = group.is_at(60_002).leaves("b").live(90_000).seen(CLIENTS)
    assert findings(rows) == [("POLL_TIMEOUT", "b")]
    assert finding(rows, "POLL_TIMEOUT")["member_id"] == b
    assert not table(rows, "rebalances")


def test_a_client_that_gave_up_waiting_for_its_coordinator_is_no_finding():
    """The coordinator may have moved, or be slow: what became of the group its own log tells."""
    group = pair().writes("b", kinds.CLIENT_SESSION_TIMEOUT, session_timeout_ms=10_000, reason="Local: Broker transport failure")
    assert findings(group.live(90_000).seen(LOG_AND_CLIENTS)) == []


def test_a_silent_log_of_a_client_holds_nobody_up():
    """Its newest line is a minute older than the broker's: the rebalance is told all the same."""
    group = pair().writes("b", kinds.CLIENT_JOINED, 100, member_id="b-x", generation=1)
    events = group.leaves("b", CLOSED).live(120_000).evidence(LOG_AND_CLIENTS)
    from coordinator_model.tracker.shard import Shard

    rows = Shard().observe([e for e in events if not (e.broker == "clients" and e.kind == kinds.CLOCK)])
    assert causes(rows) == ["MEMBER_LEFT"]


def test_one_log_of_several_containers_whose_clients_have_one_name_tells_nothing_of_either():
    group = pair().comes("c").live(90_000)
    for client in ("b", "c"):
        group.writes("b", kinds.CLIENT_JOINED, member_id=group[client].member, generation=2, connection="rdkafka#consumer-1")
    group.writes("b", kinds.CLIENT_POLL_TIMEOUT, connection="rdkafka#consumer-1")
    rows = group.is_at(90_002).leaves("c").live(130_000).seen(LOG_AND_CLIENTS)
    assert (causes(rows)[-1], findings(rows)) == ("MEMBER_LEFT", [])


def test_nor_does_it_if_the_line_comes_after_one_of_them_left():
    group = pair().comes("c").live(90_000)
    for client in ("b", "c"):
        group.writes("b", kinds.CLIENT_JOINED, member_id=group[client].member, generation=2, connection="rdkafka#consumer-1")
    group.is_at(90_002).leaves("c").writes("b", kinds.CLIENT_POLL_TIMEOUT, 91_500, connection="rdkafka#consumer-1")
    rows = group.live(92_000).leaves("b").live(130_000).seen(LOG_AND_CLIENTS)
    assert findings(rows) == []


def test_a_client_that_came_back_is_the_member_that_it_is_now():
    group = pair()
    group.writes("b", kinds.CLIENT_JOINED, member_id=group["b"].member, connection="b#consumer-1").is_at(60_002).leaves("b").live(100_000)
    group.comes("b").live(140_000)
    group.writes("b", kinds.CLIENT_JOINED, member_id=group["b"].member, connection="b#consumer-1")
    b = group["b"].member
    group.writes("b", kinds.CLIENT_POLL_TIMEOUT, connection="b#consumer-1")
    rows = group.is_at(140_002).leaves("b").live(180_000).seen(LOG_AND_CLIENTS)
    assert [row["member_id"] for row in table(rows, "findings")] == [b]


@pytest.mark.parametrize(("joined", "told"), [(True, [("POLL_TIMEOUT", "b")]), (False, [])])
def test_a_library_that_writes_no_name_is_the_member_whose_join_its_log_has(joined, told):
    """kafka-python from 2.1 on: "Successfully joined group … (member_id: …)", later "Consumer poll timeout has expired"."""
    group = pair()
    if joined:
        group.writes("", kinds.CLIENT_JOINED, member_id=group["b"].member, generation=1, connection="kafka-python")
    group.writes("", kinds.CLIENT_POLL_TIMEOUT, connection="kafka-python")
    rows = group.is_at(60_002).leaves("b").live(90_000).seen(LOG_AND_CLIENTS)
    assert (causes(rows), findings(rows)) == ([told[0][0] if told else "MEMBER_LEFT"], told)


def test_a_line_that_names_the_member_is_about_it():
    """KIP-848's Java client: "Member … will rejoin the group now"."""
    group = pair()
    b = group["b"].member
    group.writes("x", kinds.CLIENT_POLL_TIMEOUT, member_id=b).is_at(60_002).leaves("b")
    assert findings(group.live(90_000).seen(LOG_AND_CLIENTS)) == [("POLL_TIMEOUT", "b")]


@pytest.mark.parametrize(
    ("library", "words", "cause"),
    [
        ("franz-go", "after revoking what we lost from a rebalance", "REVOCATION_FOLLOW_UP"),
        ("franz-go", "rejoining because we are the leader and noticed some topics have new partitions", "METADATA_CHANGED"),
        ("franz-go", "REBALANCE_IN_PROGRESS: The group is rebalancing, so a rejoin is needed.", "LEADER_REJOINED"),
        ("kafka-python", "complete cooperative move of 2 partition(s)", "REVOCATION_FOLLOW_UP"),
        ("kafka-python", "it is rebalancing", "LEADER_REJOINED"),
        ("aiokafka", "Metadata for topic has changed", "METADATA_CHANGED"),
        ("sarama", "partitions in topics [orders] changed from 6 to 8", "METADATA_CHANGED"),
        ("sarama", "kafka server: The provided member is not known in the current generation", "LEADER_REJOINED"),
        ("kafka-go", "Partition changes found", "METADATA_CHANGED"),
        ("kafkajs", "The group is rebalancing", "LEADER_REJOINED"),
    ],
)
def test_other_libraries_say_it_in_their_own_words(library, words, cause):
    group = pair()
    group.writes("", kinds.CLIENT_JOINED, member_id=group["a"].member, generation=1, connection=library)
    group.writes("", kinds.CLIENT_REJOINS, reason=words, connection=library).is_at(60_003)
    assert causes(group.rejoins("a").live(90_000).seen(LOG_AND_CLIENTS)) == [cause]


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("after revoking what we lost from a rebalance", "REVOCATION_FOLLOW_UP"),
        ("rejoining because we are the leader and noticed some topics have new partitions", "METADATA_CHANGED"),
        ("from ForceRebalance", "MEMBER_REJOINED"),
        ("partitions were added to a subscribed topic", "METADATA_CHANGED"),
        ("group is rebalancing", "LEADER_REJOINED"),
        ("rejoining from normal rebalance", "LEADER_REJOINED"),
        ("the operator pressed a button", "MEMBER_REJOINED"),
    ],
)
def test_franz_go_and_sarama_send_their_words_to_the_broker(words, cause):
    """KIP-800, as the coordinator logs it from 3.2 on."""
    assert reasons.of_coordinator(f"Leader a-1 re-joining group during Stable; client reason: {words}") == cause


def test_a_static_member_of_franz_go_that_says_it_leaves_was_removed_by_nobody():
    rows = pair(static=True).leaves("b", "client leaving group per normal operation").live(90_000).seen(LOG_AND_CLIENTS)
    assert causes(rows) == ["MEMBER_LEFT"]


@pytest.mark.parametrize("static", [False, True])
def test_a_client_without_a_poll_timeout_that_says_it_leaves_has_left(static):
    group = pair(static=static)
    b = group["b"].member
    group.writes("", kinds.CLIENT_JOINED, member_id=b, generation=1, connection="franz-go")
    group.writes("", kinds.CLIENT_LEAVES, member_id=b, reason="leaving group", connection="franz-go").is_at(60_001).leaves("b")
    rows = group.live(90_000).seen(LOG_AND_CLIENTS)
    assert (causes(rows), ends(rows)[0][1], findings(rows)) == (["MEMBER_LEFT"], "LEFT", [])


def test_a_client_that_joined_twice_is_the_member_that_is_there_or_the_last_one():
    event = Event("clients", "client", "a.log", 1, 0, 0, kinds.CLIENT_POLL_TIMEOUT, connection="b#consumer-1")
    view = SimpleNamespace(
        client_names={"a.log\nb#consumer-1\nold": "old", "a.log\nother\nelse": "else"}, members={"old": None}, undecided=[]
    )
    assert client_lines.member_of(SimpleNamespace(view=view), event) == "old"
    view.client_names["a.log\nb#consumer-1\nnew"] = "new"
    assert client_lines.member_of(SimpleNamespace(view=view), event) == "old"
    view.members = {"old": None, "new": None}
    assert client_lines.member_of(SimpleNamespace(view=view), event) == ""
    view.members = {}
    assert client_lines.member_of(SimpleNamespace(view=view), event) == "new"
