"""What the questions answer, where small tables show it better than a recording."""

import itertools
from datetime import datetime, timezone

import pytest

from jobs.answers import ask, questions
from jobs.answers.report import read_report
from jobs.common.errors import QuestionError
from tests.answers.asking import asked, reader_of
from tests.lakehouse.rows import DAY, MEMBER, finding, line, rebalance, row, write

pytestmark = pytest.mark.slow


def session(**values):
    return row("member_sessions", **{"group_id": "payments", "member_id": MEMBER, "end_kind": "LEFT"} | values)


def step(group, from_state, to_state, generation=None):
    """A change of state, all within one millisecond."""
    known = {"group_id": group, "occurred_at": DAY + 5, "trigger": "x", "generation": generation}
    return row("group_transitions", **known, from_state=from_state, to_state=to_state)


def test_the_state_of_a_group_that_moved_within_a_millisecond(lakehouse):
    write(lakehouse, line(at=90_000), step("payments", "Dead", "Stable", 2), step("payments", "Stable", "Dead", 2))
    assert asked(lakehouse, "groups")[0]["state"] == "Stable"


def test_a_consumer_group_that_lost_its_last_member_within_a_millisecond_is_empty(lakehouse):
    groups = [f"g{number}" for number in range(8)]
    write(lakehouse, *(line(group, at=90_000) for group in groups), *(step(group, "Reconciling", "Empty", 6) for group in groups))
    write(lakehouse, *(step(group, "Stable", "Reconciling", 6) for group in groups), batch=1)
    assert [found["state"] for found in asked(lakehouse, "groups")] == ["Empty"] * 8
    assert [found["state"] for found in read_report(reader_of(lakehouse)).groups] == ["Empty"] * 8


def test_a_group_that_a_poll_finds_with_other_members_is_stable(lakehouse):
    """All states between are of the time of the poll, and none has a generation."""
    states = ["Stable", "PreparingRebalance", "CompletingRebalance", "Stable"]
    orders = list(itertools.permutations(itertools.pairwise(states)))
    write(lakehouse, *(line(f"g{number}", at=90_000) for number in range(6)))
    for batch in range(3):
        write(lakehouse, *(step(f"g{number}", *order[batch]) for number, order in enumerate(orders)), batch=batch)
    assert [found["state"] for found in asked(lakehouse, "groups")] == ["Stable"] * 6
    assert [found["state"] for found in read_report(reader_of(lakehouse)).groups] == ["Stable"] * 6
    told = [found["what"] for found in asked(lakehouse, "timeline", group="g3")]
    assert told == [" > ".join(pair) for pair in itertools.pairwise(states)]


def test_groups_are_named_by_what_they_are(lakehouse):
    def logged(group, **values):
        return line(group, source="coordinator", kind="CONSUMER_GROUP_LOG", state="JOINED", **values)

    def joined(group, protocol_type):
        return line(group, source="request", kind="JOIN_GROUP", error_code=0, protocol_type=protocol_type)

    write(
        lakehouse,
        *(logged(group, protocol_type=group) for group in ("share", "streams")),
        logged("share", position=2),
        logged("telemetry"),
        *(joined(group, group) for group in ("connect", "consumer")),
    )
    found = {one["group_id"]: (one["group_protocol"], one["protocol_type"]) for one in asked(lakehouse, "groups")}
    assert found == {
        "share": ("share", None), "streams": ("streams", None), "telemetry": ("consumer", None),
        "connect": ("classic", "connect"), "consumer": ("classic", None),
    }  # fmt: skip
    assert {one["group_protocol"]: one["groups"] for one in asked(lakehouse, "states")} == {
        "classic": 2,
        "consumer": 1,
        "share": 1,
        "streams": 1,
    }


def test_a_version_that_changed_is_a_change(lakehouse):
    def join(at, member, software, timeout):
        return line(
            at=at, kind="JOIN_GROUP", source="request", error_code=0, client_id="app", answer_member_id=member,
            software=software, session_timeout_ms=timeout,
        )  # fmt: skip

    write(lakehouse, join(0, "m1", "java 3.9.1", 45_000), join(60_000, "m2", "java 4.2.0", 10_000))
    found = asked(lakehouse, "changes", at="2026-11-21T00:01:00", around="1s")
    assert {(change["what"], change["detail"]) for change in found} == {
        ("member came", "java 4.2.0"),
        ("client version", "java 3.9.1 > java 4.2.0"),
        ("session.timeout.ms", "45000 > 10000"),
    }


