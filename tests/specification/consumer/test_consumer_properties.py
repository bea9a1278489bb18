"""What holds for every life of a consumer group, whatever its members do."""

from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from coordinator_model.errors import Error
from coordinator_model.specification.consumer.codec import decode_consumer_group, encode_consumer_group
from coordinator_model.specification.consumer.config import ConsumerGroupConfig
from coordinator_model.specification.consumer.coordinator import ConsumerCoordinator
from coordinator_model.specification.consumer.group_state import ConsumerGroupPhase
from coordinator_model.specification.consumer.member import MemberState, as_sets
from coordinator_model.specification.consumer.requests import ConsumerGroupHeartbeat, ConsumerOffsetCommit
from coordinator_model.specification.consumer.topics import Topic, TopicId, TopicImage
from tests.specification.choices import chosen
from tests.specification.consumer.small_consumer_groups import OWNS_NOTHING

pytestmark = pytest.mark.slow

TOPICS = tuple(Topic(name, TopicId(7 * at, -at), partitions) for at, (name, partitions) in enumerate({"a": 7, "b": 3, "ab": 1}.items()))


class Move(NamedTuple):
    """One thing that a member or the cluster does, described by small numbers."""

    wait_ms: int
    who: int
    what: str
    topics: int
    regex: str | None
    assignor: str | None
    static: bool
    append_error: Error


FIRST_BEAT = Move(0, 0, "beat", 0, None, None, static=False, append_error=Error.NONE)


def moves(min_size=10, max_size=40):
    return st.lists(
        chosen(
            Move,
            wait_ms=(0, 0, 1, 100, 3_000, 11_000, 44_000),
            who=range(6),
            what=(*["beat"] * 6, *["acknowledge"] * 5, *["join"] * 4, "old_epoch", "leave", "away", "commit", "grow", "recreate", "reload"),
            topics=range(8),
            regex=(None, None, None, "", "a.*", "[ab]"),
            assignor=(None, None, "uniform", "range"),
            static=(False, False, True),
            append_error=(*[Error.NONE] * 12, Error.NOT_ENOUGH_REPLICAS),
        ),
        min_size=min_size,
        max_size=max_size,
    )


class Crowd:
    """Six clients of one group. Each remembers its epoch and what it was assigned, as consumers do."""

    def __init__(self):
        self.coordinator = ConsumerCoordinator(ConsumerGroupConfig(max_size=5), 0, range(50), TopicImage(TOPICS))
        self.now_ms = 0
        self.epochs = {}
        self.assigned = {}
        self.answers = []
        self.effects = []
        self.topics = {topic.name: topic for topic in TOPICS}

    @property
    def group(self):
        return self.coordinator.groups.get("g")

    @property
    def state(self):
        return None if self.group is None else self.group.state

    def member_ids(self):
        return set() if self.state is None else set(self.state.members)

    def move(self, move):
        self.now_ms += move.wait_ms
        if move.what == "reload":
            partition = self.coordinator.partition("g")
            self.note(self.coordinator.unload(partition, self.now_ms))
            self.note(self.coordinator.load(partition, self.now_ms))
        elif move.what in ("grow", "recreate"):
            topic = self.topics[("a", "b", "ab")[move.topics % 3]]
            bigger = topic._replace(partitions=topic.partitions + 1)
            topic_id = topic.topic_id
            made = bigger if move.what == "grow" else topic._replace(topic_id=topic_id._replace(least_significant=topic_id[1] + 100))
            self.topics[topic.name] = made
            self.note(self.coordinator.change_topics({topic.name: made}, self.now_ms))
        else:
            self.note(self.coordinator.handle("g", self.request(move), self.now_ms, move.who, append_error=move.append_error))

    def request(self, move):
        member_id = f"member-{move.who}"
        instance = f"i{move.who % 4}" if move.static else None
        epoch, assigned = self.epochs.get(move.who, 0), self.assigned.get(move.who, {})
        if move.what == "commit":
            return ConsumerOffsetCommit(member_id, epoch, "a", 0, 5)
        if move.what in ("leave", "away"):
            return ConsumerGroupHeartbeat(member_id, -1 if move.what == "leave" else -2, instance)
        if move.what == "join" or not epoch:
            topics = tuple(name for bit, name in enumerate(("a", "b", "ab")) if move.topics >> bit & 1)
            return ConsumerGroupHeartbeat(member_id, 0, instance, None, 20_000, topics, move.regex, move.assignor, OWNS_NOTHING)
        old = move.what == "old_epoch"
        return ConsumerGroupHeartbeat(member_id, epoch - old, instance, owned=assigned if move.what != "beat" else None)

    def note(self, outcome):
        self.effects += outcome.effects
        for reply in outcome.replies:
            self.answers.append(reply)
            answer = reply.answer
            if not hasattr(answer, "assignment"):
                continue
            if answer.error is Error.NONE:
                self.epochs[reply.ticket] = max(answer.epoch, 0)
                if answer.assignment is not None:
                    self.assigned[reply.ticket] = answer.assignment
            elif answer.error in (Error.FENCED_MEMBER_EPOCH, Error.UNKNOWN_MEMBER_ID):
                self.epochs[reply.ticket] = 0


