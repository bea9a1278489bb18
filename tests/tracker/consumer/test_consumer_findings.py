"""What is reported about members of the consumer protocol (KIP-848), by protocol transcripts."""

import json

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from tests.tracker.consumer.consumer_story import ALL, HALF, OTHER, TOPICS, ConsumerStory, told
from tests.tracker.consumer.test_episodes import two


def alone(*, instance: str = "", until: int = 20_000) -> ConsumerStory:
    """One member, which sends a heartbeat each 5 s."""
    story = ConsumerStory().at(0).joins("a-1", 1, instance_id=instance).at(5).beat("a-1", 0, 1, ALL, TOPICS, instance_id=instance)
    for ms in range(5_000, until + 1, 5_000):
        story.at(ms).beat("a-1", 1, 1, instance_id=instance)
    return story


def codes(story: ConsumerStory) -> list[tuple[object, ...]]:
    return told(story.rows(), "findings", "code", "member_id")


def details(story: ConsumerStory) -> list[dict[str, object]]:
    return [json.loads(row[0]) for row in told(story.rows(), "findings", "details")]


def commit(story: ConsumerStory, member: str, epoch: int, error: int, kind: str = kinds.OFFSET_COMMIT) -> ConsumerStory:
    story.request(kind, member, generation=epoch, error_code=error)
    return story


# Silence


def test_a_member_that_was_silent_for_most_of_the_default_timeout_is_reported_once():
    story = alone().at(58_000).beat("a-1", 1, 1).at(98_000).beat("a-1", 1, 1)
    assert codes(story) == [("HEARTBEAT_NEAR_MISS", "a-1")]
    assert details(story) == [{"session_timeout_ms": 45_000, "session_timeout_seen": False, "silent_ms": 38_000}]
    assert told(story.rows(), "findings", "message")[0][0] == ("The member was silent for 38 s; the session timeout is 45 s by default.")


@pytest.mark.parametrize("silent_ms", [30_000, 46_000])
def test_a_shorter_silence_and_one_that_shows_a_longer_timeout_are_no_near_miss(silent_ms):
    assert codes(alone().at(20_000 + silent_ms).beat("a-1", 1, 1)) == []


def held_up() -> ConsumerStory:
    """The coordinator cannot write: a heartbeat of a-1 hangs for 5 s, and no other of it is read. Then its session ends."""
    story = (
        alone().at(30_000).request(kinds.CONSUMER_GROUP_HEARTBEAT, "a-1", 5_000, generation=1, error_code=Error.COORDINATOR_NOT_AVAILABLE)
    )
    return story.at(65_000).line(kinds.EXPIRED, "a-1").raised(2)


def test_a_member_that_expires_because_its_coordinator_was_held_up_is_lost_to_that():
    story = held_up().at(66_000).joins("a-1", 3).at(66_005).beat("a-1", 0, 3, ALL, TOPICS)
    assert codes(story) == [("COORDINATOR_MOVED", None)]
    assert details(story)[0]["members_lost"] == ["a-1"]


def test_one_that_does_not_come_back_may_as_well_have_died():
    assert codes(held_up()) == [("SESSION_TIMEOUT", "a-1")]


@pytest.mark.parametrize("group_type", [kinds.SHARE, kinds.STREAMS])
def test_a_setting_is_that_of_its_type_of_group(group_type):
    """A share group has share.session.timeout.ms, a streams group streams.session.timeout.ms."""
    story = ConsumerStory().at(0).line(kinds.JOINED, "a-1", protocol_type=group_type).raised(1).computed(1).line(kinds.JOINED, "b-1")
    story.at(62_600).request(kinds.OFFSET_COMMIT, "b-1", 5_000, generation=1, error_code=Error.COORDINATOR_NOT_AVAILABLE)
    rows = story.at(65_000).line(kinds.EXPIRED, "a-1").raised(2).at(66_000).joins("a-1", 3).rows()
    (advice,) = [text for code, text in told(rows, "findings", "code", "advice") if code == "COORDINATOR_MOVED"]
    assert f"Raise {group_type}.session.timeout.ms of the group: it was too short" in advice


def test_who_is_silent_while_its_coordinator_is_held_up_did_not_nearly_lose_its_session():
    story = alone().at(55_000).request(kinds.OFFSET_COMMIT, "b-1", 4_000, generation=1).at(58_000).beat("a-1", 1, 1)
    assert codes(story) == []


