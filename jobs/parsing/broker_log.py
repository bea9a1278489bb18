"""Lines of a broker or controller that say how a broker comes and goes, as rows. The sentences are in templates/broker.py."""

from __future__ import annotations

import re
from typing import Any, Final

from coordinator_model.events import BROKER_SOURCE
from jobs.parsing.rows import EVENT, int32, skipped
from jobs.parsing.templates.broker import BROKER
from jobs.parsing.templates.language import Templates

_LOGGERS: Final = (
    r"(?:[\w.]*\.)?(?:BrokerServer|KafkaServer|LogManager|LoggingSignalHandler|Kafka\$|ZooKeeperClient|FetchSessionHandler"
    r"|ReplicationControlManager|KafkaController|AppInfoParser|ReplicaStateMachine\$BrokerChangeListener)"
)
BROKER_SHAPE: Final = re.compile(rf"(?as)\[[^\]]*\] [A-Z]+ (.*) \({_LOGGERS}\)\Z")
"""Group: the sentence."""
_LOGGER: Final = re.compile(rf"(?a)\({_LOGGERS}\)\Z")
_MOST: Final = 1 << 10  # characters of a line

BROKER_SENTENCES: Final = Templates(BROKER)


def is_broker_line(text: str) -> bool:
    """Whether a line is of a logger that says how brokers come and go, or what they run."""
    return len(text) <= _MOST and text.endswith(")") and _LOGGER.match(text, text.rfind("(")) is not None


def row(text: str, at_us: int | None) -> dict[str, Any]:
    """The columns of PARSED that the text and the time (epoch µs) of a line decide. A sentence that no template fits is skipped."""
    shape = BROKER_SHAPE.match(text)
    reading = None if shape is None else BROKER_SENTENCES.read(shape[1])
    if reading is None or shape is None or at_us is None:
        return skipped(BROKER_SOURCE)
    nodes = reading.fields.get("nodes")
    return {
        "source": BROKER_SOURCE,
        "verdict": EVENT,
        "kind": reading.template.kind,
        "received_at": at_us,
        "coordinator_id": int32(reading.fields.get("node")),
        "software": reading.fields.get("release"),
        "reason": shape[1],
        "groups": None if nodes is None else [{"coordinator_id": int32(node)} for node in re.split(", ?", nodes)],
    }
