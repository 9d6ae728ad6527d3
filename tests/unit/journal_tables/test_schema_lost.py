"""Tables that were dropped are never made anew beside the pointers that promise what was in them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.journal_tables.errors import TablesLost
from tidemark.journal_tables.schema import create
from tidemark.journal_tables.schema.create import Prepared, create_journal
from tidemark.journal_tables.schema.layout import INDEXED, TABLES, Found
from tidemark.pipeline.model import JournalDeclaration

pytestmark = pytest.mark.unit

CREATED = re.compile(r"CREATE (?:TABLE|INDEX) IF NOT EXISTS (?:\w+ ON )?journal\.(\w+) \((\w+)")


@dataclass
class Keyspace:
    """The keyspace ``journal`` behind a session, with the topics of its pointers."""

    found: Found
    topics: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.cluster = SimpleNamespace(refresh_keyspace_metadata=lambda keyspace: None)

    def execute(self, statement: Any, values: tuple[Any, ...] = ()) -> list[Any]:
        if statement.query_string.startswith("INSERT INTO journal.setting"):
            self.found = replace(self.found, version=values[1])
        return [SimpleNamespace(topic=topic) for topic in self.topics]

    def execute_async(self, statement: str, timeout: float) -> Any:
        created = CREATED.match(statement)
        if created and statement.startswith("CREATE TABLE"):
            self.found = replace(self.found, tables={**self.found.tables, created[1]: TABLES[created[1]]})
        elif created:
            self.found = replace(self.found, indexed=self.found.indexed | {(created[1], created[2])})
        return SimpleNamespace(result=lambda: None, is_schema_agreed=True)

    def prepare(self, **keys: Any) -> Prepared:
        """What a writer does before it delivers."""
        declared = {"name": "cassandra", "kind": "journal"} | keys
        return create_journal(self, "orders", JournalDeclaration.model_validate(declared, context={}))


@pytest.fixture(autouse=True)
def reads_the_keyspace(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def lock(*_: Any) -> Iterator[Any]:
        yield lambda: None

    monkeypatch.setattr(create, "schema_lock", lock)
    monkeypatch.setattr(create, "read_keyspace", lambda session, journal: session.found)
    monkeypatch.setattr(create, "local_nodes", lambda session: ("dc1", 1))
    monkeypatch.setattr(create, "too_few_copies", lambda session, keyspace: None)


def given(*missing: str, topics: tuple[str, ...] = ("orders",)) -> Keyspace:
    """A keyspace that was ready, without some of its tables."""
    tables = {name: shape for name, shape in TABLES.items() if name not in missing}
    indexed = frozenset(("metajournal", column) for column in INDEXED if "metajournal" in tables)
    version = None if "setting" in missing else "8"
    return Keyspace(Found(True, tables, dict.fromkeys(tables, 864_000), indexed, version), topics)


@pytest.mark.parametrize(
    "missing", [("journal",), ("metajournal",), ("journal", "metajournal"), ("journal", "setting")]
)
def test_a_dropped_table_is_not_made_anew_where_pointers_promise_what_was_in_it(missing):
    # given
    keyspace = given(*missing)
    before = keyspace.found
    # when
    with pytest.raises(TablesLost) as refused:
        keyspace.prepare()
    # then
    error = refused.value
    data = [table for table in missing if table != "setting"]
    assert (error.keyspace, error.tables, error.topic) == ("journal", data, "orders")
    assert error.needs_person
    assert f"journal.{data[0]}" in str(error)
    assert "add a writer with another keyspace" in str(error)
    assert keyspace.found == before


@pytest.mark.parametrize(
    ("missing", "topics"),
    [
        (("journal", "metajournal"), ()),
        (("setting", "metajournal"), ()),
        (("journal",), ("refunds",)),
        (("journal", "metajournal", "pointer2", "setting"), ()),
        (("pointer2",), ()),
        (("setting",), ("orders",)),
    ],
    ids=[
        "emptied",
        "half made by a process that died",
        "pointers of topics that the writer does not take",
        "new",
        "without pointers, which a delivery notices",
        "without its version",
    ],
)
def test_a_keyspace_that_has_lost_nothing_of_the_writer_s_is_made_ready(missing, topics):
    # given
    keyspace = given(*missing, topics=topics)
    # when
    keyspace.prepare(namespaces="^orders$")
    # then
    assert {*TABLES} == {*keyspace.found.tables}
    assert keyspace.prepare(namespaces="^orders$") == Prepared()
