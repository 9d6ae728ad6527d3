"""A pipeline of its own for every test: consensus in memory, files in a folder that goes away."""

from pathlib import Path

import pytest
from tests.support.delivery_samples import House


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)
