"""What a rebalance costs in records, and what is wrong with committed offsets: rows of `rebalance_offsets`, and findings.

The log of a partition grows by ten records a second. Its readers commit every five seconds what they have read.
"""

from __future__ import annotations

import random

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import Offsets
from coordinator_model.view.rows import FINDINGS, REBALANCE_OFFSETS, REBALANCES
from jobs.laws import offset_laws
from jobs.laws.laws import breaches
from tests.effort import every
from tests.tracker.batching import batches
from tests.tracker.story import EXPIRED, JOINED, START_MS, Story, play, table

A, B = "a-1", "b-1"
P0, P1 = "orders-0", "orders-1"
INTERVAL = 5_000


def end(ms: int) -> int:
    """The end of each partition's log."""
    return ms // 100


class OffsetStory(Story):
    """Two members with a partition each, since the start of the story."""

    def begin(self) -> OffsetStory:
        self.at(0).log_preparing(0, JOINED.format(A), A)
        self.at(100).log_stabilized(1, members=2)
        self.at(110).log_assignment(1, leader=A, members=2)
        for member in (A, B):
            self.at(100).join(member, 1, A, [A, B] if member == A else [], waited=90)
        self.at(110).sync(A, 1, {A: (P0,), B: (P1,)}).sync(B, 1, {B: (P1,)})
        self.at(120).fetch(A, P0, -1).fetch(B, P1, -1)
        return self

    def fetch(self, member: str, partition: str, offset: int) -> OffsetStory:
        self.request(kinds.OFFSET_FETCH, "", client_id=member[0], offsets=Offsets((partition,), (offset,)))
        return self

    def commits(self, member: str, generation: int, partition: str, start: int, stop: int, step: int = INTERVAL) -> OffsetStory:
        for ms in range(start, stop, step):
            self.at(ms).commit(member, generation, offsets=Offsets((partition,), (end(ms),)))
        return self

    def polls(self, until: int, step: int = 2_000) -> OffsetStory:
        for ms in range(0, until, step):
            self.at(ms).on("poll").add("poll", kinds.OFFSETS_POLLED, offsets=Offsets((P0, P1), (-1, -1), (end(ms), end(ms))))
        self.on("broker-1")
        return self

    def second_dies(self, at: int = 21_000) -> OffsetStory:
        """B is killed; ten seconds later it is removed, and A takes its partition over."""
        self.beats([A], 1, 1_000, at + 12_000).beats([B], 1, 1_000, at)
        self.commits(A, 1, P0, INTERVAL, at + 10_000).commits(B, 1, P1, INTERVAL, at)
        self.at(at + 10_000).log(kinds.MEMBER_FAILED, member_id=B).log_preparing(1, EXPIRED.format(B), B)
        self.at(at + 12_500).join(A, 2, A, [A], waited=500).log_stabilized(2, members=1)
        self.at(at + 12_510).log_assignment(2, leader=A, members=1).sync(A, 2, {A: (P0, P1)})
        self.at(at + 12_520).fetch(A, P0, end(30_000)).fetch(A, P1, end(20_000))
        return self


def killed() -> OffsetStory:
    story = OffsetStory().begin().second_dies()
    story.beats([A], 2, 35_000, 60_000).commits(A, 2, P0, 38_000, 60_000).commits(A, 2, P1, 38_000, 60_000)
    return story


def test_a_client_is_killed_and_what_it_had_read_since_its_last_commit_is_read_again():
    rows = table(killed().polls(62_000).rows(), REBALANCE_OFFSETS)
    row = next(row for row in rows if row["partition"] == P1)
    assert (row["started_at"], row["generation"]) == (31_000, 2)
    assert (row["from_client_id"], row["committed_at"], row["committed_offset"]) == ("b", 20_000, 200)
    assert (row["to_client_id"], row["resumed_at"], row["resumed_offset"]) == ("a", 33_520, 200)
    assert row["reread_min"] == 0
    assert 10 <= row["reread_max"] <= 2 * end(INTERVAL), "it was killed a second, ten records, after its last commit"
    assert row["unread_ms"] == 13_520
    assert (row["lag_before"], row["lag_added"]) == (0, 135)
    assert row["caught_up_at"] == 38_000


