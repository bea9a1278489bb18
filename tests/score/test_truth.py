"""The true cause of a rebalance, from the broker's reason and what was done; and the facts that a label asks for."""

import pytest

from scripts.truth import truth
from scripts.truth.truth import by_reason, causes, facts
from tests.score.story import T0, done, member, reasons, rebalance, recording

A, B, A2 = member("a"), member("b"), member("a", 2)
SAYS = reasons()


def only(rebalances, doings=(), **more):
    """Accepted causes, what else the log alone may say, and culprits of the last rebalance."""
    cause = causes(recording(rebalances, doings, **more))[-1]
    return cause.accepted, cause.by_log, sorted(cause.culprits)


@pytest.mark.parametrize(
    ("reason", "cause", "members", "words"),
    [
        (SAYS["joined"].format(A), "MEMBER_JOINED", (A,), ""),
        (f"Adding new member {A} with group instance id Some(a); client reason: ", "MEMBER_JOINED", (A,), ""),
        (f"Adding new member {A}", "MEMBER_JOINED", (A,), ""),
        (f"removing member {A} on heartbeat expiration", "SESSION_TIMEOUT", (A,), ""),
        (f"explicit `LeaveGroup` request for ({A}, {B}) members.", "MEMBER_LEFT", (A, B), ""),
        ("explicit `LeaveGroup` request for () members.", "MEMBER_LEFT", (), ""),
        (f"Removing member {A} on LeaveGroup; client reason: gone fishing", "MEMBER_LEFT", (A,), "gone fishing"),
        (f"Removing [{A}] on pending sync request expiration", "SYNC_TIMEOUT", (A,), ""),
        (f"Removing Set({A}, {B}) on pending sync request expiration", "SYNC_TIMEOUT", (A, B), ""),
        (f"Leader {A} re-joining group during Stable; client reason: not provided", "LEADER_REJOINED", (A,), ""),
        (f"Updating metadata for member {A} during Stable; client reason: not provided", "MEMBER_REJOINED", (A,), ""),
        (f"Updating metadata for static member {A} with instance id a; client reason: x", "STATIC_MEMBER_REPLACED", (A,), "x"),
        ("something new", "UNKNOWN", (), ""),
    ],
)
def test_the_words_of_brokers(reason, cause, members, words):
    assert by_reason(reason) == (cause, members, words)


def test_without_a_word_of_what_was_done_the_broker_is_believed():
    assert only([rebalance(0, SAYS["sync"].format(A))]) == (("SYNC_TIMEOUT",), (), [A])


def test_who_stalled_did_not_just_leave():
    left = rebalance(9_000, SAYS["left"].format(A))
    stalled = done(0, "stall", "POLL_TIMEOUT", "a", member_id=A)
    assert only([left], [stalled]) == (("POLL_TIMEOUT",), ("MEMBER_LEFT",), [A])
    # Kafka 4 writes the client's words on a line of their own: then the log alone tells as well.
    assert only([left], [stalled], departures={A: "consumer poll timeout has expired."})[1] == ()
    closed = done(8_000, "close", "LEAVE", "a", member_id=A)
    assert only([left], [stalled, closed]) == (("MEMBER_LEFT",), (), [A])
    assert only([left], [done(0, "stall", "POLL_TIMEOUT", "b", member_id=B)]) == (("MEMBER_LEFT",), (), [A])


def test_a_stalled_static_member_falls_silent():
    stalled = done(0, "stall", "POLL_TIMEOUT", "a", member_id=A, instance_id="a")
    assert only([rebalance(16_000, SAYS["expired"].format(A))], [stalled]) == (("POLL_TIMEOUT", "SESSION_TIMEOUT"), (), [A])


@pytest.mark.parametrize("named", [A, ""])
def test_an_administrator_removes_by_instance_id(named):
    removed = done(0, "admin_remove_member", "LEAVE", "a", member_id=A, instance_id="a")
    accepted, by_log, culprits = only([rebalance(30, SAYS["left"].format(named))], [removed])
    assert (accepted, culprits) == (("ADMIN_REMOVED",), [A])
    assert by_log == (("MEMBER_LEFT",) if named else ())  # only an administrator's request names no member id


@pytest.mark.parametrize(
    ("label", "cause"),
    [("SUBSCRIPTION_CHANGE", "SUBSCRIPTION_CHANGED"), ("PARTITIONS_ADDED", "METADATA_CHANGED"), ("ENFORCED", "MEMBER_REJOINED")],
)
def test_a_leader_rejoins_for_what_was_done(label, cause):
    before, again = rebalance(0, SAYS["joined"].format(A)), rebalance(20_000, SAYS["leader"].format(A), generation=2)
    assert only([before, again], [done(15_000, "something", label)]) == ((cause,), ("LEADER_REJOINED",), [A])
    assert only([before, again]) == (("LEADER_REJOINED",), (), [A])


