"""What containers, log shippers and terminals put before a line. Some of it says when the line was written."""

from __future__ import annotations

import re
from typing import Any, Final

from jobs.logs.envelopes.instants import ANY_TIME, EXACT_TIME
from jobs.logs.envelopes.layouts import OWN_START

_AT: Final = rb"(?P<time>" + EXACT_TIME + rb")"
_HOST: Final = rb"\S{1,255}"
_PROGRAM: Final = rb"[\w./@+-]{1,64}(?:\[[\w.-]+\])?:[ \t]+"
_HEADER_NEXT: Final = rb"(?=\[?\d{4}[-/]\d\d[-/]\d\d[T ]|\{\\?\")"

_AFTER_TIME: Final = {
    # The files of a kubelet (CRI): `2026-11-21T06:09:19.456789012Z stdout F `
    "cri": _AT + rb" (?:stdout|stderr) [FP] ",
    # journalctl -o short-iso, -o short-iso-precise; Heroku's `2026-11-21T06:09:19.456789+00:00 app[web.1]: `, which names no host
    "journal iso": _AT + rb"[ \t]+(?:" + _HOST + rb"[ \t]+)?" + _PROGRAM,
    "journal unix": rb"(?P<time>\d{10}\.\d{6}) " + _HOST + rb" " + _PROGRAM,
    # Fluentd's stdout: `2026-11-21 06:09:19.456789012 +0000 kube.kafka: {`; its out_file: time, tag and record, with tabs between them
    "fluentd": rb"(?P<time>" + ANY_TIME + rb")(?:[ \t][^\s{}:]{1,255}:[ \t]|[\t ,][^\s{},]{1,255}[\t ,])(?=\{)",
    # logcli -o default: `2026-11-21T06:09:19Z {app="kafka", pod="kafka-0"} `
    "logcli": _AT + rb"[ \t]+\{[^{}]*\}[ \t]+",
    # aws logs tail: `2026-11-21T06:09:19.456000+00:00 kafka/broker/1 `; Logstash's plain codec: time, host, message
    "tail": _AT + rb"[ \t]+\S{1,512}[ \t]+" + _HEADER_NEXT,
    # kubectl logs --timestamps, docker logs --timestamps, GitHub Actions, CloudWatch's console (with a tab), its export to S3, CSV
    "timestamps": _AT + rb"(?:[ \t]+|[,;])",
    # Docker Desktop's window and others put their local time before the line's own
    "local time": rb"(?P<time>" + ANY_TIME + rb")[ \t]+(?:\|[ \t]+)?" + _HEADER_NEXT,
    # `grep -n` of one file, and the lines around that -A, -B and -C show: `812:`, `812-`
    "line number": rb"\d{1,9}[:-]" + _HEADER_NEXT,
}
_AFTER_BRACKET: Final = {
    # kubectl logs --prefix: `[pod/kafka-0/kafka] `; kubetail and others: `[kafka-0] `
    "kubectl prefix": rb"\[(?:pod/[\w.-]+/[\w.-]+\][ \t]+|(?!\d{4}-)[\w./ -]{1,512}\][ \t]+" + _HEADER_NEXT + rb")",
}
_AFTER_ANGLE: Final = {
    # RFC 5424: `<134>1 2026-11-21T06:09:19.456Z host kafka 812 - - `; Heroku's drains leave the last field out
    "syslog": rb"<\d{1,3}>1 (?P<time>\S+) \S{1,255} \S{1,48} \S{1,128} (?:\S{1,32} (?:-|\[.*?\])|-) (?:\xef\xbb\xbf)?",
    "syslog priority": rb"<\d{1,3}>(?=[A-Z][a-z]{2} )",
}
_AFTER_WORD: Final = {
    # docker compose logs: `broker-1  | `; docker service logs: `kafka_broker.1.x7f3@node-1    | `
    "compose": rb"[\w.@-]{1,128}[ \t]*\| ",
    # journalctl -o short, syslog: `Nov 21 06:09:19 host kafka-server-start.sh[812]: `
    "journal": rb"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? " + _HOST + rb" " + _PROGRAM,
    # journalctl -o short-full: `Sat 2026-11-21 06:09:19 UTC host kafka[812]: `
    "journal full": rb"[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)? [A-Z0-9+-]{1,6} " + _HOST + rb" " + _PROGRAM,
    # grep -r, grep -rn: `broker-1/server.log:`, `broker-1/server.log:812:`
    "grep": rb"[^\s:{}\"]{1,512}\.(?:log|out|txt|jsonl?|csv)(?:\.[\w-]+)*(?:(?::\d+)?:|(?:-\d+)?-" + _HEADER_NEXT + rb")",
    # aws logs get-log-events --output text: EVENTS, time of ingestion, message, time; filter-log-events has more before the message
    "aws text": rb"EVENTS\t(?:[^\t]+\t){1,3}(?P<inside>.*)\t(?P<time>\d{13})\Z",
    # gh run view --log: job, step, and the line with its time
    "gh": rb"[^\t]{1,256}\t[^\t]{1,256}\t(?:\xef\xbb\xbf)?(?=\d{4}-\d\d-\d\dT)",
    # Fluent Bit's out_file: `kube.kafka: [1795241359.456789012, {"log":"…"}]`
    "fluent bit file": rb"[^\s:\[\]{}]{1,255}: \[(?P<time>\d{10}\.\d{1,9}), (?P<inside>\{.*\})\]\s*\Z",
    # stern: `kafka-0 kafka `
    "stern": rb"[a-z0-9][a-z0-9.-]{0,252}[ \t]+[a-z0-9][a-z0-9-]{0,62}[ \t]+(?=[\[\d{])",
}
_MARKS: Final = rb"[|>*#/`'-]|\xe2[\x94-\x96][\x80-\xbf]"
_AFTER_MARK: Final = {
    # What people copy, with the frame of k9s, or as a quote, a comment, a list: `│ … │`, `> `, `// `, `* `, `**…**`
    "marks": rb"(?:(?P<mark>" + _MARKS + rb")[ \t]*)+" + _HEADER_NEXT + rb"(?P<inside>.*?)[ \t]*(?:(?P=mark)[ \t]*)*\Z",
}
_BEFORE_ALL: Final = {
    "byte order mark": rb"\xef\xbb\xbf",
    "blanks": rb"[ \t]+",
}
_BY_START: Final = {
    b"0123456789": (*_AFTER_TIME, *_AFTER_WORD),
    b"[": tuple(_AFTER_BRACKET),
    b"<": tuple(_AFTER_ANGLE),
    b"\xef \t": tuple(_BEFORE_ALL),
    b"|>*#/`'-\xe2": (*_AFTER_MARK, *_AFTER_WORD),
}