def test_an_owner_that_commits_seldom_had_worked_until_its_last_heartbeat():
    rows = table(OffsetStory().begin().second_dies(24_500).polls(50_000).rows(), REBALANCE_OFFSETS)
    row = next(row for row in rows if row["partition"] == P1)
    assert (row["committed_at"], row["resumed_at"], row["unread_ms"]) == (20_000, 37_020, 37_020 - 21_999)


def joins_again(at: int, commits: int, begins: int) -> OffsetStory:
    """After `killed`, A commits a while and joins again; it begins P1 anew at an offset."""
    story = OffsetStory().begin().second_dies().beats([A], 2, 35_000, at).commits(A, 2, P0, 38_000, at).commits(A, 2, P1, 38_000, at)
    story.at(at).log_preparing(2, "Leader a-1 re-joining group during Stable").at(at + 500).log_stabilized(3, members=1)
    story.at(at + 500).join(A, 3, A, [A], waited=400)
    story.at(at + 510).log_assignment(3, leader=A, members=1).sync(A, 3, {A: (P0, P1)})
    story.at(at + 520).fetch(A, P0, end(commits)).fetch(A, P1, begins)
    return story.beats([A], 3, at + 1_000, 80_000).commits(A, 3, P0, at + 5_000, 80_000).commits(A, 3, P1, at + 5_000, 80_000)


def test_a_lag_that_was_back_before_the_next_rebalance_is_known_after_that_began():
    rows = table(joins_again(39_000, 38_000, end(38_000)).polls(80_000, step=10_000).rows(), REBALANCE_OFFSETS)
    assert [(row["generation"], row["caught_up_at"]) for row in rows if row["partition"] == P1] == [(2, 38_000), (3, 44_000)]


def test_what_was_read_before_a_rewind_is_read_again_however_long_the_hand_over_before_took():
    """What the lag was before is not known, so the first hand-over waits for it until the next rebalance."""
    story = joins_again(59_000, 58_000, end(58_000) - 50).polls(80_000)
    story.events = [event for event in story.events if event.kind != kinds.OFFSETS_POLLED or event.at_ms > START_MS + 35_000]
    story.at(58_600).commit("", -1, offsets=Offsets((P1,), (end(58_000) - 50,)))
    row = next(row for row in table(story.rows(), REBALANCE_OFFSETS) if (row["partition"], row["generation"]) == (P1, 3))
    assert row["reread_min"] == 50


def test_without_the_ends_of_logs_there_is_no_lag_and_without_starts_the_first_commit_counts():
    story = killed()
    story.events = [event for event in story.events if event.kind != kinds.OFFSET_FETCH]
    row = next(row for row in table(story.rows(), REBALANCE_OFFSETS) if row["partition"] == P1)
    assert (row["resumed_at"], row["resumed_offset"]) == (38_000, None)
    assert (row["lag_before"], row["lag_added"], row["caught_up_at"]) == (None, None, None)
    assert (row["reread_min"], row["reread_max"]) == (0, 100)


def test_a_rate_of_a_client_that_caught_up_is_none():
    """B reads 800 records that had come before, and then as they come. A has read all that there is when it commits."""
    story = OffsetStory().begin().second_dies()
    story.events = [
        event._replace(offsets=Offsets((P1,), (event.offsets.committed[0] + 800,)))
        if event.offsets is not None and event.offsets.partitions == (P1,) and event.at_ms > START_MS + 5_500
        else event
        for event in story.events
    ]
    story.commits(A, 2, P0, 38_000, 60_000).at(38_000).commit(A, 2, offsets=Offsets((P1,), (end(38_000) + 800,)))
    row = next(row for row in table(story.rows(), REBALANCE_OFFSETS) if row["partition"] == P1)
    assert (row["committed_offset"], row["reread_min"], row["reread_max"]) == (1_000, 0, 180)


def test_a_partition_that_its_owner_keeps_has_no_row():
    story = killed()
    story.events = [event for event in story.events if not (event.kind == kinds.OFFSET_FETCH and event.offsets.partitions == (P0,))]
    assert {row["partition"] for row in table(story.rows(), REBALANCE_OFFSETS)} == {P1}


