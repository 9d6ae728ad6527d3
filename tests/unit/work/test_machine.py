"""Whatever happens in whatever order: no entry lost, none held twice, none seen after its expiry."""

import pytest
from tests.contract.flaky_consensus import FlakyConsensus
from tests.contract.work_house import Stores, memory_stores
from tests.contract.work_machine import check_work

pytestmark = pytest.mark.unit


def given_stores() -> tuple[Stores, FlakyConsensus]:
    stores = memory_stores()
    return stores, FlakyConsensus(stores.entries)


def test_nothing_is_lost_held_twice_or_seen_after_its_expiry():
    check_work(given_stores, examples=150, steps=40)
