"""The texts of findings that rest on the logs of clients alone: no broker's log shows what the coordinator did."""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.diagnosis import catalogue, consumer_catalogue
from coordinator_model.diagnosis.catalogue import Text


class Settings(NamedTuple):
    """What the settings of a client are called."""

    session: str = "session.timeout.ms"
    poll: str = "max.poll.interval.ms"  # empty: it has none
    records: str = "max.poll.records"


_PYTHON: Final = Settings("session_timeout_ms", "max_poll_interval_ms", "max_poll_records")
SETTINGS: Final = {
    "": Settings(),
    "connect": Settings("session.timeout.ms of the worker", "rebalance.timeout.ms of the worker", ""),
    "sink": Settings(
        "consumer.override.session.timeout.ms of the connector",
        "consumer.override.max.poll.interval.ms",
        "consumer.override.max.poll.records of the connector",
    ),
    "logstash": Settings(*(f"{name} of the kafka input" for name in _PYTHON)),
    "librdkafka": Settings(records=""),
    "kafka-python": _PYTHON,
    "aiokafka": _PYTHON,
    "kafkajs": Settings("sessionTimeout", "", ""),
    "sarama": Settings("Consumer.Group.Session.Timeout", "", ""),
    "kafka-go": Settings("SessionTimeout of the ReaderConfig", "", ""),
    "franz-go": Settings("kgo.SessionTimeout", "", ""),
}
"""By the library or the program; those of the Java client elsewhere. Sources: WorkerConfig and DistributedConfig of Connect,
logstash-integration-kafka, and the configuration of each library."""

OF_PROGRAMS: Final = Settings(records="")
"""Of other programs that are members of a group by themselves, such as Schema Registry: none of them reads records there."""

_ASK_THE_BROKER: Final = " The log of the group's coordinator tells which (docs/capture.md)."

