"""Tests that run on both engines: a Spark Connect server that stays up, and an application for each step."""

import pytest

both_engines = pytest.mark.parametrize(
    "spark_engine", ["application", "connect"], indirect=True, scope="session"
)
"""For tests, and modules, whose fixture ``spark_engine`` is to be both."""
