"""The tracker's input: one record for each row of group_events, in plain Python values.

The fields have the names of the columns in schemas/group_events.md, except for the times: `at_ms` is `at`, `received_ms` is
`received_at`, both in epoch milliseconds. A missing text is "", a missing number -1, a missing list ().
"""

from __future__ import annotations

from typing import Final, NamedTuple

TIMES_FROM_MS: Final = 31_536_000_000
"""1971. What has an earlier time has none: its log was copied without times, and the milliseconds since 1970 are the number of its line.
The order holds; when, how long and how often are not known."""

NAMELESS_GROUP: Final = "a group that no line names"
"""The group of lines of clients of which nobody gives the name, in the lines, by a folder or otherwise."""

# Kinds of requests: the names of their APIs.
JOIN_GROUP: Final = "JOIN_GROUP"
SYNC_GROUP: Final = "SYNC_GROUP"
HEARTBEAT: Final = "HEARTBEAT"
LEAVE_GROUP: Final = "LEAVE_GROUP"
OFFSET_COMMIT: Final = "OFFSET_COMMIT"
TXN_OFFSET_COMMIT: Final = "TXN_OFFSET_COMMIT"
OFFSET_FETCH: Final = "OFFSET_FETCH"  # names no member; sent for the assigned partitions, on the member's connection
FETCH: Final = "FETCH"  # what a connection read; it names no group, and any broker answers it
LIST_OFFSETS: Final = "LIST_OFFSETS"  # the ends of logs, as a client or a tool asks for them; likewise
WRITE_TXN_MARKERS: Final = "WRITE_TXN_MARKERS"  # transactions end in partitions; likewise
TOPIC_NAMED: Final = "TOPIC_NAMED"  # an answer to METADATA, or a controller, names a topic and its id; it is about no group
TOPIC_COMPACTED: Final = "TOPIC_COMPACTED"  # a broker's log says that a topic, which is the partition in `offsets`, is compacted; likewise
DELETE_GROUPS: Final = "DELETE_GROUPS"
FIND_COORDINATOR: Final = "FIND_COORDINATOR"  # any broker answers it, not only the group's coordinator
CONSUMER_GROUP_HEARTBEAT: Final = "CONSUMER_GROUP_HEARTBEAT"
SHARE_GROUP_HEARTBEAT: Final = "SHARE_GROUP_HEARTBEAT"  # KIP-932; those alone that join or leave, or are refused
STREAMS_GROUP_HEARTBEAT: Final = "STREAMS_GROUP_HEARTBEAT"  # KIP-1071; likewise
SHARE_FETCH: Final = "SHARE_FETCH"  # of those that get records again, or acknowledge some too late; any broker answers it. member_count:
# the records that were delivered before; owned: the partitions; session_timeout_ms: how long a record is locked for a member
SHARE_ACKNOWLEDGE: Final = "SHARE_ACKNOWLEDGE"  # of those that are too late; likewise
SHARE_RECORDS: Final = frozenset({SHARE_FETCH, SHARE_ACKNOWLEDGE})
HEARTBEATS_OF_OTHERS: Final = frozenset({SHARE_GROUP_HEARTBEAT, STREAMS_GROUP_HEARTBEAT})
HEARTBEATS: Final = frozenset({HEARTBEAT, CONSUMER_GROUP_HEARTBEAT})

