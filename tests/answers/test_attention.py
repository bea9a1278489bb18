"""What needs attention: which findings are one incident, what it cost, and how it is shown."""

import json

import pytest

from tests.lakehouse.rows import DAY, finding, line, rebalance

pytestmark = pytest.mark.slow
EXPIRED = {"cause": "SESSION_TIMEOUT", "member_id": "app-1-m"}


def found(code, at, group="payments", severity="ERROR", client="app-1", member="app-1-m", **details):
    """A finding `at` so many seconds."""
    known = {"client_id": client, "member_id": member, "details": json.dumps(details)}
    return finding(group_id=group, occurred_at=DAY + at * 1_000, code=code, severity=severity, message=f"{code} at {at}.", **known)


def moved(at, group, source="broker-1", target="broker-2", **details):
    """A finding that a group moved, or was held up where source and target are one."""
    route = {"from_broker": source, "to_broker": target}
    return found("COORDINATOR_MOVED", at, group, "WARNING", client=None, member=None, **route, **details)


def rebalanced(at, group="payments", total=2_000, lost=5_000, **values):
    return rebalance(group, start=at * 1_000, total=total, members_before=2, unavailable_partition_ms=lost, generation=at, **values)


def of(entries):
    """Code, groups, and how many findings each entry has of its own and after them."""
    return [(entry["code"], entry["groups"], len(entry["findings"]), len(entry["followed_by"])) for entry in entries]


def test_what_cost_most_comes_first_and_what_cost_next_to_nothing_by_severity(told):
    entries, shown = told(
        found("IDLE_MEMBERS", 1, "a", "INFO"),
        found("SLOW_JOINER", 20, "b", "WARNING"),
        rebalanced(19, "b", lost=900_000),
        found("SESSION_TIMEOUT", 30, "c"),
        rebalanced(30, "c", lost=1_000, **EXPIRED),
        found("SESSION_TIMEOUT", 40, "d"),
        rebalanced(40, "d", lost=2_000, **EXPIRED),
        found("SLOW_JOINER", 50, "e", "WARNING"),
        rebalanced(49, "e", total=900, lost=900),
        found("SESSION_TIMEOUT", 60, "f"),
        rebalanced(60, "f", total=18, lost=18, **EXPIRED),
        found("FENCED_INSTANCE", 70, "g"),
    )
    assert [entry["groups"] for entry in entries] == [["b"], ["d"], ["c"], ["f"], ["g"], ["e"], ["a"]]
    assert "What needs attention (4 errors, 2 warnings, 1 info)" in shown
    heads = [line.split()[1] for line in shown.splitlines() if line[:1] == " " and line[1:2].isdigit()]
    assert heads == ["WARNING", "ERROR", "ERROR", "ERROR", "ERROR", "WARNING", "INFO"]


def test_the_same_finding_in_a_group_is_one_entry_with_how_often_and_the_gravest(told):
    entries, shown = told(
        found("POLL_TIMEOUT", 10, poll_gap_ms=9_000),
        found("POLL_TIMEOUT", 50, poll_gap_ms=18_000, client="app-2", member="app-2-m"),
        found("POLL_TIMEOUT", 90, poll_gap_ms=8_500),
        found("POLL_TIMEOUT", 95, "other"),
        rebalanced(10, cause="POLL_TIMEOUT", member_id="app-1-m"),
        rebalanced(50, cause="POLL_TIMEOUT", member_id="app-2-m"),
        rebalanced(300),
    )
    entry = entries[0]
    assert of(entries) == [("POLL_TIMEOUT", ["payments"], 3, 0), ("POLL_TIMEOUT", ["other"], 1, 0)]
    assert (entry["first_at"], entry["last_at"]) == ("2026-11-21T00:00:10.000Z", "2026-11-21T00:01:30.000Z")
    assert entry["message"] == "POLL_TIMEOUT at 50."
    assert [(client["client_id"], client["findings"]) for client in entry["clients"]] == [("app-1", 2), ("app-2", 1)]
    assert (entry["rebalances"], entry["total_ms"], entry["unavailable_partition_ms"]) == (2, 4_000, 10_000)
    assert "POLL_TIMEOUT  payments  3 times, 00:00:10 to 00:01:30 (id " in shown
    assert "What    app-2, 00:00:50: POLL_TIMEOUT at 50. Also app-1 at 00:01:30.\n" in shown
    assert "Who     app-1 (2), app-2" in shown
    assert "Cost    2 rebalances, 4.0 s of rebalancing, 10.0 s of unowned partition time (sum)" in shown


