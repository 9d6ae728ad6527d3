"""Where kinds come from: Tidemark's own and those of other packages, whole, broken, or claimed twice."""

import pickle
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoints
from pathlib import Path

import pytest
from tests.support.installed_packages import declare_package, installed, write_package

from tidemark.connections import OtherConnection
from tidemark.pipeline import extensions
from tidemark.pipeline.connections import collect_connections
from tidemark.pipeline.extensions import BUILT_IN, KindUnusable, UnknownKind
from tidemark.pipeline.kinds import FORMATS, POLICIES, compacting_policies
from tidemark.pipeline.loader import load_pipelines
from tidemark.pipeline.transforms import TRANSFORMS
from tidemark.pipeline.writers import WRITERS
from tidemark.settings import ROOT, Settings

pytestmark = pytest.mark.unit

POINTS = (WRITERS, FORMATS, POLICIES, TRANSFORMS)
HEAD = "source: {kafka: {topics: [orders], format: json}}\n"
WORKING = """\
from typing import Literal
from tidemark.pipeline.writers import ConnectionType, NeededConnection, WriterDeclaration, WriterKind

class Declared(WriterDeclaration):
    kind: Literal["crm"]
    def connections(self):
        yield NeededConnection(ConnectionType.OTHER, "crm_default")

CRM = WriterKind("crm", Declared, lambda pipeline, declared, connections: None)
"""


@pytest.fixture
def site(tmp_path):
    """A folder whose packages are installed during a test."""
    folder = tmp_path / "site"
    folder.mkdir()
    with installed(folder):
        yield folder


def write_writer(site: Path, package: str, module: str, text: str, attribute: str = "CRM") -> None:
    declared = declare_package(package, "tidemark.writers", crm=f"{module}:{attribute}")
    write_package(site, declared, {f"{module}.py": text})


def load(folder: Path, **files: str):
    """Pipeline files of these texts, loaded together."""
    pipelines = folder / "pipelines"
    pipelines.mkdir()
    for name, writer in files.items():
        (pipelines / f"{name}.yaml").write_text(f"name: {name}\n{HEAD}writers:\n  - {{name: w, {writer}}}\n")
    environment = {"TIDEMARK_HOME": str(folder), "TIDEMARK_PIPELINES": str(pipelines)}
    loaded = load_pipelines(Settings.read(environment))
    ours = [one for one in loaded.pipelines if one.name in files]
    return ours, [one for one in loaded.refused if one.name in files]


# Tidemark's own


def test_the_built_in_kinds_are_the_entry_points_of_the_library():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert declared == BUILT_IN


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.group)
def test_every_built_in_kind_can_be_loaded(point):
    assert [kind.name for kind in point.usable()][: len(BUILT_IN[point.group])] == [*BUILT_IN[point.group]]


@pytest.mark.parametrize("point", POINTS, ids=lambda point: point.group)
def test_an_executor_without_metadata_knows_them_too(point, monkeypatch):
    monkeypatch.setattr(extensions, "_entry_points", lambda path: EntryPoints())
    extensions._installed.cache_clear()
    try:
        assert point.names() == [*BUILT_IN[point.group]]
        assert [kind.name for kind in point.usable()] == point.names()
    finally:
        extensions._installed.cache_clear()