def test_a_move_is_told_though_it_costs_no_member():
    """Members of the consumer protocol keep their epoch, and the group does not rebalance; but it had no coordinator for a while."""
    story = alone().on("broker-2").at(26_000).line(kinds.READ_BACK, member_count=1)
    story.at(27_000).line(kinds.TARGET_COMPUTED, generation=1)
    assert codes(story.at(28_000).beat("a-1", 1, 1)) == [("COORDINATOR_MOVED", None)]


def test_a_group_that_survived_a_longer_silence_has_a_longer_timeout():
    assert codes(alone().at(70_000).beat("a-1", 1, 1).at(110_000).beat("a-1", 1, 1)) == []


def test_a_session_that_ended_shows_the_timeout_of_the_group():
    story = ConsumerStory().at(0).joins("a-1", 1).at(5).beat("a-1", 0, 1, ALL, TOPICS)
    story.at(1_000).joins("b-1", 2).at(1_005).beat("b-1", 0, 2, (), TOPICS).at(2_000).beat("a-1", 1, 1, HALF).at(2_100).beat("a-1", 1, 2)
    story.at(3_000).beat("b-1", 2, 2, OTHER).at(6_000).beat("a-1", 2, 2).at(9_000).beat("a-1", 2, 2)
    story.at(12_000).line(kinds.EXPIRED, "b-1").raised(3).at(12_500).computed(3).beat("a-1", 2, 3, ALL)
    story.at(20_500).beat("a-1", 3, 3)
    assert codes(story) == [("SESSION_TIMEOUT", "b-1"), ("HEARTBEAT_NEAR_MISS", "a-1")]
    assert details(story)[1] == {"session_timeout_ms": 9_001, "session_timeout_seen": True, "silent_ms": 8_000}


@pytest.mark.parametrize("between", ["refused", "moved"])
def test_a_member_that_was_heard_meanwhile_was_not_silent(between):
    story = alone()
    if between == "refused":
        story.at(40_000).refused("a-1", 1, Error.COORDINATOR_LOAD_IN_PROGRESS)
    else:
        story.at(40_000).line(kinds.READ_BACK, member_count=1)
    assert codes(story.at(58_000).beat("a-1", 1, 1)) == []


def test_a_client_of_the_classic_protocol_that_the_coordinator_refuses_is_reported_once():
    """Brokers of 4.2.2, 4.3.1 and 4.4.0 refuse it where `group.consumer.migration.policy` is disabled."""
    story = alone()
    for ms in (20_100, 20_200):
        story.at(ms).line(kinds.REFUSED).request(kinds.JOIN_GROUP, "", error_code=Error.INCONSISTENT_GROUP_PROTOCOL, client_id="b")
    assert told(story.rows(), "findings", "code", "client_id") == [("INCONSISTENT_PROTOCOL", "b")]


def test_without_requests_the_coordinators_line_shows_that_a_client_was_refused():
    story = ConsumerStory().at(0).joins("a-1", 1).at(20_000).line(kinds.REFUSED).at(21_000).line(kinds.REFUSED)
    assert told(story.rows(), "findings", "code", "client_id") == [("INCONSISTENT_PROTOCOL", None)]
    assert "group.consumer.migration.policy is disabled" in told(story.rows(), "findings", "message")[0][0]


# Static members


def away(story: ConsumerStory, ms: int) -> ConsumerStory:
    story.at(ms).line(kinds.AWAY, "a-1", instance_id="i-1").at(ms + 1).beat("a-1", -2, -2, instance_id="i-1")
    return story


@pytest.mark.parametrize(("back_ms", "reported"), [(34_000, False), (36_000, True)])
def test_a_static_member_that_was_away_for_long_is_reported_when_it_is_back(back_ms, reported):
    story = away(alone(instance="i-1"), 20_500).at(back_ms).line(kinds.RETURNED, "a-1", instance_id="i-1", answer_member_id="a-2")
    story.at(back_ms + 2).beat("a-2", 0, 1, ALL, TOPICS, instance_id="i-1")
    assert codes(story) == ([("STATIC_MEMBER_AWAY", "a-1")] if reported else [])
    if reported:
        assert details(story) == [{"away_ms": 15_500, "came_back": True, "instance_id": "i-1", "partitions": 2}]


