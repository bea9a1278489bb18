"""A broker's lines as other systems hand them out. Each function wraps one line exactly as that system does."""

import csv
import gzip
import io
import json
import re
from datetime import datetime, timezone
from pathlib import Path

RECORDINGS = Path(__file__).parents[2] / "data" / "recordings"
STAMP = b"2026-11-21T06:09:19.456789012Z"
_OWN = re.compile(rb"\[([\d-]{10}) ([\d:]{8}),(\d{3})\] ([A-Z]+) (.*) \(([\w.$]+)\)", re.DOTALL)


def real_lines(name, first=0, most=600):
    """Lines of a recorded log."""
    return gzip.decompress((RECORDINGS / f"{name}.gz").read_bytes()).split(b"\n")[:-1][first : first + most]


def in_json(name, **others):
    return lambda line: json.dumps({name: line.decode(), **others}, ensure_ascii=False).encode()


def in_csv(*fields):
    """A row of CSV in which None stands for the line. Fields are quoted where they must be."""

    def wrap(line):
        text = io.StringIO()
        csv.writer(text, lineterminator="").writerow([line.decode() if field is None else field for field in fields])
        return text.getvalue().encode()

    return wrap


def in_pattern(write):
    """Lines as another log4j pattern writes them: `write(date, time, millis, level, message, logger)`. Others stay as they are."""

    def wrap(line):
        own = _OWN.fullmatch(line)
        return line if own is None else write(*own.groups())

    return wrap


def in_layout(write):
    """Lines as a JSON layout writes them: `write(at, level, message, logger)`, `at` in UTC. Others stay as they are."""

    def wrap(line):
        own = _OWN.fullmatch(line)
        if own is None:
            return line
        date, time, millis, *others = (part.decode() for part in own.groups())
        at = datetime.fromisoformat(f"{date}T{time}.{millis}+00:00")
        return json.dumps(write(at, *others)).encode()

    return wrap


def iso(at):
    return at.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03d}Z"


def epoch_ms(at):
    return int(at.timestamp()) * 1000 + at.microsecond // 1000


def epoch(at):
    """log4j2's instant."""
    return {"epochSecond": int(at.timestamp()), "nanoOfSecond": at.microsecond * 1000 + 789}


def twice(line):
    return json.dumps({"log": in_json("message")(line).decode() + "\n", "stream": "stdout"}).encode()


def escaped_twice(line):
    r"""A collector that escapes JSON once more: `{"message":"{\\\"log\\\":…`."""
    inner = json.dumps({"log": line.decode()})
    return json.dumps({"message": json.dumps(inner)[1:-1]}).encode()


def coloured(date, time, millis, level, message, logger):
    """`%style{[%d]}{green} %highlight{%p} %m (%style{%c}{cyan})%n`."""
    return b"\x1b[32m[%s %s,%s]\x1b[m \x1b[1;31m%s\x1b[m %s (\x1b[36m%s\x1b[m)" % (date, time, millis, level, message, logger)


def strimzi(date, time, millis, level, message, logger):
    """`%d{ISO8601} %p %m (%c) [%t]%n`: Strimzi and AMQ Streams with log4j 1."""
    return b"%s %s,%s %s %s (%s) [data-plane-kafka-request-handler-3]" % (date, time, millis, level, message, logger)


