"""Lists, sets, maps, tuples and vectors from JSON: what the driver reads back, and what is refused."""

from decimal import Decimal

import pytest
from cassandra import cqltypes
from tests.support.cql_samples import PROTOCOL, vector

from tidemark.collection.model.column_types import column_type
from tidemark.collection.model.values.encoders import encoder_of
from tidemark.collection.model.values.misfit import Misfit
from tidemark.journal.codec.json_text import parse_exactly

pytestmark = pytest.mark.unit

TEXT, INT, LONG = cqltypes.UTF8Type, cqltypes.Int32Type, cqltypes.LongType
LIST, SET, MAP, TUPLE = cqltypes.ListType, cqltypes.SetType, cqltypes.MapType, cqltypes.TupleType
INTS = LIST.apply_parameters([INT])


def encoded(cql_type, json):
    return encoder_of(column_type(cql_type))(parse_exactly(json.encode()))


@pytest.mark.parametrize(
    ("cql_type", "driver", "json", "value"),
    [
        ("list<int>", INTS, "[3, 1, 3]", [3, 1, 3]),
        ("list<int>", INTS, "[]", []),
        ("set<text>", SET.apply_parameters([TEXT]), '["b", "a"]', {"a", "b"}),
        ("map<text, int>", MAP.apply_parameters([TEXT, INT]), '{"a": 1}', {"a": 1}),
        ("map<text, int>", MAP.apply_parameters([TEXT, INT]), '[["a", 1], ["b", 2]]', {"a": 1, "b": 2}),
        ("map<bigint, text>", MAP.apply_parameters([LONG, TEXT]), '{"-7": "x"}', {-7: "x"}),
        ("map<bigint, text>", MAP.apply_parameters([LONG, TEXT]), '[[-7, "x"]]', {-7: "x"}),
        ("map<int, text>", MAP.apply_parameters([INT, TEXT]), '{"5": "x"}', {5: "x"}),
        (
            "map<boolean, int>",
            MAP.apply_parameters([cqltypes.BooleanType, INT]),
            '{"true": 1, "false": 0}',
            {True: 1, False: 0},
        ),
        (
            "map<decimal, int>",
            MAP.apply_parameters([cqltypes.DecimalType, INT]),
            '{"1.50": 1}',
            {Decimal("1.5"): 1},
        ),
        ("map<double, int>", MAP.apply_parameters([cqltypes.DoubleType, INT]), '{"1.5": 1}', {1.5: 1}),
        (
            "map<frozen<list<int>>, int>",
            MAP.apply_parameters([INTS, INT]),
            "[[[1, 2], 3]]",
            {(1, 2): 3},
        ),
        ("tuple<int, text>", TUPLE.apply_parameters([INT, TEXT]), '[1, "a"]', (1, "a")),
        ("tuple<int, text>", TUPLE.apply_parameters([INT, TEXT]), "[null, null]", (None, None)),
        ("vector<float, 3>", vector(cqltypes.FloatType, 3), "[1, 0.5, -2]", [1.0, 0.5, -2.0]),
        ("vector<text, 2>", vector(TEXT, 2), '["a", "bc"]', ["a", "bc"]),
        ("vector<smallint, 2>", vector(cqltypes.ShortType, 2), "[1, 2]", [1, 2]),
        (
            "list<frozen<map<text, frozen<set<int>>>>>",
            LIST.apply_parameters([MAP.apply_parameters([TEXT, SET.apply_parameters([INT])])]),
            '[{"a": [2, 1]}]',
            [{"a": {1, 2}}],
        ),
    ],
)
def test_a_collection_is_what_the_driver_reads(cql_type, driver, json, value):
    found = driver.from_binary(encoded(cql_type, json), PROTOCOL)
    if driver.typename == "map":
        found = {tuple(key) if type(key) is list else key: item for key, item in found.items()}
    assert found == value


@pytest.mark.parametrize("key", ["1714521600123", "2024-05-01T00:00:00.123Z"])
def test_a_moment_as_the_key_of_an_object_has_either_of_its_forms(key):
    assert encoded("map<timestamp, int>", f'{{"{key}": 1}}') == encoded(
        "map<timestamp, int>", "[[1714521600123, 1]]"
    )


@pytest.mark.parametrize(
    ("cql_type", "json", "said"),
    [
        ("list<int>", "{}", "a JSON object is not a JSON array"),
        ("list<int>", "[1, null]", "null is no element"),
        ("list<int>", '[1, "x"]', '"x" is not a whole number of 32 bits'),
        ("set<int>", "[1, 2, 1]", "1 occurs twice"),
        ("set<decimal>", "[1.5, 2, 1.50]", "1.5 occurs twice"),
        ("set<int>", "[null]", "null is no element"),
        ("map<text, int>", '[["a", 1], ["a", 1]]', '"a" occurs twice'),
        ("map<decimal, int>", '{"1.0": 1, "1": 2}', '"1" occurs twice'),
        ("map<text, int>", '{"a": null}', "null is no element"),
        ("map<text, int>", "[[null, 1]]", "null is no element"),
        ("map<text, int>", '["a"]', "nor an array of pairs"),
        ("map<text, int>", '[["a", 1, 2]]', "nor an array of pairs"),
        ("map<int, int>", '{"1.0": 1}', '"1.0" is not a whole number of 32 bits'),
        ("map<int, int>", '{"01": 1}', '"01" is not a whole number'),
        ("map<boolean, int>", '{"yes": 1}', '"yes" is not true or false'),
        ("map<double, int>", '{"NaN": 1}', '"NaN" is not a number'),
        ("map<frozen<list<int>>, int>", '{"[1]": 1}', "is not a JSON object of such keys"),
        ("tuple<int, text>", "[1]", "is not a JSON array of 2"),
        ("tuple<int, text>", '{"a": 1}', "is not a JSON array of 2"),
        ("vector<float, 3>", "[1, 2]", "is not a JSON array of 3"),
        ("vector<float, 2>", "[1, null]", "null is no element"),
        ("list<frozen<set<int>>>", "[[1, 1]]", "1 occurs twice"),
    ],
)
def test_a_collection_that_does_not_fit_is_refused(cql_type, json, said):
    with pytest.raises(Misfit) as refusal:
        encoded(cql_type, json)
    assert said in str(refusal.value)
