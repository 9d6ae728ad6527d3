"""From where on a delivery is compared with the log, also after one that died before it was."""

from pathlib import Path

import pytest

from tidemark.verification.reconcile import unreconciled_after
from tidemark.verification.reconciliation import Reconciliation, keep
from tidemark.verification.sample import NEWEST_MESSAGES

pytestmark = pytest.mark.unit


def given_records(root: Path, *positions: int, writer: str = "cassandra") -> None:
    for position in positions:
        keep(str(root), Reconciliation("orders", writer, position, "as it should be"))


def after(root: Path, before: int, position: int) -> int | None:
    return unreconciled_after("orders", str(root), "cassandra", before, position)


def test_what_was_delivered_just_now_is_compared(tmp_path):
    given_records(tmp_path, 9)
    assert after(tmp_path, before=9, position=19) == 9


def test_the_first_delivery_of_all_is_compared_whole(tmp_path):
    assert after(tmp_path, before=-1, position=9) == -1


def test_nothing_delivered_and_all_compared_is_nothing_to_do(tmp_path):
    given_records(tmp_path, 9)
    assert after(tmp_path, before=9, position=9) is None


def test_a_writer_that_has_not_begun_has_nothing_to_compare(tmp_path):
    assert after(tmp_path, before=-1, position=-1) is None


def test_a_delivery_that_died_before_it_was_compared_is_compared_by_the_next(tmp_path):
    given_records(tmp_path, 9)
    assert after(tmp_path, before=19, position=19) == 9
    assert after(tmp_path, before=19, position=29) == 9


def test_what_is_delivered_again_after_a_rewind_is_compared_again(tmp_path):
    given_records(tmp_path, 9, 19)
    assert after(tmp_path, before=4, position=19) == 4


def test_another_writer_s_records_say_nothing(tmp_path):
    given_records(tmp_path, 9, writer="archive")
    assert after(tmp_path, before=9, position=9) == -1


def test_it_looks_back_only_so_far(tmp_path):
    position = 3 * NEWEST_MESSAGES
    assert after(tmp_path, before=position, position=position) == 2 * NEWEST_MESSAGES