CONTAINERS = {
    "docker compose logs": lambda line: b"broker-1  | " + line,
    "docker compose logs --timestamps": lambda line: b"broker-1  | " + STAMP + b" " + line,
    "docker service logs": lambda line: b"kafka_broker.1.x7f3a9@node-1    | " + line,
    "docker json-file": lambda line: in_json("log", stream="stdout", time=STAMP.decode())(line + b"\n"),
    "CRI": lambda line: STAMP + b" stdout F " + line,
    "CRI in a zone": lambda line: b"2026-11-21T07:09:19.456789012+01:00 stderr F " + line,
    "kubectl logs --timestamps": lambda line: STAMP + b" " + line,
    "kubectl logs --prefix": lambda line: b"[pod/kafka-0/kafka] " + line,
    "kubectl logs --prefix --timestamps": lambda line: b"[pod/kafka-0/kafka] " + STAMP + b" " + line,
    "kubetail": lambda line: b"[kafka-0] " + line,
    "stern": lambda line: b"kafka-0 kafka " + line,
    "journalctl": lambda line: b"Nov 21 06:09:19 node-1 kafka-server-start.sh[812]: " + line,
    "journalctl -o short-iso": lambda line: b"2026-11-21T06:09:19+0000 node-1 kafka[812]: " + line,
    "journalctl -o short-full": lambda line: b"Sat 2026-11-21 06:09:19 UTC node-1 kafka[812]: " + line,
    "journalctl -o short-unix": lambda line: b"1795241359.456789 node-1 kafka[812]: " + line,
    "journalctl -o json": in_json("MESSAGE", _SYSTEMD_UNIT="kafka.service", __REALTIME_TIMESTAMP="1795241359456789"),
    "syslog, RFC 5424": lambda line: b"<134>1 2026-11-21T06:09:19.456Z node-1 kafka 812 - - " + line,
    "syslog, RFC 5424, with data": lambda line: b'<134>1 2026-11-21T06:09:19Z n kafka 812 - [a@1 b="c d"] \xef\xbb\xbf' + line,
    "syslog, RFC 3164": lambda line: b"<134>Nov 21 06:09:19 node-1 kafka: " + line,
    "grep -r": lambda line: b"broker-1/server.log:" + line,
    "grep -rn": lambda line: b"logs/kafka-request.log.3:812:" + line,
    "GitHub Actions": lambda line: b"2026-11-21T06:09:19.4567890Z " + line,
    "gh run view --log": lambda line: b"test (3.11)\tShow logs\t2026-11-21T06:09:19.4567890Z " + line,
    "heroku logs": lambda line: b"2026-11-21T06:09:19.456789+00:00 app[kafka.1]: " + line,
    "byte order mark": lambda line: b"\xef\xbb\xbf" + line,
    "indented": lambda line: b"    " + line,
}

COLLECTORS = {
    "Filebeat": in_json("message", agent={"type": "filebeat"}, host={"name": "node-1"}, log={"offset": 5}),
    "Logstash": in_json("message", **{"@timestamp": "2026-11-21T06:09:20.001Z", "@version": "1", "event": {"original": "x"}}),
    "Logstash's plain codec": lambda line: b"2026-11-21T06:09:20.001456Z {name=node-1} " + line,
    "Fluent Bit": in_json("log", date=1795241359.456789, stream="stdout", kubernetes={"pod_name": "kafka-0"}),
    "Fluent Bit's out_file": lambda line: b"kube.kafka: [1795241359.456789012, " + in_json("log")(line) + b"]",
    "Fluentd's out_file": lambda line: b"2026-11-21T06:09:19+00:00\tkube.kafka\t" + in_json("log")(line),
    "Fluentd's stdout": lambda line: b"2026-11-21 06:09:19.456789012 +0000 kube.kafka: " + in_json("log")(line),
    "Vector": in_json("message", file="/var/log/kafka/server.log", source_type="file", timestamp="2026-11-21T06:09:20.001456Z"),
    "logcli": lambda line: b'2026-11-21T06:09:19Z {app="kafka", pod="kafka-0"} ' + line,
    "logcli, coloured": lambda line: (
        b'\x1b[34m2026-11-21T06:09:19Z\x1b[0m \x1b[31m{app="kafka", pod="kafka-0"}  \x1b[0m ' + line if line[:1] == b"[" else line
    ),
    "logcli -o jsonl": in_json("line", labels={"app": "kafka"}, timestamp="2026-11-21T06:09:19.456789Z"),
    "Splunk, JSON": lambda line: json.dumps({"preview": False, "offset": 3, "result": {"_raw": line.decode(), "host": "n"}}).encode(),
    "Splunk, CSV": in_csv(None, "2026-11-21T06:09:19.456+0000", "node-1", "/var/log/kafka/server.log"),
    "Datadog, JSON": lambda line: json.dumps({
        "id": "AQAAAY", "type": "log",
        "attributes": {"service": "kafka", "message": line.decode(), "timestamp": "2026-11-21T06:09:20.001Z", "attributes": {"a": 1}},
    }).encode(),
    "Datadog, CSV": in_csv("2026-11-21T06:09:20.001Z", "node-1", "kafka", None),
    "Elasticsearch": lambda line: json.dumps({
        "_index": "filebeat-8", "_id": "x", "_score": None,
        "_source": {"@timestamp": "2026-11-21T06:09:20.001Z", "message": line.decode(), "log": {"offset": 5}},
    }).encode(),
    "Kibana, CSV": in_csv("Nov 21, 2026 @ 06:09:20.001", "node-1", None, "-"),
    "Google Cloud, text": in_json("textPayload", resource={"type": "k8s_container"}, timestamp="2026-11-21T06:09:20.001456Z"),
    "Google Cloud, JSON": lambda line: json.dumps({"insertId": "x", "jsonPayload": {"message": line.decode()}}).encode(),
    "Azure, ContainerLogV2": in_json("LogMessage", TimeGenerated="2026-11-21T06:09:20.0014567Z", LogSource="stdout"),
    "Azure, ContainerLog, CSV": in_csv("11/21/2026, 6:09:20.001 AM", None, "stdout", "aks-node-1"),
    "JSON in a text": twice,
    "JSON in a text, escaped twice": escaped_twice,
    "JSON in a text, quotes of the message escaped": lambda line: in_json("log")(line.replace(b'"', b'\\"')),
}  # fmt: skip

