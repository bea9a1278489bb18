"""What FETCH requests add: how far a client had read when another one went on, and where one began that had no place.

As in test_offsets.py, the log of a partition grows by ten records a second. A client asks for more every 500 ms.
"""

import json
import random

import pytest

from coordinator_model import events as kinds
from coordinator_model.events import LIST_OFFSETS, TOPIC_COMPACTED, TOPIC_NAMED, WRITE_TXN_MARKERS, Offsets
from coordinator_model.offsets.ledger import Ledger
from coordinator_model.offsets.reads import OUT_OF_RANGE, End, Read, client_key
from coordinator_model.view.rows import FINDINGS, REBALANCE_OFFSETS, Ref
from tests.effort import every
from tests.offsets.reads import Asked, logs
from tests.offsets.test_offsets import INTERVAL, P0, P1, A, B, OffsetStory, end, killed
from tests.tracker.batching import clocks
from tests.tracker.story import START_MS, play, table

WAIT = 500


def reading(client: str, partition: str, start: int, stop: int, begin: int | None = None, number: int = 1) -> list[Asked]:
    """A client reads all that comes, from an offset on. Each request is answered after half a second, with what came in it."""
    position, asked = end(start) if begin is None else begin, []
    for ms in range(start + WAIT, stop, WAIT):
        asked.append(Asked(ms, client, partition, position, end(ms), number))
        position = end(ms)
    return asked


def rows(story: OffsetStory, asked: list[Asked], name: str = REBALANCE_OFFSETS) -> list[dict]:
    return table(play([[*story.events, *story.heard(None)]], reads=[logs(asked)]), name)


def of(found: list[dict], partition: str) -> dict:
    return next(row for row in found if row["partition"] == partition)


def offsets_of(offset: int, partition: str = P0) -> Offsets:
    return Offsets((partition,), (offset,))


def reread(row: dict) -> tuple[int | None, int | None]:
    return row["reread_min"], row["reread_max"]


OF_A = reading("a", P0, 200, 60_000)
OF_B = reading("b", P1, 200, 21_000)
OF_X = reading("x", P1, 200, 60_000)
HEIR = reading("a", P1, 33_600, 60_000, begin=200)


def test_how_far_a_killed_client_had_read_is_known_but_for_what_it_had_in_hand():
    last = Asked(21_400, "b", P1, 207, end(21_400))  # it was sent before the client died, which may have lived to see the answer
    row = of(rows(killed().polls(62_000), [*OF_A, *OF_B, last, *HEIR]), P1)
    assert reread(row) == (2, 14), "it had asked for 207, so it had 202 to 206, and may have died while it processed them, or 207 to 213"


def test_an_answer_that_comes_late_to_a_client_that_died_is_no_sign_of_life():
    last = Asked(26_000, "b", P1, 210, end(21_000), waited=5_000)
    assert of(rows(killed().polls(62_000), [*OF_A, *OF_B, last, *HEIR]), P1)["unread_ms"] == 33_520 - 21_000


def test_where_a_partition_has_transactions_offsets_are_records_at_most():
    """An answer to the owner had an open one, whose records it did not get yet."""
    last = Asked(21_400, "b", P1, 207, end(21_400), transactions=True)
    row = of(rows(killed().polls(62_000), [*OF_A, *OF_B, last, *HEIR]), P1)
    assert (reread(row), row["gaps"]) == ((0, 14), True)


def test_where_a_transaction_has_ended_offsets_are_records_at_most():
    """An answer may never show an open one: they may be short."""
    ended = Asked(10_000, "txn-marker-sender", P1, -1, transactions=True, api=WRITE_TXN_MARKERS)
    last = Asked(21_400, "b", P1, 207, end(21_400))
    found = rows(killed().polls(62_000), [*OF_A, *OF_B, last, *HEIR, ended])
    assert (reread(of(found, P1)), of(found, P1)["gaps"]) == ((0, 14), True)
    assert of(found, P1) == of(rows(killed().polls(62_000), [*OF_A, *OF_B, last, *HEIR, ended._replace(at_ms=12_000)]), P1)


