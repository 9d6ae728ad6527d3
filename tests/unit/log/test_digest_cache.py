"""A file is read to be verified once a process, unless it was touched."""

import os
import time
from pathlib import Path

import pytest
from tests.support.log_samples import FIRST, FIRST_VALUES, capture

from tidemark.log.errors import FileDamaged, FileMissing
from tidemark.log.files import digest_cache
from tidemark.log.files.digest_cache import SETTLED, FileStamp, VerifiedFiles
from tidemark.log.files.parquet import LogFolder

pytestmark = pytest.mark.unit

OLD = FileStamp(10, 1_000)
NOW = SETTLED * 5


class Counted:
    def __init__(self, most: int = 10) -> None:
        self.files, self.count = VerifiedFiles(most, clock=lambda: NOW), 0

    def verify(self) -> None:
        self.count += 1

    def ensure(self, path: str = "a", digest: str = "d", condition: FileStamp = OLD) -> int:
        self.files.ensure(path, digest, condition, self.verify)
        return self.count


def test_the_first_time_a_file_is_always_verified():
    assert Counted().ensure() == 1


def test_what_was_found_right_is_believed():
    counted = Counted()
    assert [counted.ensure() for _ in range(3)] == [1, 1, 1]


@pytest.mark.parametrize(
    "other",
    [
        {"condition": FileStamp(11, 1_000)},
        {"condition": FileStamp(10, 1_001)},
        {"digest": "e"},
        {"path": "b"},
    ],
    ids=["another size", "touched", "another digest", "another file"],
)
def test_whatever_is_different_is_verified_anew(other):
    counted = Counted()
    counted.ensure()
    assert counted.ensure(**other) == 2


def test_a_damaged_file_is_never_believed():
    files = VerifiedFiles(clock=lambda: NOW)

    def refuse() -> None:
        raise FileDamaged("orders", "a", "d", "e")

    for _ in range(2):
        with pytest.raises(FileDamaged):
            files.ensure("a", "d", OLD, refuse)


@pytest.mark.parametrize("changed_at", [NOW - SETTLED + 1, NOW + 1, None], ids=["lately", "later", "unknown"])
def test_a_file_whose_next_change_might_not_show_is_verified_each_time(changed_at):
    counted = Counted()
    assert [counted.ensure(condition=FileStamp(10, changed_at)) for _ in range(2)] == [1, 2]


def test_only_so_many_are_remembered_the_latest():
    counted = Counted(most=2)
    for path in "abac":
        counted.ensure(path)
    assert counted.ensure("a") == 3
    assert counted.ensure("b") == 4


def settle(path: Path) -> None:
    """Let a file be old enough."""
    past = time.time_ns() - 10 * SETTLED
    os.utime(path, ns=(past, past))


def test_a_file_of_many_bindings_is_digested_once(folder: LogFolder, tmp_path, monkeypatch):
    monkeypatch.setattr("tidemark.log.files.parquet.VERIFIED", VerifiedFiles())
    file = capture(folder, FIRST, FIRST_VALUES).files[0]
    settle(tmp_path / file.path)
    digested = []
    verify = LogFolder.verify
    monkeypatch.setattr(LogFolder, "verify", lambda self, one: (digested.append(one), verify(self, one)))
    for id_ in range(3):
        again = LogFolder("orders", str(tmp_path))
        assert [b["id"].to_pylist() for b in again.read_file(file, ["id"], id_, id_)] == [[id_]]
    assert len(digested) == 1


def test_a_file_that_was_damaged_after_it_was_read_is_refused(folder: LogFolder, tmp_path, monkeypatch):
    monkeypatch.setattr("tidemark.log.files.parquet.VERIFIED", VerifiedFiles())
    file = capture(folder, FIRST, FIRST_VALUES).files[0]
    path = tmp_path / file.path
    settle(path)
    list(folder.read_file(file))
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)
    with pytest.raises(FileDamaged):
        list(folder.read_file(file))
    path.unlink()
    with pytest.raises(FileMissing):
        list(folder.read_file(file))


def test_a_process_remembers_in_one_place():
    assert isinstance(digest_cache.VERIFIED, VerifiedFiles)
