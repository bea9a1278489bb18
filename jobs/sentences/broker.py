"""What brokers and controllers log when a broker comes or goes, which release it runs and which topics are compacted: broker.md."""

from __future__ import annotations

import re
from typing import Final

from jobs.sentences.language import Reading, Templates
from jobs.sentences.pages import sentences

BROKER: Final = sentences("broker")

LOGGERS: Final = (
    "BrokerServer", "KafkaServer", "LogManager", "LoggingSignalHandler", "Kafka$", "ZooKeeperClient", "FetchSessionHandler",
    "ReplicationControlManager", "KafkaController", "AppInfoParser", "ReplicaStateMachine$BrokerChangeListener", "DynamicConfigPublisher",
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
