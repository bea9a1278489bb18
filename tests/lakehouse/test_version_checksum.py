"""jobs/lakehouse/version_checksum.py: what the file states is true, whoever else wrote to the table."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.types import StringType, StructField, StructType

from jobs.lakehouse import tables
from jobs.lakehouse.added_files import AddedFileWriter
from schemas.names import FINDINGS, GROUP_EVENTS

SCHEMA = StructType([StructField("cluster", StringType(), metadata={"comment": "Of which cluster."}), StructField("broker", StringType())])


@pytest.fixture
def table(tmp_path):
    return tables.ensure_table(tmp_path, GROUP_EVENTS, SCHEMA)


def append(table, version):
    rows = pa.table({"cluster": ["c"] * (version + 1), "broker": [f"broker-{version}"] * (version + 1)})
    assert tables.append(table, rows, "a-test", version)


def stated(table):
    """The checksum of the newest version."""
    return json.loads((table / "_delta_log" / f"{DeltaTable(str(table)).version():020d}.crc").read_bytes())


def true(table):
    """The same by what the log says."""
    files, actions = {}, {}
    for commit in sorted((table / "_delta_log").glob("*.json")):
        for action in map(json.loads, commit.read_text().splitlines()):
            actions |= action
            if "add" in action:
                files[action["add"]["path"]] = action["add"]["size"]
            files.pop(action.get("remove", {}).get("path"), None)
    counts = {"tableSizeBytes": sum(files.values()), "numFiles": len(files), "numMetadata": 1, "numProtocol": 1}
    return read({**counts, "metadata": actions["metaData"], "protocol": actions["protocol"]})


def read(checksum):
    """A checksum whose schema compares, however its JSON is written."""
    metadata = checksum["metadata"]
    return checksum | {"metadata": metadata | {"schemaString": json.loads(metadata["schemaString"])}}


def test_each_append_states_what_the_table_has_now(table):
    for version in range(7):
        append(table, version)
        assert read(stated(table)) == true(table)
    # Of earlier versions some are kept, for readers that are just looking at one of them.
    assert len(list((table / "_delta_log").glob("*.crc*"))) == 4


def test_files_that_tasks_wrote_count(table):
    append(table, 0)
    writer = AddedFileWriter(table)
    writer.write(pa.table({"cluster": ["c"], "broker": ["broker-1"]}))
    assert tables.append(table, pa.table({"cluster": ["c"], "broker": ["broker-2"]}), "a-test", 1, [writer.close()])
    assert read(stated(table))["numFiles"] == 3
    assert read(stated(table)) == true(table)


def _compacted(table):
    DeltaTable(str(table)).optimize.compact()


def _wider(table):
    tables.ensure_table(table.parent, GROUP_EVENTS, StructType([*SCHEMA, StructField("reason", StringType())]))


def _damaged(table):
    for file in (table / "_delta_log").glob("*.crc"):
        file.write_bytes(b'{"numFiles"')


@pytest.mark.parametrize("between", [_compacted, _wider, _damaged])
def test_whatever_happens_between_two_appends(table, between):
    append(table, 0)
    append(table, 1)
    between(table)
    rows = pa.table({name: ["x"] for name in DeltaTable(str(table)).to_pyarrow_dataset().schema.names})
    assert tables.append(table, rows, "a-test", 2)
    assert read(stated(table)) == true(table)


def test_tables_that_no_query_follows_have_none(tmp_path):
    table = tables.ensure_table(tmp_path, FINDINGS, SCHEMA)
    append(table, 0)
    assert not list((table / "_delta_log").glob("*.crc"))


@pytest.mark.spark
def test_spark_believes_it_and_needs_no_job_to_see_a_new_version(spark, table):
    append(table, 0)
    java = spark._jvm.org.apache.spark.sql.delta.DeltaLog
    none = getattr(spark._jvm.scala.Option, "empty")()  # noqa: B009 - the name in Java

    def jobs_of_a_look(name):
        spark.sparkContext.setJobGroup(name, name)
        java.clearCache()
        snapshot = java.forTable(spark._jsparkSession, str(table)).update(False, none, none)
        seen = snapshot.version(), snapshot.metadata().schemaString(), snapshot.protocol().toString()
        return seen, spark.sparkContext.statusTracker().getJobIdsForGroup(name)

    with_it, jobs = jobs_of_a_look("with")
    assert list(jobs) == []
    for file in (table / "_delta_log").glob("*.crc"):
        file.unlink()
    without, jobs = jobs_of_a_look("without")
    assert len(jobs) > 0
    assert (with_it[0], json.loads(with_it[1]), with_it[2]) == (without[0], json.loads(without[1]), without[2])
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
