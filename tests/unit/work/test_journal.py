"""A work journal in memory: the contract that Cassandra keeps too."""

import pytest
from tests.contract.work_contract import JournalContract, StoreContract
from tests.contract.work_house import Stores, memory_stores

pytestmark = pytest.mark.unit


@pytest.fixture
def stores() -> Stores:
    return memory_stores()


class TestMemoryStores(StoreContract):
    """With this module's ``stores``."""


class TestMemoryJournal(JournalContract):
    """With this module's ``stores``."""