# Kinds of lines in a coordinator's log, with the fields that they fill. Their templates are in jobs/sentences.
PREPARING_REBALANCE: Final = "PREPARING_REBALANCE"  # generation: the old one; reason; member_id where the reason names one
STABILIZED: Final = "STABILIZED"  # generation: the new one; member_count
ASSIGNMENT_RECEIVED: Final = "ASSIGNMENT_RECEIVED"  # generation; leader_id (3.0+); member_count
GROUP_EMPTY: Final = "GROUP_EMPTY"  # generation: the new one
MEMBER_FAILED: Final = "MEMBER_FAILED"  # session expired
MEMBER_LEFT: Final = "MEMBER_LEFT"  # explicit LeaveGroup; reason is the client's
PENDING_MEMBER_LEFT: Final = "PENDING_MEMBER_LEFT"
PENDING_MEMBER_EXPIRED: Final = "PENDING_MEMBER_EXPIRED"
MEMBER_ID_ISSUED: Final = "MEMBER_ID_ISSUED"  # MEMBER_ID_REQUIRED answered; state
MEMBER_ADDED: Final = "MEMBER_ADDED"  # state before; static: instance_id
STATIC_MEMBER_REPLACED: Final = "STATIC_MEMBER_REPLACED"  # member_id: the old one; answer_member_id: the new one, if the line names it
STATIC_MEMBER_KEPT: Final = "STATIC_MEMBER_KEPT"  # "will not trigger rebalance"; not every such line names the group
MEMBER_LOADED: Final = "MEMBER_LOADED"  # a member read back from __consumer_offsets; generation
INSTANCE_FENCED: Final = "INSTANCE_FENCED"  # member_id: the fenced one; leader_id: "", answer_member_id: the current one
MEMBERS_NOT_REJOINED: Final = "MEMBERS_NOT_REJOINED"  # members: dynamic ones removed at the end of the join phase
MEMBERS_NOT_SYNCED: Final = "MEMBERS_NOT_SYNCED"
NO_MEMBER_REJOINED: Final = "NO_MEMBER_REJOINED"
LEADER_NOT_REJOINED: Final = "LEADER_NOT_REJOINED"
GROUP_LOADED: Final = "GROUP_LOADED"  # a coordinator took the group over; generation (Scala); member_count (Java)
GROUP_UNLOADED: Final = "GROUP_UNLOADED"  # a coordinator gave it up; generation
GROUP_DEAD: Final = "GROUP_DEAD"
GROUPS_DELETED: Final = "GROUPS_DELETED"
GROUP_CONVERTED: Final = "GROUP_CONVERTED"  # between the classic and the consumer protocol; state: the new protocol
SIMPLE_GROUP: Final = "SIMPLE_GROUP"  # offsets committed without membership
GROUPS_CLEANED: Final = "GROUPS_CLEANED"  # no group: coordinator_partition lost expired offsets and groups; member_count: tombstones
COORDINATOR_ELECTED: Final = "COORDINATOR_ELECTED"  # no group; coordinator_partition; generation: the leader epoch
COORDINATOR_RESIGNED: Final = "COORDINATOR_RESIGNED"
CONSUMER_GROUP_LOG: Final = "CONSUMER_GROUP_LOG"  # a line about a KIP-848 group; reason: its text; state: what it tells, as below
COORDINATOR_NOTE: Final = "COORDINATOR_NOTE"  # a known line that changes nothing; reason: its text; state: TROUBLE if it is one

# What a CONSUMER_GROUP_LOG line tells, where it tells a step of a group.
JOINED: Final = "JOINED"  # member_id; static: instance_id
RETURNED: Final = "RETURNED"  # a static member; member_id: the old one; answer_member_id: the new one
DEPARTED: Final = "DEPARTED"
AWAY: Final = "AWAY"  # a static member left for a while
EXPIRED: Final = "EXPIRED"  # its session
STUCK: Final = "STUCK"  # it did not give partitions up; generation: its epoch; rebalance_timeout_ms
EPOCH_RAISED: Final = "EPOCH_RAISED"  # generation: the new one
TARGET_COMPUTED: Final = "TARGET_COMPUTED"  # generation: the epoch
REGEX_RESOLVED: Final = "REGEX_RESOLVED"
CONFIG_CHANGED: Final = "CONFIG_CHANGED"  # a setting that the assignment depends on; reason names it
ASSIGNMENT_STORED: Final = "ASSIGNMENT_STORED"  # generation: the member's epoch; reason has its partitions
TOPICS_UPDATED: Final = "TOPICS_UPDATED"  # a member subscribes to other topics
READ_BACK: Final = "READ_BACK"  # member_count
GIVEN_UP: Final = "GIVEN_UP"  # generation: the epoch
REFUSED: Final = "REFUSED"  # a client of the classic protocol cannot join; the line names none
OWNED: Final = "OWNED"  # a static member cannot join: answer_member_id has its instance_id
FENCED: Final = "FENCED"  # a static member is refused: answer_member_id has its instance_id
TROUBLE: Final = "TROUBLE"  # an error or a warning of the coordinator about the group; also of a COORDINATOR_NOTE

