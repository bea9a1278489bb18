"""Committed offsets beside other evidence change nothing that it shows, and alone they show no group."""

import base64
import json
from pathlib import Path

import pytest

from jobs.answers.report import Scope, read_report
from jobs.common.settings import Settings
from jobs.lakehouse.reader import table_rows
from jobs.pipeline import at_once
from schemas.names import READABLE
from tests.answers.asking import asked

pytestmark = pytest.mark.slow

RECORDS = Path(__file__).parents[1] / "data" / "offsets" / "kafka-4.2.0.jsonl"
VALUE = "AAMAAAABAAAABwAAAAUABG5vdGUAAAGiFwJ5fw=="
OF_OFFSETS = {"group_events", "input_lines", "rebalance_offsets"}


def commit_of(group, line):
    """A line with a committed offset a while after another one."""
    key = base64.b64encode(b"\x00\x01" + len(group).to_bytes(2, "big") + group + b"\x00\x01t\x00\x00\x00\x03").decode()
    return json.dumps({**line, "timestamp": line["timestamp"] + 500, "key": key, "value": VALUE})


def lake_of(folder, records, polls):
    for name, lines in (("offsets", records), ("poll", polls)):
        path = folder / "input" / "c" / name / "x.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("\n".join(lines) + "\n")
    assert at_once.process(folder / "input", folder / "lake", settings=Settings(shards=2), most_lines=1 << 30)
    return folder / "lake"


def poll(at_ms, **line):
    return json.dumps({"timestamp": at_ms, "group": "polled", **line})


@pytest.fixture(scope="module")
def lakes(tmp_path_factory):
    """Records of the group g and polls of another one; and beside them the offsets of both, and of a third."""
    header, *records = RECORDS.read_text().splitlines()
    times = [json.loads(line)["timestamp"] for line in records]
    polls = [poll(times[0], type="classic", state="Empty", members=[]), poll(times[-1], type="classic", state="Dead", members=[])]
    # In place of an offset stands a line that says nothing, so that all others keep their places.
    silent = [json.dumps({"timestamp": at_ms + 500, "read": 1}) for at_ms in times for _ in (b"g", b"other")]
    told = [commit_of(group, json.loads(line)) for line in records for group in (b"g", b"other")]
    polled = [poll(at_ms + 500, offsets={"t-3": [7, at_ms]}) for at_ms in times]
    folder = tmp_path_factory.mktemp("offsets")
    return [
        lake_of(
            folder / name,
            [header, *(line for at, line in enumerate(records) for line in (line, *beside[2 * at : 2 * at + 2]))],
            [polls[0], *some, polls[1]],
        )
        for name, beside, some in (("without", silent, silent[::2]), ("with", told, polled))
    ]


@pytest.mark.parametrize("table", sorted({*READABLE} - OF_OFFSETS))
def test_they_change_no_other_table(lakes, table):
    without, beside = (sorted(json.dumps(row, sort_keys=True, default=str) for row in table_rows(lake / table)) for lake in lakes)
    assert beside == without


def test_each_is_a_row(lakes):
    rows = [row for row in table_rows(lakes[1] / "group_events") if row["offsets"]]
    assert len(rows) == 15
    assert {(row["kind"], row["group_id"]) for row in rows} == {
        ("OFFSETS_STORED", "g"),
        ("OFFSETS_STORED", "other"),
        ("OFFSETS_POLLED", "polled"),
    }


def test_alone_they_show_no_group(lakes):
    without, beside = ([(row["group_id"], row["state"]) for row in asked(lake, "groups")] for lake in lakes)
    assert beside == without
    assert "other" not in dict(beside)
    assert asked(lakes[0], "states") == asked(lakes[1], "states")
    assert read_report(lakes[0], Scope()).groups == read_report(lakes[1], Scope()).groups
