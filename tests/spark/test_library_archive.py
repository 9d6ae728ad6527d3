"""The library as one archive: complete, always the same, and importable from where it lies."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import tidemark
from tidemark.spark.library_archive import ensure_package

pytestmark = pytest.mark.spark


def test_the_archive_holds_every_module_of_the_library(tmp_path):
    root = Path(tidemark.__file__).parent
    sources = {f"tidemark/{path.relative_to(root)}" for path in root.rglob("*.py")}
    with zipfile.ZipFile(ensure_package(tmp_path)) as package:
        assert set(package.namelist()) == sources


def test_the_archive_has_the_library_s_text(tmp_path):
    with zipfile.ZipFile(ensure_package(tmp_path)) as package:
        assert package.read("tidemark/__init__.py") == Path(tidemark.__file__).read_bytes()


def test_the_folder_is_made(tmp_path):
    assert ensure_package(tmp_path / "a" / "b").parent == tmp_path / "a" / "b"


def test_the_same_library_is_the_same_file(tmp_path):
    first = ensure_package(tmp_path)
    inode = first.stat().st_ino
    second = ensure_package(tmp_path)
    assert (second, second.stat().st_ino) == (first, inode)


def test_the_same_library_has_the_same_name_and_bytes_elsewhere(tmp_path):
    one, other = ensure_package(tmp_path / "one"), ensure_package(tmp_path / "other")
    assert (one.name, one.read_bytes()) == (other.name, other.read_bytes())


def test_another_library_is_another_file(tmp_path, monkeypatch):
    (tmp_path / "tidemark").mkdir()
    (tmp_path / "tidemark" / "__init__.py").write_text('"""Another one."""\n')
    ours = ensure_package(tmp_path / "packages")
    monkeypatch.setattr(tidemark, "__file__", str(tmp_path / "tidemark" / "__init__.py"))
    assert ensure_package(tmp_path / "packages") != ours


def test_nothing_but_the_archive_is_left_in_the_folder(tmp_path):
    archive = ensure_package(tmp_path)
    assert list(tmp_path.iterdir()) == [archive]


def test_the_library_can_be_imported_from_the_archive(tmp_path):
    archive = ensure_package(tmp_path)
    program = "import tidemark.log.model.binding, tidemark.writers.files.writer as m; print(m.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(archive), "PATH": "/usr/bin:/bin"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == f"{archive}/tidemark/writers/files/writer.py"
