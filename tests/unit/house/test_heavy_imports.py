"""What is slow to import is imported where it is used: not by DAG files, the plugin, decisions or ``--help``.

Every check runs in a process of its own and looks at ``sys.modules``.
"""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tidemark.settings import ROOT

pytestmark = pytest.mark.unit

ENGINE = {"great_expectations", "grpc", "pandas", "py4j", "pyspark"}
"""What only work with Spark, or the evaluation of expectations, needs."""
DOORS = {"cassandra", "confluent_kafka", "kafka", "numpy", "pyarrow"}
"""What only work with Cassandra, Kafka or files needs."""
SERVICES = {"cassandra", "confluent_kafka", "kafka"}
Loaded = Callable[[dict[str, str]], dict[str, set[str]]]
PROGRAM = """
import json, sys
found = {}
for step, statements in json.loads(sys.argv[1]).items():
    before = set(sys.modules)
    exec(statements, {"__name__": "step"})
    found[step] = sorted({name.split(".")[0] for name in set(sys.modules) - before})
print(json.dumps(found))
"""
CALL = """
from contextlib import redirect_stdout, suppress
from io import StringIO
from tidemark.cli.main import main
with suppress(SystemExit), redirect_stdout(StringIO()):
    main("{}".split())
"""
PLUGIN = ROOT / "plugins" / "tidemark_airflow"
RUN_BY_AIRFLOW = sorted(
    path
    for folder in ("operators", "sensors", "tasks", "triggers")
    for path in (PLUGIN / folder).glob("*.py")
)
COMMANDS = (
    *("--help", "status --help", "resume --help", "verify --help"),
    *(f"{group} --help" for group in ("pipelines", "log", "offsets", "gate", "dead-letters", "topics")),
    *(f"{group} --help" for group in ("journal", "work", "oplog", "services")),
)


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    """A function that runs steps one after the other in one new process; it returns, per step, which heavy
    packages that step was the first to load.
    """

    def run(steps: dict[str, str]) -> dict[str, set[str]]:
        environ = {
            **os.environ,
            "AIRFLOW_HOME": str(tmp_path / "airflow"),
            "TIDEMARK_HOME": str(tmp_path / "home"),
            "PYTHONPATH": str(ROOT / "plugins"),
        }
        command = [sys.executable, "-W", "ignore", "-c", PROGRAM, json.dumps(steps)]
        done = subprocess.run(command, capture_output=True, text=True, env=environ, check=False)
        assert done.returncode == 0, done.stderr[-2000:]
        found: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
        return {step: heavy for step, new in found.items() if (heavy := set(new) & (ENGINE | DOORS))}

    return run


def test_dag_files_import_nothing_heavy(loaded: Loaded) -> None:
    assert loaded({path.stem: running(path) for path in (ROOT / "dags").glob("*.py")}) == {}


def test_modules_of_the_plugin_import_nothing_heavy(loaded: Loaded) -> None:
    paths = [path.relative_to(PLUGIN.parent) for path in PLUGIN.rglob("*.py") if path.name != "__init__.py"]
    modules = [".".join(path.with_suffix("").parts) for path in paths]
    assert loaded({module: f"import {module}" for module in modules}) == {}


def test_tasks_load_neither_spark_nor_great_expectations_themselves(loaded: Loaded) -> None:
    found = loaded(
        {f"{path.parent.name}.{path.stem}": "\n".join(imports_of(path)) for path in RUN_BY_AIRFLOW}
    )
    assert {task: heavy & ENGINE for task, heavy in found.items() if heavy & ENGINE} == {}


@pytest.mark.parametrize(
    ("path", "name"), [("tasks/gates.py", "check_writers"), ("operators/reconcile.py", "ReconcileOperator")]
)
def test_a_task_that_only_reads_results_needs_no_service(path: str, name: str, loaded: Loaded) -> None:
    found = loaded({name: "\n".join(imports_of(PLUGIN / path, name))})
    assert not found.get(name, set()) & SERVICES


def test_applications_load_spark_when_they_open_a_session(loaded: Loaded) -> None:
    found = loaded({path.stem: running(path) for path in (ROOT / "spark_apps").glob("*.py")})
    assert {app: heavy & ENGINE for app, heavy in found.items() if heavy & ENGINE} == {}


def test_help_loads_nothing_heavy(loaded: Loaded) -> None:
    assert loaded({command: CALL.format(command) for command in COMMANDS}) == {}


def running(path: Path) -> str:
    """The statements that run a file, though not as the main program."""
    return f"import runpy\nrunpy.run_path({str(path)!r}, run_name='file')"


def imports_of(path: Path, within: str | None = None) -> Iterator[str]:
    """The import statements inside functions: what a task imports when it runs."""
    for top in ast.parse(path.read_text()).body:
        if within is not None and getattr(top, "name", None) != within:
            continue
        for function in ast.walk(top):
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                for statement in ast.walk(function):
                    if isinstance(statement, ast.Import | ast.ImportFrom):
                        yield ast.unparse(statement)
