"""Pipelines whose file is gone: listed, looked at, and forgotten (item 13)."""

import json

import pytest
from tests.support.command_line import ORDERS
from tests.support.log_samples import given_binding, publish_all

from tidemark.clock import wall_clock
from tidemark.delivery.state.lease import take
from tidemark.delivery.state.positions import Positions
from tidemark.delivery.state.writer_state import Cause, WriterGate
from tidemark.log.files.parquet import LogFolder

pytestmark = pytest.mark.unit

EXECUTE = ("--execute", "--reason", "the shop is closed", "--by", "ann")


@pytest.fixture
def positions(installation, control, root, monkeypatch) -> Positions:
    """A published log and a stopped writer; the pipeline's file is gone."""
    monkeypatch.setattr(
        "tidemark.delivery.operator.forget_pipeline.LetterTableCleanup._execute", lambda *_: 0
    )
    binding = given_binding(1_000_000, 0, ("orders", 0, 0, 3))
    messages = {("orders", 0): {0: b"a", 1: b"b", 2: b"c"}}
    publish_all(control, LogFolder("orders", str(root)), {binding: messages})
    positions = Positions(control._consensus, "orders")
    hold = take(positions, positions.register("archive", {"kind": "files"}), "orders.replicate run-1")
    hold.commit(0, {"orders": 0}, WriterGate(Cause.TARGET, 1, 2, 2, "OSError: no space", wall_clock()))
    hold.release()
    (installation / "include/pipelines/orders.yaml").unlink()
    return positions


# Looking


def test_i13_the_list_shows_pipelines_that_only_the_control_plane_knows(run, positions):
    ended = run("pipelines")
    assert (ended.code, ended.err) == (0, "")
    assert "orders (no file)" in ended.out
    assert "archive (files)" in ended.out


def test_i13_the_list_as_json_has_them_with_their_logs(run, positions, root):
    listed = json.loads(run("pipelines", "--json").out)
    assert (listed["pipelines"], listed["orphans_unknown"]) == ([], None)
    assert listed["orphans"] == [{"name": "orders", "end": 2, "writers": ["archive"], "log": str(root)}]


def test_a_list_without_a_control_plane_says_what_is_missing(run):
    ended = run("pipelines")
    assert ended.code == 0
    assert ended.err.startswith(
        "Pipelines without a file are not listed: Connection cassandra_default: is not"
    )
    listed = json.loads(run("pipelines", "--json").out)
    assert (listed["orphans"], "cassandra_default" in listed["orphans_unknown"]) == (None, True)


def test_i13_gate_show_works_without_a_file(run, positions):
    ended = run("gate", "show", "orders")
    assert (ended.code, ended.err) == (0, "")
    assert "orders/archive (no file): stopped at ids 1 to 2 (target): OSError: no space" in ended.out
    assert "tidemark pipelines forget orders" in ended.out
    assert "tidemark resume" not in ended.out
    shown = json.loads(run("gate", "show", "orders", "archive", "--json").out)
    assert (shown["gate"], shown["declared"]) == ("stopped", False)


def test_gate_show_of_a_writer_that_nothing_knows_is_refused(run, positions):
    ended = run("gate", "show", "orders", "archiv")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("orders/archiv: there is no such writer; there is: archive.")


def test_i13_offsets_list_works_without_a_file(run, positions):
    (archive,) = json.loads(run("offsets", "list", "orders", "--json").out)
    assert (archive["name"], archive["position"], archive["lag"], archive["retired"]) == (
        "archive",
        0,
        2,
        True,
    )
    one = json.loads(run("offsets", "list", "orders", "archive", "--json").out)
    assert (one["position"], one["namespaces"]) == (0, {"orders": 0})


def test_i13_offsets_forget_works_without_a_file_and_without_the_log(run, positions, root):
    for path in root.rglob("*.json"):
        path.unlink()
    assert run("offsets", "forget", "orders", "archive").code == 0
    assert positions.load("archive") is not None
    assert run("offsets", "forget", "orders", "archive", *EXECUTE).code == 0
    assert positions.load("archive") is None


