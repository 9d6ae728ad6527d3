"""A Python for Spark's tasks that cannot run the library is refused in one sentence (item 25)."""

import os
import sys
from pathlib import Path

import pytest

from tidemark.spark.source.errors import WorkersRefused
from tidemark.spark.source.python_workers import refuse_unable

pytestmark = pytest.mark.unit


def python_that(folder: Path, script: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_the_driver_s_own_is_able() -> None:
    refuse_unable(sys.executable)


def test_another_one_with_the_same_packages_is_able(tmp_path: Path) -> None:
    refuse_unable(python_that(tmp_path, f'exec {sys.executable} "$@"'))


def test_files_that_spark_sends_count(tmp_path: Path) -> None:
    worker = python_that(tmp_path, f'[ "$PYTHONPATH" = sent.zip ] || exit 1\nexec {sys.executable} "$@"')
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("PYTHONPATH", raising=False)
        refuse_unable(worker, ["sent.zip"])


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo '[[3, 9], []]'", "that is Python 3.9 where this driver is 3.11"),
        ('echo \'[[3, 11], ["tidemark", "cassandra"]]\'', "that has no tidemark, cassandra"),
        ("exit 3", "that does not run (CalledProcessError)"),
    ],
)
def test_one_that_is_not_is_refused_with_what_to_set(tmp_path: Path, script: str, said: str) -> None:
    worker = python_that(tmp_path, script)
    with pytest.raises(WorkersRefused) as refused:
        refuse_unable(worker)
    assert f"Spark starts `{worker}`" in str(refused.value)
    assert f"{said}: set PYSPARK_PYTHON={sys.executable}" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_one_that_is_not_there_is_refused() -> None:
    with pytest.raises(WorkersRefused, match="there is no such program"):
        refuse_unable("no-such-python-7f3a")


def test_a_python_without_packages_is_refused(tmp_path: Path) -> None:
    """What a user meets who does not set PYSPARK_PYTHON: the base Python of the virtual environment."""
    worker = python_that(tmp_path, f'exec {os.path.realpath(sys.executable)} -I -S "$@"')
    with pytest.raises(WorkersRefused, match="that has no tidemark, cassandra, pyarrow"):
        refuse_unable(worker)
