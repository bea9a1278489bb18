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


LOOK: Final = "Check its log and its host (SIGKILL, out of memory, long JVM or container pause, CPU limit, network){since}."
"""Where to look for what stopped a process. `since`: findings.since."""
SESSION_TIMEOUT: Final = Text(
    "SESSION_TIMEOUT",
    "WARNING",
    "The coordinator removed the member: no heartbeat {silence}{limit}.{then}",
    LOOK + " {stop} Raise {session}{current} above the longest pause to tolerate.",
)
SLOW_ASSIGNOR: Final = (
    "{why} (the Kafka Streams assignor asks brokers for offsets). Check its log{since}. Java consumers send no heartbeat while "
    "their assignor works: raise session.timeout.ms{current} above the time that the assignment takes."
)
WHY_NO_ASSIGNMENT: Final = "Its process stopped (crash, SIGKILL, long pause), or its assignor took too long"
WAITED_FOR_A_BROKER: Final = "A broker had just been lost or replaced, so its assignor may have waited for that broker"
SESSION_TIMEOUT_OF_LEADER: Final = SESSION_TIMEOUT._replace(advice=SLOW_ASSIGNOR)
SESSION_TIMEOUT_OF_A_MEMBER: Final = SESSION_TIMEOUT._replace(
    message="The coordinator removed a member: no heartbeat within the session timeout, as the thread of the line shows. The line does "
    "not name the member.",
    advice="Check the logs of the members for that time: that of the process that stopped has a gap, or says that the group removed it. "
    "Raise session.timeout.ms above the longest pause to tolerate.",
)
"""SESSION_TIMEOUT where a coordinator before 2.1 names no member."""
CALL_CLOSE: Final = "Call close() on planned stops, so that the member leaves at once."
IF_RESTARTED: Final = "If it restarted, set session.timeout.ms above the time that a restart takes."
RESTARTED: Final = "It was back {away} after its last heartbeat: if that was a restart, set session.timeout.ms above {least}."
STATIC_STOP: Final = (
    "A static member does not leave when it is closed. {restarted} To take it out permanently, {leave}remove it with Java's "
    "Admin.removeMembersFromConsumerGroup."
)
LEAVE_OF_JAVA: Final = "let it leave with CloseOptions.groupMembershipOperation(LEAVE_GROUP) (Java, KIP-1092), or "
LEAVE_OF_STREAMS: Final = "let it leave by the CloseOptions of KafkaStreams.close(), or "
BACK: Final = " It was back {back} later, under a new member id."
NAMESAKE: Final = " A client with its name joined {back} later, under a new member id."
NOT_BACK: Final = " It was not back within ten seconds."
TO_ASSIGN: Final = " The group waited for the assignment of this member, its leader."
ELECTED_BEFORE: Final = " The broker had become the coordinator {elected} before."
"""These follow the message of SESSION_TIMEOUT. A session starts anew with its coordinator."""
POLL_TIMEOUT: Final = Text(
    "POLL_TIMEOUT",
    "WARNING",
    "{departure}: the application did not call poll() within max.poll.interval.ms{limit}.",
    "Shorten the work between two polls ({less}), or raise {poll}{current} above the longest processing time.{unless}",
)
POLL_TIMEOUT_OF_WORKER: Final = POLL_TIMEOUT._replace(
    message="{departure}: the Connect worker took no part in it within {poll}{limit}. Its tasks may go on there while others run them, "
    "too.",
    advice="{unstick} Shorten that, or raise {poll}{current}.{unless}",
)
POLL_TIMEOUT_OF_PAUSED: Final = POLL_TIMEOUT._replace(
    message="The client left the group: the application did not call poll() within max.poll.interval.ms{limit}. Its process, or its "
    "network, had stopped: the coordinator had received nothing from it for {silence}.",
    advice="{pause}",
)
UNLESS_PAUSED: Final = " If its log or its host shows that the whole process paused for that long (JVM or container), fix that instead."
SYNC_TIMEOUT: Final = Text(
    "SYNC_TIMEOUT", "WARNING", "The {role} joined, but sent no SyncGroup within the rebalance timeout{limit}: {then}.", "{remedy}"
)
SYNC_TIMEOUT_OF_OLD_ID: Final = SYNC_TIMEOUT._replace(
    message="The static member sent no SyncGroup with this id within the rebalance timeout{limit}. It was back under another id by then, "
    "but the coordinator still waited for this one: all members had to join again.",
    advice="Check its log for a stalled poll loop, a paused process or a restart{since}. It must join and sync within "
    "max.poll.interval.ms{current} after a rebalance begins.",
)
INCONSISTENT_PROTOCOL: Final = Text(
    "INCONSISTENT_PROTOCOL",
    "ERROR",
    "The client cannot join: it shares no assignor with the members, or has another protocol type (INCONSISTENT_GROUP_PROTOCOL). "
    "It offers {offers}{used}.",
    "Give the client {strategy}. To move the whole group to another strategy, restart "
    "its clients one by one, twice: first with both strategies, then with the new one only.",
)
INVALID_SESSION_TIMEOUT: Final = Text(
    "INVALID_SESSION_TIMEOUT",
    "ERROR",
    "The client cannot join: its session.timeout.ms{requested} is outside the broker's limits (INVALID_SESSION_TIMEOUT).",
    "Set session.timeout.ms to {bounds}.",
)
GROUP_TOO_LARGE: Final = Text(
    "GROUP_TOO_LARGE",
    "ERROR",
    "The client cannot join: the group is full, at group.max.size{limit} (GROUP_MAX_SIZE_REACHED).{asked}",
    "Run no more consumers than group.max.size allows, or raise it on the brokers{wanted}.",
)
MEMBER_REFUSED: Final = GROUP_TOO_LARGE._replace(
    message="The group waited {waited} for this member, which the coordinator had refused and removed as it rejoined: other members had "
    "filled the group, at group.max.size (GROUP_MAX_SIZE_REACHED). A refusal does not end the wait before the rebalance timeout.{outside}"
)
LEFT_OUTSIDE: Final = " Its client was left outside the group."
GROUP_OVER_CAPACITY: Final = GROUP_TOO_LARGE._replace(
    message="The coordinator loaded the group with more members than group.max.size allows: all members join again, and the last ones are "
    "refused.",
    advice="Run no more consumers than group.max.size allows, or raise it to the same value on all brokers.",
)
"""GROUP_TOO_LARGE of a group that a coordinator has loaded."""
COORDINATOR_ERROR: Final = Text(
    "COORDINATOR_ERROR",
    "WARNING",
    "The coordinator reports: {words}.",
    "Read the lines around it in the broker's log. It may have caused the group's rebalances around that time.",
)
TOPICS_MISSING: Final = COORDINATOR_ERROR._replace(
    advice="Create these topics, then restart the instances that have given up meanwhile (MissingSourceTopicException)."
)
"""COORDINATOR_ERROR about source topics of a Streams group (KIP-1071)."""
SLOW_JOINER: Final = Text(
    "SLOW_JOINER",
    "WARNING",
    "The group waited {waited}for {whom}: {why}.",
    "No member gets its new assignment until all have rejoined. {remedy} With the cooperative assignor the other members keep working in "
    "the meantime.",
)
ROLLING_RESTART: Final = Text(
    "ROLLING_RESTART",
    "WARNING",
    "{count} members restarted one after another: {rebalances} rebalances in {span}.",
    "Give every consumer a group.instance.id (static membership), and set session.timeout.ms above the time that a restart takes: a "
    "rolling restart then causes no rebalance.{longest}",
)
LONGEST_RESTART: Final = " A restart took up to {longest}."
REBALANCE_STORM: Final = Text(
    "REBALANCE_STORM",
    "ERROR",
    "The group rebalanced {rebalances} times in {span}{began}: {common}{how}.",
    "{remedy} Until then the group keeps rebalancing, and nobody reads its partitions each time.",
)
STORM_OF_WORKERS: Final = REBALANCE_STORM._replace(
    advice="Keep that worker out of the cluster until it stays up, and read its log for why it dies. Each time that it is lost, its tasks "
    "wait for it, or move."
)
ASSIGNMENT_NOT_STORED: Final = Text(
    "ASSIGNMENT_NOT_STORED",
    "ERROR",
    "The coordinator could not write the group's assignment to __consumer_offsets ({error}), so all members had to join again: {what}.",
    "The clients are fine. {remedy}",
)
LINES_MISSING: Final = Text(
    "LINES_MISSING",
    "INFO",
    "{numbers} missing from these lines: what the group did for {hole} is not known.",
    "Get the coordinator's lines for that time: from rotated or omitted log files of this broker, or from the other brokers, one of which "
    "may have coordinated the group. Until then durations, costs and members for that time are unknown, and no sum includes them.",
)
ILLEGAL_GENERATION: Final = Text(
    "ILLEGAL_GENERATION", "WARNING", "The coordinator refused {api} with generation {sent_generation}: {why}.", "{remedy}"
)
UNKNOWN_MEMBER: Final = Text("UNKNOWN_MEMBER", "WARNING", "The coordinator refused {api}: {removal}.", "{remedy}")
FENCED_INSTANCE: Final = Text(
    "FENCED_INSTANCE",
    "ERROR",
    "Another member{owner} joined with group.instance.id {instance_id} and took this member's place. The coordinator fenced this member: "
    "it stops consuming.",
    "Give every running consumer its own group.instance.id: change it on the newcomer, unless that one replaces this client. If it does, "
    "stop the old process before its replacement starts.",
)
FENCED_BY_ITSELF: Final = FENCED_INSTANCE._replace(
    message="The coordinator refused a request of the static member {instance_id} that had no member id: the client had dropped its id, "
    "and the coordinator still held it.",
    advice="No second process is involved, but librdkafka stops permanently: restart the client.",
)
ZOMBIE_COMMIT: Final = Text(
    "ZOMBIE_COMMIT",
    "WARNING",
    "The member tried to commit offsets with generation {sent_generation}{after}. The coordinator refused the commit, and the next owner "
    "may process the same records again.",
    "The application kept working after it had lost its partitions. {act} {remedy}",
)
BE_IDEMPOTENT: Final = "Make its processing idempotent."
IN_A_TRANSACTION: Final = (
    "Abort the transaction and read its records again. Call consumer.groupMetadata() again in each transaction, right before passing it to "
    "sendOffsetsToTransaction()."
)
"""For a commit of a transactional producer (KIP-447): the broker refuses it, and the transaction writes nothing."""
MODEL_DIVERGENCE: Final = Text(
    "MODEL_DIVERGENCE",
    "WARNING",
    "The broker answered {api} with {answer}; by the rules of Kafka {release} the answer is {instead}.",
    "If lines of this log are missing or damaged, that explains it. Otherwise the coordinator does not follow Kafka's code: keep these "
    "lines for a bug report, and check the broker's version, clock and disk.",
)
CONNECT_TASKS_WAIT: Final = Text(
    "CONNECT_TASKS_WAIT",
    "WARNING",
    "The worker {how}, and its {many} waited for the scheduled delay of {delay}. {then}",
    "Set scheduled.rebalance.max.delay.ms of the workers a little above the time that the restart of one takes: a restart moves no task "
    "then, and those of a lost worker run again sooner. Workers that are stopped on purpose (SIGTERM) are waited for as well.",
)
COORDINATOR_MOVED: Final = Text("COORDINATOR_MOVED", "WARNING", "{what}{cost}", "{remedy}{session}")
SESSION_NEEDED: Final = (
    " To survive this, raise {setting} above {least}: the last heartbeat of {client} that was accepted came {unheard} before its "
    "coordinator heard it again, or could have.{poll}"
)
SESSION_TOO_SHORT: Final = " Raise {setting}: it was too short to survive this."
AFTER_A_MOVE: Final = "Read the former coordinator's log for that time: it restarted, failed or gave up its partitions."
HELD_UP: Final = (
    "The group's coordinator, {broker}, did not answer in time: it had just taken over partitions from another broker, had restarted, had "
    "paused, or could not write its log."
)
WHEN_HELD_UP: Final = (
    "Check whether another broker was lost at that time, as most often: writes to __consumer_offsets then wait for its replica "
    "(replica.lag.time.max.ms)."
)

