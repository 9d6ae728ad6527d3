"""The worker loop of docs/work-journal.md, run as it stands there, and a keyspace of an earlier version."""

import re
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.support.contracts.work_world import given_declaration

from tidemark.settings import ROOT
from tidemark.work.client import Work
from tidemark.work.errors import OldTables
from tidemark.work.model.declaration import WorkDeclaration

pytestmark = pytest.mark.system

ENTRIES = 40
FAIR = 5.0
"""How many times longer than claims alone the loop may take; it took 50 s for less than one."""
PAGE = (ROOT / "docs/work-journal.md").read_text()


class AllDone(BaseException):
    """The loop has nothing left to do, and would sleep from here on."""


@pytest.fixture
def keyspace(services: Any) -> Iterator[str]:
    name = f"work_{uuid4().hex[:8]}"
    yield name
    services.session.execute(f"DROP KEYSPACE IF EXISTS {name}")


def given_pages(services: Any, keyspace: str, name: str, **keys: Any) -> Work:
    declared = given_declaration(
        name=name, keyspace=keyspace, key={"page": "text"}, payload={"revision": "int"}, **keys
    )
    work, made = Work.create(declared, cassandra=services.cassandra, kafka=services.kafka)
    assert made
    return work


def filled(work: Work) -> Work:
    for number in range(ENTRIES):
        work.insert(f"page/{number}", {"revision": number}, process=time.time_ns() // 1_000_000)
    return work


def loop_of_the_page(services: Any, keyspace: str, name: str) -> str:
    """The example, with the names and the port of the test and nothing else changed."""
    block = next(one for one in re.findall(r"```python\n(.*?)```", PAGE, re.S) if "while True" in one)
    given = f'Work("{name}", keyspace="{keyspace}",'
    assert 'Work("pages",' in block
    assert "port=9042" in block
    return block.replace('Work("pages",', given).replace("port=9042", f"port={services.cassandra.port}")


def test_i08_the_loop_of_the_page_works_without_a_rest(
    services: Any, keyspace: str, monkeypatch: pytest.MonkeyPatch, record_property: Any
) -> None:
    # Given: forty entries, twice; one lot is claimed and done with nothing in between.
    bare, page = (filled(given_pages(services, keyspace, name)) for name in ("bare", "page"))
    began = time.monotonic()
    while items := bare.claim(10):
        for item in items:
            bare.done(item)
    alone = time.monotonic() - began

    # When: the loop of the page does the other lot; its first sleep with everything done ends it.
    rendered: list[str] = []
    sleeps: list[int] = []
    waits = Work.wait

    def sleep(seconds: float) -> None:
        sleeps.append(len(rendered))
        if len(rendered) >= ENTRIES:
            raise AllDone

    monkeypatch.setattr(Work, "wait", lambda self, seconds=300.0: waits(self, seconds, sleep))
    source = loop_of_the_page(services, keyspace, "page")
    began = time.monotonic()
    with pytest.raises(AllDone):
        exec(compile(source, "docs/work-journal.md", "exec"), {"render": lambda key, _: rendered.append(key)})
    took = time.monotonic() - began

    # Then: it slept once, at the end.
    assert sleeps == [ENTRIES]
    assert sorted(rendered) == sorted(f"page/{number}" for number in range(ENTRIES))
    assert page.get("page/42") is not None, "the page's own insert waits for its ten seconds"
    record_property("entries_a_second", round(ENTRIES / took, 1))
    print(f"{ENTRIES / took:.0f} entries/s by the loop of the page, {ENTRIES / alone:.0f}/s by claims alone")
    assert took < FAIR * alone + 5, f"{took:.1f} s, and claims alone took {alone:.1f} s"


def test_i08_with_wake_neither(services: Any, keyspace: str, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = f"wake_{uuid4().hex[:8]}"
    services.create_topic(topic, 1)
    work = filled(given_pages(services, keyspace, "page", wake={"topic": topic}))
    done: list[int] = []
    monkeypatch.setattr(type(work._bell), "wait", lambda bell, seconds: done.append(-1))
    with work:
        while -1 not in done:
            for item in work.claim(10):
                work.done(item)
                done.append(item.payload["revision"])
            work.wait()
    assert done == [*range(ENTRIES), -1]


def test_i24_a_pause_holds_for_every_claim_that_begins_after_it(services: Any, keyspace: str) -> None:
    work = filled(given_pages(services, keyspace, "page"))
    others = [Work("page", cassandra=services.cassandra, keyspace=keyspace) for _ in range(3)]
    assert [len(one.claim()) for one in others] == [1, 1, 1]
    work.pause("ann", "maintenance")
    assert [one.claim() for one in others] == [[], [], []]
    others[0].resume("ann", "over")
    assert [len(one.claim()) for one in (work, *others)] == [1, 1, 1, 1]


def test_i24_one_node_gets_one_copy_without_a_word_and_no_warning(services: Any, keyspace: str) -> None:
    work = given_pages(services, keyspace, "page")
    query = "SELECT replication FROM system_schema.keyspaces WHERE keyspace_name = %s"
    replication = services.session.execute(query, (keyspace,)).one().replication
    assert (replication["class"].split(".")[-1], replication["replication_factor"]) == ("SimpleStrategy", "1")
    assert work.copies_warning() is None
    assert WorkDeclaration.model_validate_json(work.parts.declared.model_dump_json()).replication is None, (
        "what was not declared stays so"
    )


def test_i11_a_keyspace_of_an_earlier_version_reports_and_is_brought_up_to_date(
    services: Any, keyspace: str
) -> None:
    given = given_pages(services, keyspace, "page", max_failures=1)
    services.session.execute(f"ALTER TABLE {keyspace}.dead DROP seen")
    old = Work("page", cassandra=services.cassandra, keyspace=keyspace)
    old.insert("k", {"revision": 1})
    old.fail(*old.claim(), "no route")
    (letter,) = old.dead(unseen=True)
    with pytest.raises(OldTables, match="tidemark work create page"):
        old.mark_seen(letter, who="ann", reason="gone")
    assert old.deeds() == []

    upgraded, _ = Work.create(given.declared, cassandra=services.cassandra)
    (letter,) = upgraded.dead(unseen=True)
    upgraded.mark_seen(letter, who="ann", reason="gone")
    assert list(upgraded.dead(unseen=True)) == []
    (letter,) = Work("page", cassandra=services.cassandra, keyspace=keyspace).dead()
    assert letter.seen.by == "ann"