COPIES = {
    "k9s": lambda line: "│ ".encode() + line.ljust(200) + " │".encode(),
    "Docker Desktop": lambda line: b"2026-11-21 11:39:20 " + line,
    "a time with a bar": lambda line: b"2026-11-21 11:39:20 | " + line,
    "grep -n": lambda line: b"812:" + line,
    "grep -A": lambda line: b"812-" + line,
    "grep -r -A": lambda line: b"broker-1/server.log-812-" + line,
    "quote": lambda line: b"> " + line,
    "comment": lambda line: b"// " + line,
    "bold": lambda line: b"**" + line + b"**",
    "list": lambda line: b"  * `" + line + b"`",
    "table": lambda line: b"| " + line + b" |",
    "strings of JSON": lambda line: b"    " + json.dumps(line.decode()).encode() + b",",
    "JSON with a field of its own": lambda line: json.dumps({"row": {"ours": [line.decode()]}}).encode(),
}
"""What people copy from a window or into a ticket."""

CLOUDWATCH = {
    "console": lambda line: b"2026-11-21T06:09:20.001Z\t" + line,
    "console, local time": lambda line: b"2026-11-21T07:09:20.001+01:00\t" + line,
    "Logs Insights, CSV": in_csv("2026-11-21 06:09:20.001", None),
    "get-log-events, a line": in_json("message", timestamp=1795241359456, ingestionTime=1795241360000),
    "get-log-events, a member": lambda line: b'            "message": ' + json.dumps(line.decode()).encode() + b",",
    "get-log-events --output text": lambda line: b"EVENTS\t1795241360000\t" + line + b"\t1795241359456",
    "filter-log-events --output text": lambda line: b"EVENTS\t3799\t1795241360000\tbroker-1\t" + line + b"\t1795241359456",
    "jq .message": lambda line: json.dumps(line.decode()).encode(),
    "an array with a line each": lambda line: b'{"timestamp":1795241359456,"message":' + json.dumps(line.decode()).encode() + b"},",
    "logs tail": lambda line: b"2026-11-21T06:09:20.001000+00:00 AmazonMSK/broker-1 " + line,
    "export to S3": lambda line: b"2026-11-21T06:09:20.001Z " + line,
}

