"""The texts of findings that rest on the logs of clients alone: no broker's log shows what the coordinator did."""

from __future__ import annotations

from typing import Final

from coordinator_model.diagnosis import catalogue, consumer_catalogue
from coordinator_model.diagnosis.catalogue import Text

_ASK_THE_BROKER: Final = " The log of the group's coordinator shows which (docs/capture.md)."

NO_HEARTBEAT_RESPONSE: Final = Text(
    "NO_HEARTBEAT_RESPONSE",
    "WARNING",
    "The client got no answer from the group's coordinator for {silence} its session timeout{then}.",
    "Check the process for a pause, the network, and the broker: one of them kept the answers away."
    + _ASK_THE_BROKER
    + " Raise {session} above the longest pause to tolerate.",
)
POLL_TIMEOUT: Final = catalogue.POLL_TIMEOUT._replace(
    message="{departure}: the application did not call poll() within {of_poll}.",
    advice="Shorten the work between two polls ({less}), or raise {poll}{current} above the longest processing time."
    + catalogue.UNLESS_PAUSED,
)
POLL_TIMEOUT_OF_WORKER: Final = catalogue.POLL_TIMEOUT._replace(
    message="The Connect worker left the group: it took no part in it within its rebalance.timeout.ms.",
    advice="Its line names what it did last: most often starting or stopping a connector, or reading the config topic. Shorten that, or "
    "raise {poll}.",
)
POLL_TIMEOUT_OF_PROGRAM: Final = catalogue.POLL_TIMEOUT._replace(
    message="The client left the group: the {program} thread that takes part in it was stuck for longer than its limit{limit}.",
    advice="{unstick} Restart the process if it does not come back, and raise {poll}{current} only if the work really takes that long.",
)
UNKNOWN_MEMBER: Final = catalogue.UNKNOWN_MEMBER._replace(
    message="The client learned that it is no longer a member of the group{times}.",
    advice="Its session had ended, somebody had removed it, or the coordinator did not know the group."
    + _ASK_THE_BROKER
    + " The client rejoins by itself. If its process paused, raise {session} above the longest pause to tolerate.",
)
ILLEGAL_GENERATION: Final = catalogue.ILLEGAL_GENERATION._replace(
    message="The client learned that the group had rebalanced without it{times}.",
    advice="It did not take part in time: its process paused, or its heartbeats did not arrive. It rejoins by itself." + _ASK_THE_BROKER,
)
FENCED_INSTANCE: Final = catalogue.FENCED_INSTANCE._replace(
    message="Another member took the client's group.instance.id{instance}. The coordinator fenced the client, which stops consuming."
)
UNRELEASED_INSTANCE_ID: Final = consumer_catalogue.UNRELEASED_INSTANCE_ID._replace(
    message="Another member has the client's group.instance.id{instance}. The coordinator refused the client."
)
CLIENT_REFUSED: Final = Text(
    "CLIENT_REFUSED", "ERROR", "The coordinator refused the client, which gave up: {reason}", "Fix what the error names, then restart it."
)
TOPOLOGY_REFUSED: Final = CLIENT_REFUSED._replace(
    advice="All instances of a Streams group run one topology, that of its first member. Give all of them the same code, or give the "
    "changed application an application.id of its own."
)
"""CLIENT_REFUSED of a Streams client with another topology (GroupMetadataManager.maybeUpdateTopology)."""
FENCED_MEMBER_EPOCH: Final = consumer_catalogue.FENCED_MEMBER_EPOCH._replace(
    message="The coordinator refused a heartbeat of the client: it knows the member with another epoch{times}."
)
ZOMBIE_COMMIT: Final = catalogue.ZOMBIE_COMMIT._replace(
    message="The client could not commit offsets{times}: it was no longer a member of the group, or the group had rebalanced without it. "
    "Another member may process the same records again.",
    advice="The application kept working after it had lost its partitions. {act}" + catalogue.BE_IDEMPOTENT,
)
POLL_IN_TIME: Final = "Most often it had not called poll() within {poll}: shorten the work between two polls, or raise that setting. "
COORDINATOR_AWAY: Final = (
    "Clients of the group could not reach its coordinator before that, and calls that wait for it keep an application from calling poll(): "
    "first find out what happened to that broker. "
)
COORDINATOR_UNREACHABLE: Final = Text(
    "COORDINATOR_UNREACHABLE",
    "ERROR",
    "The client could not reach the group's coordinator, {where}, {until}.{again}",
    "Check that {node} is running and that the client can reach it. If it is down and no other broker takes over the group, partitions of "
    "__consumer_offsets have no replica elsewhere: the usual reason is offsets.topic.replication.factor=1, not a client setting.",
)
HAD_NOT_JOINED: Final = (
    " It had been told of a rebalance {called} before, and no line shows that it joined since: {thread} may already have stalled."
)
NOT_REJOINED: Final = Text(
    "NOT_REJOINED",
    "WARNING",
    "The client was told of a rebalance and did not rejoin {until}: {thread} stalled.",
    "{unstick} The others wait for it until its rebalance timeout, then continue without it.",
)
STUCK_RECONCILING: Final = consumer_catalogue.STUCK_RECONCILING._replace(
    message="The member took {waited} to reconcile its assignment.",
    advice="A client gives up partitions and takes new ones when it polls, after it commits and calls its rebalance listener: look for "
    "slow work between two polls, a slow listener, or unanswered commits. Others wait for the partitions that it gives up.",
)
REBALANCE_STORM: Final = catalogue.REBALANCE_STORM._replace(
    message="{who} joined {rebalances} generations in {span}{failed}. No broker's log shows who began these rebalances.",
    advice="{remedy}Find out who began them: the log of the group's coordinator names the client and the reason for each "
    "(docs/capture.md).",
)
MANY_ROUNDS: Final = REBALANCE_STORM._replace(
    severity="WARNING",
    advice="If members were restarted, started or stopped one after another at that time, that explains it. {remedy}Otherwise find out "
    "who began them: the log of the group's coordinator names the client and the reason for each (docs/capture.md).",
)
"""Of generations that come no faster than a restart makes them, and of which the client got its assignment."""
CONNECT_TASKS_WAIT: Final = catalogue.CONNECT_TASKS_WAIT._replace(
    message="Connectors or tasks of the Connect cluster wait up to {waited} before a worker gets them: a worker was lost, or earlier "
    "rebalances took some away as well.",
    advice="A worker that stopped or failed has that long to come back before others get its tasks (scheduled.rebalance.max.delay.ms of "
    "the workers). Read in the leader's log which worker left, and lower that setting if its tasks must move sooner.",
)
OF_WORKERS: Final = (
    "Connect workers rebalance when one of them joins or leaves, and when connectors change. Look for workers that keep restarting, and "
    "for two Connect clusters that share a group.id. rebalance.timeout.ms and session.timeout.ms of the workers may be too short, and "
    "scheduled.rebalance.max.delay.ms shorter than a restart. "
)
TEXTS: Final = {
    text.code: text
    for text in vars().copy().values()
    if isinstance(text, Text) and text not in (POLL_TIMEOUT_OF_WORKER, POLL_TIMEOUT_OF_PROGRAM, MANY_ROUNDS)
}
