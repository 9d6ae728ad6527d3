"""Lists in a log's folder: written once, read where they are needed, refused where they are damaged."""

import json
import pickle
from pathlib import Path

import pytest
from tests.support.clocks import Clock
from tests.support.fault_points import REPLICATE
from tests.support.faults import Killed
from tests.support.log_samples import PUBLISHED_AT, add_binding, capture, compact, given_binding

from tidemark.consensus.memory import MemoryConsensus
from tidemark.faults import FaultPoint
from tidemark.log.errors import FileMissing, ListDamaged
from tidemark.log.files.parquet import LogFolder
from tidemark.log.model import segment_list
from tidemark.log.model.manifest import ListLine, Manifest, digest_of
from tidemark.log.publish import publish, read_log
from tidemark.log.read import select
from tidemark.log.state.control import LogControl, LogHead
from tidemark.log.state.readers import Reading, readers
from tidemark.log.sweep import look_for_orphans, sweep_log
from tidemark.log.verify import LogVerifier

pytestmark = pytest.mark.unit

BINDINGS = [
    given_binding(1_000 * (n + 1), 2 * n, ("orders", 0, 2 * n, 2 * n + 2), run_id=f"run-{n}")
    for n in range(9)
]


@pytest.fixture
def control(monkeypatch) -> LogControl:
    monkeypatch.setattr(segment_list, "FANOUT", 2)
    return LogControl(MemoryConsensus(), "orders")


@pytest.fixture
def folder(tmp_path) -> LogFolder:
    return LogFolder("orders", str(tmp_path))


def publish_bindings(control: LogControl, folder: LogFolder, count: int = 9) -> None:
    """A segment for each binding: eight closed ones, in lists and indexes."""
    for binding in BINDINGS[:count]:
        capture_binding(control, folder, binding)
        publish(control, folder, binding, 1, PUBLISHED_AT)


def capture_binding(control: LogControl, folder: LogFolder, binding) -> None:
    add_binding(control, binding)
    base = binding.slices[0].lower
    capture(folder, binding, {("orders", 0): {base: b"a", base + 1: b"b"}})


def ids(manifest: Manifest, root: str, **which) -> list[int]:
    return [
        id_ for batch in select(manifest, root, **which).batches(["id"]) for id_ in batch["id"].to_pylist()
    ]


def problems(control: LogControl, root: str) -> list[str]:
    verifier = LogVerifier(control, LogFolder("orders", root))
    list(verifier.files())
    return list(verifier.conclude().problems)


def leaf(manifest: Manifest) -> ListLine:
    found = next(manifest.leaves())
    assert isinstance(found, ListLine)
    return found


def index(manifest: Manifest) -> ListLine:
    found = manifest.closed[0]
    assert isinstance(found, ListLine)
    assert found.level
    return found


def test_a_log_with_lists_is_read_and_right(control, folder):
    publish_bindings(control, folder)
    log = read_log(control, folder)
    assert ids(log, folder.root) == list(range(18))
    assert ids(log, folder.root, t=3_000, first_id=4) == [4, 5]
    assert problems(control, folder.root) == []
    head = control.log_head()
    assert (head.segments, head.count) == (9, 18)


def test_the_name_of_a_list_has_the_time_of_its_publication_and_an_attempt(control, folder, tmp_path):
    publish_bindings(control, folder, 2)
    (name,) = [path.name for path in (tmp_path / "lists").iterdir()]
    assert name.startswith("00000000000000002000-")


@pytest.mark.parametrize("which", [leaf, index])
def test_a_missing_list_is_refused_by_its_name(control, folder, tmp_path, which):
    publish_bindings(control, folder)
    line = which(read_log(control, folder))
    (tmp_path / line.path).unlink()
    log = read_log(control, LogFolder("orders", folder.root))
    with pytest.raises(FileMissing, match=line.path):
        list(log.files)
    assert any(line.path in problem for problem in problems(control, folder.root))
    # What does not need it is read: publication, and the newest binding.
    assert log.files_of(BINDINGS[-1])