def test_a_static_member_that_does_not_come_back_did_not_stop_by_accident():
    story = away(alone(instance="i-1"), 20_500).at(65_000).line(kinds.EXPIRED, "a-1").raised(2)
    assert codes(story) == [("STATIC_MEMBER_AWAY", "a-1")]
    assert details(story) == [{"away_ms": 44_500, "came_back": None, "instance_id": "i-1", "partitions": 2, "unheard_ms": 45_001}]
    (advice,) = told(story.rows(), "findings", "advice")[0]
    assert "raise the session timeout above the time that it takes, more than 45 s: consumer.session.timeout.ms" in advice
    assert "It was not back when its session ended, 44.5 s later. Partitions" in told(story.rows(), "findings", "message")[0][0]


def test_a_static_member_that_leaves_amid_a_revocation_has_given_the_partitions_up():
    story = alone(instance="i-1").at(21_000).joins("b-1", 2).at(21_005).beat("b-1", 0, 2, (), TOPICS)
    story.at(22_000).beat("a-1", 1, 1, HALF, instance_id="i-1")
    away(story, 23_000).at(24_000).beat("b-1", 2, 2, OTHER)
    story.at(25_000).line(kinds.RETURNED, "a-1", instance_id="i-1", answer_member_id="a-2")
    story.at(25_002).beat("a-2", 0, 2, HALF, TOPICS, instance_id="i-1").at(40_000).beat("a-2", 2, 2).beat("b-1", 2, 2)
    rows = story.rows()
    (text,) = told(rows, "rebalance_rounds", "revocations")[-1]
    assert [(one["member_id"], one["end"], one["ended_at"] - one["told_at"]) for one in json.loads(text)] == [("a-1", "AWAY", 1_000)]
    assert told(rows, "rebalances", "unavailable_partition_ms")[-1] == (1_000,)


# Commits


def test_a_commit_that_crosses_a_new_epoch_is_no_finding():
    story = alone().at(21_000).raised(2).computed(2).at(21_002).beat("a-1", 1, 2, None, ("orders", "x"), took=5)
    assert codes(commit(story.at(21_500), "a-1", 1, Error.STALE_MEMBER_EPOCH)) == []


@pytest.mark.parametrize(
    ("kind", "error"), [(kinds.OFFSET_COMMIT, Error.STALE_MEMBER_EPOCH), (kinds.TXN_OFFSET_COMMIT, Error.ILLEGAL_GENERATION)]
)
def test_a_commit_long_after_the_new_epoch_is_reported(kind, error):
    story = alone().at(21_000).raised(2).computed(2).at(21_002).beat("a-1", 1, 2, None, ("orders", "x"), took=5)
    commit(commit(story.at(30_000), "a-1", 1, error, kind).at(31_000), "a-1", 1, error, kind)
    assert codes(story) == [("STALE_COMMIT", "a-1")]
    assert details(story) == [{"after_ms": 8_997, "epoch": 2, "sent_epoch": 1}]


def test_a_commit_of_a_static_member_that_left_for_a_while_is_reported():
    story = commit(away(alone(instance="i-1"), 20_500).at(27_000), "a-1", 1, Error.STALE_MEMBER_EPOCH)
    assert codes(story) == [("STALE_COMMIT", "a-1")]
    assert "it had left temporarily (epoch -2) 6.5 s before" in told(story.rows(), "findings", "message")[0][0]


def test_a_commit_of_a_member_that_was_removed_is_a_zombies():
    story = alone().at(65_000).line(kinds.EXPIRED, "a-1").raised(2).at(70_000)
    assert sorted(codes(commit(story, "a-1", 1, Error.UNKNOWN_MEMBER_ID))) == [("SESSION_TIMEOUT", "a-1"), ("ZOMBIE_COMMIT", "a-1")]


def test_a_zombie_that_repeats_its_commit_is_reported_once():
    story = alone().at(65_000).line(kinds.EXPIRED, "a-1").raised(2).at(70_000)
    commit(commit(story, "a-1", 1, Error.UNKNOWN_MEMBER_ID).at(71_000), "a-1", 1, Error.UNKNOWN_MEMBER_ID)
    assert sorted(code for code, _ in codes(story)) == ["SESSION_TIMEOUT", "ZOMBIE_COMMIT"]


