"""Which Kafka the specification follows, and with which settings.

Every difference between two releases of the coordinator is one named switch of `KafkaVersion`, so that a handler reads
like Kafka's own code with the release differences marked where they act. Four releases are measured, step by step:
0.10.0.1, 0.10.2.2, 3.9.1 (the last Scala coordinator) and 4.2.0 (the Java coordinator). The releases between them
follow Kafka's sources; the KIP or the release that changed a rule stands beside its switch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from coordinator_model.errors import Error

MAX_INT: Final = 2**31 - 1


class HashMapKind(Enum):
    """The hash map that holds the members: its iteration order decides who becomes leader when nothing else does."""

    SCALA_2_11 = "scala.collection.mutable.HashMap of Scala 2.11 and 2.12"
    SCALA_2_13 = "scala.collection.mutable.HashMap of Scala 2.13"
    JAVA = "java.util.HashMap"


@dataclass(frozen=True)
class KafkaVersion:
    """The behaviour of one release of the group coordinator. Build one with `KafkaVersion.of("3.9.1")`."""

    name: str

    # The group.
    empty_state: bool
    """A group without members becomes Empty (0.10.1). Before, it is Dead and gone, and a fresh group is Stable."""
    initial_rebalance_delay: bool
    """`group.initial.rebalance.delay.ms` exists (KIP-134, 0.11)."""
    member_map: HashMapKind
    join_errors_with_generation_minus_one: bool
    """JoinGroup errors carry generation -1 (2.2), before 0."""
    dead_is_coordinator_not_available: bool
    """A Dead group answers COORDINATOR_NOT_AVAILABLE (2.3), before UNKNOWN_MEMBER_ID."""
    answers_exceptions: bool
    """What a request handler throws is answered by the coordinator itself (4.0), before by the broker around it."""

    # Checks in front of the group.
    group_id_checked_by_every_api: bool
    """SyncGroup, Heartbeat and LeaveGroup refuse an empty group id too (2.0), not JoinGroup alone."""
    loading_checked_before_ownership: bool
    """A partition that is being loaded answers as loading (2.0). Before, it is not owned until it is loaded."""
    session_bounds_checked_first: bool
    """JoinGroup's session timeout is checked before loading and ownership (4.0)."""
    refusal_echoes_member_id: bool
    """JoinGroup refused because of loading or ownership echoes the member id (to 3.9)."""
    sync_while_loading: Error
    """SyncGroup while loading; NONE: not checked."""

    # JoinGroup.
    member_id_required: bool
    """JoinGroup v4 without a member id is answered MEMBER_ID_REQUIRED (KIP-394, 2.2)."""
    size_limit: bool
    """`group.max.size` is enforced (KIP-389, 2.2)."""
    size_limit_counts_rejoined: bool
    """While a group prepares, only members that have rejoined take a seat (2.6)."""
    refused_join_evaluates_join_phase: bool
    """Every JoinGroup, also a refused one, is followed by a look at the join phase (2.2 to 3.9)."""
    empty_protocols_refused: bool
    """The first member must name a protocol type and a protocol (1.0)."""
    empty_group_accepts_any_protocol_type: bool
    """The protocol type of a group without members is not binding (0.10.1)."""
    own_rebalance_timeout: bool
    """JoinGroup v1 carries a rebalance timeout of its own (KIP-62, 0.10.1)."""
    rejoin_stores_timeouts: bool
    """A rejoin stores new session and rebalance timeouts (3.3)."""
    new_member_timeout: bool
    """A new member may stay parked for 5 minutes at most (2.1.1)."""

    # Static membership.
    static_members: bool
    """`group.instance.id` (KIP-345, 2.3)."""
    static_restart_is_stored: bool
    """A restarted static member is written to the log, and rebalances if the vote changes (2.5)."""
    leader_restart_skips_assignment: bool
    """JoinGroup v9 tells a restarted static leader to skip the assignment (KIP-814, 3.2)."""
    replaced_member_stays_new: bool
    """A static member replaced during its first join phase is still `new` (to 3.9)."""
    failed_replacement_keeps_protocols: bool
    """A replacement that could not be written leaves the new protocols behind (to 3.9)."""
    unknown_instance_checked_first: bool
    """An unknown instance id is refused although the member id is valid (3.0)."""

    # Rebalance.
    dropped_member_session_closed: bool
    """The session timer of a member dropped at the end of a join phase is cancelled (1.0)."""
    one_session_timer_per_member: bool
    """A member has one session timer at most (2.1.1). Before, see coordinator_model.sessions."""
    extension_needs_generation_zero: bool
    """The initial delay of a group that had generations before is not extended by new members (to 3.9)."""
    expiry_ends_initial_delay: bool
    """An expired member or pending id can end the initial delay (4.0)."""
    pending_sync_timer: bool
    """Members that do not send SyncGroup in time are removed (2.8)."""

    # The other requests.
    protocol_type_on_the_wire: bool
    """JoinGroup and SyncGroup answers carry the protocol type, and SyncGroup's is checked (KIP-559, 2.5)."""
    sync_in_stable_restarts_session: bool
    """SyncGroup in Stable counts as a heartbeat (to 3.9)."""
    parked_sync_restarts_session: bool
    """Parking a SyncGroup counts as a heartbeat (to 0.10.0)."""
    heartbeat_needs_stable: bool
    """Heartbeat outside Stable: REBALANCE_IN_PROGRESS before anything else is checked (to 0.10.0)."""
    heartbeat_while_completing_is_ok: bool
    """Heartbeat in CompletingRebalance: NONE and a new session (2.6). Before: REBALANCE_IN_PROGRESS, no new session."""
    batched_leave: bool
    """LeaveGroup names several members and answers each (KIP-345, 2.4)."""
    leave_entry_by_entry: bool
    """A batched LeaveGroup acts after each entry (to 3.9), not once at the end."""
    leave_answers_parked_join: bool
    """The parked JoinGroup of a leaver is answered (2.1)."""
    leave_of_pending_member_rebalances: bool
    """Leaving with an id that was only pending starts a rebalance too (4.0)."""
    commit_while_completing_refused_first: bool
    """OffsetCommit in CompletingRebalance is refused before member and generation are checked (to 2.2)."""
    commit_restarts_session: bool
    """An accepted OffsetCommit counts as a heartbeat (0.10.0)."""
    commit_to_absent_group_v9: Error
    """OffsetCommit v9 with a generation to an absent group (KIP-848, 4.0)."""
    delete_groups: bool
    """DeleteGroups exists (KIP-229, 1.1)."""

    # Log and clean-up.
    log_errors: tuple[tuple[Error, Error], ...]
    """How a failed write is answered; an error not listed is passed on."""
    created_group_is_written: bool
    """A group is written when its first JoinGroup creates it (4.0)."""
    stored_empty_group_keeps_protocol_type: bool
    """An Empty group keeps its protocol type through a fail-over (1.1)."""
    offsets_expire_with_group: bool
    """Offsets expire after the group became Empty (KIP-211, 2.1), before: each after its own commit."""
    commit_creates_group: bool
    """A commit without membership creates an Empty group (0.10.1)."""
    cleanup_per_partition: bool
    """Clean-up runs per partition from its loading (4.0), not per broker from its start."""

    @classmethod
    def of(cls, name: str) -> KafkaVersion:
        """The behaviour of the release called `name`, such as "3.9.1" or "0.10.2"."""
        v = release_numbers(name)
        java = v >= (4, 0)
        return cls(
            name=name,
            empty_state=v >= (0, 10, 1),
            initial_rebalance_delay=v >= (0, 11),
            member_map=_member_map(v),
            join_errors_with_generation_minus_one=v >= (2, 2),
            dead_is_coordinator_not_available=v >= (2, 3),
            answers_exceptions=java,
            group_id_checked_by_every_api=v >= (2, 0),
            loading_checked_before_ownership=v >= (2, 0),
            session_bounds_checked_first=java,
            refusal_echoes_member_id=not java,
            sync_while_loading=_sync_while_loading(v),
            member_id_required=v >= (2, 2),
            size_limit=v >= (2, 2),
            size_limit_counts_rejoined=v >= (2, 6),
            refused_join_evaluates_join_phase=v >= (2, 2) and not java,
            empty_protocols_refused=v >= (1, 0),
            empty_group_accepts_any_protocol_type=v >= (0, 10, 1),
            own_rebalance_timeout=v >= (0, 10, 1),
            rejoin_stores_timeouts=v >= (3, 3),
            new_member_timeout=v >= (2, 1, 1),
            static_members=v >= (2, 3),
            static_restart_is_stored=v >= (2, 5),
            leader_restart_skips_assignment=v >= (3, 2),
            replaced_member_stays_new=not java,
            failed_replacement_keeps_protocols=not java,
            unknown_instance_checked_first=v >= (3, 0),
            dropped_member_session_closed=v >= (1, 0),
            one_session_timer_per_member=v >= (2, 1, 1),
            extension_needs_generation_zero=not java,
            expiry_ends_initial_delay=java,
            pending_sync_timer=v >= (2, 8),
            protocol_type_on_the_wire=v >= (2, 5),
            sync_in_stable_restarts_session=not java,
            parked_sync_restarts_session=v < (0, 10, 1),
            heartbeat_needs_stable=v < (0, 10, 1),
            heartbeat_while_completing_is_ok=v >= (2, 6),
            batched_leave=v >= (2, 4),
            leave_entry_by_entry=not java,
            leave_answers_parked_join=v >= (2, 1),
            leave_of_pending_member_rebalances=java,
            commit_while_completing_refused_first=v < (2, 3),
            commit_restarts_session=v >= (0, 10),
            commit_to_absent_group_v9=Error.GROUP_ID_NOT_FOUND if java else Error.ILLEGAL_GENERATION,
            delete_groups=v >= (1, 1),
            log_errors=_log_errors(v),
            created_group_is_written=java,
            stored_empty_group_keeps_protocol_type=v >= (1, 1),
            offsets_expire_with_group=v >= (2, 1),
            commit_creates_group=v >= (0, 10, 1),
            cleanup_per_partition=java,
        )