# Types of groups that have heartbeats of their own, as `Event.protocol_type` of a line that only they have.
SHARE: Final = "share"  # KIP-932
STREAMS: Final = "streams"  # KIP-1071

# Kinds of lines that say how a broker comes and goes. They name no group; the tracker uses BROKER_RELEASE alone. coordinator_id: the node
# they are about, where they name it; reason: their text.
BROKER_STARTED: Final = "BROKER_STARTED"
BROKER_RELEASE: Final = "BROKER_RELEASE"  # software: the release of Kafka that it runs, as "4.4.0" at its start, or "4.4" in an answer
BROKER_STOPPING: Final = "BROKER_STOPPING"  # it was told to stop
BROKER_STOPPED: Final = "BROKER_STOPPED"  # its shutdown is complete
BROKER_FAILED: Final = "BROKER_FAILED"  # it gave up by itself
BROKER_EXPIRED: Final = "BROKER_EXPIRED"  # its session with ZooKeeper ended while it ran
BROKER_CLEAN: Final = "BROKER_CLEAN"  # it starts, and had been shut down cleanly
BROKER_UNCLEAN: Final = "BROKER_UNCLEAN"  # it starts, and had not
BROKER_UNREACHABLE: Final = "BROKER_UNREACHABLE"  # another broker's follower lost its connection to the node
BROKER_FENCED: Final = "BROKER_FENCED"  # the controller takes the node for lost

# Kinds of lines in a client's log. The templates are in jobs/sentences. connection: the client's name in librdkafka's log, or the
# library that writes no name of a client. software: CONNECT of a worker of Connect, or the name of
# another program with a member of its own (Schema registry).
CLIENT_JOINED: Final = "CLIENT_JOINED"  # member_id, generation
CLIENT_REJOINS: Final = "CLIENT_REJOINS"  # reason; Connect: state: CONNECTOR_CHANGED, and the reason names the connector or its tasks
CLIENT_LEAVES: Final = "CLIENT_LEAVES"  # member_id; reason (2.4+)
CLIENT_POLL_TIMEOUT: Final = "CLIENT_POLL_TIMEOUT"  # rebalance_timeout_ms: its limit; KIP-848: member_id; received_ms: when that had passed
CLIENT_SESSION_TIMEOUT: Final = "CLIENT_SESSION_TIMEOUT"  # librdkafka: session_timeout_ms without an answer; reason: last error
CLIENT_PUT_OUT: Final = "CLIENT_PUT_OUT"  # it learned that it is no member, or not of this generation; state: as below; reason: its words
CLIENT_ROUND_FAILED: Final = "CLIENT_ROUND_FAILED"  # another rebalance began before it had its assignment; member_id, generation
CLIENT_COMMIT_REFUSED: Final = "CLIENT_COMMIT_REFUSED"  # as it was no member any more, or of an old generation; reason: its words
CLIENT_STATE: Final = "CLIENT_STATE"  # Java, KIP-848: member_id; state: the new one (4.0+); reason: the one before; generation: its epoch
CLIENT_ASSIGNED: Final = (
    "CLIENT_ASSIGNED"  # Connect: generation; rebalance_timeout_ms: how long connectors and tasks wait for a worker; 0: none does
)
CLIENT_NOTE: Final = "CLIENT_NOTE"  # a line from which nothing follows; reason: its sentence

