"""Journals are found by what was created, files or not; what cannot be looked at hides nothing else."""

from typing import Any

import pytest
from tests.support.contracts.work_world import given_declaration

from tidemark.consensus.memory import MemoryConsensus
from tidemark.work.errors import JournalRefused, UnknownJournal
from tidemark.work.store import known_journals
from tidemark.work.store.known_journals import Address, find_declaration, find_known
from tidemark.work.store.registry import Registry

pytestmark = pytest.mark.unit

PAGES = "name: pages\nkey: {page: text}\npayload: {revision: int}\n"
USUAL = ("cassandra_default", "work")
ELSEWHERE = ("cassandra_other", "elsewhere")


def nowhere(name: str) -> dict[str, Any]:
    return {}


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEMARK_ROOT", str(tmp_path / "none"))
    monkeypatch.setenv("TIDEMARK_WORK", str(tmp_path))
    (tmp_path / "pages.yaml").write_text(PAGES)
    return tmp_path


@pytest.fixture
def places(monkeypatch) -> dict[tuple[str, str], MemoryConsensus]:
    """What is registered where; a place that is missing cannot be read."""
    found = {USUAL: MemoryConsensus()}
    monkeypatch.setattr(known_journals, "registries", lambda place, look_up: found[place])
    return found


def given_created(consensus: MemoryConsensus, name: str) -> None:
    Registry(consensus, name).create(given_declaration(name=name, time_limit="7m"))


def test_a_journal_without_a_file_is_found(files, places):
    given_created(places[USUAL], "by_hand")
    found = find_known(nowhere)
    assert [str(address) for address in found.addresses] == ["cassandra_default/work/by_hand"]
    assert found.problems == []


def test_a_file_leads_to_others_in_its_keyspace(files, places):
    (files / "other.yaml").write_text(f"{PAGES}connection: cassandra_other\nkeyspace: elsewhere\n")
    places[ELSEWHERE] = MemoryConsensus()
    for name in ("pages", "by_hand"):
        given_created(places[ELSEWHERE], name)
    (files / "pages.yaml").unlink()
    assert [address.journal for address in find_known(nowhere).addresses] == ["by_hand", "pages"]


def test_what_cannot_be_read_hides_no_other_and_is_said(files, places):
    (files / "far.yaml").write_text(
        PAGES.replace("pages", "far") + "connection: cassandra_other\nkeyspace: elsewhere\n"
    )
    (files / "bad.yaml").write_text("name: [")
    given_created(places[USUAL], "pages")
    found = find_known(nowhere)
    assert found.addresses == [Address(*USUAL, "pages"), Address(*ELSEWHERE, "far")]
    refused, unread = found.problems
    assert "bad.yaml" in refused
    assert unread.startswith("cassandra_other/elsewhere: ")


def test_one_journal_is_asked_for_by_its_name(files, places):
    for name in ("pages", "by_hand"):
        given_created(places[USUAL], name)
    (files / "bad.yaml").write_text("name: [")
    assert find_known(nowhere, "by_hand").addresses == [Address(*USUAL, "by_hand")]
    with pytest.raises(JournalRefused):
        find_known(nowhere, "bad")
    with pytest.raises(UnknownJournal):
        find_known(nowhere, "nobody_s")


def test_a_declaration_is_the_file_s_or_else_the_stored_one(files, places):
    for name in ("pages", "by_hand"):
        given_created(places[USUAL], name)
    assert find_declaration("pages", nowhere).time_limit.total_seconds() == 3600
    assert find_declaration("by_hand", nowhere).time_limit.total_seconds() == 420
    with pytest.raises(UnknownJournal, match="Did you mean `by_hand`"):
        find_declaration("by_hands", nowhere)


def test_a_search_without_a_result_says_where_it_could_not_look(files, places):
    places.clear()
    with pytest.raises(UnknownJournal, match="Not all could be looked for"):
        find_declaration("by_hand", nowhere)


def test_an_address_is_one_word(files):
    address = Address(*ELSEWHERE, "by_hand")
    assert Address.parse(str(address)) == address
    assert Address.parse("pages") == Address(*USUAL, "pages")