@pytest.mark.parametrize("loads", [False, True])
def test_a_client_that_comes_back_is_told_how_long_it_was_silent(loads):
    """Until its first request that is refused. A coordinator that has just read the group back does not know."""
    story = alone().at(65_000).line(kinds.EXPIRED, "a-1").raised(2)
    if loads:
        story.at(66_000).line(kinds.READ_BACK)
    rows = commit(story.at(70_000).refused("a-1", 1, Error.UNKNOWN_MEMBER_ID).at(90_000), "a-1", 1, Error.UNKNOWN_MEMBER_ID).rows()
    advice = dict(told(rows, "findings", "code", "advice"))
    for code in ("UNKNOWN_MEMBER", "ZOMBIE_COMMIT"):
        assert ("The process was silent for 50 s" in advice[code]) is not loads
        assert ("above 50 s: consumer.session" in advice[code]) is not loads
        assert "a poll loop that stalled" not in advice[code]


@pytest.mark.parametrize(
    ("member", "error"), [("a-1", Error.ILLEGAL_GENERATION), ("a-1", Error.GROUP_ID_NOT_FOUND), ("x-1", Error.STALE_MEMBER_EPOCH)]
)
def test_other_refused_commits_show_no_zombie(member, error):
    assert codes(commit(alone().at(40_000), member, 0, error)) == []


def test_the_last_commit_of_a_member_that_leaves_is_no_finding():
    story = alone().at(21_000).line(kinds.DEPARTED, "a-1").raised(2).at(22_000)
    assert codes(commit(story, "a-1", 1, Error.UNKNOWN_MEMBER_ID)) == []


# Subscriptions


def test_an_expression_that_matches_nothing_is_reported_once_its_resolution_is_over():
    story = ConsumerStory().at(0).line(kinds.JOINED, "a-1").raised(1).computed(1).at(5).beat("a-1", 0, 1, (), subscribed_regex="ordres.*")
    story.at(10).line(kinds.REGEX_RESOLVED)
    for ms in range(5_000, 30_000, 5_000):
        story.at(ms).beat("a-1", 1, 1)
    assert codes(story) == [("REGEX_WITHOUT_TOPICS", None)]
    assert "(ordres.*), and nobody has had a partition for 20 s" in told(story.rows(), "findings", "message")[0][0]


@pytest.mark.parametrize("other", [{"topics": TOPICS}, {"partitions": ALL}])
def test_who_has_topics_or_partitions_keeps_an_expression_from_being_blamed(other):
    story = ConsumerStory().at(0).joins("a-1", 1).at(5).beat("a-1", 0, 1, (), subscribed_regex="ordres.*")
    story.at(100).joins("b-1", 2).at(105).beat("b-1", 0, 2, other.get("partitions", ()), other.get("topics"), subscribed_regex="a.*")
    for ms in range(5_000, 30_000, 5_000):
        story.at(ms).beat("a-1", 1 if ms == 5_000 else 2, 2).beat("b-1", 2, 2)
    assert codes(story) == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Error.GROUP_MAX_SIZE_REACHED, "GROUP_TOO_LARGE"),
        (Error.UNSUPPORTED_ASSIGNOR, "UNSUPPORTED_ASSIGNOR"),
        (Error.INVALID_REGULAR_EXPRESSION, "INVALID_REGEX"),
    ],
)
def test_a_client_that_cannot_join_is_reported_once(error, code):
    story = alone()
    for ms in (20_100, 20_200):
        story.at(ms).request(kinds.CONSUMER_GROUP_HEARTBEAT, "b-1", generation=0, error_code=error, subscribed_regex="(")
    assert told(story.rows(), "findings", "code", "client_id") == [(code, "b")]