@pytest.mark.parametrize("which", [leaf, index])
def test_a_torn_list_is_refused_by_its_name(control, folder, tmp_path, which):
    publish_bindings(control, folder)
    line = which(read_log(control, folder))
    (tmp_path / line.path).write_bytes((tmp_path / line.path).read_bytes()[:-20])
    with pytest.raises(ListDamaged, match=line.path):
        list(read_log(control, LogFolder("orders", folder.root)).files)
    assert any("is damaged" in problem and line.path in problem for problem in problems(control, folder.root))


def test_a_line_with_other_totals_than_its_list_is_told(control, folder):
    publish_bindings(control, folder)
    log = read_log(control, folder)
    wrong = index(log)
    row = {**wrong.to_row(), "count": 5, "last_id": 1_000}
    changed = Manifest(
        log.pipeline, (ListLine(**row), *log.closed[1:]), log.active, log.t, log.end, lists=log.lists
    )
    head = control.log_head()
    control.replace_log(head.version, LogHead.naming(changed, *folder.write_manifest(changed)))
    said = problems(control, folder.root)
    assert any("count" in problem and wrong.path in problem for problem in said)
    assert any("last_id" in problem and wrong.path in problem for problem in said)


def test_a_sweep_of_a_log_whose_list_is_missing_removes_nothing(control, folder, tmp_path):
    publish_bindings(control, folder)
    (tmp_path / leaf(read_log(control, folder)).path).unlink()
    with pytest.raises(FileMissing):
        sweep_log(control, LogFolder("orders", folder.root), "sweep", 0, Clock())
    assert len(list((tmp_path / "files").iterdir())) == 9


def test_a_sweep_keeps_every_list_that_the_log_needs(control, folder):
    publish_bindings(control, folder)
    clock = Clock()
    sweep_log(control, folder, "sweep", 0, clock)
    assert ids(read_log(control, LogFolder("orders", folder.root)), folder.root) == list(range(18))


def test_lists_of_a_publication_that_was_killed_are_orphans_only_after_it(control, folder, kill_at, tmp_path):
    publish_bindings(control, folder, 2)
    capture_binding(control, folder, BINDINGS[2])
    kill_at(FaultPoint.PUBLISH_LISTS_WRITTEN)
    with pytest.raises(Killed):
        publish(control, folder, BINDINGS[2], 1, PUBLISHED_AT)
    lost = {f"lists/{path.name}" for path in (tmp_path / "lists").iterdir() if "3000-" in path.name}
    assert len(lost) == 1
    assert not lost & {orphan.path for orphan in orphans(control, folder)}
    publish(control, folder, BINDINGS[2], 1, PUBLISHED_AT)
    assert lost <= {orphan.path for orphan in orphans(control, folder)}
    sweep_log(control, folder, "sweep", 0, Clock())
    assert not any((tmp_path / path).exists() for path in lost)
    assert ids(read_log(control, LogFolder("orders", folder.root)), folder.root) == list(range(6))


def orphans(control: LogControl, folder: LogFolder):
    found = look_for_orphans(control, folder, 0, Clock()())
    return (*found.removed, *found.waiting)


def test_lists_that_a_readers_manifest_names_are_kept(control, folder, tmp_path):
    publish_bindings(control, folder)
    clock = Clock()
    Reading(control, "reader", clock).take_up()
    opened = read_log(control, folder)
    compact(control, folder, below=18)
    sweep_log(control, folder, "sweep", 0, clock)
    (reader,) = readers(control, 0)
    kept = LogFolder("orders", folder.root).read_older_manifest(reader.manifests[0])
    assert kept is not None
    assert [file.path for file in kept.files] == [file.path for file in opened.files]