def test_a_member_that_a_group_waited_for_after_topics_had_changed_costs_what_it_held_up(told):
    """`why` names nobody for it: a topic may have been deleted that the member could not commit any more."""
    waited = {"cause": "METADATA_CHANGED", "slowest_member_id": "app-1-m"}
    entries, _ = told(found("REBALANCE_TIMEOUT", 25), rebalanced(10, total=16_500, **waited), rebalanced(60, **waited))
    assert [(entry["rebalances"], entry["total_ms"]) for entry in entries] == [(1, 16_500)]


def test_what_follows_a_removal_belongs_to_it(told):
    entries, shown = told(
        found("SESSION_TIMEOUT", 10, silent_ms=6_000),
        found("UNKNOWN_MEMBER", 25, severity="WARNING", removed="SESSION_TIMEOUT", silent_ms=21_000) | {"advice": "It was frozen."},
        found("UNKNOWN_MEMBER", 25, severity="WARNING", member="another"),
        found("ZOMBIE_COMMIT", 5),  # it was late for another rebalance, before all that
        found("HEARTBEAT_NEAR_MISS", 1, severity="WARNING", member="third"),
        found("UNKNOWN_MEMBER", 9, severity="WARNING", member="third"),
    )
    assert sorted(of(entries)) == [
        ("HEARTBEAT_NEAR_MISS", ["payments"], 1, 0),
        ("SESSION_TIMEOUT", ["payments"], 1, 1),
        ("UNKNOWN_MEMBER", ["payments"], 2, 0),
        ("ZOMBIE_COMMIT", ["payments"], 1, 0),
    ]
    entries = [entry for entry in entries if entry["code"] == "SESSION_TIMEOUT"]
    assert entries[0]["advice"] == ["It was frozen."]  # it was heard again: then its session timeout is no crash
    assert "    Then    00:00:25 UNKNOWN_MEMBER: UNKNOWN_MEMBER at 25.\n" in shown


def test_what_and_advice_speak_of_the_same_member_and_each_kind_has_its_own(told):
    """Two of three were killed; the other stood still, and was refused."""
    entries, shown = told(
        found("SESSION_TIMEOUT", 10, silent_ms=6_003) | {"advice": "It was killed."},
        found("SESSION_TIMEOUT", 50, silent_ms=6_001, client="app-2", member="app-2-m"),
        found("UNKNOWN_MEMBER", 65, client="app-2", member="app-2-m", removed="SESSION_TIMEOUT", silent_ms=21_000)
        | {"advice": "It froze."},
        found("SESSION_TIMEOUT", 90, silent_ms=6_002, client="app-3", member="app-3-m") | {"advice": "It was killed."},
    )
    assert entries[0]["message"] == "SESSION_TIMEOUT at 50."
    assert entries[0]["advice"] == ["app-2: It froze.", "In 2 other cases: It was killed."]
    assert "What    app-2, 00:00:50: SESSION_TIMEOUT at 50. Also app-1 at 00:00:10, app-3 at 00:01:30.\n" in shown


def test_a_commit_under_no_member_id_belongs_to_the_client_that_left(told):
    entries, _ = told(
        found("POLL_TIMEOUT", 10),
        found("ZOMBIE_COMMIT", 30, member=None, removed="POLL_TIMEOUT") | {"advice": "Make it idempotent."},
        found("ZOMBIE_COMMIT", 31, member=None, client="app-2", removed="POLL_TIMEOUT"),
    )
    assert of(entries) == [("POLL_TIMEOUT", ["payments"], 1, 1), ("ZOMBIE_COMMIT", ["payments"], 1, 0)]
    assert entries[0]["advice"] == ["Look at it.", "Make it idempotent."]


