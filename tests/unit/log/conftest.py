"""A log of its own for every test: consensus in memory, files in a folder that goes away."""

from pathlib import Path

import pytest
from tests.support.consensus import RacingConsensus

from tidemark.log.files.parquet import LogFolder
from tidemark.log.state.control import LogControl


@pytest.fixture
def consensus() -> RacingConsensus:
    return RacingConsensus()


@pytest.fixture
def control(consensus: RacingConsensus) -> LogControl:
    return LogControl(consensus, "orders")


@pytest.fixture
def folder(tmp_path: Path) -> LogFolder:
    return LogFolder("orders", str(tmp_path))
