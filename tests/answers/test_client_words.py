"""What clients say of groups that no broker speaks of: the lines themselves, in plain words."""

import pytest

from coordinator_model import events as e
from jobs.answers.report import read_report, to_json
from tests.lakehouse.rows import line, transition, write

pytestmark = pytest.mark.slow


def said(lakehouse, *rows):
    write(lakehouse, *rows)
    return read_report(lakehouse).said


def client(seconds, kind, **columns):
    columns = {"client_id": "pay-1", **columns}
    return line(at=seconds, broker="clients", source="client", kind=kind, **columns)


def test_the_lines_are_told_in_the_order_of_time(lakehouse):
    it = said(
        lakehouse,
        client(1, e.CLIENT_REJOINS, reason="group is already rebalancing"),
        client(2, e.CLIENT_JOINED, generation=7, member_id="pay-1-11111111-1111-4111-8111-111111111111"),
        client(
            3, e.CLIENT_NOTE, reason="Successfully synced group in generation Generation{generationId=7, memberId='x', protocol='range'}"
        ),
        client(4, e.CLIENT_PUT_OUT, state="UNKNOWN_MEMBER_ID"),
        client(5, e.CLIENT_COMMIT_REFUSED),
    )
    assert [(one.group_id, one.who, one.says) for one in it] == [
        ("payments", "pay-1", "is told to rejoin: “group is already rebalancing”"),
        ("payments", "pay-1", "has joined generation 7"),
        ("payments", "pay-1", "says “Successfully synced group in generation 7”"),
        ("payments", "pay-1", "learns that it is no longer a member (UNKNOWN_MEMBER_ID)"),
        ("payments", "pay-1", "cannot commit"),
    ]


def test_a_group_that_goes_over_to_the_consumer_protocol(lakehouse):
    states = [client(at, e.CLIENT_STATE, generation=at - 2, state=state, reason="x") for at, state in ((2, "JOINING"), (9, "RECONCILING"))]
    it = said(lakehouse, client(1, e.CLIENT_JOINED, generation=6, client_id="pay-2"), *states, client(10, e.CLIENT_STATE, state="STABLE"))
    assert [one.says.partition(": ")[2] for one in it] == [
        "", "", "the group is one of the consumer protocol now, and pay-2 had joined it by the classic one", ""
    ]  # fmt: skip


def test_words_that_repeat_are_counted_and_long_logs_have_ends(lakehouse):
    it = said(lakehouse, *(client(second, e.CLIENT_NOTE, reason=f"line {max(second, 3)}") for second in range(20)))
    assert [(one.says, one.times, one.left_out) for one in it[:2]] == [("says “line 3”", 4, 0), ("says “line 4”", 1, 0)]
    assert [(one.says, one.left_out) for one in it if one.left_out] == [("says “line 14”", 8)]
    assert it[-1].says == "says “line 19”"


def test_a_join_that_is_meant_by_a_departure_is_none(lakehouse):
    it = said(
        lakehouse,
        client(1, e.CLIENT_LEAVES, reason="the consumer is being closed"),
        client(2, e.CLIENT_REJOINS, reason="consumer pro-actively leaving the group"),
    )
    assert [one.says for one in it] == ["leaves the group: “the consumer is being closed”"]


def test_librdkafka_gives_its_partitions_up_and_need_not_join_again(lakehouse):
    it = said(lakehouse, client(1, e.CLIENT_REJOINS, connection="rdkafka#consumer-1", reason="max.poll.interval.ms exceeded"))
    assert [one.says for one in it] == ["gives up its partitions: “max.poll.interval.ms exceeded”"]


def test_sarama_gives_its_partitions_up_and_need_not_join_again(lakehouse):
    it = said(lakehouse, client(1, e.CLIENT_REJOINS, client_id=None, connection="sarama", reason="partitions changed"))
    assert [one.says for one in it] == ["gives up its partitions: “partitions changed”"]


def test_where_a_broker_speaks_its_findings_say_it(lakehouse):
    assert said(lakehouse, line(source=e.COORDINATOR_SOURCE), client(1, e.CLIENT_JOINED), transition("Stable", 0, 1)) == []


def test_programs_get_them_too(lakehouse):
    write(lakehouse, client(1, e.CLIENT_JOINED, client_id=None, connection="franz-go"))
    text = to_json(read_report(lakehouse))
    assert '"who": "franz-go"' in text
    assert '"says": "has joined the group"' in text
