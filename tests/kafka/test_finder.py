"""Which logs the shipper finds, and what they are called."""

import gzip

import pytest
from msgspec.structs import replace

from jobs.cli.entry import main
from jobs.common.errors import UserError
from jobs.kafka.finder import Finder, Pods
from jobs.kafka.ship_state import ShipState, ShipTarget
from jobs.kafka.shipper import Shipper
from tests.kafka.shipments import AT_ONCE, TARGET, Topic, kept, lines_of, ship
from tests.logs.log_makers import START_MS, coordinator, write


def test_a_file_that_is_named_brings_its_rotated_ones(tmp_path):
    for name in ("server.log", "server.log.1", "server.log.2026-11-21-06.gz", "server.log.swp", "kafka-request.log", "server.logs"):
        write(tmp_path / name, [coordinator(0)])
    found = Finder([tmp_path / "server.log"], TARGET, print)()
    assert [f.origin for f in found] == ["server.log", "server.log.1", "server.log.2026-11-21-06.gz"]
    both = Finder([tmp_path, tmp_path / "server.log"], TARGET, print)()
    assert len(both) == 4


def test_logs_of_one_name_in_two_folders(tmp_path):
    paths = [write(tmp_path / name / "server.log", [coordinator(i * 10 + n) for i in range(5 + n)]) for n, name in enumerate("ab")]
    topic = Topic()
    ship(tmp_path, topic, inputs=paths)
    assert {r.origin: r.lines for _, r in topic.clocks()} == {r.origin: 5 + (r.at_ms == START_MS + 51) for _, r in topic.clocks()}
    assert sorted(sorted(kept(p)) for p in paths) == sorted(sorted(lines_of(topic, o)) for o in {r.origin for r in topic.lines()})


def test_logs_long_gone_are_forgotten(tmp_path):
    settings = replace(AT_ONCE, absent_kept=2)
    topic = Topic()
    for number in range(5):
        path = write(tmp_path / "in/server.log", [coordinator(number * 1_000 + i) for i in range(5)])
        ship(tmp_path, topic, settings=settings)
        path.unlink()
    ship(tmp_path, topic, settings=settings)
    write(tmp_path / "in/server.log", [coordinator(0)])
    ship(tmp_path, topic, settings=settings)
    with ShipState(tmp_path / "state.json", TARGET) as state:
        assert len(state.load()) == 3
    assert len(topic.distinct()) == 25 + 1 - 1  # a line of a log that came back, forgotten: the reader knows it


def test_logs_of_applications(tmp_path):
    write(tmp_path / "in/clients/payments/app.log", [b"%4|1795240800.000|MAXPOLL|app| [thrd:main]: Application maximum poll interval"])
    write(tmp_path / "in/server.log", [coordinator(0)])
    topic = Topic()
    ship(tmp_path, topic)
    (client,) = (r for r in topic.lines() if r.source == "client")
    assert (client.broker, client.context, client.at_ms) == ("clients", "payments", START_MS)
    alone = Finder([tmp_path / "in/clients"], ShipTarget("c", "clients", "t"), print)()
    assert [(f.broker, f.origin) for f in alone] == [("clients", "clients/payments/app.log")]


def test_records_of_polls_beside_a_broker(tmp_path):
    write(tmp_path / "in/poll/poll-1.jsonl", [b'{"timestamp":1795242559456,"group":"payments","state":"Stable"}'])
    topic = Topic()
    ship(tmp_path, topic)
    (line,) = topic.lines()
    assert (line.broker, line.source, line.origin.startswith("poll/poll-1@"), line.origin.endswith(".jsonl")) == (
        "poll", "poll", True, True,
    )  # fmt: skip


def test_a_file_that_may_not_be_read_is_told_once(tmp_path):
    write(tmp_path / "server.log", [coordinator(0)])

    def refuse(_path):
        raise PermissionError(13, "Permission denied")

    said = []
    find = Finder([tmp_path], TARGET, said.append, open_file=refuse)
    assert find() == find() == []
    assert len(said) == 1


def cri(line):
    """A line as the kubelet's files have it."""
    return b"2026-11-21T06:00:00.123456789Z stdout F " + line


def ship_pods(folder, topic, pods="kafka/production-kafka-*"):
    chosen = Pods.parse(pods)
    target = ShipTarget("production", str(chosen), "t")
    with ShipState(folder / "state.json", target) as state:
        finder = Finder([folder / "pods"], target, print, pods=chosen)
        Shipper(finder, state, topic, AT_ONCE).ship(once=True, stopped=lambda: False, complain=print)


