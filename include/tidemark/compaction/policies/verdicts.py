"""Verdicts about many entities, as columns. Judges nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from msgspec import structs
from numpy.typing import NDArray

from tidemark.compaction.policies.journal_facts import Verdict

VERDICTS = pa.schema(
    [
        pa.field("key", pa.string()),
        pa.field("purged_below", pa.int64()),
        pa.field("delete_id", pa.int64()),
        pa.field("delete_to", pa.int64()),
        pa.field("kept_append", pa.int64()),
        pa.field("purge_goes", pa.bool_()),
    ]
)
"""The entity's key, and the fields of ``Verdict``."""


@dataclass(frozen=True)
class Verdicts:
    """The verdicts about the entities of some files. Entities without a verdict keep everything."""

    keys: pa.Array
    purged_below: NDArray[np.int64]
    delete_id: NDArray[np.int64]
    delete_to: NDArray[np.int64]
    kept_append: NDArray[np.int64]
    purge_goes: NDArray[np.bool_]

    @classmethod
    def of_table(cls, table: pa.Table) -> "Verdicts":
        """From a table of ``VERDICTS``."""
        columns = (table[name].to_numpy() for name in VERDICTS.names[1:])
        return cls(table["key"].combine_chunks(), *columns)


def verdict_table(verdicts: Sequence[tuple[str, Verdict]]) -> pa.Table:
    """Verdicts, each with its entity's key, as a table of ``VERDICTS``."""
    rows = [(key, *structs.astuple(verdict)) for key, verdict in verdicts]
    columns = list(zip(*rows, strict=True)) or [()] * len(VERDICTS.names)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, VERDICTS, strict=True)]
    return pa.Table.from_arrays(arrays, schema=VERDICTS)
