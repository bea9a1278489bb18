"""`rebalance explain`: from a few lines to the report, without a JVM."""

import gzip
import html
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import zipfile
from pathlib import Path

import pytest

from jobs.answers.report import read_report
from jobs.cli import demo, entry
from jobs.common import exit_codes
from jobs.common.interrupts import removing_on_sigterm
from jobs.lakehouse.folder import known_inputs
from jobs.pipeline import at_once
from jobs.pipeline import run as pipeline
from jobs.pipeline.run_progress import RunResult
from jobs.pipeline.tracking import shards
from tests.cli.saying import lines_of_the_command
from tests.effort import long

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[2]

MEMBER = "app-1-0f6a3c1e-7d1b-4c53-9a5e-2b1f0c9d8e7f"
EXCERPT = f"""\
[2026-11-21 06:16:04,117] INFO [GroupCoordinator 1]: Member {MEMBER} in group payments has failed, removing it from the group \
(kafka.coordinator.group.GroupCoordinator)
[2026-11-21 06:16:04,118] INFO [GroupCoordinator 1]: Preparing to rebalance group payments in state PreparingRebalance with old \
generation 7 (__consumer_offsets-12) (reason: removing member {MEMBER} on heartbeat expiration) (kafka.coordinator.group.GroupCoordinator)
[2026-11-21 06:16:05,240] INFO [GroupCoordinator 1]: Stabilized group payments generation 8 (__consumer_offsets-12) with 2 members \
(kafka.coordinator.group.GroupCoordinator)
[2026-11-21 06:16:05,251] INFO [GroupCoordinator 1]: Assignment received from leader app-2-1b2c for group payments for generation 8. \
The group has 2 members, 0 of which are static. (kafka.coordinator.group.GroupCoordinator)
"""


