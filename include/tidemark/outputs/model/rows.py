"""Outputs and readers as rows of text, as the control plane stores them.

An output is ``head``, ``rendition/<number>`` and ``handover/<h>``; its readers are ``head`` and
``reader/<id>``, in an object of their own. Numbers in names are padded, so that rows sort by them. A change
is the rows that differ; only ``reader/`` rows are ever removed.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from tidemark.outputs.errors import OutputDamaged
from tidemark.outputs.model.capability import Capability, Readers
from tidemark.outputs.model.output import Handover, Output
from tidemark.outputs.model.rendition import Rendition

HEAD, RENDITION, HANDOVER, READER = "head", "rendition/", "handover/", "reader/"


class RowChanges(NamedTuple):
    """The rows to write, by name, and the names of those to remove."""

    puts: dict[str, str]
    deletes: tuple[str, ...]


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


def reader_rows(readers: Readers) -> dict[str, str]:
    """All rows of the readers of an output."""
    rows = {HEAD: _json({"since": readers.since})}
    return rows | {f"{READER}{name}": _json(one.to_row()) for name, one in readers.capabilities.items()}


def readers_from_rows(pipeline: str, writer: str, rows: Mapping[str, str]) -> Readers:
    """The readers in their rows; raises ``OutputDamaged`` without a head."""
    if HEAD not in rows:
        raise OutputDamaged(pipeline, writer, f"there is no row `{HEAD}` of its readers")
    held = map(Capability.from_row, _bodies(rows, READER))
    return Readers(pipeline, writer, json.loads(rows[HEAD])["since"], {one.reader: one for one in held})


def changed_rows(before: Mapping[str, str], after: Mapping[str, str]) -> RowChanges:
    """The change that turns some rows into others."""
    puts = {row: body for row, body in after.items() if before.get(row) != body}
    return RowChanges(puts, tuple(sorted(before.keys() - after.keys())))


def _bodies(rows: Mapping[str, str], prefix: str) -> list[Any]:
    return [json.loads(rows[row]) for row in sorted(rows) if row.startswith(prefix)]


def _json(body: Mapping[str, Any]) -> str:
    return json.dumps(body, ensure_ascii=False, sort_keys=True)