HEARTBEAT_NEAR_MISS: Final = Text(
    "HEARTBEAT_NEAR_MISS",
    "WARNING",
    "The member was silent for {silence}; after {limit} (session.timeout.ms) the coordinator would have removed it.",
    LOOK + " Or raise {session} well above {silence}. Keep heartbeat.interval.ms at a third of it or less.",
)
IDLE_MEMBERS: Final = Text(
    "IDLE_MEMBERS",
    "INFO",
    "{count} of {members} members {have} no partition: the topics have {partitions}.",
    "Members without a partition sit idle. Run {partitions} members, or have at least {members} partitions if the work needs more.",
)
IDLE_TASKS: Final = IDLE_MEMBERS._replace(
    advice="The members are tasks of a sink connector. Set its tasks.max to {partitions}, or have at least {members} partitions if the "
    "work needs more."
)
ASSIGNMENT_SKEW: Final = Text("ASSIGNMENT_SKEW", "INFO", "One member has {most} partitions, another {least}.", "{remedy}")
WITH_POLL_GAP: Final = POLL_TIMEOUT._replace(
    message="{departure}: the application did not call poll() for about {gap} (max.poll.interval.ms is {limit}).",
    advice="Raise {poll}{current} above {least}, or shorten the work between two polls: {less}.",
)
"""POLL_TIMEOUT, once later lines show for how long the client did not poll."""
NOT_THE_COORDINATOR: Final = MODEL_DIVERGENCE._replace(
    severity="ERROR",
    message="Broker {broker} (node {node}) answered {api} for the group, while FIND_COORDINATOR named node {coordinator} before and "
    "after: it should have answered NOT_COORDINATOR.",
    advice="Two brokers may both believe that they lead the group's partition of __consumer_offsets: compare its leader in the metadata "
    "of both, and restart the one that is wrong. Members with different coordinators process the same partitions twice.",
)
"""MODEL_DIVERGENCE for a broker that is not the coordinator at all."""
PAUSE: Final = "Its heartbeats stopped too, so its whole process or its network stopped, not just its poll loop. " + LOOK
PAUSE_OR_STALL: Final = (
    "Its process, or only its poll loop, stopped. Check its log for a JVM or container pause, and for slow work between two polls."
)
SLOW_TO_JOIN: Final = {
    silences.PAUSED: PAUSE,
    silences.STALLED: "Its heartbeats continued: only its poll loop stalled. Shorten its work between two polls{fewer}: the group "
    "waits for it, up to {poll}{limit}.",
    silences.UNKNOWN: PAUSE_OR_STALL,
}
SLOW_WORKER: Final = "Its heartbeats continued. {unstick} The group waits for it, up to {poll}{limit}."
STILL_RAN: Final = "The client was still running after the group had removed it{meanwhile}. "
MAY_BE_TAKEN: Final = ", and others may have had its partitions by then"
WAITED_FOR: Final = ". No other worker had its tasks by then: the scheduled delay ran"
MISSED_A_REBALANCE: Final = (
    "The member missed a rebalance. It must poll, and so rejoin, within max.poll.interval.ms{current} after the rebalance begins. "
    "Check its log for that time: a stalled poll loop or a paused process delayed it."
)
LATE_SYNC: Final = ". It came {took} after the join phase: to allow that, raise max.poll.interval.ms{current} above {least}"
SYNC_TIMEOUT_OF_LEADER: Final = (
    "Its assignor took too long, or its process stopped. Use a faster assignor, or fewer partitions and members, or raise "
    "max.poll.interval.ms{current} above the time that the assignment takes."
)
SYNC_TIMEOUT_OF_MEMBER: Final = (
    "Its process stopped, or its application was busy, between joining and polling again: its log for that time shows which. "
    "Nobody reads its partitions until max.poll.interval.ms{current} has passed; a lower value shortens that."
)
SKEW_OF_RANGE: Final = (
    "The range assignor gives the first members one extra partition of every topic, which adds up over many topics: set "
    "partition.assignment.strategy to the sticky or the cooperative-sticky assignor."
)
SKEW_OF_OTHERS: Final = (
    "Check that all members subscribe to the same topics: most assignors spread each topic evenly over its subscribers. Assignor in use: "
    "{assignor}."
)
LATE_COMMIT: Final = ZOMBIE_COMMIT._replace(
    message="The coordinator refused the member's commit with generation {sent_generation}: a rebalance had begun {generation}. The owner "
    "of those partitions may process the same records again.",
    advice="The member is still in the group: {how}. {act}",
)
RACED: Final = "its commit raced a rebalance"
STALE_METADATA: Final = (
    "its transaction uses the metadata of an old generation (groupMetadata()), though it had already sent requests with a later one"
)
COMMIT_EARLIER: Final = "Commit in onPartitionsRevoked (ConsumerRebalanceListener), not later, and make the processing idempotent."
"""ZOMBIE_COMMIT of a client that is a member: it has joined again since, or was slow to learn of the rebalance."""