def test_opening_a_log_and_its_newest_binding_read_no_list(control, folder, tmp_path):
    publish_bindings(control, folder)
    for path in (tmp_path / "lists").iterdir():
        path.unlink()
    log = read_log(control, LogFolder("orders", folder.root))
    assert (log.count, log.segment_count, len(log.files_of(BINDINGS[-1]))) == (18, 9, 1)
    late = given_binding(50_000, 18, ("orders", 0, 18, 20), run_id="late")
    capture_binding(control, folder, late)
    assert publish(control, LogFolder("orders", folder.root), late, 10**9, PUBLISHED_AT).count == 20


def test_a_log_of_the_first_form_is_upgraded_by_the_next_publication(control, folder, tmp_path):
    publish_bindings(control, folder, 8)
    log = read_log(control, folder)
    rows = [{"files": [file.to_row() for file in segment.files]} for segment in log.segments]
    old = old_form(control, folder, {"segments": rows, "t": log.t, "end": log.end})
    for path in (tmp_path / "lists").iterdir():
        path.unlink()
    assert ids(old, folder.root) == list(range(16))
    capture_binding(control, folder, BINDINGS[8])
    publish(control, folder, BINDINGS[8], 1, PUBLISHED_AT)
    new = read_log(control, LogFolder("orders", folder.root))
    assert all(isinstance(part, ListLine) for part in new.closed)
    assert ids(new, folder.root) == list(range(18))
    assert problems(control, folder.root) == []


@pytest.mark.parametrize("has_other_manifest", [False, True])
def test_an_upgrade_that_loses_races_writes_every_list_once(
    control, folder, tmp_path, monkeypatch, has_other_manifest
):
    publish_bindings(control, folder, 8)
    log = read_log(control, folder)
    rows = [{"files": [file.to_row() for file in segment.files]} for segment in log.segments]
    body = {"segments": rows, "t": log.t, "end": log.end}
    old_form(control, folder, body)
    for path in (tmp_path / "lists").iterdir():
        path.unlink()
    real, races = LogControl.replace_log, []

    def replace_log(self, expected, head):
        if len(races) < 3:
            races.append(head.manifest)
            monkeypatch.setattr(LogControl, "replace_log", real)
            if has_other_manifest:
                old_form(control, folder, {**body, "compacted_below": len(races)})
            else:
                Reading(control, "reader").take_up()
            monkeypatch.setattr(LogControl, "replace_log", replace_log)
        return real(self, expected, head)

    capture_binding(control, folder, BINDINGS[8])
    monkeypatch.setattr(LogControl, "replace_log", replace_log)
    publish(control, folder, BINDINGS[8], 1, PUBLISHED_AT)
    assert len(set(races)) == (3 if has_other_manifest else 1)
    new = read_log(control, LogFolder("orders", folder.root))
    assert ids(new, folder.root, allow_compacted=True) == list(range(18))
    orphans = look_for_orphans(control, folder, 0, 1).removed
    assert [one.path for one in orphans if one.path.startswith("lists/")] == []


def old_form(control: LogControl, folder: LogFolder, body: dict) -> Manifest:
    data = json.dumps({"pipeline": "orders", "compacted_below": 0, **body}, indent=1).encode()
    digest = digest_of(data)
    path = f"manifests/{body['t']:020d}-{digest[:12]}.json"
    Path(folder.root, path).write_bytes(data)
    head = control.log_head()
    control.replace_log(head.version, LogHead(manifest=path, digest=digest, t=body["t"], end=body["end"]))
    return read_log(control, folder)


def test_a_manifest_can_be_sent_to_another_process(control, folder):
    publish_bindings(control, folder)
    log = read_log(control, folder)
    assert list(pickle.loads(pickle.dumps(log)).files) == list(log.files)


def test_the_points_of_publication_include_its_lists():
    assert FaultPoint.PUBLISH_LISTS_WRITTEN in REPLICATE