def test_in_a_topic_that_is_compacted_offsets_are_records_at_most_from_then_on():
    for at_ms, expected in ((10, ((0, 14), True)), (62_000, ((2, 14), False))):
        story = killed().polls(62_000)
        story.at(at_ms).add("broker", TOPIC_COMPACTED, offsets=Offsets(("orders",), (-1,)), group_id="")
        row = of(rows(story, [*OF_A, *OF_B, Asked(21_400, "b", P1, 207, end(21_400)), *HEIR]), P1)
        assert (reread(row), row["gaps"]) == expected


def test_what_a_client_had_read_is_no_more_than_that_if_its_application_was_behind():
    behind = [one._replace(position=one.position + 60) for one in OF_B]  # it had asked for more than it committed
    row = of(rows(killed().polls(62_000), [*OF_A, *behind, *HEIR]), P1)
    assert row["reread_min"] == 0 < row["reread_max"]


def test_a_client_with_much_in_hand_may_have_processed_it():
    burst = OF_B[-1]._replace(end=OF_B[-1].position + 500)
    row = of(rows(killed().polls(62_000), [*OF_A, *OF_B[:-1], burst, *HEIR]), P1)
    assert row["reread_min"] == 0 < row["reread_max"]


def test_clients_of_other_groups_that_are_called_alike_decide_nothing():
    other = reading("b", P1, 5_000, 60_000, number=2)
    row = of(rows(killed().polls(62_000), [*OF_A, *OF_B, *HEIR, *other]), P1)
    assert row["reread_min"] == 0 < row["reread_max"]


def test_a_client_that_is_no_member_decides_nothing():
    row = of(rows(killed().polls(62_000), [*OF_A, *OF_B, *HEIR, *OF_X]), P1)
    assert reread(row) == (0, 7), "it asked for more soon after its last commit, and may have processed all that came, or nothing"


def again(back: int) -> tuple[OffsetStory, list[Asked]]:
    """A takes P0 over from itself: it begins `back` records before where it was."""
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 20_000).commits(A, 1, P0, INTERVAL, 20_000).commits(B, 1, P1, INTERVAL, 20_000)
    story.at(20_000).log_preparing(1, "Leader a-1 re-joining group during Stable").at(20_500).log_stabilized(2, members=2)
    for member in (A, B):
        story.at(20_500).join(member, 2, A, [A, B] if member == A else [], waited=400)
    story.at(20_510).log_assignment(2, leader=A, members=2).sync(A, 2, {A: (P0,), B: (P1,)}).sync(B, 2, {B: (P1,)})
    story.at(20_520).fetch(A, P0, 200 - back).fetch(B, P1, 200)
    story.beats([A, B], 2, 21_000, 60_000).commits(A, 2, P0, 25_000, 60_000).commits(B, 2, P1, 25_000, 60_000).polls(60_000)
    return story, [*reading("a", P0, 200, 20_001), *reading("a", P0, 20_600, 60_000, begin=200 - back)]


@pytest.mark.parametrize("back", [0, 5, 50])
def test_a_client_that_goes_on_itself_reads_again_what_it_went_back(back):
    story, asked = again(back)
    asked.append(Asked(20_100, "a", P0, 200, end(20_100)))
    assert reread(of(rows(story, sorted(asked)), P0)) == (back, back + 1 if back else 0), "its last answer brought one more"


