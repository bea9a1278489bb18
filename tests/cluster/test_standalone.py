"""The jobs by spark-submit on a real Spark standalone cluster, whose workers and drivers are killed in the middle.

What counts is the tables: those of a run in one process. Executors have nothing but Python, Spark and what is shipped to them.
"""

import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from chispa.rows_comparer import assert_basic_rows_equality

from jobs.cli.entry import main
from jobs.common.settings import load
from jobs.common.stores import StorePath
from jobs.lakehouse.folder import Lakehouse
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import at_once
from schemas.tables import TRACK_TABLES
from tests.cluster.standalone import PROJECT, Cluster, kill, plain_logs
from tests.frames import rows_of
from tests.lab.local_store import BUCKET, SECRET_KEY
from tests.laws.kept import assert_laws_are_kept
from tests.pipeline.test_run import unfolded
from tests.reaching import reached
from tests.unpacking import unpack
from tests.waiting import PATIENCE_SECONDS, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TRACKED = (*TRACK_TABLES, "quarantine")
RECORDING = PROJECT / "tests" / "data" / "recordings" / "kafka-3.9.1"
# So small that a query is still in its middle when something is killed: 8 slices.
SETTINGS = '[pipeline]\ntimezone = "America/New_York"\nslice_lines = 4_000\nshards = 10\ntrack_files = 1\n'


@pytest.fixture(scope="module")
def unpacked(packages, tmp_path_factory):
    """How to ship what is in the archive, unpacked once in a folder that all nodes see: each executor and driver takes 5 s less."""
    folder = tmp_path_factory.mktemp("packages")
    unpack(packages[2], folder)
    return "--conf", f"spark.executorEnv.PYTHONPATH={folder}"