NO_HEARTBEAT_RESPONSE: Final = Text(
    "NO_HEARTBEAT_RESPONSE",
    "WARNING",
    "The client received no answer of the group's coordinator for {silence} its session timeout{then}.",
    "Find out what kept the answers from it: a pause of the process or its container, the network, or a broker in trouble."
    + _ASK_THE_BROKER
    + " To survive a pause, the client needs {session} above the length of the pause.",
)
POLL_TIMEOUT: Final = Text(
    "POLL_TIMEOUT",
    "WARNING",
    "{departure} because the application did not call poll() within its limit{limit}.",
    "Make the work between two polls shorter ({records}move slow calls off the polling thread) or raise {poll}{current} above the longest "
    "processing time." + catalogue.UNLESS_PAUSED,
)
POLL_TIMEOUT_OF_WORKER: Final = Text(
    "POLL_TIMEOUT",
    "WARNING",
    "The worker of Connect left the group because it did not take part in it within its rebalance.timeout.ms.",
    "Its line names what it did last: most often the start or stop of a connector, or reading the config topic. Make that shorter, or "
    "raise {poll}.",
)
POLL_TIMEOUT_OF_PROGRAM: Final = Text(
    "POLL_TIMEOUT",
    "WARNING",
    "The client left the group because the thread of {program} that takes part in it stood still for longer than its limit{limit}.",
    "No application polls there: find out what that thread waited for (a thread dump while it stands still; of Schema Registry, reading "
    "_schemas). Restart the process if it does not come back, and raise {poll}{current} only if the work has to take as long.",
)
UNKNOWN_MEMBER: Final = Text(
    "UNKNOWN_MEMBER",
    "WARNING",
    "The client learned that it is no member of the group any more{times}.",
    "Its session had ended, somebody had removed it, or the coordinator did not know the group."
    + _ASK_THE_BROKER
    + " The client joins again by itself. To survive a pause of its process, it needs {session} above the length of the pause.",
)
ILLEGAL_GENERATION: Final = Text(
    "ILLEGAL_GENERATION",
    "WARNING",
    "The client learned that the group had rebalanced without it{times}.",
    "It did not take part in time: its process stood still, or its heartbeats did not arrive. It joins again by itself." + _ASK_THE_BROKER,
)
FENCED_INSTANCE: Final = Text(
    "FENCED_INSTANCE",
    "ERROR",
    "Another member took the client's group.instance.id{instance}. The coordinator fenced the client, which stops consuming.",
    catalogue.FENCED_INSTANCE.advice,
)
UNRELEASED_INSTANCE_ID: Final = Text(
    "UNRELEASED_INSTANCE_ID",
    "ERROR",
    "Another member has the client's group.instance.id{instance}. The coordinator refused the client.",
    consumer_catalogue.UNRELEASED_INSTANCE_ID.advice,
)
CLIENT_REFUSED: Final = Text(
    "CLIENT_REFUSED", "ERROR", "The coordinator refused the client for good: {reason}", "Mend what the error names, then restart it."
)
FENCED_MEMBER_EPOCH: Final = Text(
    "FENCED_MEMBER_EPOCH",
    "WARNING",
    "The coordinator refused a heartbeat of the client: it knows the member with another epoch{times}.",
    consumer_catalogue.FENCED_MEMBER_EPOCH.advice,
)
ZOMBIE_COMMIT: Final = Text(
    "ZOMBIE_COMMIT",
    "WARNING",
    "The client could not commit offsets{times}: it was no member of the group any more, or the group had rebalanced without it. Another "
    "member may process the same records again.",
    "The application went on after it had lost its partitions. {act}" + catalogue.BE_IDEMPOTENT,
)
POLL_IN_TIME: Final = "Most often it had not called poll() within {poll}: make the work between two polls shorter, or raise that. "
COORDINATOR_AWAY: Final = (
    "Clients of the group could not reach its coordinator before that, and calls that wait for it keep an application from poll(): find "
    "out first what happened to that broker. "
)
COORDINATOR_UNREACHABLE: Final = Text(
    "COORDINATOR_UNREACHABLE",
    "ERROR",
    "The client could not reach the group's coordinator, {where}, {until}.{again}",
    "Find out whether {node} runs, and whether the client can reach it. If it is down and no other broker takes the group over, partitions "
    "of __consumer_offsets have no replica elsewhere: offsets.topic.replication.factor 1 is the usual reason, no setting of the client.",
)
HAD_NOT_JOINED: Final = (
    " It had been told {called} before that the group rebalances, and no line shows that it joined since: its poll loop may have stood "
    "still by then."
)
NOT_REJOINED: Final = Text(
    "NOT_REJOINED",
    "WARNING",
    "The client was told that the group rebalances, and did not join it {until}: its poll loop stood still.",
    "A client joins again when the application calls poll(). Find out what it did instead (slow work on a batch, a call that hangs). The "
    "others wait for it until its rebalance timeout is over, and then go on without it.",
)
STUCK_RECONCILING: Final = Text(
    "STUCK_RECONCILING",
    "WARNING",
    "The member took {waited} to reconcile its assignment.",
    "A client gives partitions up and takes new ones when it polls, and first commits and calls its rebalance listener: look for slow work "
    "between two polls, a slow listener, or commits that were not answered. Others wait for the partitions that it gives up.",
)
REBALANCE_STORM: Final = Text(
    "REBALANCE_STORM",
    "ERROR",
    "{who} joined {rebalances} generations in {span}{failed}. No broker's log shows who began these rebalances.",
    "{remedy}Find out who began them: the log of the group's coordinator names the client and the reason of each (docs/capture.md).",
)
MANY_ROUNDS: Final = Text(
    "REBALANCE_STORM",
    "WARNING",
    REBALANCE_STORM.message,
    "If members were restarted, started or stopped one after the other at that time, that is why. {remedy}Else find out who began them: "
    "the log of the group's coordinator names the client and the reason of each (docs/capture.md).",
)
"""Of generations that come no faster than a restart makes them, and of which the client got its assignment."""
CONNECT_TASKS_WAIT: Final = Text(
    "CONNECT_TASKS_WAIT",
    "WARNING",
    "Connectors or tasks of the Connect cluster wait up to {waited} before a worker gets them: a worker was lost, or the rebalances before "
    "took some away, too.",
    "A worker that was stopped, or failed, has that long to come back before others get its tasks: scheduled.rebalance.max.delay.ms of the "
    "workers. Find out which worker went, and lower that setting if its tasks have to move sooner.",
)
OF_WORKERS: Final = (
    "Workers of Connect rebalance when one of them comes or goes, and when connectors change. Look for workers that restart again and "
    "again, and for two Connect clusters that share a group.id; rebalance.timeout.ms and session.timeout.ms of the workers may be too "
    "short, and scheduled.rebalance.max.delay.ms shorter than a restart. "
)
TEXTS: Final = {
    text.code: text
    for text in vars().copy().values()
    if isinstance(text, Text) and text not in (POLL_TIMEOUT_OF_WORKER, POLL_TIMEOUT_OF_PROGRAM, MANY_ROUNDS)
}
