"""Consensus in memory keeps the contract, and agrees with the model when answers get lost."""

import pytest
from tests.support.contracts.consensus_contract import ConsensusContract
from tests.support.contracts.consensus_machine import check_against_model
from tests.support.contracts.flaky_consensus import FlakyConsensus

from tidemark.consensus.memory import MemoryConsensus

pytestmark = pytest.mark.unit


class TestMemoryConsensus(ConsensusContract):
    @pytest.fixture
    def consensus(self) -> MemoryConsensus:
        return MemoryConsensus()


def test_the_model_agrees_whatever_gets_lost():
    check_against_model(lambda: FlakyConsensus(MemoryConsensus()), examples=50, steps=25)
