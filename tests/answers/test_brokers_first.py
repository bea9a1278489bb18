"""What brokers did to their groups stands first, and is as grave as what it cost. Workers of Connect take consumers with them."""

from datetime import timedelta

import pytest

from coordinator_model.diagnosis.catalogue import AFTER_A_MOVE
from jobs.answers.attention import AttentionEntry
from jobs.answers.attention_words import AttentionWords, trouble
from jobs.answers.news import News, NewsText
from jobs.answers.report import Scope, read_report
from jobs.pipeline.tracking.incident_table import IncidentTable
from tests.answers.asking import asked, reader_of
from tests.answers.test_attention import EXPIRED, found, logged, moved, of, rebalanced
from tests.lakehouse.rows import DAY, MEMBER, finding, line, transition, write


def test_what_a_broker_did_stands_before_what_cost_more(told):
    entries, _ = told(
        *(moved(10, group, members_lost=[f"{group}-m"]) for group in "ab"),
        found("SESSION_TIMEOUT", 30, "c"),
        rebalanced(30, "c", lost=900_000),
    )
    assert [(entry["severity"], entry["groups"]) for entry in entries] == [("ERROR", ["a", "b"]), ("ERROR", ["c"])]


def test_the_entry_of_one_group_names_the_members_that_were_removed_from_it_alone(told, lakehouse):
    told(*(moved(10, group, members_lost=[f"{group}-m"]) for group in "ab"))
    (entry,) = read_report(lakehouse, Scope(group="a")).attention
    assert ("Removed", "a-m") in AttentionWords(str, str, {}).paragraphs(entry)


def test_members_that_were_removed_are_counted_though_their_clients_share_a_name(told, lakehouse):
    members = [f"app-{number // 2}-{number:08}-0000-4000-8000-{0:012}" for number in range(20)]
    told(moved(10, "a", members_lost=members))
    (entry,) = read_report(lakehouse, Scope()).attention
    removed = dict(AttentionWords(str, str, {}).paragraphs(entry))["Removed"]
    assert " 20 members missed their session timeout" in entry.message
    assert removed == ", ".join(f"app-{number} (2)" for number in range(8)) + " and 4 more"


def test_a_crash_of_which_no_finding_tells_is_an_entry_with_the_groups_that_the_broker_had(told, lakehouse):
    """As in the log of that broker alone. c was elsewhere by then."""
    theirs = [
        line(group, at, broker=broker, source="coordinator")
        for group, at, broker in (("a", 1, "1"), ("b", 2, "1"), ("c", 3, "1"), ("c", 4, "2"))
    ]
    (entry,), shown = told(*theirs, logged("BROKER_UNCLEAN", 107, "1", None), logged("BROKER_UNCLEAN", 108, "1", None))
    row = entry["incident"]
    assert (entry["code"], entry["severity"], entry["groups"], entry["findings"]) == ("BROKER_CRASHED", "ERROR", ["a", "b"], [row["id"]])
    assert f"BROKER_CRASHED  broker 1, 2 groups  00:01:47 (id {row['id']})" in shown
    assert row["message"].endswith("no clean shutdown. It had coordinated 2 groups.")
    assert [one["id"] for name in ("incidents", "findings") for one in asked(lakehouse, name, group="b")] == [row["id"]] * 2
    assert [len(read_report(lakehouse, Scope(group=group)).attention) for group in "ac"] == [1, 0]
    news = News(lakehouse)
    _, text = NewsText(wide=True).lines(items := news.take())
    assert {(item.row["group_id"], item.row["message"]) for item in items} == {(group, row["message"]) for group in "ab"}
    assert f"00:01:47  ▲ 2 groups             A broker crashed or was killed (broker 1)  BROKER_CRASHED  {row['id']}  a, b" in text.plain
    write(lakehouse, finding(group_id="c", occurred_at=DAY + 200_000), batch=1)
    IncidentTable(lakehouse).refresh()
    assert [item.row["group_id"] for item in news.take()] == ["c"]
    assert [len(News(lakehouse, group=group).take()) for group in "ac"] == [1, 1]


