"""Staged accidents, recorded on real brokers (scripts/truth/record.py): what the tables say of each, with each kind of evidence."""

import json
import shutil
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from jobs.answers.check import check
from jobs.common.settings import Settings
from jobs.laws.laws import breaches
from jobs.pipeline import at_once
from scripts.truth import recordings, second_opinion
from scripts.truth.recordings import BOTH, COORDINATOR_LOG, REQUEST_LOG, Recording
from tests.acceptance.sharper import as_sharp

pytestmark = pytest.mark.slow

STAGED = Path(__file__).parents[1] / "data" / "staged"
REAL_CLIENTS = STAGED.parent / "clients" / "cluster"
RELEASES = sorted(path.name for path in STAGED.iterdir() if path.is_dir())
SCENES = [
    (release, json.loads(line))
    for release in RELEASES
    for line in (STAGED / release / "truth.jsonl").read_text(encoding="utf-8").splitlines()
]
MODES = (COORDINATOR_LOG, REQUEST_LOG, BOTH)
EACH_ALONE = ("kafka-3.9.1", "kafka-4.2.0-consumer")
"""Releases of which `make test` reads each log alone, too."""
TIMES = {"rebalances": "ended_at", "member_sessions": "ended_at", "rebalance_rounds": "started_at"}
CLIENTS = {
    "clients, plain": lambda line: line,
    "clients, of compose": lambda line: b"app-1  | " + line,
    "clients, of containers": lambda line: json.dumps(
        {"log": line.decode() + "\n", "stream": "stderr", "time": "2026-11-22T23:59:59.5Z"}
    ).encode(),
}
"""A cluster for each way to hand out the logs of real clients (tests/data/clients)."""


def protocol(release, scene):
    """The protocol of a scene's group. A recording without a word on it has groups of one protocol."""
    return scene.get("protocol") or ("consumer" if release.endswith("-consumer") else "classic")


def with_modes(cases, name):
    """Cases, each with its release first, with each kind of evidence: `name(*case)` tells them apart."""
    return [
        pytest.param(*case, mode, id=f"{name(*case)} {mode}", marks=() if is_usual(case[0], mode) else pytest.mark.long)
        for case in cases
        for mode in MODES
    ]


def is_usual(release, mode):
    return mode == BOTH or release in EACH_ALONE


def scenes_of(*protocols):
    """The scenes of groups of these protocols, as parameters of a test."""
    scenes = [(release, scene) for release, scene in SCENES if protocol(release, scene) in protocols]
    return pytest.mark.parametrize(("release", "scene", "mode"), with_modes(scenes, lambda release, scene: f"{release} {scene['group']}"))


def stage_clients(folder, wrap):
    """Copies the logs of clients to a cluster's folder, each line in an envelope; that of their broker stays as it is."""
    shutil.copytree(REAL_CLIENTS, folder)
    for log in folder.glob("clients/**/*.log"):
        log.write_bytes(b"".join(wrap(line) + b"\n" for line in log.read_bytes().splitlines()))


@pytest.fixture(scope="module")
def tracked(tmp_path_factory):
    """Gives the folder of what is usual, with the logs of clients, or of all else."""

    @cache
    def track(*, usual):
        folder = tmp_path_factory.mktemp("staged")
        for release in RELEASES:
            modes = [mode for mode in MODES if is_usual(release, mode) == usual]
            recordings.stage([Recording(STAGED / release, "UTC")], folder / "input", modes)
        for name, wrap in CLIENTS.items() if usual else ():
            stage_clients(folder / "input" / name, wrap)
        assert at_once.process(folder / "input", folder / "lake", settings=Settings(shards=8), most_lines=1 << 30)
        return folder

    return track


@pytest.fixture(scope="module")
def tables(tracked):
    """Gives those of a release with some evidence, or of a way to hand out the logs of clients."""

    @cache
    def read(name, mode=""):
        cluster, usual = (f"{name} {mode}", is_usual(name, mode)) if mode else (name, True)
        return recordings.tables(tracked(usual=usual) / "lake", cluster, every_protocol=True)

    return read


def of_group(tables, release, mode, scene):
    """The rows of a scene's group until the scene was over."""
    return {
        name: [row for row in rows if row["group_id"] == scene["group"] and row[TIMES.get(name, "occurred_at")] <= scene["until"]]
        for name, rows in tables(release, mode).items()
    }


def told(rows, group):
    ordered = sorted(rows["rebalances"], key=lambda row: row["ended_at"])
    return [(row["cause"], short(row["client_id"], group), row["members_before"], row["members_after"]) for row in ordered]


def short(client, group):
    return client and client.removeprefix(f"{group}-")


@scenes_of("classic")
def test_its_rebalances(tables, release, mode, scene):
    found = told(of_group(tables, release, mode, scene), scene["group"])
    expected = [tuple(row) for row in scene["rebalances"]]
    if scene["again"]:
        repeated = expected[-1]
        assert found[len(expected) - 1 :] == [repeated] * (len(found) - len(expected) + 1)
        found = found[: len(expected)]
    if mode == BOTH:
        assert found == expected
    assert [row[2:] for row in found] == [row[2:] for row in expected]
    for (cause, client, *_), (true, culprit, *_) in zip(found, expected, strict=True):
        assert as_sharp(cause, true)
        assert client in (None, culprit)


