"""`rebalance watch`: on a terminal, in a pipe, and how it ends."""

import fcntl
import io
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from rich.console import Console

from jobs.answers.news import News
from jobs.cli import watch
from jobs.cli.output.watch_text import JsonOutput, PlainOutput, ScreenOutput
from tests.effort import every, long
from tests.lakehouse.rows import DAY, MEMBER, empty_lakehouse, finding, line, provisional, rebalance, stopped, write
from tests.security import hostile
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "jobs.cli", "watch", "--lakehouse"]
JOINED = {"start": 5_000, "joined_at": DAY + 5_500, "generation": 2, "client_id": "app-1", "members_before": 3, "members_after": 2}

MARKS = "● rebalance, at its end   ○ one that later lines may change   ▲ finding   STARTUP: of a group that was new or empty"
HEADING = f"2026-11-21 UTC   {MARKS}"


@pytest.fixture
def lakehouse(tmp_path):
    folder = empty_lakehouse(tmp_path / "lake")
    write(folder, line(), batch=0)
    return folder


@pytest.fixture
def at_once(monkeypatch):
    """No pause between two looks."""
    monkeypatch.setattr(watch, "_LOOK_SECONDS", 0)


def watched(lakehouse, output, *steps):
    """Follows a lakehouse to which something happens before each look but the first."""
    left = list(steps)

    def stopped():
        if not left:
            return True
        left.pop(0)()
        return False

    with output:
        watch.follow(News(lakehouse), lakehouse, output, stopped=stopped)


def history(lakehouse):
    """A rebalance that is provisional, then another cause is known, with a finding, then it is final; and another that is confirmed."""
    return (
        lambda: None,
        lambda: write(lakehouse, provisional("ANSWERS", cause="UNKNOWN", **JOINED), batch=1),
        lambda: write(lakehouse, provisional("STORAGE", cause="SESSION_TIMEOUT", **JOINED), finding(client_id="app-2"), batch=2),
        lambda: write(lakehouse, rebalance(cause="SESSION_TIMEOUT", **JOINED), provisional(start=60_000), batch=3),
        lambda: write(lakehouse, rebalance(start=60_000), batch=4),
    )


@pytest.mark.usefixtures("at_once")
def test_a_pipe_gets_a_line_for_each_item_and_each_correction(lakehouse):
    said, complaints = io.StringIO(), []
    watched(lakehouse, PlainOutput(Console(file=said), complaints.append), *history(lakehouse))
    lines = said.getvalue().splitlines()
    assert lines[0] == HEADING
    assert [line.split(maxsplit=2)[1] + re.sub(r" {2,}", "|", line)[10:] for line in lines[1:]] == [
        "○ payments|UNKNOWN|app-1|2.0 s|members 3 -> 2|(may change: its last lines not read yet)",
        "▲ payments|app-2 missed the session timeout|SESSION_TIMEOUT|f5c774eb291c|It went silent.",
        "○ payments|SESSION_TIMEOUT|app-1|2.0 s|members 3 -> 2|(may change: no line yet that its assignment was stored)",
        "○ payments|MEMBER_JOINED|-|2.0 s|members ? -> ?|(may change: its last lines not read yet)",
    ]
    assert complaints == []


@pytest.mark.usefixtures("at_once")
def test_lines_come_in_the_order_of_the_times_that_they_show(lakehouse):
    """The longer rebalance began first and ended last; the finding came while it went on."""
    longer = rebalance("orders", start=1_000, total=50_000)
    write(lakehouse, longer, rebalance(start=10_000, total=2_000), finding(occurred_at=DAY + 30_000), batch=1)
    said = io.StringIO()
    watched(lakehouse, PlainOutput(Console(file=said)), lambda: None)
    lines = [line.split()[:3] for line in said.getvalue().splitlines()[1:]]
    assert lines == [["00:00:12", "●", "payments"], ["00:00:30", "▲", "payments"], ["00:00:51", "●", "orders"]]


