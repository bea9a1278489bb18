"""A copy of a group is a group of its own."""

from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.specification.codec import encode
from tests.specification.play import Player, configs, steps


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
