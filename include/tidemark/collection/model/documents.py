"""Values of messages as documents, with every number as it is written.

Transforms see the same types as elsewhere, int, float and ``Decimal``, with two differences: 1.0 stays a
float, so that it is refused by an integer column, and a number of more than 34 digits is not rounded.
"""

from collections.abc import Mapping
from typing import Any

from tidemark.journal.codec.json_text import parse_exactly


def json_object(value: bytes) -> Mapping[str, Any]:
    """The JSON object that a value is; raises ``ValueError`` for anything else."""
    data = parse_exactly(value)
    if not isinstance(data, dict):
        raise ValueError(f"it is a JSON {type(data).__name__}")
    return data
