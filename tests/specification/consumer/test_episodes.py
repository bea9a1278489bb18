"""The rebalances of a consumer group: what one story is called. The recorded ones are in test_consumer_conformance."""

import io
import json

import pytest

from coordinator_model.specification.consumer.effects import BumpCause
from coordinator_model.specification.consumer.group_state import ConsumerGroupPhase
from coordinator_model.specification.consumer.traces.episodes import EpisodeReader, UnownedPartition
from coordinator_model.specification.trace import run_lines
from scripts.truth.trace_files import load_consumer_traces
from tests.specification.consumer.small_consumer_groups import KAFKA_4_2, A, SmallGroup, beat, classic_join, joining, of_a


def told(*requests):
    """The episodes of a group that gets these requests, each with its time."""
    group, reader = SmallGroup(), EpisodeReader(KAFKA_4_2)
    for now_ms, request in requests:
        group.ask(request, now_ms)
        reader.read(effect for _, effect in group.outcome.effects)
    return reader.episodes


def test_a_member_that_joins_makes_another_hold_partitions_until_it_acknowledges():
    first, second = told(
        (0, joining("m")), (10, joining("n")), (20, beat("m", 1)), (30, beat("m", 1, owned=of_a(0, 1))), (45, beat("n", 2))
    )
    assert (first.start_ms, first.end_ms, first.end_phase) == (0, 0, ConsumerGroupPhase.STABLE)
    (only,) = second.rounds
    assert (only.epoch, only.cause, only.member_id, only.reached_ms, only.superseded) == (2, BumpCause.JOIN, "n", 45, False)
    (holder,) = second.holders
    assert (holder.member_id, holder.from_ms, holder.until_ms, holder.ended) == ("m", 20, 30, "acknowledged")
    assert holder.partitions == of_a(2, 3)
    assert second.unowned == [UnownedPartition(A, 2, 30, 45), UnownedPartition(A, 3, 30, 45)]


def test_a_round_that_the_next_bump_overtakes_is_superseded():
    *_, episode = told((0, joining("m")), (10, joining("n")), (20, beat("n", -1)), (30, beat("m", 1)))
    assert [(one.epoch, one.superseded, one.reached_ms) for one in episode.rounds] == [(2, True, None), (3, False, 30)]


def test_a_group_that_becomes_classic_has_come_to_its_end():
    *_, episode = told((0, joining("m")), (10, classic_join()), (20, beat("m", 1)), (30, beat("m", -1)))
    (holder,) = episode.holders
    assert (holder.member_id, holder.until_ms, holder.ended) == ("m", 30, "leave")
    assert (episode.end_ms, episode.end_phase) == (30, ConsumerGroupPhase.EMPTY)


def test_the_command_tells_the_rebalances_of_a_trace():
    (trace,) = [trace for trace in load_consumer_traces()["cases"] if trace["name"] == "lab/two_leaves_one_target"]
    out = io.StringIO()
    run_lines([json.dumps(trace)], out, None, print, episodes=True)
    *_, last = json.loads(out.getvalue())["episodes"]
    assert [one["cause"] for one in last["rounds"]] == ["leave", "leave"]


def test_traces_of_classic_groups_have_no_episodes():
    with pytest.raises(ValueError, match="only traces of consumer groups"):
        run_lines(["{}"], io.StringIO(), None, print, episodes=True)