@pytest.mark.parametrize(
    ("rows", "severity"),
    [
        ([moved(10, "a"), moved(10, "b")], "ERROR"),  # nobody shut it down
        ([moved(10, "a")], "WARNING"),
        ([moved(10, "a"), rebalanced(11, "a", cause="COORDINATOR_MOVED")], "ERROR"),
        ([moved(10, "a"), rebalanced(11, "a", cause="MEMBER_LEFT")], "WARNING"),  # a member that left by itself
        ([moved(10, "a", members_lost=["m"])], "ERROR"),
    ],
)
def test_the_severity_of_what_a_broker_did_follows_from_what_it_cost(told, rows, severity):
    entries, _ = told(*rows)
    assert [entry["severity"] for entry in entries] == [severity]


def test_what_a_broker_did_ends_with_the_last_rebalance_that_is_blamed_on_it(told, lakehouse):
    told(moved(100, "a", members_lost=["m"]), moved(102, "b"), rebalanced(105, "a", total=9_000, cause="COORDINATOR_MOVED"))
    (entry,) = read_report(lakehouse, Scope(group="b")).attention
    assert (entry.last_at, entry.incident["last_at"]) == (entry.first_at + timedelta(seconds=14),) * 2


@pytest.mark.parametrize(
    ("second_at", "causes"), [(130, ["BROKERS_RESTARTED"]), (105, ["BROKER_SHUT_DOWN", "BROKER_SHUT_DOWN"])]
)  # the first one is back after 110 s
def test_brokers_that_were_restarted_one_after_the_other_are_one_entry_with_what_each_cost(told, second_at, causes):
    def restart(at, broker, node, group):
        kinds = ((0, "BROKER_STOPPING"), (2, "BROKER_STOPPED"), (10, "BROKER_STARTED"))
        there = line(group, source="coordinator", broker=broker, coordinator_id=node)
        return there, moved(at + 1, group, broker, "broker-3"), *(logged(kind, at + after, broker, node) for after, kind in kinds)

    blamed = rebalanced(second_at + 2, "b", cause="COORDINATOR_MOVED")
    entries, shown = told(*restart(100, "broker-1", 1, "a"), *restart(second_at, "broker-2", 2, "b"), blamed)
    assert sorted(entry["code"] for entry in entries) == causes
    if causes[1:]:
        return
    assert entries[0]["title"] == "broker-1 and broker-2 were restarted one after another"
    assert entries[0]["message"].endswith(
        " At 00:01:40 UTC broker-1: down for 10.0 s, at least 1 group moved, no rebalance."
        " At 00:02:10 UTC broker-2: down for 10.0 s, at least 1 group moved, 1 rebalance of 2.0 s."
    )
    assert (entries[0]["advice"], entries[0]["groups"]) == ([], ["a", "b"])
    assert "BROKERS_RESTARTED  2 brokers, 2 groups  00:01:40 to 00:02:20" in shown


def missed(at, group, limit, unheard=None, setting="session.timeout.ms"):
    """A group that moved and lost a member to that."""
    return moved(at, group, session_timeouts_ms=limit, unheard_ms=unheard, unheard_client=unheard and f"{group}-1", setting=setting)


@pytest.mark.parametrize(
    ("rows", "advice"),
    [
        (
            [missed(100, "a", [10_000], 10_500), missed(100, "c", [6_000], 12_000), missed(101, "b", [11_000])],
            "To survive this, raise session.timeout.ms of the 3 groups that lost members (now 6 s to 11 s) above 12 s: the last ",
        ),
        (
            [moved(100, "a"), missed(101, "b", [], setting="share.session.timeout.ms")],
            "Raise share.session.timeout.ms of b: it was too short",
        ),
        ([moved(100, "a"), moved(101, "b")], ""),
    ],
)
def test_the_advice_is_for_all_groups_that_lost_members_and_for_the_longest_silence(told, rows, advice):
    (entry,), _ = told(*rows)
    assert entry["advice"][0].startswith(f"{AFTER_A_MOVE} {advice}".strip())


