"""Members with one client id, and hundreds of clients, by their requests: alone, with a line lost, and beside the coordinator's log."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from tests.tracker.story import START_MS, Story, table
from tests.tracker.transcripts.cut_logs import Cast, ends, findings, lines, log, rebalances

ONE = Cast(dict.fromkeys("abd", "web shop"))
MANY = Cast({f"m{number:03}": "web shop" for number in range(301)})
"""Processes with one client id."""


class Requests(Story):
    """Requests of a cast. Each member has a connection of its own."""

    def __init__(self, cast: Cast) -> None:
        super().__init__()
        self.cast = cast

    def request(self, kind, member, took=1, **fields) -> Story:
        who = self.cast.name(member or fields["answer_member_id"])
        return super().request(kind, member, took, **{"client_id": self.cast.clients[who], "connection": f"connection of {who}", **fields})

    def form(self, at: int, generation: int, names: list[str], asked: int = 0, called: int = 0) -> Requests:
        """All join and sync. The first one leads. `asked`: when the newcomers did, who begin it; `called`: when the others were told to."""
        ids = [self.cast.ids[name] for name in names]
        given = {member: (f"t-{number}",) for number, member in enumerate(ids)}
        for number, member in enumerate(ids):
            since = asked + number if asked and (number or generation == 1) else called or at - 50
            self.at(at).join(member, generation, ids[0], () if number else ids, waited=at - since)
        for number, member in enumerate(ids):
            self.at(at + 10).sync(member, generation, {member: given[member]} if number else given)
        return self

    def alive(self, names: list[str], generation: int, start: int, stop: int) -> Requests:
        self.beats([self.cast.ids[name] for name in names], generation, start, stop)
        return self

    def called(self, at: int, name: str, generation: int) -> Requests:
        """A heartbeat is answered that the group rebalances."""
        self.at(at).heartbeat(self.cast.ids[name], generation, Error.REBALANCE_IN_PROGRESS)
        return self

    def asks(self, at: int, name: str) -> Requests:
        """A new process asks for a member id."""
        self.at(at).id_issued(self.cast.ids[name])
        return self


def begun(cast: Cast, names: list[str], until: int) -> Requests:
    story = Requests(cast)
    for name in names:
        story.asks(1, name)
    return story.form(3_000, 1, names, asked=10).alive(names, 1, 4_000, until)


def crashed() -> Requests:
    """b dies after 13 s. The same client comes at 40 s in another process, d."""
    story = begun(ONE, ["a", "b"], 16_000).alive(["a"], 1, 16_000, 23_000).called(26_000, "a", 1)
    story.form(26_100, 2, ["a"]).alive(["a"], 2, 27_000, 40_000).asks(40_000, "d").called(40_200, "a", 2)
    return story.form(40_500, 3, ["a", "d"], asked=40_010).alive(["a", "d"], 3, 41_000, 90_000)


def replaced() -> Requests:
    """d comes while the coordinator still waits for b, which has died."""
    story = begun(ONE, ["a", "b"], 16_000).alive(["a"], 1, 16_000, 18_000).asks(18_000, "d").called(19_000, "a", 1)
    return story.form(23_100, 2, ["a", "d"], asked=18_010, called=19_010).alive(["a", "d"], 2, 24_000, 90_000)


def left() -> Requests:
    """b leaves without a reason. d comes soon after."""
    story = begun(ONE, ["a", "b"], 16_000)
    story.at(16_500).leave(ONE.ids["b"])
    story.called(17_000, "a", 1).form(17_100, 2, ["a"]).alive(["a"], 2, 18_000, 24_000).asks(24_000, "d").called(24_200, "a", 2)
    return story.form(24_500, 3, ["a", "d"], asked=24_010).alive(["a", "d"], 3, 25_000, 90_000)


FIRST = "1 COMPLETED MEMBER_JOINED a 0 > 2 +a +b"
CAME = "3 COMPLETED MEMBER_JOINED d 1 > 2 +d"
DIED = "22999 SESSION_TIMEOUT b"
STORIES = {
    crashed: ([FIRST, "2 COMPLETED SESSION_TIMEOUT b 2 > 1 -b", CAME], [DIED]),
    replaced: ([FIRST, "2 COMPLETED MEMBER_JOINED d 2 > 2 +d -b"], [DIED]),
    left: ([FIRST, "2 COMPLETED MEMBER_LEFT b 2 > 1 -b", CAME], ["16499 LEFT b"]),
}


@pytest.mark.parametrize("story", STORIES)
def test_of_two_members_with_one_client_id_one_goes(story) -> None:
    rows = story().rows(until=85_000)
    assert (rebalances(rows, ONE), ends(rows, ONE)) == STORIES[story]
    assert findings(rows, ONE) == ([] if story is left else ["SESSION_TIMEOUT b of web shop"])


LOST = {
    (3_000, "a"): [
        "1 COMPLETED MEMBER_JOINED - 0 > ? +b",
        "2 COMPLETED SESSION_TIMEOUT b ? > 1 -b",
        CAME,
    ],  # a leads, so b was not the first
    (3_000, "b"): [FIRST, "2 COMPLETED UNKNOWN - 2 > 1 -b unbegun", CAME],  # its session timeout is not known
    (40_500, "a"): [*STORIES[crashed][0][:2], "3 COMPLETED MEMBER_JOINED d 1 > ? +d"],
    (40_500, "d"): [*STORIES[crashed][0][:2], "3 COMPLETED UNKNOWN - 1 > 2 +d unbegun"],
}
"""By the time and the member of a JoinGroup whose line is lost."""


@pytest.mark.parametrize(("at", "member"), LOST)
def test_the_line_of_a_join_is_lost(at: int, member: str) -> None:
    story = crashed()
    story.events = [e for e in story.events if (e.kind, e.at_ms - START_MS, e.member_id) != (kinds.JOIN_GROUP, at, ONE.ids[member])]
    assert rebalances(story.rows(until=85_000), ONE) == LOST[at, member]


def test_how_many_there_were_is_not_known_after_a_generation_that_only_its_assignment_shows() -> None:
    story = crashed()
    story.events = [e for e in story.events if (e.kind, e.answer_generation) != (kinds.JOIN_GROUP, 2)]
    rows = table(story.rows(until=85_000), "rebalances")
    assert [(row["generation"], row["members_before"], row["members_after"]) for row in rows] == [(1, 0, 2), (None, 2, None), (3, None, 2)]


CRASHED_LOG = lines("""
    2 adds a Empty
    2 prepares-join 0 a
    3 adds b PreparingRebalance
    3000 stabilized 1 2
    3010 assigned 1 a 2
    22999 fails b
    22999 prepares-expiry 1 b
    26099 stabilized 2 1
    26109 assigned 2 a 1
    40010 adds d Stable
    40010 prepares-join 2 d
    40499 stabilized 3 2
    40509 assigned 3 a 2
