"""Turns the texts of a coordinator or a client into the cause of a rebalance.

The coordinator's texts are listed in jobs/parsing/coordinator_log.py with their versions; the clients' reasons come from
KIP-800 (AbstractCoordinator.requestRejoin and maybeLeaveGroup of the Java client, 3.2 and later; franz-go and sarama send reasons too).
"""

from __future__ import annotations

import re
from typing import Final

MEMBER_JOINED: Final = "MEMBER_JOINED"
MEMBER_LEFT: Final = "MEMBER_LEFT"
SESSION_TIMEOUT: Final = "SESSION_TIMEOUT"
POLL_TIMEOUT: Final = "POLL_TIMEOUT"
JOIN_TIMEOUT: Final = "JOIN_TIMEOUT"
SYNC_TIMEOUT: Final = "SYNC_TIMEOUT"
SUBSCRIPTION_CHANGED: Final = "SUBSCRIPTION_CHANGED"
METADATA_CHANGED: Final = "METADATA_CHANGED"
LEADER_REJOINED: Final = "LEADER_REJOINED"
MEMBER_REJOINED: Final = "MEMBER_REJOINED"
STATIC_MEMBER_REPLACED: Final = "STATIC_MEMBER_REPLACED"
REVOCATION_FOLLOW_UP: Final = "REVOCATION_FOLLOW_UP"
ADMIN_REMOVED: Final = "ADMIN_REMOVED"
COORDINATOR_MOVED: Final = "COORDINATOR_MOVED"
ASSIGNMENT_NOT_STORED: Final = "ASSIGNMENT_NOT_STORED"
GROUP_OVER_CAPACITY: Final = "GROUP_OVER_CAPACITY"
REBALANCE_TIMEOUT: Final = "REBALANCE_TIMEOUT"  # consumer protocol: partitions were not given up in time
REGEX_RESOLVED: Final = "REGEX_RESOLVED"  # consumer protocol: topics of a regular expression were found: it is new, or matches others now
GROUP_CONFIG_CHANGED: Final = "GROUP_CONFIG_CHANGED"  # streams groups: a setting of the group that assignments depend on
CONNECTOR_CHANGED: Final = "CONNECTOR_CHANGED"  # Connect: a connector, or the tasks of one, were created, changed or deleted
DELAY_ENDED: Final = "DELAY_ENDED"  # Connect: the scheduled delay is over, after which tasks of lost workers are given to others (KIP-415)
PROBING_REBALANCE: Final = "PROBING_REBALANCE"  # Streams: a planned look whether warm-up tasks have caught up (KIP-441)
UNKNOWN: Final = "UNKNOWN"

EXPIRY_THREAD: Final = "executor-Heartbeat"
"""The thread on which sessions expire, in place of a reason, which coordinators before 2.1 do not write."""

# How a membership ends, where that is not one of the causes above.
LEFT: Final = "LEFT"
REPLACED: Final = "REPLACED"
GROUP_GONE: Final = "GROUP_GONE"

_POLL_TIMEOUTS: Final = ("consumer poll timeout has expired", "worker poll timeout has expired")
_REJOINS: Final = (
    ("subscription has changed", SUBSCRIPTION_CHANGED),
    ("cached metadata has changed", METADATA_CHANGED),
    ("need to revoke partitions and re-join", REVOCATION_FOLLOW_UP),
    ("rebalance enforced by user", MEMBER_REJOINED),
    # Kafka Streams: at once, since tasks change their owner (StreamsPartitionAssignor); a probing rebalance is scheduled for a time
    ("triggered followup rebalance scheduled for 0", REVOCATION_FOLLOW_UP),
    ("triggered followup rebalance scheduled for ", PROBING_REBALANCE),
    # pkg/kgo/consumer_group.go of franz-go
    ("after revoking what we lost from a rebalance", REVOCATION_FOLLOW_UP),
    ("rejoining because we are the leader and noticed some topics have new partitions", METADATA_CHANGED),
    ("leader detected that partitions on topics another member is consuming have changed", METADATA_CHANGED),
    ("from ForceRebalance", MEMBER_REJOINED),
    # consumer_group_session.go of sarama: sessionCauseToReason
    ("partitions were added to a subscribed topic", METADATA_CHANGED),
)
_REJOINED_FOR_OTHERS: Final = (
    "need to re-join",
    "group is already rebalancing",
    "rebalance failed",
    "group instance was removed",
    "rejoining from normal rebalance",  # franz-go
    "group is rebalancing",  # sarama
)