def test_coordinators_that_take_groups_over_and_give_them_up_are_changes_in_either_protocol(lakehouse):
    kinds = ("GROUP_LOADED", None), ("CONSUMER_GROUP_LOG", "READ_BACK"), ("GROUP_UNLOADED", None), ("CONSUMER_GROUP_LOG", "GIVEN_UP")
    write(lakehouse, *(line(f"g{n}", at=60_000, source="coordinator", kind=kind, state=state) for n, (kind, state) in enumerate(kinds)))
    found = asked(lakehouse, "changes", at="2026-11-21T00:01:00", around="1s")
    assert [(change["group_id"], change["detail"].split()[0]) for change in found] == [
        ("g0", "took"),
        ("g1", "took"),
        ("g2", "gave"),
        ("g3", "gave"),
    ]


def test_applications_are_clients_without_their_number(lakehouse):
    clients = ["orders-1", "orders-2", "orders-7d9c5b6f4d-x2x1z", "consumer-orders-3", "12", None]
    write(lakehouse, line(at=90_000), *(rebalance(start=n, generation=n, client_id=client) for n, client in enumerate(clients)))
    found = {bill["payer"]: bill["rebalances"] for bill in asked(lakehouse, "bill")}
    assert found == {"orders": 3, "consumer-orders": 1, "12": 1, "(no culprit)": 1}


def test_a_bill_is_made_out_to_whom_one_says(lakehouse):
    write(
        lakehouse,
        line(at=90_000),
        rebalance(start=-1, generation=1, client_id="orders-1", member_id="m-1"),
        rebalance(start=0, generation=2, client_id="orders-1", member_id="m-2"),
        rebalance(start=80_000, generation=3),
    )
    for by, payers in {
        "client": {"orders-1": 2, "(no culprit)": 1},
        "member": {"m-1": 1, "m-2": 1, "(no culprit)": 1},
        "group": {"payments": 3},
        "day": {"2026-11-20": 1, "2026-11-21": 2},
    }.items():
        assert {bill["payer"]: bill["rebalances"] for bill in asked(lakehouse, "bill", by=by)} == payers
        assert asked(lakehouse, "bill", by=by, group="others") == []
    with pytest.raises(QuestionError, match="by: must be one of application, client, member, group, day, not weekday"):
        asked(lakehouse, "bill", by="weekday")


def test_a_bill_has_no_start_ups_as_the_report_has_none(lakehouse):
    began = rebalance("new", members_before=0, members_after=3, total=3_000, client_id="new-1")
    write(lakehouse, line(at=90_000), line("new", at=90_000), began, rebalance(start=1, total=500, client_id="orders-1"))
    (bill,) = asked(lakehouse, "bill")
    assert (bill["payer"], bill["rebalances"], bill["total_ms"]) == ("orders", 1, 500)
    groups = read_report(reader_of(lakehouse)).groups
    assert sum(group["rebalances"] for group in groups) == bill["rebalances"]
    assert sum(group["rebalancing_ms"] for group in groups) == bill["total_ms"]


def test_what_took_longest_in_a_rebalance(lakehouse):
    joined = {"join_ms": 1_500, "sync_ms": 500}
    cases = (
        (joined, "JOIN"),
        ({"join_ms": 400, "sync_ms": 1_600}, "ASSIGN"),
        (joined | {"members_before": 0}, "DELAY"),
        (joined | {"first_fetch_ms": 1_999}, "JOIN"),
        (joined | {"first_fetch_ms": 14_000, "first_fetch_member_id": MEMBER}, "START"),
        ({}, "JOIN"),
    )
    known = {"slowest_member_id": MEMBER, "leader_id": "unheard-of"}
    groups = {f"g{number}": case for number, case in enumerate(cases)}
    came = (line(group, kind="MEMBER_ADDED", source="coordinator", member_id=MEMBER) for group in groups)
    write(lakehouse, line(at=90_000), *came, *(rebalance(group, **known, **values) for group, (values, _) in groups.items()))
    rows = {row["group_id"]: row for row in asked(lakehouse, "phases")}
    assert {group: row["longest"] for group, row in rows.items()} == {group: longest for group, (_, longest) in groups.items()}
    assert {(row["slowest_client_id"], row["leader_client_id"]) for row in rows.values()} == {("app-1", None)}
    assert {row["longest"] for row in rows.values() if row["starter_client_id"] == "app-1"} == {"START"}


