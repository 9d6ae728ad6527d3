"""The key ``transforms`` of a pipeline file: what it declares, and every way it is refused."""

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from pydantic import TypeAdapter
from tests.support.pipeline_files import ARCHIVE, JOURNAL, check, refusal

from tidemark.delivery.transforms.fields import Omit, Pick, Rename
from tidemark.delivery.transforms.function import Function
from tidemark.delivery.transforms.pretty import Pretty
from tidemark.delivery.transforms.skip import OPERATOR_NAMES, Skip, SkipOperator
from tidemark.pipeline.loader import PipelineRefused, load_pipeline
from tidemark.pipeline.model import Pipeline
from tidemark.pipeline.transforms import TRANSFORMS, Transforms

pytestmark = pytest.mark.unit

READER = TypeAdapter(Transforms)
PAGE = (Path(__file__).parents[3] / "docs/transforms.md").read_text()
FILE = ARCHIVE + "    path: /data/archive\n    transforms:\n"
"""The first transform is on line 8."""


def loaded(folder, transforms):
    file = folder / "orders.yaml"
    file.write_text(FILE + transforms)
    return load_pipeline(file)


def declared(*transforms):
    return READER.validate_python(transforms)


def test_a_list_of_transforms(tmp_path):
    pipeline = loaded(
        tmp_path,
        """\
      - rename: {fields: {a: b, b: a}}
      - pick: {fields: [a, b]}
      - omit: {fields: [b], namespaces: "^orders$"}
      - skip: {field: a, operator: ">=", match: 10}
      - pretty: {}
      - function: {path: copy.copy}
""",
    )
    assert pipeline.writers[0].transforms == (
        Rename(fields={"a": "b", "b": "a"}),
        Pick(fields=("a", "b")),
        Omit(fields=("b",), namespaces="^orders$"),
        Skip(field="a", operator=SkipOperator.AT_LEAST, match=10),
        Pretty(spaces=2),
        Function(path="copy.copy"),
    )


def test_a_pipeline_with_transforms_survives_json_and_can_be_a_key(tmp_path):
    pipeline = loaded(
        tmp_path,
        """\
      - rename: {fields: {a: b}}
      - skip: {field: a, operator: $eq, match: [1, {x: null}]}
      - pretty: {spaces: 0}
""",
    )
    assert Pipeline.model_validate_json(pipeline.model_dump_json(exclude_defaults=True)) == pipeline
    transforms = pipeline.writers[0].transforms
    assert READER.validate_python(READER.dump_python(transforms)) == transforms
    assert pipeline in {pipeline}


def test_transforms_are_written_down_as_the_file_has_them():
    transforms = declared(
        {"omit": {"fields": ["card"]}}, {"skip": {"field": "a", "operator": "gt", "match": 1}}
    )
    assert READER.dump_python(transforms, mode="json") == [
        {"omit": {"namespaces": ".*", "fields": ["card"]}},
        {"skip": {"namespaces": ".*", "field": "a", "operator": ">", "match": 1}},
    ]


@pytest.mark.parametrize(
    ("name", "operator"),
    [
        *((operator.value, operator) for operator in SkipOperator),
        *((name, SkipOperator(symbol)) for name, symbol in OPERATOR_NAMES.items()),
        *((f"${name}", SkipOperator(symbol)) for name, symbol in OPERATOR_NAMES.items()),
    ],
)
def test_an_operator_has_one_meaning_under_all_its_names(name, operator):
    (skip,) = declared({"skip": {"field": "a", "operator": name, "match": "10"}})
    assert skip.operator is operator


