"""``tidemark work``: what a person sees and does."""

import json

import pytest
from tests.support.contracts.work_world import WorkWorld, given_declaration, memory_stores

from tidemark.work.client import Work

pytestmark = pytest.mark.unit

PAGES = "name: pages\nkey: {page: text}\npayload: {revision: int}\nmax_failures: 1\nhistory: 7d\n"
EXECUTE = ("--execute", "--reason", "asked for", "--by", "ann")


@pytest.fixture
def house(installation, monkeypatch) -> WorkWorld:
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
    house = WorkWorld(memory_stores(), declared)
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


def test_i24_cancel_of_nothing_says_so_and_ends_with_1(run, house):
    for more in ((), EXECUTE):
        ended = run("work", "cancel", "pages", "page/42", *more)
        assert (ended.code, ended.out) == (1, "")
        assert ended.err == "pages/page/42: there is no such entry. Nothing was cancelled.\n"
    as_json = run("work", "cancel", "pages", "page/42", *EXECUTE, "--json")
    assert as_json.code == 1
    assert json.loads(as_json.out) == {
        "journal": "pages",
        "key": "page/42",
        "entry": None,
        "executed": False,
        "outcome": "gone",
    }
    assert house.parts.registry.deeds() == [], "nothing was done, so nothing is kept of it"


def test_i24_an_insert_that_expires_before_its_date_says_so(run, house):
    when = ("--process-in", "1h", "--expires-in", "1m")
    ended = run("work", "insert", "pages", "page/42", "--payload", '{"revision": 7}', *when)
    assert (ended.code, ended.out) == (0, "pages/page/42: expired.\n")
    assert house.stored("page/42") is None


def test_i24_entries_dead_letters_and_history_are_printed_in_one_form(run, house):
    inserted(run)
    (waiting,) = json.loads(run("work", "list", "pages", "--json").out)
    item = claimed(run)
    run("work", "fail", "pages", "page/42", item["token"], "--error", "no route")
    (dead,) = json.loads(run("work", "dead", "pages", "--json").out)
    (ended,) = json.loads(run("work", "history", "pages", "--json").out)
    assert waiting.keys() == dead.keys() == ended.keys()
    assert (waiting["status"], dead["status"], ended["status"]) == ("waiting", "dead", "failed")
    assert dead["ended"] == ended["ended"] == "2026-11-17T10:00:00.000+00:00"
    assert item["inserted"] == dead["inserted"] == waiting["inserted"]


def given_dead(run, *keys: str) -> None:
    for key in keys:
        inserted(run, key)
        run("work", "fail", "pages", key, claimed(run)["token"], "--error", "no route")


def test_i11_a_person_says_that_a_dead_letter_was_looked_at(run, house):
    given_dead(run, "page/42", "page/43")
    assert "2 dead letters (2 not looked at)" in run("work", "stats", "pages").out
    planned = run("work", "seen", "pages", "page/42")
    assert (planned.code, "Nothing was changed" in planned.out) == (0, True)
    assert run("work", "seen", "pages", "page/42", "--execute").code != 0
    assert run("work", "seen", "pages", "page/42", *EXECUTE).out.endswith("Done by ann.\n")
    (left,) = json.loads(run("work", "dead", "pages", "--unseen", "--json").out)
    assert left["key"] == "page/43"
    seen = {one["key"]: one["seen"] for one in json.loads(run("work", "dead", "pages", "--json").out)}
    assert seen["page/42"] == {"by": "ann", "at": "2026-11-17T10:00:00.000+00:00", "reason": "asked for"}
    assert "not yet" in run("work", "dead", "pages").out
    assert [deed.what for deed in house.parts.registry.deeds()] == ["seen page/42"]


def test_i11_all_dead_letters_at_once_and_then_none_is_left(run, house):
    given_dead(run, "page/42", "page/43")
    done = run("work", "seen", "pages", *EXECUTE, "--json")
    assert json.loads(done.out)["executed"] is True
    again = run("work", "seen", "pages", *EXECUTE)
    assert again.code == 1
    assert again.err == "pages: there is no dead letter left to look at. Nothing was changed.\n"


def test_i24_one_copy_on_three_nodes_is_warned_about(run, house, monkeypatch):
    monkeypatch.setattr(Work, "copies_warning", lambda self: "keyspace work has one copy")
    assert "  warning: keyspace work has one copy\n" in run("work", "stats", "pages").out
    assert json.loads(run("work", "stats", "pages", "--json").out)["warnings"] == [
        "keyspace work has one copy"
    ]


@pytest.mark.parametrize("warning", [None, "keyspace work has one copy"])
def test_i24_create_warns_about_one_copy_on_three_nodes(run, house, monkeypatch, warning):
    work = Work.of_journal(house.journal)
    monkeypatch.setattr(Work, "create", lambda declared, cassandra: (work, True))
    monkeypatch.setattr(Work, "copies_warning", lambda self: warning)
    monkeypatch.setenv("AIRFLOW_CONN_CASSANDRA_DEFAULT", "cassandra://127.0.0.1:1")
    ended = run("work", "create", "pages")
    assert (ended.code, ended.out) == (0, "pages: is as declared now.\n")
    assert ended.err == (f"warning: {warning}\n" if warning else "")
    assert json.loads(run("work", "create", "pages", "--json").out) == {
        "journal": "pages",
        "changed": True,
        "warnings": [warning] if warning else [],
    }


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
        (["seen", "pagse"], "Did you mean `pages`"),
        (["seen", "pages", "--execute"], "--reason"),
    ],
)
def test_wrong_input_is_refused_and_changes_nothing(run, house, arguments, said):
    ended = run("work", *arguments)
    assert ended.code != 0
    assert said in " ".join(ended.err.replace("│", " ").split())
    assert house.stored("k") is None
