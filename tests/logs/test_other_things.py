"""A hundred files of other things under the names of logs: no crash, bounded memory, and a log beside them is read as ever."""

import subprocess
import sys
from pathlib import Path

import pytest

from jobs.logs.files import discover
from tests.logs.log_makers import coordinator, write
from tests.logs.other_things import KINDS, make
from tests.logs.spooling import Consumer
from tests.logs.test_troubles import read, spool_of

pytestmark = pytest.mark.slow

COUNT = 100
GROWTH = 300 << 10  # kB of memory
# A slice has 64 MB of text at most, and is there as lines and as a table.
MEASURED = """
import resource, sys
from pathlib import Path
from jobs.logs.spool import Spool, SpoolSettings

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

before = peak()
for report in Spool(Path(sys.argv[1]), Path(sys.argv[2]), settings=SpoolSettings()).slices():
    report.path.unlink()
print(peak() - before)
"""


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    folder = tmp_path_factory.mktemp("others")
    made = make(folder, COUNT)
    assert made == {kind.__name__: COUNT // len(KINDS) for kind in KINDS}
    return folder


def test_nothing_of_them_is_understood_and_every_line_is_accounted_for(others, tmp_path):
    assert discover(others) == discover(others)
    spool = spool_of(others, tmp_path / "spool")
    consumer, lines = Consumer(), 0
    for report in spool.slices():
        lines += report.lines_read
        consumer.take(tmp_path / "spool")
    assert not spool.understood
    assert not [row for row in consumer.of("line") if row["fault"] is None]
    damaged = [row for row in consumer.of("line") if row["fault"] == "DAMAGED_FILE"]
    assert sum(consumer.counts().values()) == lines + len(damaged)
    assert len(spool.troubles.damaged) == len(damaged) > 0


def test_a_log_among_them_is_read_as_if_it_were_alone(others, tmp_path):
    logs = tmp_path / "logs"
    logs.mkdir()
    for folder in others.iterdir():
        (logs / folder.name).symlink_to(folder)
    write(logs / "b9" / "server.log", [coordinator(second * 1_000) for second in range(500)])
    spool = spool_of(logs, tmp_path / "spool")
    consumer = read(spool, tmp_path / "spool")
    assert spool.understood
    kept = [row["position"] for row in consumer.of("line") if row["origin"] == "b9/server.log"]
    assert kept == list(range(1, 501))


@pytest.mark.long
def test_they_need_little_memory(tmp_path):
    make(tmp_path / "others", 4 * COUNT)
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "others"), str(tmp_path / "spool")]
    done = subprocess.run(command, cwd=Path(__file__).parents[2], stdout=subprocess.PIPE, text=True, check=True)
    assert int(done.stdout) < GROWTH
