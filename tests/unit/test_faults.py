"""What only tests switch on: nothing changes without it."""

from collections import Counter

import pytest
from tests.support.fault_points import EVERY_LIST

from tidemark.faults import AT_ONCE, FaultPoint, at_once

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("wanted", "expected"), [(None, 1000), ("20", 20), ("5000", 1000)])
def test_fewer_are_handled_together_where_a_test_wants_it(monkeypatch, wanted, expected):
    monkeypatch.delenv(AT_ONCE, raising=False)
    if wanted:
        monkeypatch.setenv(AT_ONCE, wanted)
    assert at_once(1000) == expected


def test_every_fault_point_stands_in_exactly_one_list():
    assert Counter(point for points in EVERY_LIST for point in points) == Counter(FaultPoint)
