"""What transforms do with documents: the cases of the design's tables, and what holds for every document."""

import pickle
import sys
from copy import deepcopy
from dataclasses import replace
from decimal import Decimal
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from structlog.testing import capture_logs

from tidemark.delivery.transforms.chain import Chain, TransformFailed
from tidemark.delivery.transforms.document import Document, Operation
from tidemark.pipeline.transforms import Transforms

pytestmark = pytest.mark.unit

READER = TypeAdapter(Transforms)
ORDER = {"id": 7, "status": "open", "lines": [{"sku": "a", "count": 2}], "card": {"number": "4111"}}


def given_chain(*declared):
    return Chain(READER.validate_python(declared))


def given_document(data=ORDER, namespace="orders", op=Operation.INSERT):
    return Document(op, 1_700_000_000_000, namespace, data)


def data_after(*declared, data):
    return given_chain(*declared).apply(given_document(data), "orders").data


def failure(chain, document=None, origin="orders"):
    with pytest.raises(TransformFailed) as failed:
        chain.apply(document or given_document(), origin)
    return failed.value


@pytest.fixture(scope="module", autouse=True)
def _listed_packages():
    """Functions of these packages may be called."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEMARK_TRANSFORMS", "shop:tests")
        yield


@pytest.fixture
def call(monkeypatch):
    """Declares a transform that calls a function, as if the function were in a module of its own."""
    module = ModuleType("shop")
    monkeypatch.setitem(sys.modules, "shop", module)

    def declared(function, name="change", **settings):
        setattr(module, name, function)
        return {"function": {"path": f"shop.{name}", **settings}}

    return declared


# The chain


def test_T36_without_transforms_everything_is_written():
    documents = [given_document({"id": i}) for i in range(10)]
    assert [given_chain().apply(document, "orders") for document in documents] == documents


@pytest.mark.parametrize(
    ("does", "namespaces", "written", "applied"),
    [("passes", ".*", 10, 10), ("passes", "^carts$", 10, 0), ("drops", ".*", 0, 10), ("fails", ".*", 0, 1)],
)
def test_T36_ten_messages_through_one_transform(call, does, namespaces, written, applied):
    seen, through = [], []

    def change(document):
        seen.append(document)
        if does == "fails":
            raise RuntimeError("no")
        return document if does == "passes" else None

    chain = given_chain(call(change, namespaces=namespaces))
    try:
        for i in range(10):
            through.append(chain.apply(given_document({"id": i}), "orders"))
    except TransformFailed:
        assert does == "fails"
    assert len([document for document in through if document]) == written
    assert len(seen) == applied


def test_transforms_apply_in_their_order():
    chain = [
        {"rename": {"fields": {"a": "b"}}},
        {"pick": {"fields": ["b"]}},
        {"rename": {"fields": {"b": "c"}}},
    ]
    assert data_after(*chain, data={"a": 1, "x": 2}) == {"c": 1}


@pytest.mark.parametrize(
    ("expression", "namespace", "applies"),
    [
        ("", "anything", True),
        (".*", "anything", True),
        ("^User$", "User", True),
        ("^User$", "FooUser", False),
        ("User", "FooUser", True),
        ("blah", "test", False),
        (r"public\..*", "public.orders", True),
        ("(?i)foo", "FOO", True),
        ("/User/", "User", False),  # slashes are part of the expression, as they are for a writer
    ],
)
def test_a_transform_applies_where_its_expression_is_found(expression, namespace, applies):
    chain = given_chain({"omit": {"fields": ["id"], "namespaces": expression}})
    result = chain.apply(given_document({"id": 7}, namespace), namespace)
    assert result.data == ({} if applies else {"id": 7})


def test_the_originating_namespace_counts_whatever_a_function_makes_of_it(call):
    chain = given_chain(
        call(lambda document: replace(document, namespace="archive")),
        {"omit": {"fields": ["card"], "namespaces": "^archive$"}},
        {"omit": {"fields": ["status"], "namespaces": "^orders$"}},
    )
    result = chain.apply(given_document({"card": 1, "status": 2}), "orders")
    assert result == given_document({"card": 1}, namespace="archive")


def test_a_drop_ends_the_chain(call):
    def unreachable(document):
        raise AssertionError

    chain = given_chain(call(lambda document: None), call(unreachable, "unreachable"))
    assert chain.apply(given_document(), "orders") is None


def test_a_delete_has_nothing_to_transform(call):
    document = given_document({}, op=Operation.DELETE)
    chain = given_chain(
        {"skip": {"field": "total", "operator": ">", "match": 10}},
        call(lambda document: None),
        {"pretty": {}},
    )
    with capture_logs() as logged:
        assert chain.apply(document, "orders") is document
    assert logged == []


def test_a_failure_names_the_place_and_the_problem():
    chain = given_chain({"pretty": {}}, {"skip": {"field": "status", "operator": ">", "match": 10}})
    failed = failure(chain)
    assert failed.transform == "2 (skip)"
    assert failed.problem == "field `status` is `open`, which is not a number."
    assert str(failed) == (
        "transform 2 (skip): field `status` is `open`, which is not a number. "
        "The message was not written. Put the transform or the producer right."
    )


def test_a_failure_survives_pickling():
    failed = TransformFailed("2 (rename)", "it raised KeyError: 'x'.")
    again = pickle.loads(pickle.dumps(failed))
    assert (again.transform, again.problem, str(again)) == (failed.transform, failed.problem, str(failed))


def test_a_chain_and_a_document_survive_pickling(call):
    def change(document):
        return replace(document, namespace="archive")

    chain = given_chain(call(change), {"skip": {"field": "status", "operator": "=~", "match": "^o"}})
    again, document = pickle.loads(pickle.dumps((chain, given_document())))
    assert again.apply(document, "orders") == given_document(namespace="archive")


# rename, pick, omit


@pytest.mark.parametrize(
    ("fields", "data", "result"),
    [
        ({"a": "b"}, {"a": 1, "x": 2}, {"b": 1, "x": 2}),
        ({"a": "b"}, {"x": 2}, {"x": 2}),
        ({"a": "b"}, {"b": 2}, {"b": 2}),
        ({"a": "b"}, {"a": 1, "b": 2}, {"b": 1}),
        ({"a": "b"}, {"b": 2, "a": 1}, {"b": 1}),
        ({"a": "b", "b": "a"}, {"a": 1, "b": 2}, {"b": 1, "a": 2}),
        ({"a": "b", "b": "a"}, {"a": 1}, {"b": 1}),
        ({"a": "b", "b": "c"}, {"a": 1, "b": 2, "c": 3}, {"b": 1, "c": 2}),
        ({"a": "b", "b": "c", "c": "a"}, {"a": 1, "b": 2, "c": 3}, {"b": 1, "c": 2, "a": 3}),
        ({"a": "a"}, {"a": 1}, {"a": 1}),
        ({"a.b": "c"}, {"a": {"b": 1}, "a.b": 2}, {"a": {"b": 1}, "c": 2}),
        ({"a": "b"}, {"a": None}, {"b": None}),
    ],
)
def test_rename_gives_all_fields_their_names_at_once(fields, data, result):
    renamed = data_after({"rename": {"fields": fields}}, data=data)
    assert list(renamed.items()) == list(result.items())


@pytest.mark.parametrize(
    ("fields", "result"),
    [
        (["b", "a"], {"a": 1, "b": {"c": 2}}),
        (["a", "zzz"], {"a": 1}),
        (["zzz"], {}),
        (["b.c"], {}),
    ],
)
def test_pick_keeps_the_listed_fields_that_are_there(fields, result):
    picked = data_after({"pick": {"fields": fields}}, data={"a": 1, "b": {"c": 2}, "x": 3})
    assert list(picked.items()) == list(result.items())


@pytest.mark.parametrize(
    ("fields", "result"), [(["a"], {"b": {"c": 2}}), (["zzz"], {"a": 1, "b": {"c": 2}}), (["a", "b"], {})]
)
def test_omit_removes_the_listed_fields(fields, result):
    assert data_after({"omit": {"fields": fields}}, data={"a": 1, "b": {"c": 2}}) == result


@pytest.mark.parametrize("declared", [{"pick": {"fields": ["id"]}}, {"omit": {"fields": ["card"]}}])
def test_everything_but_the_data_stays(declared):
    document = given_document(op=Operation.UPDATE)
    result = given_chain(declared).apply(document, "orders")
    assert replace(result, data=document.data) == document


# skip: true keeps, false drops

KEEP, DROP = True, False
ABSENT = object()


def skip(operator, match, value):
    chain = given_chain({"skip": {"field": "value", "operator": operator, "match": match}})
    return chain, given_document({} if value is ABSENT else {"value": value})


@pytest.mark.parametrize(
    ("operator", "match", "value", "outcome"),
    [
        ("==", "good", "good", KEEP),
        ("==", "good", "bad", DROP),
        ("eq", "good", "good", KEEP),
        ("$eq", "good", "bad", DROP),
        ("==", 10, 10, KEEP),
        ("==", 10, 10.0, KEEP),
        ("==", 10.0, 10, KEEP),
        ("==", 0.1, Decimal("0.1"), KEEP),
        ("==", 2**53, 2**53 + 1, DROP),
        ("==", 10, "10", DROP),
        ("==", "10", 10, DROP),
        ("==", 1, True, DROP),
        ("==", True, 1, DROP),
        ("==", 0, False, DROP),
        ("==", False, 0.0, DROP),
        ("==", True, True, KEEP),
        ("==", True, False, DROP),
        ("==", None, None, KEEP),
        ("==", None, ABSENT, KEEP),
        ("==", None, 0, DROP),
        ("==", "", None, DROP),
        ("==", "good", ABSENT, DROP),
        ("==", 1, float("nan"), DROP),
        ("==", [1, {"a": 2}], [1.0, {"a": 2.0}], KEEP),
        ("==", [1, 2], [2, 1], DROP),
        ("==", [1], [1, 1], DROP),
        ("==", [True], [1], DROP),
        ("==", {"a": 1, "b": 2}, {"b": 2, "a": 1}, KEEP),
        ("==", {"a": 1}, {"a": 1, "b": 2}, DROP),
        ("==", {"a": 1}, {"b": 1}, DROP),
        ("==", {}, [], DROP),
        ("=~", "good", "goodnight", KEEP),
        ("=~", "^good", "very good", DROP),
        ("=~", "good", "very good", KEEP),
        ("=~", "", "", KEEP),
        (">", 10, 11, KEEP),
        (">", 10, 10, DROP),
        (">", 10.5, 11, KEEP),
        (">", 10.5, 10, DROP),
        ("gt", 10, 11, KEEP),
        ("$gt", 10, 10, DROP),
        (">=", 10, 10, KEEP),
        (">=", 10, 10.5, KEEP),
        (">=", 10, 9.5, DROP),
        ("gte", 10, 10, KEEP),
        ("$gte", 10, 9, DROP),
        ("<", 10, 9, KEEP),
        ("<", 10, 10, DROP),
        ("lt", 10, 9, KEEP),
        ("$lt", 10, 10, DROP),
        ("<=", 10, 9.9, KEEP),
        ("<=", 10, 10, KEEP),
        ("<=", 10, 10.1, DROP),
        ("lte", "10", 10, KEEP),
        ("lte", 10, "10", KEEP),
        ("$lte", "10", "10", KEEP),
        ("<=", "10", 10.1, DROP),
        (">=", "10.1", 10.1, KEEP),
        (">=", 10.1, "10.1", KEEP),
        (">=", 0.00001, Decimal("0.00001"), KEEP),
        (">", 2**53, 2**53 + 1, KEEP),
        (">", "-1e3", -999, KEEP),
        ("<", ".5", "+0.25", KEEP),
    ],
)
def test_skip_keeps_what_compares(operator, match, value, outcome):
    chain, document = skip(operator, match, value)
    assert chain.apply(document, "orders") is (document if outcome is KEEP else None)


@pytest.mark.parametrize("operator", [">", ">=", "<", "<=", "gt", "$lte"])
@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("ten", "`ten`"),
        ("", "``"),
        (" 10", "`10`"),
        ("1_000", "`1_000`"),
        ("nan", "`nan`"),
        ("1e99999999999999999999", "`1e99999999999999999999`"),
        ("٣", "`٣`"),
        (True, "`true`"),
        (None, "empty"),
        (ABSENT, "empty"),
        ([10], "a list"),
        ({"a": 10}, "a mapping"),
        (float("inf"), "`inf`"),
    ],
)
def test_skip_cannot_compare_what_is_not_a_number(operator, value, shown):
    failed = failure(*skip(operator, 10, value))
    assert (failed.transform, failed.problem) == (
        "1 (skip)",
        f"field `value` is {shown}, which is not a number.",
    )


@pytest.mark.parametrize("value", [10, True, None, ABSENT, ["good"], {"good": 1}])
def test_skip_finds_an_expression_in_text_only(value):
    failed = failure(*skip("=~", "good", value))
    assert failed.transform == "1 (skip)"
    assert failed.problem.endswith("which is not text.")


def test_skip_addresses_top_level_fields_only():
    chain = given_chain({"skip": {"field": "a.b", "operator": "==", "match": 1}})
    assert chain.apply(given_document({"a": {"b": 1}}), "orders") is None
    assert chain.apply(given_document({"a.b": 1}), "orders") is not None


# pretty


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({}, '{\n  "name": "Zoë",\n  "total": 1\n}'),
        ({"spaces": 4}, '{\n    "name": "Zoë",\n    "total": 1\n}'),
        ({"spaces": 0}, '{"name": "Zoë", "total": 1}'),
    ],
)
def test_pretty_logs_the_data_and_changes_nothing(settings, text):
    document = given_document({"name": "Zoë", "total": 1})
    with capture_logs() as logged:
        assert given_chain({"pretty": settings}).apply(document, "orders") is document
    assert logged == [
        {
            "event": "document",
            "log_level": "info",
            "namespace": "orders",
            "op": "insert",
            "ts": document.ts,
            "data": text,
        }
    ]


def test_every_pretty_has_its_own_spaces():
    with capture_logs() as logged:
        data_after({"pretty": {"spaces": 1}}, {"pretty": {"spaces": 0}}, data={"a": 1})
    assert [line["data"] for line in logged] == ['{\n "a": 1\n}', '{"a": 1}']


def test_pretty_shows_all_digits_of_a_number_that_no_float_holds():
    with capture_logs() as logged:
        data_after({"pretty": {"spaces": 0}}, data={"a": Decimal("0.1234567890123456789")})
    assert "0.1234567890123456789" in logged[0]["data"]


# function


def test_a_function_changes_the_whole_document(call):
    changed = Document(Operation.UPDATE, 5, "archive", {"a": [1, 2.5, None, True, "x", {"b": Decimal(1)}]})
    assert given_chain(call(lambda document: changed)).apply(given_document(), "orders") == changed


def test_a_function_may_change_what_it_is_given_in_place(call):
    def change(document):
        document.data["lines"][0]["count"] = 99
        del document.data["card"]
        return document

    document = given_document(deepcopy(ORDER))
    result = given_chain(call(change)).apply(document, "orders")
    assert result.data == {"id": 7, "status": "open", "lines": [{"sku": "a", "count": 99}]}
    assert document.data == ORDER


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("x"), "`shop.change` raised KeyError: 'x'."),
        (ValueError("no\n  good."), "`shop.change` raised ValueError: no good."),
        (AssertionError(), "`shop.change` raised AssertionError."),
        (
            TransformFailed("9 (other)", "no."),
            "`shop.change` raised TransformFailed: transform 9 (other): no.",
        ),
    ],
)
def test_a_function_that_raises(call, error, said):
    def change(document):
        raise error

    failed = failure(given_chain(call(change)))
    assert failed.transform == "1 (function)"
    assert failed.problem.startswith(said)
    assert failed.__cause__ is error


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_being_told_to_end_is_not_the_fault_of_the_message(call, error):
    def change(document):
        raise error

    with pytest.raises(error):
        given_chain(call(change)).apply(given_document(), "orders")


@pytest.mark.parametrize("result", [True, False, {}, ORDER, "insert", [given_document()]])
def test_a_function_that_returns_anything_else(call, result):
    failed = failure(given_chain(call(lambda document: result)))
    assert "Return a Document, or None to drop." in failed.problem


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("op", "insert", "`op` is `insert`, which is not an Operation"),
        ("op", None, "`op` is empty, which is not an Operation"),
        ("ts", "5", "`ts` is `5`, which is not a whole number of 64 bits"),
        ("ts", 5.0, "which is not a whole number"),
        ("ts", True, "which is not a whole number"),
        ("ts", 2**63, "which is not a whole number of 64 bits"),
        ("namespace", None, "`namespace` is empty, which is not text"),
        ("namespace", b"orders", "which is not text"),
        ("data", None, "`data` is of type NoneType, which is not a dict"),
        ("data", [1], "`data` is of type list, which is not a dict"),
        ("data", {1: 2}, "`data` holds the key `1`"),
        ("data", {"a": [{"b": {None: 1}}]}, "`data` holds the key empty"),
        ("data", {"a": [b"x"]}, "`data` holds something of type bytes, which JSON does not have"),
        ("data", {"a": {"b": (1, 2)}}, "`data` holds something of type tuple"),
        ("data", {"a": float("nan")}, "`data` holds the number nan"),
        ("data", {"a": Decimal("-Infinity")}, "`data` holds the number -Infinity"),
    ],
)
def test_a_function_that_returns_a_document_with_a_field_of_the_wrong_type(call, field, value, said):
    failed = failure(given_chain(call(lambda document: replace(document, **{field: value}))))
    assert failed.problem.startswith("`shop.change` returned a document whose ")
    assert said in failed.problem


def test_a_function_that_returns_data_without_end(call):
    def change(document):
        document.data["itself"] = document.data
        return document

    assert "RecursionError" in failure(given_chain(call(change))).problem


def test_a_function_that_is_not_where_the_message_is(call, monkeypatch):
    declared = READER.validate_python([{"pretty": {}}, call(lambda document: document)])
    monkeypatch.delitem(sys.modules, "shop")
    with pytest.raises(TransformFailed, match="No module named 'shop'") as failed:
        Chain(declared)
    assert failed.value.transform == "2 (function)"


# What holds for every document

names = st.text("abcde", min_size=1, max_size=2)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=5,
)
data = st.dictionaries(names, values, max_size=6)
field_lists = st.lists(names, min_size=1, max_size=4, unique=True)
transforms = st.one_of(
    st.builds(lambda fields: {"pick": {"fields": fields}}, field_lists),
    st.builds(lambda fields: {"omit": {"fields": fields}}, field_lists),
    st.builds(
        lambda old, new: {"rename": {"fields": dict(zip(old, new, strict=False))}}, field_lists, field_lists
    ),
    st.builds(
        lambda field, match: {"skip": {"field": field, "operator": "==", "match": match}},
        names,
        st.none() | st.integers(0, 1),
    ),
    st.builds(lambda field: {"skip": {"field": field, "operator": "<", "match": 1}}, names),
    st.just({"function": {"path": f"{__name__}.scramble"}}),
)


def scramble(document):
    """The rudest function: changes all it can reach, in place."""
    for value in document.data.values():
        if isinstance(value, list | dict):
            value.clear()
    document.data["scrambled"] = 1
    return document


@given(data, field_lists)
def test_pick_and_omit_part_the_fields_between_them(data, fields):
    picked = data_after({"pick": {"fields": fields}}, data=data)
    omitted = data_after({"omit": {"fields": fields}}, data=data)
    assert picked.keys() | omitted.keys() == data.keys()
    assert not picked.keys() & omitted.keys()
    assert {**picked, **omitted} == data


@given(data, st.permutations(["a", "b", "c"]))
def test_renaming_back_gives_the_document_again(data, shuffled):
    there = dict(zip("abc", shuffled, strict=True))
    back = {new: old for old, new in there.items()}
    renamed = data_after({"rename": {"fields": there}}, {"rename": {"fields": back}}, data=data)
    assert list(renamed.items()) == list(data.items())


@given(data, st.lists(transforms, max_size=4))
def test_no_chain_changes_what_it_is_given(data, declared):
    before, document = deepcopy(data), given_document(data)
    chain = given_chain(*declared)

    def outcome():
        try:
            return chain.apply(document, "orders")
        except TransformFailed as failed:
            return str(failed)

    first = outcome()
    assert data == before
    assert outcome() == first


@given(data, st.lists(transforms, max_size=3))
def test_nothing_comes_after_a_drop(data, declared):
    never = {"skip": {"field": "\0", "operator": "==", "match": "never"}}
    assert given_chain(never, *declared).apply(given_document(data), "orders") is None
