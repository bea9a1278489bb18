"""Whatever happened to the bytes of an input: what can still be read is read, a loss is told in a line and a code, and nothing fails."""

import io
import re
import shutil
import sys
from collections import Counter
from random import Random

import pyarrow as pa
import pytest

from jobs.cli.entry import main
from jobs.common.exit_codes import DONE, NOTHING_UNDERSTOOD, PARTLY_READ, UNUSABLE
from jobs.logs.files import left_out
from jobs.logs.spool import Spool
from jobs.parsing.kinds import parsed
from jobs.parsing.rows import EVENT, QUARANTINE
from jobs.pipeline.topic_records import PLACE_BITS, as_lines
from schemas.names import CLOCK, RAW_LINES
from schemas.tables import arrow_schema_of
from tests.effort import long
from tests.logs.spooling import Consumer
from tests.pipeline.test_topic_records import kafka
from tests.security.damages import damaged, records

pytestmark = pytest.mark.slow

CASES = pytest.mark.parametrize(("seed", "cases"), [(0, 100), long(1, 2_000), long(2, 2_000), long(3, 2_000)])
EXPLAINED = 25  # each so-manieth is explained: that takes as long as 20 others
NO_LOG = re.compile(r"no log files in|is empty\b")  # the reasons for which nothing is explained


def ended(capsys, *arguments):
    """The exit code of a command. Its last line says why it is not 0, and no line is that of an error that nobody expected."""
    code = main([str(argument) for argument in arguments])
    said = capsys.readouterr().err
    assert not re.search("Traceback|REBALANCE_TRACEBACK|Error:", said), said
    assert not code or said.strip()
    assert code in (DONE, NOTHING_UNDERSTOOD, PARTLY_READ) or (code == UNUSABLE and NO_LOG.search(said)), said
    return code


def is_refused(lines):
    """Whether some of these are rows of `quarantine`, such as the half of a line that stands by itself."""
    raw = arrow_schema_of(RAW_LINES)
    rows = pa.RecordBatch.from_pylist([{name: line.get(name) for name in raw.names} for line in lines], schema=raw)
    return QUARANTINE in parsed(rows)["verdict"].to_pylist()


def check(capsys, made, folder, *, explains, door):
    spool, consumer = Spool(made.path, folder), Consumer()
    for _ in spool.slices():
        consumer.take(folder)
    read = {row["text"].encode() for row in consumer.of("line")}
    assert not made.readable - read
    if made.shows_loss and made.lines - read:
        assert spool.troubles.summary() or consumer.faults() or left_out(made.path) or is_refused(consumer.of("line"))
    for command in ("inspect", "explain")[: 1 + explains]:
        code = ended(capsys, command, door)
        assert code != NOTHING_UNDERSTOOD or not made.readable
        assert (code == PARTLY_READ) <= (len(spool.troubles) > 0) <= (code != DONE)


@CASES
def test_damaged_inputs(tmp_path, capsys, monkeypatch, seed, cases):
    for number in range(cases):
        place = tmp_path / str(number)
        made, door = damaged(Random(f"{seed} {number}"), place), "-"
        if number % 3 or not made.path.is_file():
            door = str(made.path)
        else:
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(made.path.read_bytes())))
        try:
            check(capsys, made, tmp_path / f"{number} spool", explains=number % EXPLAINED == 0, door=door)
        except BaseException as error:
            raise AssertionError(f"case {number} of seed {seed}: {made.what}") from error
        shutil.rmtree(place)
        shutil.rmtree(tmp_path / f"{number} spool")


@CASES
def test_damaged_records_of_the_topic(seed, cases):
    """A record that is whole is read whatever lies beside it, and none is without a row."""
    for number in range(cases):
        made = records(Random(f"{seed} {number}"))
        rows = parsed(as_lines(kafka(*(record for record, _ in made)))).to_pylist()
        by_place = Counter(row["place"] & (1 << PLACE_BITS) - 1 for row in rows)
        assert by_place.keys() == set(range(len(made))), number
        for offset, ((headers, _), is_damaged) in enumerate(made):
            own = [row for row in rows if row["place"] & (1 << PLACE_BITS) - 1 == offset]
            kind = dict(headers).get("record")
            if not is_damaged:
                assert {row["verdict"] for row in own} == {CLOCK if kind == b"clock" else EVENT}, number
                assert len(own) == (2 if kind == b"heartbeats" else 1), number
            assert all(row["refusal"] for row in own if row["verdict"] == QUARANTINE), number