PREFIXES: Final = {
    name: re.compile(pattern, re.DOTALL)
    for table in (_AFTER_TIME, _AFTER_BRACKET, _AFTER_ANGLE, _AFTER_WORD, _AFTER_MARK, _BEFORE_ALL)
    for name, pattern in table.items()
}
"""What may stand before a line, by its name. The group `time` is when the line was written, `inside` the line if not all that follows."""

_FREQUENT: Final = b"|".join(
    PREFIXES[name].pattern.replace(b"?P<time>", b"?:") for name in ("cri", "timestamps", "kubectl prefix", "compose", "stern")
)
BEFORE_OWN: Final = re.compile(rb"(?:" + _FREQUENT + rb"){1,3}(?=" + OWN_START + rb")")
"""The frequent prefixes before a line of Kafka's own pattern, in one step."""

_TRIED: Final = [tuple(PREFIXES[name] for name in _AFTER_WORD)] * 256
for _starts, _names in _BY_START.items():
    for _start in _starts:
        _TRIED[_start] = tuple(PREFIXES[name] for name in _names)


def without_prefix(text: bytes, moment: Any) -> tuple[bytes, Any] | None:
    """What follows the first prefix that fits, and when it was written; None if none fits."""
    for prefix in _TRIED[text[0]] if text else ():
        match = prefix.match(text)
        if match is not None:
            groups = prefix.groupindex
            inside = match["inside"] if "inside" in groups else text[match.end() :]
            return inside, match["time"] if "time" in groups else moment
    return None