@pytest.mark.parametrize(
    ("transforms", "line", "said"),
    [
        (
            "      - pretty: {}\n      - renam: {fields: {a: b}}\n",
            9,
            "`writers[0].transforms[1].renam` is an unknown transform. Did you mean `rename`?",
        ),
        (
            "      - uppercase: {}\n",
            8,
            "is an unknown transform. Transforms: rename, pick, omit, skip, pretty, function.",
        ),
        ("      - Rename: {fields: {a: b}}\n", 8, "Did you mean `rename`?"),
        (
            "      - upper\n",
            8,
            "`writers[0].transforms[0]` must be a mapping from a transform's name, not text",
        ),
        ("      - {}\n", 8, "must be a mapping from a transform's name, not an empty one"),
        ("      - [rename]\n", 8, "must be a mapping from a transform's name, not a list"),
        ("      -\n", 8, "must be a mapping from a transform's name, not empty"),
        (
            "      - omit: {fields: [a]}\n        pick: {fields: [b]}\n",
            8,
            "has 2 transforms in it. Give each its own place in the list.",
        ),
        (
            "      - omit: {fields: [a]}\n        namespaces: orders\n",
            9,
            "`writers[0].transforms[0].namespaces` is not a transform but a key of one. Indent it",
        ),
        (
            "      - omit:\n          feilds: [a]\n          fields: [a]\n",
            9,
            "`writers[0].transforms[0].omit.feilds` is an unknown key. Did you mean `fields`?",
        ),
        (
            "      - pretty:\n          zzz: 1\n",
            9,
            "`writers[0].transforms[0].pretty.zzz` is an unknown key. Known here: namespaces, spaces.",
        ),
        ("      - pretty:\n", 8, "`writers[0].transforms[0].pretty` has no value. Give a mapping"),
        (
            "      - function: copy.copy\n",
            8,
            "`writers[0].transforms[0].function` must be a mapping, not text",
        ),
        (
            "      - omit:\n          fields: [a]\n          namespaces: (?!a)\n",
            10,
            "`writers[0].transforms[0].omit.namespaces` is `(?!a)`, which looks around",
        ),
        ("      - rename: {}\n", 8, "`writers[0].transforms[0].rename.fields` is missing"),
        ("      - rename:\n          fields: {}\n", 9, "is an empty mapping. Name at least one."),
        ("      - rename:\n          fields: [a]\n", 9, "must be a mapping, not a list"),
        (
            "      - rename:\n          fields:\n            a: 5\n",
            10,
            "`writers[0].transforms[0].rename.fields.a` must be text, not `5`. Put it in quotes.",
        ),
        (
            "      - rename:\n          fields:\n            a: c\n            b: c\n",
            11,
            "`writers[0].transforms[0].rename.fields.b` becomes `c`, as `a` does.",
        ),
        (
            "      - pick:\n          fields: []\n",
            9,
            "`writers[0].transforms[0].pick.fields` is an empty list",
        ),
        ("      - pick:\n          fields: a\n", 9, "must be a list, not text"),
        (
            "      - omit:\n          fields: [a, b, a]\n",
            9,
            "`writers[0].transforms[0].omit.fields[2]` is `a` for",
        ),
        ("      - pretty:\n          spaces: -1\n", 9, "is `-1`. It must be at least 0."),
        ("      - pretty:\n          spaces: '2'\n", 9, "must be a whole number, not text"),
    ],
)
def test_a_transform_that_is_refused(tmp_path, transforms, line, said):
    check(tmp_path, FILE + transforms, line, said)


@pytest.mark.parametrize(
    ("operator", "match", "line", "said"),
    [
        ("=", "a", 10, "is `=`, which is not one of ==, =~, >, >=, <, <=. Did you mean `==`?"),
        ("'='", "a", 10, "is `=`, which is not one of ==, =~, >, >=, <, <=. Did you mean `==`?"),
        ("'!='", "a", 10, "is `!=`, which is not one of ==,"),
        ("in", "[a]", 10, "is `in`, which is not one of ==,"),
        ("EQ", "a", 10, "is `EQ`, which is not one of ==,"),
        ("5", "a", 10, "is `5`, which is not one of ==,"),
        ("=~", "(", 11, "`writers[0].transforms[0].skip.match` is `(`, which is not a regular expression"),
        ("=~", "(?=a)", 11, "looks around"),
        ("=~", "10", 11, "is `10`, but `=~` needs an expression. Put it in quotes."),
        ("=~", "", 11, "is empty, but `=~` needs an expression"),
        ("'>'", "ten", 11, "is `ten`, which is not a number. `>` compares numbers."),
        ("lte", "true", 11, "is `true`, which is not a number. `<=` compares numbers."),
        ("'>='", "", 11, "is empty, which is not a number"),
        ("<", "[1]", 11, "is a list, which is not a number"),
        ("<", ".inf", 11, "is `inf`, which is not a number"),
        ("==", ".nan", 11, "is or holds something that JSON does not have"),
        ("==", "!!binary aGk=", 11, "is or holds something that JSON does not have"),
        ("==", "&a [*a]", 11, "is or holds something that JSON does not have"),
        ("==", "[{a: .inf}]", 11, "is or holds something that JSON does not have"),
    ],
)
def test_a_skip_that_could_never_answer(tmp_path, operator, match, line, said):
    settings = f"          field: a\n          operator: {operator}\n          match: {match}\n"
    check(tmp_path, FILE + "      - skip:\n" + settings, line, said)


def test_a_skip_says_what_is_missing(tmp_path):
    refused = refusal(tmp_path, FILE + "      - skip: {}\n")
    assert [problem.text.split()[0] for problem in refused.problems] == [
        f"`writers[0].transforms[0].skip.{key}`" for key in ("field", "operator", "match")
    ]


