"""The built-in source formats: how a writer's transforms read the value of a message.

``json`` and ``raw`` are two words for one format: a source of any Kafka records, of which nothing is asked
until a writer has transforms, which read a value as a JSON object. ``kafka-journal`` reads values alike,
and is the only format that a journal can be written from and compacted by.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tidemark.pipeline import kinds
from tidemark.pipeline.kinds import FormatKind


def _json_object(value: bytes) -> Mapping[str, Any]:
    from tidemark.journal.codec import json_text  # pipeline files are read without it

    data = json_text.parse(value)
    if not isinstance(data, dict):
        raise ValueError(f"it is a JSON {type(data).__name__}")
    return data


JSON = FormatKind("json", _json_object, shapes_output=False)
RAW = replace(JSON, name="raw")
KAFKA_JOURNAL = replace(JSON, name=kinds.KAFKA_JOURNAL, policy="journal")
