"""Finds what clients other than Java's and librdkafka say about their group in a line: which library says it, and of which group.

The sentences are those of jobs/sentences/clients.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from jobs.common.expressions import expression
from jobs.sentences.client import FIELDS, NAMING, OPEN, UNSIGNED, read_of

JAVA: Final = b"java"

_SIGNS: Final = (
    b"; group: ", b"forced rejoin quitting", b"oined group ", b" join group ", b"Heartbeat", b"poll timeout has expired", b"Leaving ",
    b"; rejoining.", b"follow-up rebalance", b" sync group ", b"LeaveGroup request", b"Metadata for topic", b"consumergroup/",
    b"rebalancing group: ", b"; groupId: ", b"joining group ", b"for group ", b"ommit cannot be", b"ommit failed", b"poll interval",
    b"; clientId: ", b" been fenced", b"Encountered the following", b"static consumer", b"committing offsets",
    b"kafka server: The provided ", b"] Unknown Member ID", b"] Illegal Generation",
)  # fmt: skip
"""Each sentence has one of these. Most lines of an application have none, and need no more to be looked at."""

_SAID: Final = expression(
    "(?:^|(?<=[\\s:|\\]>)\"'-]))(?:{})".format(
        "|".join(
            f"(?P<{library.replace('-', '_')}>{'|'.join(dict.fromkeys(template.beginning for template in templates))})"
            for library, templates in UNSIGNED.items()
        )
    ).encode()
)
_CLOSES: Final = b", err: context canceled"
"""What franz-go says of a request that ends as it closes."""
_LONGEST: Final = 4_096  # bytes of a sentence that is looked through for its group: reading takes little time

_NAMESPACE: Final = expression(r"\[(?:Connection|Consumer|ConsumerGroup|Runner)\] ")
_AT_THE_END: Final = expression(
    r"(?<![^\s\]])(?:(?:{})\Z|(?:{}).*\Z)".format(*("|".join(map(re.escape, every)) for every in (FIELDS, OPEN)))
)


def library_of(line: bytes) -> tuple[str, int]:
    """Which library says something in a line, and where its sentence begins; ("", 0) if none does."""
    if not any(map(line.__contains__, _SIGNS)):
        return "", 0
    said = _SAID.search(line)
    if said is None:
        return "", 0
    library = str(said.lastgroup).replace("_", "-")
    if library == "franz-go" and line.find(_CLOSES, said.end() - len(_CLOSES)) >= 0:
        return "", 0
    # aiokafka took sentences over from kafka-python: the name of the logger before them tells.
    return "aiokafka" if b"aiokafka" in line[: said.start()] else library, said.start()


def named_group(sentence: bytes) -> str:
    """The group that a sentence of such a library names; empty if it names none."""
    named = read_of(NAMING, sentence.decode("utf-8", "replace")) if len(sentence) <= _LONGEST else None
    return "" if named is None else named.fields.get("group", "")


def with_fields_behind(text: str, fields: Mapping[str, Any]) -> str:
    """The message with which a text ends, with fields that stand behind it as an object; empty if it is none of such a library."""
    said = _AT_THE_END.search(text)
    whole = "" if said is None else with_fields(said[0], fields)
    return "" if said is None or whole == said[0] else whole


def with_fields(message: str, entry: Mapping[str, Any]) -> str:
    """A message with its fields as franz-go's own logger writes them: `joined; group: orders, member_id: …`."""
    bare = _NAMESPACE.sub("", message, count=1) if message[:1] == "[" else message
    names = FIELDS.get(bare) or next((names for begin, names in OPEN.items() if bare.startswith(begin)), None)
    if names is None:
        return message
    holders = (entry, *(value for value in entry.values() if isinstance(value, dict)))
    values = [next((str(one[name]) for one in holders if isinstance(one.get(name), str | int)), None) for name in names]
    return message if None in values else f"{bare}; " + ", ".join(f"{name}: {value}" for name, value in zip(names, values, strict=True))