def test_who_paused_who_came_back_who_is_gone_and_who_was_not_heard(lakehouse):
    def gone(member, client):
        return session(member_id=member, client_id=client, end_kind="SESSION_TIMEOUT", ended_at=DAY + 50_000, session_timeout_ms=10_000)

    request = {"source": "request", "client_id": "b"}
    write(
        lakehouse,
        gone("a1", "a"),
        gone("b1", "b"),
        gone("c1", "c"),
        line(at=60_000, kind="HEARTBEAT", member_id="a1", error_code=25, source="request"),
        line(at=55_000, kind="JOIN_GROUP", answer_member_id="b2", error_code=0, **request),
        line(at=30_000, kind="JOIN_GROUP", answer_member_id="c0", error_code=0, source="request", client_id="c"),
        line(at=90_000),
        # Their processes ran: d was refused as its session ran out, e waited for an answer, f is named by the finding about its broker, and
        # g had an answer 4 s before, of a session of 10 s.
        *(gone(f"{client}1", client) for client in "defg"),
        line(at=46_000, kind="HEARTBEAT", member_id="g1", error_code=0, source="request"),
        *(line(at=40_000, kind="HEARTBEAT", member_id=f"{client}1", error_code=0, source="request") for client in "de"),
        line(at=45_000, kind="HEARTBEAT", member_id="d1", error_code=15, source="request"),
        line(at=52_000, kind="HEARTBEAT", member_id="e1", error_code=25, source="request", received_at=DAY + 44_000),
        finding(at=45_000, code="COORDINATOR_MOVED", details='{"members_lost":["x1","f1"]}'),
        # Static members that did not poll: h says so in its own log; i says that it is away, and comes back with its id. j was closed so.
        gone("h1", "h") | {"end_kind": "POLL_TIMEOUT", "instance_id": "h"},
        gone("k1", "k") | {"end_kind": "POLL_TIMEOUT"},  # others leave then
        *(gone(f"{client}1", client) for client in "ij"),
        *(line(at=42_000, kind="CONSUMER_GROUP_HEARTBEAT", member_id=f"{m}1", generation=-2, error_code=0, source="request") for m in "ij"),
        line(at=55_000, kind="CONSUMER_GROUP_HEARTBEAT", member_id="i1", generation=0, error_code=0, source="request"),
    )
    found = {end["client_id"]: (end["fate"], end["back_at"]) for end in asked(lakehouse, "session-timeouts")}
    assert {client: fate for client, (fate, _) in found.items()} == {
        "a": "PAUSED", "b": "REJOINED", "c": "GONE", "d": "UNHEARD", "e": "UNHEARD", "f": "UNHEARD", "g": "UNHEARD",
        "h": "STALLED", "i": "STALLED", "j": "GONE",
    }  # fmt: skip
    assert found["b"][1] == datetime(2026, 11, 21, 0, 0, 55, tzinfo=timezone.utc)


def test_who_was_silent_for_longer_than_its_session_and_is_still_there_did_not_survive_that(lakehouse):
    def heard(at, member, **values):
        return line(at=at, kind="HEARTBEAT", member_id=member, error_code=0, source="request", **values)

    joined = {"kind": "JOIN_GROUP", "error_code": 0, "source": "request", "session_timeout_ms": 10_000}
    write(
        lakehouse,
        *(line(answer_member_id=member, member_id=member, **joined) for member in ("m1", "m2")),
        *(heard(at, "m1") for at in (2_000, 11_000)),
        *(heard(at, "m2") for at in (2_000, 16_900)),
        heard(1_000, "m3"),
        session(member_id="m3", end_kind="SESSION_TIMEOUT", ended_at=DAY + 10_000),
        *(heard(at, "m4", generation=3) | {"kind": "CONSUMER_GROUP_HEARTBEAT"} for at in (1_000, 31_000)),
        heard(16_000, "m4") | {"kind": "OFFSET_COMMIT"},  # it keeps the session alive in the classic protocol alone
        line(at=90_000),
    )
    found = {one["member_id"]: (one["used_percent"], one["expired"]) for one in asked(lakehouse, "silences")}
    assert found == {"m1": (90, False), "m2": (149, None), "m3": (100, True), "m4": (None, None)}
    assert [one["member_id"] for one in asked(lakehouse, "silences", session="survived")] == ["m1"]


