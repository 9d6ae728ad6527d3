"""Items 8 and 24: what ``Work`` and ``AsyncWork`` give to programs, and what their documentation says."""

import inspect
import json
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.contracts.work_world import WorkWorld, given_declaration, memory_stores

import tidemark
from tidemark.work.async_client import AsyncWork
from tidemark.work.client import Work
from tidemark.work.errors import BadRequest
from tidemark.work.model.declaration import WorkDeclaration
from tidemark.work.model.entry import DeathReason
from tidemark.work.model.entry_view import WorkEntry, WorkStatus
from tidemark.work.queue.journal import WorkJournal

pytestmark = pytest.mark.unit

NOON = datetime(2026, 11, 17, 12, tzinfo=UTC)
TEN = datetime(2026, 11, 17, 10, tzinfo=UTC)


@pytest.fixture
def house() -> WorkWorld:
    declared = given_declaration(key={"site": "text", "page": "int"}, max_failures=1, history="7d")
    return WorkWorld(memory_stores(), declared)


@pytest.fixture
def work(house) -> Work:
    return Work.of_journal(WorkJournal(house.parts), owner="me")


KEY = {"site": "a", "page": 7}


def test_i24_a_live_entry(house, work):
    work.insert(KEY, {"data": 1}, priority=20, expires=NOON)
    entry = work.get(KEY)
    assert isinstance(entry, WorkEntry)
    assert (entry.key, entry.status, entry.payload, entry.priority) == (KEY, "waiting", {"data": 1}, 20)
    assert (entry.inserted, entry.process, entry.expires) == (TEN, TEN, NOON)
    assert (entry.started, entry.ended, entry.reason, entry.seen) == (None, None, None, None)
    (item,) = work.claim()
    work.insert(KEY, {"data": 2})
    (entry,) = work.entries()
    assert (entry.status, entry.owner, entry.token) == (WorkStatus.PROCESSING, "me", item.token)
    assert (entry.started, entry.successor) == (TEN, {"data": 2})


def given_dead(house: WorkWorld, work: Work) -> WorkEntry:
    work.insert(KEY, {"data": 1}, priority=20)
    (item,) = work.claim()
    house.clock.now += 1_500
    work.fail(item, "no route")
    (letter,) = work.dead()
    return letter


def test_i24_a_dead_letter_and_the_claim_that_ended_with_it(house, work):
    letter = given_dead(house, work)
    assert (letter.key, letter.status, letter.reason) == (KEY, WorkStatus.DEAD, DeathReason.FAILURES)
    assert (letter.payload, letter.priority, letter.inserted) == ({"data": 1}, 20, TEN)
    assert (letter.started, letter.ended) == (TEN, TEN + timedelta(seconds=1.5))
    assert (letter.failures, letter.error, letter.owner) == (1, "no route", "me")
    (ended,) = work.history()
    assert (type(ended), ended.key, ended.status) == (WorkEntry, KEY, WorkStatus.FAILED)
    assert (ended.started, ended.ended, ended.error) == (letter.started, letter.ended, "no route")
    assert (ended.payload, ended.priority, ended.inserted) == (None, None, None)


def test_i24_every_one_of_them_is_json(house, work):
    letter = given_dead(house, work)
    for one in (letter, *work.history()):
        assert json.loads(json.dumps(one.to_json()))["key"] == KEY
    assert letter.to_json()["ended"] == "2026-11-17T10:00:01.500+00:00"


def test_i11_a_letter_that_a_person_looked_at_stays_and_says_so(house, work):
    letter = given_dead(house, work)
    work.mark_seen(letter, who="ann", reason="the route is gone for good")
    assert list(work.dead(unseen=True)) == []
    (letter,) = work.dead()
    assert (letter.seen.by, letter.seen.reason) == ("ann", "the route is gone for good")
    assert letter.seen.at == TEN + timedelta(seconds=1.5)
    assert (work.stats().dead, work.stats().unseen) == (1, 0)
    assert [(deed.what, deed.who) for deed in work.deeds()] == [('seen ["a",7]', "ann")]
    assert work.redrive(letter) == "inserted"


@pytest.mark.parametrize("more", [{"who": "", "reason": "x"}, {"who": "ann", "reason": " "}])
def test_i11_without_a_person_or_a_reason_nothing_is_seen(house, work, more):
    letter = given_dead(house, work)
    with pytest.raises(BadRequest, match="is missing"):
        work.mark_seen(letter, **more)
    assert len(list(work.dead(unseen=True))) == 1