def moved(group, at, members_lost=(), *, source="1", target="2"):
    """The finding that a group left a broker, or lost members because of it."""
    details = json.dumps({"from_broker": source, "to_broker": target, "members_lost": list(members_lost)}, separators=(",", ":"))
    message = {"message": f"The group moved from broker {source} to broker {target}.", "severity": "WARNING"}
    return finding(group_id=group, occurred_at=DAY + at, code="COORDINATOR_MOVED", details=details, **message)


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("is_terminal", [False, True])
def test_lines_say_what_the_report_says(lakehouse, is_terminal):
    """A start-up by its name, whom a rebalance is blamed on, and what a broker did to its groups in one line."""
    first = rebalance("g1", start=10_000, members_before=0, members_after=2, client_id="app-1")
    ended = rebalance("g2", start=21_000, generation=5, left=[MEMBER], client_id="app-1", members_before=3, members_after=2)
    steps = [
        lambda: write(lakehouse, first, ended, stopped(of=ended, reread_min=0, reread_max=133, lag_added=1_350), batch=1),
        lambda: write(lakehouse, *(moved(f"g{n}", 20_000 + n, [MEMBER] * (n == 2)) for n in range(6)), batch=2),
        lambda: write(lakehouse, moved("other", 20_900), batch=3),
    ]
    said = io.StringIO()
    console = Console(file=said, force_terminal=is_terminal, width=170, color_system=None, legacy_windows=False)
    watched(lakehouse, ScreenOutput(console, "") if is_terminal else PlainOutput(console), *steps)
    assert [re.sub(r" {2,}", "|", re.sub(r"\b[rf][0-9a-f]{11}\b", "ID", line)).rstrip() for line in screen(said.getvalue())[1:]] == [
        "00:00:12|● g1|STARTUP|app-1|2.0 s|members 0 -> 2|ID",
        "00:00:23|● g2|MEMBER_JOINED|app-1|2.0 s|members 3 -> 2|ID|up to 133 records read twice, lag about +1,350",
        "00:00:20|▲ 6 groups|6 groups moved to another broker (broker 1)|COORDINATOR_MOVED|ID|g0, g1, g2, g3 and 2 more",
        "00:00:23|● g2|COORDINATOR_MOVED|broker 1|2.0 s|members 3 -> 2|ID|(corrected)",
        "00:00:20|▲ other|other moved to another broker (broker 1)|COORDINATOR_MOVED|ID|The group moved from broker 1 to broker 2.",
    ]


@pytest.mark.usefixtures("at_once")
def test_groups_that_leave_a_broker_and_come_back_to_it_are_counted_once_and_told_at_both_times(lakehouse):
    """And so are those that leave it a second time."""
    away = [moved(f"g{n}", 20_000 + n) for n in range(3)]
    back = [moved(f"g{n}", 70_000 + n, source="2", target="1") for n in range(3)]
    write(lakehouse, *away, *back, *(moved(f"g{n}", 900_000 + n) for n in range(2)), batch=1)
    said = io.StringIO()
    watched(lakehouse, PlainOutput(Console(file=said)), lambda: None)
    assert [re.split(r" {2,}", line)[:2] for line in said.getvalue().splitlines()[1:]] == [
        ["00:00:20", "▲ 3 groups"],
        ["00:01:10", "▲ 3 groups"],
        ["00:15:00", "▲ 2 groups"],
    ]


@pytest.mark.usefixtures("at_once")
def test_programs_get_each_row_as_an_object_with_the_id_of_the_one_that_it_replaces(lakehouse, capsys):
    watched(lakehouse, JsonOutput(Console()), *history(lakehouse))
    rows = [json.loads(text) for text in capsys.readouterr().out.splitlines()]
    assert [(row["table"], row.get("waits_for"), row.get("cause")) for row in rows] == [
        ("rebalances", "ANSWERS", "UNKNOWN"),
        ("findings", None, None),
        ("rebalances", "STORAGE", "SESSION_TIMEOUT"),
        ("rebalances", None, "SESSION_TIMEOUT"),
        ("rebalances", "ANSWERS", "MEMBER_JOINED"),
        ("rebalances", None, "MEMBER_JOINED"),
    ]
    first, _, second, last, other, confirmed = rows
    assert [row["replaces"] for row in rows] == [None, None, first["id"], second["id"], None, other["id"]]
    assert (last["started_at"], last["evidence"]) == ("2026-11-21T00:00:05.000Z", [])
    assert confirmed["id"] == other["id"]


@pytest.mark.usefixtures("at_once")
def test_a_terminal_keeps_provisional_rows_below_the_final_ones(lakehouse):
    said = io.StringIO()
    console = Console(file=said, force_terminal=True, width=160, height=8, color_system=None, legacy_windows=False)
    many = [provisional(group=f"g{n}", start=60_000 + n, generation=n) for n in range(9)]
    steps = [*history(lakehouse), lambda: write(lakehouse, *many, batch=5)]
    watched(lakehouse, ScreenOutput(console, "Watching"), *steps)
    shown = screen(said.getvalue())
    assert [re.sub(r"\br[0-9a-f]{11}$", "ID", re.sub(r" {2,}", "|", line)) for line in shown] == [
        re.sub(r" {2,}", "|", HEADING),
        "00:00:00|▲ payments|app-2 missed the session timeout|SESSION_TIMEOUT|f5c774eb291c|It went silent.",
        "00:00:07|● payments|SESSION_TIMEOUT|app-1|2.0 s|members 3 -> 2|ID",
        "00:01:02|● payments|MEMBER_JOINED|-|2.0 s|members ? -> ?|ID",
        "… 5 older provisional rebalances",
        *(f"00:01:02|○ g{n}|MEMBER_JOINED|-|2.0 s|members ? -> ?|(may change: its last lines not read yet)" for n in range(5, 9)),
    ]