# What a client learned when it was put out (CLIENT_PUT_OUT): the names of Kafka's errors.
UNKNOWN_MEMBER_ID: Final = "UNKNOWN_MEMBER_ID"
ILLEGAL_GENERATION: Final = "ILLEGAL_GENERATION"
FENCED_INSTANCE_ID: Final = "FENCED_INSTANCE_ID"
FENCED_MEMBER_EPOCH: Final = "FENCED_MEMBER_EPOCH"
UNRELEASED_INSTANCE_ID: Final = "UNRELEASED_INSTANCE_ID"

CONNECT: Final = "connect"
"""The protocol type of workers of Connect, too."""
NO_CONFIG: Final = -2
"""The offset in the config topic of Connect where none is known, or the group is none of Connect."""
CONNECTOR: Final = "{} (connector)"
"""A connector among what a worker is assigned. The others are tasks, whose names end in a number: only they are counted."""

# Values of the columns `source` and `broker`: the kind of log that an event comes from.
REQUEST_SOURCE: Final = "request"
COORDINATOR_SOURCE: Final = "coordinator"
BROKER_SOURCE: Final = "broker"
CLIENT_SOURCE: Final = "client"
CLIENTS: Final = "clients"
"""The `broker` of events from clients' logs. The tracker does not wait for these logs."""

# Records of __consumer_offsets, and answers of Admin describe: one row for the group, then one for each member.
GROUP_STORED: Final = "GROUP_STORED"  # generation; leader_id; protocol; state: Stable, Empty, or Dead if the record removes the group
GROUP_DESCRIBED: Final = "GROUP_DESCRIBED"  # state: Dead if the group is no longer listed; coordinator_id; coordinator_address
OFFSETS_STORED: Final = "OFFSETS_STORED"  # commits of the group: offsets, -1 where the record removes one
OFFSETS_POLLED: Final = "OFFSETS_POLLED"  # committed offsets of the group with the ends of their partitions
OFFSETS_ALONE: Final = (OFFSETS_STORED, OFFSETS_POLLED)  # which show no group, and of which its tracker makes nothing
GROUP_MEMBER: Final = "GROUP_MEMBER"  # a member of the group in the row before
CONSUMER_GROUP_DESCRIBED: Final = "CONSUMER_GROUP_DESCRIBED"  # a KIP-848 group; its rows are like those of GROUP_DESCRIBED

# Records of a KIP-848 group in __consumer_offsets, by their names in Kafka without `ConsumerGroup` in front. state: REMOVED for one without
# a value, which says that what its key names is gone.
EPOCH_STORED: Final = "EPOCH_STORED"  # Metadata: generation, the epoch of the group
TOPICS_STORED: Final = "TOPICS_STORED"  # PartitionMetadata: member_count, the number of topics; only brokers before 4.1 write it
MEMBER_STORED: Final = "MEMBER_STORED"  # MemberMetadata: member_id; subscribed_regex; protocols: its assignor, topics
TARGET_STORED: Final = "TARGET_STORED"  # TargetAssignmentMetadata: generation, the epoch whose assignment is computed
TARGET_MEMBER_STORED: Final = "TARGET_MEMBER_STORED"  # TargetAssignmentMember: member_id; assignments: its share
CURRENT_STORED: Final = "CURRENT_STORED"  # CurrentMemberAssignment: member_id; state: that of the member
# generation, answer_generation: its epoch before and now; assignments: what it has, then what it has to give up
EXPRESSION_STORED: Final = "EXPRESSION_STORED"  # RegularExpression: reason: the expression; member_count: how many topics it matches
REMOVED: Final = "REMOVED"
TIMED: Final = "TIMED"  # TARGET_STORED: the record says when the target was computed, as since Kafka 4.3
CONSUMER_GROUP_RECORDS: Final = frozenset(
    {EPOCH_STORED, TOPICS_STORED, MEMBER_STORED, TARGET_STORED, TARGET_MEMBER_STORED, CURRENT_STORED, EXPRESSION_STORED}
)

