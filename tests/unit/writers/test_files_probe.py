"""Item 4: a files writer is reachable when a binding's file could get its name, not when staging works."""

from pathlib import Path

import pytest
from tests.support.pipeline_world import PipelineWorld

from tidemark.log.errors import FolderUnusable
from tidemark.log.files.folder import Folder

pytestmark = pytest.mark.unit

OTHER_DISK = Path("/dev/shm")
"""Another file system than that of temporary folders: nothing can be renamed from one to the other."""


@pytest.fixture
def house(tmp_path: Path) -> PipelineWorld:
    return PipelineWorld(tmp_path)


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("format_", ["parquet", "jsonl"])
def test_a_folder_that_takes_files_is_reachable_and_left_as_it_was(house, format_):
    (house.root / "archive").mkdir()
    (house.root / "archive" / "theirs.parquet").write_text("theirs")
    house.files_writer(format=format_).is_reachable()
    assert files_in(house.root / "archive") == ["theirs.parquet"]


def test_a_folder_that_is_gone_is_made_as_a_delivery_does(house):
    house.files_writer().is_reachable()
    assert files_in(house.root / "archive") == []


def test_a_folder_that_takes_staged_files_only_is_not_reachable(house, tmp_path_factory):
    """A file can be staged, and renaming it into the folder fails: as it would in a delivery."""
    archive = house.root / "archive"
    archive.mkdir()
    elsewhere = OTHER_DISK / tmp_path_factory.mktemp("elsewhere").name
    elsewhere.mkdir()
    try:
        (archive / "staging").symlink_to(elsewhere, target_is_directory=True)
        with pytest.raises(FolderUnusable, match="orders/archive"):
            house.files_writer().is_reachable()
        assert [path for path in archive.iterdir() if path.is_file()] == []
    finally:
        (archive / "staging").unlink()
        for path in sorted(elsewhere.rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() else path.unlink()
        elsewhere.rmdir()


def test_a_file_where_the_folder_should_be_is_not_reachable(house):
    (house.root / "archive").write_text("in the way")
    with pytest.raises(FolderUnusable):
        house.files_writer().is_reachable()
    assert (house.root / "archive").read_text() == "in the way"


def test_a_folder_that_may_not_be_written_to_is_not_reachable(house, monkeypatch):
    def refuse(self, path, final, digest, replacing):
        with self._blamed():
            raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Folder, "_settle", refuse)
    with pytest.raises(FolderUnusable, match="Permission denied"):
        house.files_writer().is_reachable()
    assert files_in(house.root / "archive") == []


def test_what_a_probe_that_was_killed_left_is_removed(house):
    (house.root / "archive").mkdir()
    (house.root / "archive" / "_reachable-1234.parquet").write_bytes(b"")
    house.files_writer().is_reachable()
    assert files_in(house.root / "archive") == []


def test_the_probe_is_taken_for_no_output(house):
    """An acknowledgement asks whether a message is in one of the folder's files."""
    house.publish(orders="abc")
    archive = house.files_writer()
    (house.root / "archive").mkdir()
    (house.root / "archive" / "_reachable-1234.parquet").write_bytes(b"")
    assert archive.refuses_acknowledgement({"id": 0}) is None