@pytest.mark.parametrize(
    ("lines", "remedy"),
    [
        ([], AFTER_A_MOVE),
        ([logged("BROKER_UNCLEAN", 107), logged("BROKER_UNREACHABLE", 94, "broker-2")], "Read the end of the log of broker-1"),
        ([logged("BROKER_STOPPING", 98), logged("BROKER_STOPPED", 104)], "If this was planned, restart brokers one at a time"),
    ],
)
def test_what_to_do_about_a_broker_follows_from_how_it_went_away(told, lines, remedy):
    there = line("a", source="coordinator", broker="broker-1", coordinator_id=1)
    (entry,), _ = told(missed(100, "a", [8_000]), there, *lines)
    (advice,) = entry["advice"]
    assert advice.startswith(remedy)
    assert advice.endswith(" Raise session.timeout.ms of a (now 8 s): it was too short to survive this.")


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        ([logged("BROKER_UNREACHABLE", 94, "broker-2")], " while broker-1 was down: writes to __consumer_offsets wait for its replica"),
        ([logged("BROKER_STOPPING", 94), logged("BROKER_STOPPED", 96)], ""),  # it had left all ISRs
        ([logged("BROKER_EXPIRED", 94)], ""),  # it ran
        ([logged("BROKER_UNREACHABLE", 94, "broker-2"), logged("BROKER_STARTED", 101)], ""),  # it was there again
        ([logged("BROKER_UNREACHABLE", 99, "broker-2")], ""),  # it was still there
        ([], ""),
    ],
)
def test_why_other_brokers_were_held_up_is_said_where_the_lines_show_it(told, lines, why):
    there = line("a", source="coordinator", broker="broker-1", coordinator_id=1)
    held_up = [moved(at, group, broker, broker) for at, group, broker in ((98, "b", "broker-2"), (102, "c", "broker-3"))]
    (entry,), _ = told(moved(100, "a"), *held_up, there, *lines)
    assert entry["message"].endswith(f"; broker-2 and broker-3 did not answer at least 2 more groups in time{why}.")


def test_groups_that_lost_nobody_but_waited_for_an_answer_meanwhile_are_counted(told, lakehouse):
    def commit(group, at, took, broker="broker-2"):
        arrived = DAY + at * 1_000 - took
        return line(group, at * 1_000, received_at=arrived, broker=broker, source="request", kind="OFFSET_COMMIT", error_code=15)

    there = line("a", source="coordinator", broker="broker-1", coordinator_id=1)
    slow = [commit("b", 99, 5_003), commit("b", 99, 4_000), commit("c", 100, 2_000), commit("a", 99, 5_500)]
    others = [commit("d", 99, 1_999), commit("e", 90, 5_000), commit("f", 120, 5_000)]  # prompt enough, before and after
    (entry,), _ = told(moved(100, "a"), there, logged("BROKER_UNREACHABLE", 94, "broker-2"), *slow, *others)
    assert entry["message"].endswith(" 2 more groups waited up to 5.0 s for a broker's answer and lost no member.")
    assert [(row["waited"], row["held_up"]) for row in asked(lakehouse, "incidents")] == [(2, 0)]


def test_what_follows_names_its_clients_and_groups(told):
    refused = {"kind": "JOIN_GROUP", "source": "request", "error_code": 81, "lines": 1, "client_host": None}
    asking = [line(group, at=103_000 + n, client_id=f"{group}-{n}", **refused) for n, group in enumerate("aab")]
    too_large = [found("GROUP_TOO_LARGE", 103, row["group_id"], client=row["client_id"], member=None) for row in asking]
    _, shown = told(moved(100, "a"), moved(100, "b"), *asking, *too_large)
    assert "Then    GROUP_TOO_LARGE (3) in a, b\n" in shown
    assert "Refused 3 joins, the last at 00:01:43\n" in shown


