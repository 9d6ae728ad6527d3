"""Rows, changes and readers of collections as JSON and as lines.

Values are as a producer would write them in a message: decimals, dates and UUIDs as text, blobs in base64.
"""

import base64
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from rich.markup import escape
from rich.table import Table

from tidemark.cli.output.tables import moment
from tidemark.client.collection.changes import Change
from tidemark.outputs.model.capability import Capability


def row_of_driver(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row with values of the driver's types, for JSON."""
    return {name: _shown(value) for name, value in row.items()}


def rows_of_batch(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch, for JSON."""
    maps = [field.name for field in batch.schema if pa.types.is_map(field.type)]
    for row in batch.to_pylist():
        for name in maps:
            row[name] = None if row[name] is None else dict(row[name])
        yield row_of_driver(row)


def row_text(row: Mapping[str, Any]) -> str:
    """A row as one line of JSON."""
    return json.dumps(row, ensure_ascii=False)


def change_json(change: Change) -> str:
    """A change as one line of JSON."""
    return json.dumps(
        {"t": change.t, "diff": change.diff, "row": row_of_driver(change.row)}, ensure_ascii=False
    )


def change_line(change: Change) -> str:
    """A change as one line for a person."""
    return f"{change.t}  {'+' if change.diff > 0 else '-'}  {row_text(row_of_driver(change.row))}"


def readers_table(held: Sequence[Capability], now: int) -> Table:
    """One line per reader or pin."""
    table = Table("reader", "holds from", "until", "who", box=None, pad_edge=False)
    for one in held:
        until = "unpinned" if one.deadline is None else moment(one.deadline)
        expired = " (expired)" if one.is_expired_at(now) else ""
        table.add_row(escape(one.reader), str(one.t), f"{until}{expired}", escape(one.who))
    return table


def _shown(value: Any) -> Any:
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case datetime():
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            return aware.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case Decimal():
            return format(value, "f")
        case Mapping():
            return {
                key if isinstance(key, str) else str(_shown(key)): _shown(one) for key, one in value.items()
            }
    if isinstance(value, Sequence) or hasattr(value, "__iter__"):
        return [_shown(one) for one in value]
    return str(value)
