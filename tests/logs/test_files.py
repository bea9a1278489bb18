"""Which files are logs, and of which cluster and broker."""

from pathlib import Path

import pytest

from jobs.logs.files import discover, is_log_name
from jobs.logs.slices import SlicerSettings
from jobs.logs.streams import Stream
from jobs.parsing.inspection import Inspector
from tests.logs.log_makers import other, write


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x\n")


def found(root: Path) -> list[tuple[str, str, str]]:
    return [(f.cluster, f.broker, f.origin) for f in discover(root)]


def test_clusters_and_brokers(tmp_path):
    make(
        tmp_path, "eu/b1/server.log", "eu/b1/kafka-request.log.2026-11-21-06.gz", "eu/b1/archive/server.log.1",
        "eu/README.md", "eu/truth.jsonl", "eu/clients/app.log", "us/b1/server.log.gz", "us/.hidden/server.log",
    )  # fmt: skip
    assert found(tmp_path) == [
        ("eu", "b1", "eu/b1/archive/server.log.1"),
        ("eu", "b1", "eu/b1/kafka-request.log.2026-11-21-06.gz"),
        ("eu", "b1", "eu/b1/server.log"),
        ("eu", "clients", "eu/clients/app.log"),
        ("us", "b1", "us/b1/server.log.gz"),
    ]


def test_a_folder_of_brokers_is_a_cluster_of_its_name(tmp_path):
    make(tmp_path / "prod", "b1/server.log", "b1/old/server.log.1", "b2/server.log", "clients/orders/app.log")
    assert found(tmp_path / "prod") == [
        ("prod", "b1", "b1/old/server.log.1"),
        ("prod", "b1", "b1/server.log"),
        ("prod", "b2", "b2/server.log"),
        ("prod", "clients", "clients/orders/app.log"),
    ]


def test_defaults_for_a_folder_of_logs_and_for_a_file(tmp_path):
    make(tmp_path, "server.log", "anything.txt")
    assert found(tmp_path) == [("default", "broker-0", "server.log")]
    assert found(tmp_path / "anything.txt") == [("default", "broker-0", "anything.txt")]


def test_nothing_there(tmp_path):
    assert found(tmp_path) == []
    with pytest.raises(FileNotFoundError, match="no such file"):
        discover(tmp_path / "none")


def test_links_are_followed_once(tmp_path):
    make(tmp_path / "real", "server.log")
    (tmp_path / "in" / "c").mkdir(parents=True)
    (tmp_path / "in" / "c" / "b1").symlink_to(tmp_path / "real")
    (tmp_path / "real" / "loop").symlink_to(tmp_path / "in")
    assert found(tmp_path / "in") == [("c", "b1", "c/b1/server.log")]


@pytest.mark.parametrize(
    "name", ["server.log", "server.log.gz", "server.log.1", "kafka-request.log.2026-11-21-06.gz", "server.log-20261121", "x.log.1.gz"]
)
def test_names_of_logs(name):
    assert is_log_name(name)


@pytest.mark.parametrize(
    "name",
    ["README.md", "truth.jsonl", "00000000000000000000.log", "tools.logging.xml", "a.log.tmp", ".server.log", "a.logic", "x.log.crc"],
)
def test_names_of_others(name):
    assert not is_log_name(name)


def test_many_logs_are_looked_at_a_few_times_each(tmp_path, monkeypatch):
    """However many there are. Each has one line, before whose time the others have none."""
    looks = []
    monkeypatch.setattr(Stream, "has_more", property(lambda self, told=Stream.has_more.fget: looks.append(self) or told(self)))
    for count in (100, 400):
        looks.clear()
        for number in range(count):
            write(tmp_path / str(count) / f"f{number}.log", [other(number)])
        inspector = Inspector(tmp_path / str(count), SlicerSettings())
        assert list(inspector.work(1_000_000)) == [count]
        assert len(looks) < 60 * count