@pytest.mark.parametrize(
    ("unclean_at", "cause", "said"),
    [
        (60, "BROKER_CRASHED", "broker-1 crashed or was killed: no clean shutdown. It did not answer a in time."),
        (30, "COORDINATOR_HELD_UP", "broker-1 did not answer a in time."),  # long before
        (101, "COORDINATOR_HELD_UP", "broker-1 did not answer a in time."),  # afterwards
    ],
)
def test_one_brokers_log_alone_says_that_it_crashed_but_not_when(told, unclean_at, cause, said):
    there = line("a", source="coordinator", broker="broker-1", coordinator_id=1)
    lines = [logged("BROKER_UNCLEAN", unclean_at, node=None), logged("BROKER_STARTED", unclean_at + 2)]
    (entry, *others), shown = told(moved(100, "a", "broker-1", "broker-1", members_lost=["m"]), there, *lines)
    assert [one["code"] for one in others] == ["BROKER_CRASHED"] * (unclean_at != 60)  # of which that entry does not tell
    assert (entry["code"], entry["message"].partition(" 1 member missed")[0]) == (cause, said)
    assert (entry["incident"]["began_at"], entry["incident"]["back_at"]) == ("2026-11-21T00:01:40.000Z", None)
    assert "away" not in shown
    assert trouble(AttentionEntry([], entry["incident"]))["text"] in ("broker-1 had crashed", "broker-1 unresponsive")


def test_a_line_of_watch_says_of_groups_that_moved_no_more_than_of_those_that_stayed(told, lakehouse):
    """What one broker did to both is one incident."""
    there = line("a", source="coordinator", broker="broker-1", coordinator_id=1)
    lost = logged("BROKER_UNREACHABLE", 94, "broker-2", 1)
    told(there, lost, moved(100, "g1"), moved(101, "g2"), *(moved(102, group, "broker-2", "broker-2") for group in "cde"))
    _, left, stayed = NewsText().lines(News(lakehouse).take())
    assert "g1 and g2 moved to another broker (broker-1)" in left.plain
    assert "The coordinator did not answer 3 groups in time (broker-1)" in stayed.plain


SERVED = {"kind": "HEARTBEAT", "source": "request", "error_code": 0}
ALIVE = line("c", 110_000, broker="broker-1", **SERVED)
STOPPED = [logged("BROKER_STOPPING", 98), logged("BROKER_STOPPED", 99), logged("BROKER_CLEAN", 107), logged("BROKER_STARTED", 108)]


@pytest.mark.parametrize(
    ("lines", "causes"),
    [
        ([], ["BROKER_CRASHED"]),  # which no line dates
        ([ALIVE], ["BROKER_CRASHED", "COORDINATOR_MOVED"]),  # when the group had moved
        ([ALIVE, *STOPPED], ["BROKER_CRASHED", "BROKER_SHUT_DOWN"]),  # it was back
    ],
)
def test_a_crash_is_told_with_the_groups_that_left_or_by_itself(told, lines, causes):
    there = line("a", source="coordinator", broker="broker-1", coordinator_id=1)
    entries, shown = told(moved(100, "a"), there, *lines, logged("BROKER_UNCLEAN", 130, node=None))
    assert sorted(entry["code"] for entry in entries) == causes
    if not lines:
        (entry,) = entries
        assert entry["message"] == "broker-1 crashed or was killed: no clean shutdown. At least 1 group moved from broker-1 to broker-2."
        assert trouble(AttentionEntry([], entry["incident"]))["text"] == "broker-1 had crashed"
        assert "no line shows that it restarted" not in shown


