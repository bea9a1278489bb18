"""The same stories when only the request log tells them: what is silent there is inferred, and only with evidence."""

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.view.settings import TrackerSettings
from tests.tracker.story import START_MS, Story, play, table


def stable_group() -> Story:
    """Members a-1 (leader) and b-1 with three partitions each, generation 1, stable from 3.01 s on."""
    story = Story()
    story.at(50).id_issued("a-1")
    story.at(400).id_issued("b-1")
    story.at(3_000).join("a-1", 1, "a-1", ["a-1", "b-1"], waited=2_900)
    story.at(3_001).join("b-1", 1, "a-1", waited=2_500)
    story.at(3_010).sync("a-1", 1, {"a-1": ("t-0", "t-1", "t-2"), "b-1": ("t-3", "t-4", "t-5")})
    story.at(3_010).sync("b-1", 1, {"b-1": ("t-3", "t-4", "t-5")})
    return story


def test_first_rebalance_starts_with_the_first_parked_join() -> None:
    rows = stable_group().rows()
    (rebalance,) = table(rows, "rebalances")
    assert (rebalance["started_at"], rebalance["joined_at"]) == (100, 3_000)
    assert (rebalance["cause"], rebalance["member_id"], rebalance["client_id"]) == ("MEMBER_JOINED", "a-1", "a")
    assert (rebalance["joined"], rebalance["partitions"], rebalance["slowest_member_id"]) == (["a-1", "b-1"], 6, None)


def test_a_member_that_leaves_is_the_cause() -> None:
    story = stable_group().beats(["a-1", "b-1"], 1, 4_000, 20_000)
    story.at(20_005).leave("b-1", "the consumer is being closed", took=4)
    story.at(22_000).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(22_010).join("a-1", 2, "a-1", ["a-1"])
    story.at(22_015).sync("a-1", 2, {"a-1": ("t-0", "t-1", "t-2", "t-3", "t-4", "t-5")})
    rows = story.rows()
    rebalance = table(rows, "rebalances")[1]
    assert (rebalance["started_at"], rebalance["cause"], rebalance["member_id"]) == (20_001, "MEMBER_LEFT", "b-1")
    assert (rebalance["members_before"], rebalance["members_after"], rebalance["left"]) == (2, 1, ["b-1"])
    assert rebalance["partitions_moved"] == 3
    assert table(rows, "findings") == []


def test_a_silent_member_is_the_cause_once_the_others_rebalance() -> None:
    """b-1 was last heard at 9 s; its session of 10 s ends at 19 s; a-1 is told at 22 s. No line says that b-1 expired."""
    story = stable_group().beats(["a-1", "b-1"], 1, 3_500, 9_000)
    story.at(9_000).heartbeat("b-1", 1, took=0)
    story.beats(["a-1"], 1, 9_500, 19_000)
    story.at(22_000).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(22_010).join("a-1", 2, "a-1", ["a-1"])
    story.at(22_015).sync("a-1", 2, {"a-1": ("t-0",)})
    rows = story.rows()
    rebalance = table(rows, "rebalances")[1]
    assert (rebalance["started_at"], rebalance["cause"], rebalance["member_id"]) == (19_000, "SESSION_TIMEOUT", "b-1")
    (session,) = table(rows, "member_sessions")
    assert (session["end_kind"], session["ended_at"], session["longest_gap_ms"]) == ("SESSION_TIMEOUT", 19_000, 3_000)


def test_silence_is_claimed_when_the_broker_is_heard_again() -> None:
    """Every member dies at once: nobody is left to be told of the rebalance, only the broker's other lines go on."""
    story = stable_group().beats(["a-1", "b-1"], 1, 4_000, 20_000)
    rows = story.rows(until=60_000)
    assert [(f["code"], f["member_id"]) for f in table(rows, "findings")] == [("SESSION_TIMEOUT", "a-1"), ("SESSION_TIMEOUT", "b-1")]
    emptied = table(rows, "rebalances")[1]
    assert (emptied["outcome"], emptied["generation"], emptied["members_after"]) == ("EMPTIED", 2, 0)


def test_a_log_cut_short_expires_nobody() -> None:
    story = stable_group().beats(["a-1", "b-1"], 1, 4_000, 20_000)
    rows = story.rows(until=20_000)
    assert table(rows, "findings") == []
    assert len(table(rows, "rebalances")) == 1