def test_a_member_that_all_waited_for_is_known_by_its_id(told):
    entries, shown = told(
        found("SLOW_JOINER", 10, severity="WARNING", client=None, member=None, waited_for=["slow-1-m", "slow-2-m"]),
        found("UNKNOWN_MEMBER", 20, severity="WARNING", client="slow-2", member="slow-2-m", removed="JOIN_TIMEOUT"),
    )
    assert of(entries) == [("SLOW_JOINER", ["payments"], 1, 1)]
    assert "Who     slow-1-m, slow-2-m" in shown


def test_the_sessions_that_end_in_a_storm_or_a_rolling_restart_belong_to_it(told):
    storm = {"span_ms": 60_000, "total_ms": 30_000, "unavailable_partition_ms": 90_000, "rebalances": 11}
    entries, shown = told(
        found("REBALANCE_STORM", 10, member=None, clients=["app-1"], **storm),
        *(found("SESSION_TIMEOUT", at, member=f"m{at}") for at in (15, 40, 71)),
        found("SESSION_TIMEOUT", 40, client="innocent", member="x"),
        found("SESSION_TIMEOUT", 75),
        found("UNKNOWN_MEMBER", 76, severity="WARNING", member="m40"),
        found("ROLLING_RESTART", 10, "deployed", "WARNING", client=None, member=None, restarted=["m1", "m2", "m3"], **storm),
        found("SESSION_TIMEOUT", 20, "deployed", client="app-7", member="m2"),
        found("SESSION_TIMEOUT", 20, "deployed", client="app-8", member="m8"),
        rebalanced(10, lost=1_000_000),
    )
    assert sorted(of(entries)) == [
        ("REBALANCE_STORM", ["payments"], 1, 4),
        ("ROLLING_RESTART", ["deployed"], 1, 1),
        ("SESSION_TIMEOUT", ["deployed"], 1, 0),
        ("SESSION_TIMEOUT", ["payments"], 2, 0),
    ]
    storms = next(entry for entry in entries if entry["code"] == "REBALANCE_STORM")
    assert (storms["rebalances"], storms["total_ms"], storms["unavailable_partition_ms"]) == (11, 30_000, 90_000)
    assert "Then    SESSION_TIMEOUT (3: silent without close(), as after a crash or SIGKILL); UNKNOWN_MEMBER" in shown
    assert "Who     m1, m2, m3" in shown


def test_a_brokers_outage_is_one_entry_whatever_it_did(told):
    entries, shown = told(
        *(moved(100, f"g{n}", members_lost=[f"g{n}-m"], session_timeouts_ms=[n * 1_000]) for n in range(8)),
        moved(99, "g8", target="broker-3"),
        moved(97, "held", "broker-2", "broker-2", members_lost=["held-m"]),
        *(moved(167, f"g{n}", "broker-2", "broker-1") for n in range(8)),
        found("ZOMBIE_COMMIT", 300, "g3", member="g3-m", removed="SESSION_TIMEOUT"),  # as long as it takes
        found("ZOMBIE_COMMIT", 20, "g3", member="g3-m"),  # before all that
        found("GROUP_TOO_LARGE", 101, "g4"),
        found("GROUP_TOO_LARGE", 101, "not-moved"),
        found("SESSION_TIMEOUT", 102, "g5"),  # of which the tracker knows that the broker was not the reason
        rebalanced(101, "g1", total=8_000, lost=40_000, cause="COORDINATOR_MOVED"),
        rebalanced(104, "g2", total=8_000, lost=40_000, cause="COORDINATOR_MOVED"),
        rebalanced(104, "not-moved", lost=70_000),
    )
    outage = entries[0]
    assert of(entries) == [
        ("COORDINATOR_MOVED", [*(f"g{n}" for n in (3, 4)), *(f"g{n}" for n in (0, 1, 2, 5, 6, 7)), "g8", "held"], 18, 2),
        ("ZOMBIE_COMMIT", ["g3"], 1, 0),
        ("GROUP_TOO_LARGE", ["not-moved"], 1, 0),
        ("SESSION_TIMEOUT", ["g5"], 1, 0),
    ]
    assert (outage["severity"], outage["incident"]["broker"]) == ("ERROR", "broker-1")
    assert outage["message"] == (
        "At least 9 groups moved from broker-1 to broker-2 and broker-3, and 8 of them had moved back by 00:02:47 UTC; broker-2 did not "
        "answer at least 1 more group in time. 9 members missed their session timeout and were removed."
    )
    assert (outage["rebalances"], outage["total_ms"], outage["unavailable_partition_ms"]) == (2, 16_000, 80_000)
    assert "             COORDINATOR_MOVED  broker-1, 10 groups  00:01:37 to 00:02:47" in shown
    assert f"(id {outage['incident']['id']}, 20 more)" in shown
    assert "Groups  g3, g4, g0, g1, g2, g5, g6, g7 and 2 more" in shown
    assert "Removed g0-m, g1-m, g2-m, app-1, g4-m, g5-m, g6-m, g7-m and 1 more" in shown
    assert "Then    GROUP_TOO_LARGE in g4; ZOMBIE_COMMIT in g3" in shown