""")


@pytest.mark.parametrize("lost", CRASHED_LOG)
def test_requests_say_what_a_lost_line_of_the_coordinator_said(lost) -> None:
    rows = log(crashed(), [line for line in CRASHED_LOG if line != lost], ONE).rows(until=85_000)
    assert (rebalances(rows, ONE), ends(rows, ONE)) == STORIES[crashed]


def test_three_hundred_clients_are_refused_because_the_group_is_full_and_ask_again() -> None:
    """Their ids have blanks. Each counts once, however often it asks."""
    story = begun(ONE, ["a", "b"], 16_000)
    for again in range(3):
        for number in range(300):
            story.at(20_000 + 10_000 * again + 10 * number)
            asked = {"client_id": f"web {number}", "connection": f"c-{number}", "error_code": Error.GROUP_MAX_SIZE_REACHED}
            Story.request(story, kinds.JOIN_GROUP, "", **asked)
    rows = story.alive(["a", "b"], 1, 16_000, 60_000).rows(until=60_000)
    told = table(rows, "findings")
    assert [(row["code"], row["client_id"]) for row in told] == [("GROUP_TOO_LARGE", f"web {number}") for number in range(300)]
    figures = [json.loads(row["details"]) for row in told]
    assert [(one["group_max_size"], one["refused_clients"], one["wanted"]) for one in figures] == [(2, n, 2 + n) for n in range(1, 301)]
    assert rebalances(rows, ONE) == [FIRST]


@pytest.mark.parametrize("logs", ["coordinator", "requests", "both"])
def test_three_hundred_members_leave_at_once(logs) -> None:
    stays, *gone = names = list(MANY.ids)
    story = Requests(MANY) if logs == "coordinator" else begun(MANY, names, 7_000)
    if logs != "coordinator":
        for number, name in enumerate(gone):
            story.at(8_000 + number // 2).leave(MANY.ids[name], "the consumer is being closed", took=0)
        story.called(9_000, stays, 1).form(9_100, 2, [stays]).alive([stays], 2, 10_000, 20_000)
    if logs != "requests":
        script = [f"2 adds {stays} Empty", f"2 prepares-join 0 {stays}", *(f"3 adds {name} PreparingRebalance" for name in gone)]
        script += ["3000 stabilized 1 301", f"3010 assigned 1 {stays} 301", f"8000 prepares-leave 1 {gone[0]}"]
        script += [f"{8_000 + number // 2} leaves {name}" for number, name in enumerate(gone)]
        log(story, [*script, "9099 stabilized 2 1", f"9109 assigned 2 {stays} 1"], MANY)
    rows = story.rows(until=25_000)
    assert rebalances(rows, MANY) == [
        f"1 COMPLETED MEMBER_JOINED {stays} 0 > 301 " + " ".join(f"+{name}" for name in names),
        f"2 COMPLETED MEMBER_LEFT {gone[0]} 301 > 1 " + " ".join(f"-{name}" for name in gone),
    ]
    assert sorted(end.partition(" ")[2] for end in ends(rows, MANY)) == [f"LEFT {name}" for name in gone]
    assert findings(rows, MANY) == []


def test_three_hundred_members_that_were_removed_are_told_of_once_though_each_asks_again() -> None:
    stays, *gone = names = list(MANY.ids)
    story = begun(MANY, names, 7_000).alive([stays], 1, 7_000, 14_000).called(15_000, stays, 1)
    story.form(15_100, 2, [stays]).alive([stays], 2, 16_000, 50_000)
    for again in range(2):
        for number, name in enumerate(gone):
            story.at(20_000 + 3_000 * again + number).heartbeat(MANY.ids[name], 1, Error.UNKNOWN_MEMBER_ID)
    told = Counter((row["code"], row["member_id"]) for row in table(story.rows(until=40_000), "findings"))
    assert told == Counter((code, MANY.ids[name]) for code in ("SESSION_TIMEOUT", "UNKNOWN_MEMBER") for name in gone)
