"""Lines of a broker or controller that say how a broker comes and goes, or of a topic its id or that it is compacted, as rows.

The sentences are in jobs/sentences/broker.md.

Where a log has no line of the broker's start, its answers to ApiVersions tell which release it runs: they name the levels of
metadata.version that it supports. The highest one is `LATEST_PRODUCTION` of `org.apache.kafka.server.common.MetadataVersion`, which each
release raises.
"""

from __future__ import annotations

import re
from typing import Any, Final

from coordinator_model.events import BROKER_RELEASE, BROKER_SOURCE, REQUEST_SOURCE
from jobs.parsing.rows import EVENT, int32, skipped
from jobs.sentences import broker

_MOST: Final = 1 << 10  # characters of a line

LEVELS: Final = {19: "3.7", 20: "3.8", 21: "3.9", 25: "4.0", 27: "4.1", 29: "4.2", 30: "4.3", 33: "4.4"}
"""The release line by the highest level. A broker with unstable features tells others, which say nothing."""
_REQUEST: Final = "Completed request:"
_API_VERSIONS: Final = '"requestApiKeyName":"API_VERSIONS"}'
_ANSWER: Final = ',"response":{'
_ANSWER_SHAPE: Final = re.compile(r"(?as)\[[^\]]*\] [A-Z]+ Completed request:\{.*\} \([\w.$]+\)")
# Quotes inside JSON strings are escaped, so no client can write this.
_LEVEL: Final = re.compile(r'(?a)\{"name":"metadata\.version","minVersion":\d{1,5},"maxVersion":(\d{1,5})\}')


def is_broker_line(text: str) -> bool:
    """Whether a line is of a logger that says how brokers come and go, or what they run."""
    return len(text) <= _MOST and broker.is_of_such_a_logger(text)


def row(text: str, at_us: int | None) -> dict[str, Any]:
    """The columns of PARSED that the text and the time (epoch µs) of a line decide. A sentence that no template fits is skipped."""
    told = broker.read(text)
    if told is None or at_us is None:
        return skipped(BROKER_SOURCE)
    sentence, reading = told
    nodes, topic = reading.fields.get("nodes"), reading.fields.get("topic")
    return {
        "source": BROKER_SOURCE,
        "verdict": EVENT,
        "kind": reading.template.kind,
        "received_at": at_us,
        "coordinator_id": int32(reading.fields.get("node")),
        "software": reading.fields.get("release"),
        "reason": sentence,
        "offsets": None if topic is None else [{"partition": topic, "topic_id": reading.fields.get("topic_id")}],
        "groups": None if nodes is None else [{"coordinator_id": int32(node)} for node in re.split(", ?", nodes)],
    }


def is_api_versions(text: str) -> bool:
    """Whether a request line is an answer to ApiVersions, and not two lines in one."""
    return _API_VERSIONS in text and text.count(_REQUEST) == 1


def level_of(text: str) -> int | None:
    """The highest metadata.version that a broker supports by an answer to ApiVersions, if a release ends with it."""
    place = text.find(_ANSWER, text.find(_API_VERSIONS) + 1)
    found = _LEVEL.search(text, place) if place > 0 and is_api_versions(text) and _ANSWER_SHAPE.fullmatch(text) else None
    level = None if found is None else int(found[1])
    return level if level in LEVELS else None


def answer_row(text: str, at_us: int | None) -> dict[str, Any]:
    """The columns of PARSED of a request that concerns no group. It is skipped if it tells no release."""
    level = level_of(text)
    if at_us is None or level is None:
        return skipped(REQUEST_SOURCE)
    return {
        "source": BROKER_SOURCE,
        "verdict": EVENT,
        "kind": BROKER_RELEASE,
        "received_at": at_us,
        "software": LEVELS[level],
        "reason": f"metadata.version up to {level}",
    }
