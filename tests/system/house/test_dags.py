"""House rules over every DAG: what people see in the UI, and what keeps it quick and safe."""

import subprocess
import sys
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tidemark.pipeline.loader import load_pipelines
from tidemark.settings import ROOT, Settings

pytestmark = pytest.mark.system

HEADINGS = [
    "### What it does",
    "### Parameters",
    "### When it fails, and repairs itself",
    "### When a person must step in",
    "### What it returns",
]
KINDS = ["replicate", "resume", "compact_log", "compact_offsets", "rebuild"]
"""DAG files that make one DAG per pipeline; a new one has to be listed here."""
FOLLOW = "follow"
"""Only for pipelines whose file has this key."""
PURGE = "purge_expired"
"""Only for pipelines with a journal whose file says when entities expire."""
SYNC = "sync"
"""Only for pipelines of operations."""
WORK = {"work.sweep": "sweep_work", "work.drain_pages": "drain_pages"}
"""DAGs of work journals, with their files."""
HEAVY = {"pyspark", "great_expectations", "pandas", "cassandra", "kafka", "pyarrow"}


def test_no_file_has_an_import_error(dag_bag: Any) -> None:
    assert dag_bag.import_errors == {}


def test_every_pipeline_has_every_kind_of_dag_and_there_are_no_others(dag_bag: Any) -> None:
    pipelines = load_pipelines(Settings.read({})).pipelines
    followed = {f"{one.name}.{FOLLOW}" for one in pipelines if one.follow}
    purged = {f"{one.name}.{PURGE}" for one in pipelines if one.expiry and any(one.journals)}
    synced = {f"{one.name}.{SYNC}" for one in pipelines if one.source.kafka.format == "oplog"}
    everywhere = {f"{one.name}.{kind}" for one in pipelines for kind in KINDS}
    assert set(dag_bag.dags) == everywhere | followed | purged | synced | set(WORK)


def test_every_dag_file_is_known_here() -> None:
    assert {path.stem for path in (ROOT / "dags").glob("*.py")} == {
        *KINDS,
        FOLLOW,
        PURGE,
        SYNC,
        *WORK.values(),
        "refused_pipelines",
    }


def test_every_dag_explains_itself_under_the_same_headings(dag_bag: Any) -> None:
    for dag in dag_bag.dags.values():
        found = [line for line in dag.doc_md.splitlines() if line.startswith("###")]
        assert found == HEADINGS, dag.dag_id


def test_every_dag_has_a_description_owner_and_known_tags(dag_bag: Any) -> None:
    for dag in dag_bag.dags.values():
        assert dag.description
        assert dag.owner == "tidemark"
        assert "tidemark" in dag.tags
        assert dag.dag_id.split(".")[0] in dag.tags


def test_no_dag_catches_up_or_overlaps_itself(dag_bag: Any) -> None:
    for dag in dag_bag.dags.values():
        assert dag.catchup is False
        # Several writers may resume at once: each has a lease of its own.
        assert dag.max_active_runs == 1 or dag.dag_id.endswith((".resume", ".rebuild"))


def test_every_param_is_described_and_bounded(dag_bag: Any) -> None:
    for dag in dag_bag.dags.values():
        for name in dag.params:
            param = dag.params.get_param(name)
            schema = param.schema
            assert param.description, f"{dag.dag_id}: {name}"
            bounds = {"enum", "pattern", "minimum", "maximum", "format", "maxLength"}
            assert bounds & set(schema) or schema.get("type") == "boolean", f"{dag.dag_id}: {name}"


def test_every_task_retries_says_what_it_does_and_may_not_run_for_ever(dag_bag: Any) -> None:
    for dag in dag_bag.dags.values():
        for task in dag.tasks:
            assert task.retries >= 1, task.task_id
            assert task.doc_md, task.task_id
            # A person may take as long as they like, and so may a target that is down.
            waiting = (
                "ask",
                "approve",
                "barrier",
                "soak",
                "wait_for_target",
                "wait_for_work",
                "wait_for_replication",
            )
            waits = task.task_id in waiting or task.task_id.startswith("gate_")
            assert task.execution_timeout or waits, task.task_id


