"""The jobs by spark-submit on a real Spark standalone cluster, whose workers and drivers are killed in the middle.

What counts is the tables: those of a run in one process. Executors have nothing but Python, Spark and what is shipped to them.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from msgspec.structs import replace

from jobs.cli.entry import main
from jobs.common import jars
from jobs.common.settings import Settings, load
from jobs.common.stores import StorePath
from jobs.demo.local_broker import LocalBroker
from jobs.lakehouse.folder import Lakehouse
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import at_once
from jobs.pipeline.ingest_topic import start_ingest_topic
from jobs.pipeline.topic_input import TopicInput
from schemas.tables import INGEST_TABLES, TRACK_TABLES
from scripts.build import package
from tests.cluster.standalone import PROJECT, Cluster, kill, plain_logs, wait_until
from tests.lab.local_store import BUCKET, SECRET_KEY
from tests.laws.kept import assert_laws_are_kept
from tests.unpacking import unpack

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TRACKED = (*TRACK_TABLES, "quarantine")
RECORDING = PROJECT / "tests" / "data" / "recordings" / "kafka-3.9.1"
# So small that a query is still in its middle when something is killed: 16 slices.
SETTINGS = '[pipeline]\ntimezone = "America/New_York"\nslice_lines = 2_000\nshards = 10\ntrack_files = 2\n'


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """Package and archive, as `make package` builds them."""
    _, sources, archive = package.main(tmp_path_factory.mktemp("dist"))
    return sources, archive


@pytest.fixture(scope="module")
def unpacked(shipped, tmp_path_factory):
    """How to ship what is in the archive, unpacked once in a folder that all nodes see: each executor and driver takes 5 s less."""
    folder = tmp_path_factory.mktemp("packages")
    unpack(shipped[1], folder)
    return "--conf", f"spark.executorEnv.PYTHONPATH={folder}"


@pytest.fixture(scope="module")
def cluster(shipped, store, s3_jars, tmp_path_factory):  # noqa: ARG001 - it needs them
    environment = store.environment()
    with Cluster(tmp_path_factory.mktemp("cluster"), shipped[1], environment) as running, pytest.MonkeyPatch.context() as here:
        for name, value in environment.items():
            here.setenv(name, value)
        running.start_worker("worker-1")
        yield running


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    path = tmp_path_factory.mktemp("settings") / "pipeline.toml"
    path.write_text(SETTINGS)
    return path


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return plain_logs(RECORDING, tmp_path_factory.mktemp("logs"))


@pytest.fixture(scope="module")
def reference(logs, settings, tmp_path_factory):
    """The lakehouse that one process writes without Spark, in as few batches as it takes."""
    lakehouse = tmp_path_factory.mktemp("reference") / "lake"
    at_once.process(logs, lakehouse, settings=replace(load(settings), slice_lines=Settings().slice_lines), most_lines=1 << 30)
    return lakehouse


def account(lakehouse):
    """Lines of each log, by what became of them. Not by batch: after a restart, slices are cut at other lines."""
    totals = Counter()
    for row in table_rows(lakehouse / "input_lines"):
        totals.update({(row["origin"], name): row[name] for name in ("lines_read", "skipped", "events", "quarantined")})
    return totals


def rows(lakehouse, tables):
    """The rows of tables as a multiset, without the batch: track may have got them in others."""
    found = Counter()
    for table in tables:
        for row in table_rows(lakehouse / table):
            del row["batch_id"]
            found[json.dumps([table, row], sort_keys=True, default=str)] += 1
    return found


def committed(checkpoint):
    """How many batches a query has committed."""
    return sum(1 for path in (checkpoint / "commits").glob("*") if path.name.isdigit())


def in_the_middle(query, checkpoint, least):
    """Waits until the query has committed so many batches, and is still running; returns how many."""
    wait_until(lambda: committed(checkpoint) >= least or query.poll() is not None, f"commits in {checkpoint}")
    assert query.poll() is None
    return committed(checkpoint)


def ingest(lakehouse, logs, settings):
    return "jobs/ingest.py", "--input", logs, "--lakehouse", lakehouse, "--config", settings, "--once"


def track(lakehouse, settings):
    return "jobs/track.py", "--lakehouse", lakehouse, "--config", settings, "--once"


def command_line(process):
    try:
        return (process / "cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def lost_executors(cluster, name):
    """The ids of the executors that an application lost."""
    return [event["Executor ID"] for event in cluster.events(name) if event["Event"] == "SparkListenerExecutorRemoved"]


def state_partitions(cluster, name):
    """The executors that worked with each partition of the state, in order."""
    stateful, ran = set(), defaultdict(list)
    for event in cluster.events(name):
        if event["Event"] == "SparkListenerStageSubmitted":
            info = event["Stage Info"]
            if any("StateStore" in rdd["Name"] for rdd in info["RDD Info"]):
                stateful.add(info["Stage ID"])
        elif event["Event"] == "SparkListenerTaskEnd" and event["Stage ID"] in stateful and event["Task End Reason"]["Reason"] == "Success":
            ran[event["Task Info"]["Index"]].append(event["Task Info"]["Executor ID"])
    return ran


def test_the_executors_python_has_neither_the_project_nor_its_packages(cluster):
    """Or the other tests would prove nothing."""
    for name in ("jobs", "coordinator_model", "schemas", "msgspec", "pandas", "pyarrow"):
        tried = subprocess.run(
            [cluster.bare_python, "-c", f"import {name}"],
            check=False,
            capture_output=True,
            text=True,
            cwd=cluster.folder,
            env=cluster.environment,
        )
        assert f"No module named '{name}'" in tried.stderr


def test_a_killed_driver_and_a_killed_worker_change_no_table(cluster, logs, settings, reference, store_prefix):
    """The nodes share nothing but an object store, and get packages from Spark."""
    house = Lakehouse(StorePath(BUCKET, store_prefix))
    driver = cluster.submit("ingest", *ingest(house.folder, logs, settings))
    before = in_the_middle(driver, house.ingest_checkpoint, 1)
    assert not any(SECRET_KEY.encode() in command_line(process) for process in Path("/proc").glob("[0-9]*"))
    kill(driver)
    again = cluster.submit("ingest-again", *ingest(house.folder, logs, settings))
    assert again.wait(timeout=600) == 0, cluster.output("ingest-again")
    assert committed(house.ingest_checkpoint) > before

    worker = cluster.start_worker("worker-of-track")
    query = cluster.submit("track", *track(house.folder, settings))
    before = in_the_middle(query, house.track_checkpoint, 1)
    kill(worker)
    assert query.wait(timeout=600) == 0, cluster.output("track")
    assert committed(house.track_checkpoint) > before
    (lost,) = lost_executors(cluster, "track")
    # State that the lost executor had was read from the checkpoint by another one.
    assert [ids for ids in state_partitions(cluster, "track").values() if lost in ids and ids[-1] != lost]
    assert rows(house.folder, TRACKED) == rows(reference, TRACKED)
    assert account(house.folder) == account(reference)
    assert_laws_are_kept(house.folder)
    written = [path for path in cluster.folder.glob("**/*") if path.is_file() and "packages" not in path.parts]
    assert not [path for path in written if SECRET_KEY.encode() in path.read_bytes()]


@pytest.fixture(scope="module")
def topic(logs, tmp_path_factory):
    """A broker with the same logs in a topic."""
    assert jars.main(["kafka"]) == 0
    folder = tmp_path_factory.mktemp("broker")
    with LocalBroker(folder) as broker:
        broker.create_topic("lines", 3)
        place = ["--input", str(logs / "c" / "broker-2"), "--cluster", "c", "--broker", "broker-2", "--state", str(folder / "state.json")]
        assert (
            main(["ship", *place, "--topic", "lines", "--bootstrap", broker.bootstrap, "--timezone", "America/New_York", "--raw", "--once"])
            == 0
        )
        yield TopicInput(broker.bootstrap, "lines", max_offsets=600)


def test_a_topic_is_read_by_executors_one_of_which_is_killed(spark, cluster, topic, settings, tmp_path):
    alone, house = Lakehouse(tmp_path / "alone"), Lakehouse(tmp_path / "lake")
    places = {"lakehouse": alone.folder, "checkpoint": alone.topic_checkpoint}
    start_ingest_topic(spark, topic, most_lines=load(settings).slice_lines, **places, once=True).awaitTermination()

    worker = cluster.start_worker("worker-of-topic")
    arguments = ("--kafka", topic.bootstrap, "--topic", topic.topic, "--max-offsets", topic.max_offsets, "--config", settings, "--once")
    query = cluster.submit("topic", "jobs/ingest_topic.py", *arguments, "--lakehouse", house.folder)
    before = in_the_middle(query, house.topic_checkpoint, 1)
    kill(worker)
    assert query.wait(timeout=600) == 0, cluster.output("topic")
    assert committed(house.topic_checkpoint) > before
    assert lost_executors(cluster, "topic")
    assert rows(house.folder, INGEST_TABLES) == rows(alone.folder, INGEST_TABLES)


def test_executors_that_do_not_share_the_lakehouse_are_found_before_the_first_batch(cluster, unpacked, settings):
    """The path is that of the driver's own working directory, which is another one in each process."""
    here = Path("dist", "unshared-lakehouse")
    query = cluster.submit("unshared", *track(Path("/proc/self/cwd") / here, settings), ship=unpacked)
    assert query.wait(timeout=600) == 2
    shutil.rmtree(PROJECT / here)  # where the driver made it
    assert f"does not see /proc/self/cwd/{here}: the lakehouse must lie in a folder" in cluster.output("unshared")


def test_a_package_that_was_not_shipped_is_named(cluster, shipped, settings, tmp_path):
    query = cluster.submit("not-shipped", *track(tmp_path, settings), ship=("--py-files", str(shipped[0])))
    assert query.wait(timeout=600) == 2
    assert "the executors cannot run this project: ModuleNotFoundError: No module named 'msgspec'" in cluster.output("not-shipped")