@pytest.mark.parametrize(
    ("begun", "words"), [(5, "began at 5, so 295 records were read again"), (900, "began at 900, so 600 records were skipped")]
)
def test_where_a_client_began_that_had_no_place(begun, words):
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 90_000).commits(A, 1, P0, INTERVAL, 31_000)
    story.at(60_000).fetch(A, P0, -1)
    story.at(66_000).commit(A, 1, offsets=offsets_of(begun + 100))
    asked = [*reading("a", P0, 200, 30_000), *(Asked(60_600 + ms, "a", P0, begun + ms // 50, 2_000) for ms in range(0, 5_000, 500))]
    reset = next(row for row in rows(story, asked, FINDINGS) if row["code"] == "OFFSET_RESET")
    assert words in reset["message"]


def test_records_that_retention_took_are_skipped():
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 90_000).commits(A, 1, P0, INTERVAL, 31_000)
    story.at(66_000).commit(A, 1, offsets=offsets_of(750))
    asked = [*reading("a", P0, 200, 30_000), Asked(60_100, "a", P0, 300, OUT_OF_RANGE), *reading("a", P0, 60_200, 66_000, begin=700)]
    reset = next(row for row in rows(story, asked, FINDINGS) if row["code"] == "OFFSET_RESET")
    assert "began at 700, so 400 records were skipped" in reset["message"]


def test_a_client_that_reads_on_but_commits_nothing_has_stopped_to_commit():
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 120_000).commits(A, 1, P0, INTERVAL, 120_000).commits(B, 1, P1, INTERVAL, 30_000)
    for ms in range(30_000, 120_000, INTERVAL):
        story.at(ms).commit(B, 1, offsets=offsets_of(250, P1))
    asked = [*reading("a", P0, 200, 120_000), *reading("b", P1, 200, 120_000)]
    found = [row for row in rows(story.polls(120_000), asked, FINDINGS) if row["code"] in ("PARTITION_NOT_READ", "COMMITS_STOPPED")]
    assert [(row["code"], row["client_id"]) for row in found] == [("COMMITS_STOPPED", "b")]


def loop(ms: int) -> list[Asked]:
    """B reads on from 250 and goes back to it, every second from a time on, each time a little further."""
    return [asked for at_ms in range(30_000, ms, 1_000) for asked in reading("b", P1, at_ms - 10, at_ms + 1_000, begin=250)]


@pytest.mark.parametrize(
    "asked", [[*reading("b", P1, 200, 25_000), *loop(120_000)], reading("b", P1, 200, 27_000)], ids=["goes back each time", "pauses"]
)
def test_a_client_that_does_not_get_on_does_not_read(asked):
    """It commits the offset at which it stands again and again, so it has not stopped to commit."""
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 120_000).commits(A, 1, P0, INTERVAL, 120_000).commits(B, 1, P1, INTERVAL, 30_000)
    for ms in range(30_000, 120_000, INTERVAL):
        story.at(ms).commit(B, 1, offsets=offsets_of(250, P1))
    found = rows(story.polls(120_000), [*reading("a", P0, 200, 120_000), *asked], FINDINGS)
    assert [(row["code"], row["client_id"]) for row in found] == [("PARTITION_NOT_READ", "b")]


def test_answers_to_fetch_tell_the_lag_where_nobody_polls():
    row = of(rows(killed(), [*OF_A, *OF_B, *HEIR]), P1)
    assert row["lag_added"] == pytest.approx(135, abs=8)
    assert row["caught_up_at"] is not None


def listings(*partitions: str, client: str = "watcher") -> list[Asked]:
    """A tool asks for the ends of logs every two seconds."""
    return [Asked(ms, client, name, -1, end(ms), api=LIST_OFFSETS) for ms in range(0, 62_000, 2_000) for name in partitions]


def test_a_tool_that_asks_for_ends_tells_the_lag():
    polled, listed = (of(rows(*given), P1) for given in ((killed().polls(62_000), OF_X), (killed(), listings(P0, P1))))
    assert listed["lag_added"] == pytest.approx(polled["lag_added"], abs=2)
    assert listed["lag_before"] is not None is not listed["caught_up_at"]
    assert of(rows(killed(), listings("other-0", P0)), P1)["lag_added"] is None


def goes_back(to: int) -> list[Asked]:
    """B reads on to 242, and from 25 s on from an offset before. There is no rebalance."""
    return [*reading("b", P1, 200, 25_000), *reading("b", P1, 25_100, 60_000, begin=to, number=2)]


@pytest.mark.parametrize(("to", "told"), [(200, [(37, 47)]), (242, []), (239, [])])
def test_a_static_member_that_comes_back_reads_again_what_it_had_not_committed(to, told):
    """It had asked for 237 and 242 when it died, so 237 to 241 it may not have processed, and 242 to 246 it may have."""
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 60_000).commits(A, 1, P0, INTERVAL, 60_000).commits(B, 1, P1, INTERVAL, 21_000)
    story.at(25_050).fetch(B, P1, to).commits(B, 1, P1, 30_000, 60_000)
    found = [row for row in rows(story, goes_back(to), FINDINGS) if row["code"] == "READ_AGAIN"]
    assert [(row["occurred_at"], row["client_id"]) for row in found] == [(25_600, "b")] * len(told)
    details = [json.loads(row["details"]) for row in found]
    assert [(one["reread_min"], one["reread_max"]) for one in details] == told


