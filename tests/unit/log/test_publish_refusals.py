"""publish: what was not audited, or is not what was recorded, does not become part of the log."""

from pathlib import Path

import pytest
from tests.support.log_samples import (
    FIRST,
    FIRST_VALUES,
    PUBLISHED_AT,
    SECOND,
    SECOND_VALUES,
    SEGMENT_BYTES,
    add_binding,
    capture,
    publish_all,
)

from tidemark.errors import TidemarkError
from tidemark.log.errors import FileDamaged, FileMissing, ManifestDamaged
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.publish import NotAudited, publish, read_log, require_audit
from tidemark.log.state.control import LogHead

pytestmark = pytest.mark.unit


def given_leftover(root: Path, t: int) -> Path:
    """What an attempt at this binding left when it was killed."""
    leftover = root / "staging" / f"{t:020d}" / "0123abcd"
    leftover.parent.mkdir(parents=True, exist_ok=True)
    leftover.write_bytes(b"torn")
    return leftover


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[10] ^= 1
    path.write_bytes(data)


# Without an audit


def test_a_capture_that_was_not_audited_is_refused(control, folder):
    capture(folder, FIRST, FIRST_VALUES, audited=False)
    with pytest.raises(NotAudited) as refusal:
        publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    assert (refusal.value.pipeline, refusal.value.t) == ("orders", 1_000)
    assert str(refusal.value) == (
        "orders: the capture of the binding at 1000 was not audited. Nothing was published. "
        "Clear the capture task of this run to do it again."
    )


def test_a_capture_that_was_not_audited_changes_nothing(control, folder, tmp_path):
    capture(folder, FIRST, FIRST_VALUES, audited=False)
    with pytest.raises(NotAudited):
        publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    assert (control.log_head(), control.log_gate()) == (LogHead(), None)
    assert not (tmp_path / "manifests").exists()


def test_the_audit_of_another_capture_counts_for_nothing(control, folder):
    capture(folder, FIRST, FIRST_VALUES, audited=False)
    folder.write_audit(AuditRecord(1_000, "d" * 64, ()))
    with pytest.raises(NotAudited):
        publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    assert control.log_head() == LogHead()


def test_the_audit_of_another_binding_counts_for_nothing(control, folder):
    captured = capture(folder, FIRST, FIRST_VALUES, audited=False)
    folder.write_audit(AuditRecord(2_000, captured.digest, ()))
    with pytest.raises(NotAudited):
        publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)


def test_a_capture_is_published_once_it_was_audited(control, folder):
    captured = capture(folder, FIRST, FIRST_VALUES, audited=False)
    with pytest.raises(NotAudited):
        publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    folder.write_audit(AuditRecord(1_000, captured.digest, ()))
    assert publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT).end == 4


def test_the_audit_that_lets_a_capture_through_is_shown(control, folder):
    captured = capture(folder, FIRST, FIRST_VALUES)
    assert require_audit(control, folder, FIRST, PUBLISHED_AT) == AuditRecord(1_000, captured.digest, ())


def test_a_missing_audit_is_for_a_person():
    assert issubclass(NotAudited, TidemarkError)


# Files that are not what was recorded


@pytest.mark.parametrize("number", [0, 1])
def test_a_missing_file_is_refused_by_name(control, folder, tmp_path, number):
    path = tmp_path / capture(folder, FIRST, FIRST_VALUES).files[number].path
    path.unlink()
    with pytest.raises(FileMissing, match=f"orders: {path} is missing"):
        publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    assert control.log_head() == LogHead()


@pytest.mark.parametrize("number", [0, 1])
def test_a_flipped_byte_is_refused_by_name(control, folder, tmp_path, number):
    path = tmp_path / capture(folder, FIRST, FIRST_VALUES).files[number].path
    flip(path)
    with pytest.raises(FileDamaged, match=f"orders: log file {path} is damaged"):
        publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    assert control.log_head() == LogHead()


def test_a_torn_file_is_refused(control, folder, tmp_path):
    path = tmp_path / capture(folder, FIRST, FIRST_VALUES).files[0].path
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(FileDamaged):
        publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    assert control.log_head() == LogHead()


def test_a_refused_file_leaves_no_manifest(control, folder, tmp_path):
    flip(tmp_path / capture(folder, FIRST, FIRST_VALUES).files[0].path)
    with pytest.raises(FileDamaged):
        publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    assert not (tmp_path / "manifests").exists()


def test_a_restored_file_is_published(control, folder, tmp_path):
    path = tmp_path / capture(folder, FIRST, FIRST_VALUES).files[0].path
    flip(path)
    with pytest.raises(FileDamaged):
        publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    flip(path)
    assert publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT).end == 4


# A damaged log


def test_a_damaged_manifest_is_refused_by_name(control, folder, tmp_path):
    publish_all(control, folder, {FIRST: FIRST_VALUES})
    path = tmp_path / control.log_head().manifest
    path.write_bytes(path.read_bytes().replace(b'"end": 4', b'"end": 3'))
    with pytest.raises(ManifestDamaged, match=f"orders: manifest {path} is damaged"):
        read_log(control, folder)


def test_nothing_is_published_on_top_of_a_damaged_manifest(control, folder, tmp_path):
    publish_all(control, folder, {FIRST: FIRST_VALUES})
    before = control.log_head()
    (tmp_path / before.manifest).write_bytes(b"{}")
    capture(folder, SECOND, SECOND_VALUES)
    with pytest.raises(ManifestDamaged):
        publish(control, folder, SECOND, SEGMENT_BYTES, PUBLISHED_AT)
    assert control.log_head() == before


def test_a_missing_manifest_is_refused_by_name(control, folder, tmp_path):
    publish_all(control, folder, {FIRST: FIRST_VALUES})
    path = tmp_path / control.log_head().manifest
    path.unlink()
    with pytest.raises(FileMissing, match=f"orders: {path} is missing"):
        read_log(control, folder)


# What killed attempts have left


def test_leftovers_of_a_published_binding_and_older_ones_are_swept(control, folder, tmp_path):
    leftovers = [given_leftover(tmp_path, t) for t in (500, 1_000)]
    publish_all(control, folder, {FIRST: FIRST_VALUES})
    assert [path.exists() for path in leftovers] == [False, False]


def test_what_an_unpublished_binding_is_being_written_from_stays(control, folder, tmp_path):
    waiting = given_leftover(tmp_path, 2_000)
    publish_all(control, folder, {FIRST: FIRST_VALUES})
    assert waiting.read_bytes() == b"torn"


def test_a_publication_that_is_refused_sweeps_nothing(control, folder, tmp_path):
    leftover = given_leftover(tmp_path, 1_000)
    capture(folder, FIRST, FIRST_VALUES, audited=False)
    with pytest.raises(NotAudited):
        publish(control, folder, FIRST, SEGMENT_BYTES, PUBLISHED_AT)
    assert leftover.exists()


def test_leftovers_of_a_binding_are_swept_at_the_latest_by_the_next_one(control, folder, tmp_path):
    publish_all(control, folder, {FIRST: FIRST_VALUES})
    leftover = given_leftover(tmp_path, 1_000)
    add_binding(control, SECOND)
    capture(folder, SECOND, SECOND_VALUES)
    publish(control, folder, SECOND, SEGMENT_BYTES, PUBLISHED_AT)
    assert not leftover.exists()