def test_a_leader_rejoins_at_once_when_nothing_is_new():
    before, again = rebalance(0, SAYS["joined"].format(A)), rebalance(40, SAYS["leader"].format(B), generation=2)
    started = done(-100, "start", "JOIN", "a")
    assert only([before, again], [started]) == (("REVOCATION_FOLLOW_UP",), ("LEADER_REJOINED",), [B])
    said = again | {"reason_text": f"Leader {B} re-joining group during Stable; client reason: need to revoke partitions and re-join"}
    assert only([before, said], [started]) == (("REVOCATION_FOLLOW_UP",), (), [B])


class TestAfterTheLossOfABroker:
    STARTED = done(-60_000, "start", "JOIN", "a")
    KILLED = done(0, "kill9_coordinator", "COORDINATOR_FAILOVER")
    BACK = rebalance(9_000, SAYS["joined"].format(A2))

    def test_a_member_of_before_comes_back(self):
        (cause,) = causes(recording([self.BACK], [self.STARTED, self.KILLED]))
        assert cause.accepted == ("COORDINATOR_MOVED",)
        assert [cause.blames(who) for who in (A2, A, "", B)] == [True, True, True, False]

    def test_its_coordinator_may_have_stayed(self):
        killed = done(0, "kill9_other_broker", "COORDINATOR_FAILOVER|NONE")
        assert only([self.BACK], [self.STARTED, killed])[0] == ("COORDINATOR_MOVED", "MEMBER_JOINED")

    def test_the_new_coordinator_may_not_hear_it(self):
        expired = rebalance(17_000, SAYS["expired"].format(A))
        assert only([expired], [self.STARTED, self.KILLED])[0] == ("COORDINATOR_MOVED", "SESSION_TIMEOUT")

    def test_a_group_that_it_emptied_begins_anew(self):
        emptied = rebalance(8_000, SAYS["expired"].format(A), empty=True)
        again = self.BACK | {"generation": 2}
        assert only([emptied, again], [self.STARTED, self.KILLED])[0] == ("COORDINATOR_MOVED", "MEMBER_JOINED")

    @pytest.mark.parametrize(
        "doings",
        [
            [KILLED],  # never a member
            [STARTED, KILLED, done(5_000, "start", "JOIN", "a")],
            [done(-60_000, "start", "GROUP_MAX_SIZE", "a"), KILLED],
            [STARTED, KILLED | {"ts_ms": T0 - 90_000}],  # too long ago
        ],
    )
    def test_not_all_that_follows_is_its_doing(self, doings):
        assert only([self.BACK], doings)[0] == ("MEMBER_JOINED",)


def test_what_lasts_is_one_fact():
    found, skipped = facts(
        recording(
            truth=[
                done(0, "storm_begin", "STORM"),
                done(9_000, "storm_end", "STORM"),
                done(20_000, "storm_begin", "STORM"),
                done(29_000, "storm_end", "STORM"),
                done(30_000, "start", "FENCED", "b", instance_id="a"),
                done(40_000, "observed", "FENCED", "a", instance_id="a", member_id=A),
                done(50_000, "restart_broker", "NONE", group=None),
                done(50_000, "start", "JOIN", "c", protocol="consumer"),
            ]
        )
    )
    assert [(fact.label, fact.at_ms - T0, fact.end_ms - T0) for fact in found] == [
        ("STORM", 0, 69_000),
        ("STORM", 20_000, 89_000),
        ("FENCED", 30_000, 100_000),
    ]
    assert skipped == 2


def test_lines_after_a_group_turned_to_the_consumer_protocol_are_left_out():
    epoch = {"group": "g", "protocol": "consumer", "epoch_bumped_at": T0 + 100}
    story = recording(
        [rebalance(0, SAYS["joined"].format(A)), epoch],
        [done(0, "start", "JOIN", "a"), done(200, "close", "LEAVE", "a", member_id=A)],
    )
    assert [fact.label for fact in facts(story)[0]] == ["JOIN"]


def test_healthy_groups_follow_from_the_labels():
    story = recording(
        truth=[
            done(0, "start", "NONE", "a", group="control"),
            done(0, "start", "JOIN", "b", group="decoy"),
            done(5, "stall", "NONE", "b", group="decoy"),
            done(0, "start", "JOIN", "c", group="incident"),
            done(5, "stall", "NONE", "c", group="incident"),
            done(9, "kill9", "SESSION_TIMEOUT", "c", group="incident"),
            *(done(99, "kill9_other_broker", "COORDINATOR_FAILOVER|NONE", group=group) for group in ("control", "decoy", "incident")),
        ]
    )
    assert truth.control_groups(story) == {"control"}
    assert truth.healthy_groups(story) == {"control", "decoy"}


def test_a_label_without_a_meaning_is_named():
    assert truth.unknown_labels(recording(truth=[done(0, "x", "JOIN|SOMETHING_NEW")])) == {"SOMETHING_NEW"}