@scenes_of("consumer")
def test_the_rebalances_of_a_consumer_group(tables, release, mode, scene):
    """A coordinator's log shows when each round began, not when the members had their partitions: several rounds may be one rebalance."""
    rows = of_group(tables, release, mode, scene)
    expected = [tuple(row) for row in scene["rebalances"]]
    if mode != COORDINATOR_LOG:
        found = told(rows, scene["group"])
        assert [row[2:] for row in found] == [row[2:] for row in expected]
        assert {row["end_seen"] for row in rows["rebalances"]} == {True}
        assert protocols(rows["rebalances"]) == (scene["protocols"] or ["consumer"] * len(expected))
        assert mode != BOTH or found == expected
    classic = [row for row in rows["rebalances"] if row["group_protocol"] == "classic"]
    steps = sorted([*classic, *rows["rebalance_rounds"]], key=lambda row: row["started_at"])
    for row, (true, culprit, *_) in zip(steps, scene.get("rounds") or expected, strict=True):
        assert as_sharp(row["cause"], true)
        assert short(row["client_id"], scene["group"]) in (None, culprit)


def protocols(rebalances):
    """The protocol of each, in the order of time."""
    return [row["group_protocol"] for row in sorted(rebalances, key=lambda row: row["ended_at"])]


@scenes_of("consumer")
def test_a_group_that_migrates_is_told_as_one_group(tables, release, mode, scene):
    """Each change of protocol stands in its timeline, between the last rebalance of the one and the first of the other."""
    rows = of_group(tables, release, mode, scene)
    changed = [
        (before["ended_at"], after["started_at"], f"CONVERTED_TO_{after['group_protocol'].upper()}")
        for before, after in pairwise(sorted(rows["rebalances"], key=lambda row: row["ended_at"]))
        if before["group_protocol"] != after["group_protocol"]
    ]
    told_so = sorted((row["occurred_at"], row["trigger"]) for row in rows["group_transitions"] if row["trigger"].startswith("CONVERTED"))
    assert len(told_so) == len(changed) == sum(one != other for one, other in pairwise(scene["protocols"]))
    for (at, trigger), (since, until, expected) in zip(told_so, changed, strict=True):
        assert trigger == expected
        assert since <= at <= until


@scenes_of("classic", "consumer")
def test_its_findings(tables, release, mode, scene):
    """A coordinator's log does not show zombies, nor that a static member's poll loop stalled, nor the client of a static member."""
    rows = of_group(tables, release, mode, scene)["findings"]
    besides = {"HEARTBEAT_NEAR_MISS", *scene.get("besides", ())}
    found = {(row["code"], short(row["client_id"], scene["group"])) for row in rows if row["code"] not in besides}
    possible = [{(one, client) for one in ([code] if isinstance(code, str) else code)} for code, client in scene["findings"]]
    if mode == BOTH:
        assert all(found & some for some in possible)
        assert found <= set().union(*possible)
    for code, client in found:
        assert any(as_sharp(code, true) and client in (None, culprit) for true, culprit in set().union(*possible))


@scenes_of("classic", "consumer")
def test_its_memberships(tables, release, mode, scene):
    rows = of_group(tables, release, mode, scene)["member_sessions"]
    ends = [(short(row["client_id"], scene["group"]), row["end_kind"]) for row in sorted(rows, key=lambda row: row["ended_at"])]
    expected = [tuple(end) for end in scene["ends"]]
    assert all(client in (None, true) for (client, _), (true, _) in zip(ends, expected, strict=True))
    assert all(as_sharp(kind, true) for (_, kind), (_, true) in zip(ends, expected, strict=True))


@pytest.mark.parametrize(("release", "mode"), with_modes([(release,) for release in RELEASES], str))
def test_laws(tables, release, mode):
    assert breaches(tables(release, mode)) == []


@pytest.mark.parametrize(("release", "mode"), with_modes([(release,) for release in RELEASES if not release.endswith("-consumer")], str))
def test_a_second_reading(tables, release, mode):
    """Of groups that are classic throughout."""
    made = second_opinion.generations(STAGED / release, "UTC")
    classic = [row for row in tables(release, mode)["rebalances"] if row["group_protocol"] == "classic"]
    opinion = second_opinion.compare(made, classic, exact=mode != REQUEST_LOG)
    assert opinion.differences == []


@pytest.mark.parametrize("name", CLIENTS)
def test_what_clients_say_of_themselves_reaches_the_causes(tables, name):
    """The broker was told a reason by Java and franz-go alone. kafka-python and librdkafka through Go said it in their own logs."""
    rows = tables(name)
    stalled = {(row["group_id"], row["client_id"] or row["member_id"][:-37]) for row in rows["findings"] if row["code"] == "POLL_TIMEOUT"}
    assert stalled == {("kp3-orders", "kp3-b"), ("ckgo-orders", "ckgo-b"), ("java-orders", "java-a"), ("java-orders", "java-b")}
    causes = {(row["group_id"], row["generation"]): row["cause"] for row in rows["rebalances"]}
    assert causes["kp3-orders", 2] == causes["ckgo-orders", 4] == "POLL_TIMEOUT"
    assert causes["kgo-orders", 3] == "REVOCATION_FOLLOW_UP"
    assert causes["kp3-orders", 5] == causes["kgo-orders", 5] == causes["segment-orders", 4] == "MEMBER_LEFT"


def test_no_envelope_changes_a_row_and_all_lines_of_evidence_are_there(tracked, tables):
    plain, *others = ({table: same(rows, name) for table, rows in tables(name).items()} for name in CLIENTS)
    for other in others:
        assert other == plain
    folder = tracked(usual=True)
    assert check(folder / "lake", [folder / "input"]).lines_gone == 0


def same(rows, cluster):
    """The rows of a cluster without its name, which is also in the paths of evidence."""
    return sorted(json.dumps(row, sort_keys=True, default=str).replace(cluster, "") for row in rows)
