"""Which types the columns of a collection may have."""

import pytest

from tidemark.collection.model.column_types import KEY_KINDS, column_type, key_type

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "known_as"),
    [
        ("text", "text"),
        ("varchar", "text"),
        (" decimal ", "decimal"),
        ("list<int>", "list<int>"),
        ("frozen<set<varchar>>", "set<text>"),
        ("map<text,frozen<list<int>>>", "map<text, list<int>>"),
        ("tuple<int, text>", "tuple<int, text>"),
        ("vector<float, 3>", "vector<float, 3>"),
        ("list<duration>", "list<duration>"),
    ],
)
def test_a_type_has_one_spelling(text, known_as):
    assert str(column_type(text)) == known_as


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("counter", "is `counter`: it is or holds a counter. A delivery may be repeated"),
        ("list<counter>", "is `list<counter>`: it is or holds a counter"),
        ("bigin", "is `bigin`, which is not a type that a column can have. Did you mean `bigint`?"),
        ("address", "Types: ascii, bigint"),
        ("address", "User-defined types are refused, because they can be changed or dropped"),
        ("list<frozen<address>>", "which holds `address`, which is not a type"),
        ("map<text", 'a bracket is open. Put a type with commas in quotes: "map<text…>"'),
        ("list", "is `list`. Types in brackets are missing or too many. Write list<int>"),
        ("list<int, text>", "Types in brackets are missing or too many"),
        ("text<int>", "Types in brackets are missing or too many"),
        ("vector<float, 0>", "A vector has 1 to 8192 elements"),
        ("vector<float, x>", "which holds `x`, which is not a type"),
        ("vector<float, -1>", "A vector has 1 to 8192 elements"),
        ("set<duration>", "Durations have no order, which the elements of a set need. Use a list"),
        ("map<frozen<list<duration>>, int>", "Durations have no order, which the keys of a map need"),
        ("TEXT", "Did you mean `text`?"),
        ("", "is ``, which is not a type"),
    ],
)
def test_a_type_that_is_refused(text, said):
    with pytest.raises(ValueError, match=r"^is ") as refusal:
        column_type(text)
    assert said in str(refusal.value)


@pytest.mark.parametrize("text", [*sorted(KEY_KINDS), "varchar"])
def test_a_type_that_a_key_can_have(text):
    assert key_type(text) == column_type(text)


@pytest.mark.parametrize(
    "text", ["decimal", "float", "double", "duration", "list<int>", "set<int>", "tuple<int>"]
)
def test_a_type_that_no_key_has(text):
    with pytest.raises(
        ValueError, match=r"which a key column cannot be\. Types of key columns: ascii, bigint"
    ):
        key_type(text)
