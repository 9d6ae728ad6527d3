"""The part "Reading" of the page about collections: its examples run, and it names every error."""

import asyncio
import re
import textwrap

import pytest
from tests.support.reading_world import ReadingWorld

import tidemark
from tidemark.client.collection import errors
from tidemark.client.collection.async_collection import AsyncCollection
from tidemark.errors import TidemarkError
from tidemark.outputs import reader_errors
from tidemark.settings import ROOT

pytestmark = pytest.mark.unit

PAGE = (ROOT / "docs" / "collections.md").read_text()
BLOCKING, LOOP, SPARK = re.findall(r"```python\n(.*?)```", PAGE, re.S)


@pytest.fixture
def world() -> ReadingWorld:
    world = ReadingWorld()
    world.step(10, {"7": 3})
    world.step(20, {"7": 5, "8": 1})
    return world


def test_the_blocking_example(
    world: ReadingWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tidemark, "Collection", lambda *names: world.collection(), raising=False)
    found: dict[str, object] = {}
    exec(BLOCKING, found)
    assert capsys.readouterr().out.splitlines() == [
        "5",
        "True",
        "1",
        "1",
        "+ 7 3",
        "- 7 3",
        "+ 7 5",
        "+ 8 1",
    ]
    assert found["table"].num_rows == 2  # type: ignore[attr-defined]
    assert world.held == []


def test_the_example_with_an_event_loop(
    world: ReadingWorld, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    facade = AsyncCollection.of_collection(world.collection())
    monkeypatch.setattr(tidemark, "AsyncCollection", lambda *names: facade, raising=False)
    imports, body = LOOP.split("\n\n", 1)
    exec(f"{imports}\nasync def work():\n{textwrap.indent(body, '    ')}", found := {})
    asyncio.run(found["work"]())
    assert capsys.readouterr().out == "10 [1]\n20 [-1, 1, 1]\n"
    assert world.held == []


def test_the_example_of_spark_names_what_there_is() -> None:
    from tidemark.spark.source.collection import _OPTIONS

    assert set(re.findall(r'option\("(\w+)"', SPARK)) <= set(_OPTIONS.values())
    assert "register_collections" in SPARK


def test_every_error_of_readers_is_on_the_page() -> None:
    found = {
        name
        for module in (errors, reader_errors)
        for name, kind in vars(module).items()
        if isinstance(kind, type) and issubclass(kind, TidemarkError)
    }
    # Roots, and errors of operators.
    others = {"CollectionError", "OutputError", "TidemarkError", "UnknownPin", "StillNeeded"}
    others |= {"CapabilityMovedBack", "ReaderNameTaken"}
    assert {name for name in found if f"`{name}`" not in PAGE} == others