def test_partitions_have_the_names_of_their_topics_where_a_line_tells_them(lakehouse):
    topic, unknown = "ZiIvh65vQPOxTeW80lTaIA", "QWTE6grBRii7qDNQrCCjTw"
    given = [{"member_id": MEMBER, "partitions": [f"{topic}-10", f"{unknown}-1", f"{topic}-2"], "digest": None}]
    named = line(None, kind="TOPIC_NAMED", offsets=[{"partition": "orders", "topic_id": topic}])
    write(lakehouse, named, line(kind="CONSUMER_GROUP_HEARTBEAT", member_id=MEMBER, answer_generation=2, error_code=0, assignments=given))
    assert [row["names"] for row in asked(lakehouse, "assignments")] == [f"{unknown}-1 orders-2 orders-10"]


def test_partitions_that_pile_up_on_one_member(lakehouse):
    def sync(member, count, at=0):
        own = [{"member_id": member, "partitions": [f"t-{n}" for n in range(count)], "digest": member}]
        return line(at=at, kind="SYNC_GROUP", source="request", error_code=0, generation=2, member_id=member, assignments=own)

    write(lakehouse, sync("m1", 7), sync("m2", 2), line("idle", at=1))
    (found,) = asked(lakehouse, "skew")
    assert (found["verdict"], found["most"], found["least"], found["partitions"]) == ("SKEWED", 7, 2, 9)


def test_members_that_want_different_topics(lakehouse):
    def join(member, topics, at):
        protocols = [{"name": name, "topics": topics, "owned": [], "digest": ""} for name in ("range", "sticky")]
        return line(at=at, kind="JOIN_GROUP", source="request", error_code=0, answer_member_id=member, protocols=protocols, position=at)

    offer = [{"name": "uniform", "topics": ["e"], "owned": None, "digest": None}]
    beat = {"kind": "CONSUMER_GROUP_HEARTBEAT", "source": "request", "error_code": 0, "protocols": offer}
    beats = (line(at=4, answer_member_id="m4", **beat), line(at=5, answer_member_id="m5", subscribed_regex="f.*", **beat))
    write(lakehouse, join("m1", ["b", "a"], 1), join("m2", ["c"], 2), session(member_id="m3", ended_at=DAY + 9), join("m3", ["d"], 3))
    write(lakehouse, *beats, line(at=90_000), batch=1)
    found = {(sets["topics"], sets["members"]) for sets in asked(lakehouse, "subscriptions")}
    assert found == {("a, b", 1), ("c", 1), ("d", 0), ("e", 1), ("e, f.*", 1)}
    assert asked(lakehouse, "subscriptions")[0]["verdict"] == "UNEQUAL"


def test_refused_lines_are_counted_by_reason_with_the_first_of_each(lakehouse):
    def refused(reason, position, *, at=None, origin="c/b1/server.log"):
        known = {"broker": "b1", "raw": f"line {position}", "reason": reason, "source": "unknown", "origin": origin, "position": position}
        return row("quarantine", **known, occurred_at=at)

    write(
        lakehouse,
        refused("BAD_VALUE: no such state", 9, at=DAY + 5_000),
        refused("BAD_VALUE: no generation", 7, at=DAY + 6_000),
        refused("NO_TIMESTAMP", 3),
        refused("BAD_VALUE: no member", 2, at=DAY + 7_000, origin="c/b1/server.log.1"),
    )
    first, second = asked(lakehouse, "quarantine")
    assert (first["code"], first["lines"], first["files"]) == ("BAD_VALUE", 3, 2)
    where = [first[name] for name in ("file", "position", "reason", "line")]
    assert where == ["c/b1/server.log", 7, "BAD_VALUE: no generation", "line 7"]
    assert [first["first_at"].second, first["last_at"].second] == [5, 7]
    assert (second["code"], second["lines"], second["first_at"], second["line"]) == ("NO_TIMESTAMP", 1, None, "line 3")
    assert [found["lines"] for found in asked(lakehouse, "quarantine", since="2026-11-21T00:00:06")] == [2, 1]