def test_a_partition_that_nobody_reads_after_the_rebalance():
    story = OffsetStory().begin().second_dies()
    story.beats([A], 2, 35_000, 150_000).commits(A, 2, P0, 38_000, 150_000).polls(150_000)
    found = [row for row in table(story.rows(), FINDINGS) if row["code"] == "PARTITION_NOT_READ"]
    assert [row["client_id"] for row in found] == ["a"]
    assert P1 in found[0]["message"]
    assert 33_510 + 60_000 <= found[0]["occurred_at"] <= 33_510 + 70_000


def test_a_member_that_commits_the_same_offset_again_and_again_does_not_read():
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 120_000).commits(A, 1, P0, INTERVAL, 120_000).commits(B, 1, P1, INTERVAL, 30_000)
    for ms in range(30_000, 120_000, INTERVAL):
        story.at(ms).commit(B, 1, offsets=Offsets((P1,), (250,)))
    found = [row for row in table(story.polls(120_000).rows(), FINDINGS) if row["code"] in ("PARTITION_NOT_READ", "COMMITS_STOPPED")]
    assert [(row["code"], row["client_id"]) for row in found] == [("PARTITION_NOT_READ", "b")]


def test_a_member_that_commits_nothing_any_more():
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 120_000).commits(A, 1, P0, INTERVAL, 120_000).commits(B, 1, P1, INTERVAL, 30_000)
    found = [row for row in table(story.polls(120_000).rows(), FINDINGS) if row["code"] in ("PARTITION_NOT_READ", "COMMITS_STOPPED")]
    assert [(row["code"], row["client_id"]) for row in found] == [("COMMITS_STOPPED", "b")]


def test_a_healthy_group_and_an_idle_topic_have_no_findings():
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 200_000).commits(A, 1, P0, INTERVAL, 200_000)
    for ms in range(0, 200_000, 2_000):
        idle = Offsets((P0, P1), (-1, -1), (end(ms), 7))
        story.at(ms).on("poll").add("poll", kinds.OFFSETS_POLLED, offsets=idle)
    story.on("broker-1").at(4_000).commit(B, 1, offsets=Offsets((P1,), (7,)))
    assert table(story.rows(), FINDINGS) == []


@pytest.mark.parametrize(("silence", "told"), [(72_000, []), (400_000, ["COMMITS_STOPPED"])])
def test_a_group_that_has_committed_once_may_do_it_seldom(silence, told):
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 30_000 + silence).polls(30_000 + silence, step=10_000)
    for member, partition in ((A, P0), (B, P1)):
        for ms in (28_000, 28_000 + silence):
            story.at(ms).commit(member, 1, offsets=Offsets((partition,), (end(ms),)))
    assert sorted({row["code"] for row in table(story.rows(), FINDINGS)}) == told


def test_records_that_are_committed_one_by_one_show_no_rate():
    """Each answer brings five records; their commits are a millisecond apart."""
    story = OffsetStory().begin().second_dies()
    story.events = [event for event in story.events if (event.kind, event.member_id) != (kinds.OFFSET_COMMIT, B)]
    for ms in range(500, 20_500, 500):
        for number in range(5):
            story.at(ms + number).commit(B, 1, offsets=Offsets((P1,), (end(ms) + number - 4,)))
    story.beats([A], 2, 35_000, 60_000).commits(A, 2, P1, 38_000, 60_000)
    row = next(row for row in table(story.rows(), REBALANCE_OFFSETS) if row["partition"] == P1)
    assert 0 == row["reread_min"] < row["reread_max"] <= 10


def test_an_administrator_sets_an_offset_back():
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 60_000).commits(A, 1, P0, INTERVAL, 30_000)
    story.at(31_000).commit("", -1, client_id="adminclient-1", offsets=Offsets((P0,), (100,)))
    (found,) = table(story.rows(), FINDINGS)
    assert (found["code"], found["client_id"], found["occurred_at"]) == ("OFFSET_REWOUND", "adminclient-1", 31_000)
    assert "from 250 to 100" in found["message"]