def test_a_group_that_its_broker_gave_up_is_not_dead(lakehouse):
    """One broker's log alone: the group lives on at another one."""
    write(lakehouse, line(at=90_000), transition("Stable", 1_000, 1), {**transition("Dead", 5_000, 1), "trigger": "COORDINATOR_MOVED"})
    (group,) = asked(lakehouse, "groups")
    assert (group["state"], group["members"]) == ("UNKNOWN", None)
    assert [step["what"].split(" > ")[1] for step in asked(lakehouse, "timeline", group=group["group_id"])] == ["Stable", "UNKNOWN"]
    for told in ([], [found("SESSION_TIMEOUT", 1)]):  # an entry about something else says nothing of where it went on
        write(lakehouse, *told, batch=1)
        assert [gap.why for gap in read_report(reader_of(lakehouse)).judgement.gaps] == ["the broker that coordinated it gave it up"]


@pytest.mark.parametrize(
    ("later", "state"),
    [
        ([], "UNKNOWN"),
        ([line(at=60_000, broker="broker-1", **SERVED | {"error_code": 16})], "UNKNOWN"),
        ([line(at=60_000, broker="clients", kind="CLIENT_NOTE", source="client")], "UNKNOWN"),
        ([line(at=1_000, broker="broker-1", last_at=DAY + 60_000, **SERVED)], "Stable"),
        ([line(at=5_000, broker="broker-2", **SERVED)], "Stable"),
        ([transition("Dead", 5_000, 1)], "Dead"),  # it was removed
    ],
)
def test_a_group_of_a_broker_that_crashed_goes_on_where_no_line_shows(lakehouse, later, state):
    """One broker's log alone: the group lives on at another one."""
    there = line(broker="broker-1", source="coordinator")
    write(lakehouse, there, transition("Stable", 1_000, 1), logged("BROKER_UNCLEAN", 30, node=None), *later)
    assert [group["state"] for group in asked(lakehouse, "groups")] == [state]
    told = [gap.why for gap in read_report(reader_of(lakehouse)).judgement.gaps]
    lost = ["broker-1 coordinated it and crashed or was killed, and no line shows which broker took over"]
    assert told == (lost if state == "UNKNOWN" else [])


@pytest.mark.parametrize(("state", "generation", "second"), [("Stable", 1, 1), ("Stable", 2, 6), ("Empty", 1, 6)])
def test_a_group_that_moves_stays_in_its_state(lakehouse, state, generation, second):
    """Twice, within one millisecond and after a while."""
    gives_up, reads = {"trigger": "COORDINATOR_MOVED"}, {"trigger": "GROUP_LOADED", "from_state": "Dead"}
    write(lakehouse, line(), line(at=90_000), transition("CompletingRebalance", 500, 1), transition("Stable", 1_000, 1))
    write(lakehouse, {**transition("Dead", 4_000, 1), **gives_up}, {**transition("Stable", 4_000, 1), **reads}, batch=1)
    write(lakehouse, {**transition("Dead", 5_000, 1), **gives_up}, {**transition(state, 6_000, generation), **reads}, batch=2)
    (found,) = asked(lakehouse, "groups")
    assert (found["state"], found["since"].second) == (state, second)
    (found,) = asked(lakehouse, "groups", until="2026-11-21T00:00:05")
    assert (found["state"], found["since"].second) == ("UNKNOWN", 5)


def test_nobody_serves_a_group_until_the_first_request_is_accepted(lakehouse):
    """The new coordinator reads the group back before; where no request is seen, no line shows more."""

    def beat(at, broker, error_code=0):
        return line(at=at, kind="HEARTBEAT", source="request", member_id=MEMBER, broker=broker, error_code=error_code, lines=1)

    loads = [
        line(group, at=at, kind=kind, source="coordinator", broker=broker)
        for group in ("payments", "logged")
        for at, kind, broker in ((500, "STABILIZED", "b1"), (20_000, "GROUP_UNLOADED", "b1"), (21_000, "GROUP_LOADED", "b2"))
    ]
    write(lakehouse, *loads, beat(10_000, "b1"), beat(22_000, "b2", 16), beat(24_000, "b2"), line(at=90_000))
    found = {one["group_id"]: (one["silent_ms"], one["refused"]) for one in asked(lakehouse, "coordinators")}
    assert found == {"payments": (14_000, 1), "logged": (1_000, None)}


