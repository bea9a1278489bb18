"""scripts/truth/offset_truth.py: what a hand-over cost, by lines that were written by hand."""

from __future__ import annotations

import json

from scripts.truth.offset_truth import SILENT_MS, Processed, Produced, after_actions, hand_overs
from scripts.truth.record_offsets import read_processed

GROUP = "g"
EVERY_MS = 100


def written(count, partition=0):
    """Records, one each EVERY_MS."""
    return [Produced(EVERY_MS * offset, GROUP, partition, offset) for offset in range(count)]


def read(client, offsets, since=None, *, run=1, partition=0):
    """A client processes these, each when it is written, or one a ms since a moment."""
    return [
        Processed(EVERY_MS * offset if since is None else since + index, GROUP, client, run, partition, offset)
        for index, offset in enumerate(offsets)
    ]


def cost(over):
    """Who goes on with which record, read again, skipped, lag."""
    return over.old_client, over.new_client, over.resumed_offset, over.reread, over.skipped, over.lag_added


def test_one_owner_hands_nothing_over():
    assert hand_overs(read("a", range(50)), written(50)) == []


def test_a_clean_hand_over_costs_time_alone():
    lines = [*read("a", range(10)), *read("b", range(10, 40), 2_000)]
    (over,) = hand_overs(lines, written(40))
    assert cost(over) == ("a", "b", 10, 0, 0, 11)
    assert (over.stopped_at, over.stopped_offset, over.resumed_at) == (900, 9, 2_000)


def test_what_the_new_owner_processes_again_is_counted():
    lines = [*read("a", range(30)), *read("b", range(12, 60), 6_000)]
    (over,) = hand_overs(lines, written(100))
    assert cost(over) == ("a", "b", 12, 18, 0, 31)


def test_what_nobody_ever_processed_was_skipped():
    lines = [*read("a", range(10)), *read("b", range(25, 40), 2_500)]
    (over,) = hand_overs(lines, written(40))
    assert cost(over) == ("a", "b", 25, 0, 15, 16)


def test_what_is_processed_later_was_not_skipped():
    lines = [*read("a", range(10)), *read("b", range(25, 30), 2_500), *read("b", range(20, 40), 4_000)]
    first, second = hand_overs(lines, written(40))
    assert cost(first) == ("a", "b", 25, 0, 10, 16)
    assert cost(second) == ("b", "b", 20, 5, 0, 14)


def test_an_offset_without_a_record_is_not_skipped():
    """As those of the markers of transactions."""
    without = [record for record in written(40) if record.offset != 10]
    (over,) = hand_overs([*read("a", range(10)), *read("b", range(11, 40), 2_500)], without)
    assert over.skipped == 0


def test_a_zombie_takes_nothing_over():
    """It goes on for two records when it wakes up. The owner goes on as before."""
    owner = read("b", range(5, 60), 6_000)
    zombie = read("a", range(10, 12), 6_020)
    lines = [*read("a", range(10)), *owner[:20], *zombie, *(line._replace(at=line.at + 100) for line in owner[20:])]
    taken, woken = hand_overs(lines, written(60))
    assert cost(taken)[:5] == ("a", "b", 5, 5, 0)
    assert cost(woken)[:5] == ("b", "a", 10, 2, 0)
    assert (taken.zombie, woken.zombie) == (False, True)


def test_a_former_owner_that_gets_the_partition_back_is_no_zombie():
    lines = [*read("a", range(10)), *read("b", range(10, 20), 3_000), *read("a", range(20, 30), 5_000)]
    assert [over.zombie for over in hand_overs(lines, written(30))] == [False, False]


def test_a_former_owner_that_gets_it_back_with_older_offsets_is_no_zombie():
    lines = [*read("a", range(10)), *read("b", range(10, 20), 3_000), *read("a", range(8, 30), 5_000)]
    _, back = hand_overs(lines, written(30))
    assert (back.zombie, back.reread) == (False, 12)


def test_a_client_that_is_started_again_is_another_owner():
    lines = [*read("a", range(10)), *read("a", range(8, 30), 3_000, run=2)]
    (over,) = hand_overs(lines, written(30))
    assert (over.old_run, over.new_run, over.reread) == (1, 2, 2)


def test_a_consumer_that_keeps_records_waiting_is_told():
    lines = [*read("a", range(10)), *read("a", range(10, 90), 10 * EVERY_MS + SILENT_MS)]
    (over,) = hand_overs(lines, written(90))
    assert cost(over) == ("a", "a", 10, 0, 0, SILENT_MS // EVERY_MS + 1)


def test_a_consumer_without_records_is_not():
    late = [record._replace(at=record.at + 60_000) for record in written(20)[10:]]
    lines = [*read("a", range(10)), *read("a", range(10, 20), 61_001)]
    assert hand_overs(lines, [*written(10), *late]) == []


def test_partitions_are_apart_and_told_in_order_of_time():
    lines = [
        *read("a", range(10)),
        *read("b", range(10, 20), 9_000),
        *read("a", range(10), partition=1),
        *read("b", range(8, 20), 5_000, partition=1),
    ]
    told = hand_overs(lines, [*written(20), *written(20, partition=1)])
    assert [(over.partition, over.reread) for over in told] == [(1, 2), (0, 0)]


def test_a_line_names_what_was_done_meanwhile():
    told = hand_overs([*read("a", range(10)), *read("b", range(10, 20), 9_000)], written(20))
    actions = [{"at": 5, "text": "b joins"}, {"at": 950, "text": "a: kill -9"}, {"at": 960, "text": "alarm"}, {"at": 9_500, "text": "end"}]
    (line,) = after_actions(told, {GROUP: actions})
    assert line["actions"] == ["a: kill -9", "alarm"]


def test_a_line_names_what_was_done_last_if_there_was_nothing_meanwhile():
    told = hand_overs([*read("a", range(10)), *read("b", range(10, 20), 9_000)], written(20))
    (line,) = after_actions(told, {GROUP: [{"at": 5, "text": "b joins"}, {"at": 10, "text": "a stalls"}]})
    assert line["actions"] == ["a stalls"]


def test_files_of_consumers_are_read_in_order_of_their_starts(tmp_path):
    """The last line of one that was killed is cut off."""

    def text(*offsets):
        lines = [{"at": 100 + offset, "client": "g-1", "topic": GROUP, "partition": 0, "offset": offset} for offset in offsets]
        return "".join(f"{json.dumps(line)}\n" for line in lines)

    (tmp_path / "g-1.10.jsonl").write_text(text(8, 9))
    (tmp_path / "g-1.2.jsonl").write_text(text(6, 7, 8)[:-1])
    found = [(line.group, line.client, line.run, line.offset) for line in read_processed(tmp_path)]
    assert found == [(GROUP, "g-1", 1, 6), (GROUP, "g-1", 1, 7), (GROUP, "g-1", 2, 8), (GROUP, "g-1", 2, 9)]
