"""The page about the clients: its examples run, and it names every error."""

import re
import textwrap

import pytest
from tests.support.memory_client import World

import tidemark
from tidemark.client import errors
from tidemark.client.async_journal import AsyncJournal
from tidemark.errors import TidemarkError
from tidemark.settings import ROOT

pytestmark = pytest.mark.unit

PAGE = (ROOT / "docs" / "journal-client.md").read_text()
BLOCKING, LOOP = re.findall(r"```python\n(.*?)```", PAGE, re.S)


def test_the_blocking_example(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    world = World()
    monkeypatch.setattr(tidemark, "Journal", lambda topic, **options: world.client(), raising=False)
    exec(BLOCKING, {})
    assert capsys.readouterr().out == "0 0\n1 {'total': 42}\n2 {'paid': True}\n"


def test_the_example_with_an_event_loop(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    world = World()
    journal = AsyncJournal.of_journal(world.client())
    monkeypatch.setattr(tidemark, "AsyncJournal", lambda topic, **options: journal, raising=False)
    imports, body = LOOP.split("\n\n", 1)
    work = f"{imports}\nasync def work(kafka, cassandra):\n{textwrap.indent(body, '    ')}"
    exec(f"{work}\nimport asyncio\nasyncio.run(work(None, None))", {})
    assert capsys.readouterr().out == "1 hello\n"


def test_every_error_of_the_clients_is_on_the_page() -> None:
    own = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, TidemarkError)
    }
    unnamed = {name for name in own if f"`{name}`" not in PAGE}
    assert unnamed == {"ClientError", "NotAJournal", "TidemarkError"}
