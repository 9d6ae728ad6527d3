"""A journal over a compacted log: rebuilt from nothing, refused where that would not be the same, proved."""

import pytest
from tests.support.found_in_memory import verdicts
from tests.support.journal_samples import KEY, TOPIC, ActionLog, JournalWorld, journal_writer
from tests.support.log_samples import given_binding
from tests.support.memory_journal import MemoryJournal, MemoryTables

from tidemark.delivery.compacted_history import HistoryCompacted
from tidemark.delivery.writer import Part
from tidemark.log.model.manifest import LogFile
from tidemark.verification.journal.provable import Unprovable
from tidemark.writers.journal import writer as journal

pytestmark = pytest.mark.unit

HISTORIES = ["A1,2 A3 M A4 D3", "A5 j:A1 j:P", "A6 j:A1 i:A1"]
"""Ids 0 to 4, 5 to 7 and 8 to 10; k has events 4 to 6 left, of j only what came after its purge."""
OBSOLETE = {0, 1, 2, 6, 7}
"""What policy `journal` takes out below id 8."""
KEYS = ("k", "j", "i")


def given_log(policy: str = "journal") -> ActionLog:
    log = ActionLog()
    for history in HISTORIES:
        log.publish(history)
    log.compact(8, OBSOLETE, policy)
    return log


def given_whole(*histories: str) -> JournalWorld:
    """A house whose journal was delivered to while nothing was compacted."""
    house = JournalWorld(ActionLog())
    for history in histories or HISTORIES:
        house.actions.publish(history)
    house.go("in bulk")
    return house


def visible(house: JournalWorld) -> dict:
    """Without the value of record ids, which no reader can tell."""
    return house.told(*KEYS)


@pytest.mark.parametrize("way", ["in bulk", "one binding at a time"])
def test_an_empty_keyspace_is_rebuilt_from_a_compacted_log_by_the_ordinary_delivery(way):
    house = JournalWorld(given_log())
    if way == "in bulk":
        house.go("in bulk")
    else:
        for _ in HISTORIES:
            house.deliver(house.started(), limit=1)
    assert house.position(house.process) == house.actions.manifest.end
    assert visible(house) == visible(given_whole())


def test_a_rebuild_that_stopped_half_way_goes_on(monkeypatch):
    house = JournalWorld(given_log())
    house.deliver(house.started(), limit=1)
    house.stop_at_position()
    house.go("singly")
    assert visible(house) == visible(given_whole())


def test_a_rebuilt_journal_is_proved_by_the_log_it_came_from():
    house = JournalWorld(given_log())
    house.go("in bulk")
    assert {key: (one.unprovable, one.differences) for key, one in verdicts(house, *KEYS).items()} == (
        dict.fromkeys(KEYS, (None, ()))
    )


def test_a_journal_from_before_the_compaction_is_proved_by_what_is_left():
    house = given_whole()
    house.actions.compact(8, OBSOLETE)
    assert all(not one.differences and one.unprovable is None for one in verdicts(house, *KEYS).values())


def test_damage_is_found_by_what_is_left():
    house = given_whole()
    house.actions.compact(8, OBSOLETE)
    house.journal.journal.delete_partition((KEY, TOPIC, 0), 10**18)
    found = verdicts(house, *KEYS)
    assert found["k"].differences
    assert not found["j"].differences


def test_a_purged_entity_of_which_the_log_has_nothing_any_more_must_not_be_there():
    house = given_whole("A1 P", "j:A1")
    house.actions.compact(2, {0, 1})
    assert verdicts(house, "k", "j").keys() == {"j"}
    other = given_whole("A1 N", "j:A1")
    other.actions.compact(2, {0, 1})
    assert [str(one.kind) for one in verdicts(other, "k")["k"].differences] != []


def test_under_another_policy_what_began_below_is_not_provable():
    house = given_whole()
    house.actions.compact(8, OBSOLETE, "latest")
    found = {key: one.unprovable for key, one in verdicts(house, *KEYS).items()}
    assert found == {"k": Unprovable.COMPACTED, "j": None, "i": None}


def test_an_entity_in_two_partitions_is_heard_in_the_order_of_its_ids():
    house = JournalWorld(ActionLog())
    for histories in (("A1", "A2"), ("A3", "A4"), ("A5", "A6")):
        house.actions.publish(*histories)
    house.go("in bulk")
    before = verdicts(house)["k"]
    house.actions.compact(4, set())
    # Ids 0 and 2 are in one file, 1 and 3 in another.
    assert [file.first_id for file in house.actions.manifest.files] == [0, 1, 4, 5]
    assert verdicts(house)["k"] == before


# What is refused


@pytest.mark.parametrize("policy", ["latest", "progress"])
def test_no_journal_is_rebuilt_from_what_another_policy_left(policy):
    house = JournalWorld(given_log(policy))
    with pytest.raises(HistoryCompacted, match="another policy than `journal`"):
        house.go("in bulk")
    assert house.process.tables.written == []


def test_tables_that_are_neither_empty_nor_past_it_are_refused():
    house = JournalWorld(given_log())
    house.journal.point(TOPIC, 0, 3)
    with pytest.raises(HistoryCompacted, match=r"the pointer of orders/0 should be at 7 at least"):
        house.go("in bulk")
    assert house.positions.load("journal") is None


def test_heads_without_pointers_are_not_nothing():
    house = given_whole()
    other = JournalWorld(given_log())
    other.journal = house.journal
    for place in list(other.journal.pointer2.partitions()):
        other.journal.pointer2.delete_partition(place, 10**18)
    with pytest.raises(HistoryCompacted, match="neither empty nor past it"):
        other.go("in bulk")


def test_tables_that_are_past_it_may_be_delivered_to_again():
    house = given_whole()
    house.actions.compact(8, OBSOLETE)
    before = visible(house)
    house.operator.rewind("journal", -1, house.process).execute(house.deed("rewind"))
    house.go("in bulk")
    assert (visible(house), house.position(house.process)) == (before, 10)


def test_emptied_tables_are_filled_anew_after_a_rewind_to_the_beginning():
    house = given_whole()
    house.actions.compact(8, OBSOLETE)
    before, house.journal = visible(house), MemoryJournal()
    house.started()
    house.operator.rewind("journal", -1, house.process).execute(house.deed("rewind"))
    house.go("in bulk")
    assert visible(house) == before


# Parts


BINDING = given_binding(2_000, 10, (TOPIC, 0, 10, 20), (TOPIC, 1, 0, 5))


def file_of(partition: int, first: int, last: int, count: int) -> LogFile:
    return LogFile(f"{partition}-{first}", 2_000, TOPIC, partition, first, last, count, 1, "", 1_000)


def cut(*files: LogFile) -> list[Part]:
    return journal_writer(MemoryTables(MemoryJournal())).cut(BINDING, files)


def test_two_files_of_one_partition_are_one_part():
    one, two, other = file_of(0, 0, 14, 9), file_of(0, 15, 30, 9), file_of(1, 3, 24, 9)
    assert cut(one, two, other) == [Part(BINDING, (one, two)), Part(BINDING, (other,))]


@pytest.mark.parametrize(
    ("file", "shares"),
    [(file_of(0, 0, 99, 100), 2), (file_of(0, 10, 16, 7), 1), (file_of(0, 0, 99, 7), 1)],
    ids=["as many as the binding has ids", "few ids", "few messages"],
)
def test_a_part_is_shared_out_by_what_it_can_have_of_the_binding_not_by_its_file(file, shares, monkeypatch):
    monkeypatch.setattr(journal, "MESSAGES_A_PART", 8)
    assert len(cut(file)) == shares
