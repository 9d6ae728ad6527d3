"""Arrows between packages point one way: the design's table, checked on the sources."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemark.settings import ROOT

pytestmark = pytest.mark.unit

LIBRARY = ROOT / "include" / "tidemark"
LEAVES = {"errors", "settings", "connections", "faults"}
PURE_LOG = {"binding", "manifest", "errors", "loss", "statistics", "captured"}

MAY_IMPORT = {
    "journal": set(),
    "cassandra": LEAVES,
    "consensus": LEAVES | {"cassandra"},
    "log": LEAVES | {"consensus"},
    "delivery": LEAVES | {"journal", "log", "consensus", "cassandra"},
    "writers": LEAVES | {"journal", "log", "consensus", "cassandra", "delivery"},
    "compaction": LEAVES | {"journal", "log", "consensus", "delivery"},
    "work": LEAVES | {"journal", "log", "consensus", "cassandra", "delivery"},
    "verification": LEAVES | {"journal", "log", "consensus", "cassandra", "delivery", "writers"},
    "spark": LEAVES
    | {
        "journal",
        "log",
        "consensus",
        "cassandra",
        "delivery",
        "writers",
        "verification",
        "compaction",
        "work",
        "expiry",
    },
    "embedded": LEAVES | {"journal"},
    "client": LEAVES | {"journal", "log", "consensus", "cassandra", "delivery", "writers"},
    "expiry": LEAVES | {"journal", "log", "consensus", "cassandra", "delivery", "writers", "client"},
    "cli": LEAVES
    | {
        "journal",
        "log",
        "consensus",
        "cassandra",
        "delivery",
        "writers",
        "verification",
        "compaction",
        "client",
        "work",
        "expiry",
        "spark",
        "embedded",
    },
}
PURE_WORK = {
    "appointments",
    "buckets",
    "decide",
    "decision",
    "entry",
    "lapse",
    "loss",
    "merge",
    "requests",
    "rules",
}
NEVER_SPARK = {
    "journal",
    "log",
    "consensus",
    "cassandra",
    "delivery",
    "writers",
    "verification",
    "client",
    "compaction",
    "work",
    "expiry",
}
NEVER_AIRFLOW = NEVER_SPARK | {"spark"}


def imported_modules(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def our_packages(path: Path) -> set[str]:
    names = (module.split(".") for module in imported_modules(path))
    return {parts[1] for parts in names if parts[0] == "tidemark" and len(parts) > 1}


def sources(package: str) -> list[Path]:
    return sorted((LIBRARY / package).rglob("*.py"))


def test_every_package_of_the_library_has_its_line_in_the_table() -> None:
    packages = {path.parent.name for path in LIBRARY.glob("*/__init__.py")}
    assert packages == set(MAY_IMPORT)


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_a_package_imports_only_what_the_design_allows(package: str) -> None:
    for path in sources(package):
        assert our_packages(path) - {package} <= MAY_IMPORT[package], path


@pytest.mark.parametrize("module", sorted(PURE_LOG))
def test_the_pure_part_of_the_log_imports_nothing_but_itself(module: str) -> None:
    names = imported_modules(LIBRARY / "log" / f"{module}.py")
    assert {name.split(".")[2] for name in names if name.startswith("tidemark")} <= PURE_LOG


@pytest.mark.parametrize("module", sorted(PURE_WORK))
def test_the_pure_part_of_the_work_journal_imports_nothing_but_itself(module: str) -> None:
    names = imported_modules(LIBRARY / "work" / f"{module}.py")
    assert {name.split(".")[2] for name in names if name.startswith("tidemark")} <= PURE_WORK


@pytest.mark.parametrize("package", sorted(NEVER_AIRFLOW))
def test_the_core_does_not_know_airflow(package: str) -> None:
    for path in sources(package):
        assert not [name for name in imported_modules(path) if name.split(".")[0] == "airflow"], path


@pytest.mark.parametrize("package", sorted(NEVER_SPARK))
def test_below_the_spark_package_nothing_knows_spark(package: str) -> None:
    for path in sources(package):
        assert not [name for name in imported_modules(path) if name.split(".")[0] == "pyspark"], path


def test_dags_import_the_plugin_and_declarations_only() -> None:
    for path in sorted((ROOT / "dags").glob("*.py")):
        assert our_packages(path) <= {"delivery", "work"}, path


def test_no_file_is_named_after_nothing() -> None:
    vague = {"utils", "util", "helpers", "helper", "misc", "common", "manager", "base"}
    assert not [path for path in ROOT.glob("include/**/*.py") if path.stem in vague]
