"""Error codes of the group protocol, as numbered on the wire.

Source: org.apache.kafka.common.protocol.Errors. Only codes that a group coordinator answers, or meets when it writes to its log, have a
name. Any other code stays an integer.
"""

from __future__ import annotations

from enum import IntEnum


class Error(IntEnum):
    """A coordinator's answer. The comment after a code says when the coordinator gives it."""

    UNKNOWN_SERVER_ERROR = -1
    NONE = 0
    UNKNOWN_TOPIC_OR_PARTITION = 3
    INVALID_FETCH_SIZE = 4
    NOT_LEADER_OR_FOLLOWER = 6
    REQUEST_TIMED_OUT = 7
    MESSAGE_TOO_LARGE = 10
    OFFSET_METADATA_TOO_LARGE = 12
    COORDINATOR_LOAD_IN_PROGRESS = 14  # it is still reading the group's partition
    COORDINATOR_NOT_AVAILABLE = 15  # stopped, the group is Dead, or the log could not be written
    NOT_COORDINATOR = 16  # another broker leads the group's partition
    RECORD_LIST_TOO_LARGE = 18
    NOT_ENOUGH_REPLICAS = 19
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20
    ILLEGAL_GENERATION = 22  # a member, but of another generation
    INCONSISTENT_GROUP_PROTOCOL = 23  # no protocol that all members support
    INVALID_GROUP_ID = 24
    UNKNOWN_MEMBER_ID = 25  # not, or no longer, a member
    INVALID_SESSION_TIMEOUT = 26  # outside group.min/max.session.timeout.ms
    REBALANCE_IN_PROGRESS = 27  # rejoin
    GROUP_AUTHORIZATION_FAILED = 30
    UNSUPPORTED_VERSION = 35
    INVALID_REQUEST = 42
    KAFKA_STORAGE_ERROR = 56
    NON_EMPTY_GROUP = 68
    GROUP_ID_NOT_FOUND = 69
    MEMBER_ID_REQUIRED = 79  # KIP-394: join again with the id in this answer
    GROUP_MAX_SIZE_REACHED = 81  # KIP-389
    FENCED_INSTANCE_ID = 82  # KIP-345: the instance id belongs to another member id
    FENCED_MEMBER_EPOCH = 110  # KIP-848
    UNRELEASED_INSTANCE_ID = 111
    UNSUPPORTED_ASSIGNOR = 112
    STALE_MEMBER_EPOCH = 113
    INVALID_RECORD_STATE = 121  # KIP-932
    INVALID_REGULAR_EXPRESSION = 128


class ServerError(Exception):
    """Raised where Kafka's own code throws; the message is the name of the Java exception.

    It never leaves the specification: a request is answered UNKNOWN_SERVER_ERROR, and an exception of a timer is lost.
    """
