"""A pipeline of its own for every test: consensus in memory, files in a folder that goes away."""

from pathlib import Path

import pytest
from tests.support.pipeline_world import PipelineWorld


@pytest.fixture
def house(tmp_path: Path) -> PipelineWorld:
    return PipelineWorld(tmp_path)
