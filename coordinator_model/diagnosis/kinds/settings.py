"""What each kind of client calls its settings, and what can be done about it: advice names nothing that the client does not have."""

from __future__ import annotations

from typing import Final, NamedTuple

from coordinator_model.diagnosis import catalogue
from coordinator_model.events import CONNECT, STREAMS
from coordinator_model.view.view import View

SINK_TASK: Final = "connector-consumer-"
"""Client ids of the consumers of sink tasks begin so (org.apache.kafka.connect.runtime.Worker.baseConsumerConfigs)."""
STREAMS_ASSIGNOR: Final = "stream"
"""StreamsPartitionAssignor.name."""
_THREAD: Final = "-StreamThread-"
"""Each thread of Kafka Streams is a member, with a client.id of its own (StreamThread.create)."""


class Settings(NamedTuple):
    """What the settings of a client are called, what takes part in the group there, and what to do where that was stuck."""

    session: str = "session.timeout.ms"
    poll: str = "max.poll.interval.ms"  # empty: it has none
    records: str = "max.poll.records"  # empty: it has none
    hand_over: str = "move slow calls off the polling thread"  # empty: its application does not poll by itself
    thread: str = "its poll loop"
    unstick: str = (
        "A client rejoins when the application calls poll(). Check in its log what it did instead (slow work, a call that hangs)."
    )
    stop: str = catalogue.CALL_CLOSE  # what a planned stop takes
    leave: str = catalogue.LEAVE_OF_JAVA  # how a static member of Java's leaves for good

    def less_work(self) -> str:
        """How to shorten the work between two polls."""
        return ", ".join(filter(None, [self.records and f"lower {self.records}", self.hand_over]))

    def fewer_records(self, advice: str) -> str:
        """`advice` with the setting of how many records a poll hands out; empty for a client that has none, such as librdkafka's."""
        return advice.format(self.records) if self.records else ""


_PYTHON: Final = Settings("session_timeout_ms", "max_poll_interval_ms", "max_poll_records")
_THREADS: Final = Settings(hand_over="")
SETTINGS: Final = {
    "": Settings(),
    "connect": Settings(
        "session.timeout.ms of the worker",
        "rebalance.timeout.ms of the worker",
        "",
        "",
        "the worker's thread",
        "Check in the worker's log what it did instead: most often it started or stopped a connector, or read the config topic.",
        "A worker that is stopped with SIGTERM leaves as soon as its tasks have stopped.",
    ),
    "sink": Settings(
        "consumer.override.session.timeout.ms of the connector",
        "consumer.override.max.poll.interval.ms of the connector",
        "consumer.override.max.poll.records of the connector",
        "",
        stop="It is the consumer of a sink task: see first what its Connect cluster did with the task, or with its worker, at that time.",
    ),
    "streams": _THREADS._replace(
        stop="KafkaStreams.close() does not leave the group by itself: let it leave by CloseOptions when you scale in, or give each "
        "instance a group.instance.id, so that a restart within the session timeout moves nothing.",
        leave=catalogue.LEAVE_OF_STREAMS,
    ),
    "streams group": _THREADS,
    "logstash": Settings(*(f"{name} of the kafka input" for name in _PYTHON[:3])),
    "librdkafka": Settings(records=""),
    "kafka-python": _PYTHON,
    "aiokafka": _PYTHON,
    "kafkajs": Settings("sessionTimeout", "", ""),
    "sarama": Settings("Consumer.Group.Session.Timeout", "", ""),
    "kafka-go": Settings("SessionTimeout of the ReaderConfig", "", ""),
    "franz-go": Settings("kgo.SessionTimeout", "", ""),
}
"""By the kind of group, the library or the program; those of the Java client elsewhere. Sources: WorkerConfig and DistributedConfig of
Connect, logstash-integration-kafka, and the configuration of each library."""

OF_PROGRAMS: Final = Settings(
    records="",
    thread="the {program} thread",
    unstick="No application polls there: find out what that thread waited for (take a thread dump while it is stuck; in Schema Registry, "
    "reading _schemas).",
)
"""Of other programs that are members of a group by themselves, such as Schema Registry: none of them reads records there."""


def is_java(software: str) -> bool:
    """Whether a client may be Java's, by what it says of itself (KIP-511)."""
    return not software or software.startswith("apache-kafka-java")


def of_member(view: View, client_id: str, software: str = "") -> Settings:
    """The settings of a member by what its group is for, else by its client.id, else by what the client says of itself."""
    if view.group_type == STREAMS:
        return SETTINGS["streams group"]
    if view.protocol_type == CONNECT:
        return SETTINGS["connect"]
    if client_id.startswith(SINK_TASK):
        return SETTINGS["sink"]
    return SETTINGS["streams"] if view.protocol == STREAMS_ASSIGNOR else of_software(software)


def process_of(client_id: str) -> str:
    """The process of a client, by its client.id: the same for all threads of a Streams instance."""
    return client_id.partition(_THREAD)[0]


def of_software(software: str) -> Settings:
    """The settings of a client by what it says of itself. Most that say another name than these are librdkafka's."""
    return SETTINGS[""] if is_java(software) else SETTINGS.get(software.partition(" ")[0], SETTINGS["librdkafka"])