def check_state(state):
    """What holds of every group at every moment."""
    owned = [
        (topic_id, partition)
        for member in state.members.values()
        for some in (member.assigned, member.pending)
        for topic_id, partitions in some.items()
        for partition in partitions
    ]
    assert len(owned) == len(set(owned)), "a partition has two owners"
    assert set(owned) == state.owner_epochs.keys()
    targets = [(topic_id, partition) for share in state.target.values() for topic_id, numbers in share for partition in numbers]
    assert len(targets) == len(set(targets)), "a partition is in two targets"
    assert state.target.keys() <= set(state.members)
    assert state.target_epoch <= state.group_epoch
    for member in state.members.values():
        assert member.epoch <= state.target_epoch
        assert bool(member.pending) <= (member.state is MemberState.UNREVOKED_PARTITIONS)
        if state.phase is ConsumerGroupPhase.STABLE:  # the target may have topics that are deleted meanwhile
            target = as_sets(state.target.get(member.member_id, ()))
            assert all(partitions <= target.get(topic_id, frozenset()) for topic_id, partitions in member.assigned.items())
    names = [topic for member in state.members.values() for topic in member.topics]
    assert {name: names.count(name) for name in names} == {name: count.by_name for name, count in state.names.items() if count.by_name}


@given(script=moves())
def test_a_partition_never_has_two_owners(script):
    crowd = Crowd()
    for move in script:
        crowd.move(move)
        if crowd.state is not None:
            check_state(crowd.state)


@given(script=moves(), cuts=st.lists(st.integers(0, 900_000), max_size=20))
def test_time_may_pass_in_one_jump_or_in_many_for_consumer_groups(script, cuts):
    jump, walk = Crowd(), Crowd()
    for move in script:
        for pause in (move.wait_ms // 3, move.wait_ms // 2):
            walk.note(walk.coordinator.advance(walk.now_ms + pause))
        walk.move(move)
        jump.move(move)
    for cut in [*sorted(cuts), 900_000]:
        walk.note(walk.coordinator.advance(walk.now_ms + cut))
    jump.note(jump.coordinator.advance(jump.now_ms + 900_000))
    assert walk.answers == jump.answers
    assert walk.effects == jump.effects
    assert walk.coordinator.logs == jump.coordinator.logs


@given(script=moves())
def test_storing_and_restoring_a_consumer_group_at_any_step_changes_nothing(script):
    straight, stored = Crowd(), Crowd()
    for move in script:
        straight.move(move)
        stored.move(move)
        if stored.group is not None:
            group = stored.group
            stored.coordinator.groups["g"] = decode_consumer_group(encode_consumer_group(group), group.config, group.image)
            assert encode_consumer_group(stored.group) == encode_consumer_group(straight.group)
    assert stored.answers == straight.answers
    assert stored.effects == straight.effects


@given(script=moves())
def test_a_group_is_what_its_log_says(script):
    crowd = Crowd()
    for move in script:
        crowd.move(move)
    before = crowd.state
    partition = crowd.coordinator.partition("g")
    crowd.coordinator.unload(partition, crowd.now_ms)
    crowd.coordinator.load(partition, crowd.now_ms)
    after = crowd.state
    if before is None or after is None:
        assert before is after
        return
    for name in ("group_epoch", "target_epoch", "metadata_hash", "names", "owner_epochs", "subscription"):
        assert getattr(after, name) == getattr(before, name), name
    assert {key: as_sets(share) for key, share in after.target.items()} == {key: as_sets(share) for key, share in before.target.items()}
    assert dict(after.members.items()).keys() == dict(before.members.items()).keys()
    assert all(after.members[member_id].is_same(member) for member_id, member in before.members.items())


@given(script=moves())
@example(script=[FIRST_BEAT, FIRST_BEAT._replace(what="leave", append_error=Error.NOT_ENOUGH_REPLICAS)])
def test_left_alone_a_consumer_group_keeps_only_members_whose_leave_was_not_written(script):
    """A leave cancels the timers of its member before the write. If the write fails, the member is back, but its timers are not."""
    crowd = Crowd()
    last = {}  # member => the last of its requests that set or cancelled its timers
    for move in script:
        crowd.move(move)
        if move.what == "reload":
            last.clear()  # every member has a new session
        elif move.what in ("grow", "recreate", "commit", "away"):
            continue
        elif crowd.answers[-1].answer.error in (Error.NONE, Error.COORDINATOR_NOT_AVAILABLE):  # others are refused before that
            last[f"member-{move.who}"] = move.what
    stay = {member_id for member_id in crowd.member_ids() if last.get(member_id) == "leave"}
    crowd.note(crowd.coordinator.advance(crowd.now_ms + 2_000_000))
    assert crowd.member_ids() == stay
    assert crowd.group is None or not crowd.group.timers.deadlines


@given(script=moves(), names=st.permutations(range(6)))
def test_members_that_keep_on_heartbeating_become_stable(script, names):
    crowd = Crowd()
    for move in script:
        crowd.move(move._replace(append_error=Error.NONE, static=False))
    for _ in range(8):
        for who in names:
            if crowd.state is not None and f"member-{who}" in crowd.state.members:
                crowd.move(Move(1_000, who, "acknowledge", 1, None, None, False, Error.NONE))
    assert crowd.state is None or crowd.state.phase in (ConsumerGroupPhase.STABLE, ConsumerGroupPhase.EMPTY)
