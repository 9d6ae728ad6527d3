"""``tidemark services``: the parts that start nothing."""

import json

import pytest

pytestmark = pytest.mark.unit


def test_nothing_has_been_started_in_a_new_home(run, installation):
    ended = run("services", "status", "--json")
    whole = json.loads(ended.out)
    assert whole["home"] == f"{installation}/.tidemark"
    assert {line["status"] for line in whole["services"]} <= {"stopped"}


def test_cleaning_a_home_that_does_not_exist_removes_nothing(run, installation):
    ended = run("services", "clean")
    assert (ended.code, ended.err) == (0, "")
    assert "nothing to remove" in ended.out.lower()
    assert not (installation / ".tidemark").exists()


def test_cleaning_says_what_it_would_do_and_does_nothing(run, installation):
    home = installation / ".tidemark"
    home.mkdir()
    (home / ".tidemark-home").touch()
    (home / "data").write_bytes(b"precious")
    ended = run("services", "clean")
    assert ended.code == 0
    assert f"Remove: {home}" in ended.out
    assert ended.out.endswith("Nothing was changed. Add --execute to do it.\n")
    assert (home / "data").read_bytes() == b"precious"


def test_a_folder_that_is_not_ours_is_not_removed(run, installation):
    home = installation / ".tidemark"
    home.mkdir()
    (home / "data").write_bytes(b"precious")
    ended = run("services", "clean", "--execute")
    assert ended.code == 1
    assert (home / "data").read_bytes() == b"precious"


@pytest.mark.parametrize(
    "arguments", [("up", "--only", "kafak"), ("down", "--only", "kafak"), ("logs", "kafak")]
)
def test_an_unknown_service_is_one_sentence(run, installation, arguments):
    ended = run("services", *arguments)
    assert ended.code == 1
    assert "kafak" in ended.err
    assert "Traceback" not in ended.err
    assert not (installation / ".tidemark").exists()
