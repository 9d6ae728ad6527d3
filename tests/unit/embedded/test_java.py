"""Which Java is taken, and what is said when none will do."""

from pathlib import Path

import pytest

from tidemark.embedded.errors import JavaMissing, JavaTooOld
from tidemark.embedded.java import find_java

pytestmark = pytest.mark.unit


def make_java(home: Path, version: str, release: bool = True) -> Path:
    path = home / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    path.chmod(0o755)
    if release:
        (home / "release").write_text(f'IMPLEMENTOR="us"\nJAVA_VERSION="{version}"\n')
    return path


def test_without_any_java_the_error_says_what_to_install(tmp_path):
    with pytest.raises(JavaMissing, match=r"Install Java 17.*or set JAVA_HOME"):
        find_java({"PATH": str(tmp_path)}, tmp_path)


def test_a_java_home_without_java_in_it_is_no_java(tmp_path):
    with pytest.raises(JavaMissing):
        find_java({"JAVA_HOME": str(tmp_path / "gone"), "PATH": ""}, tmp_path)


@pytest.mark.parametrize(("said", "version"), [("1.8.0_292", 8), ("11.0.2", 11), ("16", 16)])
def test_an_old_java_is_named_with_its_version(tmp_path, said, version):
    old = make_java(tmp_path / "old", said)
    with pytest.raises(JavaTooOld, match=f"Java {version} .*too old.*need Java 17") as refused:
        find_java({"PATH": str(old.parent)}, tmp_path / "none")
    assert (refused.value.java, refused.value.version) == (old, version)


def test_a_java_that_has_no_release_file_is_asked(tmp_path):
    asked = make_java(tmp_path / "a", "17.0.2-ea", release=False)
    found = find_java({"PATH": str(asked.parent)}, tmp_path / "none")
    assert (found.version, found.full_version) == (17, "17.0.2-ea")


def test_java_home_comes_before_the_path(tmp_path):
    home, on_path = make_java(tmp_path / "home", "17.0.1"), make_java(tmp_path / "path", "17.0.2")
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(on_path.parent)}, tmp_path / "none")
    assert (found.path, found.home) == (home, tmp_path / "home")
    assert found.warning is None


def test_a_17_in_the_systems_folder_is_better_than_a_newer_one_on_the_path(tmp_path):
    newer, good = (
        make_java(tmp_path / "new", "21.0.1"),
        make_java(tmp_path / "jvm" / "java-17-openjdk", "17.0.9"),
    )
    assert find_java({"PATH": str(newer.parent)}, tmp_path / "jvm").path == good


def test_a_newer_java_alone_is_taken_with_a_warning(tmp_path):
    newer = make_java(tmp_path / "new", "21.0.1")
    found = find_java({"PATH": str(newer.parent)}, tmp_path / "none")
    assert found.version == 21
    assert "newer than the 17 that Cassandra 5.0 supports" in found.warning
