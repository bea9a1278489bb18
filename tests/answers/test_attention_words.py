"""What is said of an entry: from when to when, whether it is over, and of whom."""

from datetime import datetime, timedelta, timezone

import pytest

from jobs.answers.attention import AttentionEntry, Refusals
from jobs.answers.attention_words import EXPLAINED, OVER, STILL_ON, AttentionWords, End, clients_of, trouble
from jobs.common.text import who
from jobs.common.times import epoch_ms, instant


def at(seconds):
    return datetime(2026, 11, 21, 6, tzinfo=timezone.utc) + timedelta(seconds=seconds)


def found(seconds, code="SESSION_TIMEOUT", client="app-1", host="10.0.0.7", member="app-1-m"):
    return {
        "id": "f", "cluster": "c", "group_id": "g", "severity": "ERROR", "message": "It went silent.",
        "advice": "Look at it.", "code": code, "occurred_at": at(seconds), "client_id": client, "client_host": host,
        "member_id": member, "details": {},
    }  # fmt: skip


def words(end, *, of_logs=True):
    """Those of a report whose lines end so many seconds after 06:00."""
    return AttentionWords(lambda time: instant(epoch_ms(time))[11:], lambda _, name: name, {"c": End(at(end), of_logs=of_logs)})


def outage(cause="BROKER_CRASHED", back=None):
    return {"broker": "b1", "cause": cause, "began_at": at(10), "last_at": at(back or 10), "back_at": back and at(back)}


@pytest.mark.parametrize(
    ("second_ms", "said"),
    [
        (17_755, "b, 06:00:31: ! Also app-1 at 06:00:41."),
        (9_001, "b, 06:00:31: ! Also app-1 at 06:00:41."),
        (None, "app-1, 06:00:21: ! Also b at 06:00:31."),
    ],
)
def test_of_several_findings_each_client_is_named_with_its_time(second_ms, said):
    told = [(21, "app-1", 9_001), (31, "b", second_ms), (41, "app-1", 8_000)]
    rows = [found(at, client=name) | {"id": str(at), "message": "!", "details": {"silent_ms": ms}} for at, name, ms in told]
    assert dict(words(99).paragraphs(AttentionEntry(rows)))["What"] == said


@pytest.mark.parametrize(
    ("advice", "change"),
    [
        (
            "Check the log of b1 (OOM, kill -9): read its log. To survive this, raise session.timeout.ms of g (now 8 s) above 9.4 s: why.",
            "Check the log of b1. To survive this, raise session.timeout.ms of g (now 8 s) above 9.4 s.",
        ),
        ("It kept working. Make its processing idempotent. It was silent: find out why.", "Make its processing idempotent."),
        (
            "Raise max.poll.interval.ms (now 8 s) above 18.2 s, or poll more often: move slow calls. If it restarted, set it above 3 s.",
            "Raise max.poll.interval.ms (now 8 s) above 18.2 s, or poll more often.",
        ),
        ("Wait.", "Wait."),
        ("check-out-2: It froze. Check its log. call-1: Run it.", "Check its log."),
    ],
)
def test_a_row_says_what_to_do_first_and_which_value_to_set_and_no_reasons(advice, change):
    assert words(99).of(AttentionEntry([found(21) | {"advice": advice}]))["change"] == change


def test_an_entry_lasts_from_the_start_of_its_first_rebalance_to_the_end_of_its_last():
    entry = AttentionEntry([found(21), found(31)], rebalanced=(at(11), at(33)))
    assert words(40).of(entry)["when"] == "2 times, 06:00:11 to 06:00:33"
    assert words(40).of(AttentionEntry([found(21)]))["when"] == "06:00:21"
    assert words(99).of(AttentionEntry([found(21)], rebalanced=(at(21), at(24))))["when"] == "06:00:21 to 06:00:24, over"


