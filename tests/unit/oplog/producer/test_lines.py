"""Lines of operations: what is refused, how they are cut into requests, what is sent again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemark.oplog.producer.errors import LineRefused
from tidemark.oplog.producer.lines import MOST_BYTES, MOST_LINES, read_lines, requests_of, to_send_again

pytestmark = pytest.mark.unit


def line(name: str, event: str = "insert") -> bytes:
    return f'{{"event":"{event}","parents":[],"type":"video","id":"{name}"}}\n'.encode()


def numbers(*lines: bytes) -> list[list[int]]:
    return [[one.number for one in request] for request in requests_of(read_lines(lines))]


def test_blank_lines_are_skipped_and_counted():
    assert numbers(line("a"), b"\n", line("b")) == [[1, 3]]


def test_C2_a_bad_line_is_named_with_its_number():
    with pytest.raises(LineRefused) as refused:
        list(read_lines([line("a"), b'{"event": "insert",}']))
    assert (refused.value.line, refused.value.before) == (2, 1)


def test_what_precedes_a_bad_line_is_sent_before_the_error():
    requests = requests_of(read_lines([line("a"), line("b"), b"bad"]))
    assert [one.number for one in next(requests)] == [1, 2]
    with pytest.raises(LineRefused):
        next(requests)


def test_requests_have_a_bounded_number_of_lines():
    assert [len(request) for request in numbers(*[line("a")] * (MOST_LINES + 1))] == [MOST_LINES, 1]


def test_requests_have_a_bounded_size():
    long = line("a").replace(b"[]", b"[" + b",".join([b'"%s"' % (b"x" * 1_000)] * 200) + b"]")
    sizes = [len(request) for request in numbers(*[long] * 5)]
    assert sizes == [2, 2, 1]
    assert 2 * len(long) < MOST_BYTES < 3 * len(long)


def test_no_lines_are_no_requests():
    assert numbers() == []


def test_an_acknowledged_line_is_sent_again_behind_an_earlier_one_of_its_object():
    sent = list(read_lines([line("a"), line("b"), line("a", "delete"), line("b", "delete")]))
    assert [one.number for one in to_send_again(sent, [2, 3])] == [1, 3, 4]


@given(st.lists(st.sampled_from("abc"), max_size=20), st.sets(st.integers(1, 20)))
def test_order_of_an_object_survives_any_partial_acknowledgement(names, acknowledged):
    sent = list(read_lines([line(name) for name in names]))
    arrived = [one for number, one in enumerate(sent, 1) if number in acknowledged]
    arrived += to_send_again(sent, acknowledged)
    for key in {one.key for one in sent}:
        newest = [one.number for one in arrived if one.key == key][-1]
        assert newest == max(one.number for one in sent if one.key == key)
    assert {one.number for one in arrived} == {one.number for one in sent}
