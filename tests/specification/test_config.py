"""Releases and their switches: which release changed what, written down a second time."""

from dataclasses import fields, replace

import pytest

from coordinator_model.errors import Error
from coordinator_model.specification.config import CoordinatorConfig, HashMapKind, KafkaVersion
from coordinator_model.specification.releases import is_known, is_newer

# A release, the last one before it, and the switches that come (+) and go (-) with it.
CHANGES = """
0.10.0 0.9.0.1  +commit_restarts_session
0.10.1 0.10.0.1 +empty_state +own_rebalance_timeout +commit_creates_group -parked_sync_restarts_session -heartbeat_needs_stable
0.11.0 0.10.2.2 +initial_rebalance_delay
1.0    0.11.0.3 +empty_protocols_refused +dropped_member_session_closed
1.1    1.0.2    +delete_groups +stored_empty_group_keeps_protocol_type
2.0    1.1.1    +group_id_checked_by_every_api +loading_checked_before_ownership
2.1    2.0.1    +leave_answers_parked_join +offsets_expire_with_group
2.1.1  2.1.0    +new_member_timeout +one_session_timer_per_member
2.2    2.1.1    +join_errors_with_generation_minus_one +member_id_required +size_limit
2.3    2.2.2    +dead_is_coordinator_not_available +static_members -commit_while_completing_refused_first
2.4    2.3.1    +batched_leave
2.5    2.4.1    +static_restart_is_stored +protocol_type_on_the_wire
2.6    2.5.1    +size_limit_counts_rejoined +heartbeat_while_completing_is_ok
2.8    2.7.2    +pending_sync_timer
3.0    2.8.2    +unknown_instance_checked_first
3.2    3.1.2    +leader_restart_skips_assignment
3.3    3.2.3    +rejoin_stores_timeouts
4.0    3.9.1    +answers_exceptions +session_bounds_checked_first +expiry_ends_initial_delay +created_group_is_written
4.0    3.9.1    +cleanup_per_partition -refusal_echoes_member_id -replaced_member_stays_new -failed_replacement_keeps_protocols
4.0    3.9.1    -extension_needs_generation_zero -sync_in_stable_restarts_session -leave_entry_by_entry
4.3    4.2.2    +assignment_interval +assignment_epochs +shrink_moves_previous_epoch +deleted_topics_lose_offsets
4.3    4.2.2    +classic_members_follow_target +stale_target_downgrades_to_rebalance
4.4    4.3.1    +malformed_subscription_is_inconsistent +last_removal_moves_target +preferred_assignor_bumps
4.4    4.3.1    +changed_instance_frees_old +known_instance_fits_full_group +replacement_keeps_share
"""
SWITCHES = [
    (switch[1:], switch[0] == "+", before, release)
    for release, before, *switches in map(str.split, CHANGES.strip().splitlines())
    for switch in switches
]


@pytest.mark.parametrize(("switch", "comes", "before", "release"), SWITCHES)
def test_a_switch_comes_or_goes_with_its_release(switch, comes, before, release):
    assert getattr(KafkaVersion.of(release), switch) is comes
    assert getattr(KafkaVersion.of(before), switch) is (not comes)


def test_a_refused_join_evaluates_the_join_phase_in_the_last_scala_coordinators():
    releases = ("2.1.1", "2.2.0", "3.9.1", "4.0.0")
    switches = [KafkaVersion.of(release).refused_join_evaluates_join_phase for release in releases]
    assert switches == [False, True, True, False]


def test_a_patch_refuses_classic_members_where_migration_is_disabled():
    """4.2.2 and 4.3.1 have it, 4.3.0 has not."""
    releases = ("4.2.1", "4.2.2", "4.3.0", "4.3.1", "4.4.0")
    switches = [KafkaVersion.of(release).disabled_migration_refuses_classic for release in releases]
    assert switches == [False, True, False, True, True]


def test_every_boolean_switch_is_covered():
    names = {field.name for field in fields(KafkaVersion) if field.type == "bool"}
    assert names == {switch for switch, *_ in SWITCHES} | {"refused_join_evaluates_join_phase", "disabled_migration_refuses_classic"}


def test_the_other_switches():
    old, scala, java = (KafkaVersion.of(release) for release in ("0.10.2.2", "3.9.1", "4.2.0"))
    assert [version.member_map for version in (old, scala, java)] == list(HashMapKind)
    assert KafkaVersion.of("2.5.1").member_map is HashMapKind.SCALA_2_11
    assert [version.sync_while_loading for version in (old, scala, java)] == [
        Error.NONE,
        Error.REBALANCE_IN_PROGRESS,
        Error.COORDINATOR_LOAD_IN_PROGRESS,
    ]
    assert scala.commit_to_absent_group_v9 is Error.ILLEGAL_GENERATION
    assert java.commit_to_absent_group_v9 is Error.GROUP_ID_NOT_FOUND
    assert [KafkaVersion.of(release).first_group_epoch for release in ("4.2.2", "4.3.0", "4.4.0")] == [0, 1, 1]


