"""Static members (KIP-345): a restart takes the old member's place, and an instance id that two clients use fences one of them."""

from __future__ import annotations

import pytest

from coordinator_model import events as kinds
from coordinator_model.errors import Error
from coordinator_model.tracker.shard import Shard
from coordinator_model.view.settings import TrackerSettings
from tests.tracker.story import Story, table

JOINED = "Adding new member {} with group instance id {}; client reason: not provided"


def instance(member: str) -> dict[str, str]:
    """Member a-2 is the second of instance i-a."""
    return {"instance_id": f"i-{member[0]}"}


class Static(Story):
    """A story whose members are all static."""

    def joins(self, member: str, generation: int, leader: str, members: tuple[str, ...] = (), *, version: int = 9, **how: object) -> Static:
        asked_as = "" if generation == 1 else how.pop("asked_as", None)
        self.join(member, generation, leader, members, asked_as=asked_as, **instance(member), **how)  # type: ignore[arg-type]
        listed = tuple(entry._replace(instance_id=f"i-{entry.member_id[0]}") for entry in self.events[-1].members)
        self.events[-1] = self.events[-1]._replace(members=listed, api_version=version)
        return self

    def all_sync(self, generation: int, given: dict[str, tuple[str, ...]]) -> Static:
        """The first leads."""
        for number, member in enumerate(given):
            self.sync(member, generation, {member: given[member]} if number else given, **instance(member))
        return self

    def beat(self, members: tuple[str, ...], generation: int, start: int, stop: int) -> Static:
        for ms in range(start, stop, 3_000):
            for member in members:
                self.at(ms).heartbeat(member, generation, **instance(member))
        return self

    def told(self, *members: str, generation: int) -> Static:
        """They are told to rejoin."""
        for member in members:
            self.heartbeat(member, generation, Error.REBALANCE_IN_PROGRESS, **instance(member))
        return self


def first(story: Static, *members: str, version: int = 9) -> Static:
    """Generation 1: static members join, the first of them leads."""
    for number, member in enumerate(members):
        story.at(3_060).joins(member, 1, members[0], () if number else members, waited=3_005 - number, version=version)
    return story.at(3_070).all_sync(1, {member: (f"t-{number}",) for number, member in enumerate(members)})


def codes(story: Story) -> list[str]:
    return [row["code"] for row in table(story.rows(), "findings") if row["code"] != "IDLE_MEMBERS"]


# what requests show


def test_a_restart_that_offers_the_same_starts_nothing_and_one_that_changes_the_protocol_does() -> None:
    """b comes back with another assignor, so that the group has to choose again: its coming back is the cause."""
    story = Static()
    first(story, "a-1", "b-1")
    for number, event in enumerate(story.events):  # a prefers range and knows sticky, b prefers sticky: 1 to 1
        if event.kind == kinds.JOIN_GROUP:
            (own,) = event.protocols
            other = own._replace(name="sticky", digest="s")
            story.events[number] = event._replace(protocols=(own, other))
    story.beat(("a-1", "b-1"), 1, 6_000, 15_000)
    story.at(15_500).told("a-1", generation=1)
    story.at(16_000).joins("a-1", 2, "a-1", ("a-1", "b-2"), waited=400).joins("b-2", 2, "a-1", asked_as="", waited=900)
    for number in (-2, -1):
        event = story.events[number]
        (own,) = event.protocols
        both = (own, own._replace(name="sticky", digest="s"))
        story.events[number] = event._replace(protocols=both if number == -2 else both[1:], protocol="sticky")
    story.at(16_010).all_sync(2, {"a-1": ("t-0",), "b-2": ("t-1",)})
    story.beat(("a-1", "b-2"), 2, 18_000, 40_000)
    rows = story.rows()
    row = table(rows, "rebalances")[1]
    assert (row["cause"], row["member_id"], row["instance_id"], row["started_at"]) == ("STATIC_MEMBER_REPLACED", "b-2", "i-b", 15_100)
    assert [(s["member_id"], s["end_kind"]) for s in table(rows, "member_sessions")] == [("b-1", "REPLACED")]
    assert codes(story) == []