def test_i11_what_is_no_dead_letter_of_this_journal_is_refused(house, work):
    work.insert(KEY, {"data": 1})
    (entry,) = work.entries()
    for act in (work.redrive, lambda one: work.mark_seen(one, who="ann", reason="x")):
        with pytest.raises(BadRequest, match="no dead letter"):
            act(entry)
    other = WorkWorld(house.stores, given_declaration(max_failures=1), house.clock)
    other_work = Work.of_journal(other.journal)
    other_work.insert("k", {"data": 1})
    other_work.fail(*other_work.claim(), "no route")
    with pytest.raises(BadRequest, match=f"one of {other.declared.name}"):
        work.redrive(*other_work.dead())


@pytest.mark.parametrize(
    ("process", "expires", "said"),
    [
        (timedelta(hours=1), timedelta(minutes=1), "expired"),
        (None, timedelta(seconds=-5), "expired"),
        (timedelta(hours=1), timedelta(hours=1), "inserted"),
        (timedelta(hours=1), None, "inserted"),
        (timedelta(hours=1), timedelta(hours=1, seconds=-1), "expired"),
    ],
)
def test_i24_an_expiry_before_its_date_is_said_to_be_expired(work, process, expires, said):
    assert work.insert(KEY, {"data": 1}, process=process, expires=expires) == said
    assert (work.get(KEY) is None) == (said == "expired")


def test_i24_what_would_make_an_entry_that_can_never_be_done_leaves_it_as_it_is(work):
    work.insert(KEY, {"data": 1}, expires=timedelta(minutes=5))
    before = work.get(KEY)
    said = work.insert(KEY, {"data": 2}, process=timedelta(minutes=10), expires=timedelta(minutes=6))
    assert (said, work.get(KEY)) == ("expired", before)
    (item,) = work.claim()
    said = work.insert(KEY, {"data": 3}, process=timedelta(minutes=10), expires=timedelta(minutes=6))
    assert (said, work.get(KEY).successor) == ("expired", None)
    assert work.done(item) == "done"


def test_i24_a_request_that_expires_early_may_put_off_one_that_does_not(work):
    work.insert(KEY, {"data": 1}, expires=timedelta(hours=2))
    said = work.insert(KEY, {"data": 2}, process=timedelta(minutes=10), expires=timedelta(minutes=6))
    assert (said, work.get(KEY).payload) == ("merged", {"data": 2})


def test_i24_cancel_of_nothing_says_so(house, work):
    assert work.cancel(KEY, who="ann", reason="not wanted") == "gone"
    assert work.deeds() == []
    work.insert(KEY, {"data": 1}, expires=timedelta(seconds=1))
    house.clock.now += 2_000
    assert work.cancel(KEY, who="ann", reason="not wanted") == "expired"
    assert work.deeds() == []
    work.insert(KEY, {"data": 1})
    assert work.cancel(KEY, who="ann", reason="not wanted") == "cancelled"
    assert [deed.what for deed in work.deeds()] == ['cancel ["a",7]']


def test_i24_no_claim_that_begins_after_a_pause_gets_anything(house, work):
    """In the same millisecond, by a process that has just claimed, and with everything it has cached."""
    other = Work.of_journal(WorkJournal(house.parts))
    for page in range(3):
        work.insert({"site": "a", "page": page}, {"data": 1})
    assert len(work.claim()) == 1
    other.pause("ann", "maintenance")
    assert (work.claim(), other.claim(), work.is_ready()) == ([], [], False)
    other.resume("ann", "over")
    assert len(work.claim()) == 1


def test_the_package_names_them():
    assert (tidemark.WorkEntry, tidemark.WorkItem.__name__) == (WorkEntry, "WorkItem")


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_both_have_the_same_methods():
    """Opening is another word there, and what only Tidemark itself uses is missing."""
    assert public(Work) - public(AsyncWork) == {"of_journal", "parts"}
    assert public(AsyncWork) - public(Work) == {"open"}


@pytest.mark.parametrize("name", sorted(public(Work) - {"parts", "name", "of_journal"}))
def test_every_parameter_is_documented(name):
    method = getattr(Work, name)
    doc = inspect.getdoc(method)
    for parameter in inspect.signature(method).parameters:
        if parameter not in ("self", "item", "key", "days"):
            assert f"{parameter}:" in doc or f"``{parameter}``" in doc, f"{name}({parameter})"


def test_a_declaration_that_an_earlier_version_stored_is_understood():
    stored = given_declaration().model_dump(mode="json")
    del stored["report_dead"]
    stored["replication"] = {"class": "SimpleStrategy", "replication_factor": 1}
    read = WorkDeclaration.model_validate_json(json.dumps(stored))
    assert (read.report_dead, read.replication.factors) == ("fail", {"replication_factor": 1})
