"""What holds for every life of a group, on every release."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.errors import Error
from coordinator_model.specification.codec import decode, encode
from coordinator_model.specification.transitions import Trigger
from coordinator_model.states import State
from tests.specification.play import Player, check_books, check_timers, configs, steps

pytestmark = pytest.mark.slow


@given(config=configs(), script=steps())
def test_every_request_is_answered_or_parked_and_the_books_stay_in_order(config, script):
    player = Player(config)
    for step in script:
        outcome, ticket = player.step(step)
        group = player.group
        answered_now = [reply for reply in outcome.replies if reply.ticket == ticket]
        parked = ticket in group.awaiting_join.values() or ticket in group.awaiting_sync.values()
        assert len(answered_now) + parked == 1 or player.threw
        check_books(group)
        if not player.threw:
            check_timers(group)
    tickets = [reply.ticket for reply in player.replies]
    assert len(set(tickets)) == len(tickets) or player.threw


@given(config=configs(), script=steps())
def test_storing_and_restoring_a_group_at_any_step_changes_nothing(config, script):
    straight, stored = Player(config), Player(config)
    for step in script:
        straight.step(step)
        stored.step(step)
        stored.group = decode(encode(stored.group), config)
        assert encode(stored.group) == encode(straight.group)
    assert stored.replies == straight.replies
    assert stored.effects == straight.effects
    for player in (straight, stored):
        player.advance(player.now_ms + 1_000_000)
    assert stored.replies == straight.replies


@given(config=configs(), script=steps(), rest=steps(), cut=st.integers(0, 20))
def test_a_copy_goes_on_alike_and_leaves_the_original_as_it_was(config, script, rest, cut):
    original, copied = Player(config), Player(config)
    for step in script[:cut]:
        original.step(step)
        copied.step(step)
    copied.group = original.group.copy()
    stored = encode(original.group)
    assert encode(copied.group) == stored
    for step in rest:
        copied.step(step)
    assert encode(original.group) == stored
    for step in rest:
        original.step(step)
    assert encode(copied.group) == encode(original.group)


@given(config=configs(), script=steps(), cuts=st.lists(st.integers(0, 500_000), max_size=30))
def test_time_may_pass_in_one_jump_or_in_many(config, script, cuts):
    jump, walk = Player(config), Player(config)
    for step in script:
        jump.step(step)
        for pause in (step.wait_ms // 3, step.wait_ms // 2):
            walk.note(walk.group.advance(walk.now_ms + pause))
        walk.step(step)
    start = jump.now_ms
    jump.advance(start + 500_000)
    for cut in [*sorted(cuts), 500_000]:
        walk.advance(start + cut)
    assert walk.replies == jump.replies
    assert walk.effects == jump.effects
    assert encode(walk.group) == encode(jump.group)


@given(config=configs(), script=steps())
def test_left_alone_every_group_comes_to_rest_without_members(config, script):
    """Sessions, sync and join timers see to it: nobody stays for ever, and nobody is left waiting."""
    player = Player(config)
    for step in script:
        player.step(step)
    player.advance(player.now_ms + 3_000_000)
    if player.threw:
        return
    group = player.group
    if config.version.new_member_timeout or not group.awaiting_join:
        assert group.members == {}
        assert group.state in (State.EMPTY, State.DEAD) or (group.state, group.generation) == (State.STABLE, 0)
        assert not group.pending_members
        assert not group.timers.deadlines
    # Answers of a JoinGroup or SyncGroup that a later one of the same member replaced never come, as in Kafka.
    assert not group.awaiting_sync


@given(config=configs(), script=steps(min_size=0, max_size=12))
def test_a_dead_group_refuses_everything_and_stays_dead(config, script):
    player = Player(config)
    player.group.transition_to(Trigger.UNLOADED)
    for step in script:
        outcome, ticket = player.step(step)
        (reply,) = outcome.replies
        assert reply.ticket == ticket
        assert reply.answer.error is not Error.NONE
        assert player.group.state is State.DEAD


@given(config=configs(), script=steps())
def test_the_same_script_has_the_same_outcome(config, script):
    one, two = Player(config), Player(config)
    for step in script:
        assert one.step(step) == two.step(step)
    assert encode(one.group) == encode(two.group)
