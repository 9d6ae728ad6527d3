"""What rounds are given for the engine: whether an error says that it is lost."""

from typing import Any

import pytest

from tidemark.spark.errors import EngineUnavailable
from tidemark.spark.jobs.follow import round_tools

pytestmark = pytest.mark.unit

ANY: Any = None


@pytest.mark.parametrize(
    ("error", "is_lost"),
    [
        (EngineUnavailable("sc://localhost:1", "is gone"), True),
        (ConnectionError("the target is gone"), False),
    ],
)
def test_only_errors_of_the_engine_end_a_round_for_all_writers(error: Exception, is_lost: bool) -> None:
    tools = round_tools(ANY, ANY, ANY, "read_committed", ANY, ANY, ANY)
    assert tools.is_engine_error(error) is is_lost
