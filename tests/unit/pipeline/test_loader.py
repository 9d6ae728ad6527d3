"""Loading pipeline files: folders, references, variables, what one broken file does to the others."""

import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from tidemark.errors import TidemarkError
from tidemark.pipeline.loader import (
    FileProblem,
    PipelineRefused,
    UnknownPipeline,
    find_pipeline,
    load_pipeline,
    load_pipelines,
)
from tidemark.settings import Settings

pytestmark = pytest.mark.unit


class Installation:
    """A checkout with pipeline files of its own and further folders."""

    def __init__(self, root: Path) -> None:
        self.root, self.further = root, []
        self.folder = root / "include" / "pipelines"
        self.folder.mkdir(parents=True)

    def declares(self, file: str, content: str | None = None, folder: Path | None = None) -> Path:
        path = (folder or self.folder) / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content or declared(path.stem))
        return path

    @property
    def settings(self) -> Settings:
        return Settings.read(
            {"TIDEMARK_ROOT": str(self.root), "TIDEMARK_PIPELINES": ":".join(map(str, self.further))}
        )

    def loads(self):
        return load_pipelines(self.settings)


def declared(name, **more):
    extra = "".join(f"{key}: {value}\n" for key, value in more.items())
    source = f"source: {{kafka: {{topics: [{name}]}}}}"
    return f"name: {name}\n{source}\nwriters:\n  - {{name: w, kind: journal}}\n{extra}"


@pytest.fixture
def installation(tmp_path):
    return Installation(tmp_path)


def names(loaded):
    return [pipeline.name for pipeline in loaded.pipelines]


def test_pipelines_come_in_the_order_of_their_files(installation):
    for file in ("b.yaml", "a.yml", "c.yaml"):
        installation.declares(file)
    loaded = installation.loads()
    assert names(loaded) == ["a", "b", "c"]
    assert loaded.refused == ()


def test_only_yaml_files_of_the_folder_itself_are_read(installation):
    installation.declares("a.yaml")
    for file in ("b.json", "c.yaml.bak", "README.md", ".d.yaml", "sub/e.yaml"):
        installation.declares(file, "not: [a pipeline")
    loaded = installation.loads()
    assert names(loaded) == ["a"]
    assert loaded.refused == ()


def test_further_folders_are_read_too_each_once(installation, tmp_path):
    installation.declares("a.yaml")
    installation.declares("z.yaml", folder=tmp_path / "team")
    installation.further = [tmp_path / "team", tmp_path / "include/../team", installation.folder]
    loaded = installation.loads()
    assert sorted(names(loaded)) == ["a", "z"]
    assert loaded.refused == ()


def test_an_installation_without_pipelines_of_its_own_has_none(tmp_path):
    loaded = load_pipelines(Settings.read({"TIDEMARK_ROOT": str(tmp_path)}))
    assert loaded.pipelines == ()
    assert loaded.refused == ()


def test_a_broken_file_does_not_hide_the_others(installation):
    installation.declares("a.yaml")
    broken = installation.declares("b.yaml", "name: b\n")
    installation.declares("c.yaml")
    loaded = installation.loads()
    assert names(loaded) == ["a", "c"]
    assert [refusal.file for refusal in loaded.refused] == [broken]


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda path: None, "there is no such folder. Create it, or take it out of TIDEMARK_PIPELINES."),
        (lambda path: path.write_text(""), "this is not a folder."),
    ],
)
def test_a_further_folder_that_is_not_one(installation, tmp_path, make, said):
    installation.declares("a.yaml")
    make(tmp_path / "team")
    installation.further = [tmp_path / "team"]
    loaded = installation.loads()
    assert names(loaded) == ["a"]
    assert len(loaded.refused) == 1
    assert str(loaded.refused[0]).startswith(f"{tmp_path / 'team'}: {said}")


def test_a_further_folder_that_may_not_be_read(installation, tmp_path, monkeypatch):
    team = tmp_path / "team"
    installation.further = [team]

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "iterdir", refuse)
    refused = installation.loads().refused
    assert f"{team}: the folder cannot be read (Permission denied)." in str(refused[-1])


def test_a_file_that_may_not_be_read(installation, monkeypatch):
    file = installation.declares("a.yaml")

    def refuse(self, mode):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    (refused,) = installation.loads().refused
    assert str(refused).startswith(f"{file}:1: the file cannot be read (Permission denied).")


def test_a_file_that_does_not_exist(tmp_path):
    with pytest.raises(PipelineRefused, match="cannot be read \\(No such file or directory\\)"):
        load_pipeline(tmp_path / "missing.yaml")


def test_a_folder_with_the_name_of_a_file(installation):
    (installation.folder / "a.yaml").mkdir()
    (refused,) = installation.loads().refused
    assert "the file cannot be read (Is a directory)" in str(refused)


def test_a_dangling_link_is_reported(installation):
    (installation.folder / "a.yaml").symlink_to("nowhere")
    (refused,) = installation.loads().refused
    assert "the file cannot be read" in str(refused)


def test_numbers_may_have_underscores(installation):
    file = installation.declares("a.yaml", declared("a", limits="{max_records_per_run: 2_000_000}"))
    assert load_pipeline(file).limits.max_records_per_run == 2_000_000


