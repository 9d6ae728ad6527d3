"""Consensus in memory keeps the contract."""

import pytest
from tests.contract.consensus_contract import ConsensusContract

from tidemark.consensus.memory import MemoryConsensus

pytestmark = pytest.mark.unit


class TestMemoryConsensus(ConsensusContract):
    @pytest.fixture
    def consensus(self) -> MemoryConsensus:
        return MemoryConsensus()
