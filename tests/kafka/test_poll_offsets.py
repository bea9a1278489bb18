"""What a poll tells of offsets: only what has changed, and of each group that answers."""

import base64
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, Uuid

from jobs.kafka import poll_offsets
from jobs.kafka.poll_offsets import OffsetPoller, Partition, topic_id
from tests.kafka.answered import done

ORDERS = "_-xQ4F4ETQueJqQy4F4E-Q"
REFUSED = KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED))
AWAY = KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))


class Answers:
    """An admin client that answers what it is told to."""

    def __init__(self) -> None:
        self.committed = {}  # by group: by partition, or an exception; an error in place of an offset is that of the partition
        self.ends = {}
        self.ids = {}
        self.asked = []

    def list_consumer_group_offsets(self, requests, **_):
        (request,) = requests
        self.asked.append(request.group_id)
        told = self.committed[request.group_id]
        if not isinstance(told, dict):
            return {request.group_id: done(told)}
        partitions = [
            SimpleNamespace(topic=topic, partition=number, offset=-1001, error=offset)
            if isinstance(offset, KafkaError)
            else SimpleNamespace(topic=topic, partition=number, offset=offset, error=None)
            for (topic, number), offset in told.items()
        ]
        return {request.group_id: done(SimpleNamespace(topic_partitions=partitions))}

    def list_offsets(self, wanted, **_):
        self.asked.append(sorted(f"{p.topic}-{p.partition}" for p in wanted))
        ends = {p: self.ends.get(f"{p.topic}-{p.partition}", AWAY) for p in wanted}
        return {p: done(end if isinstance(end, Exception) else SimpleNamespace(offset=end)) for p, end in ends.items()}

    def describe_topics(self, topics, **_):
        return {name: done(SimpleNamespace(topic_id=self.ids[name]) if name in self.ids else AWAY) for name in topics.topic_names}


@pytest.fixture
def admin():
    answers = Answers()
    answers.committed = {"g": {("orders", 0): 7, ("orders", 1): 9}}
    answers.ends = {"orders-0": 12, "orders-1": 9, "orders-2": 4}
    answers.ids = {"orders": uuid(ORDERS)}
    return answers


def uuid(text):
    data = base64.urlsafe_b64decode(text + "==")
    halves = (int.from_bytes(data[:8], "big", signed=True), int.from_bytes(data[8:], "big", signed=True))
    return Uuid(*halves)


def polled(poller, **assigned):
    """The lines of a poll without their time, by group. `assigned`: partitions of `orders` that members of a group have."""
    at_ms, lines = poller.poll({group: [Partition("orders", number) for number in numbers] for group, numbers in assigned.items()})
    assert {line["timestamp"] for line in lines} <= {at_ms}
    assert all(line.get("since", 0) <= at_ms for line in lines)
    return {line.pop("group"): {name: value for name, value in line.items() if name not in ("timestamp", "since")} for line in lines}


def test_a_line_says_when_the_poll_before_was(admin):
    poller = OffsetPoller(admin)
    assigned = {"g": [Partition("orders", 0)]}
    first, (line,) = poller.poll(assigned)
    assert "since" not in line
    second, none = poller.poll(assigned)
    assert none == []
    admin.ends["orders-0"] = 13
    _, (line,) = poller.poll(assigned)
    assert first <= second == line["since"] <= line["timestamp"]


def test_only_partitions_that_changed_have_a_place_in_a_line(admin):
    poller = OffsetPoller(admin)
    assert polled(poller, g=[0, 1, 2]) == {
        "g": {"offsets": {"orders-0": [7, 12], "orders-1": [9, 9], "orders-2": [-1, 4]}, "ids": {"orders": ORDERS}}
    }
    assert polled(poller, g=[0, 1, 2]) == {}
    admin.committed["g"]["orders", 0] = 8
    assert polled(poller, g=[0, 1, 2]) == {"g": {"offsets": {"orders-0": [8, 12]}}}
    admin.ends["orders-1"] = 10
    assert polled(poller, g=[0, 1, 2]) == {"g": {"offsets": {"orders-1": [9, 10]}}}


def test_the_ends_are_asked_for_once_and_after_all_groups(admin):
    admin.committed["h"] = {("orders", 1): 2}
    polled(OffsetPoller(admin), g=[2], h=[1])
    assert admin.asked == ["g", "h", ["orders-0", "orders-1", "orders-2"]]


def test_an_offset_that_is_gone_is_told_once(admin):
    poller = OffsetPoller(admin)
    polled(poller, g=[])
    del admin.committed["g"]["orders", 1]
    assert polled(poller, g=[]) == {"g": {"offsets": {"orders-1": [-1, 9]}}}
    admin.ends["orders-1"] = 99
    assert polled(poller, g=[]) == {}
    assert admin.asked[-1] == ["orders-0"]


def test_what_one_does_not_tell_is_missing_and_the_others_are_told(admin):
    admin.committed |= {"h": REFUSED, "none": {}}
    del admin.ends["orders-1"]
    poller = OffsetPoller(admin)
    first = polled(poller, g=[], h=[0], none=[])
    assert first == {
        "g": {"offsets": {"orders-0": [7, 12], "orders-1": [9, None]}, "ids": {"orders": ORDERS}},
        "h": {"error": "offsets: Broker: Group authorization failed"},
    }
    assert polled(poller, g=[], h=[0], none=[]) == {}
    admin.committed["h"], admin.ids = {("orders", 0): 3}, {}
    assert polled(poller, g=[], h=[0]) == {"h": {"offsets": {"orders-0": [3, 12]}}}  # an id that is known is not forgotten
    admin.committed["g"]["orders", 0] = KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT)
    admin.ends["orders-0"] = 13
    assert polled(poller, g=[], h=[0]) == {"h": {"offsets": {"orders-0": [3, 13]}}}
    admin.committed["g"]["orders", 0] = 7
    assert polled(poller, g=[], h=[0]) == {"g": {"offsets": {"orders-0": [7, 13]}}}


def test_no_answer_in_time_is_a_refusal(admin, monkeypatch):
    monkeypatch.setattr(poll_offsets, "TIMEOUT_SECONDS", -4.99)
    admin.list_consumer_group_offsets = lambda requests, **_: {request.group_id: Future() for request in requests}
    assert polled(OffsetPoller(admin), g=[0]) == {"g": {"error": "offsets: no answer in time"}}


def test_a_topic_that_was_made_again_has_another_id(admin):
    poller = OffsetPoller(admin)
    polled(poller, g=[])
    admin.ids["orders"] = Uuid(-5, 1)
    assert polled(poller, g=[]) == {
        "g": {"offsets": {"orders-0": [7, 12], "orders-1": [9, 9]}, "ids": {"orders": "__________sAAAAAAAAAAQ"}}
    }


def test_a_group_that_is_gone_is_forgotten(admin):
    poller = OffsetPoller(admin)
    first = polled(poller, g=[])
    assert polled(poller) == {}
    assert polled(poller, g=[]) == first


def test_a_group_without_a_name_is_not_asked(admin):
    assert OffsetPoller(admin).poll({"": []})[1] == []
    assert admin.asked == []


def test_ids_are_written_as_kafka_writes_them():
    assert topic_id(uuid(ORDERS)) == ORDERS
    assert str(uuid(ORDERS)) != ORDERS  # the client's own text
    assert topic_id(Uuid(0, 0)) == ""
    assert topic_id(Uuid(0, 1)) == "AAAAAAAAAAAAAAAAAAAAAQ"
