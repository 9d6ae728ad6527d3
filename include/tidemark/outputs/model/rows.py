"""Outputs and readers as rows of text, as the control plane stores them.

An output is ``head``, ``rendition/<number>`` and ``handover/<h>``. Numbers in names are padded, so that rows
sort by them. Its readers are an object of their own: ``head`` and ``reader/<n>``, where *n* is a hash of the
reader's id and a row has all readers with that hash. Renewing one rewrites one row in 64.

No row is ever removed, only overwritten. Readers come and go every few seconds, and Cassandra keeps a
tombstone for each removed row: after some ten thousands of them it refuses to read the object.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from tidemark.outputs.errors import OutputDamaged
from tidemark.outputs.model.capability import Capability, Readers
from tidemark.outputs.model.digest import shard_of
from tidemark.outputs.model.output import Handover, Output
from tidemark.outputs.model.rendition import Rendition

HEAD, RENDITION, HANDOVER, READER = "head", "rendition/", "handover/", "reader/"
READER_ROWS = 64
"""The number of rows that readers share. Fixed: with another number a reader would not find its row."""


def output_rows(output: Output) -> dict[str, str]:
    """All rows of an output."""
    rows = {HEAD: _json({"frontier": output.frontier, "next": output.next_number})}
    rows |= {f"{RENDITION}{one.number:020d}": _json(one.to_row()) for one in output.renditions}
    return rows | {f"{HANDOVER}{one.h:020d}": _json(one.to_row()) for one in output.handovers}


def output_from_rows(pipeline: str, writer: str, rows: Mapping[str, str]) -> Output:
    """The output in its rows; raises ``OutputDamaged`` where they contradict each other."""
    if HEAD not in rows:
        raise OutputDamaged(pipeline, writer, f"there is no row `{HEAD}`")
    head = json.loads(rows[HEAD])
    renditions = tuple(map(Rendition.from_row, _bodies(rows, RENDITION)))
    handovers = tuple(map(Handover.from_row, _bodies(rows, HANDOVER)))
    return Output(pipeline, writer, head["frontier"], head["next"], renditions, handovers)


def frontier_of(head: str) -> int:
    """The frontier in the row ``head`` of an output."""
    frontier: int = json.loads(head)["frontier"]
    return frontier


def reader_row(reader: str) -> str:
    """The name of the row that has a reader."""
    return f"{READER}{shard_of(reader.encode(), READER_ROWS):02d}"


def reader_rows(readers: Readers, present: Iterable[str] = ()) -> dict[str, str]:
    """The rows of the readers of an output; those of ``present`` that have no reader any more are empty."""
    shared: dict[str, list[dict[str, Any]]] = {row: [] for row in present if row.startswith(READER)}
    for name, one in sorted(readers.capabilities.items()):
        shared.setdefault(reader_row(name), []).append(one.to_row())
    return {HEAD: _json({"since": readers.since})} | {row: _json(held) for row, held in shared.items()}


def readers_from_rows(pipeline: str, writer: str, rows: Mapping[str, str]) -> Readers:
    """The readers in some or all of their rows; raises ``OutputDamaged`` without a head."""
    if HEAD not in rows:
        raise OutputDamaged(pipeline, writer, f"there is no row `{HEAD}` of its readers")
    held = [Capability.from_row(row) for shared in _bodies(rows, READER) for row in shared]
    return Readers(pipeline, writer, json.loads(rows[HEAD])["since"], {one.reader: one for one in held})


def changed_rows(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
    """The rows to write where some rows become others."""
    return {row: body for row, body in after.items() if before.get(row) != body}


def _bodies(rows: Mapping[str, str], prefix: str) -> list[Any]:
    return [json.loads(rows[row]) for row in sorted(rows) if row.startswith(prefix)]


def _json(body: Mapping[str, Any] | list[dict[str, Any]]) -> str:
    return json.dumps(body, ensure_ascii=False, sort_keys=True)