def logged(kind, at, broker="broker-1", node=1):
    """A line about a broker."""
    return line(None, at * 1_000, broker=broker, source="broker", kind=kind, coordinator_id=node, origin=f"{broker}.log", position=at)


def away(*lines):
    """Rows of a broker whose group moves away from it 100 s after the start and back 20 s later."""
    of_group = line("a", source="coordinator", broker="broker-1", coordinator_id=1)
    return moved(100, "a"), moved(120, "a", "broker-2", "broker-1"), of_group, *lines


def gone(told, *lines):
    """The entry of that broker."""
    (entry,), shown = told(*away(*lines))
    return entry, " ".join(shown.split())


def places(entry):
    """Where the lines about a broker are that an incident names."""
    return [(line["origin"], line["position"]) for line in json.loads(entry["incident"]["evidence"]) if line["source"] == "broker"]


def test_an_outage_begins_when_a_line_says_that_the_broker_went_away_and_says_how_it_ended(told):
    entry, shown = gone(
        told,
        logged("BROKER_STARTED", 0),
        logged("BROKER_UNREACHABLE", 20, "broker-2", 1),  # long before
        logged("BROKER_UNREACHABLE", 94, "broker-2", 1),
        logged("BROKER_UNREACHABLE", 95, "broker-3", 1),
        logged("BROKER_UNREACHABLE", 93, "broker-3", 2),  # another one
        logged("BROKER_UNCLEAN", 110, node=None),
        logged("BROKER_STARTED", 114),
    )
    assert entry["message"] == (
        "broker-1 crashed or was killed: no clean shutdown; down for 20.0 s. "
        "At least 1 group moved from broker-1 to broker-2, and it had moved back by 00:02:00 UTC."
    )
    assert "BROKER_CRASHED broker-1, group a 00:01:34 to 00:02:00" in shown
    assert entry["first_at"] == "2026-11-21T00:01:34.000Z"
    found = [entry["incident"][name] for name in ("cause", "began_at", "stopped_at", "back_at")]
    assert found == ["BROKER_CRASHED", "2026-11-21T00:01:34.000Z", None, "2026-11-21T00:01:54.000Z"]
    assert places(entry) == [("broker-2.log", 94), ("broker-3.log", 95)]


WAYS = (
    (
        [logged("BROKER_STOPPING", 98), logged("BROKER_STOPPED", 104), logged("BROKER_STARTED", 108)],
        "BROKER_SHUT_DOWN",
        "broker-1 was shut down cleanly; down for 10.0 s.",
    ),
    (
        [logged("BROKER_STOPPING", 98), logged("BROKER_UNCLEAN", 107), logged("BROKER_STARTED", 108)],
        "BROKER_CRASHED",
        "broker-1 was told to stop and killed before it did: no clean shutdown; down for 10.0 s.",
    ),
    ([logged("BROKER_STOPPING", 98)], "BROKER_SHUT_DOWN", "broker-1 was told to stop; no line shows that it restarted."),
    (
        [logged("BROKER_FAILED", 98)],
        "BROKER_FAILED",
        "broker-1 shut itself down: all its log directories had failed; no line shows that it restarted.",
    ),
    ([logged("BROKER_EXPIRED", 98)], "BROKER_EXPIRED", "broker-1 lost its ZooKeeper session while it was running."),
    (
        [logged("BROKER_UNREACHABLE", 98, "broker-2", 1), logged("BROKER_STARTED", 108)],
        "BROKER_LOST",
        "Other brokers lost their connection to broker-1; down for 10.0 s.",
    ),
    ([logged("BROKER_FENCED", 98, "controller", 1)], "BROKER_LOST", "The controller lost broker-1; no line shows that it restarted."),
    ([logged("BROKER_STOPPING", 90), logged("BROKER_STARTED", 99)], "COORDINATOR_MOVED", ""),  # it was there when the group moved
    ([logged("BROKER_STOPPING", 130), logged("BROKER_STOPPED", 131)], "COORDINATOR_MOVED", ""),  # later
)


