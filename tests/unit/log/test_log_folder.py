"""The folder of a log: what a capture produced, what its audit found, and which files are the log."""

from pathlib import Path

import pytest
from tests.support.log_samples import given_binding, given_finding, given_messages, write_file

from tidemark.log.errors import FileDamaged, FileMissing, ManifestDamaged
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model.audit_result import AuditRecord
from tidemark.log.model.captured import Captured, CapturedFile
from tidemark.log.model.manifest import Manifest

pytestmark = pytest.mark.unit

BINDING = given_binding(1_000_000, 103, ("orders", 1, 7, 10))


def write(folder: LogFolder) -> CapturedFile:
    return write_file(
        folder, BINDING, BINDING.slices[0], [given_messages(BINDING, "orders", 1, {7: b"a", 9: b"c"})]
    )


def files_in(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


# What a capture produced


def test_a_capture_that_has_not_finished_is_not_recorded(folder):
    assert folder.read_captured(1_000_000) is None


def test_a_capture_comes_back_from_its_record(folder):
    file = write(folder)
    folder.write_captured(Captured(1_000_000, (file,), 2))
    assert folder.read_captured(1_000_000) == Captured(1_000_000, (file,), 2)


def test_a_capture_without_messages_is_recorded_too(folder):
    folder.write_captured(Captured(1_000_000, (), 0))
    assert folder.read_captured(1_000_000) == Captured(1_000_000, (), 0)


def test_another_result_of_the_same_capture_is_refused(folder):
    folder.write_captured(Captured(1_000_000, (write(folder),), 2))
    with pytest.raises(FileDamaged, match=r"captured/00000000000001000000\.json"):
        folder.write_captured(Captured(1_000_000, (), 0))


def test_a_capture_has_the_digest_it_was_recorded_with(folder):
    captured = Captured(1_000_000, (write(folder),), 2)
    folder.write_captured(captured)
    assert folder.read_captured(1_000_000).digest == captured.digest


@pytest.mark.parametrize("other", [Captured(1_000_000, (), 0), Captured(1_000_001, (), 0)])
def test_another_capture_has_another_digest(folder, other):
    assert Captured(1_000_000, (write(folder),), 2).digest != other.digest


def test_a_capture_says_what_was_counted_beside_its_files(folder):
    captured = Captured(1_000_000, (write(folder),), 2)
    (file,), (counted,) = captured.files, captured.statistics
    assert (file.first_id, file.last_id, file.count) == (103, 105, 2)
    assert (counted.path, counted.width, counted.rows_written) == (file.path, 3, 2)


# What its audit found


def test_a_capture_that_was_not_audited_has_no_audit(folder):
    assert folder.read_audit(1_000_000) is None


def test_an_audit_comes_back_from_its_record(folder):
    audit = AuditRecord(1_000_000, "d" * 64, (given_finding("offsets grow", "1 does not", (103, 105)),))
    folder.write_audit(audit)
    assert folder.read_audit(1_000_000) == audit


def test_a_later_audit_takes_the_place_of_the_one_before(folder, tmp_path):
    bad = AuditRecord(1_000_000, "d" * 64, (given_finding("offsets grow", "1 does not", (103, 105)),))
    good = AuditRecord(1_000_000, "d" * 64, ())
    folder.write_audit(bad)
    folder.write_audit(good)
    assert folder.read_audit(1_000_000) == good
    assert files_in(tmp_path) == ["audits/00000000000001000000.json"]


def test_audits_of_different_bindings_do_not_meet(folder):
    folder.write_audit(AuditRecord(10, "a" * 64, ()))
    folder.write_audit(AuditRecord(20, "b" * 64, ()))
    assert folder.read_audit(10).captured == "a" * 64


# Manifests


def test_a_manifest_comes_back_by_path_and_digest(folder):
    manifest = Manifest("orders").with_binding(1_000_000, 105, [write(folder).file], 10**9)
    path, digest = folder.write_manifest(manifest)
    assert path == f"manifests/00000000000001000000-{digest[:12]}.json"
    assert folder.read_manifest(path, digest) == manifest


def test_manifests_of_the_same_t_do_not_meet(folder):
    one, _ = folder.write_manifest(Manifest("orders", t=10, end=4))
    other, _ = folder.write_manifest(Manifest("orders", t=10, end=5))
    assert one != other


def test_a_damaged_manifest_is_refused_by_name(folder, tmp_path):
    path, digest = folder.write_manifest(Manifest("orders", t=10, end=4))
    (tmp_path / path).write_bytes((tmp_path / path).read_bytes().replace(b'"end": 4', b'"end": 5'))
    with pytest.raises(ManifestDamaged, match=f"orders: manifest {tmp_path}/{path} is damaged") as refusal:
        folder.read_manifest(path, digest)
    assert refusal.value.expected == digest
    assert refusal.value.found != digest


def test_a_missing_manifest_is_refused_by_name(folder, tmp_path):
    with pytest.raises(FileMissing, match=f"orders: {tmp_path}/manifests/gone.json is missing"):
        folder.read_manifest("manifests/gone.json", "d" * 64)


# What attempts that were killed have left


def given_leftover(root: Path, area: str) -> None:
    (root / "staging" / area).mkdir(parents=True)
    (root / "staging" / area / "0123abcd").write_bytes(b"torn")


def test_leftovers_are_swept_up_to_a_binding_and_no_further(folder, tmp_path):
    for t in (900, 1_000, 1_001):
        given_leftover(tmp_path, f"{t:020d}")
    folder.sweep(1_000)
    assert files_in(tmp_path) == ["staging/00000000000000001001/0123abcd"]


def test_only_areas_of_bindings_are_swept(folder, tmp_path):
    given_leftover(tmp_path, "compaction")
    folder.sweep(1_000)
    assert files_in(tmp_path) == ["staging/compaction/0123abcd"]


def test_everything_of_a_binding_but_the_manifest_is_staged_in_the_binding_s_own_area(folder, tmp_path):
    captured = Captured(1_000_000, (write(folder),), 2)
    folder.write_captured(captured)
    folder.write_audit(AuditRecord(1_000_000, captured.digest, ()))
    folder.write_manifest(Manifest("orders", t=1_000_000, end=105))
    areas = sorted(path.name for path in (tmp_path / "staging").iterdir())
    assert areas == ["00000000000001000000", "manifests"]
