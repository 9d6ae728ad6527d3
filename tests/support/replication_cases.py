"""The contract's replication cases: what each must come to, and what a reader can tell of it.

``DIFFERENT`` lists the cases in which Tidemark deviates on purpose; docs/compatibility.md says why.
"""

from copy import deepcopy
from typing import Any

from tests.support.case_files import REPLICATION
from tests.support.writer_model import Writer


def _no_tables(expected: dict[str, Any]) -> None:
    expected.update(metajournal=[], journal=[], pointer2=[], readable_seq_nrs={})
    expected.update(readable_seq_nrs_correlated={}, outcome="stalled")


def _first_append_applied(expected: dict[str, Any]) -> None:
    new = deepcopy(REPLICATION["append-new"]["expected"])
    expected.update(new, outcome="stalled")


DIFFERENT = {
    "delete-inconsistent-head": lambda e: e["metajournal"][0].update(delete_to=400),
    "delete-lower-than-delete-to": lambda e: e["metajournal"][0].update(delete_to=3),
    "unparsable-header-stalls": lambda e: e["pointer2"].append({"partition": 0, "offset": 0}),
    "unparsable-payload-stalls": _first_append_applied,
    "unparsable-payload-dropped-by-batch": _no_tables,
}


def expectation(case: dict[str, Any]) -> dict[str, Any]:
    expected = deepcopy(case["expected"])
    DIFFERENT.get(case["id"], lambda _: None)(expected)
    return expected


def keys(case: dict[str, Any]) -> set[str]:
    records = [record for poll in case["polls"] for record in poll["records"]]
    return {key for record in records if (key := record.get("key", "id")) is not None}


def told(writer: Writer, case: dict[str, Any]) -> dict[str, Any]:
    """What a reader can tell, without the columns that the cases say nothing about."""
    state: dict[str, Any] = {"pointer2": writer.pointers, "entities": {}}
    for key in keys(case):
        visible = writer.visible(key)
        if visible is not None:
            visible["rows"] = {
                place: (cells["partition"], cells["offset"]) for place, cells in visible["rows"].items()
            }
            state["entities"][key] = visible
    return state
