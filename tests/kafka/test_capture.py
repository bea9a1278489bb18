"""What `dump-offsets` and `poll` refuse, and what a poll writes: no cluster needed."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupType, KafkaError, KafkaException

from jobs.cli.entry import main
from jobs.common.errors import UserError
from jobs.kafka import poll
from jobs.kafka.clients import Cluster, check_cluster_name, read_config
from jobs.kafka.dump_offsets import DumpPosition, dump_position
from jobs.kafka.poll_offsets import OffsetPoller
from tests.kafka.answered import done
from tests.waiting import PATIENCE_SECONDS


def test_a_file_of_settings(tmp_path: Path) -> None:
    path = tmp_path / "client.properties"
    path.write_text("# ours\n\nsecurity.protocol=SASL_SSL\nsasl.password = a=b \ngroup.id=mine\n")
    path.chmod(0o644)
    with pytest.raises(UserError, match=r"holds sasl\.password and can be read by any user of this machine: chmod 600"):
        read_config(path)
    path.chmod(0o600)
    assert read_config(path) == {"security.protocol": "SASL_SSL", "sasl.password": "a=b"}
    assert read_config(None) == {}


def test_settings_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("one\n")
    with pytest.raises(UserError, match="line 1: write name=value"):
        read_config(tmp_path / "x")
    with pytest.raises(UserError, match="No such file"):
        read_config(tmp_path / "y")


@pytest.mark.parametrize("name", ["", "a/b", "_a", ".a", "clients"])
def test_names_of_clusters_that_no_folder_can_have(name: str) -> None:
    with pytest.raises(UserError):
        check_cluster_name("--cluster", name)


def test_commands_that_cannot_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "client").write_text("no.such.setting=1\n")
    for arguments, said in (
        (["dump-offsets", "--bootstrap", "x:1", "--config", str(tmp_path / "client")], "No such configuration property"),
        (["poll", "--bootstrap", "x:1", "--out", str(tmp_path), "--every", "never"], "--every never"),
        (["poll", "--bootstrap", "x:1", "--out", str(tmp_path), "--cluster", "a/b"], "--cluster a/b"),
        (["run", "--lakehouse", str(tmp_path / "lake")], "give --input, --kafka or --offsets-from"),
    ):
        assert main(arguments) == 2
        error = capsys.readouterr().err
        assert said in error
        assert error.count("\n") == 1


def test_a_cluster_that_is_not_there_is_told_in_one_line() -> None:
    with pytest.raises(UserError, match=r"cannot reach a cluster at 127\.0\.0\.1:1: ") as error:
        Cluster("127.0.0.1:1", connect_seconds=3_600).admin()  # it does not wait where nothing listens
    assert "\n" not in str(error.value)


@pytest.mark.slow
def test_commands_end_with_one_line_where_no_cluster_answers(tmp_path: Path) -> None:
    """`ship` waits for a cluster that is away, but not with `--once`."""
    (tmp_path / "logs").mkdir()
    commands = (
        ("dump-offsets",),
        ("poll", "--out", str(tmp_path)),
        ("ship", "--once", "--input", str(tmp_path / "logs"), "--cluster", "c", "--broker", "b", "--state", str(tmp_path / "state")),
    )
    program = (sys.executable, "-m", "jobs.cli")
    children = [subprocess.Popen((*program, *c, "--bootstrap", "127.0.0.1:1"), stderr=subprocess.PIPE, text=True) for c in commands]
    try:
        for command, child in zip(commands, children, strict=True):
            _, error = child.communicate(timeout=PATIENCE_SECONDS)
            assert (child.returncode, error.count("\n")) == (2, 1), (command, error)
            assert error.startswith("rebalance: cannot reach a cluster at 127.0.0.1:1: ")
    finally:
        for child in children:
            child.kill()


class Answers:
    """An admin client that answers what it is told to."""

    def __init__(self, groups) -> None:
        self.groups = groups

    def list_consumer_groups(self, **_):
        return done(SimpleNamespace(errors=[], valid=[SimpleNamespace(group_id=name) for name in self.groups]))

    def describe_consumer_groups(self, names, **_):
        return {name: done(self.groups[name]) for name in names}


def group(state, *members):
    return SimpleNamespace(
        state=state,
        type=ConsumerGroupType.CLASSIC,
        partition_assignor="range",
        coordinator=SimpleNamespace(id=1, host="b", port=9092),
        members=[
            SimpleNamespace(
                member_id=m, group_instance_id=None, client_id="app", host="/10.0.0.7", assignment=SimpleNamespace(topic_partitions=[])
            )
            for m in members
        ],
    )


def poller_of(admin):
    cluster = SimpleNamespace(bootstrap="b:9092", admin=lambda: admin)
    return poll.Poller(cluster)


def polled(poller):
    return [{k: v for k, v in line.items() if k not in {"timestamp", "took_ms"}} for line in poller.poll()]


def test_only_groups_that_changed_have_a_line() -> None:
    admin = Answers({"g": group(ConsumerGroupState.STABLE, "b-2", "a-1")})
    poller = poller_of(admin)
    first, alive = polled(poller)
    assert [m["member_id"] for m in first["members"]] == ["a-1", "b-2"]
    assert (first["state"], alive) == ("Stable", {"polled": 1})
    admin.groups["g"].members.reverse()
    assert polled(poller) == [{"polled": 1}]
    admin.groups["h"] = group(ConsumerGroupState.EMPTY)
    assert [line.get("group") for line in polled(poller)] == ["h", None]
    del admin.groups["g"]
    gone, _ = polled(poller)
    assert (gone["group"], gone["state"]) == ("g", "Dead")
    assert polled(poller) == [{"polled": 1}]


class WithOffsets(Answers):
    """Each group has committed 3 of 5 records of a partition."""

    def list_consumer_group_offsets(self, requests, **_):
        place = SimpleNamespace(topic="t", partition=0, offset=3, error=None)
        return {request.group_id: done(SimpleNamespace(topic_partitions=[place])) for request in requests}

    def list_offsets(self, partitions, **_):
        return {partition: done(SimpleNamespace(offset=5)) for partition in partitions}

    def describe_topics(self, topics, **_):
        return {name: done(KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))) for name in topics.topic_names}


def test_offsets_come_behind_the_groups_and_not_with_each_poll() -> None:
    refused = KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
    admin = WithOffsets({"g": group(ConsumerGroupState.EMPTY), "h": refused, "x": group(ConsumerGroupState.DEAD)})
    poller = poll.Poller(SimpleNamespace(bootstrap="b:9092", admin=lambda: admin), offsets_each=2, offsets=OffsetPoller(admin))
    lines = list(poller.poll())
    assert [line.get("group") for line in lines] == ["g", "h", "x", "g", None]
    assert lines[3] == {"timestamp": lines[4]["timestamp"], "group": "g", "offsets": {"t-0": [3, 5]}}
    admin.groups["i"] = admin.groups["g"]
    assert [line.get("group") for line in polled(poller)] == ["i", None]
    assert [line.get("group") for line in polled(poller)] == ["i", None]


def test_a_group_that_may_not_be_described_is_told_once() -> None:
    refused = KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
    poller = poller_of(Answers({"g": refused}))
    assert [line.get("group") for line in polled(poller)] == ["g", None]
    assert polled(poller) == [{"polled": 1}]


def test_a_cluster_that_does_not_answer_is_complained_of_once(tmp_path: Path) -> None:
    admin = Answers({"g": group(ConsumerGroupState.EMPTY)})
    listed = admin.list_consumer_groups
    fails = iter([True, True, False, True])
    complaints: list[str] = []
    polls = []

    def ask(**options):
        polls.append(1)
        return done(KafkaException(KafkaError(KafkaError._TRANSPORT))) if next(fails) else listed(**options)

    admin.list_consumer_groups = ask
    answered = poll.follow(poller_of(admin), tmp_path, every=0.1, once=False, stopped=lambda: len(polls) == 4, complain=complaints.append)
    assert (answered, len(complaints)) == (1, 2)
    (file,) = tmp_path.iterdir()
    assert [next(iter(json.loads(line))) for line in file.read_text().splitlines()] == ["format", "timestamp", "timestamp"]


def test_where_a_dump_ended(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    assert dump_position(path) is None
    path.write_text(
        '{"format":"rebalance-offsets-1"}\n{"timestamp":1,"partition":3,"offset":8,"key":null}\n{"timestamp":7,"read":1}\n{"timestamp":9,"part'
    )
    assert dump_position(path) == DumpPosition({3: 8}, 7)
    assert path.read_text().endswith('"read":1}\n')
    path.write_text("a log\n")
    with pytest.raises(UserError, match="not a dump"):
        dump_position(path)
