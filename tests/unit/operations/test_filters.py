"""Filters of streams."""

import pytest

from tidemark.operations.filters import OperationFilter

pytestmark = pytest.mark.unit


def test_T3_one_type():
    found = OperationFilter.of(types=["a"])
    assert found.admits("a", [])
    assert not found.admits("b", [])


def test_T4_one_of_two_types():
    found = OperationFilter.of(types=["a", "b"])
    assert found.admits("a", [])
    assert found.admits("b", [])
    assert not found.admits("c", [])


@pytest.mark.parametrize("wanted", [["a"], ["a", "b"]])
def test_T5_any_parent_is_one_of_those_wanted(wanted):
    found = OperationFilter.of(parents=wanted)
    assert found.admits("video", ["x", "a"])
    assert not found.admits("video", ["x", "y"])


def test_C21_an_operation_needs_a_type_and_a_parent():
    found = OperationFilter.of(types=["video"], parents=["user/1", "user/2"])
    assert found.admits("video", ["user/2"])
    assert not found.admits("video", ["user/3"])
    assert not found.admits("playlist", ["user/2"])


def test_types_of_a_filter_are_lower_cased_as_those_of_operations_are():
    assert OperationFilter.of(types=["Video"]).admits("video", [])


def test_an_operation_without_parents_passes_every_filter_of_parents():
    assert OperationFilter.of(parents=["user/1"]).admits("video", ())


def test_without_a_filter_everything_passes():
    assert OperationFilter().admits("video", ["user/1"])