@pytest.fixture
def log(tmp_path):
    file = tmp_path / "pasted.log"
    file.write_text(EXCERPT)
    return file


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """The folder of temporary files: a command leaves none. No test starts Spark, or finds a Java."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    yield folder
    assert list(folder.iterdir()) == []


def piped(monkeypatch, content: bytes | str):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content.encode() if isinstance(content, str) else content)))


def explained(capsys, *arguments):
    """The exit code, standard output, and what was said on stderr."""
    code = entry.main(["explain", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, out, [line.removeprefix("rebalance: ") for line in lines_of_the_command(err)]


def test_an_excerpt_is_explained(capsys, log):
    code, out, said = explained(capsys, log)
    assert code == exit_codes.DONE
    assert "WARNING  app-1 missed the session timeout\n             SESSION_TIMEOUT  payments" in out
    assert "With --keep DIR: `rebalance evidence ID --lakehouse DIR`" in out
    assert "Missing: no request log of broker-1" in out
    assert said == ["pasted.log is a log of broker-1, by its lines"]


@pytest.mark.parametrize("form", [long("text"), "json", long("html")])
def test_standard_input_is_explained_like_a_file_and_bears_no_name_of_one(capsys, monkeypatch, log, scratch, form):
    _, of_file, _ = explained(capsys, log, "--format", form)
    piped(monkeypatch, EXCERPT)
    code, out, said = explained(capsys, "-", "--format", form)
    assert (code, said) == (exit_codes.DONE, ["standard input is a log of broker-1, by its lines"])
    assert str(scratch) not in out

    def without_ids(text: str) -> str:
        """Ids are hashes of the evidence, which names the file."""
        return re.sub(r"\b[fr][0-9a-f]{11}\b", "ID", text)

    assert without_ids(out) == without_ids(of_file.replace("pasted.log", "standard input"))


def test_the_readme_shows_what_is_said(capsys, monkeypatch):
    """Its lines are said as they are, in that order; `...` stands for others."""
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    sample = re.search(r"^\$ zgrep (\S+) (\S+) \| rebalance explain - (.*?)\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)
    lines = gzip.decompress((PROJECT / sample[2]).read_bytes()).decode().splitlines(keepends=True)
    piped(monkeypatch, "".join(line for line in lines if sample[1] in line))
    assert entry.main(["explain", "-", *sample[3].split()]) == exit_codes.DONE
    said = capsys.readouterr()
    rest = iter([*said.err.splitlines(), *said.out.splitlines()])
    assert [line for line in sample[4].splitlines() if line != "..." and line not in rest] == []


def test_json_is_alone_on_standard_output(capsys, log):
    code, out, _ = explained(capsys, log, "--format", "json", "--fail-on", "warning")
    assert code == exit_codes.NEEDS_ATTENTION
    told = json.loads(out)
    assert [entry["code"] for entry in told["attention"]] == ["SESSION_TIMEOUT"]
    assert [row["cause"] for row in told["rebalances"]] == ["SESSION_TIMEOUT"]


def test_a_page(capsys, log):
    _, out, _ = explained(capsys, log, "--format", "html")
    assert out.startswith("<!DOCTYPE html>")
    assert "pasted.log:1" in out
    assert "has failed, removing it from the group" in out


def test_the_page_says_what_the_text_says_of_clients_alone(capsys):
    log = PROJECT / "tests" / "data" / "faults" / "clients-only-in"
    _, text, _ = explained(capsys, log)
    _, page, _ = explained(capsys, log, "--format", "html")
    plain = " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())
    lines = re.findall(r"^    (\d\d:.*|….* in between)$", text.partition("What clients say")[2], re.MULTILINE)
    assert len(lines) > 3
    assert [line for line in lines if " ".join(line.split()) not in plain] == []


def test_an_archive_in_a_pipe(capsys, monkeypatch):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("broker-7/server.log", EXCERPT)
    piped(monkeypatch, packed.getvalue())
    code, out, _ = explained(capsys, "-", "--timezone", "Europe/Berlin")
    assert (code, "SESSION_TIMEOUT" in out, "2026-11-21 05:16:04.117" in out) == (exit_codes.DONE, True, True)


def test_only_a_part_is_shown_if_that_is_asked_for(capsys, log):
    _, out, said = explained(capsys, log, "--group", "orders")
    assert "orders" in " ".join([out, *said])
    assert "SESSION_TIMEOUT" not in out


# Kept tables.


@pytest.mark.parametrize("source", [long("file"), "pipe"])
def test_kept_tables_answer_all_other_commands(capsys, monkeypatch, log, tmp_path, source):
    lake = tmp_path / "lake"
    piped(monkeypatch, EXCERPT)
    code, out, _ = explained(capsys, log if source == "file" else "-", "--keep", lake)
    assert code == exit_codes.DONE
    assert out.endswith(f"Kept in {lake}: `rebalance ask --lakehouse {lake}` lists the questions.\n")
    monkeypatch.undo()  # the pipe is gone, and what was written beside it

    def of_lake(*arguments):
        assert entry.main([*arguments, "--lakehouse", str(lake)]) == exit_codes.DONE
        return capsys.readouterr().out

    report = of_lake("report")
    assert report.splitlines()[:5] == out.splitlines()[:5]
    (found,) = json.loads(of_lake("report", "--format", "json"))["findings"]
    evidence = of_lake("evidence", found["id"])
    assert f"{'pasted.log' if source == 'file' else 'standard input'}:1\n  {EXCERPT.splitlines()[0]}" in evidence
    assert "SESSION_TIMEOUT" in of_lake("ask", "why")
    assert of_lake("check").startswith("OK")


def test_kept_tables_are_not_continued(capsys, monkeypatch, log, tmp_path):
    lake = tmp_path / "lake"
    explained(capsys, log, "--keep", lake)
    code, _, (said,) = explained(capsys, log, "--keep", lake)
    assert (code, "there is already a lakehouse; give a new folder" in said) == (exit_codes.UNUSABLE, True)
    monkeypatch.undo()
    assert entry.main(["run", "--input", str(log), "--lakehouse", str(lake), "--once"]) == exit_codes.UNUSABLE
    assert "was made by `rebalance explain`, which keeps no state to go on from" in capsys.readouterr().err


def test_a_folder_of_others_is_left_alone(capsys, log, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "a.png").write_bytes(b"x")
    code, _, (said,) = explained(capsys, log, "--keep", tmp_path / "photos")
    assert (code, "is no lakehouse, and not empty" in said) == (exit_codes.UNUSABLE, True)


# What cannot be explained.


def test_several_logs_are_explained_as_the_folder_that_has_no_other(capsys, tmp_path):
    """What a shell makes of `broker-*/*.log`. A log twice, or one of a folder that is given too, is read once."""
    folder = PROJECT / "tests" / "data" / "faults" / "dead-twice-both"
    logs = sorted(folder.glob("broker-*/*.gz"))
    code, together, _ = explained(capsys, *logs, logs[0], folder / "broker-1", "--format", "json", "--keep", tmp_path / "lake")
    assert (code, together) == explained(capsys, folder, "--format", "json")[:2]
    assert json.loads(together)["rebalances"]
    assert known_inputs(tmp_path / "lake") == [folder]
    broker_2, *_ = json.loads(explained(capsys, *folder.glob("broker-2/*.gz"), "--format", "json")[1])["clusters"]
    assert broker_2["sources"] == ["broker-2"]
    assert explained(capsys, logs[0], "-") == (exit_codes.UNUSABLE, "", ["- is standard input and must be the only path"])
    assert explained(capsys, logs[0], tmp_path / "no")[::2] == (exit_codes.UNUSABLE, [f"no such file or folder: {tmp_path / 'no'}"])


def test_what_is_not_there(capsys, tmp_path):
    code, out, said = explained(capsys, tmp_path / "nowhere")
    assert (code, out, said) == (exit_codes.UNUSABLE, "", [f"no such file or folder: {tmp_path / 'nowhere'}"])


@pytest.mark.parametrize("pipe", [False, True])
def test_an_empty_input(capsys, monkeypatch, tmp_path, pipe):
    (tmp_path / "empty.log").touch()
    piped(monkeypatch, "")
    code, out, said = explained(capsys, "-" if pipe else tmp_path / "empty.log")
    name = "standard input" if pipe else tmp_path / "empty.log"
    assert (code, out, said) == (exit_codes.UNUSABLE, "", [f"{name} is empty"])


def test_standard_input_that_is_closed(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    code, _, (said,) = explained(capsys, "-")
    assert (code, said) == (exit_codes.UNUSABLE, "standard input is closed: give PATH, or lines in a pipe")


@pytest.mark.parametrize("command", ["explain", "inspect"])
def test_a_named_pipe_is_read_to_its_end(capsys, tmp_path, log, command):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(log.read_bytes(),))
    writer.start()
    assert entry.main([command, str(pipe)]) == exit_codes.DONE
    writer.join()
    assert ("payments" if command == "explain" else "4 lines") in capsys.readouterr().out


def test_a_pipe_among_others_is_refused(capsys, tmp_path, log):
    os.mkfifo(tmp_path / "pipe")
    assert explained(capsys, log, tmp_path / "pipe") == (
        exit_codes.UNUSABLE,
        "",
        [f"{tmp_path / 'pipe'} is a pipe and must be the only path"],
    )


def test_no_line_is_understood(capsys, monkeypatch):
    piped(monkeypatch, "Dear all,\nthe consumers are slow again.\n")
    code, out, said = explained(capsys, "-")
    assert (code, out) == (exit_codes.NOTHING_UNDERSTOOD, "")
    assert said[0].startswith("nothing in standard input was understood")
    assert "`grep -i group server.log`" in said[0]


def test_no_answer_is_no_success(capsys, monkeypatch):
    error = '"error":"The coordinator is not aware of this member","clientId":"c1"'
    piped(
        monkeypatch, f'{{"level":"ERROR","timestamp":"2025-03-01T16:44:31.459Z","logger":"kafkajs","message":"[Connection] x",{error}}}\n'
    )
    code, out, said = explained(capsys, "-")
    assert (code, out) == (exit_codes.NOTHING_UNDERSTOOD, "")
    assert said[0].startswith("No answer: 1 line was read")


TIMELESS = '[thrd:main]: Group "orders": querying for coordinator: intervaled in state wait-broker'
UNKNOWN = (
    '{"level":"ERROR","message":"[[orders] {}:] Error sending heartbeat: Kafka::UnknownMemberId","timestamp":"2026-11-21T05:16:04+00:00"}'
)


@pytest.mark.parametrize(
    ("line", "wrong", "steps"),
    [
        (TIMELESS, "its lines have no date and no time", ["`kubectl logs --timestamps`"]),
        (f"06:16:04.117 [info] {TIMELESS}", "its lines have a time, but no date", ["`sed 's/^/2026-01-31 /' FILE | rebalance explain -`"]),
        (f"21/11/2026 06:16:04 {TIMELESS}", "its dates can be read in several ways", ["write the date as 2026-01-31"]),
        (UNKNOWN, "its lines are about a group, and none is in words", ["such as: ", "of 2026-11-21 05:16:04 and just before"]),
        ("2026-11-21 05:16:04 INFO app: 17 orders", "none of its lines is about a consumer group", []),
    ],
)
def test_why_an_excerpt_has_no_answer_and_what_to_copy(capsys, monkeypatch, line, wrong, steps):
    piped(monkeypatch, f"{line}\n" * 2)
    code, out, said = explained(capsys, "-")
    assert (code, out) == (exit_codes.NOTHING_UNDERSTOOD, "")
    assert wrong in said[0]
    assert all(any(step in text for text in said[1:]) for step in steps)


def test_why_a_log_that_is_packed_has_no_answer(capsys, tmp_path):
    (tmp_path / "app.log.gz").write_bytes(gzip.compress(f"{UNKNOWN}\n".encode()))
    code, _, said = explained(capsys, tmp_path / "app.log.gz")
    assert code == exit_codes.NOTHING_UNDERSTOOD
    assert "its lines are about a group, and none is in words" in said[0]


def test_lines_without_their_times_beside_other_logs(capsys, log):
    """In which order the lines of two logs were written, only times say."""
    line = "INFO:kafka.coordinator:Successfully joined group orders with generation 3"
    app = log.with_name("app.log")
    app.write_text(f"{line}\n" * 3)
    _, _, said = explained(capsys, log, app)
    lead = "3 of 7 lines that may be about groups (43%) have no date or no time, so they were left out, such as"
    assert said[0] == f"{lead} app.log:1, NO_TIMESTAMP: {line}"


def test_lines_whose_dates_have_no_year(capsys, log):
    line = "MAXPOLL [thrd:main]: Application maximum poll interval (300000ms) exceeded by 399ms (adjust it): leaving group"
    app = log.with_name("app.log")
    app.write_text(f"  Mar 01 00:47:06.807  WARN librdkafka: librdkafka: {line}\n")
    _, _, said = explained(capsys, log, app)
    assert said[0].startswith("1 of 5 lines that may be about groups (20%) have a date without a year, so they were left out")
    assert "sed -E 's/[A-Z][a-z]{2} +[0-9]+ ([0-9:]{8})/2026-01-31 \\1/' FILE" in said[1]


def test_a_folder_without_logs_in_a_pipe(capsys, monkeypatch):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("notes.txt", "x")
    piped(monkeypatch, packed.getvalue())
    code, _, (said,) = explained(capsys, "-")
    assert (code, said.partition(":")[0]) == (exit_codes.UNUSABLE, "no log files in standard input")


def test_the_demo_and_the_readme_count_the_groups_of_the_recording(recorded_lakehouse):
    groups = len(read_report(recorded_lakehouse(f"recordings/{demo.RECORDING.name}")).groups)
    assert f"{groups} consumer groups" in demo.demo.help
    assert f"{groups} consumer groups" in (PROJECT / "README.md").read_text()


def test_files_that_are_cut_off_or_cannot_be_read(capsys, log, tmp_path):
    folder = tmp_path / "logs" / "broker-1"
    folder.mkdir(parents=True)
    log.rename(folder / "server.log")
    (folder / "server.log.1.gz").write_bytes(gzip.compress(EXCERPT.replace("06:16", "06:15").encode())[:-40])
    (folder / "server.log.2").symlink_to(tmp_path / "gone")
    code, out, said = explained(capsys, tmp_path / "logs")
    assert (code, "SESSION_TIMEOUT" in out) == (exit_codes.PARTLY_READ, True)
    assert any("1 file damaged, read up to there: the gzip data ends in the middle: " in line for line in said)
    assert any("1 file not read" in line for line in said)


def test_lines_that_are_not_understood_are_shown(capsys, log):
    log.write_text(EXCERPT + EXCERPT.splitlines()[0].replace("has failed", "has quarrelled") + "\n")
    _, _, said = explained(capsys, log)
    assert said[0].startswith("1 of 5 lines that may be about groups (20%) were not understood, such as pasted.log:5, UNKNOWN_TEMPLATE")
    assert not any("rebalance ask" in line for line in said)


def test_a_stage_that_fails_is_told_in_one_line(capsys, monkeypatch, log):
    def fail(*_):
        raise ValueError("a bug")

    monkeypatch.setattr(shards.Shard, "observe", fail)
    code, out, said = explained(capsys, log)
    assert (code, out) == (exit_codes.FAILED, "")
    assert said[-1].startswith("track failed: TrackerError: cluster 'default', shard ")
    assert ": ValueError: a bug (among " in said[-1]


# Large inputs, and signals.


def test_a_large_input_goes_to_the_pipeline(capsys, monkeypatch, log):
    taken = []

    def run(source, folder, **options):
        taken.append((source, options["once"], [path.name for path in (folder / "_spool" / "slices").iterdir()]))
        counts = dict.fromkeys(("lines_read", "skipped", "events", "quarantined", "rebalances", "findings"), 0)
        return RunResult(counts, counts, 1.0, signal=signal.SIGINT)

    monkeypatch.setattr(at_once, "MOST_LINES", 3)
    monkeypatch.setattr(pipeline, "run", run)
    code, out, said = explained(capsys, log)
    assert (code, out, taken) == (128 + signal.SIGINT, "", [(log, True, ["slice-000000001.parquet"])])
    assert said == [
        f"{log} has more than 3 lines: Spark reads them, as in `rebalance run`",
        "stopped before the end of the input",
        "pasted.log is a log of broker-1, by its lines",  # seen before: the run looks at a file once
    ]


def test_sigterm_removes_what_the_command_made_for_itself(tmp_path):
    with pytest.raises(SystemExit) as ended, removing_on_sigterm(), tempfile.TemporaryDirectory(dir=tmp_path):
        os.kill(os.getpid(), signal.SIGTERM)
    assert (ended.value.code, list(tmp_path.glob("tmp*"))) == (128 + signal.SIGTERM, [])


def test_nothing_is_imported_that_only_a_run_needs(log):
    """Imports are most of the two seconds that thousands of lines take."""
    script = (
        "import sys; from jobs.cli import main; code = main(['explain', sys.argv[1]]);"
        "print(code, [name for name in ('pandas', 'confluent_kafka', 'asyncio') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script, log], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0 []"
