"""Whatever happens to a writer on its way, a verification calls nothing wrong; and in the end all is proved.

The histories, deaths, failures, rewinds, acknowledgements and backfills are those of the writer's own test.
"""

import pytest
from hypothesis import given, settings
from tests.support.found_in_memory import verdicts, verified
from tests.support.writer_histories import KEYS, HistoryWorld, given_world, plans

from tidemark.journal import expected
from tidemark.journal.difference import Difference
from tidemark.verification.journal.provable import Unprovable

pytestmark = pytest.mark.unit


def wrong(world: HistoryWorld) -> list[Difference]:
    """What a verification would say now; nothing before there is a writer."""
    if world.positions.load("journal") is None:
        return []
    return list(verified(world, *KEYS).differences)


@given(plans())
@settings(max_examples=60, deadline=None, database=None, derandomize=True)
def test_whatever_happens_nothing_is_called_wrong_that_is_not(plan):
    sizes, steps = plan
    with given_world(sizes) as world, pytest.MonkeyPatch.context() as patch:
        patch.setattr(expected, "MESSAGES_AT_ONCE", sizes["at_once"])
        for name, *arguments in steps:
            getattr(world, name)(*arguments)
            assert wrong(world) == [], (name, arguments)
        world.end()
    assert wrong(world) == []
    found = verdicts(world, *KEYS)
    assert {one.unprovable for one in found.values()} <= {None, Unprovable.NOT_APPLICABLE}
