"""The lines that prove a row: over logs and tables written by hand, no JVM."""

import gzip
import json

import pytest

from jobs.answers import evidence
from jobs.cli import entry
from jobs.common.errors import EvidenceError
from jobs.common.exit_codes import UNUSABLE
from jobs.common.settings import Settings
from jobs.lakehouse import folder as lakehouses
from jobs.pipeline import run
from tests.answers.asking import asked
from tests.lakehouse.rows import DAY, HOSTILE, MEMBER, empty_lakehouse, finding, line, provisional, rebalance, row, transition, write

pytestmark = pytest.mark.slow

LINES = [f"[2026-11-21 02:00:{second:02d},{second:03d}] INFO line {second + 1} (kafka.Log)" for second in range(10)]
ORIGIN = "c/b1/server.log"


@pytest.fixture
def logs(tmp_path):
    folder = tmp_path / "logs"
    (folder / "c" / "b1").mkdir(parents=True)
    (folder / ORIGIN).write_text("".join(f"{text}\n" for text in LINES))
    return folder


@pytest.fixture
def lake(tmp_path, logs):
    """A finding that lines 3 and 7 prove. Zones of whole minutes do not matter."""
    folder = empty_lakehouse(tmp_path / "lake")
    refs = [{"source": "coordinator", "origin": ORIGIN, "position": number} for number in (3, 7)]
    write(
        folder,
        *(line(at=second * 1_001, origin=ORIGIN, position=second + 1) for second in range(10)),
        finding(occurred_at=DAY + 5, member_id=MEMBER, client_id="app-1", evidence=json.dumps(refs)),
        rebalance(start=1_000, reason="it had to be", evidence=json.dumps(refs[:1])),
        row("member_sessions", group_id="payments", member_id=MEMBER, end_kind="LEFT", evidence=json.dumps(refs[1:])),
        transition("Empty", 7, 1),
    )
    (folder / "_checkpoints").mkdir()
    lakehouses.remember_input(lakehouses.Lakehouse(folder), logs)
    return folder


def id_of(lake, question="findings"):
    return asked(lake, question)[0]["id"]


def shown(lake, capsys, *arguments, row_id=None, code=0):
    assert entry.main(["evidence", row_id or id_of(lake), "--lakehouse", str(lake), *map(str, arguments)]) == code
    return capsys.readouterr()


def texts(lake, *inputs, row_id=None):
    (proof,) = evidence.prove(lake, row_id or id_of(lake), inputs)
    return [found.text for found in proof.lines]


WRAPS = (
    lambda text: f"2026-11-21T02:30:00.999999999Z stdout F {text}",
    lambda text: json.dumps({"log": f"{text}\n", "time": "2026-11-21T02:30:00.999999999Z"}),
    lambda text: json.dumps({"timestamp": 1795241359999, "message": text}),
    lambda text: f"2026-11-21T02:30:59.999+01:00 {text[1:24]} INFO  [main] kafka.Log - a text",
    lambda text: f"<{text[12:24]}> of a pattern that the user named",
)


def test_lines_are_shown_with_what_stands_around_them(lake, logs):
    for wrap in WRAPS:
        wrapped = [wrap(text) for text in LINES]
        (logs / ORIGIN).write_text("".join(f"{text}\n" for text in wrapped))
        assert texts(lake, logs) == [wrapped[2], wrapped[6]]
        (logs / ORIGIN).write_text("".join(f"{text}\n" for text in wrapped[1:]))
        assert texts(lake, logs) == [None, None]


def test_the_lines_are_printed_under_their_places(lake, capsys):
    out = shown(lake, capsys).out
    assert "ERROR SESSION_TIMEOUT  c/payments  2026-11-21 00:00:00.005 UTC  app-1 d5592b52" in out
    assert "  Advice: Look at it.\n" in out
    assert f"{ORIGIN}:3\n  {LINES[2]}\n" in out
    assert f"{ORIGIN}:7\n  {LINES[6]}\n" in out


def test_a_provisional_row_says_what_it_waits_for(lake, capsys):
    refs = json.dumps([{"source": "coordinator", "origin": ORIGIN, "position": 3}])
    write(lake, provisional("STORAGE", start=3_000, generation=2, evidence=refs), batch=1)
    out = shown(lake, capsys, row_id=id_of(lake, "rebalances")).out
    assert "COMPLETED after 2.0 s, generation 2\n  May change: no line yet that its assignment was stored\n" in out


