"""How the key of a message is read. Imports no codec: pipeline files declare it."""

from collections.abc import Sequence
from enum import StrEnum

from tidemark.collection.model.column_types import RAW_KEY_KINDS
from tidemark.collection.model.schema import Column


class KeyFormat(StrEnum):
    """The form of message keys.

    Attributes:
        RAW: The whole key is the value of the only key column: its bytes for a blob, and text for any other.
        JSON: A JSON object with exactly the key columns.
    """

    RAW = "raw"
    JSON = "json"


def usual_key_format(columns: Sequence[Column]) -> KeyFormat:
    """The format where neither the file nor the envelope names one."""
    is_raw = len(columns) == 1 and columns[0].type.kind in RAW_KEY_KINDS
    return KeyFormat.RAW if is_raw else KeyFormat.JSON