def test_a_rolling_restart_names_the_clients_since_member_ids_do_not():
    story, epoch = ConsumerStory().at(0), 0

    def joins(member, at_ms):
        story.at(at_ms).joins(member, epoch).at(at_ms + 10).beat(member, 0, epoch, (), ("orders",))
        for other in sorted(present):
            story.at(at_ms + 20).beat(other, epoch - 1, epoch)
        present.add(member)

    present = set()
    for number, member in enumerate(("a-1", "b-1", "c-1")):
        epoch += 1
        joins(member, number * 1_000)
    for number, name in enumerate("abc"):
        at_ms = 100_000 + number * 10_000
        story.at(at_ms).line(kinds.DEPARTED, f"{name}-1").raised(epoch + 1).computed(epoch + 1).at(at_ms + 5).beat(f"{name}-1", -1, -1)
        present.remove(f"{name}-1")
        for other in sorted(present):
            story.at(at_ms + 20).beat(other, epoch, epoch + 1)
        epoch += 2
        joins(f"{name}-2", at_ms + 3_000)
    rows = story.at(200_000).line(kinds.READ_BACK, member_count=3).rows()
    (details,) = [json.loads(text) for code, text in told(rows, "findings", "code", "details") if code == "ROLLING_RESTART"]
    assert (details["restarted"], details["clients"]) == (["a-1", "b-1", "c-1"], ["a", "b", "c"])


def test_advice_on_rolling_restarts_names_the_settings_of_the_protocol():
    story, epoch = ConsumerStory().at(0), 0
    for number, member in enumerate(("a-1", "b-1", "c-1")):
        epoch += 1
        story.at(number * 100).joins(member, epoch)
    for number, member in enumerate(("a", "b", "c")):
        at_ms = 100_000 + number * 10_000
        story.at(at_ms).line(kinds.DEPARTED, f"{member}-1").raised(epoch + 1)
        story.at(at_ms + 3_000).joins(f"{member}-2", epoch + 2)
        epoch += 2
    rows = story.at(200_000).line(kinds.READ_BACK, member_count=3).rows()
    ((code, advice),) = told(rows, "findings", "code", "advice")
    assert (code, "epoch -2" in advice) == ("ROLLING_RESTART", True)
    assert "consumer.session.timeout.ms" in advice


# a process that stands still, or only a poll loop


def told_to_revoke(*, beats: bool) -> ConsumerStory:
    """c-1 joins at 20 s; a-1 is told at 21 s to give t-1 up, and does not. `beats`: its heartbeats go on, as in a stalled poll loop."""
    story = alone().at(20_000).joins("c-1", 2).at(20_005).beat("c-1", 0, 2, (), TOPICS).at(21_000).beat("a-1", 1, 1, HALF)
    for ms in range(25_000, 50_000, 5_000):
        story.at(ms).beat("c-1", 2, 2)
        if beats:
            story.at(ms + 1_000).beat("a-1", 1, 1)
    return story


@pytest.mark.parametrize(("beats", "advice"), [(True, "shorten the work between two polls"), (False, "Its heartbeats stopped too")])
def test_a_member_that_was_removed_for_not_giving_partitions_up_stood_still_or_stalled(beats, advice):
    story = told_to_revoke(beats=beats).at(51_000).line(kinds.STUCK, "a-1", rebalance_timeout_ms=30_000).raised(3)
    assert codes(story) == [("REBALANCE_TIMEOUT", "a-1")]
    assert advice in told(story.rows(), "findings", "advice")[0][0]


@pytest.mark.parametrize(("beats", "advice"), [(True, "Shorten the work between two polls"), (False, "Its heartbeats stopped too")])
def test_a_member_that_gives_partitions_up_late_stood_still_or_stalled(beats, advice):
    story = told_to_revoke(beats=beats).at(50_000).beat("a-1", 1, 2).at(51_000).beat("c-1", 2, 2, OTHER)
    assert codes(story) == [("STUCK_RECONCILING", "a-1")]
    assert advice in told(story.rows(), "findings", "advice")[0][0]


def test_where_no_heartbeat_is_seen_either_may_be():
    story = ConsumerStory().at(0).line(kinds.STUCK, "a-1", rebalance_timeout_ms=30_000).raised(3)
    assert "Its process, or only its poll loop, stopped." in told(story.rows(), "findings", "advice")[0][0]


def test_a_member_that_was_removed_for_its_revocation_is_not_told_to_have_a_longer_session():
    story = told_to_revoke(beats=False).at(51_000).line(kinds.STUCK, "a-1", rebalance_timeout_ms=30_000).raised(3)
    rows = story.at(60_000).refused("a-1", 1, Error.UNKNOWN_MEMBER_ID).rows()
    (advice,) = [advice for code, advice in told(rows, "findings", "code", "advice") if code == "UNKNOWN_MEMBER"]
    assert ("Its heartbeats stopped too" in advice, "session timeout" in advice, "max.poll" in advice) == (True, False, False)


