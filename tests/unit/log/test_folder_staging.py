"""Where a folder's files wait for their names: replaced files, areas, leftovers, and folders of no use."""

import os
import shutil
from pathlib import Path

import pytest

from tidemark.log.errors import FolderUnusable, LogError
from tidemark.log.files.folder import Digesting, Folder

pytestmark = pytest.mark.unit


@pytest.fixture
def folder(tmp_path) -> Folder:
    return Folder("orders", str(tmp_path))


def files_in(root: Path) -> dict[str, bytes]:
    """Every file below a folder, staging included."""
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def areas_in(root: Path) -> set[str]:
    return {path.name for path in (root / "staging").iterdir()}


def given_leftover(root: Path, area: str) -> None:
    """What an attempt leaves that was killed while it wrote."""
    (root / "staging" / area).mkdir(parents=True)
    (root / "staging" / area / "0123abcd").write_bytes(b"torn")


# A file that takes another one's place


def test_a_file_is_replaced_whole(folder, tmp_path):
    folder.replace("audits/a", b"the first, which was longer")
    folder.replace("audits/a", b"second")
    assert files_in(tmp_path) == {"audits/a": b"second"}


def test_a_file_that_replaces_nothing_is_simply_there(folder, tmp_path):
    folder.replace("audits/a", b"first")
    assert files_in(tmp_path) == {"audits/a": b"first"}


def replace_and_fail(folder: Folder) -> None:
    with folder.stage(replacing=True) as staged:
        staged.sink.write(b"half of the sec")
        staged.settle("audits/a")
        raise KeyboardInterrupt


def test_an_error_while_replacing_leaves_the_old_file(folder, tmp_path):
    folder.replace("audits/a", b"first")
    with pytest.raises(KeyboardInterrupt):
        replace_and_fail(folder)
    assert files_in(tmp_path) == {"audits/a": b"first"}


# Areas


def test_a_file_waits_in_its_own_area(folder, tmp_path):
    with folder.stage("7") as staged:
        staged.sink.write(b"abc")
        (waiting,) = (path for path in tmp_path.rglob("*") if path.is_file())
        assert waiting.parent == tmp_path / "staging" / "7"


@pytest.mark.parametrize("write", [Folder.write_once, Folder.replace])
def test_a_small_file_waits_in_the_area_it_is_written_in(folder, tmp_path, write):
    write(folder, "files/a", b"abc", "7")
    assert areas_in(tmp_path) == {"7"}


def test_the_areas_that_are_over_are_swept_with_all_that_is_in_them(folder, tmp_path):
    for area in ("7", "8", "9"):
        given_leftover(tmp_path, area)
    folder.sweep(lambda area: area in ("7", "8"))
    assert files_in(tmp_path) == {"staging/9/0123abcd": b"torn"}
    assert areas_in(tmp_path) == {"9"}


def test_files_with_a_name_are_never_swept(folder, tmp_path):
    folder.write_once("files/a", b"abc", "7")
    folder.sweep(lambda area: True)
    assert files_in(tmp_path) == {"files/a": b"abc"}


def test_a_file_that_waits_in_no_area_is_never_swept(folder, tmp_path):
    with folder.stage() as staged:
        folder.sweep(lambda area: True)
        staged.settle("files/a")
    assert files_in(tmp_path) == {"files/a": b""}


def test_a_folder_that_was_never_written_to_has_nothing_to_sweep(folder, tmp_path):
    folder.sweep(lambda area: True)
    assert list(tmp_path.iterdir()) == []


def test_two_sweepers_do_not_disturb_each_other(folder, tmp_path):
    given_leftover(tmp_path, "7")

    def swept_by_another_in_the_meantime(area: str) -> bool:
        shutil.rmtree(tmp_path / "staging" / area)
        return True

    folder.sweep(swept_by_another_in_the_meantime)
    assert areas_in(tmp_path) == set()


# Folders of no use


def test_a_folder_that_cannot_be_made_is_refused_by_name(tmp_path):
    (tmp_path / "taken").write_bytes(b"somebody's")
    with pytest.raises(FolderUnusable, match=r"taken/log.* Not a directory") as refusal:
        Folder("orders", str(tmp_path / "taken" / "log")).write_once("files/a", b"abc")
    assert (refusal.value.pipeline, refusal.value.path) == ("orders", f"{tmp_path}/taken/log")


def test_a_folder_that_cannot_be_made_leaves_nothing(tmp_path):
    (tmp_path / "taken").write_bytes(b"somebody's")
    with pytest.raises(FolderUnusable):
        Folder("orders", str(tmp_path / "taken" / "log")).write_once("files/a", b"abc")
    assert files_in(tmp_path) == {"taken": b"somebody's"}


@pytest.mark.parametrize("write", [Folder.write_once, Folder.replace])
def test_a_root_that_is_a_file_is_refused_and_kept(tmp_path, write):
    (tmp_path / "taken").write_bytes(b"somebody's")
    with pytest.raises(FolderUnusable):
        write(Folder("orders", str(tmp_path / "taken")), "a", b"abc")
    assert files_in(tmp_path) == {"taken": b"somebody's"}


def test_a_final_name_that_cannot_be_had_is_refused_and_leaves_nothing(folder, tmp_path):
    (tmp_path / "files").write_bytes(b"somebody's")
    with pytest.raises(FolderUnusable, match="files"):
        folder.write_once("files/a", b"abc")
    assert files_in(tmp_path) == {"files": b"somebody's"}


def test_a_refused_folder_says_what_to_do(tmp_path):
    error = FolderUnusable("orders", "/log/orders", "Permission denied")
    assert isinstance(error, LogError)
    assert str(error) == (
        "orders: nothing can be written into /log/orders (Permission denied). Nothing was published or "
        "delivered. Make the folder writable for this user, or correct the path in the pipeline's file."
    )


def test_a_disk_that_is_full_is_said_by_the_folder_s_name(tmp_path):
    """/dev/full refuses every byte, as a full disk does."""

    folder = Folder("orders", str(tmp_path))
    with Path("/dev/full").open("wb", buffering=0) as sink, pytest.raises(FolderUnusable) as refusal:
        Digesting(sink, folder._blamed).write(b"x")
    assert str(refusal.value).startswith(
        f"orders: nothing can be written into {tmp_path} (No space left on device)."
    )


def test_a_file_and_its_folder_are_told_to_the_disk_before_the_file_counts(folder, tmp_path, monkeypatch):
    told = []
    monkeypatch.setattr(os, "fsync", lambda handle: told.append(Path(f"/proc/self/fd/{handle}").readlink()))
    folder.write_once("captured/1.json", b"{}")
    staged, parent = told
    assert staged.is_relative_to(tmp_path / "staging")
    assert parent == tmp_path / "captured"
