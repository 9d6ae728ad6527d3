"""No test of readers leaves one behind: their threads would go on renewing."""

import gc
from collections.abc import Iterator
from threading import enumerate as threads

import pytest
from tests.support.waiting import wait_until


@pytest.fixture(autouse=True)
def no_reader_is_left() -> Iterator[None]:
    yield
    gc.collect()
    wait_until(lambda: not [one for one in threads() if one.name.startswith("lease of reader")])