# Forgetting


def test_i13_the_plan_of_forgetting_changes_nothing(run, positions, control, root):
    ended = run("pipelines", "forget", "orders")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == [
        "orders: forget",
        "  writer archive: position 0, gate and offset log are removed; its output stays",
        "  bindings of orders are removed: a new pipeline of this name begins anew",
        f"  the log's files in {root} stay (3 messages, ids to 2): a new pipeline needs another log.path. "
        "Remove them too with --log",
        'Nothing was changed. Add --execute --reason "…" to do it.',
    ]
    assert (control.log_head().end, positions.load("archive").position) == (2, 0)


def test_i13_forgetting_removes_the_state_and_leaves_the_log_s_files(run, positions, control, root):
    ended = run("pipelines", "forget", "orders", *EXECUTE)
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "Done by ann.")
    assert (control.log_head().end, positions.load("archive")) == (-1, None)
    assert list(root.glob("files/*.parquet"))
    assert json.loads(run("pipelines", "--json").out)["orphans"] == []
    assert run("status").out == ""
    assert run("status", "orders").code == 1


def test_i13_the_log_goes_too_where_that_is_asked_for(run, positions, control, root):
    plan = json.loads(run("pipelines", "forget", "orders", "--log", "--json").out)
    assert (plan["log"], plan["executed"], plan["files"] > 1) == (str(root), False, True)
    assert run("pipelines", "forget", "orders", "--log", *EXECUTE).code == 0
    assert not root.exists()


def test_what_was_done_stays_on_record(run, positions, control):
    run("pipelines", "forget", "orders", *EXECUTE)
    (decision,) = control.decisions()
    assert (decision.what, decision.who, decision.reason) == ("forget", "ann", "the shop is closed")
    assert [deed.what for deed in positions.deeds("archive")] == ["forget pipeline"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["ordres"], "No file declares a pipeline `ordres`, and the control plane knows none. Did you mean"),
        (["orders", "--execute"], "say why"),
        (["orders", "--log-path", "/tmp"], "is only of use with --log"),
        (["orders", "--log", "--log-path", "/nowhere"], "orders: /nowhere does not have the manifest"),
    ],
)
def test_what_cannot_be_forgotten_is_refused_and_nothing_is(run, positions, control, arguments, said):
    ended = run("pipelines", "forget", *arguments)
    assert ended.code != 0
    assert said in " ".join(ended.err.replace("│", " ").split())
    assert (control.log_head().end, positions.load("archive").position) == (2, 0)


@pytest.mark.parametrize("content", [None, "name: orders\nsauce: {}\n"])
def test_a_pipeline_whose_file_is_there_is_never_forgotten(run, installation, positions, content):
    file = installation / "include/pipelines/orders.yaml"
    file.write_text(content or ORDERS)
    ended = run("pipelines", "forget", "orders", *EXECUTE)
    assert ended.code == 1
    assert ended.err.startswith(f"orders: {file} declares it. Nothing was changed.")
    assert positions.load("archive") is not None


def test_a_pipeline_that_a_run_holds_is_not_forgotten(run, positions):
    take(positions, positions.load("archive"), "orders.replicate run-2")
    ended = run("pipelines", "forget", "orders", *EXECUTE)
    assert ended.code == 1
    assert ended.err.startswith("orders/archive: orders.replicate run-2 has this writer until")


def test_a_log_that_another_pipeline_uses_now_is_not_removed(run, installation, positions, root):
    (installation / "include/pipelines/other.yaml").write_text(
        f"name: other\nsource: {{kafka: {{topics: [x]}}}}\nlog: {{path: {root}}}\n"
        f"writers: [{{name: a, kind: files, path: {installation}/other}}]\n"
    )
    ended = run("pipelines", "forget", "orders", "--log", *EXECUTE)
    assert ended.code == 1
    assert f"its log lies in {root}, which pipeline other uses too. Nothing was changed." in ended.err
    assert list(root.glob("files/*.parquet"))


def test_help_of_the_group_names_its_command(run):
    assert "forget" in run("pipelines", "--help").out
