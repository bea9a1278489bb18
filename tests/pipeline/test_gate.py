"""The gate of a topic: what came before, and how far a broker's logs are known, whatever order the partitions are read in."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.pipeline.gate import READ_MARGIN_MS, STATE_VERSION, BrokerTime, Clock, Gate, LogName, Reach

LOG = LogName("production", "broker-1", "server@1.log")
OTHER = LogName("production", "broker-1", "kafka-request@2.log")


def lines(gate, *positions, log=LOG, texts=None):
    """Positions that came before."""
    return [positions[index] for index in gate.lines(log, np.array(positions, np.int64), texts or {}).tolist()]


def clock(partition, position, at_ms=-1, read_ms=-1, heard="[]", log=LOG):
    return Clock(log, partition, Reach(position, at_ms, read_ms), heard)


def times(gate, *clocks, partitions=2):
    return [(time.at_ms, time.heard) for time in gate.clocks(clocks, partitions)]


def test_time_goes_on_when_all_partitions_say_so():
    gate = Gate()
    assert lines(gate, 1, 3, 7) == []
    assert times(gate, clock(0, 10, 5_000, heard="[4,5]")) == []
    assert times(gate, clock(1, 10, 5_000, heard="[4,5]")) == [(5_000, (4, 5))]


def test_a_fast_partition_moves_nothing():
    gate = Gate()
    assert times(gate, clock(0, 10, 5_000), clock(0, 20, 9_000, heard="[8,9]"), clock(0, 30, 60_000)) == []
    assert times(gate, clock(1, 20, 9_000, heard="[8,9]")) == [(9_000, (8, 9))]
    assert times(gate, clock(1, 30, 60_000)) == [(60_000, ())]


def test_a_log_that_is_silent_is_known_up_to_the_last_look_that_all_partitions_saw():
    gate = Gate()
    assert times(gate, clock(0, 10, 5_000), clock(1, 10, 5_000)) == [(5_000, ())]
    assert times(gate, clock(0, 10, 5_000, 30_000)) == []
    assert times(gate, clock(1, 10, 5_000, 25_000)) == [(25_000 - READ_MARGIN_MS, ())]
    assert times(gate, clock(1, 10, 5_000, 25_000)) == []  # nothing new


def test_the_latest_log_of_a_broker_is_its_time_and_all_of_them_were_heard():
    gate = Gate()
    both = [clock(p, 10, at, heard=f"[{at // 1000},{at // 1000}]", log=log) for p in (0, 1) for log, at in ((LOG, 5_000), (OTHER, 7_000))]
    assert gate.clocks(both, 2) == [BrokerTime(OTHER, 10, 7_000, (7, 7, 5, 5), followed=False)]


def test_a_broker_is_followed_when_its_shipper_has_read_all():
    gate = Gate()
    assert [time.followed for time in gate.clocks([clock(0, 10, 5_000), clock(1, 10, 5_000)], 2)] == [False]
    assert [time.followed for time in gate.clocks([clock(0, 20, 9_000, 9_100), clock(1, 20, 9_000)], 2)] == [False]
    assert [time.followed for time in gate.clocks([clock(1, 20, 9_000, 9_200)], 2)] == [] == gate.clocks([], 2)
    assert [time.followed for time in gate.clocks([clock(0, 20, 9_000, 12_000), clock(1, 20, 9_000, 12_000)], 2)] == [True]


def test_a_line_is_let_through_once():
    gate = Gate()
    assert lines(gate, 1, 3, 3, 7, 1) == [3, 1]
    assert lines(gate, 3, 8) == [3]  # in a later batch, before any clock
    gate.clocks([clock(0, 10, 1), clock(1, 10, 1)], 2)
    assert lines(gate, 8, 9, 11) == [8, 9]  # 9: never seen, but a clock in all partitions covers it
    assert lines(gate, 11, 12) == [11]
    assert lines(gate, 8, log=OTHER) == []


def test_what_is_said_of_a_file_as_a_whole_has_no_position():
    gate = Gate()
    assert lines(gate, 0, 0, 4, texts={0: "cut short", 1: "cut short"}) == [0]
    gate.clocks([clock(0, 10, 1), clock(1, 10, 1)], 2)
    assert lines(gate, 0, 0, texts={0: "cut short", 1: "other"}) == [0]


def test_a_partition_that_was_added_is_waited_for():
    gate = Gate()
    assert times(gate, clock(0, 10, 1_000), clock(1, 10, 1_000), partitions=2) == [(1_000, ())]
    assert times(gate, clock(0, 20, 2_000), clock(1, 20, 2_000), partitions=3) == []
    assert lines(gate, 15) == []
    assert times(gate, clock(2, 20, 2_000), partitions=3) == [(2_000, ())]
    assert lines(gate, 15) == [15]


@pytest.mark.parametrize("heard", ["", "no", "{}", "[1]", '["a","b"]', "[1.5,2]", "[true,false]", f"[{10**30},{10**30}]", "null"])
def test_seconds_that_no_shipper_writes_say_nothing(heard):
    assert times(Gate(), clock(0, 10, 5_000, heard=heard), partitions=1) == [(5_000, ())]


def test_logs_that_were_not_written_to_for_longest_are_forgotten():
    gate = Gate(logs_kept=2)
    logs = [LogName("c", "b", f"{number}.log") for number in range(3)]
    gate.clocks([clock(0, 10, 1_000 * (3 - number), log=log) for number, log in enumerate(logs)], 1)
    assert [lines(gate, 5, log=log) for log in logs] == [[5], [5], []]


def test_a_state_of_another_version_is_refused():
    state = msgspec.msgpack.encode((STATE_VERSION + 1, [], []))
    with pytest.raises(ValueError, match="is of version 2"):
        Gate.decode(state)


def test_a_state_that_an_earlier_version_stored_is_continued():
    """The state was written with msgpack: it is read, written byte by byte, and what comes next has the result that it had."""
    stored = (Path(__file__).parents[1] / "data" / "codec" / "gate-v1.msgpack").read_bytes()
    log, other = (LogName("c", f"broker-{number}", f"c/broker-{number}/server.log") for number in (1, 2))
    gate = Gate.decode(stored)
    assert gate.encode() == stored
    assert lines(gate, 2, 3, 7, 8, log=log) == [2, 3, 7]
    assert lines(gate, 0, 0, log=log, texts={0: "DAMAGED", 1: "other"}) == [0]
    assert lines(gate, 1, 2, log=other) == [1]
    assert times(gate, clock(1, 3, 2_000, log=log), clock(1, 1, 1_000, 5_000, log=other)) == [(2_000, (1, 2)), (5_000 - READ_MARGIN_MS, ())]
    assert gate._logs[log].arrived.tolist() == [7, 8]


@st.composite
def topics(draw):
    """What a shipper that is killed now and then writes: per partition, (position or clock); and where batches end."""
    partitions = draw(st.integers(1, 3))
    records = [[] for _ in range(partitions)]
    done, at = 0, 0
    while at < 30:
        begin = done  # a crash sends everything since the last clock again
        size = draw(st.integers(1, 8))
        for _ in range(draw(st.integers(0, 2))):
            for position in range(begin + 1, begin + 1 + draw(st.integers(0, size))):
                records[position % partitions].append(position)
        for position in range(begin + 1, begin + 1 + size):
            records[position % partitions].append(position)
        done, at = begin + size, at + size
        for partition in range(draw(st.integers(0, partitions)) if draw(st.booleans()) else 0):
            records[partition].append(clock(partition, done, done, heard=json.dumps([done, done])))
        for partition in range(partitions):
            records[partition].append(clock(partition, done, done, heard=json.dumps([done, done])))
    cuts = [sorted(draw(st.lists(st.integers(0, len(of)), min_size=4, max_size=4))) for of in records]
    return records, [[0, *cut, len(of)] for cut, of in zip(cuts, records, strict=True)], done


@given(topics())
def test_every_line_once_and_no_time_before_its_lines(topic):
    records, cuts, last = topic
    gate, arrived, heard = Gate(), [], []
    for batch in range(5):
        parts = [of[cut[batch] : cut[batch + 1]] for of, cut in zip(records, cuts, strict=True)]
        positions = [record for part in parts for record in part if not isinstance(record, Clock)]
        before = gate.lines(LOG, np.array(positions, np.int64), {}).tolist() if positions else []
        arrived += [position for index, position in enumerate(positions) if index not in before]
        told = gate.clocks([record for part in parts for record in part if isinstance(record, Clock)], len(records))
        for time in told:
            heard += time.heard
            assert set(range(1, time.at_ms + 1)) <= set(arrived)
        gate = Gate.decode(gate.encode())
    assert sorted(arrived) == list(range(1, last + 1))
    assert told == [] or told[-1].at_ms == last
    assert heard == sorted(heard)
    assert max(heard, default=last) == last
    assert Gate.decode(gate.encode())._logs[LOG].arrived.tolist() == []
