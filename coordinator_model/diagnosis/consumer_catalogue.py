"""The texts of findings about groups of the consumer protocol (KIP-848). Their settings are mostly those of the group or of the brokers."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import catalogue, silences
from coordinator_model.diagnosis.catalogue import LOOK, PAUSE, PAUSE_OR_STALL, Text
from coordinator_model.events import SHARE, STREAMS

_SESSION_SETTING: Final = (
    "{type}.session.timeout.ms of the group (kafka-configs.sh --entity-type groups), or else group.{type}.session.timeout.ms of the "
    "brokers."
)
"""`type`: consumer, share or streams."""

SESSION_TIMEOUT: Final = catalogue.SESSION_TIMEOUT._replace(
    advice=LOOK + " {stop}Raise the session timeout above the longest pause to tolerate: " + _SESSION_SETTING
)
REBALANCE_TIMEOUT: Final = Text(
    "REBALANCE_TIMEOUT",
    "WARNING",
    "The coordinator removed the member: it did not give up partitions within its rebalance timeout{limit}.",
    "{remedy}",
)
SLOW_TO_REVOKE: Final = {
    silences.PAUSED: PAUSE,
    silences.STALLED: "The application did not call poll() in that time, or its rebalance listener took that long: shorten the work "
    "between two polls ({less}), or raise max.poll.interval.ms{current}.",
    silences.UNKNOWN: PAUSE_OR_STALL,
}
TOPIC_MAY_BE_GONE: Final = (
    "The topics of the group had just changed. If one that the member read was deleted, it could not commit (UNKNOWN_TOPIC_OR_PARTITION), "
    "and a Java client retries that until its rebalance timeout before it gives up partitions: let consumers unsubscribe before you delete "
    "a topic. If none was: "
)
"""A rebalance of Java's consumer begins with an auto-commit (ConsumerMembershipManager.signalReconciliationStarted, 4.2.0)."""
STUCK_RECONCILING: Final = Text("STUCK_RECONCILING", "WARNING", "The group waited {waited} for the member: {what}.", "{remedy}")
GIVES_UP_LATE: Final = (
    "Partitions move only once their owner has given them up, which it does when it polls and its rebalance listener has returned. Shorten "
    "the work between two polls and the listener's: the group waits for both, up to max.poll.interval.ms{limit}."
)
ASSIGNMENT_DELAYED: Final = Text(
    "ASSIGNMENT_DELAYED",
    "WARNING",
    "The group waited {waited} for the coordinator to compute its assignment. No member caused the delay.",
    "The coordinator computes at most one assignment per interval, with the first heartbeat after it. Lower "
    "{type}.assignment.interval.ms of the group (kafka-configs.sh --entity-type groups), or else group.{type}.assignment.interval.ms of "
    "the brokers (1000 ms by default). Lower the heartbeat interval, too, if members rarely send heartbeats.",
)
UNRELEASED_INSTANCE_ID: Final = Text(
    "UNRELEASED_INSTANCE_ID",
    "ERROR",
    "Another member{owner} has group.instance.id {instance_id}. The coordinator refused this one.",
    "Give every running consumer its own group.instance.id, and stop the old process before its replacement starts. A process that was "
    "killed keeps the id until its session ends.",
)
FENCED_MEMBER_EPOCH: Final = Text(
    "FENCED_MEMBER_EPOCH",
    "WARNING",
    "The coordinator refused a heartbeat with epoch {sent_epoch}: it knows the member with another one (FENCED_MEMBER_EPOCH).",
    "The client gives up its partitions and rejoins by itself. If this happens often, look for a client that was paused or restored from a "
    "snapshot, or for two clients that share a member id.",
)
CAME_BACK: Final = "The client rejoins by itself."
CAME_BACK_AFTER_SILENCE: Final = CAME_BACK + (
    " The process was silent for {silence}. "
    + LOOK
    + "{stalled} To survive such a pause, raise the session timeout above {least}: "
    + _SESSION_SETTING
    + "{poll}"
)
"""Remedies of UNKNOWN_MEMBER, by the end of the membership."""
HEARTBEAT_NEAR_MISS: Final = catalogue.HEARTBEAT_NEAR_MISS._replace(
    message="The member was silent for {silence}; {limit}.",
    advice=LOOK
    + " Or raise the session timeout well above {silence}: "
    + _SESSION_SETTING
    + " Keep the heartbeat interval ({type}.heartbeat.interval.ms) at a third of it or less.",
)
_LEFT_SO: Final = (
    "It was stopped, or its application did not call poll() within max.poll.interval.ms: both look the same for a static member. "
)
STATIC_MEMBER_AWAY: Final = Text(
    "STATIC_MEMBER_AWAY",
    "WARNING",
    "The static member {instance_id} left temporarily (epoch -2) and came back after {away}. {meanwhile}",
    _LEFT_SO
    + "A static member keeps its partitions while it is away, so nobody reads them. Restart it faster, or, for a longer absence, let it "
    "leave permanently: CloseOptions.groupMembershipOperation(LEAVE_GROUP) in Java since 4.1, or no group.instance.id. To limit such "
    "absences, lower the session timeout: " + _SESSION_SETTING,
)
STATIC_MEMBER_GONE: Final = STATIC_MEMBER_AWAY._replace(
    message="The static member {instance_id} left temporarily (epoch -2). It was not back when its session ended, {away} later. "
    "{meanwhile}",
    advice=_LEFT_SO + "To stop it permanently, let it leave: CloseOptions.groupMembershipOperation(LEAVE_GROUP) in Java since 4.1, or no "
    "group.instance.id. If that was a restart, raise the session timeout above the time that it takes, more than {unheard}: "
    + _SESSION_SETTING,
)
"""STATIC_MEMBER_AWAY of one that did not come back in time. Whether it does later, and who gets its partitions, is not known then."""
ZOMBIE_COMMIT: Final = catalogue.ZOMBIE_COMMIT._replace(
    message="The member tried to commit offsets{after} (epoch {sent_epoch}). The coordinator refused the commit, and the next owner may "
    "process the same records again."
)
STALE_COMMIT: Final = Text(
    "STALE_COMMIT",
    "WARNING",
    "The coordinator refused the member's commit with epoch {sent_epoch}: {why}. The same records may be processed again.",
    "{remedy} Make the processing idempotent.",
)
KEPT_EPOCH: Final = (
    "A client adopts a new epoch at once, so something kept the old one: a paused process, a second process or thread that commits for "
    "this member, or a transactional producer that got consumer.groupMetadata() only once. Call it again for each transaction."
)
COMMITS_WHILE_AWAY: Final = "The process kept working after it had left the group: finish all work before close()."
REGEX_WITHOUT_TOPICS: Final = Text(
    "REGEX_WITHOUT_TOPICS",
    "WARNING",
    "All members subscribe only to regular expressions ({expressions}), and nobody has had a partition for {span}: the expressions match "
    "no topic that the clients may see.",
    "Compare the expression with the topic names: it must match a whole name, in RE2/J syntax, and the client needs DESCRIBE permission on "
    "the topics.",
)
INVALID_REGEX: Final = Text(
    "INVALID_REGEX",
    "ERROR",
    "The client cannot subscribe to the regular expression {regex}: it is not valid (INVALID_REGULAR_EXPRESSION).",
    "The brokers use RE2/J, which has no lookahead and no backreferences. Correct the expression, or subscribe with "
    "java.util.regex.Pattern, which the client resolves itself.",
)
CLASSIC_MEMBER_REFUSED: Final = catalogue.INCONSISTENT_PROTOCOL._replace(
    message="{who} cannot join: it uses the classic protocol, and the group uses the consumer protocol{error}.",
    advice="Set group.protocol=consumer for this client. To move a group to the other protocol client by client, set "
    "group.consumer.migration.policy=bidirectional on the brokers.",
)
CONSUMER_PROTOCOL_REFUSED: Final = catalogue.INCONSISTENT_PROTOCOL._replace(
    message="The client cannot join: it uses the consumer protocol, which the broker does not support or has not enabled "
    "(UNSUPPORTED_VERSION).",
    advice="Set group.protocol=classic for this client. Or enable the protocol on the brokers: set group.version to 1 or higher "
    "(kafka-features.sh), and include consumer in group.coordinator.rebalance.protocols. Kafka 4.0 and later do both by default, 3.7 to "
    "3.9 do not.",
)
UNSUPPORTED_ASSIGNOR: Final = Text(
    "UNSUPPORTED_ASSIGNOR",
    "ERROR",
    "The client cannot join: it asks for the assignor {assignor}, which the brokers do not have (UNSUPPORTED_ASSIGNOR).",
    "Set group.remote.assignor to one of the brokers' group.consumer.assignors (by default uniform or range), or leave it out.",
)
GROUP_TOO_LARGE: Final = catalogue.GROUP_TOO_LARGE._replace(
    message="The client cannot join: the group is full, at group.{type}.max.size{limit} (GROUP_MAX_SIZE_REACHED).",
    advice="Run no more consumers than group.{type}.max.size allows, or raise it on the brokers.",
)
SHARE_LOCK_EXPIRED: Final = Text(
    "SHARE_LOCK_EXPIRED",
    "WARNING",
    "The share consumer acknowledged records that it did not hold any more: a record is locked for a member for {lock}, then others get "
    "it.",
    "Shorten the work on what one poll returns (lower max.poll.records), or raise share.record.lock.duration.ms of the group "
    "(kafka-configs.sh --entity-type groups), or else group.share.record.lock.duration.ms of the brokers. Make the processing idempotent.",
)
ROLLING_RESTART: Final = catalogue.ROLLING_RESTART._replace(
    message="{count} members restarted one after another: {rows} in {span}.",
    advice="Give every consumer a group.instance.id: close() then leaves only temporarily (epoch -2), and a restart shorter than the "
    "session timeout causes no rebalance.{longest} The session timeout is " + _SESSION_SETTING,
)
ROLLING_RESTART_OF: Final = {
    STREAMS: ROLLING_RESTART._replace(
        advice="Each restart moves the tasks of an instance away and back. With standby replicas (streams.num.standby.replicas of the "
        "group) others go on without restoring them first. From Kafka 4.4 on, an instance with a group.instance.id keeps its tasks if its "
        "restart is shorter than the session timeout.{longest}"
    ),
    SHARE: ROLLING_RESTART._replace(
        advice="A share group has no static members, and nobody gives partitions up in it. Let close() return before the process ends: "
        "it releases the records that the member holds.{longest}"
    ),
}
"""By the type of the group, where that is not consumer."""
REBALANCE_STORM: Final = catalogue.REBALANCE_STORM._replace(
    message="The epoch of the group rose {epochs} times in {span}, in {rows}{began}: {common}{how}.",
    advice="{remedy} Until then partitions keep moving, and nobody reads them each time.",
)
