"""jobs/pipeline/executors.py without a cluster, and what else a cluster needs of the jobs. On one: tests/cluster.

The workers of a local Spark play executors: they are other processes than the driver, and may have another working directory and Python.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from jobs import ingest, ingest_topic, track
from jobs.common.errors import UserError
from jobs.common.settings import Settings
from jobs.common.stores import StorePath, place_of
from jobs.pipeline import alone, executors
from jobs.pipeline.session import is_local
from jobs.pipeline.topic_input import TopicInput


def problems(folder, expected=None):
    look = executors.look_around([0, 1], markers=[str(folder / "marker")], expected=expected or executors.fingerprint())
    return {problem for _, problem in look}


def test_a_folder_with_the_marker_is_the_drivers(tmp_path):
    (tmp_path / "marker").touch()
    assert problems(tmp_path) == {""}
    assert [path.name for path in tmp_path.iterdir()] == ["marker"]


def test_a_folder_of_the_same_name_is_not(tmp_path):
    (found,) = problems(tmp_path)
    assert f"does not see {tmp_path}" in found


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    """To write a file whose name is too long is refused to everybody, root included."""
    marker = tmp_path / ("m" * 254)
    marker.touch()
    look = executors.look_around([0], markers=[str(marker)], expected=executors.fingerprint())
    assert [problem for _, problem in look if f"cannot write to {tmp_path}: File name too long" in problem]


@pytest.mark.slow
def test_a_store_that_refuses_the_executor_is_named(store, monkeypatch):
    """The driver tells tasks where the store is. Credentials are the machine's."""
    for name, value in store.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "of another store")
    for found in problems(StorePath("of-another-store", "lake")):
        assert "cannot use s3://of-another-store/lake/marker: " in found
        assert "\n" not in found


def test_another_version_of_the_project_is_refused(tmp_path):
    (tmp_path / "marker").touch()
    (found,) = problems(tmp_path, expected="of another version")
    assert "has another version of this project" in found


@pytest.mark.parametrize(
    ("master", "local"),
    [
        ("local", True),
        ("local[2]", True),
        ("local[*]", True),
        ("local[*, 3]", True),
        ("local-cluster[2,1,1024]", False),
        ("spark://h:7077", False),
        ("yarn", False),
    ],
)
def test_only_a_driver_that_is_its_own_executor_is_local(master, local):
    assert is_local(master) is local


@pytest.fixture
def cluster(spark, tmp_path, monkeypatch):
    """A Spark that is taken for a cluster, and a driver in another working directory than its workers."""
    monkeypatch.setattr(executors, "is_local", lambda _: False)
    monkeypatch.chdir(tmp_path)
    return spark


@pytest.mark.spark
def test_executors_that_share_the_lakehouse_are_found_fit(cluster, tmp_path):
    executors.check_executors(cluster, [tmp_path / "lake"])
    assert list((tmp_path / "lake").iterdir()) == []


@pytest.mark.spark
def test_executors_that_do_not_share_the_lakehouse_are_found(cluster):
    """The path is that of each process's own working directory."""
    with pytest.raises(UserError, match="does not see /proc/self/cwd/lake: the lakehouse must lie in a folder"):
        executors.check_executors(cluster, [Path("/proc/self/cwd/lake")])


@pytest.mark.spark
def test_a_package_that_was_not_shipped_is_named(cluster, tmp_path, monkeypatch):
    bare = tmp_path / "bare-python"  # its workers are those of a cluster: started by Spark's own daemon, not by ours; -S: without packages
    bare.write_text(f'#!/bin/sh\nexec "{Path(sys._base_executable).resolve()}" -S -m pyspark.daemon "$3"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(cluster.sparkContext, "pythonExec", str(bare))
    with pytest.raises(UserError, match=r"the executors cannot run this project: ModuleNotFoundError: No module named 'msgspec'"):
        executors.check_executors(cluster, [tmp_path / "lake"])


@pytest.mark.parametrize("job", [alone.ingest_files, alone.ingest_topic, alone.track])
def test_each_job_checks_them_before_its_query_starts(job, tmp_path, monkeypatch):
    def check(spark, folders):
        raise UserError(f"{spark} checked for {folders}")

    (tmp_path / "server.log").touch()
    monkeypatch.setattr(alone, "spark_session", lambda *_, **__: "Spark")
    monkeypatch.setattr(alone, "check_executors", check)
    monkeypatch.setattr(alone.topic_input, "check", lambda *_: None)
    source = {alone.ingest_files: [tmp_path / "server.log"], alone.ingest_topic: [TopicInput("127.0.0.1:1", "logs")]}.get(job, [])
    with pytest.raises(UserError, match=f"Spark checked for .*{tmp_path / 'lake'}"):
        job(*source, tmp_path / "lake", settings=Settings(), once=True)


def test_an_interpreter_that_the_drivers_machine_lacks_is_named():
    spark = SimpleNamespace(sparkContext=SimpleNamespace(master="spark://h:7077", pythonExec="python-of-executors"))
    with pytest.raises(UserError, match="the driver's machine has no python-of-executors"):
        executors.check_executors(spark, [])


@pytest.mark.parametrize("url", ["gs://bucket/lake", "hdfs:///lake", "file:/lake"])
def test_a_lakehouse_is_a_folder_or_lies_in_s3(url):
    with pytest.raises(UserError, match=rf"{url.split(':')[0]}: only s3://BUCKET/PREFIX has been tried"):
        place_of(url)


@pytest.mark.parametrize("path", ["lake", "/a/b:c/d", "c:/lake", "logs/s3a:/lake"])
def test_a_path_with_a_colon_may_be_a_folder(path):
    assert place_of(path) == Path(path)


@pytest.mark.parametrize(("job", "arguments"), [(ingest, ["--input", "."]), (ingest_topic, ["--kafka", "127.0.0.1:1"]), (track, [])])
def test_the_jobs_refuse_another_store_before_they_start_spark(job, arguments, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("server.log").touch()
    with pytest.raises(SystemExit) as ended:
        job.main([*arguments, "--lakehouse", "hdfs://host/lake", "--once"])
    assert ended.value.code == 2
    assert "hdfs: only s3://BUCKET/PREFIX has been tried" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["server.log"]
