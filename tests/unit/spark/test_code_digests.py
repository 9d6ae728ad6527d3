"""Digests of loaded code: of the library and of packages that pipelines name, computed once a process."""

import sys
from pathlib import Path

import pytest

from tidemark.module_digests import digest_of, loaded_sources, package_sources
from tidemark.spark import code_digests
from tidemark.spark.code_digests import CodeDigests, OtherCode, loaded_digest
from tidemark.spark.library_archive import ensure_package, library_digest

pytestmark = pytest.mark.unit


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package that can be imported; forgotten afterwards."""
    folder = tmp_path / "shop_of_a_test"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "prices.py").write_text("def rounded(document): return document\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.startswith("shop_of_a_test")]:
        del sys.modules[name]
    loaded_sources.cache_clear()


def test_the_library_s_digest_is_in_the_name_of_its_archive(tmp_path: Path) -> None:
    assert ensure_package(tmp_path).name == f"tidemark-{library_digest()}.zip"


def test_the_same_code_is_accepted() -> None:
    CodeDigests.loaded().require()


def test_other_code_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    driver = CodeDigests({"tidemark": "0123456789abcdef"})
    monkeypatch.setattr(code_digests, "loaded_digest", lambda name: "fedcba9876543210")
    with pytest.raises(OtherCode, match="Restart the engine") as refused:
        driver.require()
    error = refused.value
    assert (error.module, error.wanted, error.found) == ("tidemark", "0123456789abcdef", "fedcba9876543210")


def test_a_module_that_changed_after_it_was_loaded_has_the_digest_of_what_was_loaded(shop: Path) -> None:
    loaded = CodeDigests.loaded(["shop_of_a_test.prices"])
    (shop / "prices.py").write_text("def rounded(document): return None\n")
    assert CodeDigests.loaded(["shop_of_a_test.prices"]) == loaded
    assert digest_on_disk() != loaded.digests["shop_of_a_test.prices"]


def test_another_module_of_the_same_package_counts(shop: Path) -> None:
    before = loaded_digest("shop_of_a_test.prices")
    (shop / "taxes.py").write_text("RATE = 21\n")
    assert digest_on_disk() != before


def test_a_module_that_is_not_installed_is_other_code(shop: Path) -> None:
    with pytest.raises(OtherCode, match="digest not installed"):
        CodeDigests({"no_such_module_7f3a": "0123456789abcdef"}).require()


def digest_on_disk() -> str:
    return digest_of(package_sources(sys.modules["shop_of_a_test"]))
