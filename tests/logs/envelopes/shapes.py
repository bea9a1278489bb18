"""What log stores and consoles hand out: each function makes it of lines and their times (epoch ms)."""

import csv
import gzip
import io
import json
import re
from datetime import datetime, timezone

OWN = re.compile(r"\[([\d-]{10}) ([\d:]{8}),(\d{3})\] ([A-Z]+) (?:\[([^\]]*)\](:?) +)?(.*) \(([\w.$]+)\)", re.DOTALL)
POD = "kafka-0"


def iso(ms):
    return datetime.fromtimestamp(ms // 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{ms % 1000:03d}Z"


def each(make, put=lambda rows: rows, *, newest_first=False):
    """A document with an entry for each line: `make(ms, line)`; `put` makes the document of the entries."""

    def shape(lines):
        rows = [make(ms, line) for ms, line in lines]
        return json.dumps(put(rows[::-1] if newest_first else rows)).encode()

    return shape


def rows(make, head=b""):
    """A line for each line: `make(ms, line)` is its text, its value in JSON or its row of CSV."""

    def row(value):
        if isinstance(value, str):
            return value
        if isinstance(value, dict):
            return json.dumps(value)
        csv.writer(text := io.StringIO(), lineterminator="").writerow(value)
        return text.getvalue()

    return lambda lines: head + "".join(row(make(ms, line)) + "\n" for ms, line in lines).encode()


def many(make, size=50):
    """Documents of `size` lines each, joined by nothing."""
    return lambda lines: b"".join(
        json.dumps(make(lines[at : at + size]), separators=(",", ":")).encode() for at in range(0, len(lines), size)
    )


def taken_apart(ms, line, by):
    """A line whose parts are fields: `by(level, component, message, logger)`."""
    own = OWN.fullmatch(line)
    if own is None:
        return {"@timestamp": iso(ms), "message": line}
    *_, level, component, _, message, logger = own.groups()
    return {"@timestamp": iso(ms), **by(level, component, message, logger)}


def elastic(level, component, message, logger):
    return {
        "agent": {"type": "filebeat", "version": "8.11.0"}, "kafka": {"log": {"class": logger, "component": component or "unknown"}},
        "log": {"level": level, "offset": 5}, "message": message, "host": {"name": "n"}, "tags": ["a", "of a cluster in the north"],
    }  # fmt: skip


def datadog(level, component, message, logger):
    whole = message if component is None else f"[{component}]{':' if component[-2:-1] == ' ' else ''} {message}"
    return {"message": whole, "status": level.lower(), "logger": {"name": logger, "thread_name": "main"}}


def search(rows):
    hits = [{"_index": "logs-1", "_id": str(at), "_score": None, "_source": row, "sort": [at]} for at, row in enumerate(rows)]
    return {"took": 3, "timed_out": False, "_shards": {"total": 1}, "hits": {"total": {"value": 10_000, "relation": "gte"}, "hits": hits}}


def otlp(lines):
    records = [{"timeUnixNano": f"{ms}000000", "severityText": "INFO", "body": {"stringValue": line}} for ms, line in lines]
    resource = {
        "attributes": [{"key": "k8s.pod.name", "value": {"stringValue": POD}}, {"key": "os", "value": {"stringValue": "l i n u x"}}]
    }
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [{"scope": {}, "logRecords": records}]}]}


def loki(rows):
    streams = [{"stream": {"app": "kafka", "pod": POD}, "values": rows}]
    return {"status": "success", "data": {"resultType": "streams", "result": streams, "stats": {"summary": {"bytes": 1}}}}


def subscription(lines):
    events = [{"id": str(at), "timestamp": ms, "message": line} for at, (ms, line) in enumerate(lines)]
    return {
        "messageType": "DATA_MESSAGE", "logGroup": "/msk/a", "logStream": "b-1", "subscriptionFilters": ["all the lines there"],
        "logEvents": events,
    }  # fmt: skip


