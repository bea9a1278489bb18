"""`rebalance inspect`: what is in a folder of logs, and what it lacks."""

import gzip
import json
import re
from pathlib import Path

import pytest

from jobs.cli import entry
from jobs.common.exit_codes import PARTLY_READ
from tests.logs.log_makers import coordinator, fetch, other, write

RECORDING = Path(__file__).parents[1] / "data" / "recordings" / "kafka-3.9.1"


def inspect(capsys, *arguments):
    code = entry.main(["inspect", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_recording(capsys):
    code, out, err = inspect(capsys, RECORDING, "--timezone", "America/New_York")
    assert code == 0
    assert [line for line in err.splitlines() if re.match(r" *\d+ s  reading", line) is None] == []
    lines = out.splitlines()
    assert lines[0].startswith(f"{RECORDING}: ")
    assert "Cluster kafka-3.9.1, Kafka 3.9.1" in lines
    brokers = {line.split()[1] for line in lines if line.startswith("  broker-")}
    assert brokers == {"broker-1:", "broker-2:"}
    assert any(line.startswith("  requests about groups: ") and "HEARTBEAT" in line for line in lines)
    assert any(line.startswith("  group coordinator: ") and "COORDINATOR_ELECTED" in line for line in lines)
    assert "Not understood" not in out
    assert "another zone" not in out


def test_a_wrong_zone_is_noticed_where_other_lines_have_absolute_times(capsys):
    """librdkafka writes epoch seconds; the brokers of the recording wrote New York's time."""
    _, out, _ = inspect(capsys, RECORDING)
    said = " ".join(out.split())
    assert "all times are read as UTC-05:00, as lines about the same moments show: --timezone UTC-05:00 makes that explicit" in said
    assert "--lakehouse LAKE --once --timezone UTC-05:00 " in said
    _, out, _ = inspect(capsys, RECORDING, "--timezone", "Europe/Berlin")
    assert "the brokers' times seem to be in UTC-05:00" in out


def test_the_command_that_reads_a_file_of_brokers_and_clients(capsys):
    """A broker in UTC, and two workers nine hours ahead of it, in one file."""
    file = Path(__file__).parents[1] / "data" / "faults" / "compose-mixed-zones-in" / "host" / "compose.log"
    _, out, _ = inspect(capsys, file)
    said = " ".join(out.split())
    assert "compose.log (kafka) broker-1: 3 lines, 3 about groups, 2025-03-01 10:33:55 to 10:33:56 UTC" in said
    assert "2 application logs: 3 lines, 3 about groups, 2025-03-01 10:33:55 to 10:33:56 UTC" in said
    assert f"To read it: rebalance run --input {file} --lakehouse LAKE --once --timezone clients=UTC+09:00" in said
    assert "Not understood" not in said
    assert "no application logs" not in said
    _, out, _ = inspect(capsys, file, "--timezone", "clients=Asia/Tokyo", "--log-format", "kafka")
    assert out.splitlines()[-1].endswith("--once --timezone clients=Asia/Tokyo --log-format kafka")


def test_every_line_of_the_recording_is_counted_as_a_run_counts_it(capsys):
    _, out, _ = inspect(capsys, RECORDING, "--format", "json")
    told = json.loads(out)
    events = sum(kind["lines"] for log in told["logs"] for kind in log["kinds"] if kind["source"] != "broker")
    assert (told["complete"], told["not_understood"], events) == (True, 0, told["about_groups"])
    assert told["releases"] == {"kafka-3.9.1": ["3.9.1"]}
    assert told["evidence"]["kafka-3.9.1"]["broker-1"] == ["broker", "coordinator", "request"]
    assert told["missing"]["kafka-3.9.1"] == []


def test_application_logs_that_are_left_out_are_not_called_missing(capsys, tmp_path):
    """Their times are of another zone, which nothing shows but the column of an export."""
    member = "c1-11111111-1111-1111-1111-111111111111"
    broker = (
        f"[2025-03-01 05:27:45,090] INFO [GroupCoordinator 2]: Member {member} in group g1 has failed, removing it from the group"
        " (kafka.coordinator.group.GroupCoordinator)"
    )
    client = "2025-03-01 {}:00:2{}.303  INFO 6 --- [-0-C-1] o.a.k.c.c.X  : [Consumer clientId=c1, groupId=g1] (Re-)joining group"
    lines = [broker, client.format(15, 3), client.format(15, 4)]
    log = write(tmp_path / "pasted.log", [line.encode() for line in lines])
    assert "missing: there are application logs, but none of their lines was usable" in " ".join(inspect(capsys, log)[1].split())
    taken_in = ["2025-03-01 05:27:45.000", "2025-03-01 06:00:23.303", "2025-03-01 06:00:24.303"]
    exported = zip([broker, *lines], ["2025-03-01 05:27:45.000", *taken_in], strict=True)
    write(log, [f"{line},{at}".encode() for line, at in exported])
    out = inspect(capsys, log)[1]
    assert "application logs: 2 lines" in out
    assert "missing: application logs" not in out


def test_what_is_missing(capsys, tmp_path):
    """One broker's request log alone: its answers name another coordinator."""
    log = RECORDING / "broker-1" / "kafka-request.log.gz"
    _, out, _ = inspect(capsys, log)
    said = " ".join(out.split())
    assert "missing: no log of node 2, which coordinates groups" in said
    assert "missing: no server.log of broker-1: it would prove expired sessions" in said
    assert "missing: no application logs" in said
    write(tmp_path / "server.log", [coordinator(i) for i in range(20)])
    assert "missing: no request log of broker-1" in inspect(capsys, tmp_path)[1]


def test_lines_that_are_not_understood_are_shown(capsys, tmp_path):
    strange = [coordinator(i, f"Group g was {i} times in a state that no release has.") for i in range(5)]
    write(tmp_path / "server.log", [*(coordinator(i) for i in range(95)), *strange])
    code, out, _ = inspect(capsys, tmp_path)
    assert code == 0
    assert "Not understood: 5 lines, 5.00% of those that may be about groups" in out
    assert "  UNKNOWN_TEMPLATE 5" in out
    assert f"    server.log:96: {strange[0].decode()}" in out.splitlines()
    assert out.count("in a state that no release has") == 3


def test_a_line_that_lost_its_end_is_not_understood(capsys, tmp_path):
    cut = fetch(7).replace(b"FETCH", b"HEARTBEAT").replace(b'"requestApiKey":1,', b'"requestApiKey":12,')[:150]
    write(tmp_path / "kafka-request.log", [*(fetch(i) for i in range(5)), cut])
    assert "  TRUNCATED 1" in inspect(capsys, tmp_path)[1]


@pytest.mark.parametrize("content", [b"", b"127.0.0.1 - - [21/Nov/2026:06:00:00 +0000] GET / 200\n" * 50, bytes(range(256)) * 40])
def test_nothing_that_is_understood(capsys, tmp_path, content):
    path = tmp_path / "access.log"
    path.write_bytes(content)
    code, _, err = inspect(capsys, tmp_path)
    assert code == 3
    assert err.strip().endswith(
        f"nothing in {tmp_path} was understood: it has no line of a broker, a client or a record that can be read (docs/capture.md)"
    )


def test_a_log_without_groups(capsys, tmp_path):
    write(tmp_path / "server.log", [other(i) for i in range(20)])
    code, out, _ = inspect(capsys, tmp_path)
    assert code == 0
    assert out.splitlines()[-1].startswith("The logs mention no consumer group: docs/capture.md says which logs of brokers and clients do.")


def test_a_pattern_that_the_user_names(capsys, tmp_path):
    """A date whose day and month may be either number: no pattern that is found by itself."""
    lines = [coordinator(i).replace(b"[2026-11-21 ", b"[11/12/2026 ") for i in range(20)]
    write(tmp_path / "logs/server.log", lines)
    (tmp_path / "settings.toml").write_text("[log_formats]\nours = '[%d{dd/MM/yyyy HH:mm:ss,SSS}] %p %m (%c)%n'\n")
    assert "20 about groups" not in inspect(capsys, tmp_path / "logs")[1]
    code, out, _ = inspect(capsys, tmp_path / "logs", "--config", tmp_path / "settings.toml", "--log-format", "ours")
    assert code == 0
    assert "20 lines, 20 about groups" in out
    assert inspect(capsys, tmp_path / "logs", "--log-format", "theirs")[0] == 2


def test_files_that_are_no_logs_are_counted(capsys, tmp_path):
    write(tmp_path / "server.log", [coordinator(i) for i in range(20)])
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(100))
    assert json.loads(inspect(capsys, tmp_path, "--format", "json")[1])["left_out"] == {".png": 1}
    assert inspect(capsys, tmp_path)[1].splitlines()[-1].startswith("Left out 1: .png 1")


def test_a_log_that_begins_later_than_the_others(capsys, tmp_path):
    """The container of broker-2 was started again, and `kubectl logs` shows what it wrote since."""
    write(tmp_path / "one.log", [coordinator(i * 10_000) for i in range(60)])
    write(tmp_path / "two.log", [coordinator(i * 10_000).replace(b"id=1", b"id=2") for i in range(30, 60)])
    said = " ".join(inspect(capsys, tmp_path)[1].split())
    assert "missing: the logs of broker-2 begin 5 min after the first ones: what it did before is missing." in said
    assert "the logs of broker-1 begin" not in said


def test_a_file_that_is_cut_off_is_named(capsys, tmp_path):
    write(tmp_path / "c" / "b1" / "server.log", [coordinator(i) for i in range(100)])
    whole = gzip.compress(b"".join(b"%b\n" % coordinator(i).replace(b"id=1", b"id=2") for i in range(3_000)))
    cut = tmp_path / "c" / "b2" / "server.log.gz"
    cut.parent.mkdir()
    cut.write_bytes(whole[: len(whole) // 2])
    named = f"1 file damaged, read up to there: the gzip data ends in the middle: {cut}"
    code, out, err = inspect(capsys, tmp_path)
    assert code == PARTLY_READ
    assert named in out.splitlines()
    assert err == f"rebalance: 1 file of {tmp_path} could not be read, or not to the end: see above\n"
    code, out, _ = inspect(capsys, tmp_path, "--format", "json")
    assert (code, json.loads(out)["not_read"]) == (PARTLY_READ, [named])
    cut.write_bytes(whole)
    assert inspect(capsys, tmp_path)[0] == 0


def test_no_such_file(capsys, tmp_path):
    assert inspect(capsys, tmp_path / "x")[0] == 2


def test_a_beginning(capsys, tmp_path):
    write(tmp_path / "server.log", [coordinator(i * 1_000) for i in range(5_000)])
    code, out, _ = inspect(capsys, tmp_path, "--lines", "100")
    assert code == 0
    assert "the first " in out


@pytest.mark.parametrize(("line", "reason", "step"), [
    (b"06:00:00,000 INFO [GroupCoordinator 1]: Stabilized group g generation 2 (__consumer_offsets-3)", "NO_TIMESTAMP", "a date"),
    (coordinator(1).partition(b" (org.")[0], "TRUNCATED", "--log-format '[%d] %p %m%n'"),
    (coordinator(1).replace(b"INFO [", b"INFO something [").partition(b" (org.")[0], "MALFORMED", "--log-format"),
    (coordinator(1).replace(b"Stabilized", b"Destabilized"), "UNKNOWN_TEMPLATE", "Please report"),
])  # fmt: skip
def test_what_to_do_about_a_line_is_said(capsys, tmp_path, line, reason, step):
    """Only a line that is whole is worth a report. A file of lines that cannot be read is a log, and its lines are shown as they stand."""
    write(tmp_path / "copied.txt", [line])
    write(tmp_path / "other.txt", [coordinator(1)])  # beside it, a line without a time has no place
    _, out, _ = inspect(capsys, tmp_path)
    [said] = [text for text in out.splitlines() if text.startswith(f"  {reason} 1: ")]
    assert step in said
    assert ("Please report" in said) == (reason == "UNKNOWN_TEMPLATE")
    assert f"    copied.txt:1: {line.decode()}" in out.splitlines()