PATTERNS = {
    "strimzi-log4j1": in_pattern(strimzi),
    "strimzi-log4j1, kubectl logs --timestamps": lambda line: STAMP + b" " + in_pattern(strimzi)(line),
    "strimzi-log4j1, docker json-file": lambda line: in_json("log", stream="stdout")(in_pattern(strimzi)(line) + b"\n"),
    "Confluent for Kubernetes": in_pattern(
        lambda d, t, ms, p, m, c: b"[%s] %s %s,%s [thread-1] %s method - app=kafka, server=0 - %s" % (p, d, t, ms, c, m)
    ),
    "bars": in_pattern(lambda d, t, ms, p, m, c: b"%s %s,%s | %s | %s | main | %s" % (d, t, ms, p, c, m)),
    "dashes": in_pattern(lambda d, t, ms, p, m, c: b"%s %s.%s - %s - %s - %s" % (d, t, ms, c, p, m)),
    "time first": in_pattern(lambda d, t, ms, p, m, c: b"%s,%s %s %s [%s] %s" % (t, ms, d, p, c, m)),
    "compact date": in_pattern(lambda d, t, ms, p, m, c: b"%s-%s.%s %s %s - %s" % (d.replace(b"-", b""), t, ms, p, c, m)),
    "ttcc": in_pattern(lambda d, t, ms, p, m, c: b"%s %s,%s [main] %-5s %s - %s" % (d, t, ms, p, c, m)),
    "no thread": in_pattern(lambda d, t, ms, p, m, c: b"%sT%s.%s %-5s %s: %s" % (d, t, ms, p, c, m)),
    "thread after the level": in_pattern(lambda d, t, ms, p, m, c: b"%s %s,%s %s [a thread] %s - %s" % (d, t, ms, p, c, m)),
    "thread before the message": in_pattern(lambda d, t, ms, p, m, c: b"%s %s,%s %s [a-thread] %s (%s)" % (d, t, ms, p, m, c)),
    "level first": in_pattern(lambda d, t, ms, p, m, c: b"%-5s [%s %s,%s] %s (%s)" % (p, d, t, ms, m, c)),
    "level first, in brackets": in_pattern(lambda d, t, ms, p, m, c: b"[%s] %s %s,%s [t] %s - %s" % (p, d, t, ms, c, m)),
    "everything in brackets": in_pattern(lambda d, t, ms, p, m, c: b"[%sT%s,%s][%-5s][%s] [thread] %s" % (d, t, ms, p, c, m)),
    "cut logger": in_pattern(lambda d, t, ms, p, m, c: b"%s %s,%s %s [t] %s - %s" % (
        d, t, ms, p, re.sub(rb"\b(\w)\w*\.", rb"\1.", c), m)),
    "short logger": in_pattern(lambda d, t, ms, p, m, c: b"%s %s,%s %-5s [t] %s:71 - %s" % (d, t, ms, p, c.rpartition(b".")[2], m)),
    "tabs": in_pattern(lambda d, t, ms, p, m, c: b"%s %s,%s\t%s\t%s\t(%s)" % (d, t, ms, p, m, c)),
    "microseconds": in_pattern(lambda d, t, ms, p, m, c: b"%s %s.%s789 %s %s (%s)" % (d, t, ms, p, m, c)),
    "slashes": in_pattern(lambda d, t, ms, p, m, c: b"%s %s.%s %s %s (%s)" % (d.replace(b"-", b"/"), t, ms, p, m, c)),
    "%highlight": in_pattern(lambda d, t, ms, p, m, c: b"\x1b[32m[%s %s,%s] %s %s (%s)\x1b[m" % (d, t, ms, p, m, c)),
    "%highlight of level and logger": in_pattern(coloured),
    "bold level": in_pattern(lambda d, t, ms, p, m, c: b"[%s %s,%s] \x1b[1m%s\x1b[0m %s (%s)" % (d, t, ms, p, m, c)),
}  # fmt: skip
"""They lose nothing: the text that is kept is the plain one."""