def test_each_pod_of_a_node_is_a_broker_of_its_name(tmp_path):
    pods = tmp_path / "pods"
    write(pods / "kafka_production-kafka-0_1f0c/kafka/0.log", [cri(coordinator(0))])
    write(pods / "kafka_production-kafka-1_77ab/kafka/0.log", [cri(coordinator(10))])
    write(pods / "kafka_production-zookeeper-0_90cd/zookeeper/0.log", [cri(coordinator(20))])
    write(pods / "other_production-kafka-0_5e5e/kafka/0.log", [cri(coordinator(30))])
    write(pods / "kafka_production-kafka-0_1f0c.log", [cri(coordinator(40))])
    topic = Topic()
    ship_pods(tmp_path, topic)
    assert [(r.cluster, r.broker, r.at_ms - START_MS) for r in topic.lines()] == [
        ("production", "production-kafka-0", 0),
        ("production", "production-kafka-1", 10),
    ]
    assert all(r.origin.startswith("kafka/0@") for r in topic.lines())
    assert {r.broker for _, r in topic.clocks()} == {"production-kafka-0", "production-kafka-1"}


def test_a_pod_that_starts_anew_and_rotated_logs_are_the_same_broker(tmp_path):
    first = write(tmp_path / "pods/kafka_production-kafka-0_1f0c/kafka/0.log", [cri(coordinator(i)) for i in range(3)])
    topic = Topic()
    ship_pods(tmp_path, topic)
    rotated = first.with_name("0.log.20261121-060100.gz")
    rotated.write_bytes(gzip.compress(first.read_bytes()))
    write(first, [cri(coordinator(i)) for i in range(10, 12)])
    write(first.with_name("1.log"), [cri(coordinator(20))])
    write(tmp_path / "pods/kafka_production-kafka-0_99ff/kafka/0.log", [cri(coordinator(30))])
    ship_pods(tmp_path, topic)
    assert {r.broker for r in topic.lines()} == {"production-kafka-0"}
    assert sorted(at_ms - START_MS for at_ms, _, _ in topic.distinct().values()) == [0, 1, 2, 10, 11, 20, 30]
    assert len(topic.lines()) == 7


def test_a_lost_state_repeats_lines_under_the_same_names(tmp_path):
    """Whatever stands around the lines, and however much longer the log is now."""
    log = write(tmp_path / "pods/kafka_production-kafka-0_1f0c/kafka/0.log", [cri(b"===> Launching"), cri(coordinator(0))])
    topic = Topic()
    ship_pods(tmp_path, topic)
    (tmp_path / "state.json").unlink()
    log.write_bytes(log.read_bytes() + cri(coordinator(1)) + b"\n")
    ship_pods(tmp_path, topic)
    assert len(topic.lines()) == 3
    assert len(topic.distinct()) == 2


@pytest.mark.parametrize("text", ["production-kafka-0", "kafka/", "kafka/a/b/c", "kafka_production/x"])
def test_a_pattern_of_pods_that_can_match_none(text):
    with pytest.raises(UserError, match="write NAMESPACE/POD"):
        Pods.parse(text)


def test_one_broker_or_pods_and_pods_that_are_not_there_are_told(tmp_path, capsys):
    files = ["--state", str(tmp_path / "state.json"), "--config", str(tmp_path / "nowhere.properties")]
    common = ["ship", "--input", str(tmp_path), "--cluster", "c", "--bootstrap", "127.0.0.1:1", *files]
    for choice in ([], ["--broker", "b", "--pods", "kafka/*"]):
        assert main([*common, *choice]) == 2
        assert "either --broker or --pods" in capsys.readouterr().err
    assert main([*common, "--pods", "kafka/broker-*"]) == 2
    assert f"no logs of kafka/broker-*/* in {tmp_path} yet" in capsys.readouterr().err


def test_pods_need_a_folder(tmp_path):
    file = write(tmp_path / "0.log", [cri(coordinator(0))])
    with pytest.raises(UserError, match="/var/log/pods"):
        Finder([file], TARGET, print, pods=Pods.parse("kafka/*"))


def test_one_container_of_a_pod(tmp_path):
    for container in ("kafka", "exporter"):
        write(tmp_path / f"pods/kafka_production-kafka-0_1f0c/{container}/0.log", [cri(coordinator(0))])
    topic = Topic()
    ship_pods(tmp_path, topic, "kafka/production-*/kafka")
    assert [r.origin.partition("@")[0] for r in topic.lines()] == ["kafka/0"]