@pytest.mark.parametrize(
    ("entry", "end", "said"),
    [
        (AttentionEntry([found(20)], rebalanced=(at(20), at(22))), 82, OVER),
        (AttentionEntry([found(20)], rebalanced=(at(20), at(22))), 81, ""),  # it may happen again
        (AttentionEntry([found(20), found(21)], rebalanced=(at(20), at(22))), 999, ""),  # as it did before
        (AttentionEntry([found(20, "FENCED_INSTANCE")]), 999, ""),
        (AttentionEntry([found(20, "OPEN_REBALANCE")]), 20, STILL_ON),
        (AttentionEntry([found(20, "REBALANCE_STORM")], rebalanced=(at(20), at(50))), 109, STILL_ON),
        (AttentionEntry([found(20, "REBALANCE_STORM"), found(40, "REBALANCE_STORM")], rebalanced=(at(20), at(50))), 110, OVER),
        (AttentionEntry([found(20, "GROUP_TOO_LARGE")], refused=Refusals(3, at(90), pending_at=at(90))), 120, STILL_ON),
        (AttentionEntry([found(20, "GROUP_TOO_LARGE")], refused=Refusals(3, at(90))), 120, ""),  # it joined later
        (AttentionEntry([found(20, "GROUP_TOO_LARGE")], refused=Refusals(3, at(90), pending_at=at(50))), 120, ""),  # so did the last one
        (AttentionEntry([found(20, "GROUP_TOO_LARGE")], refused=Refusals(3, at(90), pending_at=at(90))), 150, ""),  # it may have stopped
        (AttentionEntry([found(20)], outage(back=40)), 100, OVER),
        (AttentionEntry([found(20)], outage(back=40), rebalanced=(at(20), at(50))), 110, OVER),
        (AttentionEntry([found(20)], outage(back=40)), 99, ""),
        (AttentionEntry([found(20)], outage()), 999, ""),  # no line says that the broker started again
        (AttentionEntry([found(20)], outage("COORDINATOR_MOVED")), 999, OVER),
        (AttentionEntry([found(20)], outage(back=40), refused=Refusals(3, at(999))), 999, OVER),
    ],
)
def test_whether_it_is_over_is_said_where_the_lines_show_it(entry, end, said):
    assert words(end).outcome(entry) == said


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        ("BROKER_SHUT_DOWN", "b1 down"),
        ("BROKER_CRASHED", "b1 had crashed"),  # when it went and came back, no line shows
        ("COORDINATOR_MOVED", "groups left b1"),
        ("COORDINATOR_HELD_UP", "b1 unresponsive"),
        ("BROKER_EXPIRED", "b1 expired"),
    ],
)
def test_a_broker_was_away_only_where_a_line_says_that_it_went(cause, text):
    """Groups move off a broker that goes on to answer, too, and one that crashed may have had no group of its own."""
    for moved in (0, 2):
        assert trouble(AttentionEntry([found(20)], outage(cause) | {"last_at": at(20), "groups_moved": moved}))["text"] == text


@pytest.mark.parametrize(
    "entry",
    [
        AttentionEntry([found(20, "REBALANCE_STORM")], rebalanced=(at(20), at(50))),
        AttentionEntry([found(20, "GROUP_TOO_LARGE")], refused=Refusals(3, at(90), pending_at=at(90))),
    ],
)
def test_nothing_goes_on_at_the_end_of_a_time_after_which_the_logs_go_on(entry):
    assert words(100, of_logs=False).outcome(entry) == ""


