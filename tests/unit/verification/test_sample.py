"""A few entities of what was delivered just now, against the newest messages of the log."""

import pytest
from tests.support.found_in_memory import FoundInMemory, given_delivered
from tests.support.journal_samples import KEY, TOPIC, ActionLog, JournalWorld

from tidemark.journal_tables.reader import JournalReader
from tidemark.log.bindings.door import Bindings
from tidemark.verification import sample as sampling
from tidemark.verification.basis import read_basis
from tidemark.verification.journal.messages import files_backwards
from tidemark.verification.journal.provable import Unprovable
from tidemark.verification.sample import draw, newest_files, verify_sample
from tidemark.verification.selection import Entity

pytestmark = pytest.mark.unit


def given_many(*histories: str) -> JournalWorld:
    house = JournalWorld(ActionLog())
    for history in histories:
        house.actions.publish(history)
    house.go("in bulk")
    return house


def sample_of(house: JournalWorld, after: int, count: int) -> set[Entity]:
    basis, _ = read_basis(house.process, house.log, house.positions)
    return set(draw(basis, house.log, house.actions.manifest.files, after, count))


def test_a_sample_has_entities_of_what_was_delivered_after_an_id():
    house = given_many("a:A1 b:A1", "c:A1 a:A2")
    assert sample_of(house, 1, 10) == {Entity(TOPIC, "a"), Entity(TOPIC, "c")}


def test_a_sample_is_as_large_as_asked_for_and_always_the_same_at_a_position():
    house = given_many(" ".join(f"e{n}:A1" for n in range(50)))
    assert len(sample_of(house, -1, 7)) == 7
    assert sample_of(house, -1, 7) == sample_of(house, -1, 7)


def test_files_before_an_id_are_looked_at_as_long_as_that_is_cheap(monkeypatch):
    house = given_many("A1", "A2", "A3", "A4")
    monkeypatch.setattr(sampling, "NEWEST_MESSAGES", 2)
    for after, first_ids, unread in ((2, [2, 3], 1), (0, [1, 2, 3], 0), (-1, [0, 1, 2, 3], -1)):
        files = newest_files(house.actions.manifest.files_newest(lambda _: True), after)
        assert ([file.first_id for file in files[0]], files[1]) == (first_ids, unread)


def test_a_process_that_verifies_again_reads_only_the_bindings_since(monkeypatch):
    house = given_many(*("A1" for _ in range(30)))
    read = []
    real = Bindings.after

    def after(self, position):
        for binding in real(self, position):
            read.append(binding.t)
            yield binding

    monkeypatch.setattr(Bindings, "after", after)
    first = read_basis(house.process, house.log, house.positions)
    assert len(read) >= 30
    read.clear()
    assert read_basis(house.process, house.log, house.positions) == first
    assert len(read) <= 3


def test_a_sample_reads_the_newest_files_and_no_older_ones(monkeypatch):
    house = given_many("A1", "A2", "A3", "A4")
    monkeypatch.setattr(sampling, "NEWEST_MESSAGES", 1)
    basis, _ = read_basis(house.process, house.log, house.positions)
    read = []

    def backwards():
        for file in files_backwards(house.log.manifest, basis):
            read.append(file.first_id)
            yield file

    newest_files(backwards(), after=2)
    assert read == [3, 2]


def test_what_began_before_the_files_that_are_looked_at_is_not_provable_and_not_wrong(monkeypatch):
    house = given_delivered("A1,2", "A3")
    monkeypatch.setattr(JournalReader, "open", lambda *_: FoundInMemory(house.journal))
    monkeypatch.setattr(type(house.log), "reopened", lambda log: log)
    monkeypatch.setattr(sampling, "NEWEST_MESSAGES", 0)
    found, sample = verify_sample(house.process, house.log, house.positions, 0, 10)
    assert sample == (Entity(TOPIC, KEY),)
    assert (found.is_clean, found.not_provable) == (True, {Unprovable.BEFORE_THE_LOG: 1})
