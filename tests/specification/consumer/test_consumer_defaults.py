"""Settings that nobody set, and fields that nobody sent."""

from dataclasses import astuple

from coordinator_model.errors import Error
from coordinator_model.specification.consumer.config import ConsumerGroupConfig, GroupOverrides, MigrationPolicy
from coordinator_model.specification.consumer.requests import ConsumerGroupHeartbeatAnswer, OffsetFetch, OffsetFetchAnswer
from tests.specification.consumer.small_consumer_groups import SmallGroup, beat, joining, of_a


def test_the_settings_of_a_broker_are_those_of_kafka_4_2():
    config = ConsumerGroupConfig()
    assert (config.session_timeout_ms, config.heartbeat_interval_ms, config.max_size) == (45_000, 5_000, 2_147_483_647)
    assert (config.assignors, config.migration_policy) == (("uniform", "range"), MigrationPolicy.BIDIRECTIONAL)
    assert config.regex_refresh_interval_ms == 600_000
    assert config.classic.version.name == "4.2.0"
    assert astuple(GroupOverrides()) == (None, None, None)


def test_kafka_4_3_has_an_assignment_interval():
    config = ConsumerGroupConfig.of("4.3.0")
    assert (config.assignment_interval_ms, config.min_assignment_interval_ms, config.max_assignment_interval_ms) == (1_000, 0, 15_000)
    assert config.version.name == "4.3.0"


def test_an_answer_says_no_more_than_it_has_to():
    group = SmallGroup()
    assert group.ask(joining("m")) == ConsumerGroupHeartbeatAnswer(Error.NONE, "m", 1, 5_000, of_a(0, 1, 2, 3), None)
    assert group.ask(beat("m", 1)) == ConsumerGroupHeartbeatAnswer(Error.NONE, "m", 1, 5_000, None, None)
    message = "Member n is not a member of group g."
    assert group.ask(beat("n", 1)) == ConsumerGroupHeartbeatAnswer(Error.UNKNOWN_MEMBER_ID, None, 0, 0, None, message)
    assert group.ask(beat("m", -1)) == ConsumerGroupHeartbeatAnswer(Error.NONE, "m", -1, 0, None, None)
    assert group.ask(OffsetFetch("n", 1, "a", 0)) == OffsetFetchAnswer(Error.UNKNOWN_MEMBER_ID, -1)
