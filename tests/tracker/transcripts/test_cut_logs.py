"""A short life of a group by its coordinator's log, cut in every place: what the lines that are left decide, and nothing more.

What is expected follows from the rules of the coordinator: a generation is made once and has the members that "Stabilized" and "Assignment
received" count; a line about a member that is added names the state before; a reason names who began the rebalance. Client ids tell members
apart, are one for all of them, or look like other text.
"""

import pytest

from coordinator_model import events as kinds
from tests.tracker.story import Story
from tests.tracker.transcripts.cut_logs import JAVA, SCALA, Cast, ends, findings, lines, log, rebalances

LIFE = lines("""
    0 issues a Empty
    2 adds a Empty
    2 prepares-join 0 a
    100 issues b PreparingRebalance
    102 adds b PreparingRebalance
    6002 stabilized 1 2
    6010 assigned 1 a 2
    20000 issues c Stable
    20002 adds c Stable
    20002 prepares-join 1 c
    20500 stabilized 2 3
    20510 assigned 2 a 3
    40000 fails b
    40000 prepares-expiry 2 b
    40008 stabilized 3 2
    40012 assigned 3 a 2
    60000 leaves a
    60000 prepares-leave 3 a
    60400 stabilized 4 1
    60410 assigned 4 c 1
    80000 leaves c
    80000 prepares-leave 4 c
    80000 empty 5
    100000 issues d Empty
    100002 adds d Empty
    100002 prepares-join 5 d
    103002 stabilized 6 1
    103010 assigned 6 d 1
""")
WHOLE = [
    "1 COMPLETED MEMBER_JOINED a 0 > 2 +a +b",
    "2 COMPLETED MEMBER_JOINED c 2 > 3 +c",
    "3 COMPLETED SESSION_TIMEOUT b 3 > 2 -b",
    "4 COMPLETED MEMBER_LEFT a 2 > 1 -a",
    "5 EMPTIED MEMBER_LEFT c 1 > 0 -c",
    "6 COMPLETED MEMBER_JOINED d 0 > 1 +d",
]
ENDS = ["40000 SESSION_TIMEOUT b", "60000 LEFT a", "80000 LEFT c"]
CASTS = {
    "apart": Cast({"a": "web-1", "b": "web-2", "c": "web-3", "d": "web-4", "y": "web-9"}),
    "one": Cast(dict.fromkeys("abcdy", "web shop")),
    "odd": Cast({"a": "web shop/1", "b": "job-0a9114c9-6472-428a-8e84-9f866df89f04", "c": "/ x, y", "d": "d - ", "y": "y, "}),
}

SCALA_LIFE = [line for line in LIFE if " adds " not in line]
"""Scala brokers do not log at INFO that a client used its id, and log after the rebalance that its member has left."""
for leaving in ("60000 leaves a", "80000 leaves c"):
    place = SCALA_LIFE.index(leaving)
    SCALA_LIFE[place : place + 2] = SCALA_LIFE[place + 1], leaving

UNBEGUN = {
    "2 prepares-join 0 a": "1 COMPLETED MEMBER_JOINED a 0 > 2 +a +b unbegun",
    "20002 prepares-join 1 c": "2 COMPLETED MEMBER_JOINED c 2 > 3 +c unbegun",
    "40000 prepares-expiry 2 b": "3 COMPLETED UNKNOWN - 3 > 2 -b unbegun",
    "60000 prepares-leave 3 a": "4 COMPLETED UNKNOWN - 2 > 1 -a unbegun",
    "80000 prepares-leave 4 c": "5 EMPTIED UNKNOWN - 1 > 0 -c unbegun",
    "100002 prepares-join 5 d": "6 COMPLETED MEMBER_JOINED d 0 > 1 +d unbegun",
}
"""A departure may have come amid a rebalance. Of one that joins, the line names the state in which it found the group."""
UNENDED = {
    "6010 assigned 1 a 2": "1 COMPLETED MEMBER_JOINED a 0 > 2 +a +b unended",  # the next line names the state Stable
    "20510 assigned 2 a 3": "2 ABANDONED MEMBER_JOINED c 2 > 3 +c unended",
    "40012 assigned 3 a 2": "3 ABANDONED SESSION_TIMEOUT b 3 > 2 -b unended",
    "60410 assigned 4 c 1": "4 ABANDONED MEMBER_LEFT a 2 > 1 -a unended",
    "80000 empty 5": "5 EMPTIED MEMBER_LEFT c 1 > 0 -c unended",  # the next line names the state Empty
}
UNBEGUN_SCALA = {
    "2 prepares-join 0 a": "1 COMPLETED UNKNOWN - 0 > 2 +a +b unbegun",
    "20002 prepares-join 1 c": "2 COMPLETED UNKNOWN - 2 > 3 +c unbegun",
    "100002 prepares-join 5 d": "6 COMPLETED UNKNOWN - 0 > 1 +d unbegun",
    "100 issues b PreparingRebalance": "1 COMPLETED MEMBER_JOINED a 0 > 2 +a +1",
}


