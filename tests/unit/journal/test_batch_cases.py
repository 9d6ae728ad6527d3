"""The 52 batching cases: folding all records gives what the original gets from the batches it makes of them.

It never matters that we do not batch, except where a batch hides how the actions would have met one by one;
those cases say what we get instead, and docs/compatibility.md says why.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.support.case_files import BATCH, Delivered, kafka_form
from tests.support.original_codec import Original
from tests.support.writer_model import Writer

pytestmark = pytest.mark.unit

# For an entity without a head: (seq_nr, delete_to), no rows.
DIFFERENT_WITHOUT_HEAD = {
    "batch-21": (1, 1),
    "batch-23": (1, 1),
    "batch-38": (1, 1),
    "batch-x04": (3, 3),
    "batch-x06": (9, 9),
}


# Some cases begin at offset 0, and what was there before them needs a place too.
FIRST = 1


def delivered(record: dict[str, Any], shift: int = FIRST) -> Delivered:
    offset = record["offset"] + shift
    key, value, headers = kafka_form(record)
    return Delivered(offset, 0, offset, 1_000_000 + offset, 0, key, value, offset, headers)


def visible(writer: Writer) -> dict[str, Any] | None:
    state = writer.visible("id")
    return state and {
        "seq_nr": state["seq_nr"],
        "delete_to": state["delete_to"],
        "rows": {(place[1], cells["offset"]) for place, cells in state["rows"].items()},
    }


def folded(records: list[dict[str, Any]], size: int, before: int) -> dict[str, Any] | None:
    writer = Writer("topic0", size)
    if before:
        earlier = {"type": "append", "offset": 0, "seqNrs": [*range(1, before + 1)]}
        writer.deliver([delivered(earlier, shift=0)])
    writer.deliver([delivered(record) for record in records])
    return visible(writer)


def batched(case: dict[str, Any], size: int, before: int) -> dict[str, Any] | None:
    appends = {r["offset"]: r["seqNrs"] for r in case["records"] if r["type"] == "append"}
    original = Original(size)
    if before:
        original.append(0, [(0, [*range(1, before + 1)])])
    for batch in case["expected"]["batches"]:
        offset = batch["offset"] + FIRST
        match batch["batch"]:
            case "appends":
                original.append(offset, [(at + FIRST, appends[at]) for at in batch["record_offsets"]])
            case "delete":
                original.delete(offset, batch["to"])
            case "purge":
                original.purge(offset)
    return original.visible()


def natural_start(case: dict[str, Any]) -> int:
    """How many events the entity can have had before: up to its first append, or enough for its deletes."""
    firsts = [record["seqNrs"][0] for record in case["records"] if record["type"] == "append"]
    return firsts[0] - 1 if firsts else 20


@pytest.mark.parametrize("size", [2, 10, 10_000])
@pytest.mark.parametrize("name", BATCH)
def test_batch_case(name: str, size: int) -> None:
    case = BATCH[name]
    found = folded(case["records"], size, 0)
    if name in DIFFERENT_WITHOUT_HEAD:
        seq_nr, delete_to = DIFFERENT_WITHOUT_HEAD[name]
        assert found == {"seq_nr": seq_nr, "delete_to": delete_to, "rows": set()}
        assert found != batched(case, size, 0)
    else:
        assert found == batched(case, size, 0)


@pytest.mark.parametrize("size", [2, 10, 10_000])
@pytest.mark.parametrize("name", [name for name, case in BATCH.items() if natural_start(case)])
def test_batch_case_on_an_entity_that_has_events(name: str, size: int) -> None:
    case = BATCH[name]
    before = natural_start(case)
    assert folded(case["records"], size, before) == batched(case, size, before)


def test_every_difference_is_explained() -> None:
    page = (Path(__file__).parents[3] / "docs" / "compatibility.md").read_text()
    assert [name for name in DIFFERENT_WITHOUT_HEAD if f"`{name}`" not in page] == []


def test_every_case_is_there() -> None:
    assert len(BATCH) == 52
