"""`rebalance generate`: which files it writes, that a seed decides every line, and that the lines agree with each other."""

import errno
import os
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from jobs.cli import entry
from jobs.generate import output
from jobs.generate.cluster import Cluster
from jobs.generate.sizes import SIZES, Size

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[2]
FIELDS = re.compile(
    r'"correlationId":(\d+),"clientId":"([^"]*)","requestApiKeyName":"HEARTBEAT"\},"request":\{"groupId":"([^"]*)","generationId":(\d+),'
    r'"memberId":"([^"]*)".*?"errorCode":(\d+)\},"connection":"([^"]*)"'
)
STABILIZED = re.compile(r"Stabilized group (\S+) generation (\d+) ")
ASSIGNED = re.compile(r"Assignment received from leader \S+ for group (\S+) for generation (\d+)\.")


def files(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def generate(folder, *options):
    assert entry.main(["generate", str(folder), "--lines", "9000", *options]) == 0
    return files(folder)


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return generate(tmp_path_factory.mktemp("logs"), "--brokers", "2", "--cluster", "shop", "--start", "2026-11-21T23:59:30")


def test_each_broker_has_two_logs_in_order_of_time_with_as_many_lines_as_wanted(logs):
    names = [f"shop/broker-{number}/{log}" for number in (1, 2) for log in ("kafka-request.log", "server.log")]
    assert sorted(logs) == sorted(names)
    for log in logs.values():
        stamps = [line[:25] for line in log.splitlines()]
        assert stamps == sorted(stamps)
    assert min(log[:20] for log in logs.values()) == b"[2026-11-21 23:59:30"
    assert max(log.splitlines()[-1][:12] for log in logs.values()) == b"[2026-11-22 "
    assert sum(log.count(b"\n") for log in logs.values()) == 9_000


def test_a_seed_decides_every_line(logs, tmp_path):
    options = ("--brokers", "2", "--cluster", "shop", "--start", "2026-11-21T23:59:30")
    command = [sys.executable, "-m", "jobs.cli", "generate", str(tmp_path / "same"), "--lines", "9000", *options]
    subprocess.run(command, cwd=PROJECT, env=os.environ | {"PYTHONHASHSEED": "7"}, check=True, capture_output=True)
    assert files(tmp_path / "same") == logs
    assert generate(tmp_path / "other", *options, "--seed", "2") != logs


def test_standard_output_has_both_logs_of_one_broker_in_order_of_time(capfdbinary):
    assert entry.main(["generate", "-", "--lines", "3000", "--rebalances", "5"]) == 0
    out, err = capfdbinary.readouterr()
    lines = out.splitlines()
    assert len(lines) == 3_000
    assert [line[:25] for line in lines] == sorted(line[:25] for line in lines)
    assert {b"(kafka.request.logger)" in line for line in lines} == {True, False}
    assert b"3,000 lines" in err


def test_a_reader_that_has_enough_ends_the_command_without_an_error():
    command = [sys.executable, "-m", "jobs.cli", "generate", "-", "--lines", "100000"]
    with subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline().endswith(b"(kafka.request.logger)\n")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_what_is_there_is_not_overwritten(tmp_path, capsys):
    command = ["generate", str(tmp_path), "--lines", "5"]
    assert entry.main(command) == 0
    before = files(tmp_path)
    assert entry.main(command) == 2
    assert "is there already" in capsys.readouterr().err
    assert files(tmp_path) == before


def test_a_full_disk_ends_the_command_and_is_named(tmp_path, monkeypatch, capsys):
    def no_room(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(output, "write", no_room)
    assert entry.main(["generate", str(tmp_path / "logs"), "--lines", "5"]) == 5
    assert f"the disk is full: {tmp_path / 'logs'}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("-", "--brokers", "2"), "standard output takes the lines of one broker"),
        (("x", "--cluster", "a/b"), "write the name of a folder"),
        (("x", "--start", "yesterday"), "--start"),
        (("x", "--size", "XXL"), "--size"),
    ],
)
def test_calls_that_cannot_work_are_refused(options, told, capsys):
    assert entry.main(["generate", *options]) == 2
    assert told in capsys.readouterr().err


def taken(size, seconds, **settings):
    cluster = Cluster(size, **({"release": "4.2.0", "brokers": 3, "start_ms": 0, "seed": 5} | settings))
    lines = []
    for at_ms in cluster.advance(seconds * 1_000):
        lines += sorted((line for _, _, of_log in cluster.book.take() for line in of_log), key=lambda line: line[:25])
        assert cluster.now_ms <= at_ms
    return cluster, lines


def test_heartbeats_go_on_through_all_that_happens():
    """Steady members and simulated ones write the same log: generations, numbers and intervals show no seam between them."""
    cluster, lines = taken(Size(20, 5, 1.5), 120)
    assert cluster.book.rebalances > 100
    generations: dict[str, int] = {}
    last: dict[str, tuple[int, int, str]] = {}
    seen = Counter[str]()
    for line in lines:
        at_ms = 60_000 * int(line[15:17]) + 1_000 * int(line[18:20]) + int(line[21:24])
        found = ASSIGNED.search(line)
        if found is not None:
            generations[found[1]] = int(found[2])
        beat = FIELDS.search(line)
        if beat is None:
            continue
        number, _, group, generation, member, error, connection = beat.groups()
        if error == "0" and group in generations:
            assert int(generation) in {generations[group], generations[group] + 1}, line  # followers sync before the leader
        if connection in last:
            last_number, last_ms, last_generation = last[connection]
            assert int(number) > last_number, line
            assert at_ms - last_ms <= 3_010 or generation != last_generation, line
        last[connection] = int(number), at_ms, generation
        seen[error] += 1
        assert member
    assert seen["0"] > 1_800
    assert seen["27"] > 60
    assert seen["16"] > 10  # groups moved to another broker


def test_rebalances_are_about_as_many_as_wanted():
    cluster, _ = taken(Size(200, 3, 2.0), 60, brokers=1)
    assert 80 <= cluster.book.rebalances <= 160


def test_a_zipf_size_has_few_large_groups_and_many_small_ones():
    sizes = sorted(SIZES["Z"].sizes(random.Random(1)), reverse=True)
    assert len(sizes) == 5_000
    assert sizes[:3] == [2_000, 1_000, 666]
    assert sizes[-2_000:] == [1] * 2_000