def screen(text):
    """The lines that a terminal shows after what was written: of its sequences only those that move up and erase a line matter here."""
    lines, row = [""], 0
    for part in re.findall(r"\x1b\[\??\d*[A-Za-z]|\r|\n|[^\x1b\r\n]+", text):
        if part == "\n":
            row += 1
            lines += [""] * (row + 1 - len(lines))
        elif part.endswith("A") and part.startswith("\x1b"):
            row -= int(part[2:-1] or 1)
        elif part == "\x1b[2K":
            lines[row] = ""
        elif part[0] not in "\x1b\r":
            lines[row] += part
    return [line.rstrip() for line in lines if line.strip()]


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("kind", every(len(hostile.NAMES), hostile.NAMES))
def test_names_are_shown_inert(lakehouse, capsys, kind):
    name = hostile.NAMES[kind].encode("utf-8", "replace").decode()
    rows = [rebalance(name, client_id=name), provisional(group=name, start=9_000, client_id=name), finding(group_id=name, client_id=name)]
    write(lakehouse, *rows, batch=1)
    for terminal in (False, True):
        said = io.StringIO()
        console = Console(file=said, force_terminal=terminal, width=200, color_system=None, legacy_windows=False)
        watched(lakehouse, ScreenOutput(console, name) if terminal else PlainOutput(console), lambda: None)
        assert not hostile.harm_in("".join(screen(said.getvalue())))
        assert len(screen(said.getvalue())) == 4
    watched(lakehouse, JsonOutput(Console()), lambda: None)
    lines = capsys.readouterr().out.splitlines()
    assert all(text.isascii() and text.isprintable() for text in lines)
    assert {json.loads(text)["group_id"] for text in lines} == {name}


@pytest.mark.usefixtures("at_once")
def test_it_says_once_why_nothing_comes(tmp_path):
    lake, complaints, said = tmp_path / "lake", [], io.StringIO()

    def made():
        empty_lakehouse(lake)
        write(lake, line(), rebalance("a"), batch=1)

    steps = [lambda: None, lambda: None, made, (lake / "_lock").touch, lambda: None]
    watched(lake, PlainOutput(Console(file=said), complaints.append), *steps)
    assert complaints == [
        f"Waiting for the lakehouse {lake}: `rebalance run` creates it.",
        f"No pipeline is writing to {lake}. Start `rebalance run` again.",
    ]
    assert said.getvalue().count("MEMBER_JOINED") == 1


def test_ctrl_c_ends_it_on_a_terminal(lakehouse):
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 500, 0, 0))
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "500"}  # what it waits for is at the end of a line
    process = subprocess.Popen([*COMMAND, str(lakehouse)], cwd=PROJECT, env=environment, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    try:
        text = read_until(master, "Ctrl-C ends it")
        write(lakehouse, provisional("STORAGE", cause="UNKNOWN", **JOINED), batch=1)
        text += read_until(master, "no line yet that its assignment was stored")
        write(lakehouse, rebalance(cause="MEMBER_LEFT", **JOINED), batch=2)
        text += read_until(master, "MEMBER_LEFT")
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_SECONDS) == 0
        text += read_until(master, "\x1b[?25h")  # the cursor is there again
        plain = re.sub(r"\x1b\[[\d;]*m", "", text)
        assert [line.split()[1:4] for line in screen(plain)[1:]] == [["●", "payments", "MEMBER_LEFT"]]
    finally:
        process.kill()
        os.close(master)


def read_until(descriptor, wanted):
    """What a terminal shows until it shows this."""
    text, deadline = b"", time.monotonic() + PATIENCE_SECONDS
    while wanted.encode() not in text:
        left = deadline - time.monotonic()  # of all reads: a terminal that is refreshed always has something to read
        shows_more = left > 0 and select.select([descriptor], [], [], left)[0]
        assert shows_more, f"{wanted!r} did not come: {text!r}"
        text += os.read(descriptor, 65_536)
    return text.decode()


@pytest.mark.parametrize("number", [long(signal.SIGINT), signal.SIGTERM])
def test_a_signal_ends_it_in_a_pipe(lakehouse, number):
    process = subprocess.Popen([*COMMAND, str(lakehouse)], cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    write(lakehouse, rebalance(), batch=1)
    assert process.stdout.readline() == f"{HEADING}\n"
    assert "payments" in process.stdout.readline()
    process.send_signal(number)
    assert (process.wait(PATIENCE_SECONDS), process.stdout.read(), process.stderr.read()) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "count"), [long("watch --format text", 1), ("watch --format json", 1), ("report --limit 2000", 2_000)]
)
def test_a_reader_that_goes_away_is_no_error(lakehouse, arguments, count):
    """`watch` ends although nothing more comes."""
    write(lakehouse, *(rebalance(start=n * 1_000, generation=n) for n in range(count)), batch=1)
    command = [sys.executable, "-m", "jobs.cli", *arguments.split(), "--lakehouse", str(lakehouse)]
    process = subprocess.Popen(command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline()
    process.stdout.close()
    assert (process.wait(PATIENCE_SECONDS), process.stderr.read()) == (0, "")