BROKERS = {"Java": (LIFE, JAVA, UNBEGUN | UNENDED), "Scala": (SCALA_LIFE, SCALA, UNBEGUN | UNENDED | UNBEGUN_SCALA)}


def instead(row: str, number: str = "") -> list[str]:
    """The whole life with another row in the place of this number, by default of its own."""
    return [row if old[:1] == (number or row[:1]) else old for old in WHOLE]


@pytest.mark.parametrize("cast", CASTS.values(), ids=CASTS)
@pytest.mark.parametrize(("broker", "lost"), [(broker, line) for broker, (life, *_) in BROKERS.items() for line in life])
def test_a_line_is_lost(cast, broker, lost) -> None:
    life, sentences, changed = BROKERS[broker]
    rows = log(Story(), [line for line in life if line != lost], cast, sentences).rows(until=200_000)
    expected = instead(changed.get(lost, WHOLE[0]))
    assert rebalances(rows, cast) == (expected if lost != LIFE[-1] else WHOLE[:-1])  # it may go on
    assert ends(rows, cast) == ENDS
    assert findings(rows, cast) == [f"SESSION_TIMEOUT b of {cast.clients['b']}"]


PAIRS = {
    "2 adds a Empty": "1 COMPLETED UNKNOWN - 0 > 2 +a +b unbegun",
    "100 issues b PreparingRebalance": "1 COMPLETED MEMBER_JOINED a 0 > 2 +a +1",
    "102 adds b PreparingRebalance": WHOLE[0],
    "20002 adds c Stable": "2 COMPLETED UNKNOWN - 2 > 3 +c unbegun",
    "20002 prepares-join 1 c": "2 COMPLETED MEMBER_JOINED c 2 > 3 +c unbegun",
    "20500 stabilized 2 3": "None ABANDONED MEMBER_JOINED c 2 > ? +c unended",
    "40000 fails b": "3 COMPLETED UNKNOWN - 3 > 2 -1 unbegun",
    "40000 prepares-expiry 2 b": "3 COMPLETED UNKNOWN - 3 > 2 -b unbegun",
    "40008 stabilized 3 2": "None ABANDONED SESSION_TIMEOUT b 3 > ? -b unended",
    "60000 leaves a": "4 COMPLETED UNKNOWN - 2 > 1 -1 unbegun",
    "60400 stabilized 4 1": "None ABANDONED MEMBER_LEFT a 2 > ? -a unended",
    "80000 leaves c": "5 EMPTIED UNKNOWN - 1 > 0 -c unbegun",
    "80000 empty 5": "5 EMPTIED MEMBER_LEFT c 1 > 0 -c unended",
}
"""By the first of two lines that are lost together. Who begins the next rebalance by going goes in that, whatever ended the one before."""


@pytest.mark.parametrize("first", PAIRS)
def test_two_lines_are_lost(first) -> None:
    cast, place, row = CASTS["odd"], LIFE.index(first), PAIRS[first]
    rows = log(Story(), LIFE[:place] + LIFE[place + 2 :], cast).rows(until=200_000)
    assert rebalances(rows, cast) == instead(row, first.split(" ")[2] if row.startswith("None") else "")


