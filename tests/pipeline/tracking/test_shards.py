"""The adapter without a JVM: GroupState is a plain Python class."""

import json
import random

import pandas as pd
import pytest
from msgspec import msgpack
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from coordinator_model.events import END, Event
from coordinator_model.tracker.shard import Shard
from coordinator_model.view.settings import TrackerSettings
from jobs.pipeline.tracking import shards
from jobs.pipeline.tracking.shards import compressed, expanded
from jobs.pipeline.tracking.spread import Spread

EVENT = Event(broker="1", source="request", origin="f", position=7, at_ms=1_000, received_ms=990, kind="HEARTBEAT")
KEY = 23
"""Of shard 3 of 10."""


STATE = StructType([StructField("blob", BinaryType()), *(StructField(name, LongType()) for name in ("groups", "held", "late"))])


class CountingShard:
    """A tracker that counts: one row when it has seen three events of a name."""

    def __init__(self, settings=None, seen=0):
        self.settings = settings
        self.seen = seen
        self.provisional = []

    def observe(self, events, beats, reads):
        from coordinator_model.view.rows import Row

        assert not beats
        assert not reads
        for event in events:
            if event.group_id == "broken":
                raise ValueError("a bug")
            self.seen += 1
        return [Row("findings", {"message": "thrée"})] if self.seen == 3 else []

    def encode(self):
        return b"%d" % self.seen

    @classmethod
    def decode(cls, blob, settings=None):
        return cls(settings, int(blob))

    def summary(self):
        return (1, 0, self.seen)


@pytest.fixture
def follow(monkeypatch):
    monkeypatch.setattr(shards, "Shard", CountingShard)
    return shards.shard_function(Spread(shards=10, tasks=1), TrackerSettings())


def group_state(value=None):
    return GroupState(
        optionalValue=value, defined=value is not None, updated=False, removed=False, keyAsUnsafe=b"", valueSchema=STATE,
        batchProcessingTimeMs=0, eventTimeWatermarkMs=-1, watermarkPresent=False,
        timeoutConf=GroupStateTimeout.NoTimeout, hasTimedOut=False, timeoutTimestamp=-1,
    )  # fmt: skip


def frame(*events):
    return pd.DataFrame({"cluster": "c", "key": KEY, "events": [msgpack.encode((events, (), (), len(events)))]})


def call(function, state, *frames):
    return pd.concat(list(function(("c", KEY), iter(frames), state)))


def test_the_state_goes_on_from_batch_to_batch(follow):
    first = group_state()
    out = call(follow, first, frame(EVENT), frame(EVENT))
    assert out["table"].tolist() == [shards.SUMMARY]
    assert (expanded(first.get[0]), *first.get[1:]) == (b"2", 1, 0, 2)
    out = call(follow, group_state(first.get), frame(EVENT))
    assert out["table"].tolist() == [shards.SUMMARY, "findings"]
    assert json.loads(out["row"].tolist()[1]) == {"message": "thrée"}
    assert set(out["cluster"]) == {"c"}


def test_the_end_of_the_logs_is_told_and_not_stored(follow):
    state = group_state()
    out = call(follow, state, frame(EVENT, EVENT._replace(kind=END), EVENT))
    assert (out["table"].tolist(), out["at_end"].tolist()) == ([shards.SUMMARY, "findings"], [False, True])
    assert (expanded(state.get[0]), *state.get[1:]) == (b"2", 1, 0, 2)
    out = call(follow, group_state(state.get), frame(EVENT))
    assert (out["table"].tolist(), out["at_end"].tolist()) == ([shards.SUMMARY, "findings"], [False, False])


def test_a_shard_goes_on_from_what_was_stored_whatever_this_process_did_since(follow):
    before = group_state()
    call(follow, before, frame(EVENT))
    for _ in range(2):  # the second time, as after a batch that was not committed
        after = group_state(before.get)
        call(follow, after, frame(EVENT))
        assert expanded(after.get[0]) == b"2"
    other = group_state((compressed(b"7"), 1, 0, 7))
    call(follow, other, frame(EVENT))
    assert expanded(other.get[0]) == b"8"


def test_a_shard_is_kept_for_its_settings_and_its_very_state():
    kept, shard, settings = shards.KeptShards(most_bytes=10), Shard(), TrackerSettings()
    kept.keep(("c", 1), b"state", shard)
    assert kept.take(("c", 2), b"state", settings) is None
    assert kept.take(("c", 1), b"state", settings) is shard
    assert kept.take(("c", 1), b"state", settings) is None  # it has gone on elsewhere
    kept.keep(("c", 1), b"state", shard)
    assert kept.take(("c", 1), b"other", settings) is None
    kept.keep(("c", 1), b"state", shard)
    assert kept.take(("c", 1), b"state", TrackerSettings(lateness_ms=1)) is None


def test_no_more_shards_are_kept_than_allowed():
    kept, settings = shards.KeptShards(most_bytes=10), TrackerSettings()
    for number in range(3):
        kept.keep(("c", number), b"state", Shard())
    assert [kept.take(("c", number), b"state", settings) is not None for number in range(3)] == [False, True, True]


def test_a_bug_in_the_tracker_says_where_and_leaves_the_state(follow):
    stored = compressed(b"2")
    state = group_state((stored, 1, 0, 2))
    with pytest.raises(shards.TrackerError, match=r"cluster 'c', shard 3: ValueError: a bug .*f:7"):
        call(follow, state, frame(EVENT._replace(group_id="broken")))
    assert state.get[0] == stored
    assert not state._updated


@pytest.mark.parametrize("state", [b"", b"2", bytes(range(256)) * 50])
def test_a_state_is_stored_compressed(state):
    assert expanded(compressed(state)) == state
    assert len(compressed(state)) < max(len(state), 40)


def test_a_state_is_stored_as_ascii():
    assert compressed(random.Random(1).randbytes(1_000)).isascii()
