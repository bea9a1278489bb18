"""The wheel in an environment of its own, outside of the checkout: commands find what they read, and keep what they write in the cache.

The other packages are those of the checkout's environment: nothing is fetched. docs/deploy.md has the figures of a full installation.
"""

import os
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

import pytest

from tests.lakehouse.rows import empty_lakehouse, line, rebalance, write

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[2]
PLACES = """\
import os
from jobs.cli.demo import RECORDING
from jobs.common.places import class_archive, data_folder, jar_dir, kafka_jar_dir, kept_folder
from jobs.pipeline.session import CONF
assert os.access(CONF / "installed-python", os.X_OK)
for path in (RECORDING / "broker-1" / "server.log.gz", CONF / "log4j2.properties", CONF / "ivysettings.xml",
             data_folder("conf/capture", "log4j2.yaml") / "log4j.properties"):
    assert path.is_file(), path
for path in (jar_dir(), kafka_jar_dir(), kept_folder("demo")):
    print(path)
"""


@pytest.fixture(scope="module")
def installed(packages, tmp_path_factory):
    """A virtual environment with the wheel, as `pip install --no-deps` makes it."""
    folder = tmp_path_factory.mktemp("installed")
    environment = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (site,) = environment.glob("lib/python3*/site-packages")
    # Behind its own packages, and without the editable installation: lines of .pth files are not read there.
    (site / "others.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", environment / "bin" / "python"]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", packages[0]], check=True)
    return environment


@pytest.fixture(scope="module")
def lakehouse(tmp_path_factory):
    folder = empty_lakehouse(tmp_path_factory.mktemp("lakehouse"))
    write(folder, line(), rebalance())
    return folder


def run(program, *words, folder, **variables):
    known = {name: text for name, text in os.environ.items() if not name.startswith("REBALANCE_")}
    environment = known | {"XDG_CACHE_HOME": str(folder / "cache")} | variables
    return subprocess.run([program, *words], check=False, capture_output=True, text=True, cwd=folder, env=environment)


def test_data_are_found_and_the_cache_is_the_users(installed, tmp_path):
    done = run(installed / "bin" / "python", "-c", PLACES, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    cache = tmp_path / "cache" / "kafka-rebalance" / metadata.version("kafka-rebalance")
    assert done.stdout.split() == [str(cache / name) for name in ("jars", "jars-kafka", "demo")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--version", "rebalance, version"),
        ("ask worst --limit 1", "rebalances"),
        ("ask worst --help", "$ rebalance ask worst"),
        ("report", "Rebalances ("),
        ("check", "laws"),
        ("maintain --dry-run", "group_events"),
    ],
)
def test_commands_that_need_no_java(installed, lakehouse, tmp_path, words, said):
    done = run(installed / "bin" / "rebalance", *words.split(), folder=tmp_path, REBALANCE_LAKEHOUSE=str(lakehouse))
    assert said in done.stdout, done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
