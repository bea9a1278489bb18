"""Where this project keeps its JARs, settings files and queries, and which JARs it needs.

A checkout keeps everything in its own folder. An installed wheel finds its data where the installer put them. It keeps what it downloads,
or writes without being told where, in the user's cache, in a folder of its version.
"""

from __future__ import annotations

import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

COORDINATES: Final = (
    "io.delta:delta-spark_4.0_2.13:4.4.0",
    # Not 4.0.5 as Spark itself: spark-token-provider-kafka-0-10, which it needs, resolves up to 4.0.0 only.
    "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0",
)
"""For `spark-submit --packages`, joined with commas."""

_AWS_SDK: Final = "2.57.8"
S3_COORDINATES: Final = (
    "org.apache.hadoop:hadoop-aws:3.4.1",  # of the Hadoop that Spark brings
    "org.apache.spark:spark-hadoop-cloud_2.13:4.0.1",  # the newest that resolves; it has the checkpoint manager for object stores
    *(f"software.amazon.awssdk:{part}:{_AWS_SDK}" for part in ("s3", "s3-transfer-manager", "sts", "apache-client", "netty-nio-client")),
)
"""What Spark needs for checkpoints on S3."""
S3_WITHOUT: Final = (
    "software.amazon.awssdk:bundle",  # all services of AWS: 558 MB, of which the parts above are 10
    "software.amazon.awssdk:apache5-client",  # beside apache-client, which Hadoop names
    "org.apache.hadoop:*azure*",
    "org.apache.hadoop:hadoop-c*",  # the client, which Spark brings, and a package without content
    "org.apache.hadoop.thirdparty:*",  # Spark's Hadoop has it inside
    "com.google.cloud.bigdataoss:*",
    "com.squareup.*:*",  # of Hadoop's client of Alibaba's store
    "org.eclipse.jetty:*",
    "org.wildfly.openssl:*",
    "io.netty:*",  # these three are Spark's
    "com.fasterxml.jackson*:*",
    "joda-time:*",
)
"""What these would bring along, in vain."""

# Kafka logs through SLF4J 1; its own distribution contains these two.
_LOG4J: Final = ("org.apache.logging.log4j:log4j-slf4j-impl:2.25.3", "org.apache.logging.log4j:log4j-core:2.25.3")

KAFKA_VERSION: Final = "4.4.0"
KAFKA_COORDINATES: Final = (f"org.apache.kafka:kafka_2.13:{KAFKA_VERSION}", *_LOG4J)
"""A whole broker, for tests and demonstrations (jobs/demo/local_broker.py). The newest release whose logs are known."""
OTHER_KAFKA: Final = {other: (f"org.apache.kafka:kafka_2.13:{other}", *_LOG4J) for other in ("4.2.0", "3.9.1")}
"""The same of other releases, which are optional."""

CLIENTS_COORDINATES: Final = tuple(f"org.apache.kafka:{name}:4.2.0" for name in ("kafka-streams", "connect-runtime", "connect-file"))
"""Kafka Streams and Connect, for tests: connectors of files are published up to this release."""
CLIENTS_WITHOUT: Final = ("org.rocksdb:*",)  # 70 MB: the stores of Streams, which the tests do not use

PROJECT: Final = Path(__file__).resolve().parents[2]
"""The checkout; of an installed wheel, the folder of its packages."""

PACKAGE: Final = "kafka-rebalance"


def data_folder(name: str, holding: str) -> Path:
    """The folder `name` that holds this file: the checkout's, else where a wheel puts it."""
    return next((path for path in _places(name) if (path / holding).is_file()), PROJECT / name)


def _places(name: str) -> Iterator[Path]:
    yield PROJECT / name
    # A virtual environment; `pip install --user`; Debian's own pip; `pip install --target`.
    for base in (sys.prefix, site.getuserbase(), sysconfig.get_path("data"), PROJECT):
        yield Path(base) / "share" / PACKAGE / name


