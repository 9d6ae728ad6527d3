"""What only tests switch on: nothing changes without it."""

import pytest

from tidemark.faults import AT_ONCE, at_once

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(("wanted", "expected"), [(None, 1000), ("20", 20), ("5000", 1000)])
def test_fewer_are_handled_together_where_a_test_wants_it(monkeypatch, wanted, expected):
    monkeypatch.delenv(AT_ONCE, raising=False)
    if wanted:
        monkeypatch.setenv(AT_ONCE, wanted)
    assert at_once(1000) == expected
