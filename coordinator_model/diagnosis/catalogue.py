"""The texts of all findings: what happened and what to change. Names in braces are filled in by the module that finds the fact."""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.diagnosis import silences


class Text(NamedTuple):
    """One kind of finding: its code, severity and templates. docs/findings.md says what a row of each code is, and what shows it."""

    code: str
    severity: str
    message: str
    advice: str


SESSION_TIMEOUT: Final = Text(
    "SESSION_TIMEOUT",
    "WARNING",
    "The coordinator removed the member: it received no heartbeat {silence}{limit}.{since}",
    "Find out what stopped the process or its network then (crash, SIGKILL, long pause of the JVM or the container, CPU limit). {stop} "
    "To survive a pause, the member needs session.timeout.ms{current} above the length of the pause.",
)
SLOW_ASSIGNOR: Final = (
    "{why} (that of Kafka Streams asks brokers for offsets): see what its log says of that time. Consumers of Java send no heartbeat while "
    "their assignor works: session.timeout.ms{current} must be longer than that."
)
WHY_NO_ASSIGNMENT: Final = "Its process stopped (crash, SIGKILL, long pause), or its assignor took too long"
WAITED_FOR_A_BROKER: Final = "A broker had just been lost or replaced, so its assignor may have waited for that one"
SESSION_TIMEOUT_OF_LEADER: Final = SESSION_TIMEOUT._replace(advice=SLOW_ASSIGNOR)
SESSION_TIMEOUT_OF_A_MEMBER: Final = Text(
    "SESSION_TIMEOUT",
    "WARNING",
    "The coordinator removed a member: it received no heartbeat within the session timeout, as the thread of the line shows. The line does "
    "not name the member.",
    "Find out which process, or its network, stopped then (crash, SIGKILL, long pause of the JVM or the container, CPU limit): its own log "
    "has a gap, or says that the group removed it. To survive a pause, the member needs a longer session.timeout.ms.",
)
"""SESSION_TIMEOUT where a coordinator before 2.1 names no member."""
CALL_CLOSE: Final = "Let a planned stop call close(), so that the member leaves at once."
IF_RESTARTED: Final = "If it was restarted, session.timeout.ms must be longer than a restart."
RESTARTED: Final = "It was back {away} after it was last heard: if that was a restart, session.timeout.ms must be above {away_ms}."
STATIC_STOP: Final = (
    "A static member does not leave when it is closed. {restarted} If it is to go for good, let it leave with "
    "CloseOptions.groupMembershipOperation(LEAVE_GROUP) (Java, KIP-1092), or let an administrator remove it "
    "(Admin.removeMembersFromConsumerGroup)."
)
BACK: Final = " It was back {back} later, under a new member id."
NAMESAKE: Final = " A client of its name joined {back} later, under a new member id."
NOT_BACK: Final = " It had not come back ten seconds later."
TO_ASSIGN: Final = " The group waited for the assignment of this member, its leader."
ELECTED_BEFORE: Final = " The broker had become the coordinator {elected} before."
"""These follow the message of SESSION_TIMEOUT. A session starts anew with its coordinator."""
POLL_TIMEOUT: Final = Text(
    "POLL_TIMEOUT",
    "WARNING",
    "{departure} because the application did not call poll() within its limit{limit}.",
    "Make the work between two polls shorter (lower max.poll.records, move slow calls off the polling thread) or raise "
    "max.poll.interval.ms{current} above the longest processing time.{unless}",
)
POLL_TIMEOUT_OF_PAUSED: Final = Text(
    "POLL_TIMEOUT",
    "WARNING",
    "The client left the group because the application did not call poll() within its limit{limit}. Its process, or its network, had "
    "stood still: the coordinator had heard nothing of it for {silence}.",
    "{pause}",
)
UNLESS_PAUSED: Final = (
    " If its whole process stood still for as long, find out what stopped it instead (a pause of the JVM or the container)."
)
SYNC_TIMEOUT: Final = Text(
    "SYNC_TIMEOUT", "WARNING", "The {role} joined, but did not send SyncGroup within the rebalance timeout{limit}: {then}.", "{remedy}"
)
SYNC_TIMEOUT_OF_OLD_ID: Final = Text(
    "SYNC_TIMEOUT",
    "WARNING",
    "No SyncGroup with this id of the static member came within the rebalance timeout{limit}. The member was back under another id by "
    "then, but the coordinator still waited for this one: all had to join again.",
    "Find out what delayed the member before (a stalled poll loop, a paused process, a restart): it must join and synchronise within "
    "max.poll.interval.ms{current} after a rebalance begins.",
)
INCONSISTENT_PROTOCOL: Final = Text(
    "INCONSISTENT_PROTOCOL",
    "ERROR",
    "The client cannot join: it has no assignor in common with the members, or another protocol type (INCONSISTENT_GROUP_PROTOCOL). "
    "It offers {offers}{used}.",
    "Give the client {strategy}. To move the whole group to another strategy, restart "
    "its clients one by one, twice: first with both strategies, then with the new one alone.",
)
INVALID_SESSION_TIMEOUT: Final = Text(
    "INVALID_SESSION_TIMEOUT",
    "ERROR",
    "The client cannot join: its session.timeout.ms{requested} is outside what the broker allows (INVALID_SESSION_TIMEOUT).",
    "Set session.timeout.ms to {bounds}.",
)
GROUP_TOO_LARGE: Final = Text(
    "GROUP_TOO_LARGE",
    "ERROR",
    "The client cannot join: the group has as many members as group.max.size allows{limit} (GROUP_MAX_SIZE_REACHED).{asked}",
    "Run no more consumers than group.max.size allows, or raise it on the brokers{wanted}.",
)
MEMBER_REFUSED: Final = GROUP_TOO_LARGE._replace(
    message="The group waited {waited} for this member, which the coordinator had refused and removed as it rejoined: others had taken all "
    "places that group.max.size allows (GROUP_MAX_SIZE_REACHED). A refusal does not end the wait before the rebalance timeout.{outside}"
)
LEFT_OUTSIDE: Final = " Its client had no place in the group afterwards."
GROUP_OVER_CAPACITY: Final = Text(
    "GROUP_TOO_LARGE",
    "ERROR",
    "The coordinator read the group back with more members than group.max.size allows: all members join again, and the last ones are "
    "refused.",
    "Run no more consumers than group.max.size allows, or raise it on the brokers, on all of them to the same value.",
)
"""GROUP_TOO_LARGE of a group that a coordinator has loaded."""
COORDINATOR_ERROR: Final = Text(
    "COORDINATOR_ERROR",
    "WARNING",
    "The coordinator reports: {words}.",
    "Read the lines around it in the broker's log. The group's rebalances of that time may follow from it.",
)
SLOW_JOINER: Final = Text(
    "SLOW_JOINER",
    "WARNING",
    "The group waited {waited}for {whom}: {why}.",
    "Until all have rejoined, no member gets its new assignment. {remedy} With the cooperative assignor the other members keep working "
    "meanwhile.",
)
ROLLING_RESTART: Final = Text(
    "ROLLING_RESTART",
    "WARNING",
    "{count} members were restarted one after the other: {rebalances} rebalances in {span}.",
    "Give every consumer a group.instance.id (static membership) and a session.timeout.ms longer than a restart{longest}: then a "
    "rolling restart causes no rebalance at all.",
)
REBALANCE_STORM: Final = Text(
    "REBALANCE_STORM",
    "ERROR",
    "The group rebalanced {rebalances} times in {span}{began}: {common}{how}.",
    "{remedy} Until then the group rebalances again and again, and its partitions stand still each time.",
)
ASSIGNMENT_NOT_STORED: Final = Text(
    "ASSIGNMENT_NOT_STORED",
    "ERROR",
    "The coordinator could not write the group's assignment to __consumer_offsets ({error}), and all members had to join again: {what}.",
    "No client is at fault. {remedy}",
)
LINES_MISSING: Final = Text(
    "LINES_MISSING",
    "INFO",
    "{numbers} not in these lines: what the group did for {hole} is not known.",
    "Get the coordinator's lines of that time: from the log files of this broker that were rotated or left out, or from the other brokers, "
    "since another one may have coordinated the group. Until then durations, costs and members of that time are not known, and no sum "
    "has them.",
)
ILLEGAL_GENERATION: Final = Text(
    "ILLEGAL_GENERATION", "WARNING", "The coordinator refused {api} with generation {sent_generation}: {why}.", "{remedy}"
)
UNKNOWN_MEMBER: Final = Text("UNKNOWN_MEMBER", "WARNING", "The coordinator refused {api}: {removal}.", "{remedy}")
FENCED_INSTANCE: Final = Text(
    "FENCED_INSTANCE",
    "ERROR",
    "Another member{owner} came with group.instance.id {instance_id}. It took the place of this one, the victim, which the coordinator "
    "fenced: it stops consuming.",
    "Give every running consumer its own group.instance.id: change that of the one that came, unless it is to replace this one. Then stop "
    "the old process before its replacement starts.",
)
FENCED_BY_ITSELF: Final = FENCED_INSTANCE._replace(
    message="The coordinator refused a request of the static member {instance_id} that had no member id: the client had given its id up, "
    "and the coordinator had not.",
    advice="This takes no second process. librdkafka stops for good all the same: start the client again.",
)
ZOMBIE_COMMIT: Final = Text(
    "ZOMBIE_COMMIT",
    "WARNING",
    "The member tried to commit offsets with generation {sent_generation}{after}. The coordinator refused that, and the next owner may "
    "process the same records again.",
    "The application continued to work after it had lost its partitions. {act} {remedy}",
)
BE_IDEMPOTENT: Final = "Make its processing idempotent."
IN_A_TRANSACTION: Final = (
    "Abort the transaction, and read its records again. Call consumer.groupMetadata() anew in each transaction, right before "
    "sendOffsetsToTransaction(), which takes its result."
)
"""For a commit of a transactional producer (KIP-447): the broker refuses it, and the transaction writes nothing."""
MODEL_DIVERGENCE: Final = Text(
    "MODEL_DIVERGENCE",
    "WARNING",
    "The broker answered {api} with {answer}; by the rules of Kafka {release} the answer is {instead}.",
    "If lines are missing from this log, or damaged, that is why. Otherwise the coordinator does not do what Kafka's code says: keep "
    "these lines for a report, and look at the broker's version, its clock and its disk.",
)
COORDINATOR_MOVED: Final = Text("COORDINATOR_MOVED", "WARNING", "{what}{cost}", "{remedy}{session}")
SESSION_NEEDED: Final = (
    " {client} was last heard {unheard} before its coordinator could be reached again: session.timeout.ms had to be above {ms}, and was "
    "{limit}."
)
SESSION_TOO_SHORT: Final = " {name} was too short for this{limits}; no line shows what it needed."
AFTER_A_MOVE: Final = "Find out why the broker restarted, failed or gave its partitions up."
HELD_UP: Final = (
    "Broker {broker}, the group's coordinator, was held up: it had just taken partitions over from another broker, had restarted, stood "
    "still, or could not write its log."
)
WHEN_HELD_UP: Final = (
    "Find out what held it up. Most often another broker was lost: a write to __consumer_offsets waits for its replica "
    "(replica.lag.time.max.ms)."
)