def test_settings_are_told_with_what_they_took():
    def row(code, group, **details):
        return {"code": code, "cluster": "c", "group_id": group, "details": details}

    polls = [row("POLL_TIMEOUT", "a", max_poll_interval_ms=8_000, poll_gap_ms=gap_ms) for gap_ms in (9_000, 18_181, None)]
    zombie = row("ZOMBIE_COMMIT", "b", session_timeout_ms=7_000, silent_ms=21_098, removed="SESSION_TIMEOUT")
    stalled = row("ZOMBIE_COMMIT", "a", session_timeout_ms=7_000, silent_ms=30_000, removed="POLL_TIMEOUT")
    soon = row("UNKNOWN_MEMBER", "b", session_timeout_ms=7_000, silent_ms=6_000)  # something else was the reason
    moved = [row("COORDINATOR_MOVED", "c", session_timeouts_ms=times, unheard_ms=9_929) for times in ([6_000, 8_000], [])]
    held_up = {"session_timeouts_ms": [6_000], "unheard_ms": None, "setting": "session.timeout.ms"}  # no line shows how long
    moved[0]["details"]["setting"] = "session.timeout.ms"
    of_group = held_up | {"session_timeouts_ms": [], "setting": "consumer.session.timeout.ms"}
    moved += [row("COORDINATOR_MOVED", group, **its) for group, its in (("d", held_up), ("f", of_group))]
    moved += [row("COORDINATOR_MOVED", "e", session_timeouts_ms=[], unheard_ms=None)]
    entries = [
        AttentionEntry(polls, followed_by=[stalled]),
        AttentionEntry([row("SESSION_TIMEOUT", "b", silent_ms=7_000)], followed_by=[zombie, soon]),
        AttentionEntry([row("SESSION_TIMEOUT", "b", away_ms=25_000, session_timeout_ms=7_000)]),
    ]
    moved += [row("COORDINATOR_MOVED", "g", **its) for its in (held_up, held_up | {"unheard_ms": 7_400})]  # one line shows it
    froze = row("UNKNOWN_MEMBER", "h", session_timeout_ms=7_000, max_poll_interval_ms=12_000, silent_ms=21_098, removed="SESSION_TIMEOUT")
    entries.append(AttentionEntry([row("SESSION_TIMEOUT", "h")], followed_by=[froze]))
    assert words(0).settings([*entries, AttentionEntry(moved, {"unheard_ms": 9_929})]) == [
        "a: max.poll.interval.ms (now 8 s) above 18.2 s",
        "b: session.timeout.ms (now 7 s) above 21.1 s",
        "b: session.timeout.ms (now 7 s) above 25 s, if that was a restart",
        "h: session.timeout.ms (now 7 s) above 21.1 s",
        "h: max.poll.interval.ms (now 12 s) above 21.1 s",
        "c: session.timeout.ms (now 8 s) above 10 s",
        "g: session.timeout.ms (now 6 s) above 7.4 s",
    ]


def test_a_restart_took_as_long_as_the_longest_of_all_bursts_of_an_entry():
    """The group has the other protocol by the last one, which names another setting, and saw shorter ones."""
    bursts = [
        found(seconds, "ROLLING_RESTART") | {"advice": f"{text} A restart took up to {took} s.", "details": {"longest_restart_ms": ms}}
        for seconds, text, took, ms in ((10, "Set one.", 5.3, 5_334), (90, "Set the other.", 3.4, 3_408))
    ]
    assert AttentionEntry(bursts).advice == ["Set the other. A restart took up to 5.3 s."]


def test_a_client_is_named_without_what_tells_nothing_apart():
    """A hash of its member id, or the address by which a machine speaks to itself. A client without a name has nothing else."""
    assert clients_of(AttentionEntry([found(0)])) == "app-1@10.0.0.7"
    assert clients_of(AttentionEntry([found(0, host="127.0.0.1")])) == "app-1"
    assert clients_of(AttentionEntry([found(0, client=None, host="127.0.0.1")])) == "@127.0.0.1 app-1-m"
    assert [who("a", host, None) for host in ("/127.0.0.1", "::1", "localhost", "::1f", "localhost.de")] == [
        "a", "a", "a", "a@::1f", "a@localhost.de",
    ]  # fmt: skip


def test_words_of_a_table_are_explained_in_short():
    assert {"METADATA_CHANGED", "SUBSCRIPTION_CHANGED", "MEMBER_REJOINED", "ADMIN_REMOVED", "REVOCATION_FOLLOW_UP"} < set(EXPLAINED)
    assert {"SUPERSEDED", "ABANDONED"} < set(EXPLAINED), "outcomes of a rebalance"
    assert all(len(words) < 110 for words in EXPLAINED.values())


