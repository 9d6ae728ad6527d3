"""A pipeline ``bank`` whose writers have renditions."""

from pathlib import Path

import pytest
from tests.support.renditions_installed import RenditionInstallation


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RenditionInstallation:
    """Two bindings are published, and delivered to ``archive``."""
    world = RenditionInstallation(tmp_path, monkeypatch)
    world.publish({"sum": 1}, {"sum": 2})
    world.deliver()
    world.publish({"sum": 3})
    world.deliver()
    return world
