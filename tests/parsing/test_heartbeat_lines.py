"""Heartbeats that are read by their shape: the rows that the parser of all requests makes of them."""

import gzip
from datetime import datetime, timedelta, timezone
from pathlib import Path

from jobs.logs.heartbeats.beats import SHAPE
from jobs.logs.times import LENGTH
from tests.logs.log_makers import consumer_heartbeat, heartbeat
from tests.parsing.reading import read_lines

RECORDINGS = Path(__file__).parents[1] / "data" / "recordings"
START = datetime(2026, 11, 21, 6, tzinfo=timezone.utc)
ODD = (
    heartbeat(0, member=""), heartbeat(0, times=(0.1, 5.0, 0.0, 0.0, 0.0, 0.0)), heartbeat(0, times=(0.1, 0.0, 9.0, 0.0, 0.0, 0.05)),
    heartbeat(0, error=-1), heartbeat(0, error=25), heartbeat(0).replace(b"10.0.0.1:9092-10.0.0.9:53676-0-2", b"unix"),
    heartbeat(0).replace(b"10.0.0.1:9092-10.0.0.9:53676-0-2", b"::1:9092-fe80::1:5000-7"),
    heartbeat(0).replace(b"apache-kafka-java", b"unknown").replace(b'n":"4.2.0"', b'n":"unknown"'),
    heartbeat(0).replace(b'"apache-kafka-java"', b'""').replace(b'n":"4.2.0"', b'n":""'),
    heartbeat(0).replace(b'Id":null', b'Id":"instance-1"'), heartbeat(0).replace(b',"groupInstanceId":null', b""),
    heartbeat(0).replace(b'"clientId":"a"', b'"clientId":null'), heartbeat(0).replace(b'"generationId":3', b'"generationId":-1'),
    heartbeat(0).replace(b'"throttleTimeMs":0,"errorCode"', b'"errorCode"'), heartbeat(0).replace(b'"isForwarded":false,', b""),
)  # fmt: skip


STEADY = consumer_heartbeat(0)
OF_CONSUMER_GROUPS = (
    STEADY, consumer_heartbeat(0, epoch=999_999_999), STEADY.replace(b'"instanceId":null', b'"instanceId":"instance-1"'),
    STEADY.replace(b',"subscribedTopicRegex":null', b"").replace(b'"requestApiVersion":1', b'"requestApiVersion":0'),
    STEADY.replace(b'"clientId":"a"', b'"clientId":null'), consumer_heartbeat(0, interval_ms=0),
)  # fmt: skip


def recorded() -> list[bytes]:
    """The first heartbeats of each recorded broker, and all of the consumer protocol that are steady."""
    found = []
    for path in sorted(RECORDINGS.glob("*/broker-*/kafka-request.log.gz")):
        lines = gzip.decompress(path.read_bytes()).splitlines()
        found += [line for line in lines if b'"requestApiKey":12,' in line][:200]
        found += [line for line in lines if b'"requestApiKey":68,' in line and SHAPE.fullmatch(line, LENGTH)]
    return found


def test_the_rows_are_those_of_the_parser_of_all_requests():
    lines = [*recorded(), *ODD, *OF_CONSUMER_GROUPS]
    assert sum(b'"requestApiKey":68,' in line for line in lines) > 700
    assert all(SHAPE.fullmatch(line, LENGTH) for line in lines)

    def read(beats):
        told = read_lines([("c", "b", "line", "f", n, times[n], line.decode(), None, 1, None, beats) for n, line in enumerate(lines)])
        return told.drop_columns(["repeated"])

    times = [START + timedelta(milliseconds=number) for number in range(len(lines))]
    by_json, by_shape = read(None), read(b"")
    assert len(by_json) == len(lines)
    assert by_json.to_pylist() == by_shape.to_pylist()