def test_rows_of_all_tables_have_their_lines(lake, capsys):
    assert "COMPLETED after 2.0 s, generation 1\n  Reason: it had to be\n" in shown(lake, capsys, row_id=id_of(lake, "rebalances")).out
    steps = {step["what"]: step["id"] for step in asked(lake, "timeline")}
    assert (
        f"membership ended LEFT  c/payments  2026-11-21 00:00:00.000 UTC  {MEMBER[-36:-28]}"
        in shown(lake, capsys, row_id=steps["member gone"]).out
    )
    assert "> Empty" in shown(lake, capsys, row_id=steps[" > Empty"]).out


def test_a_rebalance_names_what_it_is_blamed_on_and_what_it_began_with(lake, capsys):
    write(lake, finding(code="SLOW_JOINER", client_id="app-2", member_id="app-2-m", occurred_at=DAY + 2_500), batch=1)
    told = shown(lake, capsys, row_id=id_of(lake, "rebalances")).out
    assert "rebalance SLOW_JOINER  c/payments  2026-11-21 00:00:01.000 UTC  app-2 app-2-m" in told
    assert "generation 1\n  It began with MEMBER_JOINED, -; see the finding " + id_of(lake) in told


def test_the_beginning_of_an_id_is_enough_if_it_is_of_one_row(lake):
    assert texts(lake, lakehouses.known_inputs(lake)[0], row_id=id_of(lake)[:5]) == [LINES[2], LINES[6]]


def test_an_id_of_many_rows_names_them(lake):
    many = [finding(occurred_at=DAY + n, member_id=str(n)) for n in range(1_000)]
    write(lake, *many, batch=1)
    ids = [found["id"] for found in asked(lake, "findings", limit="2000")]
    begin = next(one[:4] for one in ids if sum(other.startswith(one[:4]) for other in ids) > 1)
    with pytest.raises(EvidenceError, match="begins several ids"):
        evidence.prove(lake, begin, [])


def test_what_is_no_id_and_an_id_of_nothing(lake):
    for wrong in ("", "x123456", "f", "f12", "F1234567", "'; DROP", "\x1b[31m", "f%%%%"):
        with pytest.raises(EvidenceError, match="is not an id"):
            evidence.prove(lake, wrong, [])
    with pytest.raises(EvidenceError, match="no finding has the id f00000000000"):
        evidence.prove(lake, "f00000000000", [])


def test_rows_that_say_the_same_share_an_id_and_are_all_shown(lake, logs):
    write(lake, finding(occurred_at=DAY + 5, member_id=MEMBER, message="Again."), batch=1)
    assert len(evidence.prove(lake, id_of(lake), [logs])) == 2


