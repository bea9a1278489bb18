"""What consumers log about their group: the sentences of clients.md. The first that fits decides."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from coordinator_model import events as e
from jobs.sentences.language import Reading, Template, Templates
from jobs.sentences.pages import sentences

_OTHERS: Final = ("kafka-python", "aiokafka", "franz-go", "sarama", "kafka-go", "kafkajs")
_ERRORS: Final = (
    "Offset commit cannot be completed",
    "Commit cannot be completed",
    "Encountered the following ",
    "The broker rejected this static consumer",
    "Consumer committing offsets failed",
)

PROGRAM: Final = r"[A-Z][\w-]{0,30}(?: [\w-]{1,30}){0,3}"
PREFIX: Final = rf"\[{PROGRAM} (?:instanceId=[^\n]{{0,300}}?, )?clientId="
"""How each line of Java's client begins: `[Consumer clientId=`, `[Worker …` of Connect, `[Schema registry …`, and others (LogContext)."""

SENTENCES: Final = sentences("clients", "java", "librdkafka", *_OTHERS, "Notes")
CLIENTS: Final = Templates(SENTENCES)
NAMING: Final = Templates(sentences("clients", *_OTHERS, "Starting"))
"""What may name the group of a log's other lines."""

UNSIGNED: Final[Mapping[str, tuple[Template, ...]]] = {
    "franz-go": sentences("clients", "franz-go"),
    "librdkafka": tuple(template for template in sentences("clients", "librdkafka") if template.kind == e.CLIENT_POLL_TIMEOUT),
    "java": tuple(template for template in sentences("clients", "java") if template.text.startswith(_ERRORS)),
    **{library: sentences("clients", library) for library in ("kafka-python", "aiokafka", "sarama", "kafka-go")},
    "kafkajs": sentences("clients", "kafkajs", "Starting"),
}
"""By library, sentences that show by themselves whose they are. Of librdkafka and Java, the errors that an
application prints, or a thread of Streams as it ends."""

_BEHIND: Final = re.compile(r"(?: [\[(][^\[\]()]*[\])])+\Z")
"""What layouts put behind a sentence: a logger, a thread, a place in a source."""


def read_of(templates: Templates, sentence: str) -> Reading | None:
    """What a sentence of a library says, with or without what stands behind it."""
    return templates.read(_BEHIND.sub("", sentence)) or templates.read(sentence)


_NAME: Final = re.compile(r"(?:^|, |\})(\w+): ")


def _fields() -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for template in sentences("clients", "franz-go", "kafkajs", "Starting"):
        message, _, fields = template.text.partition("; ")
        names = tuple(_NAME.findall(fields))
        if names:
            found[message] = min(found.get(message, names), names, key=len)
    return found


FIELDS: Final[Mapping[str, tuple[str, ...]]] = _fields()
"""Which fields belong to a message of franz-go or KafkaJS, where a logger writes fields beside the message."""
OPEN: Final = {message.partition("{")[0]: names for message, names in FIELDS.items() if "{" in message}
"""The same of messages that have fields in them, by how they begin."""