@pytest.mark.parametrize(
    ("release", "member_map", "sync_while_loading"),
    [
        ("1.1.1", HashMapKind.SCALA_2_11, Error.NONE),
        ("2.0", HashMapKind.SCALA_2_11, Error.REBALANCE_IN_PROGRESS),
        ("2.5.1", HashMapKind.SCALA_2_11, Error.REBALANCE_IN_PROGRESS),
        ("2.6", HashMapKind.SCALA_2_13, Error.REBALANCE_IN_PROGRESS),
        ("3.9.1", HashMapKind.SCALA_2_13, Error.REBALANCE_IN_PROGRESS),
        ("4.0", HashMapKind.JAVA, Error.COORDINATOR_LOAD_IN_PROGRESS),
    ],
)
def test_they_change_with_the_first_release_of_a_line(release, member_map, sync_while_loading):
    version = KafkaVersion.of(release)
    assert (version.member_map, version.sync_while_loading) == (member_map, sync_while_loading)


@pytest.mark.parametrize(
    ("switch", "line"),
    [("initial_rebalance_delay", "0.11"), ("commit_restarts_session", "0.10"), ("refused_join_evaluates_join_phase", "2.2")],
)
def test_a_line_has_what_its_first_release_has(switch, line):
    assert getattr(KafkaVersion.of(line), switch) is True


def test_how_failed_writes_are_answered():
    scala = {
        Error.UNKNOWN_TOPIC_OR_PARTITION: Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_ENOUGH_REPLICAS: Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND: Error.COORDINATOR_NOT_AVAILABLE,
        Error.NOT_LEADER_OR_FOLLOWER: Error.NOT_COORDINATOR,
        Error.KAFKA_STORAGE_ERROR: Error.NOT_COORDINATOR,
        Error.REQUEST_TIMED_OUT: Error.REBALANCE_IN_PROGRESS,
        Error.MESSAGE_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
        Error.RECORD_LIST_TOO_LARGE: Error.UNKNOWN_SERVER_ERROR,
        Error.INVALID_FETCH_SIZE: Error.UNKNOWN_SERVER_ERROR,
    }
    java = {**scala, Error.REQUEST_TIMED_OUT: Error.COORDINATOR_NOT_AVAILABLE}
    del java[Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND]
    old = {**scala}
    del old[Error.NOT_ENOUGH_REPLICAS]
    assert dict(KafkaVersion.of("3.9.1").log_errors) == dict(KafkaVersion.of("0.10.2.2").log_errors) == scala
    assert dict(KafkaVersion.of("4.0").log_errors) == dict(KafkaVersion.of("4.2.0").log_errors) == java
    assert dict(KafkaVersion.of("0.10.1").log_errors) == dict(KafkaVersion.of("0.10.1.1").log_errors) == scala
    assert dict(KafkaVersion.of("0.10.0.1").log_errors) == old


def test_defaults_of_the_settings():
    new, old = CoordinatorConfig.of("4.2.0"), CoordinatorConfig.of("0.10.2.2")
    assert (new.group_min_session_timeout_ms, new.group_max_session_timeout_ms) == (6_000, 1_800_000)
    assert (new.group_initial_rebalance_delay_ms, new.group_max_size) == (3_000, 2_147_483_647)
    assert (new.offsets_retention_minutes, new.offsets_retention_check_interval_ms) == (10_080, 600_000)
    assert (new.offsets_topic_num_partitions, new.new_member_join_timeout_ms) == (50, 300_000)
    assert (old.group_max_session_timeout_ms, old.offsets_retention_minutes) == (300_000, 1_440)
    assert CoordinatorConfig.of("2.3").group_max_session_timeout_ms == 1_800_000
    assert CoordinatorConfig.of("2.0").offsets_retention_minutes == 10_080
    assert CoordinatorConfig.of("2.2.2").group_max_session_timeout_ms == 300_000
    assert CoordinatorConfig.of("2.3.0").group_max_session_timeout_ms == 1_800_000
    assert CoordinatorConfig.of("2.0.0").offsets_retention_minutes == 10_080
    assert CoordinatorConfig.of("1.1.1").offsets_retention_minutes == 1_440


@pytest.mark.parametrize("name", ["", "4", "trunk", "4.x", "4.2.0-SNAPSHOT", "-1.0", "3.10.0", "2.9", "1.2", "0.12", "\u0664.2"])
def test_what_is_no_release_is_refused(name):
    with pytest.raises(ValueError, match="not a Kafka release"):
        KafkaVersion.of(name)


def test_a_release_that_is_not_known_yet_has_the_rules_of_the_newest_one():
    newer = ("4.4.1", "4.5.0", "4.12.3", "5.0")
    assert [is_newer(name) for name in ("0.9.0.1", "3.9.1", "4.4", "4.4.0", *newer)] == [False] * 4 + [True] * 4
    assert [is_known(name) for name in ("", "4.4.0", *newer)] == [False, True] + [False] * 4
    newest = KafkaVersion.of("4.4.0")
    for name in newer:
        assert replace(KafkaVersion.of(name), name="4.4.0") == newest
