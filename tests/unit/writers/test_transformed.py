"""Transforms on messages: what is read, what is written back, and what cannot be."""

import pyarrow as pa
import pytest
from tests.support.log_samples import given_binding, given_messages

from tidemark.delivery.transforms.document import Document, Operation
from tidemark.delivery.writer import BadMessage
from tidemark.pipeline.model import Pipeline
from tidemark.writers.files.kind import FilesDeclaration
from tidemark.writers.files.writer import FilesWriter
from tidemark.writers.renditions import build_declared
from tidemark.writers.transformed import Transformation

pytestmark = pytest.mark.unit

BINDING = given_binding(1_000, 100, ("orders", 0, 0, 9))


def through(transforms: list[dict[str, object]], *values: bytes | None) -> pa.RecordBatch:
    declared = FilesDeclaration.model_validate(
        {"name": "archive", "kind": "files", "path": "/x", "transforms": transforms},
        context={"TIDEMARK_TRANSFORMS": "tests"},
    )
    messages = given_messages(BINDING, "orders", 0, dict(enumerate(values)))
    return Transformation(declared.transforms, "orders", "archive").apply_all(messages)


def buried(document: Document) -> Document:
    return Document(Operation.DELETE, document.ts, document.namespace, document.data)


OMIT = {"omit": {"fields": ["x"]}}


def test_without_transforms_bytes_stay_as_they_are():
    assert through([], b'{ "a" : 1 }')["value"].to_pylist() == [b'{ "a" : 1 }']


def test_what_was_transformed_is_written_compactly():
    assert through([OMIT], b'{ "a" : 1, "x": 2 }')["value"].to_pylist() == [b'{"a":1}']


def test_no_digit_is_lost():
    value = b'{"amount":0.12345678901234567890,"id":9007199254740993}'
    assert through([OMIT], value)["value"].to_pylist() == [
        b'{"amount":0.1234567890123456789,"id":9007199254740993}'
    ]


def test_a_message_without_a_value_passes_as_it_is():
    assert through([OMIT], None)["value"].to_pylist() == [None]


def test_what_is_dropped_leaves_the_others_in_order():
    keep = {"skip": {"field": "n", "operator": ">", "match": 1}}
    assert through([keep], b'{"n":1}', b'{"n":2}', b'{"n":3}')["id"].to_pylist() == [101, 102]


def test_a_function_may_turn_a_message_into_a_deletion():
    function = {"function": {"path": "tests.unit.writers.test_transformed.buried"}}
    assert through([function], b'{"n":1}')["value"].to_pylist() == [None]


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param(b"poison", "not JSON", id="no JSON"),
        pytest.param(b"[1]", "it is a JSON list", id="no object"),
        pytest.param(b'{"a":NaN}', "NaN", id="no number"),
        pytest.param(b"\xff", "not UTF-8", id="no text"),
        pytest.param(b'{"a":' * 5_000 + b"1" + b"}" * 5_000, "nested deeper", id="too deep"),
    ],
)
def test_a_value_that_is_no_json_object_is_a_bad_message(value, said):
    with pytest.raises(BadMessage, match=said) as refusal:
        through([OMIT], b'{"n":1}', value)
    assert (refusal.value.id, refusal.value.offset) == (101, 1)


@pytest.mark.parametrize("source_format", ["json", "raw", "kafka-journal"])
def test_the_built_in_formats_read_values_alike(tmp_path, source_format):
    pipeline = Pipeline.model_validate(
        {
            "name": "orders",
            "source": {"kafka": {"topics": ["orders"], "format": source_format}},
            "writers": [
                {
                    "name": "archive",
                    "kind": "files",
                    "path": str(tmp_path),
                    "transforms": [{"omit": {"fields": ["card"]}}],
                }
            ],
        },
        context={"TIDEMARK_HOME": "/home/tidemark"},
    )
    writer = build_declared(pipeline, None, pipeline.writers[0].name).writer
    assert isinstance(writer, FilesWriter)
    assert "source_format" not in writer.shape, "state of writers that were registered before has none"
    (message,) = given_messages(BINDING, "orders", 0, {0: b'{"id": 1, "card": "4111"}'}).to_pylist()
    kept = writer.transformation.apply(message)
    assert kept is not None
    assert kept["value"] == b'{"id":1}'
    with pytest.raises(BadMessage, match=r"its value is not a JSON object \(it is a JSON list\)"):
        writer.transformation.apply({**message, "value": b"[1]"})