def test_an_entry_and_the_list_of_settings_ask_for_the_longest_silence():
    def silent(seconds, code, ms, **more):
        details = {"removed": "SESSION_TIMEOUT", "silent_ms": ms, **more}
        return found(seconds, code) | {"advice": f"It needs a session timeout above {ms}.", "details": details}

    told = [silent(30, "ZOMBIE_COMMIT", 20_400), silent(50, "UNKNOWN_MEMBER", 25_400), silent(60, "UNKNOWN_MEMBER", 9_000)]
    entry = AttentionEntry([found(21)], followed_by=told)
    assert entry.advice == ["It needs a session timeout above 25400.", "Make its processing idempotent."]
    assert words(99).settings([entry]) == ["g: the group's session timeout above 25.4 s"]
    entry = AttentionEntry([found(21)], followed_by=[silent(30, "ZOMBIE_COMMIT", 20_400, session_timeout_ms=10_000)])
    assert entry.advice == ["It needs a session timeout above 20400."]
    assert words(99).settings([entry]) == ["g: session.timeout.ms (now 10 s) above 20.4 s"]


def test_a_leader_that_had_to_assign_is_a_case_of_its_own():
    def refused(seconds, advice, silent_ms, member):
        return found(seconds, "UNKNOWN_MEMBER", member=member) | {"advice": advice, "details": {"silent_ms": silent_ms}}

    ended = [found(10, member="m-1"), found(50, member="m-2") | {"details": {"leader": True}}]
    entry = AttentionEntry(ended, followed_by=[refused(40, "It froze.", 21_000, "m-1"), refused(65, "It had to assign.", 17_000, "m-2")])
    assert entry.advice == ["In 1 of 2 cases: It froze.", "In 1 other case: It had to assign."]
    ended[1]["client_id"] = "check-out-2"
    entry = AttentionEntry(ended, followed_by=entry.followed_by)
    assert entry.advice == ["app-1: It froze.", "check-out-2: It had to assign."]


def test_a_refusal_tells_of_the_end_of_the_session_before_it_and_of_no_other():
    """A client of the consumer protocol keeps its member id: it froze, was refused, and was killed later, with another one."""
    ended = [found(10), found(40, "SESSION_TIMEOUT", "app-2", member="app-2-m"), found(50)]
    ended = [row | {"message": f"It went silent at {row['occurred_at']:%S}.", "details": {"silent_ms": 12_000}} for row in ended]
    refused = found(20, "UNKNOWN_MEMBER") | {"advice": "It froze.", "details": {"silent_ms": 22_000}}
    entry = AttentionEntry(ended, followed_by=[refused])
    assert entry.advice == ["In 1 of 3 cases: It froze.", "In 2 other cases: Look at it."]
    assert dict(words(99).paragraphs(entry))["What"] == "app-1, 06:00:10: It went silent at 10. Also app-2 at 06:00:40."


def test_a_group_that_was_restarted_twice_is_told_when_and_gets_the_advice_of_the_last_time():
    def restarted(seconds, advice, **details):
        row = found(seconds, "ROLLING_RESTART", client=None, host=None, member=None)
        return row | {"advice": advice, "details": {"restarted": ["m-1"], "rebalances": 6, **details}}

    entry = AttentionEntry(
        [restarted(10, "Of the consumer protocol.", total_ms=17_000), restarted(95, "Of the classic one.", total_ms=13_000)]
    )
    assert entry.advice == ["Of the classic one."]
    assert dict(words(99).paragraphs(entry))["What"] == "06:00:10: It went silent. Also at 06:01:35."
    partitions = [found(at, "PARTITION_NOT_READ", None, None, None) for at in (10, 20)]  # it names one of them
    assert dict(words(99).paragraphs(AttentionEntry(partitions)))["What"] == "06:00:20: It went silent."