@pytest.mark.parametrize("apart", [0, 2, 9])
@pytest.mark.parametrize("place", [n for n in range(len(LIFE) - 1) if int(LIFE[n + 1].split()[0]) - int(LIFE[n].split()[0]) < 100])
def test_two_lines_are_swapped(place, apart) -> None:
    """They have one time, or the clock stepped back between them: they are read in the other order."""
    cast = CASTS["odd"]
    (at, first), (_, second) = (line.split(" ", 1) for line in LIFE[place : place + 2])
    swapped = [f"{at} {second}", f"{int(at) + apart} {first}"]
    rows = log(Story(), LIFE[:place] + swapped + LIFE[place + 2 :], cast).rows(until=200_000)
    assert rebalances(rows, cast) == WHOLE


BEGINNINGS = {
    "100 issues b PreparingRebalance": "1 COMPLETED UNKNOWN - 0 > 2 +b +1 unbegun",  # only an Empty group has generation 0
    "6002 stabilized 1 2": "1 COMPLETED UNKNOWN - 0 > 2 +2 unbegun",
    "6010 assigned 1 a 2": "1 COMPLETED UNKNOWN - 0 > 2 +2 unbegun",
    "20000 issues c Stable": "2 COMPLETED MEMBER_JOINED c ? > 3 +c",
    "20002 prepares-join 1 c": "2 COMPLETED MEMBER_JOINED c ? > 3 +c",
    "20500 stabilized 2 3": "2 COMPLETED UNKNOWN - ? > 3 unbegun",
    "20510 assigned 2 a 3": "2 COMPLETED UNKNOWN - ? > 3 unbegun",
    "40000 fails b": "3 COMPLETED SESSION_TIMEOUT b ? > 2 -b",
    "40000 prepares-expiry 2 b": "3 COMPLETED SESSION_TIMEOUT b ? > 2 -b",
    "40012 assigned 3 a 2": "3 COMPLETED UNKNOWN - ? > 2 unbegun",
    "60000 leaves a": "4 COMPLETED MEMBER_LEFT a ? > 1 -a",
    "60000 prepares-leave 3 a": "4 COMPLETED MEMBER_LEFT a ? > 1",  # such a reason may name one that had an id and was no member
    "80000 leaves c": "5 EMPTIED MEMBER_LEFT c ? > 0 -c",
    "80000 empty 5": "5 EMPTIED UNKNOWN - ? > 0 unbegun",
    "100000 issues d Empty": WHOLE[5],
    "100002 prepares-join 5 d": "6 COMPLETED MEMBER_JOINED d ? > 1 +d",
    "103010 assigned 6 d 1": "6 COMPLETED UNKNOWN - ? > 1 unbegun",
}


@pytest.mark.parametrize("first", BEGINNINGS)
def test_the_log_begins_late(first) -> None:
    """From the first rebalance that is seen as a whole on, everything is as in the whole log: the lines count all members."""
    cast = CASTS["one"]
    rows = log(Story(), LIFE[LIFE.index(first) :], cast).rows(until=200_000)
    row = BEGINNINGS[first]
    assert rebalances(rows, cast) == [row, *WHOLE[int(row[:1]) :]]


STRANGERS = {
    "20100 issues y PreparingRebalance, 20300 leaves y": "2 COMPLETED MEMBER_JOINED c 2 > 3 +c",
    "20100 issues y PreparingRebalance, 20300 fails y": "2 COMPLETED MEMBER_JOINED c 2 > 3 +c",
    "20300 leaves y": "2 COMPLETED MEMBER_JOINED c 2 > 3 +c",
    "30000 fails y, 30000 prepares-expiry 2 y, 30500 stabilized 3 2, 30510 assigned 3 a 2": "3 COMPLETED SESSION_TIMEOUT y 3 > 2 -y",
    "30000 prepares-leave 2 y, 30001 leaves y, 30500 stabilized 3 2, 30510 assigned 3 a 2": "3 COMPLETED MEMBER_LEFT y 3 > 2 -y",
}
"""y came and went within the join phase, or is one of those that the coordinator counted, by an id that no line told."""


@pytest.mark.parametrize("added", STRANGERS)
def test_a_member_goes_that_no_line_has_added(added) -> None:
    cast = CASTS["odd"]
    script = sorted([*SCALA_LIFE[:9], *added.split(", ")], key=lambda line: int(line.split()[0]))
    rows = log(Story(), script, cast, SCALA).rows(until=35_000)
    assert rebalances(rows, cast) == [*WHOLE[: int(STRANGERS[added][:1]) - 1], STRANGERS[added]]