def test_how_a_broker_went_away_is_what_its_lines_say(told):
    """Each in a cluster of its own."""
    rows = [{**row, "cluster": f"c{n}"} for n, (lines, _, _) in enumerate(WAYS) for row in (*away(*lines), line(at=900_000))]
    entries, _ = told(*rows)
    moved_there = "At least 1 group moved from broker-1 to broker-2, and it had moved back by 00:02:00 UTC."
    assert {entry["cluster"]: (entry["incident"]["cause"], entry["message"]) for entry in entries} == {
        f"c{n}": (cause, f"{how} {moved_there}".strip()) for n, (_, cause, how) in enumerate(WAYS)
    }


def test_in_a_file_of_several_brokers_only_lines_with_the_id_of_a_node_count(told):
    shared = {"broker": "broker-1", "origin": "all.log"}
    other = line("a", source="coordinator", broker="broker-2", coordinator_id=2, origin="all.log")
    signal = {**logged("BROKER_STOPPING", 90, node=None), **shared}
    entry, _ = gone(told, other, signal, {**logged("BROKER_STOPPING", 98), **shared})
    assert places(entry) == [("all.log", 98)]


def test_brokers_that_are_restarted_in_turn_are_one_entry_each(told):
    entries, _ = told(
        moved(10, "a"),
        moved(40, "a", "broker-2", "broker-1"),
        moved(45, "b", "broker-2", "broker-3"),
        moved(80, "b", "broker-3", "broker-2"),
        moved(800, "a"),  # it goes again, much later
    )
    assert [(entry["incident"]["broker"], entry["groups"], len(entry["findings"])) for entry in entries] == [
        ("broker-1", ["a"], 2),
        ("broker-2", ["b"], 2),
        ("broker-1", ["a"], 1),
    ]
    assert entries[0]["message"] == "At least 1 group moved from broker-1 to broker-2, and it had moved back by 00:00:40 UTC."


def test_a_broker_that_was_only_held_up_is_one_entry(told):
    entries, _ = told(moved(10, "a", "1", "1", members_lost=["m"]), moved(50, "b", "1", "1"), moved(500, "a", "1", "1"))
    assert [(entry["incident"]["broker"], entry["groups"]) for entry in entries] == [("1", ["a", "b"]), ("1", ["a"])]
    waited, removed = ("Broker 1 did not answer at least 2 groups in time.", "1 member missed its session timeout and was removed.")
    assert entries[0]["message"] == f"{waited} {removed}"


def test_groups_that_waited_while_another_broker_was_away_are_its_outage(told):
    """Their own broker was there throughout: it waited for the replicas of the lost one."""
    entries, _ = told(
        *(moved(100 + n, group, "broker-3", "broker-3", members_lost=[f"{group}-1"]) for n, group in enumerate("ab")),
        line("c", source="coordinator", broker="broker-1", coordinator_id=1),
        logged("BROKER_UNREACHABLE", 94, "broker-3", 1),
        logged("BROKER_UNCLEAN", 119, node=None),
        logged("BROKER_STARTED", 120),
    )
    assert [(entry["incident"]["broker"], entry["groups"]) for entry in entries] == [("broker-1", ["a", "b"])]
    assert entries[0]["message"] == (
        "broker-1 crashed or was killed: no clean shutdown; down for 26.0 s. "
        "broker-3 did not answer at least 2 groups in time while broker-1 was down: writes to __consumer_offsets wait for its replica. "
        "2 members missed their session timeout and were removed."
    )