HEARTBEAT_NEAR_MISS: Final = Text(
    "HEARTBEAT_NEAR_MISS",
    "WARNING",
    "The member was silent for {silence}; after {limit} (session.timeout.ms) the coordinator would have removed it.",
    "Find out what stopped the process (a pause of the JVM or the container, CPU limit, network), or raise session.timeout.ms well "
    "above {silent_ms}; heartbeat.interval.ms should be a third of it or less.",
)
IDLE_MEMBERS: Final = Text(
    "IDLE_MEMBERS",
    "INFO",
    "{count} of {members} members {have} no partition: the topics have {partitions}.",
    "Members without a partition only stand by. Run {partitions} members, or have at least {members} partitions if the work needs more.",
)
ASSIGNMENT_SKEW: Final = Text("ASSIGNMENT_SKEW", "INFO", "One member has {most} partitions, another {least}.", "{remedy}")
WITH_POLL_GAP: Final = Text(
    "POLL_TIMEOUT",
    "WARNING",
    "{departure} because the application did not call poll() for about {gap}; max.poll.interval.ms is {limit_ms}.",
    "Raise max.poll.interval.ms above {gap_ms}, or make the work between two polls shorter: move slow calls off the polling thread, or, if "
    "the time grows with the number of records, set max.poll.records below {share} % of its present value.",
)
"""POLL_TIMEOUT, once later lines show for how long the client did not poll."""
NOT_THE_COORDINATOR: Final = Text(
    "MODEL_DIVERGENCE",
    "ERROR",
    "Broker {broker} (node {node}) answered {api} for the group, while FIND_COORDINATOR named node {coordinator} before and after: it "
    "should have answered NOT_COORDINATOR.",
    "Two brokers may believe that they lead the group's partition of __consumer_offsets: compare its leader in the metadata of both, and "
    "restart the one that is wrong. Members of different coordinators process the same partitions twice.",
)
"""MODEL_DIVERGENCE for a broker that is not the coordinator at all."""
PAUSE: Final = (
    "Its heartbeats stopped, too: not only its poll loop but its whole process, or its network, stood still. Find out what stopped it (a "
    "pause of the JVM or the container, CPU limit, network)."
)
PAUSE_OR_STALL: Final = (
    "Its process, or only its poll loop, stood still. Look for a pause of the JVM or the container, and for work between two polls that "
    "takes too long."
)
SESSION_WENT_ON: Final = " The wait ended before its session did ({session}): so there is no SESSION_TIMEOUT."
SLOW_TO_JOIN: Final = {
    silences.PAUSED: PAUSE,
    silences.STALLED: "Its heartbeats went on: only its poll loop stalled. Make its work between two polls shorter (max.poll.records): the "
    "group waits for it, up to max.poll.interval.ms{limit}.",
    silences.UNKNOWN: PAUSE_OR_STALL,
}
STILL_RAN: Final = "The client still ran after the group had removed it, and others may have had its partitions meanwhile. "
MISSED_A_REBALANCE: Final = (
    "The member missed a rebalance. It must poll, and so rejoin, within max.poll.interval.ms{current} after the rebalance begins. Find out "
    "what delayed it: a stalled poll loop or a paused process."
)
LATE_SYNC: Final = ". It came {took} after the join phase: that needed max.poll.interval.ms{current} above {sync_ms}"
SYNC_TIMEOUT_OF_LEADER: Final = (
    "Its assignor took too long, or its process stopped. Use a faster assignor, or fewer partitions and members, or raise "
    "max.poll.interval.ms{current} above the time that the assignment takes."
)
SYNC_TIMEOUT_OF_MEMBER: Final = (
    "Its process stopped, or its application was busy, between joining and polling again: find out which. Its partitions stand still until "
    "max.poll.interval.ms{current} has passed; a lower value shortens that."
)
SKEW_OF_RANGE: Final = (
    "The range assignor gives the first members one partition more of every topic, which adds up over many topics: set "
    "partition.assignment.strategy to the sticky or the cooperative-sticky assignor."
)
SKEW_OF_OTHERS: Final = (
    "Check whether all members subscribe to the same topics: most assignors spread each topic evenly over its subscribers. The one in use: "
    "{assignor}."
)
LATE_COMMIT: Final = Text(
    "ZOMBIE_COMMIT",
    "WARNING",
    "The coordinator refused a commit of the member with generation {sent_generation}: a rebalance had begun {generation}. The owner of "
    "those partitions may process the same records again.",
    "The member is still in the group: {how}. {act}",
)
RACED: Final = "its commit raced a rebalance"
STALE_METADATA: Final = (
    "its transaction has the metadata of an old generation (groupMetadata()), though it was heard with a later one before"
)
COMMIT_EARLIER: Final = "Commit in onPartitionsRevoked (ConsumerRebalanceListener), not later, and make the processing idempotent."
"""ZOMBIE_COMMIT of a client that is a member: it has joined again since, or was slow to learn of the rebalance."""

