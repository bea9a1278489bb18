"""How far a broker's log was read, and when the broker was alive."""

from coordinator_model import events as kinds
from coordinator_model.events import Event
from coordinator_model.tracker.shard import Shard
from coordinator_model.view.clock import BrokerClock
from tests.tracker.story import START_MS, Story


def test_nothing_is_known_of_a_time_that_was_not_read_yet():
    clock = BrokerClock(newest_ms=10_000, active=[[0, 10]])
    assert clock.lived_through(10_000, 15_000)
    assert not clock.lived_through(10_001, 15_000)


def test_a_group_waits_for_all_brokers_that_are_followed():
    """Any of them may be about to speak for it."""
    shard = Shard()
    story = Story()
    story.at(0).heartbeat("a-1", 1)

    def followed(broker: str, ms: int) -> Event:
        return Event(broker, "clock", "", 0, START_MS + ms, START_MS, kinds.FOLLOWED, beats=(0, ms // 1_000))

    shard.observe([*story.events, followed("broker-2", 1_000), followed("broker-1", 20_000)])
    assert shard.summary() == (0, 1, 0)
    shard.observe([followed("broker-2", 20_000)])
    assert shard.summary() == (1, 0, 0)


def test_what_is_no_release_is_passed_over():
    clock = BrokerClock()
    clock.note_release(1_000, "4.2.0")
    clock.note_release(2_000, "4.4.0")
    clock.note_release(3_000, "1.0.0-SNAPSHOT of ours")
    assert [clock.release_at(ms) for ms in (0, 1_000, 1_999, 9_000)] == ["", "4.2.0", "4.2.0", "4.4.0"]