def test_one_that_restarts_while_the_others_join_is_replaced_as_the_leader_is_told() -> None:
    """c-1 has not rejoined yet when its process restarts; the leader's list has c-2 in its place. Nobody was slow or lost."""
    story = Static()
    first(story, "a-1", "b-1", "c-1").beat(("a-1", "b-1", "c-1"), 1, 6_000, 15_000)
    story.at(15_500).told("a-1", "b-1", "c-1", generation=1)
    story.at(20_000).joins("a-1", 2, "a-1", ("a-1", "b-1", "c-2", "d-1"), waited=4_400)
    story.joins("b-1", 2, "a-1", waited=4_300).joins("d-1", 2, "a-1", asked_as="", waited=5_000).joins(
        "c-2", 2, "a-1", asked_as="", waited=1
    )
    story.at(20_010).all_sync(2, {"a-1": ("t-0",), "b-1": ("t-1",), "c-2": ("t-2",), "d-1": ()})
    story.beat(("a-1", "b-1", "c-2", "d-1"), 2, 22_000, 40_000)
    assert [(s["member_id"], s["end_kind"]) for s in table(story.rows(), "member_sessions")] == [("c-1", "REPLACED")]
    assert codes(story) == []


@pytest.mark.parametrize(("version", "named"), [(9, "a-2"), (5, "a-1")])
def test_a_leader_that_restarts_still_leads_whatever_its_answer_names(version: int, named: str) -> None:
    """An older client is told that its old id leads, so that it does not compute an assignment. When the leader joins again all do."""
    story = Static()
    first(story, "a-1", "b-1", version=version).beat(("a-1", "b-1"), 1, 6_000, 9_000)
    story.at(9_100).heartbeat("b-1", 1, Error.ILLEGAL_GENERATION, took=0, **instance("b-1"))  # not Kafka: followed again from generation 2
    story.at(9_500).joins("c-1", 2, "a-1", asked_as="", waited=400).joins("a-1", 2, "a-1", ("a-1", "b-1", "c-1"), waited=200)
    story.joins("b-1", 2, "a-1", waited=100)
    story.at(9_510).all_sync(2, {"a-1": ("t-0",), "b-1": ("t-1",), "c-1": ()})
    story.at(11_000).joins("a-2", 2, named, asked_as="", version=version).at(11_010).sync("a-2", 2, {"a-2": ("t-0",)}, **instance("a-2"))
    story.beat(("a-2", "b-1", "c-1"), 2, 12_000, 30_000)
    story.at(31_000).told("b-1", "c-1", generation=2)
    story.at(31_500).joins("a-2", 3, "a-2", ("a-2", "b-1", "c-1"), waited=1_000)
    story.joins("b-1", 3, "a-2", waited=400).joins("c-1", 3, "a-2", waited=4)
    story.at(31_510).all_sync(3, {"a-2": ("t-0",), "b-1": ("t-1",), "c-1": ()}).beat(("a-2", "b-1", "c-1"), 3, 33_000, 50_000)
    assert [row["cause"] for row in table(story.rows(), "rebalances")][2:] == ["LEADER_REJOINED"]
    rows = story.rows(settings=TrackerSettings(kafka_version="4.2.0"))
    assert [row["occurred_at"] for row in table(rows, "findings") if row["code"] == "MODEL_DIVERGENCE"] == [9_100]


# what the coordinator's log shows


