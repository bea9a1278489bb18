"""Generated lines are in shape like recorded ones: the project's own parsers find the same fields in them."""

from __future__ import annotations

import gzip
import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from jobs.generate.cluster import Cluster
from jobs.generate.sizes import Size
from jobs.parsing.coordinator_log import SHAPE, TEMPLATES
from jobs.sentences.coordinator import REASONS
from tests.effort import every

pytestmark = pytest.mark.slow

DATA = Path(__file__).parents[1] / "data"
RELEASES = ("3.9.1", "4.2.0")
BUSY = Size(30, 4, 2.0, commits=True)
NUMBERS = dict.fromkeys(map(ord, "0123456789abcdef."))
REQUEST = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (?:DEBUG|INFO) Completed request:(\{.*\}) \(kafka\.request\.logger\)")
SENTENCES = [(template, re.compile(template.pattern)) for template in TEMPLATES]
WHY = [(template, re.compile(template.pattern)) for template in REASONS]


@cache
def generated(release: str) -> dict[bool, list[str]]:
    """A minute of a small cluster to which much happens, and some seconds of one with fetches: request lines and others."""
    found: dict[bool, list[str]] = {True: [], False: []}
    for size, ms in ((BUSY, 60_000), (replace(BUSY, fetches=True), 10_000)):
        cluster = Cluster(size, release=release, brokers=2, start_ms=0, seed=1)
        for _ in cluster.advance(ms):
            for is_request, _, lines in cluster.book.take():
                found[is_request] += [line.rstrip("\n") for line in lines]
    return found


@cache
def recorded(release: str) -> dict[bool, list[str]]:
    found: dict[bool, list[str]] = {}
    for is_request, name in ((True, "kafka-request.log.gz"), (False, "server.log.gz")):
        files = sorted(DATA.glob(f"recordings/kafka-{release}/broker-*/{name}")) + sorted(DATA.glob(f"staged/kafka-{release}/*/{name}"))
        assert len(files) >= 3
        found[is_request] = [line for file in files for line in gzip.decompress(file.read_bytes()).decode().splitlines()]
    return found


def structure(value):
    """The names and types of JSON, in their order. A list has the structures of its elements; a text may be null."""
    if isinstance(value, dict):
        return tuple((name, structure(inner)) for name, inner in value.items())
    if isinstance(value, list):
        return frozenset(structure(inner) for inner in value)
    return "text" if value is None else type(value).__name__.replace("str", "text")


def shapes(lines, release):
    """By API and version, the structures of the lines of Java consumers of a release."""
    found: dict[tuple[str, int], set] = {}
    seen = set()
    for line in of_java(lines, release):
        plain = line.translate(NUMBERS)
        if plain not in seen:
            seen.add(plain)
            text = REQUEST.fullmatch(line)
            assert text, line
            request = json.loads(text[1])
            header = request["requestHeader"]
            found.setdefault((header["requestApiKeyName"], header["requestApiVersion"]), set()).add(structure(request))
    return found


def of_java(lines, release):
    return (line for line in lines if "apache-kafka-java" in line and f'"softwareVersion":"{release}"' in line)


def without_lists(shape):
    """A structure in which a list is only a list: what differs then is which lists are empty."""
    if isinstance(shape, frozenset):
        return "list"
    return tuple((name, without_lists(inner)) for name, inner in shape) if isinstance(shape, tuple) else shape


def elements(shape, path=()):
    """The structures of the elements of all lists in a structure, with where they are."""
    if isinstance(shape, frozenset):
        for inner in shape:
            yield path, without_lists(inner)
            yield from elements(inner, path)
    elif isinstance(shape, tuple):
        for name, inner in shape:
            yield from elements(inner, (*path, name))


@pytest.mark.parametrize("release", every(2, RELEASES))
def test_requests_have_the_fields_of_recorded_ones(release):
    made, real = shapes(generated(release)[True], release), shapes(recorded(release)[True], release)
    assert {name for name, _ in made} == {
        "FIND_COORDINATOR", "JOIN_GROUP", "SYNC_GROUP", "HEARTBEAT", "LEAVE_GROUP", "OFFSET_COMMIT", "OFFSET_FETCH", "FETCH", "METADATA",
    }  # fmt: skip
    if release == "4.2.0":  # more of the same version, with sessions that forget partitions
        scenes = DATA / "offset-scenes" / "kafka-4.4.0" / "broker-1" / "kafka-request.log.gz"
        for api, of_api in shapes(gzip.decompress(scenes.read_bytes()).decode().splitlines(), "4.4.0").items():
            real.setdefault(api, set()).update(of_api)
    for api, of_api in made.items():
        assert {without_lists(shape) for shape in of_api} <= {without_lists(shape) for shape in real[api]}, api
        assert {one for shape in of_api for one in elements(shape)} <= {one for shape in real[api] for one in elements(shape)}, api


@pytest.mark.parametrize("release", every(2, RELEASES))
def test_the_lines_begin_and_end_like_recorded_ones(release):
    def ends(lines):
        own = of_java(lines, release)
        return {(line[26 : line.index("requestApiKey")], line[line.index('"sendTimeMs"') :].partition(",")[2]) for line in own}

    def connections(lines):
        return {re.sub(r"\d+", "0", re.search(r'"connection":"([^"]*)"', line)[1]) for line in of_java(lines, release)}

    assert ends(generated(release)[True]) == ends(recorded(release)[True])
    assert connections(generated(release)[True]) == connections(recorded(release)[True])


def sentence(line):
    """The template of a coordinator's line, its level and prefix, its logger, and the template of its reason."""
    shaped = SHAPE.match(line)
    if shaped is None:
        return None
    prefix, _, _, text, logger = shaped.groups()
    for template, pattern in SENTENCES:
        found = pattern.match(text)
        if found is not None:
            why = None
            if template.kind == "PREPARING_REBALANCE":
                values = dict(zip(template.groups, found.groups(), strict=True))
                why = next(reason.text for reason, of_reason in WHY if of_reason.match(values["reason"]))
            return template.text, line[25:31], re.sub(r"\d+", "0", prefix or ""), logger, why
    return None


@pytest.mark.parametrize("release", every(2, RELEASES))
def test_coordinators_write_sentences_that_were_recorded(release):
    made = {sentence(line) for line in generated(release)[False]}
    assert None not in made
    assert made - {sentence(line) for line in recorded(release)[False]} == set()
    kinds = {template.kind for template in TEMPLATES if template.text in {text for text, *_ in made}}
    assert kinds >= {
        "PREPARING_REBALANCE", "STABILIZED", "ASSIGNMENT_RECEIVED", "MEMBER_FAILED", "MEMBER_LEFT", "GROUP_LOADED", "GROUP_UNLOADED",
    }  # fmt: skip
    assert len([why for *_, why in made if why]) >= 3


def test_a_cluster_with_nothing_but_heartbeats_says_nothing():
    cluster = Cluster(replace(BUSY, rebalances=0.0, commits=False), release="4.2.0", brokers=1, start_ms=0, seed=1)
    taken = [one for _ in cluster.advance(30_000) for one in cluster.book.take()]
    assert {is_request for is_request, _, _ in taken} == {True}
    assert {re.search(r'"requestApiKeyName":"(\w+)"', line)[1] for _, _, lines in taken for line in lines} == {"HEARTBEAT"}
