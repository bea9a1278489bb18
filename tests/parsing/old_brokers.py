"""The recordings of tests/data/old, and a reader of their coordinators' lines that needs no JVM."""

import gzip
import re
from datetime import datetime, timezone
from pathlib import Path

from coordinator_model.events import BROKER_SOURCE, COORDINATOR_SOURCE, Event
from jobs.logs.broker_judge import BrokerJudge
from jobs.logs.mark import Mark
from jobs.parsing.coordinator_log import SHAPE, TEMPLATES
from jobs.parsing.inspection import recognise

FOLDER = Path(__file__).parents[1] / "data" / "old"
RELEASES = sorted((path.name.removeprefix("kafka-") for path in FOLDER.glob("kafka-*")), key=lambda name: [int(n) for n in name.split(".")])
WITH_ANSWERS = [release for release in RELEASES if not release.startswith("0.")]
WITHOUT_REASONS = [release for release in RELEASES if release < "2.1"]
SERVER, REQUESTS = "server.log", "kafka-request.log"
_PATTERNS = [(template, re.compile(template.pattern)) for template in TEMPLATES]
_FIELDS = {"group": "group_id", "member": "member_id", "client": "client_id", "leader": "leader_id", "reason": "reason", "state": "state"}
_NUMBERS = {"generation": "generation", "count": "member_count", "partition": "coordinator_partition"}


def lines(release, log):
    """The lines that the log reader keeps: number, time (epoch ms), text."""
    judge = BrokerJudge(Mark())
    for number, line in enumerate(gzip.decompress((FOLDER / f"kafka-{release}" / f"{log}.gz").read_bytes()).split(b"\n"), 1):
        if re.match(rb"\[\d{4}-", line):
            kept = judge.timed(line, "")
            assert not kept, line
            if kept == "":
                yield number, at_ms(line.decode()), line.decode()


def coordinators_lines(release):
    """Those of the coordinator alone: the others say how the broker comes and goes."""
    return [line for line in lines(release, SERVER) if recognise(line[2], "broker-1").source != BROKER_SOURCE]


def at_ms(line):
    moment = datetime.strptime(line[1:24], "%Y-%m-%d %H:%M:%S,%f").replace(tzinfo=timezone.utc)
    return round(moment.timestamp() * 1_000)


def sentence(text):
    """The sentence of a coordinator's line, or None."""
    shaped = SHAPE.match(text)
    return shaped and shaped[4]


def event(number, at, text):
    """A coordinator's line as an event; None where no template reads it."""
    for template, pattern in _PATTERNS:
        found = pattern.match(sentence(text) or "")
        if found is not None:
            values = dict(zip(template.groups, found.groups(), strict=True))
            named = {name: values[field] for field, name in _FIELDS.items() if field in values}
            numbers = {name: int(values[field]) for field, name in _NUMBERS.items() if field in values}
            return Event("broker-1", COORDINATOR_SOURCE, SERVER, number, at, at, template.kind, **named, **numbers)
    return None


def phases(release, group):
    """The times of a group's rebalances by generation, from the words of three sentences: preparing, stabilized, assignment received."""
    words = {
        "preparing": rf"Preparing to re\w+ group {group} .*old generation (\d+)",
        "stabilized": rf"Stabilized group {group} generation (\d+)",
        "assigned": rf"Assignment received from leader for group {group} for generation (\d+)",
    }
    found = {}
    for _, at, text in lines(release, SERVER):
        for name, pattern in words.items():
            match = re.search(pattern, text)
            if match is not None:
                found.setdefault(int(match[1]) + (name == "preparing"), {})[name] = at
    return {generation: times for generation, times in found.items() if len(times) == len(words)}
