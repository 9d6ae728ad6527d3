"""What is counted while messages pass on their way into a file, however they are cut into batches."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.log_samples import given_binding, given_messages

from tidemark.log.files.parquet import LOG_SCHEMA, write_parquet
from tidemark.log.files.statistics import FileTally
from tidemark.log.model.binding import Slice
from tidemark.log.model.captured import Captured, CapturedFile
from tidemark.log.model.manifest import LogFile
from tidemark.log.model.statistics import FileStatistics

pytestmark = pytest.mark.unit

BINDING = given_binding(1_000_000, 100, ("invoices", 0, 10, 13), ("orders", 1, 7, 27))
"""Offset 7 of orders has id 103."""
ORDERS = BINDING.slices[1]

MESSAGE = {"t": 1_000_000, "write_time": 0, "topic": "orders", "partition": 1, "timestamp_type": 0}


def given_batch(*offsets: int, shift: int = 96, **columns: Sequence) -> pa.RecordBatch:
    """Messages of orders/1 with these offsets, ids ``shift`` above them, and some columns different."""
    rows = [
        {**MESSAGE, "id": offset + shift, "offset": offset, "timestamp": 5, "namespace": "orders"}
        | {"key": b"k", "value": b"v"}
        | {name: values[i] for name, values in columns.items()}
        for i, offset in enumerate(offsets)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=LOG_SCHEMA)


def tallied(*batches: pa.RecordBatch, is_declared=lambda namespace: True) -> FileTally:
    tally = FileTally(BINDING, ORDERS, is_declared)
    for batch in batches:
        tally.count(batch)
    tally.count_nulls(footer(*batches))
    return tally


def footer(*batches: pa.RecordBatch) -> pq.FileMetaData:
    """The footer of a file with these messages."""
    sink = pa.BufferOutputStream()
    write_parquet(sink, batches)
    return pq.read_metadata(pa.BufferReader(sink.getvalue()))


def concluded(tally: FileTally) -> CapturedFile:
    return tally.conclude("files/a.parquet", size=1234, digest="d1")


# What has passed


def test_nothing_has_passed_at_first():
    tally = tallied()
    assert (tally.rows, tally.disorder, tally.misnumbered, tally.strangers) == (0, 0, 0, 0)


def test_an_empty_batch_counts_nothing():
    with_empty = tallied(given_batch(), given_batch(7), given_batch(), given_batch(8))
    assert concluded(with_empty) == concluded(tallied(given_batch(7, 8)))


# Order


@pytest.mark.parametrize(
    ("batches", "disorder"),
    [
        pytest.param([[7, 8, 9]], 0, id="in order"),
        pytest.param([[7, 20, 26]], 0, id="in order, with holes"),
        pytest.param([[7, 8], [9, 10]], 0, id="in order over two batches"),
        pytest.param([[7, 9, 8]], 1, id="one step back"),
        pytest.param([[9, 8, 7]], 2, id="all backwards"),
        pytest.param([[7, 7]], 1, id="the same offset twice"),
        pytest.param([[7, 8], [8, 9]], 1, id="the same offset in the next batch"),
        pytest.param([[7, 9], [8, 10]], 1, id="a step back between batches"),
        pytest.param([[7, 9], [], [8]], 1, id="a step back over an empty batch"),
        pytest.param([[8, 7], [6, 5]], 3, id="steps back within and between batches"),
    ],
)
def test_messages_that_do_not_follow_the_one_before_are_counted(batches, disorder):
    assert tallied(*(given_batch(*offsets) for offsets in batches)).disorder == disorder


def test_the_first_and_the_last_message_are_remembered_over_batches():
    tally = tallied(given_batch(8, 9), given_batch(12), given_batch(20, 25))
    assert (tally.first_offset, tally.last_offset) == (8, 25)
    assert (tally.first_id, tally.last_id) == (104, 121)


# Ids


def test_the_ids_of_the_binding_are_right():
    assert tallied(given_messages(BINDING, "orders", 1, {7: b"a", 20: b"b"})).misnumbered == 0


def test_ids_that_the_binding_does_not_give_are_counted():
    tally = tallied(given_batch(7, 8), given_batch(9, 10, shift=97), given_batch(11, shift=95))
    assert tally.misnumbered == 3


def test_an_id_of_another_partition_is_wrong():
    tally = tallied(given_batch(10, shift=90))
    assert BINDING.id_of("invoices", 0, 10) == 100
    assert tally.misnumbered == 1


# Namespaces


def test_messages_of_namespaces_that_are_not_declared_are_counted():
    tally = tallied(
        given_batch(7, 8, 9, namespace=["orders", "carts", "carts"]),
        given_batch(10, namespace=["refunds"]),
        is_declared=lambda namespace: namespace == "orders",
    )
    assert tally.strangers == 3


def test_whether_a_namespace_is_declared_is_asked_once_a_batch():
    asked = []
    tallied(given_batch(7, 8, 9), is_declared=lambda namespace: asked.append(namespace) or True)
    assert asked == ["orders"]


# Nulls and timestamps


def test_messages_without_a_key_or_a_value_are_counted():
    tally = tallied(
        given_batch(7, 8, key=[None, b"k"], value=[None, None]),
        given_batch(9, 10, key=[b"", None], value=[b"", b"v"]),
    )
    assert (tally.null_keys, tally.null_values) == (2, 2)


def test_timestamps_are_the_lowest_and_the_highest_wherever_they_are():
    tally = tallied(given_batch(7, 8, timestamp=[50, 40]), given_batch(9, 10, timestamp=[90, 30]))
    assert (tally.first_timestamp, tally.last_timestamp) == (30, 90)


def test_a_timestamp_before_1970_is_one_like_any_other():
    tally = tallied(given_batch(7, timestamp=[-2]), given_batch(8, timestamp=[-1]))
    assert (tally.first_timestamp, tally.last_timestamp) == (-2, -1)


# The end


def test_a_file_is_listed_with_what_is_in_it():
    tally = tallied(given_batch(8, 9), given_batch(12))
    assert concluded(tally).file == LogFile(
        path="files/a.parquet",
        t=1_000_000,
        topic="orders",
        partition=1,
        first_id=104,
        last_id=108,
        count=3,
        bytes=1234,
        digest="d1",
    )


def test_everything_that_was_counted_is_next_to_what_was_bound():
    tally = tallied(
        given_batch(8, 9, key=[None, b"k"], timestamp=[70, 60]),
        given_batch(9, value=[None], namespace=["carts"], shift=0),
        is_declared=lambda namespace: namespace == "orders",
    )
    assert concluded(tally).statistics == FileStatistics(
        path="files/a.parquet",
        topic="orders",
        partition=1,
        lower=7,
        upper=27,
        first_owned_id=103,
        last_owned_id=122,
        first_id=104,
        last_id=9,
        first_offset=8,
        last_offset=9,
        rows_written=3,
        disorder=1,
        misnumbered=1,
        strangers=1,
        null_keys=1,
        null_values=1,
        first_timestamp=5,
        last_timestamp=70,
        bytes=1234,
        digest="d1",
    )


def test_what_is_left_of_a_slice_owns_fewer_ids():
    left = Slice("orders", 1, 10, 27)
    tally = FileTally(BINDING, left, lambda namespace: True)
    tally.count(given_batch(10))
    found = concluded(tally).statistics
    assert (found.lower, found.first_owned_id, found.last_owned_id, found.width) == (10, 106, 122, 17)


def test_the_numbers_survive_the_record_of_the_capture():
    captured = Captured(1_000_000, (concluded(tallied(given_batch(7, 8))),), 2)
    assert Captured.from_bytes(captured.to_bytes()) == captured


MESSAGES = st.lists(
    st.fixed_dictionaries(
        {
            "offset": st.integers(7, 26),
            "shift": st.sampled_from([96, 96, 96, 95]),
            "timestamp": st.integers(-5, 5),
            "key": st.sampled_from([None, b"k"]),
            "value": st.sampled_from([None, b"v"]),
            "namespace": st.sampled_from(["orders", "carts"]),
        }
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=50)
@given(MESSAGES, st.lists(st.integers(0, 12), max_size=5))
def test_any_split_into_batches_counts_the_same(messages, cuts):
    rows = [MESSAGE | m | {"id": m["offset"] + m["shift"]} for m in messages]
    whole = pa.RecordBatch.from_pylist(rows, schema=LOG_SCHEMA)
    ends = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = [whole.slice(start, end - start) for start, end in pairwise(ends)]
    declared = {"is_declared": lambda namespace: namespace == "orders"}
    together, apart = concluded(tallied(whole, **declared)), concluded(tallied(*parts, **declared))
    assert asdict(apart.statistics) == asdict(together.statistics)
