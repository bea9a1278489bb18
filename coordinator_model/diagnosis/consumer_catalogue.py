"""The texts of findings about groups of the consumer protocol (KIP-848). Their settings are mostly those of the group or of the brokers."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import silences
from coordinator_model.diagnosis.catalogue import PAUSE, PAUSE_OR_STALL, Text

_SESSION_SETTING: Final = (
    "it is {type}.session.timeout.ms of the group (kafka-configs.sh --entity-type groups), else group.{type}.session.timeout.ms of the "
    "brokers."
)
"""`type`: consumer, share or streams."""

SESSION_TIMEOUT: Final = Text(
    "SESSION_TIMEOUT",
    "WARNING",
    "The coordinator removed the member: it received no heartbeat {silence}{limit}.{since}",
    "Find out what stopped the process or its network then (crash, SIGKILL, long pause of the JVM or the container, CPU limit). {stop}"
    "To survive a pause, the member needs a session timeout above the length of the pause: set {type}.session.timeout.ms of the group "
    "(kafka-configs.sh --entity-type groups), else group.{type}.session.timeout.ms of the brokers.",
)
REBALANCE_TIMEOUT: Final = Text(
    "REBALANCE_TIMEOUT",
    "WARNING",
    "The coordinator removed the member because it did not give partitions up within its rebalance timeout{limit}.",
    "{remedy}",
)
SLOW_TO_REVOKE: Final = {
    silences.PAUSED: PAUSE,
    silences.STALLED: "The application did not call poll() in that time, or its rebalance listener took so long: make the work between two "
    "polls shorter (lower max.poll.records, move slow calls off the polling thread) or raise max.poll.interval.ms{current}.",
    silences.UNKNOWN: PAUSE_OR_STALL,
}
TOPIC_MAY_BE_GONE: Final = (
    "The topics of the group had just changed. If one that the member read was deleted, it could not commit (UNKNOWN_TOPIC_OR_PARTITION), "
    "and a Java client tries that until its rebalance timeout is over before it gives partitions up: let consumers unsubscribe before a "
    "topic is deleted. If none was: "
)
"""A rebalance of Java's consumer begins with an auto-commit (ConsumerMembershipManager.signalReconciliationStarted, 4.2.0)."""
STUCK_RECONCILING: Final = Text("STUCK_RECONCILING", "WARNING", "The group waited {waited} for the member: {what}.", "{remedy}")
GIVES_UP_LATE: Final = (
    "Partitions move only once their owner has given them up, which it does when it polls. Make the work between two polls shorter: "
    "the group waits for it, up to max.poll.interval.ms{limit}."
)
ASSIGNMENT_DELAYED: Final = Text(
    "ASSIGNMENT_DELAYED",
    "WARNING",
    "The group waited {waited} until the coordinator computed its assignment. No member held it up.",
    "The coordinator computes at most one assignment per interval, with the first heartbeat after it. Lower "
    "{type}.assignment.interval.ms of the group (kafka-configs.sh --entity-type groups), else group.{type}.assignment.interval.ms of "
    "the brokers, whose default is 1000; and the heartbeat interval, if members seldom send heartbeats.",
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
    "The client gives its partitions up and joins again by itself. If it happens often, look for a client that was paused or restored "
    "from a snapshot, or for two that use one member id.",
)
CAME_BACK: Final = "The client joins again by itself."
CAME_BACK_AFTER_SILENCE: Final = CAME_BACK + (
    " The process was silent for {silence}: find out what stopped it (a pause of the JVM or the container, CPU limit, network{stalled}). "
    "To survive such a pause, it needs a session timeout above {silent_ms}: " + _SESSION_SETTING
)
"""Remedies of UNKNOWN_MEMBER, by the end of the membership."""
HEARTBEAT_NEAR_MISS: Final = Text(
    "HEARTBEAT_NEAR_MISS",
    "WARNING",
    "The member was silent for {silence}; {limit}.",
    "Find out what stopped the process (a pause of the JVM or the container, CPU limit, network), or raise the session timeout well above "
    "{silent_ms} ms: " + _SESSION_SETTING + " The heartbeat interval ({type}.heartbeat.interval.ms) should be a third of it or less.",
)
_LEFT_SO: Final = (
    "It was stopped, or its application did not call poll() within max.poll.interval.ms: a static member leaves in the same way then. "
)
STATIC_MEMBER_AWAY: Final = Text(
    "STATIC_MEMBER_AWAY",
    "WARNING",
    "The static member {instance_id} left for a while (epoch -2) and came back after {away}. {meanwhile}",
    _LEFT_SO
    + "A static member keeps its partitions while it is away, so they stand still. Restart it faster, or, if it goes for longer, let"
    " it leave for good: CloseOptions.groupMembershipOperation(LEAVE_GROUP) in Java since 4.1, or no group.instance.id. A lower session "
    "timeout of the group limits such times: " + _SESSION_SETTING,
)
STATIC_MEMBER_GONE: Final = Text(
    "STATIC_MEMBER_AWAY",
    "WARNING",
    "The static member {instance_id} left for a while (epoch -2), and its session ended after {away}, before it came back. {meanwhile}",
    _LEFT_SO + "If it was meant to go for good, let it leave so: CloseOptions.groupMembershipOperation(LEAVE_GROUP) in Java since 4.1. If "
    "its restart takes so long, the session timeout of the group must be longer than the restart: " + _SESSION_SETTING,
)
"""STATIC_MEMBER_AWAY of one that did not come back in time. Whether it does later, and who gets its partitions, is not known then."""
ZOMBIE_COMMIT: Final = Text(
    "ZOMBIE_COMMIT",
    "WARNING",
    "The member tried to commit offsets{after} (epoch {sent_epoch}). The coordinator refused that, and the next owner may process the same "
    "records again.",
    "The application continued to work after it had lost its partitions. {act} {remedy}",
)
STALE_COMMIT: Final = Text(
    "STALE_COMMIT",
    "WARNING",
    "The coordinator refused a commit of the member with epoch {sent_epoch}: {why}. The same records may be processed again.",
    "{remedy} Make the processing idempotent.",
)
KEPT_EPOCH: Final = (
    "A client takes a new epoch at once, so something kept the old one: a paused process, a second process or thread that commits for this "
    "member, or a transactional producer that was given consumer.groupMetadata() once. Call it anew for each transaction."
)
COMMITS_WHILE_AWAY: Final = "The process went on after it had left the group: end all work before close()."
REGEX_WITHOUT_TOPICS: Final = Text(
    "REGEX_WITHOUT_TOPICS",
    "WARNING",
    "All members subscribe to regular expressions alone ({expressions}), and nobody has had a partition for {span}: they match no "
    "topic that the clients may see.",
    "Compare the expression with the names of the topics: it must match a whole name, in the syntax of RE2/J, and the client needs "
    "the right to DESCRIBE the topics.",
)
INVALID_REGEX: Final = Text(
    "INVALID_REGEX",
    "ERROR",
    "The client cannot subscribe to the regular expression {regex}: it is not valid (INVALID_REGULAR_EXPRESSION).",
    "The brokers use RE2/J, which has no look-ahead and no back-references. Correct the expression, or subscribe with "
    "java.util.regex.Pattern, which the client resolves itself.",
)
CLASSIC_MEMBER_REFUSED: Final = Text(
    "INCONSISTENT_PROTOCOL",
    "ERROR",
    "{who} cannot join: it speaks the classic protocol, and the group follows the consumer protocol{error}.",
    "Set group.protocol=consumer for this client. To move a group from one protocol to the other, client by client, set "
    "group.consumer.migration.policy=bidirectional on the brokers.",
)
CONSUMER_PROTOCOL_REFUSED: Final = Text(
    "INCONSISTENT_PROTOCOL",
    "ERROR",
    "The client cannot join: it speaks the consumer protocol, which the broker does not have, or which is not enabled "
    "(UNSUPPORTED_VERSION).",
    "Set group.protocol=classic for this client. Or enable the protocol on the brokers: group.version is 1 or higher (kafka-features.sh), "
    "and group.coordinator.rebalance.protocols includes consumer. Kafka 4.0 and later do so by default, 3.7 to 3.9 do not.",
)
UNSUPPORTED_ASSIGNOR: Final = Text(
    "UNSUPPORTED_ASSIGNOR",
    "ERROR",
    "The client cannot join: it asks for the assignor {assignor}, which the brokers do not have (UNSUPPORTED_ASSIGNOR).",
    "Set group.remote.assignor to one of group.consumer.assignors of the brokers (uniform or range unless it was changed), or leave "
    "it out.",
)
GROUP_TOO_LARGE: Final = Text(
    "GROUP_TOO_LARGE",
    "ERROR",
    "The client cannot join: the group has as many members as group.{type}.max.size allows{limit} (GROUP_MAX_SIZE_REACHED).",
    "Run no more consumers than group.{type}.max.size allows, or raise it on the brokers.",
)
ROLLING_RESTART: Final = Text(
    "ROLLING_RESTART",
    "WARNING",
    "{count} members were restarted one after the other: {rows} in {span}.",
    "Give every consumer a group.instance.id: then close() leaves for a while only (epoch -2), and a restart causes no rebalance if it is "
    "shorter than the session timeout of the group{longest}: " + _SESSION_SETTING,
)
REBALANCE_STORM: Final = Text(
    "REBALANCE_STORM",
    "ERROR",
    "The epoch of the group rose {epochs} times in {span}, in {rows}{began}: {common}{how}.",
    "{remedy} Until then partitions move again and again, and stand still each time.",
)