def as_typed(path: Path) -> str:
    """A path as the user would type it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


SQL: Final = data_folder("sql", "why.sql")
"""The folder of the questions, and of other queries."""


_SHORT: Final = {
    r"in_scope\((\w+)\.(\w+)\)": r"in_scope(\1)\n    AND \1.\2 >= :since\n    AND \1.\2 <= :until",
    r"in_scope\((\w+)\)": r"(:cluster IS NULL OR \1.cluster = :cluster)\n    AND (:group IS NULL OR \1.group_id = :group)",
    r"application\((\S+)\)": r"coalesce(\n      nullif(regexp_replace(regexp_replace("
    r"\1, '-[0-9a-f]{8,10}-[0-9a-z]{5}$', ''), '[-_.#]?[0-9]+$', ''), ''),\n      \1\n    )",
    r"group_protocol\((\w+)\)": r"""CASE
      WHEN max(
        CASE WHEN \1.kind = 'CONSUMER_GROUP_HEARTBEAT' AND \1.error_code = 0 OR \1.kind = 'CONSUMER_GROUP_LOG' THEN \1.occurred_at END
      ) > coalesce(
        max(CASE WHEN \1.kind IN ('STABILIZED', 'JOIN_GROUP') AND coalesce(\1.error_code, 0) = 0 THEN \1.occurred_at END),
        TIMESTAMP '1900-01-01 00:00:00'
      ) THEN coalesce(
        max_by(\1.protocol_type, \1.occurred_at)
          FILTER (WHERE \1.kind = 'CONSUMER_GROUP_LOG' AND \1.protocol_type IN ('share', 'streams')),
        'consumer'
      )
      WHEN count(*) FILTER (WHERE \1.kind LIKE 'SHARE_%') > 0 THEN 'share'
      WHEN count(*) FILTER (WHERE \1.kind = 'STREAMS_GROUP_HEARTBEAT') > 0 THEN 'streams'
      ELSE 'classic'
    END""",
    r"known_sum\((\S+?)\)": r"CAST(\n    nullif(sum(\1), CASE WHEN count(\1) < count(*) THEN 0 END) AS BIGINT\n  )",
    r"costliest\((\S+), (\S+), (\S+?)\)": r"sum(\1) DESC NULLS LAST, sum(\2) DESC NULLS LAST, count(*) DESC, \3",
}
"""What files of sql/ write, and what that is in SQL."""


def sql_text(path: Path) -> str:
    """A file of sql/ as SQL.

    `in_scope(e.occurred_at)`: rows of the cluster, the group and the time that are asked for; `in_scope(e)`: at any time. `application(x)`:
    a client.id without the number, or the hash of a Kubernetes pod, at its end. `group_protocol(e)`: which one a group follows by now.
    `known_sum(x)`: a sum of what is known; null, not 0, where nothing above 0 is known beside what is not (docs/cost.md). `at_least(x, y)`
    names those sums that are lower bounds. `costliest(unowned, total, cause)`: the order in which causes of rebalances are the main one.
    """
    text = path.read_text(encoding="utf-8")
    for short, sql in _SHORT.items():
        text = re.sub(short, sql, text)
    return re.sub(r"at_least\((.+?)\)", lambda found: _at_least(found[1].split(", ")), text)


def _at_least(columns: list[str]) -> str:
    names = [f"CASE WHEN sum({one}) > 0 AND count({one}) < count(*) THEN '{one.partition('.')[2] or one}' END" for one in columns]
    return "nullif(concat_ws(', ',\n    " + ",\n    ".join(names) + "\n  ), '')"


@cache
def own_query(name: str, folder: str = "rows") -> str:
    """A query of this program's own, for DuckDB alone. Without its comments, which may name other tables than the query reads."""
    return re.sub(r"^--.*\n", "", sql_text(SQL / folder / f"{name}.sql"), flags=re.MULTILINE)


def kept_folder(name: str) -> Path:
    """A folder for what is downloaded or written without being asked where: `.name` in a checkout, else `name` in the user's cache."""
    if (PROJECT / "pyproject.toml").is_file():
        return PROJECT / f".{name}"
    import platformdirs

    return platformdirs.user_cache_path(PACKAGE, appauthor=False, version=version()) / name


def version() -> str:
    """The version of the installed package; `unknown` in a folder that was never installed."""
    from importlib import metadata  # 20 ms that only this needs

    try:
        return metadata.version(PACKAGE)
    except metadata.PackageNotFoundError:
        return "unknown"


def jar_dir() -> Path:
    """The folder with the JARs: REBALANCE_JARS, else `.jars` in the checkout or `jars` in the user's cache."""
    return Path(os.environ.get("REBALANCE_JARS") or kept_folder("jars"))


def jar_paths(folder: Path) -> list[str]:
    """The JARs of a folder, sorted. Empty if there are none: then Spark has to resolve their coordinates itself."""
    return sorted(str(path.resolve()) for path in folder.glob("*.jar"))


def s3_jar_dir() -> Path:
    """The folder with the JARs for S3: REBALANCE_S3_JARS, else `jars-s3` beside `jar_dir()`'s default."""
    return Path(os.environ.get("REBALANCE_S3_JARS") or kept_folder("jars-s3"))


def class_archive(jars: Path) -> Path:
    """The classes of a folder of JARs as scripts/build/archive_classes.py keeps them for a quicker start. The file need not exist."""
    return jars.resolve() / "classes.jsa"


def kafka_jar_dir(version: str = KAFKA_VERSION) -> Path:
    """The folder with the broker's JARs: REBALANCE_KAFKA_JARS, else `jars-kafka` beside `jar_dir()`'s default.

    Other releases lie beside it.
    """
    folder = Path(os.environ.get("REBALANCE_KAFKA_JARS") or kept_folder("jars-kafka"))
    return folder if version == KAFKA_VERSION else folder.with_name(f"{folder.name}-{version}")
