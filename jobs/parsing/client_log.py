"""Lines of a consumer's own log as rows: the Java client's, 2.1 to 4.4, librdkafka's, and those of other libraries.

Java: `[Consumer clientId=…, groupId=…] sentence`, inside the application's own log pattern; Connect writes `[Worker …]`,
other programs their names.
librdkafka: `%level|epoch|FACILITY|name| [thrd:…]: sentence`; the name is `<client.id>#consumer-<n>`; other lines name the group
(jobs/logs/clients/judge.py). Through a binding, and from another library: `time %|FACILITY|name| sentence`, where another library is the
name (jobs/logs/clients/envelopes.py).

All have many more sentences. Those that say neither why a member joins nor why it leaves are skipped, but not those of Java's client that
have a word of trouble (jobs/common/trouble.py): nothing may be called healthy over them.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from coordinator_model.events import CLIENT_NOTE, CLIENT_SOURCE, CONNECT
from jobs.common.expressions import expression
from jobs.common.trouble import tells_of_trouble
from jobs.logs.faults import as_written
from jobs.logs.survey.containers import container_of
from jobs.parsing.rows import EVENT, Refusal, damage, int32, refused, skipped
from jobs.sentences.client import CLIENTS, PREFIX, PROGRAM, read_of
from jobs.sentences.language import LONG_WORD

_MAX_LENGTH: Final = 1 << 16
_MAX_WORDS: Final = 1 << 12  # characters besides long words
_SIGNED: Final = r"(?:%\d\|[\d.]+|(?:[\[\d][^%]{17,60} )?%)\|"
_IS_SIGNED: Final = expression(rf"(?a){_SIGNED}")
# What stands behind the sentence is the logger: Connect's pattern adds the line number (`%m (%c:%L)`). A class without a package is none.
_JAVA_BEGINS: Final = expression(PREFIX, re.ASCII)
_JAVA: Final = expression(
    rf"(?as).*?\[({PROGRAM}) (?:instanceId=(.*?), )?clientId=(.*?), groupId=(.*?)\] (.*?)(?: \([\w$]+(?:\.[\w$]+)+(?::\d+)?\))?\Z"
)
_OTHER: Final = expression(rf"(?as){_SIGNED}[A-Z_]*\|((.*)#(?:consumer|producer)-\d+|[a-z-]*)\| (?:\[thrd:[^\]]*\]: )?(.*)\Z")
# Facilities with one sentence; and another one, about brokers before 0.10.1.
_WHOLE: Final = expression(r"\|(?:MAXPOLL|SESSTMOUT)\|(?!.*Broker does not support KIP-62)", re.DOTALL)
_PROGRAMS: Final = {"": None, "Consumer": None, "Worker": CONNECT}
_NOTHING: Final = frozenset({"", "null"})
_HOST: Final = expression(r'"host(?:_?name|\.name)?\\*": ?(?:\{ ?\\*"name\\*": ?)?\\*"([\w.-]{1,253})\\*"')
_PROCESS: Final = expression(r"(?:\[Nest\] +|\bpid\W{1,4}|(?:^| )[\w./@+-]{1,64}\[)(\d{1,10})\b| (\d{1,10}) --- ")
"""Of NestJS, JSON and others, syslog; of Spring Boot."""
_HEAD: Final = 512  # characters of a line in which its process stands


class _Parts(NamedTuple):
    """A line of a client: who says what. Names are None where the line has none."""

    instance: str | None
    client: str | None
    group: str | None
    name: str | None  # of librdkafka's client, or of the library
    sentence: str
    software: str | None = None


def row(text: str, at_us: int | None, context: str | None, around: str | None = None) -> dict[str, Any]:
    """The columns of PARSED that a line decides. `at_us`: its time, epoch µs. `context`: the group that other lines name.

    `around`: as in raw_lines.
    """
    if len(text) > _MAX_LENGTH or (len(text) > _MAX_WORDS and len(LONG_WORD.sub("", text)) > _MAX_WORDS):
        return refused(CLIENT_SOURCE, Refusal.TOO_LONG, text)
    parts = _parts(text)
    is_library = parts.name is not None and parts.client is None
    reading = read_of(CLIENTS, parts.sentence) if is_library else CLIENTS.read(parts.sentence)
    is_trouble = reading is None and parts.group is not None and tells_of_trouble(parts.sentence)
    if reading is None and not is_trouble:
        return refused(CLIENT_SOURCE, Refusal.UNKNOWN_TEMPLATE, text) if _WHOLE.search(text) else skipped(CLIENT_SOURCE)
    kind, fields = (CLIENT_NOTE, {}) if reading is None else (reading.template.kind, reading.fields)
    group = parts.group or fields.get("group") or (None if context in _NOTHING else context)
    refusal = damage(parts.sentence, at_us) or (Refusal.NO_GROUP if group is None else None)
    if refusal is not None:
        return refused(CLIENT_SOURCE, refusal, text)
    return {
        "source": CLIENT_SOURCE,
        "verdict": EVENT,
        "kind": kind,
        "received_at": at_us and max(at_us - 1_000 * max(int32(fields.get("exceeded")) or 0, 0), 0),
        "group_id": group,
        "client_id": parts.client or fields.get("client"),
        "client_host": None if around is None else _place_in(as_written(text, around)),
        "instance_id": parts.instance or fields.get("instance"),
        "software": parts.software,
        "connection": parts.name,
        "member_id": fields.get("member"),
        "generation": int32(fields.get("generation")),
        "session_timeout_ms": int32(fields.get("session_timeout")),
        "rebalance_timeout_ms": int32(fields.get("rebalance_timeout")),
        "reason": parts.sentence if kind == CLIENT_NOTE else fields.get("reason"),
        "state": fields.get("state"),
    }


def _parts(text: str) -> _Parts:
    if _IS_SIGNED.match(text):
        found = _OTHER.match(text)
        name, client, sentence = ("", "", "") if found is None else found.groups("")
        return _Parts(None, _known(client), None, _known(name), sentence.rstrip())
    # Where this fails, the pattern would fail at the end of the line, for each of the names that it may begin with: that takes seconds.
    fits = _JAVA_BEGINS.search(text, 0, max(text.rfind(", groupId=", 0, text.rfind("] ") + 1), 0))
    found = _JAVA.match(text) if fits else None
    kind, instance, client, group, sentence = ("", "", "", "", "") if found is None else found.groups("")
    return _Parts(_known(instance), _known(client), _known(group), None, sentence.rstrip(), _PROGRAMS.get(kind, kind))


def _place_in(written: str) -> str | None:
    """Which of several processes wrote a line, by the container, the host and the process that it names; None if it names none."""
    host, process = _HOST.search(written, 0, _HEAD), _PROCESS.search(written, 0, _HEAD)
    place = container_of(written[:_HEAD].encode()) or ("" if host is None else host[1])
    return " ".join(filter(None, (place, process and f"process {process[process.lastindex or 0]}"))) or None


def _known(name: str) -> str | None:
    return None if name in _NOTHING else name