def test_a_broker_that_was_down_expires_nobody() -> None:
    """The broker's log is silent from 20 s to 90 s: it may not have lived when the sessions would have ended."""
    story = stable_group().beats(["a-1", "b-1"], 1, 4_000, 20_000)
    clock = story.heard(until=90_000)[0]
    base = clock.received_ms // 1_000
    heard = (0, 19, 90, (START_MS + 90_000) // 1_000 - base)
    rows = play([[*story.events, clock._replace(beats=heard)]])
    assert table(rows, "findings") == []


def test_another_brokers_clock_expires_nobody() -> None:
    story = stable_group().beats(["a-1", "b-1"], 1, 4_000, 20_000)
    other = Story(group="payments", broker="broker-2").beats(["x-1"], 5, 0, 300_000)
    story.events += other.events
    rows = story.rows(until=None)
    assert [f for f in table(rows, "findings") if f["group_id"] == "orders"] == []


def test_no_expiry_is_claimed_while_the_others_are_told_that_all_is_well() -> None:
    """b-1's heartbeats are missing from the log, but the group stays stable: they were lost, not b-1. That is all that is told."""
    story = stable_group().beats(["a-1"], 1, 4_000, 90_000)
    rows = story.rows(settings=TrackerSettings(kafka_version="4.2.0"))
    assert [finding["code"] for finding in table(rows, "findings")] == ["MODEL_DIVERGENCE"]
    assert table(rows, "member_sessions") == []
    assert len(table(rows, "rebalances")) == 1


def test_a_join_that_waits_longer_than_its_session_is_not_an_expiry() -> None:
    """No session runs out while a JoinGroup is parked, and only its answer, 25 s later, shows that it was."""
    story = stable_group().beats(["a-1", "b-1"], 1, 4_000, 20_000)
    story.at(19_990).id_issued("c-1")
    story.at(20_001).heartbeat("b-1", 1, Error.REBALANCE_IN_PROGRESS)
    for ms in range(20_002, 44_900, 3_000):
        story.at(ms).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(45_000).join("b-1", 2, "a-1", waited=24_900)
    story.at(45_000).join("a-1", 2, "a-1", ["a-1", "b-1", "c-1"], waited=100)
    story.at(45_001).join("c-1", 2, "a-1", waited=25_010)
    story.at(45_010).sync("a-1", 2, {"a-1": ("t-0",), "b-1": ("t-1",), "c-1": ("t-2",)})
    rows = story.rows(until=50_000)
    assert [(finding["code"], finding["member_id"]) for finding in table(rows, "findings")] == [("SLOW_JOINER", "a-1")]
    rebalance = table(rows, "rebalances")[1]
    assert (rebalance["started_at"], rebalance["cause"], rebalance["member_id"]) == (19_991, "MEMBER_JOINED", "c-1")
    assert rebalance["slowest_member_id"] == "a-1"


def test_a_member_that_does_not_rejoin_in_time() -> None:
    story = stable_group().beats(["a-1", "b-1"], 1, 4_000, 20_000)
    story.at(20_500).heartbeat("b-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.beats(["b-1"], 1, 23_000, 23_001)
    for ms in range(21_000, 50_000, 3_000):
        story.at(ms).heartbeat("b-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(50_400).join("c-1", 2, "a-1", waited=30_200)
    story.at(50_400).join("a-1", 2, "a-1", ["a-1", "c-1"], waited=29_000)
    story.at(50_410).sync("a-1", 2, {"a-1": ("t-0",), "c-1": ("t-1",)})
    rows = story.rows()
    (session,) = table(rows, "member_sessions")
    assert (session["member_id"], session["end_kind"], session["ended_at"]) == ("b-1", "JOIN_TIMEOUT", 50_400)


def test_cooperative_members_pay_only_for_what_they_give_up() -> None:
    story = stable_group().beats(["a-1", "b-1"], 1, 4_000, 20_000)
    kept = {"a-1": ("t-0", "t-1", "t-2"), "b-1": ("t-3", "t-4", "t-5")}
    story.at(20_100).join("c-1", 2, "a-1", waited=100)
    story.at(20_100).join("b-1", 2, "a-1", owned=kept["b-1"], waited=10)
    story.at(20_100).join("a-1", 2, "a-1", ["a-1", "b-1", "c-1"], owned=kept["a-1"], waited=20)
    story.at(20_110).sync("a-1", 2, {"a-1": ("t-0", "t-1"), "b-1": ("t-3", "t-4"), "c-1": ()})
    rebalance = table(story.rows(), "rebalances")[1]
    assert (rebalance["partitions"], rebalance["partitions_moved"], rebalance["unavailable_partition_ms"]) == (4, 0, 0)


def test_eager_members_stop_all_their_partitions() -> None:
    story = stable_group().beats(["a-1", "b-1"], 1, 4_000, 20_000)
    story.at(21_000).join("c-1", 2, "a-1", waited=1_000)
    story.at(21_000).join("b-1", 2, "a-1", waited=100)
    story.at(21_000).join("a-1", 2, "a-1", ["a-1", "b-1", "c-1"], waited=200)
    story.at(21_010).sync("a-1", 2, {"a-1": ("t-0", "t-1"), "b-1": ("t-3", "t-4"), "c-1": ("t-2", "t-5")})
    rebalance = table(story.rows(), "rebalances")[1]
    assert rebalance["partitions_moved"] == 2
    # a-1 stopped three partitions at 20.8 s, b-1 three at 20.9 s; the assignment came at 21.009 s.
    assert rebalance["unavailable_partition_ms"] == 3 * 209 + 3 * 109


def test_a_zombie_comes_back() -> None:
    story = stable_group().beats(["a-1", "b-1"], 1, 3_500, 9_000)
    story.beats(["a-1"], 1, 9_500, 16_000)
    story.at(18_500).heartbeat("a-1", 1, Error.REBALANCE_IN_PROGRESS)
    story.at(18_510).join("a-1", 2, "a-1", ["a-1"])
    story.at(18_515).sync("a-1", 2, {"a-1": ("t-0",)}).beats(["a-1"], 2, 20_000, 45_000)
    story.at(40_000).commit("b-1", 1, Error.UNKNOWN_MEMBER_ID)
    story.at(40_001).heartbeat("b-1", 1, Error.UNKNOWN_MEMBER_ID)
    story.at(43_001).heartbeat("b-1", 1, Error.UNKNOWN_MEMBER_ID)
    codes = [(f["code"], f["occurred_at"]) for f in table(story.rows(), "findings")]
    assert codes == [("SESSION_TIMEOUT", 16_499), ("ZOMBIE_COMMIT", 40_000), ("UNKNOWN_MEMBER", 40_000)]


def test_the_last_words_of_a_client_that_left_are_no_finding() -> None:
    story = stable_group().beats(["a-1", "b-1"], 1, 4_000, 20_000)
    story.at(20_005).leave("b-1", "the consumer is being closed")
    story.at(20_050).heartbeat("b-1", 1, Error.UNKNOWN_MEMBER_ID)
    assert table(story.rows(), "findings") == []


def test_an_operator_who_resets_offsets_is_no_zombie() -> None:
    """kafka-consumer-groups --reset-offsets commits without a member id; the group has members, so it is refused."""
    story = stable_group().at(5_000).commit("", -1, Error.UNKNOWN_MEMBER_ID)
    assert table(story.rows(), "findings") == []


def test_a_static_member_that_returns_under_a_new_id_causes_no_rebalance() -> None:
    story = stable_group()
    story.events = [e._replace(instance_id="inst-" + e.client_id) if e.source == "request" else e for e in story.events]
    story.at(9_000).join("b-2", 1, "a-1", asked_as="", instance_id="inst-b")
    story.at(9_010).sync("b-2", 1, {"b-2": ("t-3",)}, instance_id="inst-b")
    rows = story.rows()
    assert len(table(rows, "rebalances")) == 1
    (session,) = table(rows, "member_sessions")
    assert (session["member_id"], session["end_kind"]) == ("b-1", "REPLACED")


def test_a_group_first_seen_in_the_middle_gives_no_false_alarm() -> None:
    story = Story().beats(["a-1", "b-1"], 17, 0, 30_000)
    rows = story.rows(until=31_000)
    assert rows == []


def test_the_log_speaks_where_both_do() -> None:
    """With the coordinator's log at hand nothing is inferred: its times are taken, its causes are believed."""
    story = stable_group()
    story.at(98).log_preparing(0, "Adding new member a-1 with group instance id null; client reason: not provided", "a-1")
    story.at(2_999).log_stabilized(1, 2)
    story.at(3_008).log_assignment(1, "a-1", 2)
    (rebalance,) = table(story.rows(settings=TrackerSettings()), "rebalances")
    assert (rebalance["started_at"], rebalance["joined_at"], rebalance["ended_at"]) == (98, 2_999, 3_008)
    assert (rebalance["client_id"], rebalance["partitions"]) == ("a", 6)


def test_a_damaged_copy_of_a_request_is_passed_over() -> None:
    """A connection numbers its requests: what claims to be the same one, and says something else, is damage."""
    story = stable_group()
    leader = next(e for e in story.events if e.kind == kinds.SYNC_GROUP and len(e.assignments) == 2)
    intact = leader._replace(connection="c-1", correlation_id=9)
    damaged = intact._replace(position=99, assignments=(*intact.assignments[:1], intact.assignments[1]._replace(partitions=("t-9",))))
    story.events = [intact if e is leader else e for e in story.events] + [damaged]
    (rebalance,) = table(story.rows(), "rebalances")
    assert rebalance["partitions"] == 6