def emptied() -> OffsetStory:
    """Both members leave. A minute later A is back."""
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 20_000).commits(A, 1, P0, INTERVAL, 20_000)
    story.at(20_000).leave(A).leave(B).at(20_010).log_preparing(1, "Removing member a-1 on LeaveGroup", A)
    story.at(20_020).log(kinds.GROUP_EMPTY, generation=2)
    story.at(80_000).log_preparing(2, JOINED.format(A), A).at(80_100).log_stabilized(3, members=1)
    story.at(80_100).join(A, 3, A, [A], waited=90).at(80_110).log_assignment(3, leader=A, members=1).sync(A, 3, {A: (P0, P1)})
    return story.beats([A], 3, 81_000, 100_000)


def sets(story: OffsetStory, at: int, offset: int, how: str) -> OffsetStory:
    """A commit of nobody, as a request or as a record."""
    if how == "request":
        return story.at(at).commit("", -1, client_id="adminclient-1", offsets=Offsets((P0,), (offset,)))
    story.at(at).add("offsets", kinds.OFFSETS_STORED, offsets=Offsets((P0,), (offset,)))
    return story


@pytest.mark.parametrize("how", ["request", "record"])
def test_an_administrator_sets_an_offset_forward(how):
    story = sets(emptied(), 50_000, 900, how)
    if how == "record":
        story.events = [event for event in story.events if event.kind != kinds.OFFSET_COMMIT]
        sets(story, 15_000, 150, how)
        sets(story, 85_000, 910, how)
    else:
        story.at(85_000).commit(A, 3, offsets=Offsets((P0,), (910,)))
    (found,) = [row for row in table(story.rows(), FINDINGS) if row["code"].startswith("OFFSET")]
    assert (found["code"], found["occurred_at"]) == ("OFFSET_SET_FORWARD", 50_000)
    assert "set forward from 150 to 900" in found["message"]
    assert "750 offsets are skipped" in found["message"]


def test_a_member_that_the_group_has_removed_is_no_administrator():
    story = emptied().at(50_000).commit(A, -1, offsets=Offsets((P0,), (900,)))
    story.at(85_000).commit(A, 3, offsets=Offsets((P0,), (910,)))
    assert [row for row in table(story.rows(), FINDINGS) if row["code"].startswith("OFFSET")] == []


def test_a_client_without_a_group_that_reads_on_skips_nothing():
    story = emptied()
    for ms in (50_000, 55_000):
        sets(story, ms, end(ms), "request")
    story.at(85_000).commit(A, 3, offsets=Offsets((P0,), (end(85_000),)))
    assert [row for row in table(story.rows(), FINDINGS) if row["code"].startswith("OFFSET")] == []


@pytest.mark.parametrize(("first", "words"), [(5, "at least 295 records were read again"), (900, "up to 600 records were skipped")])
def test_offsets_are_gone_and_the_client_begins_elsewhere(first, words):
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 90_000).commits(A, 1, P0, INTERVAL, 31_000)
    story.at(60_000).fetch(A, P0, -1)
    story.at(65_000).commit(A, 1, offsets=Offsets((P0,), (first,)))
    expired, reset = table(story.rows(), FINDINGS)
    assert (expired["code"], expired["occurred_at"]) == ("OFFSETS_EXPIRED", 60_000)
    assert (reset["code"], reset["occurred_at"]) == ("OFFSET_RESET", 65_000)
    assert words in reset["message"]


def test_commits_that_are_too_seldom():
    story = (
        OffsetStory()
        .begin()
        .beats([A, B], 1, 1_000, 70_000)
        .commits(B, 1, P1, 20_000, 62_000, step=20_000)
        .commits(A, 1, P0, 5_000, 75_000)
    )
    story.at(80_000).log(kinds.MEMBER_FAILED, member_id=B).log_preparing(1, EXPIRED.format(B), B)
    story.at(82_500).join(A, 2, A, [A], waited=500).log_stabilized(2, members=1)
    story.at(82_510).log_assignment(2, leader=A, members=1).sync(A, 2, {A: (P0, P1)}).at(82_520).fetch(A, P1, 600)
    story.at(90_000).commit(A, 2, offsets=Offsets((P1,), (900,)))
    (found,) = [row for row in table(story.rows(), FINDINGS) if row["code"] == "COMMIT_BEHIND"]
    assert found["client_id"] == "b"
    assert "only every 20 s" in found["message"]