def logged() -> Story:
    """a-1 (i-a) and b-1 (i-b), generation 1."""
    story = Story().at(0).log_preparing(0, JOINED.format("a-1", "i-a"), "a-1")
    story.log(kinds.MEMBER_ADDED, member_id="a-1", state="Empty", **instance("a-1"))
    story.at(100).log(kinds.MEMBER_ADDED, member_id="b-1", state="PreparingRebalance", **instance("b-1"))
    return story.at(3_000).log_stabilized(1, 2).at(3_010).log_assignment(1, "a-1", 2)


@pytest.mark.parametrize("new", ["b-2", ""])
def test_the_line_that_a_static_member_was_replaced_ends_the_old_membership(new: str) -> None:
    """Releases before 2.8 do not tell the new id: the member is known again when a line names it."""
    story = logged().at(20_000).log(kinds.STATIC_MEMBER_REPLACED, member_id="b-1", answer_member_id=new, **instance("b-1"))
    story.at(40_000).log(kinds.MEMBER_FAILED, member_id="b-2")
    story.log_preparing(1, "removing member b-2 on heartbeat expiration", "b-2")
    story.at(40_100).log_stabilized(2, 1).at(40_110).log_assignment(2, "a-1", 1)
    sessions = [(s["member_id"], s["instance_id"], s["joined_at"], s["end_kind"]) for s in table(story.rows(), "member_sessions")]
    assert sessions == [("b-1", "i-b", 100, "REPLACED"), ("b-2", "i-b" if new else None, 20_000 if new else None, "SESSION_TIMEOUT")]


def test_an_id_that_a_static_member_has_no_more_is_told_where_the_group_waited_for_its_sync() -> None:
    """What `why` calls SYNC_TIMEOUT has a finding of that name."""
    story = logged().at(20_000).log(kinds.STATIC_MEMBER_REPLACED, member_id="b-1", answer_member_id="b-2", **instance("b-1"))
    story.at(33_000).log_preparing(1, "Removing [b-1] on pending sync request expiration", "b-1")
    rows = story.at(33_100).log_stabilized(2, 2).at(33_110).log_assignment(2, "a-1", 2).rows()
    assert [(row["cause"], row["member_id"], row["left"]) for row in table(rows, "rebalances")][1:] == [("SYNC_TIMEOUT", "b-1", [])]
    assert [(row["code"], row["member_id"], row["occurred_at"]) for row in table(rows, "findings")] == [("SYNC_TIMEOUT", "b-1", 33_000)]


def test_a_member_that_was_not_known_is_replaced_too() -> None:
    """The log begins late."""
    story = Story().at(0).log(kinds.STATIC_MEMBER_REPLACED, member_id="b-1", answer_member_id="b-2", **instance("b-1"))
    assert [(s["member_id"], s["end_kind"], s["joined_at"]) for s in table(story.rows(), "member_sessions")] == [("b-1", "REPLACED", None)]


@pytest.mark.parametrize("answered", [True, False])
def test_a_replacement_that_a_move_of_the_coordinator_cuts_off_is_not_in_the_group_that_is_loaded(*, answered: bool) -> None:
    """c comes, is replaced by its next process before the join phase ends, and no generation with it is stored.

    The answer to its parked JoinGroup names its new id. The coordinator's log does not.
    """
    new, old = (f"i-c-{digit * 8}-0000-0000-0000-000000000000" for digit in "21")
    story = logged().at(20_000).log_preparing(1, JOINED.format(old, "i-c"), old)
    story.log(kinds.MEMBER_ADDED, member_id=old, state="PreparingRebalance", instance_id="i-c")
    story.at(25_000).log(kinds.STATIC_MEMBER_REPLACED, member_id=old, instance_id="i-c")
    story.at(30_000).log(kinds.GROUP_UNLOADED, generation=1)
    if answered:
        parked = {"asked_as": "", "instance_id": "i-c", "waited": 5_000}
        story.join(new, -1, "", error_code=Error.NOT_COORDINATOR, **parked)  # type: ignore[arg-type]
    story.on("broker-2").at(31_000).log(kinds.GROUP_LOADED, member_count=2)
    story.at(40_000).log(kinds.MEMBER_FAILED, member_id="b-1").log_preparing(1, "removing member b-1 on heartbeat expiration", "b-1")
    story.at(40_100).log_stabilized(2, 1).at(40_110).log_assignment(2, "a-1", 1)
    rows = table(story.rows(), "rebalances")[1:]
    assert [(row["outcome"], row["joined"], row["members_before"], row["left"]) for row in rows] == [
        ("ABANDONED", [new if answered else old], 2, []),
        ("COMPLETED", [], 2, ["b-1"]),
    ]