CLIENT_LIBRARY_REASONS: Final = frozenset(
    {
        "the consumer is being closed",  # Java; sarama too
        "the consumer unsubscribed from all topics",
        "consumer poll timeout has expired.",
        "client leaving group per normal operation",  # franz-go
        "leaving group",  # franz-go in its log
    }
)
"""Reasons that client libraries give by themselves when they leave."""

NO_REASON: Final = frozenset({"not provided", "null", ""})
"""What brokers write where a client gave no reason."""

_CLIENT_REASON: Final = "client reason: "
_DURING: Final = re.compile(r"(?:[Ll]eader|Updating metadata for member) .+? (?:re-joining group )?during (Stable|CompletingRebalance)\b")


def end_of(cause: str) -> str:
    """How a membership ends, by the cause of its removal."""
    return LEFT if cause == MEMBER_LEFT else cause


def client_reason(text: str) -> str:
    """The client's reason inside a coordinator's reason; empty if the client gave none."""
    _, _, reason = text.partition(_CLIENT_REASON)
    return "" if reason in NO_REASON else reason


def own_words(reason: str) -> str:
    """The client's reason: inside a coordinator's reason, or that of its request."""
    return reason if of_coordinator(reason) == UNKNOWN else client_reason(reason)


def state_in(text: str) -> str:
    """The state of the group that a coordinator's reason names, in which a member joined again; empty if it names none."""
    match = _DURING.match(text)
    return match[1] if match is not None else ""


def is_conversion(reason: str) -> bool:
    """Whether a coordinator's reason says that a consumer group has become a classic one, which then rebalances (KIP-848)."""
    return reason.startswith("Downgrade group ")


def of_leave(reason: str, *, by_admin: bool) -> str:
    """The cause of a LeaveGroup. `reason`: the client's; `by_admin`: the request named no member id (KIP-345)."""
    if any(text in reason for text in _POLL_TIMEOUTS):
        return POLL_TIMEOUT
    if by_admin or "removed by an admin" in reason:
        return ADMIN_REMOVED
    return MEMBER_LEFT


def says_why(reason: str) -> bool:
    """Whether a client's reason for joining again names its cause: the client may only follow a rebalance that others began."""
    return bool(reason) and not reason.startswith(_REJOINED_FOR_OTHERS)


def of_known_rejoin(reason: str) -> str:
    """The cause that a client library's own words about a rejoin name; empty if they name none."""
    return next((cause for text, cause in _REJOINS if reason.startswith(text)), "")


def of_rejoin(reason: str, *, is_leader: bool) -> str:
    """The cause when a member of the group joins again. `reason`: the client's."""
    if cause := of_known_rejoin(reason):
        return cause
    if says_why(reason):
        return MEMBER_REJOINED  # the application's text: enforceRebalance(reason)
    return LEADER_REJOINED if is_leader else MEMBER_REJOINED


def of_coordinator(reason: str) -> str:  # noqa: PLR0911 - a table in the form of a function: one cause a text
    """The cause that the coordinator's `(reason: …)` names."""
    text = reason.lower()
    client = client_reason(reason)
    if text.startswith("adding new member") or (text.startswith(("member ", "static member ")) and "joining group" in text):
        return MEMBER_JOINED
    if "on heartbeat expiration" in text or reason == EXPIRY_THREAD:
        return SESSION_TIMEOUT
    if "leavegroup" in text:
        return of_leave(client, by_admin=False)
    if "pending sync request expiration" in text:
        return SYNC_TIMEOUT
    if "selectedprotocol will change" in text or "updating metadata for static member" in text:
        return STATIC_MEMBER_REPLACED
    if text.startswith("leader "):
        return of_rejoin(client, is_leader=True)
    if text.startswith("updating metadata for member"):
        return of_rejoin(client, is_leader=False)
    if "storing group assignment" in text:
        return ASSIGNMENT_NOT_STORED
    if "over capacity" in text:
        return GROUP_OVER_CAPACITY
    if "member leaving" in text or "static member replacement" in text:  # a consumer group turned classic
        return MEMBER_LEFT
    return UNKNOWN
