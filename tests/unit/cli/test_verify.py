"""``tidemark verify``: what a person sees of writers' outputs, and what comes of a difference (item 7)."""

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from tests.support.command_line import EXECUTE, publish_two_bindings
from tests.support.found_in_memory import FoundInMemory, given_delivered
from tests.support.journal_samples import TOPIC, JournalWorld

from tidemark.app.open_pipeline import OpenPipeline
from tidemark.app.reconcile_idle import reconcile_idle
from tidemark.clock import wall_clock
from tidemark.delivery.binding_steps import write_parts_here
from tidemark.delivery.deliver import deliver_to
from tidemark.delivery.published_log import PublishedLog
from tidemark.delivery.state.lease import take
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause
from tidemark.pipeline.loader import find_pipeline
from tidemark.verification.journal.entities import verify_entities
from tidemark.verification.outputs.found import Extent
from tidemark.verification.outputs.reconcile import reconcile_now
from tidemark.writers.files.writer import FilesWriter

pytestmark = pytest.mark.unit

PLAIN = """
name: orders
source:
  kafka: {topics: ["orders"], format: raw}
writers:
  - {name: archive, kind: files, path: "${TIDEMARK_HOME}/archive", format: jsonl}
  - {name: later, kind: files, path: "${TIDEMARK_HOME}/later"}
"""


@pytest.fixture
def positions(installation, control, root, capsys) -> Positions:
    """Two published bindings, delivered to ``archive``; ``later`` never ran."""
    (installation / "include" / "pipelines" / "orders.yaml").write_text(PLAIN)
    publish_two_bindings(control, root)
    positions = Positions(control.consensus, "orders")
    writer = FilesWriter("orders", find_pipeline("orders").writers[0], str(root))
    log = PublishedLog.open(control, str(root))
    deliver_to(
        *(writer, log, positions, "run", write_parts_here),
        limit=1_000,
        reload=lambda: positions.load("archive"),
    )
    capsys.readouterr()  # what the delivery had to say
    return positions


def first_file(archive: Path) -> Path:
    return sorted(archive.glob("*.jsonl"))[0]


def cause(positions: Positions) -> Cause | None:
    state = positions.load("archive")
    return state.gate.cause if state and state.gate else None


def test_i07_everything_as_it_should_be(run, positions):
    ended = run("verify", "orders")
    assert (ended.code, ended.err) == (0, "")
    assert "orders/archive  2 files, 2 read whole; up to id 5" in ended.out
    assert "orders/later  nothing is delivered yet" in ended.out


def test_i07_a_removed_file_is_exit_code_1_and_closes_the_gate_and_a_resume_mends_it(run, positions, archive):
    gone, bytes_before = first_file(archive), first_file(archive).read_bytes()
    gone.unlink()
    ended = run("verify", "orders", "archive")
    assert ended.code == 1
    assert gone.name in ended.out
    assert "the file is missing" in ended.out
    assert "tidemark resume orders archive" in ended.out
    assert cause(positions) is Cause.VERIFICATION

    assert run("resume", "orders", "archive").code == 0
    assert (gone.read_bytes(), cause(positions)) == (bytes_before, None)
    assert run("verify", "orders", "archive").code == 0


def test_i07_json_names_what_is_different(run, positions, archive):
    gone = first_file(archive)
    gone.unlink()
    ended = run("verify", "orders", "archive", "--json")
    shown = json.loads(ended.out)
    (writer,) = shown["writers"]
    assert (ended.code, shown["clean"], writer["total"]) == (1, False, 1)
    (difference,) = writer["differences"]
    assert (difference["kind"], difference["where"], difference["last_id"]) == ("missing", gone.name, 2)


def test_i07_only_all_reads_every_file(run, positions, archive):
    both = sorted(archive.glob("*.jsonl"))
    for file in both:
        file.write_text(file.read_text().replace('"a"', '"x"'))
    assert run("verify", "orders", "archive", "--all", "--look").code == 1
    assert cause(positions) is None


def given_moved(installation: Path) -> None:
    """The file of the pipeline has another path for ``archive``."""
    moved = PLAIN.replace("/archive", "/elsewhere")
    (installation / "include" / "pipelines" / "orders.yaml").write_text(moved)


def test_a_path_that_was_edited_is_said_and_the_files_at_the_old_one_are_verified(
    run, installation, positions, archive
):
    given_moved(installation)
    ended = run("verify", "orders", "archive")
    assert (ended.code, cause(positions)) == (0, None)
    assert "orders/archive: the file differs from the active rendition" in ended.err
    assert "tidemark renditions build orders archive" in ended.err
    first_file(archive).unlink()
    assert run("verify", "orders", "archive").code == 1


def test_to_look_changes_nothing(run, positions, archive):
    first_file(archive).unlink()
    assert run("verify", "orders", "archive", "--look").code == 1
    assert cause(positions) is None


def test_a_gate_that_a_run_holds_is_not_closed_and_that_is_said(run, positions, archive):
    first_file(archive).unlink()
    state = positions.load("archive")
    take(positions, state, "orders.replicate run-7", wall_clock)
    ended = run("verify", "orders", "archive")
    assert (ended.code, cause(positions)) == (1, None)
    assert "Its gate was not closed: orders/archive: orders.replicate run-7 has this writer" in ended.out