def test_where_its_requests_are_seen_they_tell_the_replacement() -> None:
    """One row, and the new member has what the old one had."""
    story = Static()
    first(story, "a-1", "b-1").beat(("a-1", "b-1"), 1, 6_000, 15_000)
    story.at(15_999).log(kinds.STATIC_MEMBER_REPLACED, member_id="b-1", answer_member_id="b-2", **instance("b-1"))
    story.at(16_000).joins("b-2", 1, "a-1", waited=2).at(16_010).sync("b-2", 1, {"b-2": ("t-1",)}, **instance("b-2"))
    (session,) = table(story.rows(), "member_sessions")
    assert (session["member_id"], session["end_kind"], session["ended_at"]) == ("b-1", "REPLACED", 15_998)


@pytest.mark.parametrize(("cause", "reason"), [
    ("STATIC_MEMBER_REPLACED", "Group's selectedProtocol will change because static member b-2 with instance id i-b joined"),
    ("STATIC_MEMBER_REPLACED", "Updating metadata for static member b-2 with instance id i-b"),
    ("ASSIGNMENT_NOT_STORED", "Error COORDINATOR_NOT_AVAILABLE when storing group assignment for member a-1"),
    ("GROUP_OVER_CAPACITY", "Freshly-loaded group is over capacity (2). Rebalancing in order to give a chance for consumers"),
    ("MEMBER_LEFT", "Downgrade group from consumer to classic for member leaving."),
    ("MEMBER_LEFT", "Downgrade group from consumer to classic for static member replacement."),
    ("UNKNOWN", "a reason that no release gives"),
])  # fmt: skip
def test_the_coordinators_own_reasons_that_are_about_no_single_member(cause: str, reason: str) -> None:
    story = logged().at(40_000).log_preparing(1, reason)
    story.at(40_100).log_stabilized(2, 2).at(40_110).log_assignment(2, "a-1", 2)
    row = table(story.rows(), "rebalances")[1]
    assert (row["cause"], row["reason"], row["started_at"]) == (cause, reason, 40_000)


# fencing


def test_a_member_that_is_fenced_again_and_again_is_told_once() -> None:
    story = logged()
    for ms in (10_000, 20_000, 30_000):
        story.at(ms).log(kinds.INSTANCE_FENCED, member_id="b-0", **instance("b"))
    told = [(row["code"], row["member_id"], row["occurred_at"]) for row in table(story.rows(), "findings")]
    assert told == [("FENCED_INSTANCE", "b-0", 10_000)]


@pytest.mark.parametrize("replaced", [True, False])
def test_who_was_fenced_is_told_by_its_earlier_requests(*, replaced: bool) -> None:
    """The line names the member alone, be it that its replacement was seen or not; another member's client is not taken for it."""
    story = Static()
    first(story, "a-1", "b-1")
    story.at(3_500)
    if replaced:
        story.joins("b-2", 1, "a-1", waited=2, client_id="double").sync("b-2", 1, {"b-2": ("t-1",)}, **instance("b-2"))
    story.at(4_000).log(kinds.INSTANCE_FENCED, member_id="b-1", **instance("b-1"))
    (row,) = (row for row in table(story.rows(), "findings") if row["code"] == "FENCED_INSTANCE")
    assert (row["member_id"], row["client_id"], row["client_host"]) == ("b-1", "b", "10.0.0.7")


