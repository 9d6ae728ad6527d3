"""The commands for Airflow of docs/migration.md, in a real one: the page's file becomes a DAG that runs."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.services.journal_runs import send
from tests.support.services.page_commands import page_commands
from tests.support.services.their_tables import given_record, given_their_tables

from tidemark.connections import Connections
from tidemark.pipeline.model import JournalDeclaration
from tidemark.settings import ROOT, Settings

pytestmark = pytest.mark.system

NAME = "switched"


@pytest.fixture
def pipelines(services: Any) -> Iterator[Path]:
    folder = Settings.read().pipeline_folders[-1]
    yield folder
    (folder / f"{NAME}.yaml").unlink(missing_ok=True)
    services.session.execute(f"DROP KEYSPACE IF EXISTS {NAME}", timeout=60)


def test_i19_airflow_runs_the_pipeline_of_the_page(services: Any, pipelines: Path) -> None:
    """Item 19: a new DAG is paused, so its first run waited for ever."""
    services.create_topic(NAME, partitions=1)
    keys = {"name": "cassandra", "kind": "journal", "keyspace": NAME}
    declared = JournalDeclaration.model_validate(keys, context={})
    # The topic has nothing behind the pointer, so the run starts no JVM.
    send(Connections(kafka=services.kafka, cassandra={}), NAME, [given_record(0, 1)])
    given_their_tables(services.session, declared, NAME, {0: 0})

    commands = page_commands(ROOT / "docs" / "migration.md")
    ours = [commands[0], *(command for command in commands if "bin/airflow" in command)]
    last = next(number for number, command in enumerate(ours) if "dags state" in command)
    for command in ours[: last + 1]:
        here = command.replace("include/pipelines", str(pipelines)).replace("orders", NAME)
        here = here.replace("keyspace: journal", f"keyspace: {NAME}")
        ended = subprocess.run(["bash", "-euc", here], cwd=ROOT, capture_output=True, text=True, timeout=240)
        assert ended.returncode == 0, (here, ended)
    assert "success" in ended.stdout