def huawei(ms, line):
    """What the coordinator says is an object; its log has nothing else."""
    *_, level, component, _, message, _ = OWN.fullmatch(line).groups()
    node = re.search(r"\d+$", component)[0]
    said = {"leaderId": "", "generationId": "1", "reason": message, "groupId": "", "coordinatorId": node, "type": "END_REBALANCE"}
    return {"level": level, "timestamp": f"{iso(ms)[:10]} {iso(ms)[11:23]}".replace(".", ","), "message": said}


def event_hubs(ms, line):
    return {"time": iso(ms), "Operation": "Join.Start", "ClientId": "", "Message": line, "Category": "KafkaCoordinatorLogs"}


def usual(ms, line):
    return {"timestamp": ms, "message": line}


def indented(shape):
    return lambda lines: json.dumps(json.loads(shape(lines)), indent=4).encode()


def wrapped(shape, width=120):
    def made(lines):
        text = shape(lines)
        return b"\n".join(text[at : at + width] for at in range(0, len(text), width))

    return made


LOKI = each(lambda ms, line: [f"{ms}000000", line], loki)
SEARCH = each(lambda ms, line: {"@timestamp": iso(ms), "message": line}, search)
EVENTS = each(
    lambda ms, line: {"logStreamName": "b-1", **usual(ms, line), "eventId": "3"}, lambda rows: {"events": rows, "searchedLogStreams": []}
)
ELASTIC = each(lambda ms, line: taken_apart(ms, line, elastic), search)