def test_a_transactional_producer_of_a_removed_member_is_advised_for_its_transactions():
    story = alone().at(61_000).line(kinds.EXPIRED, "a-1").raised(2).at(62_000)
    story.request(kinds.TXN_OFFSET_COMMIT, "a-1", generation=1, error_code=Error.UNKNOWN_MEMBER_ID)
    (advice,) = [advice for code, advice in told(story.rows(), "findings", "code", "advice") if code == "ZOMBIE_COMMIT"]
    assert ("sendOffsetsToTransaction()" in advice, "idempotent" in advice) == (True, False)


@pytest.mark.parametrize(("instance", "closes"), [("", True), ("i-a", False)])
def test_a_static_member_says_that_it_leaves_for_a_while_when_it_is_closed(instance, closes):
    story = alone(instance=instance).at(66_000).line(kinds.EXPIRED, "a-1").raised(2)
    ((code, advice),) = told(story.rows(), "findings", "code", "advice")
    assert (code, "all close()" in advice) == ("SESSION_TIMEOUT", closes)


@pytest.mark.parametrize("is_followed", [False, True])
def test_a_client_whose_protocol_the_broker_does_not_have_is_reported_once(is_followed):
    story = alone() if is_followed else ConsumerStory().at(0)
    story.at(20_000).refused("x-1", 0, Error.UNSUPPORTED_VERSION).at(25_000).refused("x-1", 0, Error.UNSUPPORTED_VERSION)
    rows = story.rows()
    assert told(rows, "findings", "code", "client_id") == [("INCONSISTENT_PROTOCOL", "x")]
    assert "UNSUPPORTED_VERSION" in told(rows, "findings", "message")[0][0]
    assert is_followed or told(rows, "group_transitions", "to_state") == []


def test_who_held_its_partitions_until_the_rebalance_timeout_was_the_slowest_and_polls_too_seldom():
    story = (
        two().at(20_000).joins("c-1", 3).at(20_005).beat("c-1", 0, 3, (), TOPICS).at(20_500).beat("b-1", 2, 3, rebalance_timeout_ms=20_000)
    )
    story.at(21_000).beat("a-1", 2, 2, (), rebalance_timeout_ms=20_000).at(24_000).beat("a-1", 2, 2)
    story.at(41_000).line(kinds.STUCK, "a-1", rebalance_timeout_ms=20_000).raised(4).at(41_500).computed(4).beat("b-1", 3, 4)
    story.at(42_000).beat("c-1", 3, 4, ("t-0",)).at(44_000).refused("a-1", 2, Error.UNKNOWN_MEMBER_ID)
    rows = story.rows()
    assert told(rows, "rebalances", "slowest_member_id", "unavailable_partition_ms")[-1] == ("a-1", 1_000)
    findings = dict(told(rows, "findings", "code", "advice"))
    assert set(findings) == {"REBALANCE_TIMEOUT", "UNKNOWN_MEMBER"}
    assert "session timeout" not in findings["UNKNOWN_MEMBER"]
    assert "max.poll.interval.ms (now 20 s)." in findings["UNKNOWN_MEMBER"]


def test_the_coordinators_log_alone_says_how_long_it_waited_for_a_member_that_gave_nothing_up():
    story = ConsumerStory().at(0).joins("a-1", 1).at(10_000).joins("b-1", 2)
    rows = story.at(12_000).line(kinds.STUCK, "a-1", rebalance_timeout_ms=6_000).raised(3).at(13_000).computed(3).rows()
    assert told(rows, "rebalances", "cause", "slowest_member_id")[1:] == [("MEMBER_JOINED", "a-1")]


def test_a_client_that_left_and_runs_on_is_not_told_to_raise_its_session_timeout():
    story = two().at(20_000).line(kinds.DEPARTED, "b-1").raised(3).at(21_000).computed(3).beat("a-1", 2, 3, ALL)
    rows = story.at(60_000).refused("b-1", 2, Error.UNKNOWN_MEMBER_ID).rows()
    (advice,) = (advice for code, advice in told(rows, "findings", "code", "advice") if code == "UNKNOWN_MEMBER")
    assert "session timeout" not in advice
