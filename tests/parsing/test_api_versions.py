"""Answers to ApiVersions of real brokers tell which release line they run."""

import gzip
from pathlib import Path

import pytest

from coordinator_model.events import BROKER_RELEASE, BROKER_SOURCE
from coordinator_model.specification.releases import release_numbers
from jobs.parsing.broker_log import LEVELS
from jobs.parsing.inspection import Recognised, recognise
from tests.parsing.test_lines_to_events import parsed

DATA = Path(__file__).parents[1] / "data"
UPGRADE = DATA / "api-versions" / "kafka-4.2.0-to-4.4.0.log.gz"
LOGS = {
    "3.9": DATA / "recordings" / "kafka-3.9.1" / "broker-1" / "kafka-request.log.gz",
    "4.2": DATA / "recordings" / "kafka-4.2.0" / "broker-1" / "kafka-request.log.gz",
    "4.4": UPGRADE,
}
LEVEL_OF = {release: level for level, release in LEVELS.items()}


def recorded(release):
    """The last answer of a recorded log."""
    lines = gzip.decompress(LOGS[release].read_bytes()).decode().splitlines()
    return next(line for line in reversed(lines) if '"requestApiKeyName":"API_VERSIONS"' in line)


def software(line):
    """The releases that a line tells; it never goes to quarantine."""
    events, verdicts = parsed(line)
    assert verdicts[1] == ("event" if events else "skipped", None)
    assert bool(events) == (recognise(line, "broker-1") == Recognised(BROKER_SOURCE, BROKER_RELEASE))
    return [event["software"] for event in events]


@pytest.mark.parametrize("release", LOGS)
def test_the_answer_of_a_broker_becomes_its_release(release):
    (event,), _ = parsed(recorded(release))
    told = {name: value for name, value in event.items() if value is not None}
    assert told.pop("occurred_at") == told.pop("received_at")
    assert told == {
        "cluster": "c", "broker": "b", "source": "broker", "kind": "BROKER_RELEASE", "origin": "f.log", "position": 1, "lines": 1,
        "batch_id": 7, "software": release, "reason": f"metadata.version up to {LEVEL_OF[release]}",
    }  # fmt: skip
    assert software(recorded(release)) == [release]


def test_each_level_is_a_release_of_kafka():
    line = recorded("4.4")
    for level in range(60):
        found = software(line.replace('"minVersion":7,"maxVersion":33}', f'"minVersion":7,"maxVersion":{level}}}'))
        assert found == ([LEVELS[level]] if level in LEVELS else [])  # others: a broker with unstable features
    assert [release_numbers(release)[:2] for release in LEVELS.values()] == [(3, 7), (3, 8), (3, 9), (4, 0), (4, 1), (4, 2), (4, 3), (4, 4)]


def test_an_answer_that_tells_no_release_is_skipped_and_is_not_unknown():
    line = recorded("4.4")
    feature = '{"name":"metadata.version","minVersion":7,"maxVersion":33}'
    assert feature in line
    for text in (
        line.replace('"supportedFeatures"', '"features"').replace(feature, "{}"),  # to a version of the request below 3
        line[:-9],  # cut
        line[: line.index('"finalizedFeatures"')],
        line.replace(feature, feature[:-1]),
        line.replace(',"response":{', ',"response":null,"other":{'),
        line.replace('"requestApiKeyName":"API_VERSIONS"', '"requestApiKeyName":"METADATA"'),
    ):
        assert software(text) == []
        assert recognise(text, "broker-1").unknown == ""


def test_two_lines_in_one_are_what_the_other_one_is():
    line, lines = recorded("4.4"), gzip.decompress(UPGRADE.read_bytes()).decode().splitlines()
    heartbeat = next(other for other in lines if '"requestApiKeyName":"HEARTBEAT"' in other)
    for text in (line[:300] + heartbeat, heartbeat[:300] + line):
        assert parsed(text)[1][1] == ("quarantine", "INVALID_JSON")
        assert recognise(text, "broker-1").unknown == "INVALID_JSON"
    assert parsed(line[:300] + line)[1][1] == ("skipped", None)


def test_a_client_cannot_tell_the_release():
    """Java's JSON puts a backslash before each quote of a name."""
    own = '{\\"name\\":\\"metadata.version\\",\\"minVersion\\":7,\\"maxVersion\\":30}'
    line = recorded("4.4").replace('"clientId":"rdkafka"', f'"clientId":"{own}"')
    assert own in line
    assert software(line) == ["4.4"]
