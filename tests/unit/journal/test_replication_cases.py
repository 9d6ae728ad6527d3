"""The 71 replication cases of the contract, judged by the design's "Same".

Each runs with its own segment size and with 2, 10 and 10000, and with a process that dies after every single
write of its last poll. The few where we differ on purpose say what we do instead; why is in
docs/compatibility.md.
"""

from pathlib import Path
from typing import Any

import pytest
from tests.support.case_files import REPLICATION, Source, load
from tests.support.replication_cases import DIFFERENT, expectation, keys, told
from tests.support.writer_model import Writer

pytestmark = pytest.mark.unit


def deliver_all(writer: Writer, source: Source, polls: list[dict[str, Any]]) -> bool:
    """Whether every poll went through."""
    for poll in polls:
        writer.deliver(source.deliver(poll))
        if writer.wall is not None:
            return False
    return True


def original_deletes(case: dict[str, Any]) -> set[tuple[int, int | None]]:
    """Segments that the original deletes from, and up to which number; None for the whole of it."""
    return {
        (statement["segment"], statement.get("seq_nr"))
        for statement in case["expected"]["statements"]
        if statement["stmt"].startswith("delete_records")
    }


@pytest.mark.parametrize("size", [None, 2, 10, 10_000], ids=lambda size: f"size_{size or 'own'}")
@pytest.mark.parametrize("name", REPLICATION)
def test_replication_case(name: str, size: int | None) -> None:
    case = REPLICATION[name]
    expected = expectation(case)
    writer, source = load(case, case["initial"], size), Source()
    assert deliver_all(writer, source, case["polls"]) == (expected["outcome"] != "stalled")
    if "replay_polls" in case:
        assert deliver_all(writer, source, case["replay_polls"])
    assert told(writer, case) == told(load(case, expected, size), case)


@pytest.mark.parametrize("name", REPLICATION)
def test_replication_case_reads_as_the_original_does(name: str) -> None:
    case = REPLICATION[name]
    expected = expectation(case)
    writer = load(case, case["initial"], None)
    deliver_all(writer, Source(), case["polls"])
    for correlate, which in ((False, "readable_seq_nrs"), (True, "readable_seq_nrs_correlated")):
        found = {key: writer.read(key, correlate=correlate) for key in keys(case)}
        assert {key: numbers for key, numbers in found.items() if numbers is not None} == expected[which]


@pytest.mark.parametrize("name", REPLICATION)
def test_replication_case_survives_death_after_any_write(name: str) -> None:
    case = REPLICATION[name]
    expected = told(load(case, expectation(case), None), case)
    *before, last = case["polls"]
    writes = 1
    survived = 0
    while survived < writes:
        writer, source = load(case, case["initial"], None), Source()
        deliver_all(writer, source, before)
        writes = writer.deliver(source.deliver(last), die_after=survived)
        deliver_all(writer, source, case.get("replay_polls", [last]))
        assert told(writer, case) == expected, f"died after write {survived} of {writes}"
        survived += 1


@pytest.mark.parametrize("name", [name for name, case in REPLICATION.items() if original_deletes(case)])
def test_replication_case_deletes_at_least_what_the_original_deletes(name: str) -> None:
    case = REPLICATION[name]
    writer, source = load(case, case["initial"], None), Source()
    deliver_all(writer, source, case["polls"])
    missing = {
        (segment, up_to)
        for segment, up_to in original_deletes(case)
        if not {(segment, up_to), (segment, None)} & writer.deleted
    }
    assert missing == set()


def test_every_difference_is_explained() -> None:
    page = (Path(__file__).parents[3] / "docs" / "compatibility.md").read_text()
    assert [name for name in DIFFERENT if f"`{name}`" not in page] == []


def test_every_case_is_there() -> None:
    assert len(REPLICATION) == 71