@pytest.mark.parametrize("name", ["server.log.2026-11-21-02", "server.log.1", "server-1.log", "server.log.3.gz"])
def test_a_log_that_was_rotated_is_still_found(lake, logs, capsys, name):
    text = (logs / ORIGIN).read_bytes()
    (logs / ORIGIN).write_text("".join(f"[2026-11-21 03:00:30,{n:03d}] INFO another (kafka.Log)\n" for n in range(10)))
    (logs / ORIGIN).with_name(name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    assert texts(lake, logs) == [LINES[2], LINES[6]]
    assert f"{ORIGIN}:3  (now in {name})" in shown(lake, capsys).out


def test_another_line_in_its_place_is_no_evidence(lake, logs, capsys):
    (logs / ORIGIN).write_text("".join(f"{text}\n" for text in [*LINES[:4], LINES[3], LINES[3], LINES[3]]))
    out, err = shown(lake, capsys, code=UNUSABLE)
    assert LINES[2] in out
    assert "(not found:" in out
    assert "1 of 2 lines were not found" in err


def test_logs_that_are_gone(lake, logs, capsys, tmp_path):
    (logs / ORIGIN).unlink()
    assert "no log files in" in shown(lake, capsys, code=UNUSABLE).err
    assert "no log files in" in shown(lake, capsys, "--input", tmp_path / "nowhere", code=UNUSABLE).err


def test_a_lakehouse_that_does_not_know_its_logs(lake, logs, capsys):
    for content in (None, "not json", '{"a": 1}', "[1]"):
        path = lakehouses.Lakehouse(lake).inputs
        path.unlink() if content is None else path.write_text(content)
        assert "give --input DIR" in shown(lake, capsys, code=UNUSABLE).err
    assert LINES[2] in shown(lake, capsys, "--input", logs).out


def test_inputs_are_remembered_the_last_one_first(tmp_path):
    house = lakehouses.Lakehouse(tmp_path)
    house.inputs.parent.mkdir()
    for number in [*range(30), 20]:
        lakehouses.remember_input(house, tmp_path / str(number))
    known = [path.name for path in lakehouses.known_inputs(tmp_path)]
    assert known[:4] == ["20", "29", "28", "27"]
    assert len(known) == len(set(known)) == 16


def test_a_run_remembers_its_input_even_if_it_comes_to_nothing(tmp_path, logs):
    def stop(progress):
        if progress.stage.startswith("starting Spark"):
            raise RuntimeError("stop here")

    with pytest.raises(RuntimeError, match="stop here"):
        run.run(logs, tmp_path / "new", settings=Settings(), once=True, spark=object(), show=stop)
    assert lakehouses.known_inputs(tmp_path / "new") == [logs]


def test_what_a_line_holds_is_escaped_and_cut(lake, logs, capsys):
    dirty = f"[2026-11-21 02:00:02,002] INFO {HOSTILE}".replace("\n", "\r").encode() + b"\xff<script>\x00"
    (logs / ORIGIN).write_bytes(b"\n\n" + dirty + b"\r\n" + b"".join(f"{text}\n".encode() for text in LINES[3:]))
    out = shown(lake, capsys, "--chars", "300").out
    assert "\\x1b[31mred" in out
    assert "\x1b" not in out
    assert "\r" not in out
    assert len(out) < 2_000
    found = json.loads(shown(lake, capsys, "--format", "json").out)
    assert found[0]["lines"][0]["text"].endswith("\ufffd<script>\x00")


def test_json_is_the_row_with_its_lines(lake, logs, capsys):
    out = shown(lake, capsys, "--format", "json").out
    assert out.isascii()
    (found,) = json.loads(out)
    assert (found["code"], found["occurred_at"], found["details"]) == ("SESSION_TIMEOUT", "2026-11-21T00:00:00.005Z", {})
    assert found["lines"][1] == {"source": "coordinator", "origin": ORIGIN, "position": 7, "file": str(logs / ORIGIN), "text": LINES[6]}
    assert not {"evidence", "batch_id"} & set(found)


def test_a_heartbeat_among_others_is_found_by_its_arrival(tmp_path, logs):
    folder = empty_lakehouse(tmp_path / "other")
    refs = [{"source": "request", "origin": ORIGIN, "position": number} for number in (2, 4, 6)]
    beats = line(
        at=1_001, kind="HEARTBEAT", origin=ORIGIN, position=2, positions=[2, 4, 6], beats=[0, 1_950, 3_800],
    )  # fmt: skip
    write(folder, beats, finding(evidence=json.dumps(refs)))
    # Line 4 was written 52 ms after its arrival; line 6 would have been 204 ms late: it is another line.
    assert texts(folder, logs) == [LINES[1], LINES[3], None]


def test_one_file_as_input(tmp_path, logs):
    folder = empty_lakehouse(tmp_path / "other")
    ref = {"source": "coordinator", "origin": "server.log", "position": 10}
    write(folder, line(), finding(evidence=json.dumps([ref])))
    assert texts(folder, logs / ORIGIN) == [LINES[9]]  # no time is known of it: the name alone decides
    assert texts(folder, logs) == [None]


def test_all_findings_of_an_entry_are_shown(lake, capsys):
    """A removed member that is refused later belongs to the entry of its removal, another group's finding does not."""
    refs = json.dumps([{"source": "coordinator", "origin": ORIGIN, "position": 9}])
    later = {"code": "UNKNOWN_MEMBER", "member_id": MEMBER, "client_id": "app-1", "evidence": refs}
    write(lake, finding(occurred_at=DAY + 9_000, **later), finding(group_id="other", occurred_at=DAY + 9_000, **later), batch=1)
    first = next(found["id"] for found in asked(lake, "findings") if found["code"] == "SESSION_TIMEOUT")
    out = shown(lake, capsys, row_id=first).out
    assert f"Its entry in the report has 1 more finding: `rebalance evidence {first} --entry` shows all." in out
    out = shown(lake, capsys, "--entry", row_id=first).out
    assert [text.split()[2] for text in out.splitlines() if text[:1] == "f"] == ["SESSION_TIMEOUT", "UNKNOWN_MEMBER"]
    assert LINES[8] in out
    assert "c/other" not in out
    assert "more finding" not in out
    assert "neither a finding nor an incident" in shown(lake, capsys, "--entry", row_id=id_of(lake, "rebalances"), code=2).err


def test_the_entry_of_a_crash_that_no_finding_tells_is_the_line_about_it(lake, capsys):
    at = {"origin": ORIGIN, "position": 10}
    write(lake, line(at=1, source="coordinator"), line(None, 9_009, kind="BROKER_UNCLEAN", source="broker", **at), batch=1)
    crash = id_of(lake, "incidents")
    out = shown(lake, capsys, "--entry", row_id=crash).out
    assert out.startswith(f"{crash}  WARNING BROKER_CRASHED")
    assert LINES[9] in out
    assert LINES[2] not in out
