"""What brokers and controllers log when a broker comes or goes, and which release it runs.

Sources: `kafka/server/KafkaServer.scala`, `BrokerServer.scala`, `kafka/log/LogManager.scala`, `kafka/controller/KafkaController.scala`,
`kafka/zookeeper/ZooKeeperClient.scala`, `org/apache/kafka/common/utils/LoggingSignalHandler.java`,
`org/apache/kafka/clients/FetchSessionHandler.java` and `org/apache/kafka/controller/ReplicationControlManager.java` of 0.9.0.1 to 4.4.0;
the release: `org/apache/kafka/common/utils/AppInfoParser.java` (4.4: `utils/internals`), for KafkaServer.startup and KafkaRaftServer.startup.

The clients that a broker has in its own process write the release, too: it is the same one, since they share its JARs.

A follower that cannot reach its leader tries again every second. Only its first error has the number of a fetch session: `epoch=1891`,
then `epoch=INITIAL`.
"""

from __future__ import annotations

import re
from typing import Final

from coordinator_model import events as e
from jobs.sentences.language import Reading, Template, Templates

_FETCH: Final = "[ReplicaFetcher replicaId={number}, leaderId={number}, fetcherId={number}] Error sending fetch request"
_CHANGED: Final = "Newly added brokers: {text}, deleted brokers: {nodes}"

BROKER: Final = (
    Template(e.BROKER_STARTED, "KRaft", "[BrokerServer id={node}] Transition from STARTING to STARTED"),
    Template(e.BROKER_STARTED, "1.0-3.9", "[KafkaServer id={node}] started"),
    Template(e.BROKER_STARTED, "0.9-0.11", "[Kafka Server {node}], started"),
    Template(e.BROKER_RELEASE, "since 2.2", "Kafka version: {release}{build}"),
    Template(e.BROKER_RELEASE, "0.9-2.1", "Kafka version : {release}{build}"),
    Template(e.BROKER_STOPPING, "since 1.0", "Terminating process due to signal {word}"),
    Template(e.BROKER_STOPPING, "KRaft", "[BrokerServer id={node}] Transition from STARTED to SHUTTING_DOWN"),
    Template(e.BROKER_STOPPING, "1.0-3.9", "[KafkaServer id={node}] shutting down"),
    Template(e.BROKER_STOPPING, "0.9-0.11", "[Kafka Server {node}], shutting down"),
    Template(e.BROKER_STOPPED, "KRaft", "[BrokerServer id={node}] Transition from SHUTTING_DOWN to SHUTDOWN"),
    Template(e.BROKER_STOPPED, "1.0-3.9", "[KafkaServer id={node}] shut down completed"),
    Template(e.BROKER_STOPPED, "0.9-0.11", "[Kafka Server {node}], shut down completed"),
    Template(e.BROKER_FAILED, "since 1.0", "Shutdown broker because all log dirs in {text} have failed"),
    Template(e.BROKER_EXPIRED, "1.1-3.9", "[ZooKeeperClient Kafka server] Session expired."),
    Template(e.BROKER_EXPIRED, "1.1-2.0", "[ZooKeeperClient] Session expired."),
    Template(e.BROKER_CLEAN, "since 2.8", "Skipping recovery of {count} logs from {text} since clean shutdown file was found"),
    Template(e.BROKER_CLEAN, "2.7", "Skipping recovery for all logs in {text} since clean shutdown file was found"),
    Template(e.BROKER_UNCLEAN, "since 2.8", "Recovering {count} logs from {text} since no clean shutdown file was found"),
    Template(e.BROKER_UNCLEAN, "2.7", "Attempting recovery for all logs in {text} since no clean shutdown file was found"),
    Template(e.BROKER_UNREACHABLE, "since 1.1", _FETCH + " (sessionId={number}, epoch={number}) to node {node}:{text}"),
    Template(e.BROKER_FENCED, "KRaft", "[QuorumController id={number}] Fencing broker {node} because its session has timed out."),
    Template(e.BROKER_FENCED, "4.x KRaft", "[QuorumController id={number}] Fencing broker {node} at epoch {number} because its session has timed out."),
    Template(e.BROKER_FENCED, "2.2-3.9", "[Controller id={number}] " + _CHANGED + ", bounced brokers: {text}"),
    Template(e.BROKER_FENCED, "1.0-2.1", "[Controller id={number}] " + _CHANGED + ", all live brokers: {text}"),
    Template(e.BROKER_FENCED, "0.11", "[Controller {number}]: " + _CHANGED + ", all live brokers: {text}"),
    Template(e.BROKER_FENCED, "0.9-0.10", "[BrokerChangeListener on Controller {number}]: " + _CHANGED + ", all live brokers: {text}"),
)  # fmt: skip

LOGGERS: Final = (
    "BrokerServer", "KafkaServer", "LogManager", "LoggingSignalHandler", "Kafka$", "ZooKeeperClient", "FetchSessionHandler",
    "ReplicationControlManager", "KafkaController", "AppInfoParser", "ReplicaStateMachine$BrokerChangeListener",
)  # fmt: skip
"""Who logs them, by the last parts of the loggers' names."""
_LOGGER: Final = rf"\((?:[\w.]*\.)?(?:{'|'.join(map(re.escape, LOGGERS))})\)\Z"
_BEHIND: Final = re.compile(f"(?a){_LOGGER}")
_SHAPE: Final = re.compile(rf"(?as)\[[^\]]*\] [A-Z]+ (.*) {_LOGGER}")
_templates: Final = Templates(BROKER)


def is_of_such_a_logger(text: str) -> bool:
    """Whether a line is of a logger that says how brokers come and go, or what they run."""
    return text.endswith(")") and _BEHIND.match(text, text.rfind("(")) is not None


def read(text: str) -> tuple[str, Reading] | None:
    """The sentence of such a line, and what its template reads; None if it has no known sentence."""
    shape = _SHAPE.match(text)
    reading = None if shape is None else _templates.read(shape[1])
    return None if shape is None or reading is None else (shape[1], reading)