EXACT_PATTERNS = {
    "Z": in_pattern(lambda d, t, ms, p, m, c: b"[%sT%s.%sZ] %s %s (%s)" % (d, t, ms, p, m, c)),
    "offset": in_pattern(lambda d, t, ms, p, m, c: b"[%s %s,%s+0000] %s %s (%s)" % (d, t, ms, p, m, c)),
    "offset after a blank": in_pattern(lambda d, t, ms, p, m, c: b"%s %s.%s +00:00 %s %s (%s)" % (d, t, ms, p, m, c)),
    "UTC": in_pattern(lambda d, t, ms, p, m, c: b"%s %s,%s UTC [main] %s %s - %s" % (d, t, ms, p, c, m)),
    "epoch ms": in_pattern(lambda d, t, ms, p, m, c: b"%d %s %s (%s)" % (
        epoch_ms(datetime.fromisoformat(f"{d.decode()}T{t.decode()}.{ms.decode()}+00:00")), p, m, c)),
    "JsonLayout": in_layout(lambda at, level, message, logger: {
        "instant": epoch(at), "thread": "main", "level": level, "loggerName": logger, "message": message,
        "endOfBatch": False, "loggerFqcn": "org.apache.logging.slf4j.Log4jLogger", "threadId": 1, "threadPriority": 5}),
    "JsonLayout before log4j 2.11": in_layout(lambda at, level, message, logger: {
        "timeMillis": epoch_ms(at), "thread": "main", "level": level, "loggerName": logger, "message": message}),
    "EcsLayout.json": in_layout(lambda at, level, message, logger: {
        "@timestamp": iso(at), "ecs.version": "1.2.0", "log.level": level, "message": message, "process.thread.name": "main",
        "log.logger": logger}),
    "EcsLayout.json through Filebeat": in_layout(lambda at, level, message, logger: {
        "@timestamp": iso(at), "log": {"level": level, "logger": logger, "offset": 7}, "message": message}),
    "GelfLayout.json": in_layout(lambda at, level, message, logger: {
        "version": "1.1", "host": "n", "short_message": message, "timestamp": epoch_ms(at) / 1000,
        "level": {"ERROR": 3, "WARN": 4, "INFO": 6, "DEBUG": 7}[level], "_logger": logger, "_thread": "main"}),
    "LogstashJsonEventLayoutV1.json": in_layout(lambda at, level, message, logger: {
        "mdc": {}, "line_number": 71, "class": "kafka.utils.Logging", "@version": 1, "source_host": "n", "message": message,
        "thread_name": "main", "@timestamp": iso(at), "level": level, "file": "Logging.scala", "method": "info", "logger_name": logger}),
    "GcpLayout.json": in_layout(lambda at, level, message, logger: {
        "timestamp": iso(at), "severity": level.replace("WARN", "WARNING"), "message": message, "_thread": "main", "_logger": logger}),
    "JsonLayout, docker json-file": in_layout(lambda at, level, message, logger: {
        "time": STAMP.decode(), "stream": "stdout",
        "log": json.dumps({"instant": epoch(at), "level": level, "loggerName": logger, "message": message}) + "\n"}),
    "%p %m (%c), CloudWatch": in_layout(lambda at, level, message, logger: {
        "timestamp": epoch_ms(at), "message": f"{level} {message} ({logger})", "ingestionTime": 1}),
    "%p %c - %m, journalctl -o json": in_layout(lambda at, level, message, logger: {
        "__REALTIME_TIMESTAMP": f"{epoch_ms(at)}789", "MESSAGE": f"{level} {logger} - {message}"}),
    "%p %m (%c), CRI": in_pattern(lambda d, t, ms, p, m, c: b"%sT%s.%sZ stdout F %s %s (%s)" % (d, t, ms, p, m, c)),
}  # fmt: skip
"""Their time is exact, whatever the zone of the cluster is: the text that is kept says so with a Z."""

ALL = {
    f"{kind}: {name}": wrap
    for kind, table in (
        ("containers", CONTAINERS),
        ("collectors", COLLECTORS),
        ("CloudWatch", CLOUDWATCH),
        ("copies", COPIES),
        ("patterns", PATTERNS),
    )
    for name, wrap in table.items()
}
"""Of which the same is kept as of the plain log."""
