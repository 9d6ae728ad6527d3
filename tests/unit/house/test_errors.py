"""Errors have one root, and each has a name of its own and a docstring."""

import ast
import builtins
from collections import Counter
from functools import cache
from pathlib import Path
from string import Formatter

import pytest

from tidemark.settings import ROOT

pytestmark = pytest.mark.unit

LIBRARY = ROOT / "include" / "tidemark"
THE_ROOT = "TidemarkError"

SIGNALS = {
    "AccessRefused": "the agent's router sends the answer that it holds",
    "BadQuery": "the agent's router answers 400 with the reason",
    "BodyRefused": "the agent's router sends the answer that it holds",
    "SenderGone": "the agent's router has no client to answer any more",
    "BlockDamaged": "the reader of binding lists turns it into FileDamaged, with the file",
    "CannotEncode": "the statement that encodes rows turns it into RowRefused, with the table and the column",
    "DoesNotFit": "the scan turns it into ValueRefused, with the table and the column",
    "NoPlaceInArrow": "the description of a table turns it into TypeRefused, with the column",
    "NeedsCare": "the JSON codec then parses the document the slow and exact way",
    "Misfit": "the reader of a collection's rows turns it into NoRow, with the column",
    "NoRow": "the batch of rows returns it as its bad message, with the id",
    "Disagreement": "pydantic turns a ValueError of a validator into a problem of the file",
    "KindUnusable": "pydantic turns it into a problem of the file that uses the kind",
    "Unfit": "the chain of transforms turns it into TransformFailed, with the transform",
    "NotYaml": "the loader turns it into PipelineRefused, with the file",
    "NotEmpty": "the plan of a rewind turns it into NotPossible, with the writer",
    "OffsetGone": "the reader of a journal turns it into TailLost, with the entity",
    "ReadAgain": "the update loop reads the object again and decides once more",
    "StreamEnd": "the task of a stream's request turns it into the end of the stream",
    "ClientGone": "as StreamEnd: there is no client to tell it",
    "ClientBehind": "as StreamEnd: its client is told to come back",
    "StreamOver": "as StreamEnd: its client comes back",
    "Unjudged": "the task of a stream's request reads the partition from the collection instead",
    "Stopped": "a shutdown is not an error of the entry that is being worked on, so it is a BaseException",
}
"""Exceptions by which one module tells another something; what becomes of each before it reaches a caller."""


class Found:
    """The classes of the library, by their sources."""

    def __init__(self) -> None:
        self.classes: list[tuple[Path, ast.ClassDef]] = []
        for path in sorted(LIBRARY.rglob("*.py")):
            nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            self.classes += [(path, node) for node in nodes if isinstance(node, ast.ClassDef)]
        self._bases: dict[str, set[str]] = {}
        for _, node in self.classes:
            self._bases.setdefault(node.name, set()).update(_last_names(node.bases))

    def ancestors(self, node: ast.ClassDef) -> set[str]:
        """The names of all classes that a class derives from."""
        found: set[str] = set()
        waiting = _last_names(node.bases)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting |= self._bases.get(name, set())
        return found

    def errors(self) -> dict[str, tuple[Path, ast.ClassDef]]:
        """Every public class that can be raised."""
        return {
            node.name: (path, node)
            for path, node in self.classes
            if not node.name.startswith("_") and any(map(_is_exception, self.ancestors(node)))
        }


def _last_names(bases: list[ast.expr]) -> set[str]:
    return {ast.unparse(base).split("[")[0].split(".")[-1] for base in bases}


def _is_exception(name: str) -> bool:
    kind = getattr(builtins, name, None)
    return isinstance(kind, type) and issubclass(kind, BaseException)


@cache
def library() -> Found:
    return Found()


def test_every_error_derives_from_the_root_or_is_a_signal_within_the_library() -> None:
    found = library()
    outside = {
        name
        for name, (_, node) in found.errors().items()
        if name != THE_ROOT and THE_ROOT not in found.ancestors(node)
    }
    assert outside <= set(SIGNALS)


def test_every_error_says_what_it_means() -> None:
    assert not [name for name, (_, node) in library().errors().items() if not ast.get_docstring(node)]


def test_the_name_of_an_error_means_one_thing() -> None:
    names = Counter(node.name for _, node in library().classes)
    assert not [name for name in library().errors() if names[name] > 1]


def test_a_text_names_only_fields_and_properties_of_its_error() -> None:
    found = library()
    nodes = {node.name: node for _, node in found.classes}
    for name, (path, node) in found.errors().items():
        fields = {
            one.target.id
            for kind in {name, *found.ancestors(node)} & set(nodes)
            for one in nodes[kind].body
            if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        }
        fields |= {
            one.name
            for one in node.body
            if isinstance(one, ast.FunctionDef) and "property" in map(ast.unparse, one.decorator_list)
        }
        for one in node.body:
            if isinstance(one, ast.Assign) and ast.unparse(one.targets[0]) == "text":
                named = {place.split(".")[0].split("[")[0] for place in _places(ast.literal_eval(one.value))}
                assert named <= fields, (path, name, named - fields)


def _places(text: str) -> list[str]:
    """The names in braces of a format string."""
    return [place for _, place, _, _ in Formatter().parse(text) if place is not None]


def test_no_error_is_caught_together_with_one_of_its_ancestors() -> None:
    found = library()
    ancestors = {name: found.ancestors(node) for name, (_, node) in found.errors().items()}
    for path in sorted([*LIBRARY.rglob("*.py"), *(ROOT / "plugins").rglob("*.py")]):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Tuple):
                caught = _last_names(node.type.elts)
                twice = [name for name in caught if ancestors.get(name, set()) & caught]
                assert not twice, (path, node.lineno, twice)
