"""A pipeline of its own for every test: consensus in memory, files in a folder that goes away."""

from pathlib import Path

import pytest
from tests.support.clocks import Clock
from tests.support.pipeline_world import PipelineWorld

from tidemark.consensus.memory import MemoryConsensus
from tidemark.delivery.state.positions import Positions


@pytest.fixture
def house(tmp_path: Path) -> PipelineWorld:
    return PipelineWorld(tmp_path)


@pytest.fixture
def consensus() -> MemoryConsensus:
    return MemoryConsensus()


@pytest.fixture
def positions(consensus: MemoryConsensus) -> Positions:
    return Positions(consensus, "orders")


@pytest.fixture
def clock() -> Clock:
    return Clock()