def test_what_looks_like_a_date_is_text(installation):
    file = installation.declares(
        "a.yaml", declared("a", on_failure="stop_writer").replace("name: a", "name: 2024-99-99")
    )
    assert load_pipeline(file).name == "2024-99-99"


def test_a_byte_order_mark_is_no_obstacle(installation):
    file = installation.declares("a.yaml", "\ufeff" + declared("a"))
    assert load_pipeline(str(file)).name == "a"


def test_home_is_known_without_the_variable(installation, monkeypatch):
    monkeypatch.delenv("TIDEMARK_HOME", raising=False)
    file = installation.declares("a.yaml", declared("a", log='{path: "${TIDEMARK_HOME}/elsewhere"}'))
    pipeline = load_pipeline(file, installation.settings)
    assert pipeline.log.path == f"{installation.root}/.tidemark/elsewhere"


def test_any_variable_of_the_environment_can_be_part_of_a_path(installation, monkeypatch):
    monkeypatch.setenv("BUCKET", "lake")
    file = installation.declares("a.yaml", declared("a", log='{path: "s3a://${BUCKET}/log"}'))
    assert load_pipeline(file).log.path == "s3a://lake/log"


def test_an_empty_variable_counts_as_not_set(installation, monkeypatch):
    monkeypatch.setenv("BUCKET", "")
    file = installation.declares("a.yaml", declared("a", log='{path: "/data/${BUCKET}/log"}'))
    with pytest.raises(PipelineRefused, match=r"a.yaml:5: `log.path` names \$\{BUCKET\}, which is not set"):
        load_pipeline(file)


def test_variables_are_for_paths_alone(installation, monkeypatch):
    monkeypatch.setenv("TOPIC", "orders")
    file = installation.declares("a.yaml", declared("a", expectations='"${TOPIC}"'))
    with pytest.raises(PipelineRefused, match="Use letters, digits"):
        load_pipeline(file)


@pytest.mark.parametrize("suite", ["strict.yaml", "strict.json"])
def test_a_suite_lies_beside_the_folder_of_the_pipelines(installation, suite):
    (installation.root / "include" / "expectations").mkdir()
    (installation.root / "include" / "expectations" / suite).touch()
    file = installation.declares("a.yaml", declared("a", expectations="strict"))
    assert load_pipeline(file).expectations == "strict"


@pytest.mark.parametrize(
    ("suites", "said"),
    [
        ([], "Put strict.yaml or strict.json into "),
        (["strict.txt"], "Put strict.yaml or strict.json into "),
        (["stricter.yaml"], "Did you mean `stricter`?"),
    ],
)
def test_a_suite_that_does_not_exist_is_refused(installation, suites, said):
    for suite in suites:
        installation.declares(suite, "x", folder=installation.root / "include" / "expectations")
    file = installation.declares("a.yaml", declared("a", expectations="strict"))
    with pytest.raises(
        PipelineRefused, match=r"a.yaml:5: `expectations` is `strict`, which names no suite"
    ) as refused:
        load_pipeline(file)
    assert said in str(refused.value)


def test_find_gives_the_pipeline_of_that_name(installation):
    installation.declares("a.yaml", declared("orders"))
    assert find_pipeline("orders", installation.settings).name == "orders"


def test_find_says_what_was_meant_and_what_there_is(installation):
    installation.declares("orders.yaml")
    installation.declares("carts.yaml")
    broken = installation.declares("broken.yaml", "name: [")
    with pytest.raises(UnknownPipeline) as unknown:
        find_pipeline("ordres", installation.settings)
    assert str(unknown.value) == (
        "There is no pipeline `ordres`. Did you mean `orders`? Known pipelines: carts, orders. "
        f"Refused: {broken}."
    )
    assert unknown.value.name == "ordres"
    assert unknown.value.known == ["carts", "orders"]


def test_find_without_any_pipeline(installation):
    with pytest.raises(UnknownPipeline, match=r"There is no pipeline `orders`. No pipeline is declared."):
        find_pipeline("orders", installation.settings)


@pytest.mark.parametrize(
    ("file", "content"), [("orders.yaml", "name: ["), ("other.yaml", "name: orders\nzzz: 1\n")]
)
def test_find_says_why_the_file_was_refused(installation, file, content):
    broken = installation.declares(file, content)
    with pytest.raises(PipelineRefused) as refused:
        find_pipeline("orders", installation.settings)
    assert refused.value.file == broken


def test_find_prefers_the_pipeline_that_works(installation):
    installation.declares("a.yaml", declared("orders"))
    installation.declares("orders.yaml")
    assert find_pipeline("orders", installation.settings).name == "orders"


@pytest.mark.parametrize(
    "error",
    [
        PipelineRefused(Path("a.yaml"), [FileProblem(3, "x is y.")], "a"),
        UnknownPipeline("a", ["b"], [Path("c.yaml")]),
    ],
)
def test_the_errors_are_for_people_and_cross_processes(error):
    assert isinstance(error, TidemarkError)
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_nothing_heavy_is_imported():
    heavy = {"pyspark", "airflow", "great_expectations", "pandas", "pyarrow", "cassandra", "kafka"}
    script = "import sys, tidemark.pipeline.loader; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    ).stdout
    assert not heavy & set(modules.split())