SHAPES = {
    "Loki, logcli": rows(lambda ms, line: f'{iso(ms)} {{app="kafka", pod="{POD}"}} {line}'),
    "Loki, logcli -o jsonl": rows(lambda ms, line: {"labels": {"app": "kafka"}, "line": line, "timestamp": iso(ms)}),
    "Loki, query_range": LOKI,
    "Grafana Explore, text": rows(lambda ms, line: f"{ms}\t{iso(ms)}\t{line}", b'Common labels: {"app":"kafka"}\nLine limit: 5000\n\n'),
    "Grafana Explore, JSON": each(lambda ms, line: {"line": line, "timestamp": f"{ms}000000", "date": iso(ms), "fields": {"pod": POD}}),
    "Elasticsearch, _search": SEARCH,
    "Elasticsearch, scroll": lambda lines: b"\n".join(SEARCH(lines[at : at + 50]) for at in range(0, len(lines), 50)),
    "Elasticsearch, fields": each(lambda ms, line: {"@timestamp": [iso(ms)], "message": [line]}, lambda rows: {
        "hits": {"hits": [{"_id": "1", "fields": row} for row in rows]}}),
    "Elasticsearch, ES|QL": each(lambda ms, line: [iso(ms), None, line], lambda rows: {
        "columns": [{"name": name, "type": "x"} for name in ("@timestamp", "tags", "message")], "values": rows}),
    "Elastic's integration of Kafka": ELASTIC,
    "Elastic's integration of Kafka, a hit a line": rows(lambda ms, line: {"_source": taken_apart(ms, line, elastic)}),
    "Datadog's pipeline of Kafka": each(lambda ms, line: {"id": "A", "attributes": {"timestamp": iso(ms), "attributes": {}, **taken_apart(
        ms, line, datadog)}}, lambda rows: {"data": rows, "meta": {"page": {"after": "x"}}}),
    "Datadog, archive": rows(lambda ms, line: {"date": iso(ms), "host": "n", "message": line, "tags": ["a:b"]}),
    "Datadog, archive with a logger of the agent's": rows(lambda ms, line: {"date": iso(ms), "service": "kafka", "attributes": {
        "logger": {"name": "kafka"}}, "message": line, "status": "info"}),
    "Datadog, CSV": rows(lambda ms, line: [iso(ms), "n", "kafka", line], b"Date,Host,Service,Message\n"),
    "Datadog, API v2": each(lambda ms, line: {"type": "log", "attributes": {"timestamp": iso(ms), "message": line}}, lambda rows: {
        "data": rows}),
    "CloudWatch, logs tail": rows(lambda ms, line: f"{iso(ms)[:-1]}000+00:00 AmazonMSK/broker-1 {line}"),
    "CloudWatch, filter-log-events": EVENTS,
    "CloudWatch, get-query-results": each(lambda ms, line: [{"field": "@timestamp", "value": iso(ms)[:-1].replace("T", " ")}, {
        "field": "@message", "value": line}, {"field": "@ptr", "value": "x"}], lambda rows: {"results": rows, "status": "Complete"}),
    "CloudWatch, a subscription": many(subscription),
    "CloudWatch, a subscription in gzip": lambda lines: gzip.compress(many(subscription)(lines)),
    "Splunk, export": rows(lambda ms, line: {"preview": False, "offset": 3, "result": {"_raw": line, "_time": iso(ms), "host": "n"}}),
    "Splunk, results": each(lambda ms, line: {"_raw": line, "_time": iso(ms), "host": "n"}, lambda rows: {
        "preview": False, "messages": [], "fields": [{"name": "_raw"}, {"name": "_time"}, {"name": "host"}], "results": rows}),
    "Splunk, rows": each(lambda ms, line: [iso(ms), line], lambda rows: {"fields": ["_time", "_raw"], "rows": rows}),
    "OpenTelemetry": lambda lines: json.dumps(otlp(lines)).encode(),
    "OpenTelemetry, a document a line": lambda lines: b"".join(json.dumps(otlp(lines[at : at + 7])).encode() + b"\n" for at in range(
        0, len(lines), 7)),
    "New Relic": each(lambda ms, line: {**usual(ms, line), "hostname": "n"}),
    "Azure, REST": each(lambda ms, line: [iso(ms), line, "stdout"], lambda rows: {"tables": [{"name": "PrimaryResult", "columns": [
        {"name": "TimeGenerated", "type": "datetime"}, {"name": "LogMessage", "type": "string"}, {"name": "LogSource"}], "rows": rows}]}),
    "Azure, query": each(lambda ms, line: {"TimeGenerated": iso(ms), "LogMessage": line, "TableName": "PrimaryResult"}),
    "Azure, CSV": rows(lambda ms, line: [iso(ms), line, "stdout"], b"TimeGenerated,LogMessage,LogSource\n"),
    "VictoriaLogs": rows(lambda ms, line: {"_time": iso(ms), "_stream": "{a}", "_msg": line}),
    "Aiven": each(lambda ms, line: {"msg": line, "time": iso(ms), "unit": "kafka.service"}, lambda rows: {"logs": rows, "offset": "1"}),
    "gcloud": each(lambda ms, line: {"insertId": "x", "textPayload": line, "timestamp": iso(ms), "labels": {"a": "b"}, "resource": {
        "labels": {"pod_name": POD}, "type": "k8s_container"}}, newest_first=True),
    "gcloud, a sink's file": rows(lambda ms, line: {"insertId": "x", "textPayload": line, "timestamp": iso(ms), "labels": {}}),
    "an array of lines": each(lambda _, line: line),
    "indented": indented(EVENTS),
    "indented, after a command": lambda lines: b"$ aws logs filter-log-events\n" + indented(EVENTS)(lines) + b"\n$ exit\n",
    "wrapped": wrapped(EVENTS),
    "wrapped, indented": lambda lines: b"\n".join(part for line in indented(LOKI)(lines).split(b"\n") for part in (
        line[at : at + 100] for at in range(0, len(line), 100))),
}  # fmt: skip
COORDINATORS = {"Huawei, coordinator.log": rows(huawei), "Azure Event Hubs, KafkaCoordinatorLogs": rows(event_hubs)}
"""Those of the coordinators' sentences alone."""
