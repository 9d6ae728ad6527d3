"""Any histories of several entities, cut, crashed, redelivered and acknowledged: the same visible state.

The histories are as unruly as those of the fold's tests, and respect the same one thing: a repeated number
lies less than a segment below the highest. What is expected is what the fold makes of the messages one by
one, without those that a person let pass.
"""

import pytest
from hypothesis import given, settings
from tests.support.writer_histories import KEYS, given_world, plans

pytestmark = pytest.mark.unit


@given(plans())
@settings(max_examples=60, deadline=None, database=None, derandomize=True)
def test_whatever_happens_readers_see_what_the_log_says(plan):
    sizes, steps = plan
    with given_world(sizes) as world:
        for name, *arguments in steps:
            getattr(world, name)(*arguments)
        world.end()
    gate, position = world.gate(world.process), world.position(world.process)
    assert (gate, position) == (None, world.actions.manifest.end)
    assert world.told(*KEYS) == world.expected
    if not world.positions.acknowledged("journal"):
        assert world.rows_out_of_sight() == set()