PIECES = {
    # who left with no line of its own is not told to leave again when the group is empty
    "20000 prepares-leave 1 a, 20500 stabilized 2 1, 20510 assigned 2 b 1, 21100 leaves b, 21103 prepares-leave 2 b, 21104 empty 3": [
        "2 COMPLETED MEMBER_LEFT a 2 > 1 -1",
        "3 EMPTIED MEMBER_LEFT b 1 > 0 -b",
    ],
    # the end of the join phase is lost, and the reason alone names whom the next rebalance removes
    "20000 prepares-join 1 c, 50500 prepares-unsynced 2 b, 50504 stabilized 3 2, 50510 assigned 3 a 2": [
        "None ABANDONED MEMBER_JOINED c 2 > ? +c unended",
        "3 COMPLETED SYNC_TIMEOUT b 3 > 2 -b",
    ],
    # the end is lost, and the next one begins by a member that joins
    "20000 fails b, 20000 prepares-expiry 1 b, 30000 adds c Stable, 30000 prepares-join 2 c, 30500 stabilized 3 2, 30510 assigned 3 a 2": [
        "None ABANDONED SESSION_TIMEOUT b 2 > ? -b unended",
        "3 COMPLETED MEMBER_JOINED c 1 > 2 +c",
    ],
    # the clock steps back before the assignment, and the leader joins again
    "20000 prepares-join 1 c, 20010 stabilized 2 3, 20020 prepares-leader 2 a, 20022 assigned 2 a 3, 20500 stabilized 3 3, "
    "20510 assigned 3 a 3": ["2 COMPLETED MEMBER_JOINED c 2 > 3 +c unended", "3 COMPLETED LEADER_REJOINED a 3 > 3"],
}
"""Cut from recordings, after the first generation."""


@pytest.mark.parametrize("script", PIECES)
def test_a_piece_of_a_recording(script) -> None:
    cast = CASTS["odd"]
    assert rebalances(log(Story(), [*LIFE[:7], *script.split(", ")], cast).rows(until=60_000), cast) == [WHOLE[0], *PIECES[script]]


def test_a_log_begins_with_members_that_a_coordinator_reads_back() -> None:
    """The line counts them. Who they are, later lines tell."""
    cast = CASTS["one"]
    story = Story().at(0).log(kinds.GROUP_LOADED, member_count=3)
    rows = log(story, [line for line in LIFE if int(line.split()[0]) >= 40_000], cast).rows(until=200_000)
    assert rebalances(rows, cast) == WHOLE[2:]


TILLS = lines("""
    0 adds-static =a Empty a
    0 prepares-static 0 a =a
    100 adds-static =b PreparingRebalance b
    6002 stabilized 1 2
    6010 assigned 1 a 2
    20000 replaces =a Stable a
    20002 fences =a a a2
    23002 fences =a a a2
    40000 fails a2
    40000 prepares-expiry 1 a2
    40500 stabilized 2 1
    40510 assigned 2 b 1
""")
"""Two processes have the group.instance.id of a. The second one dies."""


@pytest.mark.parametrize("lost", ["none", *TILLS[5:10]])
@pytest.mark.parametrize("instances", [("till-1", "till-2"), ("till 1", "till 1 b"), ("till, / 1", "till")])
def test_a_fenced_member(instances, lost) -> None:
    first, second = instances
    cast = Cast({"a": first, "b": second, "a2": first})
    rows = log(Story(), [line for line in TILLS if line != lost], cast).rows(until=90_000)
    begun = "2 COMPLETED SESSION_TIMEOUT a2 2 > 1 -a2"
    assert rebalances(rows, cast) == [WHOLE[0], "2 COMPLETED UNKNOWN - 2 > 1 -a2 unbegun" if "prepares" in lost else begun]
    assert ends(rows, cast) == [f"{20_002 if 'replaces' in lost else 20_000} REPLACED a", "40000 SESSION_TIMEOUT a2"]
    assert [finding.partition(" of")[0] for finding in findings(rows, cast)] == ["FENCED_INSTANCE a", "SESSION_TIMEOUT a2"]
