"""What ``<pipeline>.compact_log`` does for collections that remove old versions."""

import runpy
from pathlib import Path
from typing import Any

import pytest
from tests.support.renditions_installed import RenditionInstallation

from tidemark.settings import ROOT

pytestmark = [pytest.mark.unit, pytest.mark.filterwarnings("ignore")]  # Airflow's own, while it is imported

COLLECTION = "{name: accounts, kind: collection, envelope: upsert, key: {id: text}, columns: {owner: text}%s}"


@pytest.fixture
def bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RenditionInstallation:
    return RenditionInstallation(tmp_path, monkeypatch)


def dag_of(bank: RenditionInstallation, keys: str, policy: str) -> Any:
    bank.declare(COLLECTION % keys)
    file = bank.pipelines / "bank.yaml"
    file.write_text(file.read_text() + f"log: {{compaction: {{policy: {policy}}}}}\n")
    return runpy.run_path(str(ROOT / "dags/compact_log.py"))["bank_compact_log"]


def test_versions_are_removed_after_everything_else_also_where_nothing_was_compacted(bank):
    dag = dag_of(bank, ", keep: 90d", "latest")
    assert dag.get_task("sweep").downstream_task_ids == {"trim"}
    assert dag.get_task("trim").trigger_rule == "none_failed"
    assert not dag.get_task("plan").is_optional


def test_a_log_that_is_never_compacted_has_a_schedule_for_its_collections(bank):
    dag = dag_of(bank, ", keep: 90d", "none")
    assert dag.schedule is not None
    assert dag.get_task("plan").is_optional


@pytest.mark.parametrize(("policy", "is_scheduled"), [("latest", True), ("none", False)])
def test_without_keep_there_is_no_such_task(bank, policy, is_scheduled):
    dag = dag_of(bank, "", policy)
    assert not dag.has_task("trim")
    assert (dag.schedule is not None) == is_scheduled
    assert not dag.get_task("plan").is_optional
