"""jobs/pipeline/session.py: the defaults, what they are completed with, and who goes before whom."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from chispa import assert_df_equality

from jobs.common.java import java_program
from jobs.common.places import PROJECT
from jobs.pipeline import session
from tests.frames import expected

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_file_is_read_as_spark_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "spark.conf"
    file.write_text("# a comment\n\nspark.a   1\n  spark.b -Dx=y -Dz \nspark.c\ttrue\n")
    assert session.read_defaults(file) == {"spark.a": "1", "spark.b": "-Dx=y -Dz", "spark.c": "true"}


def test_without_jars_spark_resolves_them_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REBALANCE_JARS", str(tmp_path))
    settings = session.local_defaults()
    assert "io.delta:delta-spark_4.0_2.13:4.4.0" in settings["spark.jars.packages"]
    assert settings["spark.jars.ivySettings"] == (PROJECT / "conf" / "ivysettings.xml").as_uri()
    assert "spark.jars" not in settings


def test_with_jars_nothing_is_resolved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "delta-spark.jar").touch()
    monkeypatch.setenv("REBALANCE_JARS", str(tmp_path))
    settings = session.local_defaults()
    assert settings["spark.jars"] == (tmp_path / "delta-spark.jar").as_uri()
    assert "spark.jars.packages" not in settings


def test_the_jars_for_s3_are_added_only_for_s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = {"REBALANCE_JARS": tmp_path / "jars", "REBALANCE_S3_JARS": tmp_path / "jars-s3"}
    for name, folder in folders.items():
        folder.mkdir()
        monkeypatch.setenv(name, str(folder))
    (tmp_path / "jars" / "delta-spark.jar").touch()
    settings = session.local_defaults(s3=True)
    assert settings["spark.jars.packages"].startswith("org.apache.hadoop:hadoop-aws:")
    assert "software.amazon.awssdk:bundle" in settings["spark.jars.excludes"].split(",")
    (tmp_path / "jars-s3" / "hadoop-aws.jar").touch()
    assert "spark.jars.packages" not in session.local_defaults(s3=True)
    assert [Path(jar).name for jar in session.local_defaults(s3=True)["spark.jars"].split(",")] == ["delta-spark.jar", "hadoop-aws.jar"]
    assert [Path(jar).name for jar in session.local_defaults()["spark.jars"].split(",")] == ["delta-spark.jar"]


def test_log_settings_are_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REBALANCE_JARS", str(tmp_path))
    options = session.local_defaults()["spark.driver.extraJavaOptions"]
    assert options.split()[0] == f"-Dlog4j2.configurationFile={(PROJECT / 'conf' / 'log4j2.properties').as_uri()}"


def test_an_archive_of_classes_is_used_if_there_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REBALANCE_JARS", str(tmp_path / "my jars"))
    assert "SharedArchiveFile" not in session.local_defaults()["spark.driver.extraJavaOptions"]
    archive = tmp_path / "my jars" / "classes.jsa"
    archive.parent.mkdir()
    archive.write_bytes(b"of another Java")
    options = session.local_defaults()["spark.driver.extraJavaOptions"]
    assert options.endswith(f' "-XX:SharedArchiveFile={archive}" "-Xlog:cds*=off"')
    # A JVM that cannot use the archive starts as if there were none, and says nothing.
    command = [java_program(), *shlex.split(" ".join(session.archived_classes())), "-version"]
    started = subprocess.run(command, check=True, capture_output=True, text=True)
    assert started.stdout == ""
    assert "archive" not in started.stderr


@pytest.mark.spark
def test_workers_of_a_local_spark_look_into_no_archive(spark):
    paths = spark.sparkContext.parallelize([0], 1).map(lambda _: [*sys.path, *sys.path_importer_cache]).first()
    archives = {Path(path).name for path in paths if ".zip" in path or ".jar" in path}
    assert archives <= {f"python{sys.version_info.major}{sys.version_info.minor}.zip"}  # Python's own, which is not there


@pytest.mark.spark
def test_delta_round_trip_in_utc(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "table")
    spark.sql("SELECT timestamp'2026-03-01 12:00:00' AS at").write.format("delta").save(table)
    rows = spark.read.format("delta").load(table).selectExpr("unix_seconds(at) AS s", "current_timezone() AS zone")
    assert_df_equality(rows, expected(rows, [(1772366400, "UTC")]))


@pytest.mark.spark
def test_the_kafka_connector_is_there(spark: SparkSession) -> None:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", "127.0.0.1:1").option("subscribe", "t")
    assert "headers" not in reader.load().columns


def test_a_run_that_follows_its_input_leaves_slots_to_track():
    """Or each of its short jobs waits until ingest's tasks have ended: 1.5 s of a micro-batch went there."""
    following = session.local_defaults()
    slots = int(re.fullmatch(r"local\[(\d+), 3\]", following["spark.master"])[1])
    assert slots > int(following["spark.default.parallelism"])