def test_every_file_parses_within_a_second(dag_bag: Any) -> None:
    slow = slow_files(dag_bag)
    for _ in range(4):  # the quickest counts: the machine has other things to do
        slow &= {file for file in slow if slow_files(type(dag_bag)(str(ROOT / "dags" / file)))}
    assert not slow


def slow_files(dag_bag: Any) -> set[str]:
    return {stat.file.lstrip("/") for stat in dag_bag.dagbag_stats if stat.duration > timedelta(seconds=1)}


@pytest.mark.parametrize("file", ["replicate", *WORK.values()])
def test_parsing_the_dags_imports_nothing_heavy(file: str) -> None:
    code = (
        "import sys, runpy\n"
        f"sys.path[:0] = [{str(ROOT / 'plugins')!r}]\n"
        "import airflow.sdk\n"
        "before = set(sys.modules)\n"
        f"runpy.run_path({str(ROOT / 'dags' / f'{file}.py')!r})\n"
        f"print(sorted({HEAVY!r} & {{name.split('.')[0] for name in set(sys.modules) - before}}))\n"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip().splitlines()[-1] == "[]"


@pytest.mark.parametrize(("answer", "goes_on"), [("Approve", True), ("Reject", False)])
def test_a_plan_that_a_person_rejects_goes_no_further(dag_bag: Any, answer: str, goes_on: bool) -> None:
    for dag in (dag for name, dag in dag_bag.dags.items() if name.endswith(".compact_log")):
        assert dag.get_task("approve").options == ["Approve", "Reject"]
        follow = dag.get_task("follow_approval")
        found = {"chosen_options": [answer], "responded_by_user": {"id": "1", "name": "ann"}}
        assert follow.python_callable("orders", found) is goes_on
        # Where it does not go on, everything behind it is skipped, whatever that would wait for otherwise.
        assert follow.ignore_downstream_trigger_rules
        assert follow.get_flat_relative_ids(upstream=False) == {
            "compact",
            "verify",
            "publish",
            "merge",
            "sweep",
        }


@pytest.mark.parametrize("kind", ["compact_log", "compact_offsets", "purge_expired", "work.sweep"])
@pytest.mark.parametrize(
    ("run_type", "conf", "expected"),
    [
        ("manual", {}, True),
        ("manual", {"dry_run": False}, False),
        ("backfill", {}, True),
        ("backfill", {"dry_run": False}, False),
        ("scheduled", {}, False),
        ("scheduled", {"dry_run": True}, False),
        ("asset_triggered", {}, False),
    ],
)
def test_runs_by_hand_and_backfills_are_dry_unless_switched_off_and_runs_on_schedule_never(
    dag_bag: Any, kind: str, run_type: str, conf: dict[str, bool], expected: bool
) -> None:
    from tidemark_airflow.dry_run import is_dry_run

    for dag in (dag for name, dag in dag_bag.dags.items() if name.endswith(kind)):
        assert is_dry_run(SimpleNamespace(run_type=run_type), {**dag.params, **conf}) is expected


def test_every_dag_that_may_run_dry_says_so_in_the_same_words(dag_bag: Any) -> None:
    from tidemark_airflow.dry_run import DRY_RUN

    dry = [dag for dag in dag_bag.dags.values() if "dry_run" in dag.params]
    assert {dag.dag_id.split(".")[1] for dag in dry} - {SYNC} == {
        "compact_log",
        "compact_offsets",
        "purge_expired",
        "rebuild",
        "sweep",
    }
    for dag in dry:
        assert dag.params.get_param("dry_run").description == DRY_RUN
        assert f"`dry_run`: {DRY_RUN[0].lower()}{DRY_RUN[1:]}" in " ".join(dag.doc_md.split()), dag.dag_id
