"""What a stream has: the client's filter within its token's limits."""

import pytest
from tests.support.oplog_samples import parents_filter

from tidemark.operations.filters import OperationFilter
from tidemark.oplog.model.stream_filter import StreamFilter

pytestmark = pytest.mark.unit


def types_filter(*types: str) -> StreamFilter:
    return StreamFilter(OperationFilter.of(types))


@pytest.mark.parametrize(("type_", "admitted"), [("a", True), ("b", False)])
def test_T3_R19_one_type(type_: str, admitted: bool) -> None:
    assert types_filter("a").admits(type_, ["p/1"]) is admitted


@pytest.mark.parametrize(("type_", "admitted"), [("a", True), ("b", True), ("c", False)])
def test_T4_R19_several_types(type_: str, admitted: bool) -> None:
    assert types_filter("a", "b").admits(type_, []) is admitted


@pytest.mark.parametrize(
    ("parents", "admitted"), [(["a"], True), (["b", "a"], True), (["b"], True), (["c"], False)]
)
def test_T5_R20_any_parent_of_several(parents: list[str], admitted: bool) -> None:
    assert parents_filter("a", "b").admits("video", parents) is admitted


@pytest.mark.parametrize(
    ("type_", "parents", "admitted"),
    [("a", ["p"], True), ("a", ["q"], False), ("b", ["p"], False), ("b", ["q"], False)],
)
def test_C21_types_and_parents_are_both_needed(type_: str, parents: list[str], admitted: bool) -> None:
    assert StreamFilter(OperationFilter.of(["a"], ["p"])).admits(type_, parents) is admitted


def test_types_of_a_filter_are_lower_cased() -> None:
    assert types_filter("Video").admits("video", [])


def test_an_operation_without_parents_passes_a_filter_by_parents() -> None:
    assert parents_filter("a").admits("video", [])


def test_an_operation_without_parents_does_not_pass_limits_by_parents() -> None:
    assert not StreamFilter(allowed=OperationFilter.of(parents=["a"])).admits("video", [])


def test_a_filter_does_not_widen_limits() -> None:
    found = StreamFilter(OperationFilter.of(["a", "b"]), OperationFilter.of(["a"]))
    assert not found.admits("b", [])


def test_without_a_filter_everything_is_sent() -> None:
    assert StreamFilter().admits("video", [])
