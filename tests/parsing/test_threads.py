"""The thread that wrote a line about a rebalance, where the coordinator writes no reason and the layout has the thread."""

import pytest

from jobs.logs.envelopes import unwrapped
from jobs.parsing import batch
from jobs.parsing.inspection import recognise
from tests.parsing.reading import read_lines
from tests.parsing.test_lines_to_events import records

OLD = "[GroupCoordinator 2]: Preparing to restabilize group orders with old generation 119"
NEWER = "[GroupCoordinator 2]: Preparing to rebalance group orders with old generation 119 (__consumer_offsets-9)"
NEWEST = (
    "[GroupCoordinator 2]: Preparing to rebalance group orders in state PreparingRebalance with old generation 3 (__consumer_offsets-9) "
    "(reason: removing member x on heartbeat expiration)"
)
LAYOUTS = (
    "2018-05-12 10:59:13,562 INFO {message} (kafka.coordinator.GroupCoordinator) [{thread}]",
    "2018-05-12 10:59:13,562 INFO  [{thread}] GroupCoordinator:66 - {message}",
    "2018-05-12 10:59:13,562 [{thread}] INFO  kafka.coordinator.GroupCoordinator - {message}",
)


def reason(layout: str, message: str, thread: str) -> str | None:
    """The reason of the event, after the layout is taken off."""
    line = unwrapped(layout.format(message=message, thread=thread).encode()).decode()
    assert not recognise(line, "broker-2").unknown
    (event,) = batch.events(read_lines(records([line])), 7).to_pylist()
    assert (event["kind"], event["group_id"]) == ("PREPARING_REBALANCE", "orders")
    return event["reason"]


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("message", [OLD, NEWER])
def test_sessions_expire_on_a_thread_of_their_own(layout: str, message: str) -> None:
    assert reason(layout, message, "executor-Heartbeat") == "executor-Heartbeat"
    assert reason(layout, message, "kafka-request-handler-7") is None


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_reason_needs_no_thread(layout: str) -> None:
    assert reason(layout, NEWEST, "executor-Heartbeat") == "removing member x on heartbeat expiration"


def test_other_lines_of_that_thread_stay_as_they_are() -> None:
    line = LAYOUTS[0].format(message="[GroupCoordinator 2]: Stabilized group orders generation 120", thread="executor-Heartbeat")
    assert unwrapped(line.encode()) == line.encode().replace(b"2018-05-12 10:59:13,562", b"[2018-05-12 10:59:13,562]").replace(
        b" [executor-Heartbeat]", b""
    )
