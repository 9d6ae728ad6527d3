"""Pipeline files in a few lines, and the check that a file is refused on a line, in certain words."""

import textwrap

import pytest

from tidemark.pipeline.loader import PipelineRefused, load_pipeline
from tidemark.settings import Settings

HEAD = "name: orders\nsource: {kafka: {topics: [orders]}}\n"
WRITERS = "writers:\n  - {name: cassandra, kind: journal}\n"
FILES = "writers:\n  - {name: archive, kind: files, path: /data/archive}\n"
JOURNAL = HEAD + "writers:\n  - name: cassandra\n    kind: journal\n"
ARCHIVE = HEAD + "writers:\n  - name: archive\n    kind: files\n"
LISTED = "shop_a:shop_b:no_such_shop"
"""The packages whose functions these files may name."""


def refusal(folder, content):
    """Writes a pipeline file, loads it and gives the refusal."""
    file = folder / "pipelines" / "orders.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(content if isinstance(content, bytes) else textwrap.dedent(content).encode())
    with pytest.raises(PipelineRefused) as refused:
        load_pipeline(file, Settings.read({"TIDEMARK_HOME": str(folder), "TIDEMARK_TRANSFORMS": LISTED}))
    assert refused.value.file == file
    for problem, line in zip(refused.value.problems, str(refused.value).splitlines(), strict=True):
        assert line == f"{file}:{problem.line}: {problem.text}"
        assert problem.text.endswith((".", "?"))
    return refused.value


def the_one_problem(refused):
    assert len(refused.problems) == 1, str(refused)
    return refused.problems[0].line, refused.problems[0].text


def check(folder, content, line, said):
    """The file is refused for one reason, on this line, in these words; nothing secret is repeated."""
    refused = refusal(folder, content)
    found_line, text = the_one_problem(refused)
    assert said in text
    assert found_line == line
    assert "hunter2" not in str(refused)
