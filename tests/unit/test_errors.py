"""What every error of the library has in common: fields, a text, and both after a pickle."""

import copy
import pickle
from dataclasses import field

import pytest

from tidemark.cassandra.bulk.batch_errors import BulkFailed
from tidemark.client.errors import BadInput, NotSent
from tidemark.connections import BadConnection
from tidemark.delivery.errors import DeliveryError
from tidemark.delivery.writer import BadMessage
from tidemark.errors import TidemarkError, with_fields
from tidemark.journal.errors import JournalError, Undecodable
from tidemark.log.errors import BadBinding, FileMissing, LogError
from tidemark.log.source import NoSuchTopic
from tidemark.writers.journal.errors import TablesChanged

pytestmark = pytest.mark.unit


class ShelfError(TidemarkError):
    """A family."""


@with_fields
class ShelfFull(ShelfError):
    """An error with facts."""

    needs_person = True

    shelf: str
    room: int = 0
    is_locked: bool = field(default=False, kw_only=True)

    text = "{shelf} has room for {room}. Nothing was put there."


@with_fields
class ShelvesFull(ShelfError):
    """An error whose text has to be worked out."""

    shelves: tuple[str, ...]

    def __str__(self) -> str:
        return f"{', '.join(self.shelves)} have no room."


SAMPLES = [
    ShelfFull("A", 3, is_locked=True),
    ShelfFull(shelf="A"),
    ShelvesFull(("A", "B")),
    ShelfError("the shelf is gone."),
    BadBinding("orders: t=1 does not follow."),
    FileMissing("orders", path="segments/0.parquet"),
    NoSuchTopic("shop", "sales", was_read=True),
    NotSent("sales", "a", "append", "timed out", is_certain=False),
    BadMessage("shop", "archive", "sales", 0, 7, 12, "it is no JSON"),
    TablesChanged("shop", "journal", "ks", "sales", 0, found=-1, least=4, most=None),
    BulkFailed(("ks.t",), 3, 2, "timed out", refused=True),
    BadInput("sales", None, "origin is text."),
    Undecodable("not JSON").at(0, 7, 12),
    BadConnection("kafka_default", "it has no host."),
]


def test_facts_are_fields_and_the_text_is_made_of_them():
    error = ShelfFull("A", 3)
    assert (error.shelf, error.room, error.is_locked) == ("A", 3, False)
    assert str(error) == "A has room for 3. Nothing was put there."


def test_a_text_that_has_to_be_worked_out_is_a_method():
    assert str(ShelvesFull(("A", "B"))) == "A, B have no room."


def test_braces_in_a_fact_are_left_as_they_are():
    assert str(ShelfFull("{room} {0}", 3)) == "{room} {0} has room for 3. Nothing was put there."


def test_arguments_and_repr_show_the_text_however_the_fields_were_given():
    for error in (ShelfFull("A", 3), ShelfFull(room=3, shelf="A")):
        assert error.args == ("A has room for 3. Nothing was put there.",)
        assert repr(error) == "ShelfFull('A has room for 3. Nothing was put there.')"


def test_two_errors_are_two_things_also_with_the_same_fields():
    one, other = ShelfFull("A"), ShelfFull("A")
    assert one != other
    assert len({one, other}) == 2


def test_a_missing_fact_is_a_defect_of_the_caller():
    with pytest.raises(TypeError, match="shelf"):
        ShelfFull()


def test_a_class_says_whether_a_person_is_needed():
    assert ShelfFull("A").needs_person
    assert not ShelfError("the shelf is gone.").needs_person


def test_one_error_may_decide_by_its_fields_whether_a_person_is_needed():
    made = [BulkFailed(("ks.t",), 3, 2, "timed out", refused) for refused in (True, False)]
    assert [error.needs_person for error in made] == [True, False]


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))],
    ids=["copied", "copied deeply", "pickled"],
)
def test_an_error_comes_back_whole(error, again):
    found = again(error)
    assert (type(found), str(found), found.args) == (type(error), str(error), error.args)
    assert (vars(found), found.needs_person) == (vars(error), error.needs_person)


def test_notes_come_back_too():
    error = ShelfFull("A")
    error.add_note("while the books were sorted")
    assert pickle.loads(pickle.dumps(error)).__notes__ == ["while the books were sorted"]


def test_an_error_keeps_its_cause():
    cause = OSError("no space left")
    with pytest.raises(ShelfFull) as raised:
        raise ShelfFull("A") from cause
    assert raised.value.__cause__ is cause


@pytest.mark.parametrize(
    ("error", "family"),
    [
        (FileMissing("orders", "0.parquet"), LogError),
        (Undecodable("not JSON"), JournalError),
        (BadMessage("shop", "archive", "sales", 0, 7, 12, "no JSON"), DeliveryError),
    ],
)
def test_an_error_is_caught_by_its_family_and_by_the_root(error, family):
    for kind in (family, TidemarkError):
        with pytest.raises(kind):
            raise error


def test_an_error_about_a_given_value_is_a_value_error_too():
    assert isinstance(Undecodable("not JSON"), ValueError)
    assert isinstance(BadInput("sales", "a", "origin is text."), ValueError)
    assert not isinstance(FileMissing("orders", "0.parquet"), ValueError)
