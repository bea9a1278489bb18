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


def jars(folder: Path, *names: str) -> list[Path]:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).touch()
    return sorted(folder.iterdir())


def test_what_spark_brings_itself_is_left_out(tmp_path: Path) -> None:
    jars(tmp_path / "spark", "hadoop-client-api-3.4.1.jar")
    resolved = jars(tmp_path / "ivy", "org.apache.hadoop_hadoop-client-api-3.4.2.jar", "io.delta_delta-spark_4.0_2.13-4.4.0.jar")
    chosen = resolve_jars.delta_jars(resolved, tmp_path / "spark")
    assert chosen == {"delta-spark_4.0_2.13-4.4.0.jar": tmp_path / "ivy" / "io.delta_delta-spark_4.0_2.13-4.4.0.jar"}


@pytest.mark.parametrize("arguments", [[], ["kafka"]])
def test_a_folder_holds_the_resolved_jars_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    resolved = jars(tmp_path / "ivy", "io.delta_delta-spark_4.0_2.13-4.4.0.jar", "org.apache.kafka_kafka_2.13-4.2.0.jar")
    target = tmp_path / "jars"
    jars(target, "old-1.0.jar")
    monkeypatch.setenv("REBALANCE_KAFKA_JARS" if arguments else "REBALANCE_JARS", str(target))
    monkeypatch.setattr(resolve_jars, "resolve", lambda _: resolved)
    assert resolve_jars.main(arguments) == 0
    left = {path.name for path in target.iterdir()}
    assert left > {"resolved.txt"}
    assert "old-1.0.jar" not in left
    monkeypatch.delattr(resolve_jars, "resolve")  # the stamp says that it was done
    assert resolve_jars.main(arguments) == 0
    assert {path.name for path in target.iterdir()} == left
    assert f"{len(left) - 1} JARs in jars/" in capsys.readouterr().out


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


def test_a_brokers_jars_get_scalas_library_from_spark(tmp_path: Path) -> None:
    jars(tmp_path / "spark", "scala-library-2.13.16.jar")
    resolved = jars(tmp_path / "ivy", "org.apache.kafka_kafka_2.13-4.2.0.jar")
    chosen = resolve_jars.broker_jars(resolved, tmp_path / "spark")
    assert list(chosen) == ["org.apache.kafka_kafka_2.13-4.2.0.jar", "scala-library-2.13.16.jar"]


def test_jars_without_kafka_are_no_broker(tmp_path: Path) -> None:
    with pytest.raises(resolve_jars.ResolveError, match="not Kafka"):
        resolve_jars.broker_jars([], tmp_path)
