"""What is done to real consumers of a real cluster is what the tables say, live: three brokers, shippers beside them, one pipeline.

`make test` has one broker and a scene of each kind of end in tests/demo/test_live.py.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timezone

import pytest
from confluent_kafka.admin import AdminClient

from coordinator_model.specification.partition import coordinator_partition
from jobs.demo import scenes
from jobs.demo.children import RebalanceCommand, shipped_lines
from jobs.demo.consumers import CLASSIC, CONSUMER, CONSUMER_GROUP_SETTINGS, JAVA, LIBRDKAFKA
from jobs.demo.local_broker import brokers_of
from jobs.demo.scenes import ScenePlayer, Stage
from tests.lab.expected import CONSUMER_PLAYED_LIVE, LEFT, OF_CONSUMER_PROTOCOL, PLAYED_LIVE, RETURNED, TWO, ZOMBIE
from tests.lab.further_consumers import FurtherConsumers
from tests.laws.kept import assert_laws_are_kept
from tests.live.new_rows import NewRows
from tests.waiting import PATIENCE_SECONDS

pytestmark = [pytest.mark.spark, pytest.mark.long]

TOPIC = "orders"
LOGS = "group-protocol-logs"
SETTINGS = {
    "group.initial.rebalance.delay.ms": "500",
    "group.min.session.timeout.ms": "1000",
    "broker.session.timeout.ms": "8000",  # nobody can commit until it is over, so sessions of consumers are longer
    "broker.heartbeat.interval.ms": "1000",
    **CONSUMER_GROUP_SETTINGS,
}
PATIENT_MS = 45_000  # a session that outlives the search for a new coordinator
DEADLINE_SECONDS = 1_200
PACE = 2
AT_ONCE = 9
"""Scenes. Starting the clients of all of them together would keep brokers from answering within a session."""
# Most of a scene is waiting. A pipeline that looks for lines as often as it can would take the cores from other tests.
PIPELINE = "[pipeline]\ninterval_ms = 5000\nshards = 8\n"

PLAYED = [
    *((scene, kind, CLASSIC) for scene in PLAYED_LIVE for kind in (LIBRDKAFKA, JAVA)),
    *((scene, kind, CONSUMER) for scene, kinds in CONSUMER_PLAYED_LIVE.items() for kind in kinds),
]
EXPECTED = {CLASSIC: PLAYED_LIVE, CONSUMER: OF_CONSUMER_PROTOCOL}
MOVED = [(LIBRDKAFKA, CLASSIC), (JAVA, CLASSIC), (LIBRDKAFKA, CONSUMER)]
"""Kinds of consumers and protocols of the groups whose coordinator is killed."""


@dataclass
class Told:
    """What the tables say of one group so far."""

    rebalances: list = field(default_factory=list)
    findings: list = field(default_factory=list)
    member_sessions: list = field(default_factory=list)

    def until(self, moment):
        """What they say of the time before this moment."""
        return Told(
            [row for row in self.rebalances if row["started_at"] < moment],
            [row for row in self.findings if row["occurred_at"] < moment],
            [row for row in self.member_sessions if row["ended_at"] < moment],
        )


class Watch:
    """Looks into the tables while the pipeline writes them."""

    def __init__(self, lakehouse):
        self._tables = {name: NewRows(lakehouse, name) for name in Told.__dataclass_fields__}
        self.quarantine = NewRows(lakehouse, "quarantine")
        self._counted = NewRows(lakehouse, "input_lines")
        self._read = 0
        self.groups = {}
        self.delays = []  # seconds from the end of a rebalance to its row

    def look(self):
        now = time.time()
        for name, table in self._tables.items():
            for row in table.take():
                getattr(self.groups.setdefault(row["group_id"], Told()), name).append(row)
                if name == "rebalances":
                    self.delays.append(now - row["ended_at"].timestamp())

    def lines_read(self):
        self._read += sum(row["lines_read"] for row in self._counted.take())
        return self._read

    def rebalances(self, group):
        return len(self.groups[group].rebalances) if group in self.groups else 0

    def codes(self, group):
        return {row["code"] for row in self.groups[group].findings} if group in self.groups else set()


class Cluster:
    """The brokers, what is started beside them, and the consumers."""

    def __init__(self, folder):
        self.folder = folder
        self.lakehouse = folder / "lakehouse"
        self.brokers = brokers_of(folder / "kafka", 3, settings=SETTINGS)
        self.run = None
        self.ships = []
        self.watch = Watch(self.lakehouse)
        self.over_at = None  # when the scenes were over: then their consumers are killed

    def start(self):
        for broker in self.brokers:
            broker.start()
        self.bootstrap = ",".join(broker.bootstrap for broker in self.brokers)
        self.brokers[0].create_topic(TOPIC, 6)
        self.brokers[0].create_topic(LOGS, 3)
        config = self.folder / "pipeline.toml"
        config.write_text(PIPELINE)
        place = ["--lakehouse", str(self.lakehouse), "--config", str(config)]
        self.run = self._command("run", "--kafka", self.bootstrap, "--topic", LOGS, *place)
        for broker in self.brokers:
            name = f"broker-{broker.node_id}"
            place = ["--cluster", "live", "--broker", name, "--state", str(self._state(broker))]
            self.ships.append(self._command("ship", "--input", str(broker.logs), "--bootstrap", self.bootstrap, "--topic", LOGS, *place))

    def _command(self, *arguments):
        return RebalanceCommand(*arguments, log=self.folder / f"{arguments[0]}-{len(self.ships)}.txt")

    def _state(self, broker):
        return self.folder / f"ship-{broker.node_id}.json"

    def shipped(self):
        """Lines of all logs, by the shippers' own account."""
        return sum(shipped_lines(self._state(broker)) for broker in self.brokers)

    def kill(self):
        for command in [*self.ships, *([self.run] if self.run else [])]:
            command.kill()
        for broker in reversed(self.brokers):
            broker.stop()

    def coordinators(self):
        """The broker that coordinates, by partition of __consumer_offsets."""
        found = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0}).list_topics(
            "__consumer_offsets", timeout=PATIENCE_SECONDS
        )
        return {number: part.leader for number, part in found.topics["__consumer_offsets"].partitions.items()}

    def until(self, condition, what):
        """Waits, and looks at everything meanwhile."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not condition():
            for command in [self.run, *self.ships]:
                assert command.running or command.stopped, command.last_line()
            assert time.monotonic() < deadline, what
            self.watch.look()
            time.sleep(0.2)

    def play(self, parts):
        played = ScenePlayer(parts, AT_ONCE)

        def over():
            played.step()
            return played.over

        self.until(over, "a scene does not end")

    def until_told(self, groups):
        self.until(lambda: all(self.watch.rebalances(group) >= count for group, count in groups.items()), "rebalances are missing")


def named(scene, kind, protocol, leaders, brokers):
    """A name for the group of a scene, so that one of these brokers coordinates it."""
    names = (f"{scene}-{kind}-{protocol}-{number}" for number in range(1000))
    return next(name for name in names if leaders[coordinator_partition(name)] in brokers)


def commits(consumer):
    """Until the coordinator takes it."""
    while "committed" not in consumer.lines:
        before = len(consumer.lines)
        consumer.command("commit")
        yield lambda: len(consumer.lines) > before  # noqa: B023 - asked before it changes


@pytest.fixture(scope="module")
def played(kafka_jars, tmp_path_factory):  # noqa: ARG001
    """All scenes, many at once. Then the third broker, which coordinates other groups, is killed."""
    cluster = Cluster(tmp_path_factory.mktemp("scenes"))
    settled = set()

    def moves(stage):
        one, two = yield from stage.two(session_ms=PATIENT_MS)
        yield lambda: cluster.watch.rebalances(stage.group) == 2
        settled.add(stage.group)
        yield lambda: len(settled) == len(MOVED)
        cluster.brokers[2].kill()
        yield lambda: 3 not in cluster.coordinators().values()
        yield from commits(one)
        yield from commits(two)  # or it would be closed while it knows of no coordinator that it could tell
        two.leave()
        yield stage.has_all(one)

    try:
        cluster.start()
        with FurtherConsumers(cluster.bootstrap, cluster.folder / "clients") as consumers:
            first = consumers.start(LIBRDKAFKA, "first", "first-1", TOPIC)  # the cluster makes __consumer_offsets for it
            cluster.until(lambda: first.partitions == 6, "nobody can join")
            leaders = cluster.coordinators()
            groups = {played: named(played[0].__name__, *played[1:], leaders, {1, 2}) for played in PLAYED}
            stages = [
                (scene, Stage(consumers, group, TOPIC, kind, protocol=protocol, pace=PACE))
                for (scene, kind, protocol), group in groups.items()
            ]
            cluster.play((stage.group, scene(stage)) for scene, stage in stages)
            cluster.until_told({group: len(EXPECTED[protocol][scene].rebalances) for (scene, _, protocol), group in groups.items()})
            cluster.over_at = datetime.now(tz=timezone.utc)
        with FurtherConsumers(cluster.bootstrap, cluster.folder / "clients") as consumers:
            moving = {
                (kind, protocol): Stage(consumers, named("moves", kind, protocol, leaders, {3}), TOPIC, kind, protocol=protocol)
                for kind, protocol in MOVED
            }
            cluster.play((stage.group, moves(stage)) for stage in moving.values())
            cluster.until_told({stage.group: 3 for stage in moving.values()})
            # It comes a minute after the move: by then all else was told.
            cluster.until(
                lambda: all("COORDINATOR_MOVED" in cluster.watch.codes(moving[one].group) for one in MOVED), "nobody tells of the move"
            )
        codes = [ship.stop() for ship in cluster.ships]
        cluster.until(lambda: cluster.watch.lines_read() >= cluster.shipped(), "lines that were shipped are not read")
        codes.append(cluster.run.stop())
        cluster.watch.look()
        delays = sorted(cluster.watch.delays)
        sys.stdout.write(f"from the end of a rebalance to its row: median {delays[len(delays) // 2]:.1f} s, at most {delays[-1]:.1f} s\n")
        yield cluster, groups, {one: stage.group for one, stage in moving.items()}, codes
    finally:
        cluster.kill()


def short(told, client):
    return client and client.removeprefix(f"{told.rebalances[0]['group_id']}-")


def rebalances(told):
    rows = sorted(told.rebalances, key=lambda row: row["ended_at"])
    return [(row["cause"], short(told, row["client_id"]), row["members_before"], row["members_after"]) for row in rows]


def heartbeat_refused(cluster, told):
    """Whether a coordinator refused a heartbeat of client 2 as one of an unknown member.

    librdkafka notices itself that its session is over, and on a busy machine it joins again before it sends a heartbeat.
    """
    signs = (f'"clientId":"{told.rebalances[0]["group_id"]}-2"', 'HEARTBEAT"}', '"errorCode":25')
    logs = (broker.logs / "kafka-request.log" for broker in cluster.brokers)
    return any(all(sign in line for sign in signs) for log in logs for line in log.read_text().splitlines())


def ends(told):
    return [(short(told, row["client_id"]), row["end_kind"]) for row in sorted(told.member_sessions, key=lambda row: row["ended_at"])]


def protocols(told):
    return [row["group_protocol"] for row in sorted(told.rebalances, key=lambda row: row["ended_at"])]


@pytest.mark.parametrize(("scene", "kind", "protocol"), PLAYED, ids=lambda value: value if isinstance(value, str) else value.__name__)
def test_what_was_done_is_what_is_told(played, scene, kind, protocol):
    cluster, groups, _, _ = played
    told, expected = cluster.watch.groups[groups[scene, kind, protocol]].until(cluster.over_at), EXPECTED[protocol][scene]
    assert rebalances(told) == expected.rebalances
    assert protocols(told) == (expected.protocols or [protocol] * len(expected.rebalances))
    generations = [row["generation"] for row in sorted(told.rebalances, key=lambda row: row["ended_at"])]
    # A new group of the consumer protocol has epoch 1 before anybody joins (Kafka 4.3).
    assert generations[0] == (2 if protocols(told)[0] == CONSUMER else 1)
    # A consumer whose answer was lost asks again, and a rebalance of the consumer protocol may take more than one epoch.
    assert generations == ([*range(1, len(generations) + 1)] if protocol == CLASSIC else sorted(set(generations)))
    found = {(row["code"], short(told, row["client_id"])) for row in told.findings}
    findings = expected.findings
    if scene is scenes.is_frozen and kind == LIBRDKAFKA and not heartbeat_refused(cluster, told):
        findings = [finding for finding in findings if finding[0] not in {ZOMBIE, RETURNED}]
    possible = [{(one, client) for one in ([code] if isinstance(code, str) else code)} for code, client in findings]
    assert all(found & some for some in possible), found
    # On a busy machine a heartbeat may really come late, or its answer, and then it is right to say so.
    assert {one for one in found if one[0] not in {"HEARTBEAT_NEAR_MISS", "FENCED_MEMBER_EPOCH", *expected.besides}} <= set().union(
        *possible
    )
    assert ends(told) == expected.ends


@pytest.mark.parametrize(("kind", "protocol"), MOVED)
def test_a_coordinator_that_is_killed_loses_nobody(played, kind, protocol):
    cluster, _, moved, _ = played
    told = cluster.watch.groups[moved[kind, protocol]]
    assert rebalances(told) == [*TWO, (LEFT, "2", 2, 1)]
    assert Counter(row["code"] for row in told.findings) == {"COORDINATOR_MOVED": 1}
    assert ends(told) == [("2", "LEFT")]


def test_nothing_else_is_told(played):
    cluster, groups, moved, codes = played
    assert set(cluster.watch.groups) == {"first", *groups.values(), *moved.values()}
    assert cluster.watch.quarantine.take() == []
    assert cluster.watch.lines_read() == cluster.shipped() > 1_000
    assert codes == [0, 0, 0, 0]
    assert_laws_are_kept(cluster.lakehouse)
