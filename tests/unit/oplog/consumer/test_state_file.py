"""The state file: what it may have, and that one consumer has it alone."""

import subprocess
import sys
from pathlib import Path

import pytest

from tidemark.oplog.consumer.errors import (
    PositionNotSaved,
    StateFileDamaged,
    StateFileEmpty,
    StateFileInUse,
    StateFileUnusable,
)
from tidemark.oplog.consumer.in_flight import Position
from tidemark.oplog.consumer.state_file import StateFile

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("position", [Position("o1.abc.12"), Position("0"), Position("r1.x", reset=True)])
def test_a_position_is_read_as_it_was_saved(tmp_path, position):
    file = StateFile.open(tmp_path / "position")
    file.save(position)
    assert file.load() == position


def test_no_file_is_no_position(tmp_path):
    assert StateFile.open(tmp_path / "position").load() is None


@pytest.mark.parametrize("content", [b"", b"\n", b"  \n\n"])
def test_an_empty_file_is_an_error(tmp_path, content):
    (tmp_path / "position").write_bytes(content)
    with pytest.raises(StateFileEmpty):
        StateFile.open(tmp_path / "position").load()


@pytest.mark.parametrize(
    "content",
    [
        b"o1.abc",
        b"o1 abc\n",
        b"o1\nother\n",
        b"o1\nreset\nreset\n",
        b"\x00\x00\x00\x00\n",
        "é\n".encode(),
        b"x" * 40_000 + b"\n",
        b"\no1\n",
    ],
)
def test_anything_else_than_a_position_is_an_error(tmp_path, content):
    (tmp_path / "position").write_bytes(content)
    with pytest.raises(StateFileDamaged):
        StateFile.open(tmp_path / "position").load()


def test_a_file_that_was_cut_is_said_to_be(tmp_path):
    (tmp_path / "position").write_bytes(b"o1.abc.1")
    with pytest.raises(StateFileDamaged, match="was cut"):
        StateFile.open(tmp_path / "position").load()


def test_a_second_consumer_of_this_process_is_refused(tmp_path):
    first = StateFile.open(tmp_path / "position")
    with pytest.raises(StateFileInUse):
        StateFile.open(tmp_path / "position")
    first.close()
    StateFile.open(tmp_path / "position").close()


def test_a_second_name_of_the_file_is_the_same_file(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "position")
    first = StateFile.open(tmp_path / "position")
    with pytest.raises(StateFileInUse):
        StateFile.open(tmp_path / "link")
    first.close()


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "position")
    file = StateFile.open(tmp_path / "link")
    file.save(Position("o1"))
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "position").read_text() == "o1\n"


HOLDER = """
import sys
from tidemark.oplog.consumer.state_file import StateFile
file = StateFile.open(sys.argv[1])
print("held", flush=True)
sys.stdin.read()
"""


def test_a_second_process_is_refused_until_the_first_has_ended(tmp_path):
    path = str(tmp_path / "position")
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(StateFileInUse):
            StateFile.open(path)
        holder.kill()
        holder.wait()
        StateFile.open(path).close()


def test_a_folder_that_is_missing_is_an_error(tmp_path):
    with pytest.raises(StateFileUnusable):
        StateFile.open(tmp_path / "missing" / "position")


def test_a_folder_in_its_place_is_an_error(tmp_path):
    (tmp_path / "position").mkdir()
    with pytest.raises(StateFileUnusable):
        StateFile.open(tmp_path / "position").load()


def test_a_save_that_fails_keeps_the_file(tmp_path, monkeypatch):
    file = StateFile.open(tmp_path / "position")
    file.save(Position("old"))

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(PositionNotSaved, match="No space left"):
        file.save(Position("new"))
    assert file.load() == Position("old")