def test_refusals_of_a_client_that_was_let_in_meanwhile_are_those_of_its_later_finding(told):
    """First a broker was the reason. Of those that a full group refused later, the one for whom it waited is the worst."""
    known = {"kind": "JOIN_GROUP", "source": "request", "client_id": "app-1", "lines": 1}
    entries, shown = told(
        *(found("GROUP_TOO_LARGE", at, client=client, wanted=6) for at, client in ((90, "app-9"), (101, "app-1"))),
        moved(100, "payments"),
        found("GROUP_TOO_LARGE", 200, join_ms=12_000),
        *(line(at=at * 1_000, error_code=error, **known) for at, error in ((101, 81), (102, 81), (110, 0), (190, 81))),
    )
    assert {entry["code"]: entry["refused"]["requests"] for entry in entries} == {"COORDINATOR_MOVED": 2, "GROUP_TOO_LARGE": 1}
    assert "app-1, 00:03:20: GROUP_TOO_LARGE at 200. Also app-9 at 00:01:30." in " ".join(shown.split())


def test_a_long_rebalance_is_compared_with_those_that_no_finding_is_about(told):
    ended = EXPIRED | {"cause": "POLL_TIMEOUT"}
    entries, _ = told(
        *(row for group in "ab" for row in (found("POLL_TIMEOUT", 300, group, "WARNING"), rebalanced(300, group, 40_000, **ended))),
        *(rebalanced(at, group, usual) for at in (100, 200) for group, usual in (("a", 30_000), ("b", 3_000))),
    )
    assert {entry["groups"][0]: entry["severity"] for entry in entries} == {"a": "WARNING", "b": "ERROR"}


def test_consumers_of_sink_tasks_that_fall_silent_with_their_worker_belong_to_its_loss(told):
    """The worker had tasks of the connector. Another sink, a consumer that falls silent later, and one of an application do not."""

    def silent(at, ms, client, group, **details):
        return found("SESSION_TIMEOUT", at, group, "WARNING", client, f"{client}-m", silent_ms=ms, **details)

    refused = found(
        "ZOMBIE_COMMIT", 60, "connect-orders-sink", "WARNING", "connector-consumer-orders-sink-0", "connector-consumer-orders-sink-0-m"
    )
    entries, shown = told(
        silent(20, 10_000, "worker-b", "connect-cluster", connectors=["orders-sink"]),
        silent(19, 9_000, "connector-consumer-orders-sink-2", "connect-orders-sink"),
        silent(55, 45_000, "connector-consumer-orders-sink-0", "connect-orders-sink"),
        refused,
        silent(80, 45_000, "connector-consumer-orders-sink-1", "connect-orders-sink"),
        silent(20, 10_000, "connector-consumer-bills-sink-0", "connect-bills-sink"),
        silent(20, 10_000, "orders-sink-0", "payments"),
    )
    assert sorted(of(entries)) == [
        ("SESSION_TIMEOUT", ["connect-bills-sink"], 1, 0),
        ("SESSION_TIMEOUT", ["connect-orders-sink"], 1, 0),
        ("SESSION_TIMEOUT", ["connect-orders-sink", "connect-cluster"], 1, 3),
        ("SESSION_TIMEOUT", ["payments"], 1, 0),
    ]
    then = "SESSION_TIMEOUT (2: silent without close(), as after a crash or SIGKILL) in connect-orders-sink; ZOMBIE_COMMIT in connect-"
    assert then in " ".join(shown.split())