REMOVED_BEFORE_THE_LOG: Final = "The log does not show when and why the group removed it: lines are missing, or the log begins later."
REMOVED_FOR_SILENCE: Final = (
    "The process was silent for {silence}: find out what stopped it (a pause of the JVM or the container, CPU limit, network). To survive "
    "such a pause, it needs session.timeout.ms{current} above {silent_ms}."
)
LEADER_UNHEARD: Final = "The group waited for its assignment, and nothing was heard of it for {silence}. " + SLOW_ASSIGNOR
REMOVED_TOO_LATE: Final = {
    silences.PAUSED: "It did not rejoin before the rebalance timeout. " + PAUSE,
    silences.STALLED: "Its heartbeats went on, but it did not rejoin within max.poll.interval.ms{current} after the rebalance began: "
    "shorten its work between two polls, or raise the setting.",
    silences.UNKNOWN: "It did not rejoin before the rebalance timeout. " + PAUSE_OR_STALL,
}
SEE_ITS_FINDING: Final = "Its finding {kind} says what to change."
LEFT_AND_RAN_ON: Final = (
    "It had left, but its process still ran: the application did not call poll() within max.poll.interval.ms{current} (then it joins again "
    "soon), or a thread of it still runs after close()."
)
INSTANCE_TAKEN: Final = (
    "A client came with its group.instance.id and took its place: if that is another process, stop the old one before its replacement "
    "starts."
)
REMOVED_UNHEARD: Final = "Find out what stopped its heartbeats before."
REMOVED_OTHERWISE: Final = "Find out why it was removed."

LOST_IN_A_MOVE: Final = (
    "The group had moved to another broker, which did not hear the member in time: find out why the coordinator moved (COORDINATOR_MOVED). "
    "The process itself need not have stopped."
)
