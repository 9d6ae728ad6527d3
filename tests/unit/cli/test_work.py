"""``tidemark work``: what a person sees and does."""

import json

import pytest
from tests.contract.work_house import House, given_declaration, memory_stores

from tidemark.work.client import Work

pytestmark = [
    pytest.mark.unit,
    pytest.mark.filterwarnings(
        "ignore:(read|open)_text is deprecated:DeprecationWarning"
    ),  # kafka-python's own
]

PAGES = "name: pages\nkey: {page: text}\npayload: {revision: int}\nmax_failures: 1\nhistory: 7d\n"
EXECUTE = ("--execute", "--reason", "asked for", "--by", "ann")


@pytest.fixture
def house(installation, monkeypatch) -> House:
    """A journal in memory instead of the declared one."""
    folder = installation / "include" / "work"
    folder.mkdir(parents=True)
    (folder / "pages.yaml").write_text(PAGES)
    declared = given_declaration(
        name="pages",
        key={"page": "text"},
        payload={"revision": "int"},
        payload_limit=25,
        max_failures=1,
        history="7d",
    )
    house = House(memory_stores(), declared)
    of_file = Work.of_file.__func__

    def in_memory(cls, name, **options):
        if name != "pages":
            return of_file(cls, name, **options)
        return Work.of_journal(house.another(), owner="me")

    monkeypatch.setattr(Work, "of_file", classmethod(in_memory))
    return house


def inserted(run, key: str = "page/42", revision: int = 7) -> None:
    ended = run("work", "insert", "pages", key, "--payload", json.dumps({"revision": revision}))
    assert ended.code == 0


def claimed(run) -> dict:
    (item,) = json.loads(run("work", "claim", "pages", "--json").out)
    return item


def test_insert_says_what_became_of_it(run, house):
    first = run("work", "insert", "pages", "page/42", "--payload", '{"revision": 7}')
    again = run("work", "insert", "pages", "page/42", "--payload", '{"revision": 8}', "--json")
    assert (first.code, first.out) == (0, "pages/page/42: inserted.\n")
    assert json.loads(again.out) == {"journal": "pages", "key": "page/42", "outcome": "merged"}


def test_claim_and_done(run, house):
    inserted(run)
    item = claimed(run)
    assert (item["key"], item["payload"]) == ("page/42", {"revision": 7})
    assert run("work", "done", "pages", "page/42", item["token"]).out == "pages/page/42: done.\n"
    assert run("work", "done", "pages", "page/42", item["token"]).out == "pages/page/42: gone.\n"
    assert run("work", "claim", "pages").out == "Nothing is due.\n"
    assert json.loads(run("work", "history", "pages", "--json").out)[0]["status"] == "done"


def test_a_lost_claim_is_one_sentence_and_exit_code_1(run, house):
    inserted(run)
    claimed(run)
    before = house.stored("page/42")
    for command in (["done"], ["refresh"], ["release"], ["fail", "--error", "x"], ["snooze", "--for", "1m"]):
        ended = run("work", command[0], "pages", "page/42", "another", *command[1:])
        assert ended.code == 1
        assert "the claim of page/42 is lost" in ended.err
    assert house.stored("page/42") == before


def test_snooze_and_release(run, house):
    inserted(run)
    assert run("work", "release", "pages", "page/42", claimed(run)["token"]).code == 0
    assert run("work", "snooze", "pages", "page/42", claimed(run)["token"], "--for", "10m").code == 0
    assert run("work", "claim", "pages").out == "Nothing is due.\n"


def test_fail_dead_and_redrive(run, house):
    inserted(run)
    token = claimed(run)["token"]
    assert run("work", "fail", "pages", "page/42", token, "--error", "no route").out.endswith("dead.\n")
    assert "no route" in run("work", "dead", "pages").out
    planned = run("work", "redrive", "pages")
    assert "Nothing was changed" in planned.out
    assert house.stored("page/42") is None
    done = run("work", "redrive", "pages", "page/42", *EXECUTE, "--json")
    assert json.loads(done.out) == {"journal": "pages", "keys": ["page/42"], "executed": True}
    assert house.stored("page/42") is not None
    assert json.loads(run("work", "dead", "pages", "--json").out) == []


def test_cancel_shows_its_plan_first(run, house):
    inserted(run)
    planned = run("work", "cancel", "pages", "page/42")
    assert "waiting" in planned.out
    assert house.stored("page/42") is not None
    assert run("work", "cancel", "pages", "page/42", "--execute").code != 0
    assert run("work", "cancel", "pages", "page/42", *EXECUTE).out.endswith("Done by ann.\n")
    assert house.stored("page/42") is None


def test_list_and_stats(run, house):
    inserted(run)
    inserted(run, "page/43")
    (first, second) = json.loads(run("work", "list", "pages", "--json").out)
    assert {first["key"], second["key"]} == {"page/42", "page/43"}
    assert "waiting" in run("work", "list", "pages").out
    assert json.loads(run("work", "stats", "pages", "--json").out)["due"] == 2
    assert run("work", "stats", "pages").out.startswith("pages: 2 waiting (2 due), 0 processing")


def test_pause_and_resume(run, house):
    inserted(run)
    assert run("work", "pause", "pages").code != 0
    assert run("work", "pause", "pages", "--reason", "x").out == "pages: paused.\n"
    assert run("work", "claim", "pages").out == "Nothing is due.\n"
    assert run("work", "resume", "pages", "--reason", "x").code == 0
    assert claimed(run)["key"] == "page/42"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["insert", "pagse", "k", "--payload", "{}"], "Did you mean `pages`"),
        (["insert", "pages", "k", "--payload", "{"], "is not JSON"),
        (["insert", "pages", "k", "--payload", '{"revision": "x"}'], "`revision` is not int"),
        (["insert", "pages", "k", "--payload", '{"revision": 1}', "--priority", "256"], "0 to 255"),
        (["insert", "pages", "k", "--payload", '{"revision": 1}', "--process-in", "7"], "is not a duration"),
        (["insert", "pages", "k", "--payload", '{"revision": 1, "x": 2}'], "`x` is not declared"),
        (["insert", "pages", "k", "--payload", '{"revision": 1000000000000000}'], "takes 25"),
        (["insert", "pages", "k", "--payload", '{"revision": 1}', "--priority", "-1"], "0 to 255"),
        (["done", "pagse", "k", "token"], "Did you mean `pages`"),
        (["claim", "pages", "--limit", "0"], "--limit"),
        (["claim", "pages", "--limit", "-1"], "--limit"),
        (["list", "pages", "--limit", "-1"], "--limit"),
        (["history", "pages", "--days", "-1"], "--days"),
        (["claim", "pages", "--limit", "1001"], "from 1 to 1000"),
    ],
)
def test_wrong_input_is_refused_and_changes_nothing(run, house, arguments, said):
    ended = run("work", *arguments)
    assert ended.code != 0
    assert said in " ".join(ended.err.replace("│", " ").split())
    assert house.stored("k") is None
