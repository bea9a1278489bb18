"""The Kafka release that the specification follows, and the broker's settings.

Every difference between two releases of the coordinator is a switch of `KafkaVersion`, with the release that changed the rule
beside it. A handler reads like Kafka's own code, with a switch wherever releases differ. Six releases are compared with Kafka
step by step: 0.10.0.1, 0.10.2.2, 3.9.1 (the last Scala coordinator), and of the Java coordinator 4.2.0, 4.3.1 and 4.4.0. The rules of
the releases between them come from Kafka's sources.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import Final

from coordinator_model.errors import Error
from coordinator_model.specification.releases import before, changing, release_numbers, since, values_of

MAX_INT: Final = 2**31 - 1


class HashMapKind(Enum):
    """The hash map that holds the members. hash_maps.py says what its iteration order decides."""

    SCALA_2_11 = "scala.collection.mutable.HashMap of Scala 2.11 and 2.12"
    SCALA_2_13 = "scala.collection.mutable.HashMap of Scala 2.13"
    JAVA = "java.util.HashMap"


_LOG_ERRORS_SCALA: Final = {
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
"""The callback of `prepareStoreGroup`."""
_LOG_ERRORS_0_10_0: Final = {error: answer for error, answer in _LOG_ERRORS_SCALA.items() if error is not Error.NOT_ENOUGH_REPLICAS}
_LOG_ERRORS_JAVA: Final = {
    error: Error.COORDINATOR_NOT_AVAILABLE if error is Error.REQUEST_TIMED_OUT else answer
    for error, answer in _LOG_ERRORS_SCALA.items()
    if error is not Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND
}
"""`appendGroupMetadataErrorToResponseError`."""


@dataclass(frozen=True)
class KafkaVersion:
    """The behaviour of one release of the group coordinator. Build one with `KafkaVersion.of("3.9.1")`."""

    name: str

    # The group.
    empty_state: bool = field(metadata=since(0, 10, 1))
    """A group without members becomes Empty. Before, it is Dead and gone, and a fresh group is Stable."""
    initial_rebalance_delay: bool = field(metadata=since(0, 11))
    """`group.initial.rebalance.delay.ms` exists (KIP-134)."""
    member_map: HashMapKind = field(metadata=changing(HashMapKind.SCALA_2_11, {(2, 6): HashMapKind.SCALA_2_13, (4,): HashMapKind.JAVA}))
    """The Scala version is that of the build that kafka.apache.org recommends for the release."""
    join_errors_with_generation_minus_one: bool = field(metadata=since(2, 2))
    """JoinGroup errors carry generation -1. Before: 0."""
    dead_is_coordinator_not_available: bool = field(metadata=since(2, 3))
    """A Dead group answers COORDINATOR_NOT_AVAILABLE. Before: UNKNOWN_MEMBER_ID."""
    answers_exceptions: bool = field(metadata=since(4))
    """The coordinator itself answers an exception of a request handler. Before, the broker around it did."""

    # Checks in front of the group.
    group_id_checked_by_every_api: bool = field(metadata=since(2))
    """SyncGroup, Heartbeat and LeaveGroup refuse an empty group id too, not JoinGroup alone."""
    loading_checked_before_ownership: bool = field(metadata=since(2))
    """A partition that is loading answers so. Before, the coordinator does not own it until it is loaded."""
    session_bounds_checked_first: bool = field(metadata=since(4))
    """JoinGroup's session timeout is checked before loading and ownership."""
    refusal_echoes_member_id: bool = field(metadata=before(4))
    """The answer to a JoinGroup that is refused because of loading or ownership has the request's member id."""
    sync_while_loading: Error = field(
        metadata=changing(Error.NONE, {(2,): Error.REBALANCE_IN_PROGRESS, (4,): Error.COORDINATOR_LOAD_IN_PROGRESS})
    )
    """The answer to SyncGroup while loading. NONE: not checked."""

    # JoinGroup.
    member_id_required: bool = field(metadata=since(2, 2))
    """JoinGroup v4 without a member id is answered MEMBER_ID_REQUIRED (KIP-394)."""
    size_limit: bool = field(metadata=since(2, 2))
    """`group.max.size` is enforced (KIP-389)."""
    size_limit_counts_rejoined: bool = field(metadata=since(2, 6))
    """In PreparingRebalance only members that have rejoined count."""
    refused_join_evaluates_join_phase: bool = field(metadata=changing(False, {(2, 2): True, (4,): False}))
    """The join phase is checked after every JoinGroup, even after a refused one."""
    empty_protocols_refused: bool = field(metadata=since(1))
    """The first member must name a protocol type and a protocol."""
    own_rebalance_timeout: bool = field(metadata=since(0, 10, 1))
    """JoinGroup v1 carries a separate rebalance timeout (KIP-62)."""
    rejoin_stores_timeouts: bool = field(metadata=since(3, 3))
    """A rejoin stores new session and rebalance timeouts."""
    new_member_timeout: bool = field(metadata=since(2, 1, 1))
    """A new member may stay parked for 5 minutes at most."""

    # Static membership.
    static_members: bool = field(metadata=since(2, 3))
    """`group.instance.id` (KIP-345)."""
    static_restart_is_stored: bool = field(metadata=since(2, 5))
    """A restarted static member is written to the log, and rebalances if the vote changes."""
    leader_restart_skips_assignment: bool = field(metadata=since(3, 2))
    """JoinGroup v9 tells a restarted static leader to skip the assignment (KIP-814)."""
    replaced_member_stays_new: bool = field(metadata=before(4))
    """A static member replaced during its first join phase is still `new`."""
    failed_replacement_keeps_protocols: bool = field(metadata=before(4))
    """A replacement that could not be written leaves the new protocols behind."""
    unknown_instance_checked_first: bool = field(metadata=since(3))
    """An unknown instance id is refused although the member id is valid."""

    # Rebalance.
    dropped_member_session_closed: bool = field(metadata=since(1))
    """The session timer of a member dropped at the end of a join phase is cancelled."""
    one_session_timer_per_member: bool = field(metadata=since(2, 1, 1))
    """A member has one session timer at most. Before, see handlers/sessions.py."""
    extension_needs_generation_zero: bool = field(metadata=before(4))
    """The initial delay of a group that had generations before is not extended by new members."""
    expiry_ends_initial_delay: bool = field(metadata=since(4))
    """An expired member or pending id can end the initial delay."""
    pending_sync_timer: bool = field(metadata=since(2, 8))
    """Members that do not send SyncGroup in time are removed."""

    # The other requests.
    protocol_type_on_the_wire: bool = field(metadata=since(2, 5))
    """JoinGroup and SyncGroup answers carry the protocol type, and SyncGroup's is checked (KIP-559)."""
    sync_in_stable_restarts_session: bool = field(metadata=before(4))
    """SyncGroup in Stable counts as a heartbeat."""
    parked_sync_restarts_session: bool = field(metadata=before(0, 10, 1))
    """Parking a SyncGroup counts as a heartbeat."""
    heartbeat_needs_stable: bool = field(metadata=before(0, 10, 1))
    """A heartbeat outside Stable is answered REBALANCE_IN_PROGRESS before any other check."""
    heartbeat_while_completing_is_ok: bool = field(metadata=since(2, 6))
    """Heartbeat in CompletingRebalance: NONE and a new session. Before: REBALANCE_IN_PROGRESS and no new session."""
    batched_leave: bool = field(metadata=since(2, 4))
    """LeaveGroup names several members and answers each (KIP-345)."""
    leave_entry_by_entry: bool = field(metadata=before(4))
    """A batched LeaveGroup acts after each entry, not once at the end."""
    leave_answers_parked_join: bool = field(metadata=since(2, 1))
    """The parked JoinGroup of a leaver is answered."""
    commit_while_completing_refused_first: bool = field(metadata=before(2, 3))
    """OffsetCommit in CompletingRebalance is refused before member and generation are checked."""
    commit_restarts_session: bool = field(metadata=since(0, 10))
    """An accepted OffsetCommit counts as a heartbeat (0.10.0)."""
    commit_to_absent_group_v9: Error = field(metadata=changing(Error.ILLEGAL_GENERATION, {(4,): Error.GROUP_ID_NOT_FOUND}))
    """OffsetCommit v9 with a generation to an absent group (KIP-848, 4.0)."""
    delete_groups: bool = field(metadata=since(1, 1))
    """DeleteGroups exists (KIP-229)."""

    # Log and clean-up.
    log_errors: dict[Error, Error] = field(
        metadata=changing(_LOG_ERRORS_0_10_0, {(0, 10, 1): _LOG_ERRORS_SCALA, (4,): _LOG_ERRORS_JAVA}), hash=False
    )
    """The answers to failed writes. An error that is not listed is passed on."""
    created_group_is_written: bool = field(metadata=since(4))
    """A group is written when its first JoinGroup creates it."""
    stored_empty_group_keeps_protocol_type: bool = field(metadata=since(1, 1))
    """An Empty group keeps its protocol type through a fail-over."""
    offsets_expire_with_group: bool = field(metadata=since(2, 1))
    """Offsets expire after the group became Empty (KIP-211). Before: each after its own commit."""
    commit_creates_group: bool = field(metadata=since(0, 10, 1))
    """A commit without membership creates an Empty group."""
    cleanup_per_partition: bool = field(metadata=since(4))
    """Clean-up runs per partition from its loading, not per broker from its start."""

    # Consumer groups (KIP-848).
    first_group_epoch: int = field(metadata=changing(0, {(4, 3): 1}))
    """Group and target epoch of a new group. The first bump gives the next one."""
    assignment_interval: bool = field(metadata=since(4, 3))
    """`group.consumer.assignment.interval.ms`: a target is computed at most once in this time (KIP-1263)."""
    assignment_epochs: bool = field(metadata=since(4, 3))
    """Each partition of a member has the epoch of its assignment, from which on the member may commit (KIP-1251)."""
    shrink_moves_previous_epoch: bool = field(metadata=since(4, 3))
    """A member that gives up topics which it no longer subscribes to has its epoch as its previous one too."""
    deleted_topics_lose_offsets: bool = field(metadata=since(4, 3))
    """The coordinator removes the offsets of a topic id that is gone. Before, the broker around it did, by name."""
    classic_members_follow_target: bool = field(metadata=since(4, 3))
    """A classic member of a consumer group joins again once there is a new target. Before: once the group epoch moved."""
    stale_target_downgrades_to_rebalance: bool = field(metadata=since(4, 3))
    """A classic static member that replaces the last consumer rebalances if the target is stale. Before: if its subscription differs."""
    disabled_migration_refuses_classic: bool = field(metadata=changing(False, {(4, 2, 2): True, (4, 3): False, (4, 3, 1): True}))
    """A consumer group with members refuses JoinGroup where `group.consumer.migration.policy` is disabled."""
    malformed_subscription_is_inconsistent: bool = field(metadata=since(4, 4))
    """A subscription that cannot be read is INCONSISTENT_GROUP_PROTOCOL in a consumer group. Before: UNKNOWN_SERVER_ERROR."""
    last_removal_moves_target: bool = field(metadata=since(4, 4))
    """The removal of all members moves the target epoch too, and the next join computes at once."""
    preferred_assignor_bumps: bool = field(metadata=since(4, 4))
    """The group epoch moves when most members prefer another assignor. Before, the next bump brings it."""
    changed_instance_frees_old: bool = field(metadata=since(4, 4))
    """A member that takes another instance id frees the one that it had."""
    known_instance_fits_full_group: bool = field(metadata=since(4, 4))
    """`group.consumer.max.size` does not keep a static member from coming back."""
    replacement_keeps_share: bool = field(metadata=since(4, 4))
    """The old share of a static member that returns is that of the member it replaces: written again only if it changes."""

    @classmethod
    @lru_cache(maxsize=64)  # logs name releases, and no log may fill the memory
    def of(cls, name: str) -> KafkaVersion:
        """The behaviour of the release called `name`, such as "3.9.1" or "0.10.2"."""
        return cls(name, **values_of(cls, name))


@dataclass(frozen=True)
class CoordinatorConfig:
    """The broker's settings, under Kafka's names (`GroupCoordinatorConfig`), with the defaults of 2.3 and later."""

    version: KafkaVersion
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = MAX_INT
    new_member_join_timeout_ms: int = 300_000
    """A constant in Kafka, not a setting: `GroupCoordinator.NewMemberJoinTimeoutMs`."""
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    offsets_topic_num_partitions: int = 50

    @classmethod
    def of(cls, name: str) -> CoordinatorConfig:
        """The default settings of the release called `name`."""
        release = release_numbers(name)
        return cls(
            KafkaVersion.of(name),
            group_max_session_timeout_ms=1_800_000 if release >= (2, 3) else 300_000,
            offsets_retention_minutes=10_080 if release >= (2,) else 1_440,
        )
