"""jobs/common/places.py and scripts/build/resolve_jars.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.common import places
from scripts.build import resolve_jars


def test_jar_paths_are_those_of_the_folder_sorted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b-1.jar", "a-1.jar", "resolved.txt"):
        (tmp_path / name).touch()
    monkeypatch.setenv("REBALANCE_JARS", str(tmp_path))
    assert places.jar_paths() == [str(tmp_path / "a-1.jar"), str(tmp_path / "b-1.jar")]


def test_no_folder_no_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REBALANCE_JARS", str(tmp_path / "none"))
    assert places.jar_paths() == []


def test_without_the_setting_it_is_the_projects_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REBALANCE_JARS", raising=False)
    assert places.jar_dir() == places.PROJECT / ".jars"


def test_what_spark_brings_itself_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    retrieved, spark_home, target = tmp_path / "ivy", tmp_path / "spark", tmp_path / "jars"
    (spark_home / "jars").mkdir(parents=True)
    (spark_home / "jars" / "hadoop-client-api-3.4.1.jar").touch()
    retrieved.mkdir()
    names = ("org.apache.hadoop_hadoop-client-api-3.4.2.jar", "io.delta_delta-spark_4.0_2.13-4.4.0.jar")
    for name in names:
        (retrieved / name).touch()
    target.mkdir()
    (target / "old-1.0.jar").touch()
    monkeypatch.setattr(resolve_jars, "SPARK_HOME", spark_home)
    copied = resolve_jars.copy_needed(sorted(retrieved.iterdir()), target)
    assert [path.name for path in copied] == ["delta-spark_4.0_2.13-4.4.0.jar"]
    assert [path.name for path in target.iterdir()] == ["delta-spark_4.0_2.13-4.4.0.jar"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("delta-storage-4.4.0.jar", "delta-storage"),
        ("delta-spark_4.0_2.13-4.4.0.jar", "delta-spark_4.0_2.13"),
        ("spark-sql-kafka-0-10_2.13-4.0.0.jar", "spark-sql-kafka"),
    ],
)
def test_artifact(name: str, expected: str) -> None:
    assert resolve_jars.artifact(name) == expected


def test_a_brokers_jars_get_scalas_library_from_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    retrieved, spark_home, target = tmp_path / "ivy", tmp_path / "spark", tmp_path / "jars"
    (spark_home / "jars").mkdir(parents=True)
    (spark_home / "jars" / "scala-library-2.13.16.jar").touch()
    retrieved.mkdir()
    (retrieved / "org.apache.kafka_kafka_2.13-4.2.0.jar").touch()
    monkeypatch.setattr(resolve_jars, "SPARK_HOME", spark_home)
    copied = resolve_jars.copy_kafka(sorted(retrieved.iterdir()), target)
    assert [path.name for path in copied] == ["org.apache.kafka_kafka_2.13-4.2.0.jar", "scala-library-2.13.16.jar"]


def test_jars_without_kafka_are_no_broker(tmp_path: Path) -> None:
    with pytest.raises(resolve_jars.ResolveError, match="not Kafka"):
        resolve_jars.copy_kafka([], tmp_path / "jars")
