"""The transition table, entry by entry: written twice on purpose, so that a slip in one shows."""

import itertools

import pytest

from coordinator_model.specification.transitions import TRANSITIONS, IllegalTransitionError, Trigger, can_rebalance, next_state
from coordinator_model.states import State

E, P, C, S, D = (State.EMPTY, State.PREPARING_REBALANCE, State.COMPLETING_REBALANCE, State.STABLE, State.DEAD)

# trigger: in Empty, PreparingRebalance, CompletingRebalance, Stable, Dead; None cannot happen.
EXPECTED = {
    "new_member": (P, None, P, P, None),
    "leader_rejoin": (None, None, None, P, None),
    "member_metadata_changed": (None, None, P, P, None),
    "session_expired": (None, None, P, P, None),
    "leave": (None, None, P, P, None),
    "sync_expired": (None, None, P, P, None),
    "static_protocol_change": (None, None, None, P, None),
    "static_replaced_during_completing": (None, None, P, None, None),
    "over_capacity_after_load": (None, None, None, P, None),
    "downgraded": (None, None, None, P, None),
    "assignment_append_failed": (None, None, P, None, None),
    "join_phase_ended": (None, C, None, None, None),
    "join_phase_ended_empty": (None, E, None, None, None),
    "last_member_gone": (None, D, None, None, None),
    "assignment_stored": (None, None, S, None, None),
    "offsets_expired": (D, None, None, None, None),
    "deleted": (D, None, None, None, None),
    "unloaded": (D, D, D, D, None),
}


@pytest.mark.parametrize(("state", "trigger"), list(itertools.product(State, Trigger)))
def test_every_entry(state, trigger):
    expected = EXPECTED[trigger.value][(E, P, C, S, D).index(state)]
    if expected is None:
        with pytest.raises(IllegalTransitionError, match=f"{trigger.value} cannot happen in {state.value}") as caught:
            next_state(state, trigger)
        assert (caught.value.state, caught.value.trigger) == (state, trigger)
    else:
        assert next_state(state, trigger) is expected


def test_the_table_is_total():
    assert set(TRANSITIONS) == set(State)
    assert set(EXPECTED) == {trigger.value for trigger in Trigger}


@pytest.mark.claims("C05")
def test_it_allows_what_kafka_allows():
    reached = {state: set() for state in State}
    for state, row in TRANSITIONS.items():
        for to_state in row.values():
            reached[to_state].add(state)
    # `validPreviousStates`. Kafka also lets a Dead group become Dead; it has no reason to.
    assert reached == {E: {P}, P: {E, S, C}, C: {P}, S: {C}, D: {E, P, C, S}}


def test_can_rebalance():
    assert [can_rebalance(state) for state in (E, P, C, S, D)] == [True, False, True, True, False]