def test_a_broker_that_was_there_is_not_what_held_another_up(told):
    """It went long before and was back, or went afterwards: each in a cluster of its own."""
    rows = [
        {**row, "cluster": f"c{went_at}"}
        for went_at, back_at in ((39, 120), (94, 98), (101, 120))
        for row in (
            moved(100, "a", "broker-3", "broker-3", members_lost=["a-1"]),
            line("c", source="coordinator", broker="broker-1", coordinator_id=1),
            logged("BROKER_UNREACHABLE", went_at, "broker-3", 1),
            logged("BROKER_STARTED", back_at),
        )
    ]
    entries, _ = told(*rows)
    assert sorted((entry["cluster"], entry["incident"]["broker"]) for entry in entries) == [(c, "broker-3") for c in ("c101", "c39", "c94")]
    assert all(entry["message"].startswith("broker-3 did not answer a in time. ") for entry in entries)


def test_groups_of_one_name_in_two_clusters_are_two(told):
    other = {"cluster": "d"}
    entries, shown = told(
        found("POLL_TIMEOUT", 10), found("POLL_TIMEOUT", 10) | other, line() | other, moved(10, "x"), moved(10, "x") | other
    )
    assert sorted((entry["cluster"], entry["code"]) for entry in entries) == [
        (cluster, code) for cluster in "cd" for code in ("COORDINATOR_MOVED", "POLL_TIMEOUT")
    ]
    assert "POLL_TIMEOUT  c/payments  " in shown
    assert "COORDINATOR_MOVED  d/broker-1, group x  " in shown


def test_each_entry_has_its_whole_advice(told):
    rows = [found("SESSION_TIMEOUT", 10 + n, group) for n, group in enumerate("abc")]
    rows[1] |= {"advice": "Look at it. It was 9 s."}
    _, shown = told(*rows)
    assert shown.count("    Advice  Look at it.\n") == 2
    assert "    Advice  Look at it. It was 9 s.\n" in shown


def test_what_is_beyond_the_limit_is_counted(told):
    entries, shown = told(*(found("POLL_TIMEOUT", n, f"g{n}") for n in range(5)), limit=2)
    assert len(entries) == 5
    assert " 2. ERROR" in shown
    assert " 3. ERROR" not in shown
    assert "… and 3 more: --limit 5 shows all" in shown


def test_a_client_that_may_not_join_is_told_how_often_it_asked(told):
    def refused(at, group="payments", client="app-1", **values):
        known = {"kind": "JOIN_GROUP", "source": "request", "error_code": 81, "client_id": client, "lines": 1}
        return line(group, at=at * 1_000, **known | values)

    entries, shown = told(
        *(found("GROUP_TOO_LARGE", 10, client=client, member=None) for client in ("app-1", "app-2")),
        found("INVALID_SESSION_TIMEOUT", 20, "other", member=None),
        *(refused(at) for at in (10, 12, 700)),
        refused(11, client="app-2"),
        refused(800, client="app-3"),  # refused before the time that is shown
        refused(800, kind="HEARTBEAT"),
        *(refused(at, error_code=0) for at in (9, 710)),
        refused(21, "other", error_code=26),
        refused(22, "other", error_code=0),
    )
    assert [(entry["code"], entry["refused"]["requests"]) for entry in entries] == [("GROUP_TOO_LARGE", 4), ("INVALID_SESSION_TIMEOUT", 1)]
    assert "Refused 4 joins, the last at 00:11:40\n" in shown
    assert [entry["refused"]["pending_at"] for entry in entries] == ["2026-11-21T00:00:11.000Z", None]  # app-2 was not let in
    assert [entry["severity"] for entry in entries] == ["ERROR", "WARNING"]
    assert "Refused 1 join, the last at 00:00:21; later ones were accepted" in shown


@pytest.mark.parametrize(("generation", "entries"), [(2, [("SLOW_JOINER", ["payments"], 1, 1)]), (3, None)], ids=["away", "back meanwhile"])
def test_a_static_member_that_neither_rejoins_nor_syncs_is_one_entry(told, generation, entries):
    waited = found("SLOW_JOINER", 20, waited_for=["app-1-m"]) | {"generation": 2}
    shown = of(told(waited, found("SYNC_TIMEOUT", 28) | {"generation": generation})[0])
    assert shown == entries if entries else len(shown) == 2
