"""Whatever happens in whatever order: no entry lost, none held twice, none seen after its expiry."""

import pytest
from tests.support.contracts.flaky_consensus import FlakyConsensus
from tests.support.contracts.work_machine import check_work
from tests.support.contracts.work_world import Stores, memory_stores

pytestmark = pytest.mark.unit


def given_stores() -> tuple[Stores, FlakyConsensus]:
    stores = memory_stores()
    return stores, FlakyConsensus(stores.entries)


def test_nothing_is_lost_held_twice_or_seen_after_its_expiry():
    check_work(given_stores, examples=150, steps=40)