@pytest.fixture(scope="module")
def cluster(packages, store, s3_jars, tmp_path_factory):  # noqa: ARG001 - it needs them
    """Credentials are in a profile, as on a machine where a person works, and in the environment of the workers."""
    known = store.environment()
    credentials = {name: known.pop(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")}
    profiles = tmp_path_factory.mktemp("aws") / "credentials"
    profiles.write_text("[default]\n" + "".join(f"{name.lower()} = {value}\n" for name, value in credentials.items()))
    known["AWS_SHARED_CREDENTIALS_FILE"] = str(profiles)
    folder = tmp_path_factory.mktemp("cluster")
    with Cluster(folder, packages[2], known, credentials) as running, reached(store):
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
    """The lakehouse that one process writes without Spark. Its events are in as many files as there are slices."""
    lakehouse = tmp_path_factory.mktemp("reference") / "lake"
    at_once.process(logs, lakehouse, settings=load(settings), most_lines=1 << 30)
    return lakehouse


def account(lakehouse):
    """Lines of each log, by what became of them. Not by batch: after a restart, slices are cut at other lines."""
    totals = Counter()
    for row in table_rows(lakehouse / "input_lines"):
        totals.update({(row["origin"], name): row[name] for name in ("lines_read", "skipped", "events", "quarantined")})
    return totals


def committed(checkpoint):
    """How many batches a query has committed."""
    return sum(1 for path in (checkpoint / "commits").glob("*") if path.name.isdigit())


def in_the_middle(query, checkpoint, least):
    """Waits until the query has committed so many batches, and is still running; returns how many."""
    wait_until(lambda: committed(checkpoint) >= least or query.poll() is not None)
    assert query.poll() is None
    return committed(checkpoint)


def ingest(lakehouse, logs, settings):
    return "jobs/ingest.py", "--input", logs, "--lakehouse", lakehouse, "--config", settings, "--once"


def track(lakehouse, settings, *more):
    return "jobs/track.py", "--lakehouse", lakehouse, "--config", settings, "--once", *more


def command_line(process):
    try:
        return (process / "cmdline").read_bytes()
    except OSError:  # it has ended
        return b""


def lost_executors(cluster, name):
    """The ids of the executors that an application lost."""
    return [event["Executor ID"] for event in cluster.events(name) if event["Event"] == "SparkListenerExecutorRemoved"]


def settings_of(cluster, name):
    """Spark's own account of the settings of an application."""
    return next(event["Spark Properties"] for event in cluster.events(name) if event["Event"] == "SparkListenerEnvironmentUpdate")


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


@pytest.mark.long
def test_a_driver_that_is_killed_while_it_ingests_changes_no_table(cluster, unpacked, logs, settings, reference, store_prefix):
    """The second driver gets its packages from Spark."""
    house = Lakehouse(StorePath(BUCKET, store_prefix))
    driver = cluster.submit("ingest-killed", *ingest(house.folder, logs, settings), ship=unpacked)
    before = in_the_middle(driver, house.ingest_checkpoint, 1)
    kill(driver)
    driver = cluster.submit("ingest", *ingest(house.folder, logs, settings))
    assert driver.wait(timeout=PATIENCE_SECONDS) == 0, cluster.output("ingest")
    assert committed(house.ingest_checkpoint) > before
    query = cluster.submit("track", *track(house.folder, settings), ship=unpacked)
    assert query.wait(timeout=PATIENCE_SECONDS) == 0, cluster.output("track")
    assert_basic_rows_equality(rows_of(house.folder, TRACKED), rows_of(reference, TRACKED))
    assert account(house.folder) == account(reference)
    assert_laws_are_kept(house.folder)


def test_a_worker_that_is_killed_changes_no_table(cluster, settings, reference, store_prefix):
    """The nodes share nothing but an object store and the events; the executors get their packages from Spark."""
    house = Lakehouse(StorePath(BUCKET, store_prefix))
    worker = cluster.start_worker("worker-2")
    query = cluster.submit("track-beside", *track(house.folder, settings, "--events-from", reference))
    before = in_the_middle(query, house.track_checkpoint, 1)
    assert not any(SECRET_KEY.encode() in command_line(process) for process in Path("/proc").glob("[0-9]*"))
    kill(worker)
    assert query.wait(timeout=PATIENCE_SECONDS) == 0, cluster.output("track-beside")
    assert committed(house.track_checkpoint) > before
    used = settings_of(cluster, "track-beside")
    assert used["spark.sql.shuffle.partitions"] == "4", "the command line goes before the file"
    assert used["spark.sql.session.timeZone"] == "UTC", "the file goes before Spark's own"
    (lost,) = lost_executors(cluster, "track-beside")
    # State that the lost executor had was read from the checkpoint by another one.
    assert [ids for ids in state_partitions(cluster, "track-beside").values() if lost in ids and ids[-1] != lost]
    assert_basic_rows_equality(rows_of(house.folder, TRACK_TABLES), rows_of(reference, TRACK_TABLES))
    written = [path for path in cluster.folder.glob("**/*") if path.is_file() and "packages" not in path.parts]
    assert not [path for path in written if SECRET_KEY.encode() in path.read_bytes()]


@pytest.mark.long
def test_a_topic_is_read_by_executors_one_of_which_is_killed(cluster, unpacked, broker, logs, settings, reference, tmp_path):
    house, place = Lakehouse(tmp_path / "lake"), ("--input", str(logs / "c" / "broker-2"), "--cluster", "c", "--broker", "broker-2")
    broker.create_topic("of-a-cluster", 3)
    topic = ("--topic", "of-a-cluster", "--bootstrap", broker.bootstrap, "--state", str(tmp_path / "state.json"))
    assert main(["ship", *place, *topic, "--timezone", "America/New_York", "--raw", "--once"]) == 0
    arguments = ("--kafka", broker.bootstrap, "--topic", "of-a-cluster", "--max-offsets", 600, "--config", settings, "--once")
    query = cluster.submit("topic", "jobs/ingest_topic.py", *arguments, "--lakehouse", house.folder, ship=unpacked)
    before = in_the_middle(query, house.topic_checkpoint, 1)
    cluster.kill_executors()
    assert query.wait(timeout=PATIENCE_SECONDS) == 0, cluster.output("topic")
    assert committed(house.topic_checkpoint) > before
    assert lost_executors(cluster, "topic")
    assert unfolded(house.folder, by_log=False) == unfolded(reference, by_log=False)  # the same logs have other names in a topic
