"""What all tests share: how hard Hypothesis tries, one SparkSession and one Kafka broker in each test process."""

from __future__ import annotations

import gc
import os
import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from jobs.common.stores import StorePath
    from jobs.demo.local_broker import LocalBroker
    from tests.lab.local_store import LocalStore
    from tests.lab.store_proxy import StoreProxy

# dev: other cases each time. ci: the same ones every time, so that a failure can be repeated. long: to search for new failures.
# No deadline in any: the first call of anything is slow, and these machines are shared.
_PATIENT = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("dev", max_examples=50, **_PATIENT)
settings.register_profile("ci", max_examples=50, derandomize=True, **_PATIENT)
settings.register_profile("long", max_examples=2_000, **_PATIENT)
# For the JVMs of commands that tests start: they run for a minute, and compiling their code well would take longer than it saves.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leaves out files that `make test-fast` has no use for: they mark all of their tests, and importing them takes a while."""
    if not collection_path.match("test_*.py") or not config.getoption("markexpr").startswith("not spark and not slow"):
        return None
    return bool(re.search(r"^pytestmark = .*mark\.(spark|slow)", collection_path.read_text(encoding="utf-8"), re.MULTILINE)) or None


@cache
def process_group(file: Path) -> str:
    """A name of the files that stay with this one in one process of `make test`.

    A file stays together, since its tests share what they start. So do the files that share what is told of the traces of consumer groups,
    those that share a broker without Spark, which costs as much to start as most of their tests, and those that share Spark, which takes a
    minute to get fast. There are two sessions of Spark, each for half of the work: one for the parsers, the pipeline and the tests with a
    broker, which wait most of the time, and one for all others.
    """
    text = file.read_text(encoding="utf-8")
    if "tests.tracker.consumer.traced import" in text:
        return "traces"
    if not re.search(r"def \w+\([^)]*\bspark\b", text):
        return "broker" if file.parent.name in {"live", "demo"} and "broker.bootstrap" in text else str(file)
    return "spark, live" if file.parent.name in {"live", "parsing", "pipeline"} else "spark"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that share something come first, then slow ones, those that wait for brokers before others, then those that end at once.

    So what computes runs beside what waits, and no process of `make test` works alone at the end.
    """
    slow = {item.path for item in items if item.get_closest_marker("spark") or item.get_closest_marker("slow")}

    def order(item: pytest.Item) -> tuple[bool, bool, bool]:
        alone = process_group(item.path) == str(item.path)
        return alone, item.path not in slow, item.path.parent.name != "live"

    items.sort(key=order)


def pytest_collection_finish() -> None:
    """Spares the garbage collector what is there for the whole run: a tenth of the time of tests without Spark went into looking at it."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(100_000, 50, 100)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    """Hands tests to processes by `process_group`."""
    return _SharingScheduling(config, log)


class _SharingScheduling(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return process_group(self.config.rootpath / nodeid.partition("::")[0])


@pytest.fixture(scope="session")
def spark(s3_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:  # noqa: ARG001 - it needs them
    """One session for the whole run: starting one takes 4 s. Tests get their own folders, not their own session.

    Its settings are those of conf/spark-defaults.conf, so tests see what users run, except for what is here.
    """
    from jobs.pipeline.session import local_defaults, spark_session  # a run of the fast tests alone never loads Spark

    folder = tmp_path_factory.mktemp("spark")
    session = spark_session(
        "tests",
        conf={
            # Two: the smallest number at which something can be in the wrong partition, or in two at once.
            "spark.master": "local[2]",
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            # Frames of tests are tiny: replanning them at run time costs more than it saves, and varies the plans.
            "spark.sql.adaptive.enabled": "false",
            # Tables and shuffle files go where pytest tidies up, not into the checkout.
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.local.dir": str(folder / "local"),
            # A function that fails in a test fails the same way the second time.
            "spark.task.maxFailures": "1",
            # For those that work in a store: `checkpoints_in_store`.
            "spark.jars": local_defaults(s3=True)["spark.jars"],
        },
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def recorded_lakehouse(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Gives the lakehouse of a folder of tests/data by its name, such as recordings/kafka-4.2.0. Nobody writes to it."""
    from tests.made_once import lakehouse_of

    return lambda name: lakehouse_of(name, tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def packages(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What `make package` builds: the wheel, its sources as a zip, and the archive for executors."""
    from tests.made_once import packages_in

    return packages_in(tmp_path_factory.getbasetemp())


@pytest.fixture(scope="session")
def kafka_jars() -> None:
    """The JARs of a broker. The first run that needs them resolves them."""
    from jobs.common import jars

    assert jars.main(["kafka"]) == 0


@pytest.fixture(scope="session")
def s3_jars() -> None:
    """What Spark needs for S3. The first run that needs it resolves it."""
    from jobs.common import jars

    assert jars.main(["s3"]) == 0


@pytest.fixture(scope="session")
def broker(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalBroker]:  # noqa: ARG001 - it needs them
    """One broker for the tests of this process. Its groups do not wait 3 s for their first members. Started again it has the same port."""
    from jobs.demo.local_broker import LocalBroker, free_port

    settings = {"group.initial.rebalance.delay.ms": "500", "group.min.session.timeout.ms": "1000"}
    with LocalBroker(tmp_path_factory.mktemp("broker"), settings=settings, port=free_port()) as running:
        yield running


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalStore]:
    """One object store for the tests of this process. A test writes below its own `store_prefix`."""
    from tests.lab.local_store import LocalStore

    with LocalStore(tmp_path_factory.mktemp("store")) as running:
        yield running


@pytest.fixture
def store_prefix(request: pytest.FixtureRequest) -> str:
    """A folder of the store that no other test has."""
    return f"tests/{uuid.uuid4().hex}/{re.sub(r'[^a-z0-9]+', '-', request.node.name.lower())[:40]}"


@pytest.fixture
def on_store(store: LocalStore, store_prefix: str) -> Iterator[StorePath]:
    """A place in the store."""
    from jobs.common import stores
    from tests.lab.local_store import BUCKET
    from tests.reaching import reached

    with reached(store):
        yield stores.StorePath(BUCKET, store_prefix)


@pytest.fixture(scope="session")
def store_proxy(store: LocalStore) -> Iterator[StoreProxy]:
    """The way of Spark's JVM to the store: it keeps the address that it had first."""
    from tests.lab.store_proxy import StoreProxy

    with StoreProxy(store.endpoint) as running:
        yield running


@pytest.fixture
def checkpoints_in_store(
    spark: SparkSession, store: LocalStore, store_proxy: StoreProxy, tmp_path: Path
) -> Callable[..., AbstractContextManager[None]]:
    """A context in which Spark, this process and its workers work in the store, through the proxy, which counts requests from then on."""
    from tests.reaching import checkpoints_in

    @contextmanager
    def in_store(*, fail_every: int = 0) -> Iterator[None]:
        store_proxy.clear()
        store_proxy.fail_every = fail_every
        try:
            with checkpoints_in(store, store_proxy.endpoint, spark, tmp_path):
                yield
        finally:
            store_proxy.fail_every = 0

    return in_store