def test_where_only_polls_show_commits():
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 150_000)
    for ms in range(0, 150_000, 2_000):
        read = min(end(ms), 300) if ms else 0
        polled = Offsets((P0, P1), (end(ms), read), (end(ms), end(ms)))
        story.at(ms).on("poll").add("poll", kinds.OFFSETS_POLLED, took=2_000, offsets=polled)
    found = [row for row in table(story.on("broker-1").rows(), FINDINGS) if row["code"] in ("PARTITION_NOT_READ", "COMMITS_STOPPED")]
    assert [(row["code"], row["member_id"]) for row in found] == [("COMMITS_STOPPED", B)], "nothing shows what else it commits"


def test_a_partition_that_nobody_has_any_more_is_not_missed():
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 20_000).commits(A, 1, P0, INTERVAL, 20_000).commits(B, 1, P1, INTERVAL, 20_000)
    story.at(20_000).log_preparing(1, "Leader a-1 re-joining group during Stable").at(20_500).log_stabilized(2, members=2)
    for member in (A, B):
        story.at(20_500).join(member, 2, A, [A, B] if member == A else [], waited=400)
    story.at(20_510).log_assignment(2, leader=A, members=2).sync(A, 2, {A: (P0,), B: ()}).sync(B, 2, {B: ()})
    story.beats([A, B], 2, 21_000, 150_000).commits(A, 2, P0, 25_000, 150_000).polls(150_000)
    assert [row["code"] for row in table(story.rows(), FINDINGS)] == ["IDLE_MEMBERS"]


def test_a_topic_that_was_made_anew_begins_anew():
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 60_000)
    for ms, topic_id, offset in ((10_000, "abc", 500), (20_000, "abc", 600), (30_000, "xyz", 5), (40_000, "xyz", 80)):
        told = Offsets((P0,), (offset,), (offset,), (topic_id,))
        story.at(ms - 1_000).commit(A, 1, offsets=Offsets((f"{topic_id}-0",), (offset,)))
        story.at(ms).on("poll").add("poll", kinds.OFFSETS_POLLED, offsets=told).on("broker-1")
    assert table(story.rows(), FINDINGS) == []


def random_story(seed: int) -> OffsetStory:
    """The second member dies; commits, requests for offsets and polls come at random, some of them wrong or set back."""
    chance = random.Random(seed)
    story = OffsetStory().begin().second_dies(chance.randrange(15_000, 40_000))
    for _ in range(chance.randrange(20, 120)):
        ms, partition, member = chance.randrange(200, 100_000), chance.choice((P0, P1)), chance.choice((A, B, ""))
        offset = max(end(ms) - chance.choice((0, 0, 1, 20, 300)), 0)
        what = chance.random()
        if what < 0.6:
            generation = -1 if not member else 1 if ms < 35_000 else 2
            story.at(ms).commit(member, generation, offsets=Offsets((partition,), (offset,)))
        elif what < 0.75:
            story.at(ms).fetch(member or A, partition, chance.choice((offset, -1)))
        else:
            polled = Offsets((P0, P1), (offset, chance.choice((-1, offset))), (end(ms), end(ms)))
            story.at(ms).on("poll").add("poll", kinds.OFFSETS_POLLED, took=chance.choice((0, 2_000)), offsets=polled).on("broker-1")
    return story


@pytest.mark.parametrize("seed", every(4, range(60)))
def test_no_order_of_lines_and_no_batch_changes_a_row(seed):
    story = random_story(seed)
    whole = story.rows()
    cut = play(batches(story.events, 2 + seed, shuffle_ms=4_000, seed=seed), snapshot=seed % 2 == 0)
    for name in (REBALANCES, REBALANCE_OFFSETS, FINDINGS):
        assert sorted(map(str, table(cut, name))) == sorted(map(str, table(whole, name))), name
    rows = {REBALANCES: table(whole, REBALANCES), REBALANCE_OFFSETS: table(whole, REBALANCE_OFFSETS), FINDINGS: table(whole, FINDINGS)}
    assert breaches(rows, offset_laws.LAWS) == []
