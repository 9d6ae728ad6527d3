"""Cells become what the driver's own queries return, and back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cql_samples import ALL, PROTOCOL, Sample

from tidemark.cassandra.cql_types import CqlKind, parse_type
from tidemark.cassandra.python_values import PythonType

pytestmark = pytest.mark.unit

SAMPLES = [sample for sample in ALL if sample.cql_type.kind is not CqlKind.USER_TYPE]


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.text)
@given(data=st.data())
def test_a_value_is_decoded_as_the_driver_decodes_it(sample: Sample, data: st.DataObject) -> None:
    if sample.text == "timestamp":  # Python's datetime ends before Cassandra's timestamp
        cell = sample.cell(data.draw(st.integers(-(2**40), 2**40)) * 1000)
    else:
        cell = sample.cell(data.draw(sample.values))
    found = PythonType(sample.cql_type).decode(cell)
    assert found == sample.driver.from_binary(cell, PROTOCOL)


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.text)
@given(data=st.data())
def test_a_value_is_encoded_as_the_driver_encodes_it(sample: Sample, data: st.DataObject) -> None:
    value = sample.for_driver(data.draw(sample.values))
    assert PythonType(sample.cql_type).encode(value) == sample.driver.to_binary(value, PROTOCOL)


@pytest.mark.parametrize("kind", ["int", "text", "set<int>", "decimal"])
def test_null_is_none(kind: str) -> None:
    assert PythonType(parse_type(kind)).decode(None) is None


def test_every_type_that_a_column_can_have_is_known() -> None:
    known = {sample.cql_type.kind for sample in SAMPLES} | {CqlKind.COUNTER}
    assert known == set(CqlKind) - {CqlKind.USER_TYPE}