def test_who_started_a_rebalance_is_told_although_it_was_replaced_before_the_row_was_written() -> None:
    """The double comes within two seconds of the end of the rebalance that the first one's coming started."""
    story = Static()
    first(story, "a-1").at(9_000).log_preparing(1, JOINED.format("b-1", "i-b"), "b-1")
    story.at(9_500).log_stabilized(2, 2).joins("a-1", 2, "a-1", ("a-1", "b-1"), waited=400).joins("b-1", 2, "a-1", asked_as="", waited=500)
    story.at(9_510).log_assignment(2, "a-1", 2).all_sync(2, {"a-1": ("t-0",), "b-1": ("t-1",)})
    story.at(10_000).joins("b-2", 2, "a-1", asked_as="", waited=2, client_id="double").sync("b-2", 2, {"b-2": ("t-1",)}, **instance("b-2"))
    row = table(story.rows(), "rebalances")[-1]
    assert (row["cause"], row["member_id"], row["instance_id"], row["client_id"]) == ("MEMBER_JOINED", "b-1", "i-b", "b")


def fenced(group: str, partition: int, uses: str = "i-b", since: int = 0) -> Story:
    """A group of that partition of __consumer_offsets, whose member uses an instance id."""
    story = Story(group=group).at(since)
    return story.log(kinds.MEMBER_ADDED, member_id=f"{group}-1", instance_id=uses, state="Empty", coordinator_partition=partition)


@pytest.mark.parametrize(("groups", "told"), [
    ([("orders", 7), ("payments", 9)], ["orders"]),  # of two groups that use the id, the one of the partition
    ([("orders", 9), ("payments", 9)], []),  # none of them is of the partition
    ([("orders", 7), ("payments", 7)], []),  # both are: the line does not tell which
])  # fmt: skip
def test_a_fencing_line_names_the_partition_and_the_instance_and_no_group(groups: list[tuple[str, int]], told: list[str]) -> None:
    stories = [fenced(group, partition) for group, partition in groups]
    line = stories[0].at(9_000).log(kinds.INSTANCE_FENCED, group_id="", member_id="b-0", instance_id="i-b", coordinator_partition=7)
    events = [event for story in stories for event in story.events]
    rows = Shard().observe([*events, *line.heard(60_000)])
    assert [row["group_id"] for row in table(rows, "findings")] == told


@pytest.mark.parametrize("handled", [False, True])
@pytest.mark.parametrize(("holder", "told"), [("payments-1", ["payments"]), ("nobody-1", [])])
def test_where_a_fencing_line_names_no_partition_the_members_that_it_names_tell(holder: str, told: list[str], *, handled: bool) -> None:
    """Scala coordinators name neither. Two groups use the instance id."""
    stories = [fenced(group, 7) for group in ("orders", "payments")]
    events = [event for story in stories for event in story.events]
    fields = {"group_id": "", "member_id": "b-0", "instance_id": "i-b", "answer_member_id": holder}
    line = stories[0].at(900_000).log(kinds.INSTANCE_FENCED, **fields)
    shard, rows = Shard(), []
    for batch in [[*events, *stories[1].heard(600_000)], [line.events[-1]]] if handled else [[*events, line.events[-1]]]:
        rows += shard.observe(batch)
    assert [row["group_id"] for row in table([*rows, *shard.observe(line.heard(960_000))], "findings")] == told


def test_a_fencing_line_of_another_instance_or_from_before_its_first_use_is_nobodys() -> None:
    for uses, since in (("i-c", 0), ("i-b", 20_000)):
        story = fenced("orders", 7, uses, since)
        story.at(9_000).log(kinds.INSTANCE_FENCED, group_id="", member_id="b-0", instance_id="i-b", coordinator_partition=7)
        assert table(Shard().observe([*story.events, *story.heard(60_000)]), "findings") == []
