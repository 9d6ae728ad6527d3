"""A folder whose files appear whole, once, and never change."""

from pathlib import Path

import pytest

from tidemark.log.errors import FileDamaged, FileMissing
from tidemark.log.files.folder import Folder

pytestmark = pytest.mark.unit

SHA_OF_ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


@pytest.fixture
def folder(tmp_path) -> Folder:
    return Folder("orders", str(tmp_path))


def files_in(root: Path) -> dict[str, bytes]:
    """Every file below a folder, staging included."""
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


def fail_while_writing(folder: Folder, error: type[BaseException]) -> None:
    with folder.stage() as staged:
        staged.sink.write(b"ab")
        staged.settle("files/a")
        raise error


def test_a_file_has_its_final_name_when_the_block_ends(folder, tmp_path):
    folder.write_once("files/a", b"abc")
    assert files_in(tmp_path) == {"files/a": b"abc"}


def test_a_file_has_no_final_name_before_the_block_ends(folder):
    with folder.stage() as staged:
        staged.sink.write(b"abc")
        staged.settle("files/a")
        assert not folder.exists("files/a")


def test_a_file_that_is_never_settled_disappears(folder, tmp_path):
    with folder.stage() as staged:
        staged.sink.write(b"abc")
    assert files_in(tmp_path) == {}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_while_writing_leaves_nothing(folder, tmp_path, error):
    with pytest.raises(error):
        fail_while_writing(folder, error)
    assert files_in(tmp_path) == {}


def test_the_sink_knows_size_and_digest_of_what_went_through_it(folder):
    with folder.stage() as staged:
        staged.sink.write(b"a")
        staged.sink.write(memoryview(b"bc"))
    assert (staged.sink.size, staged.sink.digest) == (3, SHA_OF_ABC)


def test_two_attempts_at_once_do_not_write_to_the_same_file(folder, tmp_path):
    with folder.stage() as one, folder.stage() as other:
        one.sink.write(b"abc")
        other.sink.write(b"abc")
        one.settle("files/a")
        other.settle("files/a")
    assert files_in(tmp_path) == {"files/a": b"abc"}


def test_a_file_that_is_there_with_the_same_content_is_kept(folder, tmp_path):
    folder.write_once("files/a", b"abc")
    before = (tmp_path / "files/a").stat()
    folder.write_once("files/a", b"abc")
    after = (tmp_path / "files/a").stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


def test_a_file_that_is_kept_leaves_no_second_copy(folder, tmp_path):
    folder.write_once("files/a", b"abc")
    folder.write_once("files/a", b"abc")
    assert files_in(tmp_path) == {"files/a": b"abc"}


def test_other_content_under_the_same_name_is_refused(folder):
    folder.write_once("files/a", b"abc")
    with pytest.raises(FileDamaged):
        folder.write_once("files/a", b"other")


def test_a_refusal_leaves_the_old_file_as_it_was(folder, tmp_path):
    folder.write_once("files/a", b"abc")
    with pytest.raises(FileDamaged):
        folder.write_once("files/a", b"other")
    assert (tmp_path / "files/a").read_bytes() == b"abc"


def test_a_refusal_leaves_nothing_in_staging(folder, tmp_path):
    folder.write_once("files/a", b"abc")
    with pytest.raises(FileDamaged):
        folder.write_once("files/a", b"other")
    assert list(files_in(tmp_path)) == ["files/a"]


def test_a_file_as_recorded_passes(folder):
    folder.write_once("files/a", b"abc")
    folder.verify("files/a", SHA_OF_ABC)


def test_a_flipped_byte_is_refused_by_name_and_digests(folder, tmp_path):
    folder.write_once("files/a", b"abc")
    (tmp_path / "files/a").write_bytes(b"abd")
    with pytest.raises(FileDamaged) as refusal:
        folder.verify("files/a", SHA_OF_ABC)
    assert (refusal.value.pipeline, refusal.value.path) == ("orders", f"{tmp_path}/files/a")
    assert (refusal.value.expected, refusal.value.found[:12]) == (SHA_OF_ABC, "a52d159f262b")
    assert f"{tmp_path}/files/a is damaged (digest a52d159f262b instead of ba7816bf8f01)" in str(
        refusal.value
    )


def test_a_torn_file_is_refused(folder, tmp_path):
    folder.write_once("files/a", b"abc")
    (tmp_path / "files/a").write_bytes(b"ab")
    with pytest.raises(FileDamaged):
        folder.verify("files/a", SHA_OF_ABC)


@pytest.mark.parametrize("use", [lambda f: f.verify("files/a", SHA_OF_ABC), lambda f: f.read("files/a")])
def test_a_missing_file_is_refused_by_name(folder, tmp_path, use):
    with pytest.raises(FileMissing, match=f"orders: {tmp_path}/files/a is missing") as refusal:
        use(folder)
    assert (refusal.value.pipeline, refusal.value.path) == ("orders", f"{tmp_path}/files/a")


@pytest.mark.parametrize("use", [lambda f: f.verify("files/a", SHA_OF_ABC), lambda f: f.read("files/a")])
def test_a_file_below_something_that_is_no_folder_is_refused_by_name(folder, tmp_path, use):
    (tmp_path / "files").write_bytes(b"somebody's")
    with pytest.raises(FileMissing, match=f"orders: {tmp_path}/files/a is missing"):
        use(folder)


def test_a_file_larger_than_one_read_is_verified_whole(folder, tmp_path):
    data = bytes(1 << 20) + b"the end"
    with folder.stage() as staged:
        staged.sink.write(data)
        staged.settle("files/a")
    folder.verify("files/a", staged.sink.digest)
    (tmp_path / "files/a").write_bytes(data[:-1] + b"?")
    with pytest.raises(FileDamaged):
        folder.verify("files/a", staged.sink.digest)


def test_a_folder_is_not_a_file(folder):
    folder.write_once("files/a", b"abc")
    assert not folder.exists("files")


@pytest.mark.parametrize("scheme", ["file://", "file:"])
def test_a_uri_names_the_same_folder_as_its_path(tmp_path, scheme):
    Folder("orders", f"{scheme}{tmp_path}").write_once("files/a", b"abc")
    assert files_in(tmp_path) == {"files/a": b"abc"}