OFFSETS_SOURCE: Final = "offsets"
POLL_SOURCE: Final = "poll"
PSEUDO_BROKERS: Final = frozenset({OFFSETS_SOURCE, POLL_SOURCE})
"""The `broker` of events from these two sources. They describe the group, and say nothing about any broker."""


PROMPT_MS: Final = 100
"""Heartbeats that were answered within this time share rows of group_events. One that took longer has its own row."""

# Kinds of rows that say how far a broker's logs were read.
CLOCK: Final = "clock"
FOLLOWED: Final = "followed"  # like a clock, but from a shipper, which repeats it every few seconds even if the logs are silent
END: Final = "end"


class Protocol(NamedTuple):
    """One protocol that a JoinGroup offers."""

    name: str
    topics: tuple[str, ...] | None  # None: not a consumer subscription
    owned: tuple[str, ...]
    digest: str


class MemberEntry(NamedTuple):
    """A member in the list of a JoinGroup answer, a LeaveGroup or a log line."""

    member_id: str
    instance_id: str
    error_code: int
    reason: str
    topics: tuple[str, ...] | None


class Assignment(NamedTuple):
    """The assignment of one member."""

    member_id: str
    partitions: tuple[str, ...] | None  # of Connect: connectors and tasks; None: neither a consumer's nor a worker's assignment
    digest: str
    revoked: tuple[str, ...] | None = None  # of Connect (KIP-415): it keeps what it has but for these, and gets `partitions` on top
    config_offset: int = NO_CONFIG  # of Connect: how far the config topic was read, -1 where it is empty
    delay_ms: int = 0  # of Connect: until connectors and tasks of lost workers are given to others


class Offsets(NamedTuple):
    """Offsets of some partitions, each at the same place of all lists. -1: none is committed, or the line does not tell the end."""

    partitions: tuple[str, ...]
    committed: tuple[int, ...]
    ends: tuple[int, ...] = ()  # as many, or none
    topic_ids: tuple[str, ...] = ()  # likewise: that of each partition's topic, beside its name


class Event(NamedTuple):
    """One observation. `kind` decides which fields are filled."""

    broker: str
    source: str
    origin: str
    position: int
    at_ms: int
    received_ms: int
    kind: str
    group_id: str = ""
    coordinator_partition: int = -1
    api_version: int = -1
    connection: str = ""
    correlation_id: int = -1
    client_id: str = ""
    client_host: str = ""
    software: str = ""
    member_id: str = ""
    instance_id: str = ""
    generation: int = -1
    error_code: int = 0
    answer_member_id: str = ""
    answer_generation: int = -1
    leader_id: str = ""
    protocol_type: str = ""
    protocol: str = ""
    skip_assignment: bool = False
    session_timeout_ms: int = -1
    rebalance_timeout_ms: int = -1
    reason: str = ""
    state: str = ""
    member_count: int = -1
    protocols: tuple[Protocol, ...] = ()
    members: tuple[MemberEntry, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    beats: tuple[int, ...] = ()  # ms since received_ms
    positions: tuple[int, ...] = ()  # of each beat
    coordinator_id: int = -1  # a node id: that in the answer to FIND_COORDINATOR, or that of the broker that wrote the line
    coordinator_address: str = ""  # host:port in the answer to FIND_COORDINATOR
    subscribed_regex: str | None = None  # of a KIP-848 member: "" if it has none; None: not told, so as before
    owned: tuple[str, ...] | None = None  # what a KIP-848 member says it owns, as topic id and number; None: not told, so all of it
    heartbeat_interval_ms: int = -1
    offsets: Offsets | None = None