def test_a_start_up_is_no_problem(lakehouse):
    """The first rebalance of a group that was new or empty, not one that failed, and not one whose members are not known."""
    started = rebalance("new", members_before=0, members_after=3, client_id="app-1")
    write(lakehouse, line("new", at=90_000), line("busy"), line("failed"), line("known-late"), started)
    assert asked(lakehouse, "worst") == asked(lakehouse, "why") == asked(lakehouse, "culprits") == []
    others = [
        rebalance("new", start=9_000, members_before=3, cause="SESSION_TIMEOUT", client_id="app-1"),
        rebalance("failed", members_before=0, outcome="SUPERSEDED", client_id="app-2"),
        rebalance("known-late", members_before=None, client_id="app-3"),
    ]
    write(lakehouse, *others, batch=1)
    for name in ("worst", "why"):
        assert sorted((row["group_id"], row["cause"], row["rebalances"]) for row in asked(lakehouse, name)) == [
            ("failed", "MEMBER_JOINED", 1),
            ("known-late", "MEMBER_JOINED", 1),
            ("new", "SESSION_TIMEOUT", 1),
        ]
    assert {row["client_id"]: row["rebalances"] for row in asked(lakehouse, "culprits")} == {"app-1": 1, "app-2": 1, "app-3": 1}
    assert len(asked(lakehouse, "rebalances", limit="100")) == 4


def test_a_group_with_nothing_but_start_ups_is_told_where_they_are(lakehouse):
    write(lakehouse, line(at=90_000), line("other"), rebalance(members_before=0))

    def why_nothing(**given):
        question = ask.BoundQuestion(lakehouse, questions.load("why"), given)
        assert question.answer().rows == []
        return question.why_nothing()

    assert why_nothing(group="payments") == "There are start-ups only: `rebalance ask first-join` shows them."
    assert why_nothing(group="other") == ""


def test_changes_come_closest_first(lakehouse):
    starts = [0, 40_000, 57_000, 61_000, 80_000]
    write(lakehouse, line(at=300_000), *(rebalance(start=start, generation=n) for n, start in enumerate(starts)))
    found = asked(lakehouse, "changes", at="2026-11-21T00:01:00")
    assert [(change["occurred_at"] - datetime(2026, 11, 21, tzinfo=timezone.utc)).seconds for change in found] == [61, 57, 40, 80, 0]
    assert asked(lakehouse, "changes", at="2026-11-21T00:01:00", limit="2") == found[:2]
    assert asked(lakehouse, "changes") == []


