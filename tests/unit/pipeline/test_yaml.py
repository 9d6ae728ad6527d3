"""Files that are no declarations are refused before they cost anything; none is parsed twice (item 14)."""

import os
import time

import pytest

from tidemark.pipeline.files import yaml as document
from tidemark.pipeline.files.yaml import MOST_BYTES, MOST_VALUES
from tidemark.pipeline.loader import PipelineRefused, find_pipeline, load_pipelines
from tidemark.settings import Settings
from tidemark.work.loader import load_journals

pytestmark = pytest.mark.unit

PIPELINE = """
name: {name}
source: {{kafka: {{topics: [{name}]}}}}
writers:
  - {{name: archive, kind: files, path: /data/{name}}}
"""
WORK = "name: {name}\nkey: [text]\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    document._parsed.cache_clear()
    monkeypatch.setenv("TIDEMARK_ROOT", str(tmp_path))
    monkeypatch.delenv("TIDEMARK_PIPELINES", raising=False)
    monkeypatch.delenv("TIDEMARK_WORK", raising=False)
    folder = tmp_path / "include" / "pipelines"
    folder.mkdir(parents=True)
    (folder / "orders.yaml").write_text(PIPELINE.format(name="orders"))
    return folder


@pytest.fixture
def parses(monkeypatch):
    """How often YAML is parsed."""
    counted = []

    def count(content, kind):
        counted.append(content)
        return read_document(content, kind)

    read_document = document.read_document
    monkeypatch.setattr(document, "read_document", count)
    return counted


def test_i14_a_file_of_30_mb_is_refused_at_once_and_hides_no_other(folder):
    with (folder / "big.yaml").open("w") as big:
        big.write("name: big\nwriters:\n")
        big.write("  - {name: a, kind: files, path: /x/y}\n" * (30_000_000 // 39))
    size, begun = (folder / "big.yaml").stat().st_size, time.monotonic()

    loaded = load_pipelines()

    assert time.monotonic() - begun < 1
    assert [pipeline.name for pipeline in loaded.pipelines] == ["orders"]
    (refused,) = loaded.refused
    assert str(refused) == (
        f"{folder}/big.yaml: the file has {size:,} bytes, and a pipeline may have 1,000,000. It was not "
        "read. Take out what does not belong there, or move the file away."
    )


def test_i14_the_pipeline_of_a_file_that_is_too_large_says_so_when_it_is_asked_for(folder):
    (folder / "big.yaml").write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(PipelineRefused, match="may have 1,000,000"):
        find_pipeline("big")


def test_a_file_of_exactly_the_most_is_read(folder):
    text = PIPELINE.format(name="wide").encode()
    (folder / "wide.yaml").write_bytes(text + b"#" * (MOST_BYTES - len(text)))
    assert [pipeline.name for pipeline in load_pipelines().pipelines] == ["orders", "wide"]


def test_a_file_below_1_mb_with_too_many_values_is_refused_before_they_are_all_read(folder):
    (folder / "many.yaml").write_bytes(b"name: many\nwriters: [\n" + b"1,\n" * 300_000 + b"]\n")
    begun = time.monotonic()

    (refused,) = load_pipelines().refused

    assert time.monotonic() - begun < 10
    assert f"more than {MOST_VALUES:,} keys and values. Declare one pipeline in a file." in str(refused)


def test_a_file_that_grows_while_it_is_read_is_refused_too(folder, monkeypatch):
    (folder / "big.yaml").write_bytes(b"#" * (MOST_BYTES + 1))
    found = (folder / "orders.yaml").stat()
    monkeypatch.setattr("pathlib.Path.stat", lambda self, **_: found)
    (refused,) = load_pipelines().refused
    assert "may have 1,000,000" in str(refused)


def test_a_pipe_is_refused_and_not_waited_for(folder):
    os.mkfifo(folder / "pipe.yaml")
    (refused,) = load_pipelines().refused
    assert str(refused) == f"{folder}/pipe.yaml: this is not a regular file. Put the pipeline into one."


def test_i14_a_file_is_parsed_once_however_often_it_is_asked_for(folder, parses):
    for _ in range(3):
        assert find_pipeline("orders").name == "orders"
    assert len(parses) == 1


def test_i14_a_changed_file_is_parsed_again_whatever_its_times_say(folder, parses):
    file = folder / "orders.yaml"
    before = file.stat()
    load_pipelines()
    file.write_text(PIPELINE.format(name="refund"))  # as long as it was
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert [pipeline.name for pipeline in load_pipelines().pipelines] == ["refund"]
    assert len(parses) == 2


def test_a_broken_file_is_parsed_once_too_and_refused_each_time(folder, parses):
    (folder / "orders.yaml").write_text("name: [")
    refused = [str(load_pipelines().refused[0]) for _ in range(2)]
    assert refused[0] == refused[1]
    assert len(parses) == 1


def test_i14_files_of_work_journals_have_the_same_bounds(folder, tmp_path):
    work = tmp_path / "include" / "work"
    work.mkdir()
    (work / "big.yaml").write_bytes(b"#" * (MOST_BYTES + 1))
    (refused,) = load_journals(Settings.read()).refused
    assert "and a work journal may have 1,000,000" in str(refused)
