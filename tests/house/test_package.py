"""scripts/build/package.py: what a cluster gets is this project. That the archive has all that executors import: tests/cluster."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
import pytest

from jobs.pipeline.executors import PACKAGES, fingerprint
from scripts.build import package

pytestmark = pytest.mark.slow


def bare(path, program):
    """What a Python that sees no installed package prints, with this on its path, and PySpark as a node's Spark brings it."""
    paths = [path, *sorted((Path(pyspark.__file__).parent / "python" / "lib").glob("*.zip"))]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    python = [sys._base_executable, "-S", "-c", program]
    return subprocess.run(python, check=True, stdout=subprocess.PIPE, text=True, cwd=path.parent, env=environment).stdout


def test_a_zip_is_the_same_project_to_executors_as_the_checkout(packages):
    assert bare(packages[1], "from jobs.pipeline.executors import fingerprint; print(fingerprint())").strip() == fingerprint()


def test_the_wheel_has_the_settings_and_questions_that_a_driver_reads(packages):
    names = zipfile.ZipFile(packages[0]).namelist()
    assert {name.split("/")[0] for name in names if name.endswith(".py")} == set(PACKAGES)
    assert {"jobs/dashboard/templates/shell.html", "jobs/dashboard/assets/shell.js", "jobs/dashboard/assets/app.css"} <= set(names)
    for file in ("conf/spark-defaults.conf", "conf/pipeline.toml", "conf/prometheus/metrics.md", "sql/why.sql", "sql/examples/why.txt"):
        assert [name for name in names if name.endswith(f"/share/kafka-rebalance/{file}")]


@pytest.mark.long
def test_an_earlier_build_leaves_nothing_in_it(packages, tmp_path):
    package.build_wheel(tmp_path)
    again = package.build_wheel(tmp_path)
    assert zipfile.ZipFile(again).namelist() == zipfile.ZipFile(packages[1]).namelist()