@pytest.mark.parametrize(("member", "told"), [(A, "30 records are read again if its owner"), (B, "30 records are read again.")])
def test_who_does_not_own_a_partition_does_not_read_it_again_when_it_commits_it(member, told):
    """Kafka takes commits of any member, such as of one that had it before."""
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 60_000).commits(B, 1, P1, INTERVAL, 21_000)
    story.at(23_000).commit(member, 1, offsets=Offsets((P1,), (170,)))
    (row,) = [row for row in rows(story, OF_A, FINDINGS) if row["code"] == "OFFSET_REWOUND"]
    assert told in row["message"]
    assert json.loads(row["details"])["reread"] == (30 if member == B else 0)


def test_what_was_asked_before_a_rebalance_may_be_answered_after_it():
    """A had not committed anything of P0 by then, and begins anew with the rebalance."""
    story, asked = again(200)
    story.events = [e for e in story.events if e.kind != kinds.OFFSET_COMMIT or e.at_ms >= START_MS + 25_000 or P1 in e.offsets.partitions]
    late = Asked(20_550, "a", P0, end(20_000), end(20_500), waited=500)
    assert not [row for row in rows(story, [*asked, late], FINDINGS) if row["code"] == "READ_AGAIN"]


def test_a_client_that_goes_back_before_its_lag_is_known_has_gone_back():
    """No line tells the end of the log before a rebalance, after which the client itself goes on, so nobody knows when the lag is back."""
    story, _ = again(0)
    story.events = [event for event in story.events if event.kind != kinds.OFFSETS_POLLED]
    story.at(42_050).fetch(A, P0, 400)
    asked = [*reading("a", P0, 20_600, 42_000, begin=200), *reading("a", P0, 42_100, 60_000, begin=400, number=2)]
    assert [row["code"] for row in rows(story, asked, FINDINGS)] == ["READ_AGAIN"]


@pytest.mark.parametrize(("to", "told"), [(235, 0), (190, 1)])
def test_a_client_that_goes_back_to_what_it_has_not_committed_may_not_have_processed_it(to, told):
    """It goes back to a record that it failed on, perhaps."""
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 60_000).commits(A, 1, P0, INTERVAL, 60_000).commits(B, 1, P1, INTERVAL, 21_000)
    story.commits(B, 1, P1, 30_000, 60_000)
    assert sum(row["code"] == "READ_AGAIN" for row in rows(story, goes_back(to), FINDINGS)) == told


@pytest.mark.parametrize(("offset", "told"), [(-1, ["NOTHING_COMMITTED"]), (100, [])])
def test_a_group_that_never_commits_reads_everything_again(offset, told):
    story = killed()
    story.events = [event for event in story.events if event.kind not in (kinds.OFFSET_COMMIT, kinds.OFFSET_FETCH)]
    story.at(120).fetch(B, P1, offset).at(33_520).fetch(A, P1, offset)
    asked = [*reading("b", P1, 200, 21_000, begin=0), *reading("a", P1, 33_600, 60_000, begin=0)]
    found = [row for row in rows(story, asked, FINDINGS) if row["code"].startswith("NOTHING")]
    assert [row["code"] for row in found] == told
    assert all("So 197 to 207 records are read twice" in row["message"] for row in found)


def stable_listings(*partitions: str) -> list[Asked]:
    """As `listings`, by a client with isolation.level=read_committed."""
    return [one._replace(end=-1, stable=one.end) for one in listings(*partitions)]


def test_a_tool_that_asks_with_read_committed_tells_the_lag_too():
    assert of(rows(killed(), stable_listings(P0, P1)), P1) == of(rows(killed(), listings(P0, P1)), P1)


def test_where_a_partition_has_transactions_what_is_stable_is_no_end():
    shows = Asked(200, "b", P1, 0, 0, transactions=True)
    assert of(rows(killed(), [shows, *stable_listings(P0, P1)]), P1)["lag_before"] is None