def test_what_cannot_be_made_again_may_be_let_go(run, positions, archive):
    gone = first_file(archive)
    gone.unlink()
    run("verify", "orders", "archive")
    plan = run("verify", "orders", "archive", "--let-go")
    assert (plan.code, cause(positions)) == (0, Cause.VERIFICATION)
    assert f"{gone.name} is let go: no verification asks for it any more" in plan.out
    assert run("verify", "orders", "archive", "--let-go", *EXECUTE).code == 0
    assert (cause(positions), run("verify", "orders", "archive").code) == (None, 0)


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nowhere"], 1, "nowhere"),
        (["orders", "nobody"], 1, "there is no such writer; there is: archive, later."),
        (["orders", "archive", "--execute", "--reason", "x"], 2, "goes with --let-go only"),
        (["orders", "--let-go"], 2, "say of which writer"),
        (["orders", "archive", "--let-go"], 1, "no file of it is missing"),
        (["orders", "later", "--let-go"], 1, "it has delivered nothing yet"),
    ],
)
def test_what_cannot_be_meant_is_refused(run, positions, arguments, code, said):
    ended = run("verify", *arguments)
    assert ended.code == code
    assert said in ended.err


def test_letting_go_needs_a_reason(run, positions, archive):
    first_file(archive).unlink()
    assert run("verify", "orders", "archive", "--let-go", "--execute").code == 2


# What runs do


@pytest.fixture
def opened(positions) -> OpenPipeline:
    from tidemark.cli.open_pipeline import open_pipeline

    return open_pipeline("orders")


def test_i07_a_run_with_nothing_new_looks_at_names_and_sizes(opened, positions, archive):
    shown: list[str] = []
    assert reconcile_idle(opened, "run", shown.append) == []
    assert shown == ["orders/archive: 2 files, 0 read whole; up to id 5"]
    first_file(archive).unlink()
    (different,) = reconcile_idle(opened, "run", shown.append)
    assert "the file is missing" in different
    assert cause(positions) is Cause.VERIFICATION
    assert reconcile_idle(opened, "run", shown.append) == []


def test_a_run_with_nothing_new_says_that_a_path_was_edited_and_is_green(installation, positions):
    from tidemark.cli.open_pipeline import open_pipeline

    given_moved(installation)
    opened = open_pipeline("orders")
    (said,) = opened.differences()
    assert "orders/archive: the file differs" in said
    assert "path was" in said
    assert reconcile_idle(opened, "run", print) == []
    assert cause(positions) is None


def test_a_run_with_nothing_new_waits_for_no_lease(opened, positions, archive):
    first_file(archive).unlink()
    take(positions, positions.load("archive"), "orders.resume", wall_clock)
    shown: list[str] = []
    assert reconcile_idle(opened, "run", shown.append) == []
    assert "not reconciled" in shown[-1]


def test_i07_the_summary_of_a_delivery_says_what_was_compared(opened, positions):
    writer = opened.writer("archive")
    summary = reconcile_now(writer, opened.log, positions, Extent(1, after=2), "run")
    assert summary is not None
    assert (summary["position"], summary["passed"]) == (5, True)
    assert summary["looked_at"] == {"files": 2, "read whole": 1}


# A journal


JOURNAL = """
name: orders
source:
  kafka: {topics: ["orders"]}
writers:
  - {name: journal, kind: journal}
"""


@pytest.fixture
def journal(installation, positions, monkeypatch, capsys) -> JournalWorld:
    """A journal with two entities whose tables the command reads; Spark is stood in for by this process."""
    house = given_delivered("A1,2 j:A1", "D1")
    (installation / "include" / "pipelines" / "orders.yaml").write_text(JOURNAL)
    tables = FoundInMemory(house.journal)
    monkeypatch.setattr("tidemark.consensus.control_plane.look_at_cluster", lambda _: house.consensus)
    monkeypatch.setattr("tidemark.app.open_pipeline.OpenPipeline.log", house.log)
    monkeypatch.setattr("tidemark.journal_tables.reader.JournalReader.open", lambda *_: tables)
    monkeypatch.setattr("tidemark.cli.journal.verify.pipeline_spark", lambda *_: nullcontext())
    monkeypatch.setattr(
        "tidemark.spark.jobs.verify.verify_with_spark",
        lambda spark, writer, log, of, selection: verify_entities(writer, log, of, ["k", "j"]),
    )
    capsys.readouterr()  # what the delivery had to say
    return house


def test_i07_a_journal_is_proved_as_by_its_own_command_and_its_gate_stays_as_it_is(run, journal):
    assert "2 entities: 2 as the log says" in run("verify", "orders", "journal").out
    journal.journal.journal.delete_partition(("k", TOPIC, 0), 10**18)
    ended = run("verify", "orders", "--json")
    (found,) = json.loads(ended.out)["writers"]
    assert (ended.code, found["kind"], found["clean"]) == (1, "journal", False)
    assert found["differences"][0]["kind"] == "row missing"
    assert journal.gate(journal.process) is None