REMOVED_BEFORE_THE_LOG: Final = "The log does not show when and why the group removed it: lines are missing, or the log starts later."
REMOVED_FOR_SILENCE: Final = (
    "The process was silent for {silence}. " + LOOK + " To survive such a pause, raise {session}{current} above {least}.{poll}"
)
POLL_TOO_SHORT: Final = (
    " Raise max.poll.interval.ms (now {now}) above that, too: librdkafka refuses a longer session timeout, and a client that does not poll "
    "for so long leaves."
)
TOO_LONG_WITHOUT_POLL: Final = " Raise max.poll.interval.ms{current} above that, too: a client that did not poll for so long leaves."
LEADER_UNHEARD: Final = "The group waited for its assignment, and it sent nothing for {silence}. " + SLOW_ASSIGNOR
REMOVED_TOO_LATE: Final = {
    silences.PAUSED: "It did not rejoin before the rebalance timeout. " + PAUSE,
    silences.STALLED: "Its heartbeats continued, but it did not rejoin within max.poll.interval.ms{current} after the rebalance began: "
    "shorten its work between two polls, or raise the setting.",
    silences.UNKNOWN: "It did not rejoin before the rebalance timeout. " + PAUSE_OR_STALL,
}
SEE_ITS_FINDING: Final = "See its finding {kind} for what to change."
LEFT_AND_RAN_ON: Final = (
    "It had left, but its process was still running: the application did not call poll() within max.poll.interval.ms{current} (it then "
    "soon joins again), or one of its threads runs on after close()."
)
INSTANCE_TAKEN: Final = (
    "A client joined with its group.instance.id and took its place: if that is another process, stop the old one before its replacement "
    "starts."
)
REMOVED_UNHEARD: Final = "Its heartbeats had stopped. Check its log and its host for the time before."
REMOVED_OTHERWISE: Final = "The coordinator's log says why it was removed."

LOST_IN_A_MOVE: Final = (
    "The group had moved to another broker, which did not hear from the member in time: see why the coordinator moved "
    "(COORDINATOR_MOVED). The process itself may not have stopped."
)