@pytest.fixture(scope="module", autouse=True)
def _listed_packages():
    """Functions of these packages may be called."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDEMARK_TRANSFORMS", "shop:copy")
        yield


@pytest.fixture
def modules(tmp_path, monkeypatch):
    """Modules that can be imported, by name and source."""
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))

    def write(name, source):
        (tmp_path / "modules").mkdir(exist_ok=True)
        (tmp_path / "modules" / f"{name}.py").write_text(source)
        monkeypatch.setitem(sys.modules, name, None)
        monkeypatch.delitem(sys.modules, name)  # so that the import is undone afterwards

    return write


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("change", "is `change`, which is not a dotted path. Write package.module.name."),
        ("shop_a.", "which is not a dotted path"),
        (".change", "which is not a dotted path"),
        ("shop_a:change", "which is not a dotted path"),
        ("''", "which is not a dotted path"),
        ("no_such_shop.change", "cannot be imported (ModuleNotFoundError: No module named 'no_such_shop')"),
        ("shop_a.no.change", "cannot be imported (ModuleNotFoundError: No module named 'shop_a.no'"),
        ("shop_a.chnge", "but the module has no `chnge`. Did you mean `change`?"),
        ("shop_a.zzz", "but the module has no `zzz`. Name a function of that module."),
        ("shop_a.TABLE", "which cannot be called: it is of type dict. Name a function."),
    ],
)
def test_a_function_that_is_not_there(tmp_path, modules, path, said):
    modules("shop_a", "TABLE = {}\ndef change(document): return document\n")
    check(tmp_path, FILE + f"      - function:\n          path: {path}\n", 9, said)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("1 / 0\n", "(ZeroDivisionError: division by zero)"),
        ("def change(:\n", "(SyntaxError: "),
        ("import no_such_shop\n", "(ModuleNotFoundError: No module named 'no_such_shop')"),
        ("raise SystemExit('bye')\n", "(SystemExit: bye)"),
        ("def __getattr__(name): raise RuntimeError(name)\n", "(RuntimeError: change)"),
    ],
)
def test_a_module_that_cannot_be_imported_refuses_its_file_only(tmp_path, modules, source, said):
    modules("shop_b", source)
    check(tmp_path, FILE + "      - function:\n          path: shop_b.change\n", 9, said)


@pytest.mark.parametrize(
    ("path", "package"),
    [("shop_c.change", "shop_c"), ("shop_a_further.change", "shop_a_further")],
)
def test_i26_a_function_of_a_package_that_is_not_listed_is_refused_and_not_imported(
    tmp_path, modules, path, package
):
    modules(package, "raise SystemExit('this was imported')\n")
    check(
        tmp_path,
        FILE + f"      - function:\n          path: {path}\n",
        9,
        f"is `{path}`, but functions are called only from packages that TIDEMARK_TRANSFORMS names, and it "
        "names shop_a, shop_b, no_such_shop. It was not imported. Set "
        f"TIDEMARK_TRANSFORMS=shop_a:shop_b:no_such_shop:{package} wherever pipelines are read",
    )


def test_i26_without_a_list_no_function_may_be_named(tmp_path, monkeypatch):
    monkeypatch.delenv("TIDEMARK_TRANSFORMS")
    with pytest.raises(PipelineRefused, match=r"TIDEMARK_TRANSFORMS names, and it names none\. It was not"):
        loaded(tmp_path, "      - function: {path: copy.copy}\n")


def test_a_module_alone_can_be_listed(tmp_path, monkeypatch):
    monkeypatch.setenv("TIDEMARK_TRANSFORMS", "os.path")
    assert loaded(tmp_path, "      - function: {path: os.path.basename}\n").writers[0].transforms
    with pytest.raises(PipelineRefused, match=r"it names os\.path"):
        loaded(tmp_path, "      - function: {path: os.system}\n")


def test_a_journal_takes_no_transforms(tmp_path):
    content = JOURNAL + "    transforms:\n      - pretty: {}\n"
    check(tmp_path, content, 6, "A journal takes no transforms: its readers rely on what producers sent.")


def test_everything_that_is_wrong_with_transforms_is_said_at_once(tmp_path):
    refused = refusal(
        tmp_path,
        FILE
        + """\
      - renam: {fields: {a: b}}
      - omit: {fields: []}
      - skip:
          field: a
          operator: "="
          match: 5
      - function: {path: nowhere}
""",
    )
    assert [problem.line for problem in refused.problems] == [8, 9, 12, 14]


# The page


@pytest.mark.parametrize(
    "word",
    sorted(
        {*TRANSFORMS.names(), *SkipOperator, *OPERATOR_NAMES, *(f"${name}" for name in OPERATOR_NAMES)}
        | {key for kind in TRANSFORMS.usable() for key in kind.declaration.model_fields}
    ),
)
def test_the_page_names(word):
    assert f"`{word}`" in PAGE


def test_the_examples_on_the_page_work(tmp_path, monkeypatch):
    yaml, python = (
        re.findall(r"```yaml\n(.*?)```", PAGE, re.S),
        re.findall(r"```python\n(.*?)```", PAGE, re.S),
    )
    shop, prices = ModuleType("shop"), ModuleType("shop.prices")
    exec(python[0], vars(prices))
    monkeypatch.setitem(sys.modules, "shop", shop)
    monkeypatch.setitem(sys.modules, "shop.prices", prices)
    pipeline = loaded(tmp_path, "".join(f"      {line}\n" for line in yaml[0].splitlines()[1:]))
    assert [transform.called for transform in pipeline.writers[0].transforms] == TRANSFORMS.names()