@pytest.mark.parametrize(("opened", "code"), [(25_000, "OPEN_TRANSACTION"), (200_000, "PARTITION_NOT_READ")])
def test_a_transaction_that_does_not_end_holds_up_who_reads_committed_records_alone(opened, code):
    """B asks again and again for the first record of the transaction, and commits that offset; or has another reason to."""
    story = OffsetStory().begin().beats([A, B], 1, 1_000, 120_000).commits(A, 1, P0, INTERVAL, 120_000).commits(B, 1, P1, INTERVAL, 30_000)
    for ms in range(30_000, 120_000, INTERVAL):
        story.at(ms).commit(B, 1, offsets=offsets_of(250, P1))
    asked = [Asked(ms, "b", P1, min(end(ms), 250), end(ms), stable=min(end(ms), end(opened))) for ms in range(500, 120_000, WAIT)]
    (found,) = rows(story, asked, FINDINGS)
    assert (found["code"], found["client_id"]) == (code, "b")
    assert ("it began at 250" in found["message"]) == (code == "OPEN_TRANSACTION")


def test_a_group_that_commits_by_id_is_told_by_name():
    """As Java clients do since 4.1. The name of the topic comes with an answer to METADATA."""
    story = killed()
    ids = {f"orders-{number}": f"topic-id-{number}" for number in (0, 1)}
    by_id = [
        e if e.offsets is None else e._replace(offsets=e.offsets._replace(partitions=tuple(ids[p] for p in e.offsets.partitions)))
        for e in story.events
    ]
    story.at(150).add("request", TOPIC_NAMED, offsets=Offsets(("orders",), (-1,), (), ("topic-id",)), group_id="")
    whole = rows(killed(), listings(P0, P1))
    story.events[:] = [*by_id, *story.events[len(by_id) :]]
    assert [row["partition"] for row in rows(story, listings(P0, P1))] == [row["partition"] for row in whole]
    assert [row["lag_added"] for row in rows(story, listings(P0, P1))] == [row["lag_added"] for row in whole]


@pytest.mark.parametrize("seed", every(4, range(20)))
def test_the_rows_do_not_depend_on_batches(seed):
    """What was read comes with the other lines of its time, or after them."""
    chance = random.Random(seed)
    asked = sorted([*OF_A, *OF_B, Asked(21_400, "b", P1, 207, end(21_400)), *HEIR, *listings(P0, P1)])
    story = killed() if seed % 2 else killed().polls(62_000)
    whole = {name: rows(story, asked, name) for name in (REBALANCE_OFFSETS, FINDINGS)}
    cuts = sorted(chance.sample(range(62_000), chance.randrange(1, 30)))
    spans = list(zip([-10_000, *cuts], [*cuts, 90_000], strict=True))
    events = [[e for e in story.events if begin < e.at_ms - START_MS <= until] for begin, until in spans]
    reads = [[one for one in asked if begin < one.at_ms <= until] for begin, until in spans]
    cut = play([[*batch, *clocks(batch)] for batch in events], snapshot=True, reads=[logs(own) if own else () for own in reads])
    for name, expected in whole.items():
        assert sorted(map(str, table(cut, name))) == sorted(map(str, expected)), name


@pytest.mark.parametrize("seed", every(4, range(50)))
def test_what_was_read_is_the_same_however_it_is_cut(seed):
    """Slices and batches cut the requests of a connection anywhere."""
    chance = random.Random(seed)
    position, at_ms, asked = 100, 0, []
    for _ in range(60):
        at_ms += chance.choice((10, 300, 700, 2_500, 6_000))
        position = max(position + chance.choice((0, 0, 3, 40, -20)), 0)
        told = chance.choice((-1, position + 5))
        asked.append(Asked(at_ms, "a", P0, chance.choice((position, position, -1)), chance.choice((told, told, told, OUT_OF_RANGE))))
    whole = merged([asked])
    places = sorted(chance.sample(range(1, len(asked)), chance.randrange(1, 12)))
    assert merged([asked[begin:until] for begin, until in zip([0, *places], [*places, len(asked)], strict=True)]) == whole


def merged(pieces: list[list[Asked]]) -> list[Read | End]:
    ledger = Ledger()
    for piece in pieces:
        for reads in logs(piece):
            for _, own in reads.of({client_key("a", "10.0.0.7")}):
                ledger.take_reads(own)
    return [one._replace(sign=Ref("request", "r", 1)) for one in ledger.due(START_MS + 10_000_000)]