def test_reading_pipeline_files_imports_nothing_heavy():
    heavy = ["pyarrow", "confluent_kafka", "kafka", "cassandra", "pyspark", "numpy", "msgspec"]
    code = (
        "import sys\n"
        "from tidemark.pipeline.loader import load_pipelines\n"
        "from tidemark.pipeline.transforms import TRANSFORMS\n"
        "loaded = load_pipelines()\n"
        "assert loaded.pipelines and list(TRANSFORMS.usable())\n"
        f"print([name for name in {heavy} if name in sys.modules])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "[]"


def test_the_policies_by_which_a_log_is_compacted():
    assert compacting_policies() == ["journal", "latest", "progress", "oplog"]


def test_raw_is_another_word_for_json():
    json, raw = FORMATS.find("json"), FORMATS.find("raw")
    assert (raw.read, raw.policy, raw.shapes_output) == (json.read, json.policy, json.shapes_output)


# Those of other packages


def test_a_kind_of_another_package_is_found_with_what_it_needs(site, tmp_path):
    write_writer(site, "acme-crm", "acme_crm", WORKING)
    (pipeline,), refused = load(tmp_path, shop="kind: crm")
    assert not refused
    known = {
        "kafka_default": {"extra": {"bootstrap.servers": "near:9092"}},
        "cassandra_default": {"host": "control"},
        "crm_default": {"host": "crm", "port": 99, "password": "hunter2", "extra": {"token": "hunter2"}},
    }
    connection = collect_connections(pipeline, known.__getitem__).others["crm_default"]
    assert (connection.host, connection.port, connection.extra["token"]) == ("crm", 99, "hunter2")
    assert connection.password is not None
    assert connection.password.get_secret_value() == "hunter2"
    assert "hunter2" not in repr(connection)


def test_a_package_that_cannot_be_imported_refuses_only_the_files_that_use_it(site, tmp_path):
    write_writer(site, "acme-crm", "acme_crm", "import no_such_module\n")
    ours, (refused,) = load(tmp_path, carts="kind: crm", shop="kind: files, path: /data/a")
    assert [pipeline.name for pipeline in ours] == ["shop"]
    (problem,) = refused.problems
    assert problem.line == 4
    assert problem.text == (
        "`writers[0].kind` is `crm`, which package acme-crm provides and which cannot be loaded "
        "(ModuleNotFoundError: No module named 'no_such_module'). Repair or reinstall the package wherever "
        "pipelines are read and delivered."
    )


def test_a_package_that_ends_the_process_does_not(site, tmp_path):
    write_writer(site, "acme-crm", "acme_crm", "raise SystemExit(3)\n")
    _, (refused,) = load(tmp_path, shop="kind: crm")
    assert "cannot be loaded (SystemExit: 3)" in str(refused)


def test_an_entry_point_that_names_something_else(site, tmp_path):
    write_writer(site, "acme-crm", "acme_crm", "CRM = 'crm'\n")
    _, (refused,) = load(tmp_path, shop="kind: crm")
    assert "acme_crm:CRM of package acme-crm is not a WriterKind of that name" in str(refused)


def test_two_packages_that_claim_the_same_name_are_both_named(site, tmp_path):
    write_writer(site, "acme-crm", "acme_crm", WORKING)
    write_writer(site, "best-crm", "best_crm", WORKING)
    ours, (refused,) = load(tmp_path, carts="kind: crm", shop="kind: files, path: /data/a")
    assert [pipeline.name for pipeline in ours] == ["shop"]
    assert "is `crm`, which more than one package provides: acme-crm and best-crm. None" in str(refused)


def test_a_package_that_claims_a_built_in_name_is_not_chosen_in_silence(site):
    declared = declare_package("acme-files", "tidemark.writers", files="acme_files:FILES")
    write_package(site, declared, {"acme_files.py": WORKING})
    with pytest.raises(KindUnusable, match="more than one package provides: acme-files and tidemark"):
        WRITERS.find("files")


@pytest.mark.parametrize(
    ("group", "keys", "said"),
    [
        (
            "formats",
            "source: {kafka: {topics: [o], format: jsn}}",
            "is `jsn`, which is not one of kafka-journal, json, raw, oplog, avro (package acme). "
            "Did you mean `json`?",
        ),
        (
            "policies",
            "log: {compaction: {policy: lates}}",
            "is `lates`, which is not one of journal, latest, progress, oplog, none, avro (package acme). "
            "Did you mean `latest`?",
        ),
        (
            "transforms",
            "",
            "is an unknown transform. Transforms: rename, pick, omit, skip, pretty, function, "
            "avro (package acme).",
        ),
    ],
)
def test_an_unknown_word_lists_the_known_ones(site, tmp_path, group, keys, said):
    write_package(site, declare_package("acme", f"tidemark.{group}", avro="acme:AVRO"), {})
    file = tmp_path / "pipelines" / "shop.yaml"
    file.parent.mkdir()
    transforms = "transforms: [{zzz: {}}]" if group == "transforms" else ""
    text = keys if "source" in keys else f"{HEAD}{keys}"
    file.write_text(f"name: shop\n{text}\nwriters: [{{name: w, kind: files, path: /data, {transforms}}}]\n")
    environment = {"TIDEMARK_HOME": str(tmp_path), "TIDEMARK_PIPELINES": str(file.parent)}
    refused = [one for one in load_pipelines(Settings.read(environment)).refused if one.name == "shop"]
    assert any(said in str(one) for one in refused), refused


def test_what_is_unknown_where_a_message_is_delivered_says_what_to_do():
    with pytest.raises(UnknownKind, match="Spark's executors included") as unknown:
        TRANSFORMS.find("mask")
    again = pickle.loads(pickle.dumps(unknown.value))
    assert str(again) == str(unknown.value)


def test_another_connection_is_handed_over_whole(tmp_path):
    from tidemark.connections import Connections

    airflow = {"host": "crm", "password": "hunter2", "extra": '{"token": "x"}'}
    other = OtherConnection.from_airflow("crm_default", airflow)
    connections = Connections.model_validate(
        {"kafka": {"servers": "a:1"}, "cassandra": {}, "others": {"crm_default": other}}
    )
    connections.write(tmp_path / "handed")
    assert Connections.load(tmp_path / "handed") == connections
