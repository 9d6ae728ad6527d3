"""Item 11: dead letters that no person has looked at are reported until one has."""

import json

import pytest
from tests.support.contracts.work_world import WorkWorld, given_declaration, memory_stores

from tidemark.work.client import Work
from tidemark.work.dead_report import UnseenLetters, failure_of, find_unseen, lines_about
from tidemark.work.model.declaration import DeadReport

pytestmark = pytest.mark.unit


def given_house(report: str = "fail") -> tuple[WorkWorld, Work]:
    declared = given_declaration(max_failures=1, history="7d", report_dead=report)
    house = WorkWorld(memory_stores(), declared)
    return house, Work.of_journal(house.another(), owner="me")


def given_dead(house: WorkWorld, work: Work, *keys: str) -> None:
    for key in keys:
        work.insert(key, {"data": "secret"})
        work.fail(*work.claim(), f"no route for {key}")
        house.clock.now += 1_000


def test_i11_they_are_reported_by_every_sweep_until_a_person_has_looked():
    house, work = given_house()
    given_dead(house, work, "a", "b")
    for _ in range(2):
        assert find_unseen(house.parts).count == 2
    first, second = work.dead()
    work.mark_seen(first, who="ann", reason="gone")
    assert find_unseen(house.parts).count == 1
    work.redrive(second, who="ann", reason="back")
    assert find_unseen(house.parts) == UnseenLetters(house.declared.name, DeadReport.FAIL, 0, ())
    assert failure_of([find_unseen(house.parts)]) is None


def test_i11_a_letter_of_days_ago_is_reported_too():
    house, work = given_house()
    given_dead(house, work, "a")
    house.clock.now += 20 * 86_400_000
    assert find_unseen(house.parts).is_failure


def test_i11_the_report_says_what_died_and_what_to_do_but_no_payload():
    house, work = given_house()
    given_dead(house, work, *(f"k{number}" for number in range(12)))
    found, name = find_unseen(house.parts), house.declared.name
    said = failure_of([found])
    assert said.startswith(f"{name}: there are 12 dead letters that no person has looked at.")
    assert "k11, 2026-11-17T10:00:11.000+00:00: failures (no route for k11)" in said
    assert "and 2 older ones" in said
    assert f"tidemark work seen {name} [KEY] --execute" in said
    assert f"tidemark work redrive {name} [KEY] --execute" in said
    assert "secret" not in said + json.dumps(found.to_dict())
    assert UnseenLetters.from_dict(json.loads(json.dumps(found.to_dict()))) == found


def test_i11_warn_says_the_same_and_fails_nothing():
    house, work = given_house("warn")
    given_dead(house, work, "a")
    found = find_unseen(house.parts)
    assert (found.count, failure_of([found])) == (1, None)
    assert "there is 1 dead letter that no person has looked at" in lines_about(found)[0]


def test_i11_never_says_nothing():
    house, work = given_house("never")
    given_dead(house, work, "a")
    assert lines_about(find_unseen(house.parts)) == []


def test_a_journal_that_cannot_be_looked_at_fails_the_report():
    assert failure_of([], ["work/x: no host answers"]) == "work/x: no host answers"


def test_keys_of_several_columns_are_shown_as_they_were_declared():
    declared = given_declaration(key={"site": "text", "page": "int"}, max_failures=1)
    house = WorkWorld(memory_stores(), declared)
    work = Work.of_journal(house.journal)
    work.insert({"site": "a", "page": 1}, {"data": 1})
    work.fail(*work.claim(), "no route")
    (letter,) = find_unseen(house.parts).newest
    assert letter.key == {"site": "a", "page": 1}
