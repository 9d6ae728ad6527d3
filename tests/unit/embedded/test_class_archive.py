"""The archive of Spark's classes: used when it is there, made once, and never half."""

import os

import pytest

from tidemark.embedded.errors import ArchiveFailed
from tidemark.embedded.jars import class_archive
from tidemark.embedded.jars.class_archive import (
    QUICK,
    archive_path,
    driver_java_options,
    ensure_class_archive,
)
from tidemark.embedded.java import Java

pytestmark = pytest.mark.unit
MAKES_IT = 'f=${4#*\\"}; printf archive > ${f%%\\"*}'
"""What spark-submit is asked for: the file between quotes in its fourth argument."""


@pytest.fixture
def java(monkeypatch, tmp_path) -> Java:
    java = Java(tmp_path / "jvm" / "bin" / "java", 17, "17.0.9")
    monkeypatch.setattr(class_archive, "find_java", lambda environ: java)
    return java


@pytest.fixture
def spark_submit(monkeypatch, tmp_path):
    """A pyspark whose spark-submit is a script; returns how to set what it does."""
    script = tmp_path / "pyspark" / "bin" / "spark-submit"
    script.parent.mkdir(parents=True)
    monkeypatch.setattr(class_archive, "pyspark_folder", lambda: tmp_path / "pyspark")

    def does(text: str) -> None:
        script.write_text(f"#!/bin/sh\n{text}\n")
        script.chmod(0o755)

    return does


def test_without_an_archive_only_the_compiler_is_told_to_hurry(settings, java):
    assert driver_java_options(settings) == QUICK


def test_an_archive_that_is_there_is_used(settings, java):
    archive = archive_path(settings, java)
    archive.parent.mkdir(parents=True)
    archive.touch()
    assert driver_java_options(settings) == f"-XX:SharedArchiveFile={archive} {QUICK}"


def test_another_java_has_another_archive(settings, java):
    other = Java(java.path, 17, "17.0.10")
    assert archive_path(settings, java) != archive_path(settings, other)


@pytest.mark.parametrize(("messages", "compiler"), [(0, QUICK), (249_999, QUICK), (250_000, "")])
def test_an_application_with_much_to_do_is_compiled_well(settings, messages, compiler):
    assert driver_java_options(settings, messages) == compiler


def test_it_is_made_once(settings, java, spark_submit, tmp_path):
    spark_submit(f"echo made >> {tmp_path}/calls; {MAKES_IT}")
    assert ensure_class_archive(settings).read_text() == "archive"
    ensure_class_archive(settings)
    assert (tmp_path / "calls").read_text() == "made\n"
    assert [path.suffix for path in sorted(archive_path(settings, java).parent.glob("spark*"))] == [
        ".jsa",
        ".log",
    ]


def test_when_it_cannot_be_made_nothing_is_left_and_the_log_is_named(settings, java, spark_submit):
    spark_submit("echo no such class; exit 1")
    with pytest.raises(ArchiveFailed, match="Spark works without it") as failed:
        ensure_class_archive(settings)
    assert failed.value.log.read_text() == "no such class\n"
    assert driver_java_options(settings) == QUICK
    assert list(archive_path(settings, java).parent.glob(".making-*")) == []


def test_only_the_newest_archives_are_kept(settings, java, spark_submit):
    folder = archive_path(settings, java).parent
    folder.mkdir(parents=True)
    for age in range(5):
        old = folder / f"spark-{age}.jsa"
        old.touch()
        os.utime(old, (1000 - age, 1000 - age))
    spark_submit(MAKES_IT)
    made = ensure_class_archive(settings)
    assert {path.name for path in folder.glob("*.jsa")} == {made.name, "spark-0.jsa", "spark-1.jsa"}
