"""Packages import what they export on first use only."""

import subprocess
import sys

import pytest

import tidemark
from tidemark.lazy_exports import lazy_exports

pytestmark = pytest.mark.unit


def test_a_name_is_imported_from_its_module() -> None:
    load = lazy_exports("tidemark", {"Settings": "settings"})
    assert load("Settings") is sys.modules["tidemark.settings"].Settings


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'tidemark' has no attribute 'Jurnal'"):
        tidemark.Jurnal  # noqa: B018


def test_every_exported_name_can_be_imported() -> None:
    assert all(getattr(tidemark, name).__name__ == name for name in tidemark.__all__)


def test_importing_the_library_imports_no_client() -> None:
    program = "import sys, tidemark; print([m for m in sys.modules if m.startswith('tidemark.')])"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['tidemark.lazy_exports']"