def release_numbers(name: str) -> tuple[int, ...]:
    """The numbers of a release name: "0.10.2.2" => (0, 10, 2, 2)."""
    if not re.fullmatch(r"\d+(\.\d+)+", name):
        raise ValueError(f"not a Kafka release: {name!r}")
    return tuple(int(part) for part in name.split("."))


def _member_map(v: tuple[int, ...]) -> HashMapKind:
    """By the Scala version of the build that kafka.apache.org recommends for the release."""
    if v >= (4, 0):
        return HashMapKind.JAVA
    return HashMapKind.SCALA_2_13 if v >= (2, 6) else HashMapKind.SCALA_2_11


def _sync_while_loading(v: tuple[int, ...]) -> Error:
    if v >= (4, 0):
        return Error.COORDINATOR_LOAD_IN_PROGRESS
    return Error.REBALANCE_IN_PROGRESS if v >= (2, 0) else Error.NONE


def _log_errors(v: tuple[int, ...]) -> tuple[tuple[Error, Error], ...]:
    """`appendGroupMetadataErrorToResponseError` (Java), the callback of `prepareStoreGroup` (Scala)."""
    errors = {
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
    if v >= (4, 0):
        errors[Error.REQUEST_TIMED_OUT] = Error.COORDINATOR_NOT_AVAILABLE
        del errors[Error.NOT_ENOUGH_REPLICAS_AFTER_APPEND]
    if v < (0, 10, 1):
        del errors[Error.NOT_ENOUGH_REPLICAS]
    return tuple(errors.items())


@dataclass(frozen=True)
class CoordinatorConfig:
    """The broker's settings, under Kafka's names (`GroupCoordinatorConfig`), with the defaults of 2.3 and later."""

    version: KafkaVersion
    group_min_session_timeout_ms: int = 6_000
    group_max_session_timeout_ms: int = 1_800_000
    group_initial_rebalance_delay_ms: int = 3_000
    group_max_size: int = MAX_INT
    new_member_join_timeout_ms: int = 300_000
    """Not a setting in Kafka but a constant: `GroupCoordinator.NewMemberJoinTimeoutMs`."""
    offsets_retention_minutes: int = 10_080
    offsets_retention_check_interval_ms: int = 600_000
    offsets_topic_num_partitions: int = 50

    @classmethod
    def of(cls, name: str) -> CoordinatorConfig:
        """The default settings of the release called `name`."""
        v = release_numbers(name)
        config = cls(KafkaVersion.of(name))
        if v < (2, 3):
            config = replace(config, group_max_session_timeout_ms=300_000)
        if v < (2, 0):
            config = replace(config, offsets_retention_minutes=1_440)
        return config
