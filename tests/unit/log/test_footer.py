"""Footers: two processes of Java write the same messages, and the same bytes come out."""

import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidemark.log.files.footer import TAIL, footer_length, in_order

pytestmark = pytest.mark.unit

FOOTERS = Path(__file__).parent / "footers"
ONE, OTHER = ((FOOTERS / name).read_bytes() for name in ("one.parquet", "other.parquet"))
"""One capture, done by two processes of Spark 4.2."""


def footer_of(file: bytes) -> bytes:
    return file[-TAIL - footer_length(file[-TAIL:]) : -TAIL]


def ordered(file: bytes) -> bytes:
    return file.replace(footer_of(file), in_order(footer_of(file)))


def encodings(file: bytes) -> list[tuple[str, ...]]:
    group = pq.read_metadata(io.BytesIO(file)).row_group(0)
    return [group.column(i).encodings for i in range(group.num_columns)]


def given_file(groups: int, columns: int) -> bytes:
    """A file as Arrow writes it; more than 14 of either take another form in the footer."""
    table = pa.table({f"c{i}": [f"v{row}" for row in range(groups)] for i in range(columns)})
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=1, compression="zstd")
    return sink.getvalue()


def test_the_files_differ_in_nothing_but_the_order_of_encodings():
    assert ONE != OTHER
    assert [sorted(one) for one in encodings(ONE)] == [sorted(other) for other in encodings(OTHER)]


def test_in_order_they_are_the_same():
    assert ordered(ONE) == ordered(OTHER)


def test_a_reader_cannot_tell():
    assert pq.read_table(io.BytesIO(ordered(ONE))).equals(pq.read_table(io.BytesIO(ONE)))


def test_what_is_in_order_stays_as_it_is():
    assert ordered(ordered(ONE)) == ordered(ONE)


@pytest.mark.parametrize(("groups", "columns"), [(1, 1), (14, 2), (15, 3), (3, 20), (40, 40)])
def test_footers_of_any_size_are_walked(groups, columns):
    file = given_file(groups, columns)
    read = pq.read_table(io.BytesIO(ordered(file)))
    assert read.equals(pq.read_table(io.BytesIO(file)))
    assert [sorted(column) for column in encodings(file)] == [sorted(c) for c in encodings(ordered(file))]


def test_what_is_no_parquet_file_is_refused():
    with pytest.raises(ValueError, match="not a Parquet file"):
        footer_length(b"12345678")
