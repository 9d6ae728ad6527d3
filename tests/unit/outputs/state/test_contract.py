"""Outputs and readers keep their promises in memory, also between threads."""

import pytest
from tests.support.contracts.flaky_consensus import FlakyConsensus
from tests.support.contracts.output_contract import OutputContract

from tidemark.consensus.memory import MemoryConsensus

pytestmark = pytest.mark.unit


class TestInMemory(OutputContract):
    @pytest.fixture
    def consensus(self) -> MemoryConsensus:
        return MemoryConsensus()


class TestWithoutFaults(OutputContract):
    @pytest.fixture
    def consensus(self) -> FlakyConsensus:
        return FlakyConsensus(MemoryConsensus())
