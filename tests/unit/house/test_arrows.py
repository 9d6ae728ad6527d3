"""Arrows between packages point one way: the design's table, checked on the sources."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.imports import imported_modules

from tidemark.settings import ROOT

pytestmark = pytest.mark.unit

LIBRARY = ROOT / "include" / "tidemark"
LEAVES = {
    "errors",
    "settings",
    "connections",
    "faults",
    "clock",
    "async_facade",
    "lazy_exports",
    "module_digests",
}
MAY_IMPORT = {
    "journal": {"errors"},
    "operations": {"errors"},
    "cassandra": LEAVES,
    "kafka": LEAVES,
    "consensus": LEAVES | {"cassandra"},
    "pipeline": LEAVES | {"kafka"},
    "log": LEAVES | {"kafka", "consensus"},
    "delivery": LEAVES | {"cassandra", "consensus", "pipeline", "log", "outputs"},
    "outputs": LEAVES | {"consensus", "log"},
    "journal_tables": LEAVES | {"journal", "cassandra", "pipeline", "log"},
    "writers": LEAVES
    | {
        "journal",
        "cassandra",
        "kafka",
        "consensus",
        "pipeline",
        "log",
        "delivery",
        "journal_tables",
        "collection",
        "operations",
        "outputs",
    },
    "collection": LEAVES
    | {"journal", "cassandra", "consensus", "pipeline", "log", "delivery", "operations", "outputs"},
    "compaction": LEAVES | {"journal", "consensus", "pipeline", "log", "delivery", "operations"},
    "verification": LEAVES
    | {
        "journal",
        "cassandra",
        "consensus",
        "pipeline",
        "log",
        "delivery",
        "journal_tables",
        "collection",
        "writers",
        "outputs",
    },
    "client": LEAVES
    | {
        "journal",
        "cassandra",
        "kafka",
        "consensus",
        "pipeline",
        "log",
        "delivery",
        "journal_tables",
        "writers",
        "collection",
        "outputs",
    },
    "expiry": LEAVES
    | {
        "journal",
        "cassandra",
        "kafka",
        "consensus",
        "pipeline",
        "log",
        "delivery",
        "journal_tables",
        "writers",
        "client",
    },
    "work": LEAVES | {"cassandra", "kafka", "consensus", "pipeline"},
    "oplog": LEAVES
    | {
        "cassandra",
        "kafka",
        "consensus",
        "pipeline",
        "log",
        "collection",
        "outputs",
        "writers",
        "client",
        "operations",
    },
}
CORE = set(MAY_IMPORT)
MAY_IMPORT["app"] = LEAVES | CORE
MAY_IMPORT["spark"] = LEAVES | CORE | {"app"}
MAY_IMPORT["embedded"] = LEAVES | {"cassandra", "kafka", "pipeline"}
MAY_IMPORT["cli"] = LEAVES | CORE | {"app", "spark", "embedded"}

PURE = {
    "log/model": ("tidemark.log.model", "tidemark.log.errors", "tidemark.errors"),
    "outputs/model": (
        "tidemark.outputs.model",
        "tidemark.outputs.errors",
        "tidemark.outputs.reader_errors",
        "tidemark.log.model",
        "tidemark.log.errors",
        "tidemark.errors",
    ),
    "collection/model": (
        "tidemark.collection.model",
        "tidemark.cassandra.type_tree",
        "tidemark.cassandra.cells",
        "tidemark.journal.codec.json_text",
        "tidemark.operations",
        "tidemark.outputs.model.digest",
        "tidemark.delivery.records",
        "tidemark.delivery.transforms",
        "tidemark.delivery.writing",
        "tidemark.pipeline.transforms",
        "tidemark.errors",
    ),
    "operations": ("tidemark.operations", "tidemark.errors"),
    "work/model": ("tidemark.work.model", "tidemark.errors"),
    "oplog/consumer": ("tidemark.oplog.consumer", "tidemark.faults", "tidemark.errors"),
}
DECLARATIONS = {"declaration.py"}
"""Modules that pydantic checks: they share their rules with pipeline files."""

KAFKA_CLIENTS = {"kafka", "confluent_kafka"}
SHIPPED = [ROOT / folder for folder in ("include", "plugins", "spark_apps", "dags")]
"""What runs; tests and measurements may use any client."""

NEVER_SPARK = CORE | {"app"}
NEVER_AIRFLOW = NEVER_SPARK | {"spark"}


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


@pytest.mark.parametrize("package", sorted(PURE))
def test_a_pure_package_imports_nothing_but_itself(package: str) -> None:
    for path in sources(package):
        ours = [name for name in imported_modules(path) if name.startswith("tidemark")]
        if path.name not in DECLARATIONS:
            assert not [name for name in ours if not name.startswith(PURE[package])], path


@pytest.mark.parametrize(
    "folder", sorted({path.parent for path in LIBRARY.rglob("*.py")}), ids=lambda path: path.name
)
def test_no_package_has_more_than_fifteen_modules_at_one_level(folder: Path) -> None:
    assert len([path for path in folder.glob("*.py") if path.name != "__init__.py"]) <= 15


@pytest.mark.parametrize("package", sorted(NEVER_AIRFLOW))
def test_the_core_does_not_know_airflow(package: str) -> None:
    for path in sources(package):
        assert not [name for name in imported_modules(path) if name.split(".")[0] == "airflow"], path


@pytest.mark.parametrize("package", sorted(NEVER_SPARK))
def test_below_the_spark_package_nothing_knows_spark(package: str) -> None:
    for path in sources(package):
        assert not [name for name in imported_modules(path) if name.split(".")[0] == "pyspark"], path


def shipped() -> Iterator[Path]:
    for folder in SHIPPED:
        yield from sorted(folder.rglob("*.py"))


def test_only_the_kafka_package_imports_a_client_of_kafka() -> None:
    for path in shipped():
        clients = KAFKA_CLIENTS & {name.split(".")[0] for name in imported_modules(path)}
        assert not clients or path.parent == LIBRARY / "kafka", path


def test_only_the_cassandra_package_imports_its_driver() -> None:
    for path in shipped():
        if LIBRARY / "cassandra" not in path.parents:
            assert "cassandra" not in {name.split(".")[0] for name in imported_modules(path)}, path


def test_dags_import_the_plugin_and_declarations_only() -> None:
    for path in sorted((ROOT / "dags").glob("*.py")):
        assert our_packages(path) <= {"pipeline", "work"}, path


def test_no_file_is_named_after_nothing() -> None:
    vague = {"utils", "util", "helpers", "helper", "misc", "common", "manager", "base"}
    assert not [path for path in ROOT.glob("include/**/*.py") if path.stem in vague]
