"""docs/pipelines.md names every key, and every value of the keys that choose from a list.

Those of transforms are on a page of their own: see test_transforms.
"""

from enum import Enum
from pathlib import Path
from typing import get_args

import pytest

from tidemark.pipeline.extensions import BUILT_IN
from tidemark.pipeline.kinds import FORMATS, POLICIES
from tidemark.pipeline.loader import load_pipeline
from tidemark.pipeline.model import Pipeline
from tidemark.pipeline.parts import Declaration
from tidemark.pipeline.transforms import Transform
from tidemark.pipeline.writers import WRITERS

pytestmark = pytest.mark.unit

PAGE = (Path(__file__).parents[3] / "docs/pipelines.md").read_text()


def parts_of(annotation):
    """Every class named in an annotation."""
    if isinstance(annotation, type):
        yield annotation
    for argument in get_args(annotation):
        yield from parts_of(argument)


def words_of(model):
    """Every key and every choice below a model."""
    for name, field in model.model_fields.items():
        yield field.alias or name
        for part in parts_of(field.annotation):
            if issubclass(part, Transform):
                continue
            if issubclass(part, Declaration):
                yield from words_of(part)
            elif issubclass(part, Enum):
                yield from (choice.value for choice in part)


def words_of_kinds():
    """Every kind that Tidemark itself provides, and the keys of its writers."""
    for point in (WRITERS, FORMATS, POLICIES):
        yield from BUILT_IN[point.group]
    for kind in BUILT_IN[WRITERS.group]:
        yield from words_of(WRITERS.find(kind).declaration)


@pytest.mark.parametrize("word", sorted({*words_of(Pipeline), *words_of_kinds()}))
def test_the_page_names(word):
    assert f"`{word}`" in PAGE


def test_the_shortest_file_on_the_page_works(tmp_path):
    file = tmp_path / "orders.yaml"
    file.write_text(PAGE.split("```yaml\n")[1].split("```")[0])
    assert load_pipeline(file).name == "orders"


def test_the_file_of_the_page_about_collections_works(tmp_path):
    page = (Path(__file__).parents[3] / "docs/collections.md").read_text()
    file = tmp_path / "bank.yaml"
    file.write_text(page.split("```yaml\n")[1].split("```")[0])
    (declared,) = load_pipeline(file).writers
    assert (declared.kind, declared.table_name) == ("collection", "accounts")
    assert [column.name for column in declared.columns] == ["owner", "balance", "tags"]