def test_a_broker_that_starts_gives_nothing_up_and_a_partition_counts_once(lakehouse):
    def said(at, kind, *partitions, broker="b1"):
        return [line("", at=at, kind=kind, broker=broker, coordinator_partition=one, position=at) for one in partitions]

    resigned = "COORDINATOR_RESIGNED"
    write(
        lakehouse,
        *said(1_000, "COORDINATOR_ELECTED", 1, 2),
        *said(10_000, "BROKER_UNCLEAN", None),
        *said(11_000, resigned, 1, 1, 2, 2, 3),
        *said(12_000, "BROKER_STARTED", None),
        *said(13_000, "COORDINATOR_ELECTED", 1, 1, 3),
        *said(14_000, resigned, 1, 1),
        *said(15_000, resigned, 4, broker="b2"),
        line(at=90_000),
    )
    changes = asked(lakehouse, "changes", at="12s", around="1h")
    assert sorted((one["occurred_at"].second, one["detail"].split(" partitions")[0]) for one in changes) == [
        (1, "elected for 2"), (13, "elected for 2"), (14, "resigned for 1"), (15, "resigned for 1"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("leave", "join"),
    [({"kind": "LEAVE_GROUP"}, {"kind": "JOIN_GROUP"}), ({"generation": -1}, {"generation": 0})],
    ids=["classic", "consumer"],
)
def test_a_member_that_comes_back_on_its_connection_may_have_stalled_in_either_protocol(lakehouse, leave, join):
    known = {"member_id": MEMBER, "connection": "c1", "kind": "CONSUMER_GROUP_HEARTBEAT", "generation": 5}
    came_earlier, left_earlier = line(at=10_000, **known | join), line(at=20_000, **known | leave)
    write(
        lakehouse, line(at=90_000, **known), came_earlier, left_earlier, line(at=60_000, **known | leave), line(at=64_000, **known | join)
    )
    write(lakehouse, session(ended_at=DAY + 60_000, client_id="app-1"))
    (found,) = asked(lakehouse, "poll-timeouts")
    assert (found["client_id"], found["sure"], found["away_ms"]) == ("app-1", "LIKELY", 4_000)


@pytest.mark.parametrize(("ended", "told"), [(80_000, [("SAID", MEMBER)]), (59_000, [])])
def test_a_stall_that_only_the_clients_log_tells_is_one_of_a_member(lakehouse, ended, told):
    """Not of one that the group had removed: any process that stood still says so once it goes on."""
    known = {"member_id": MEMBER, "client_id": "app-1"}
    write(
        lakehouse,
        line(at=10_000, **known, kind="JOIN_GROUP", error_code=0),
        line(at=60_000, client_id="app-1", kind="CLIENT_POLL_TIMEOUT", source="client"),
    )
    write(lakehouse, line(at=90_000), session(ended_at=DAY + ended, client_id="app-1"))
    assert [(row["sure"], row["member_id"]) for row in asked(lakehouse, "poll-timeouts")] == told


def test_a_member_that_comes_back_on_another_connection_was_started_again(lakehouse):
    known = {"member_id": MEMBER, "kind": "CONSUMER_GROUP_HEARTBEAT"}
    left = line(at=60_000, **known, generation=-1, connection="c1")
    write(lakehouse, left, line(at=64_000, **known, generation=0, connection="c2"), session(ended_at=DAY + 60_000, client_id="app-1"))
    assert asked(lakehouse, "poll-timeouts") == []


def test_a_wave_of_restarts_is_no_deployment_where_this_group_moved_and_its_members_did_not_leave(lakehouse):
    def restart(group, client, end_kind, at):
        who = {"group_id": group, "client_id": client}
        came = {"kind": "JOIN_GROUP", "error_code": 0, "source": "request", **who}
        ended = session(member_id=f"{client}-1", end_kind=end_kind, ended_at=DAY + at, session_timeout_ms=8_000, **who)
        return ended, line(at=at + 500, answer_member_id=f"{client}-2", **came)

    groups = {"expired": "SESSION_TIMEOUT", "replaced": "REPLACED", "closed": "LEFT", "elsewhere": "SESSION_TIMEOUT"}
    told = [one for group, kind in groups.items() for n in (1, 2) for one in restart(group, f"{group}{n}", kind, 50_000 + n)]
    moves = [row("findings", group_id=group, code="COORDINATOR_MOVED", occurred_at=DAY + 45_000, details="{}") for group in [*groups][:3]]
    elected = line(at=44_000, group_id="", kind="COORDINATOR_ELECTED", source="coordinator")
    write(lakehouse, *told, *moves, elected, line(at=90_000))
    found = {wave["group_id"]: wave["verdict"] for wave in asked(lakehouse, "deploys")}
    assert found == {"closed": "TOGETHER", "elsewhere": "TOGETHER"}


def test_no_session_lives_through_a_silence_that_is_longer_than_itself(lakehouse):
    known = {"member_id": MEMBER, "source": "request", "error_code": 0, "lines": 1}
    joins = line(at=1_000, kind="JOIN_GROUP", session_timeout_ms=10_000, **known)
    beats = (line(at=at, kind="HEARTBEAT", position=at, **known) for at in (3_000, 9_000, 30_000))
    write(lakehouse, joins, *beats, line(at=90_000))
    (found,) = asked(lakehouse, "heartbeats")
    assert (found["longest_gap_ms"], found["used_percent"]) == (6_000, 60)
