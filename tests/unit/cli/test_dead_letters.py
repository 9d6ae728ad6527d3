"""Item 20: ``tidemark dead-letters``: what was let pass is listed, shown and put through after all."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.support.command_line import EXECUTE
from tests.support.follow_world import follow_now, round_that_ends

from tidemark.consensus.audit_trail import AuditEntry
from tidemark.delivery.dead_letters.store import DeadLetterTable
from tidemark.delivery.state.positions import Positions

pytestmark = pytest.mark.unit


@pytest.fixture
def passed(run, walled, monkeypatch) -> Positions:
    """Message 3 failed and was let pass; message 5 is delivered."""
    monkeypatch.setattr(DeadLetterTable, "find", lambda self, pipeline, writer: [])
    assert run("offsets", "ack", "orders", "archive", "3", *EXECUTE).code == 0
    assert run("resume", "orders", "archive").code == 0
    return walled


def listed(run, *names: str) -> list[tuple[str, int, str]]:
    ended = run("dead-letters", "list", *names, "--json")
    assert ended.code == 0, ended
    return [(one["writer"], one["id"], one["fate"]) for one in json.loads(ended.out)]


# Looking


@pytest.mark.parametrize("names", [("orders",), ("orders", "archive")])
def test_every_letter_is_listed_with_what_became_of_it(run, passed, names):
    assert listed(run, *names) == [("archive", 3, "dead")]


def test_the_list_is_a_table_too(run, passed):
    shown = " ".join(run("dead-letters", "list", "orders").out.split())
    assert "archive 3 orders/0@3 k dead" in shown
    assert "ann known it makes no sense" in shown


def test_where_nothing_was_let_pass_it_says_so(run, positions, monkeypatch):
    assert run("dead-letters", "list", "orders").out == "orders: no dead letters.\n"
    assert run("dead-letters", "show", "orders", "archive").out == "orders/archive: no dead letters.\n"
    assert run("dead-letters", "redeliver", "orders").out == "orders: no dead letters.\n"


def test_a_letter_is_shown_whole(run, passed):
    shown = run("dead-letters", "show", "orders", "archive", "3").out
    for part in ("id 3 (orders/0@3), dead", "error:  it makes no sense", "let pass by ann", "value:  d"):
        assert part in shown
    letter = json.loads(run("dead-letters", "show", "orders", "archive", "3", "--json").out)
    assert (letter["message"]["value"], letter["reason"], letter["fate"]) == ("d", "known", "dead")


def test_a_letter_whose_copies_are_gone_is_listed_all_the_same(run, passed, root):
    (root / "dead_letters" / "archive" / f"{3:020d}.json").unlink()
    assert listed(run, "orders") == [("archive", 3, "dead")]
    assert "its copies are gone" in run("dead-letters", "show", "orders", "archive", "3").out


def test_a_copy_in_the_table_stands_in_for_a_lost_file(run, passed, root, monkeypatch):
    path = root / "dead_letters" / "archive" / f"{3:020d}.json"
    from tidemark.delivery.dead_letters.store import DeadLetter

    letter = DeadLetter.from_dict(json.loads(path.read_text()))
    path.unlink()
    monkeypatch.setattr(DeadLetterTable, "find", lambda self, pipeline, writer: [letter])
    assert "value:  d" in run("dead-letters", "show", "orders", "archive", "3").out


def test_letters_of_a_writer_that_was_forgotten_are_still_there(run, passed):
    passed.forget(passed.load("archive"), AuditEntry("forget", "ann", "over", 1))
    assert listed(run, "orders") == [("archive", 3, "undecided")]


@pytest.mark.parametrize(
    ("command", "said"),
    [
        pytest.param(["list", "ordres"], "Did you mean `orders`?", id="a pipeline"),
        pytest.param(["list", "orders", "archiv"], "there is no such writer", id="a writer"),
        pytest.param(["show", "orders", "archive", "9"], "has no dead letter 9; there is: 3", id="an id"),
        pytest.param(["redeliver", "orders", "archive", "9"], "has no dead letter 9", id="one to redeliver"),
        pytest.param(["redeliver", "orders", "archiv", "3"], "no such writer", id="one's writer"),
    ],
)
def test_what_is_not_there_is_said_in_one_sentence(run, passed, command, said):
    ended = run("dead-letters", *command)
    assert (ended.code, said in ended.err) == (1, True), ended


# Redelivering


def test_a_redelivery_is_planned_first(run, passed, archive):
    before = passed.load("archive")
    ended = run("dead-letters", "redeliver", "orders", "archive", "3")
    assert (ended.code, ended.err) == (0, "")
    assert "id 3 (orders/0@3) is written after all, beside the regular output" in ended.out
    assert ended.out.splitlines()[-1] == 'Nothing was changed. Add --execute --reason "…" to do it.'
    assert (passed.load("archive"), redelivered_file(archive).exists()) == (before, False)


def redelivered_file(archive: Path) -> Path:
    return archive / f"redelivered-{3:020d}.parquet"


@pytest.mark.parametrize("names", [("archive", "3"), ("archive",), ()])
def test_a_redelivered_letter_has_a_file_of_its_own(run, passed, archive, names):
    binding = archive / f"{3:020d}-{5:020d}.parquet"
    before = binding.read_bytes()
    assert run("dead-letters", "redeliver", "orders", *names, *EXECUTE).out.endswith("Done by ann.\n")
    assert pq.read_table(redelivered_file(archive))["value"].to_pylist() == [b"d"]
    assert (binding.read_bytes(), passed.load("archive").position) == (before, 5)
    assert listed(run, "orders") == [("archive", 3, "redelivered")]
    assert passed.deeds("archive")[-1].what == "redeliver"


def test_what_was_redelivered_is_not_redelivered_again(run, passed):
    run("dead-letters", "redeliver", "orders", "archive", "3", *EXECUTE)
    ended = run("dead-letters", "redeliver", "orders", "archive", "3", *EXECUTE)
    assert (ended.code, "ann has redelivered it already" in ended.err) == (1, True)
    assert run("dead-letters", "redeliver", "orders", *EXECUTE).out == "orders: no dead letters.\n"


def test_offsets_list_names_what_was_redelivered(run, passed):
    run("dead-letters", "redeliver", "orders", "archive", "3", *EXECUTE)
    shown = json.loads(run("offsets", "list", "orders", "archive", "--json").out)
    assert [one["id"] for one in shown["redelivered"]] == [3]


def test_nothing_is_redelivered_without_a_reason(run, passed, archive):
    ended = run("dead-letters", "redeliver", "orders", "archive", "3", "--execute")
    assert (ended.code, "say why" in ended.err, redelivered_file(archive).exists()) == (2, True, False)


def test_a_target_that_is_broken_leaves_the_letter_dead(run, passed, archive):
    redelivered_file(archive).mkdir()
    ended = run("dead-letters", "redeliver", "orders", "archive", "3", *EXECUTE)
    assert (ended.code, "id 3 was not redelivered" in ended.err) == (1, True), ended
    assert listed(run, "orders") == [("archive", 3, "dead")]
    redelivered_file(archive).rmdir()
    assert run("dead-letters", "redeliver", "orders", "archive", "3", *EXECUTE).code == 0


def test_what_is_not_passed_yet_is_not_redelivered(run, walled, monkeypatch):
    monkeypatch.setattr(DeadLetterTable, "find", lambda self, pipeline, writer: [])
    run("offsets", "ack", "orders", "archive", "3", "5", "--untried", *EXECUTE)
    ended = run("dead-letters", "redeliver", "orders", "archive", *EXECUTE)
    assert "the writer is at 4 and has not passed it yet" in ended.err
    assert (ended.code, listed(run, "orders")) == (
        0,
        [("archive", 3, "redelivered"), ("archive", 5, "dead")],
    )


def test_as_json(run, passed):
    plan = json.loads(run("dead-letters", "redeliver", "orders", "archive", "3", "--json", *EXECUTE).out)
    assert (plan["letters"][0]["id"], plan["refused"], plan["executed"], plan["who"]) == (3, [], True, "ann")


# A follow


def test_a_redelivery_waits_for_the_round_that_has_the_writer(run, passed):
    follow_now(passed.consensus)
    with round_that_ends(passed, "archive"):
        ended = run("dead-letters", "redeliver", "orders", "archive", "3", *EXECUTE)
    assert ended.code == 0, ended
    assert listed(run, "orders") == [("archive", 3, "redelivered")]
    assert passed.load("archive").lease is None
