"""Digests of modules: of what a module imports of its own package, and of nothing else."""

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tidemark import module_digests
from tidemark.module_digests import SourceMissing, imported_digests, loaded_sources, package_digest

pytestmark = pytest.mark.unit

Change = Callable[[str, str], None]
SOURCES = {
    "__init__.py": "",
    "prices.py": "from shop_7f3a.taxes import rate\nimport decimal\n",
    "taxes.py": "def rate():\n    from .tables import vat\n    return vat\n",
    "tables/__init__.py": "from . import vat\n",
    "tables/vat.py": "RATE = 21\n",
    "tables/duty.py": "RATE = 3\n",
    "unused.py": "",
    "bundle.py": "from shop_7f3a.tables import *\n",
    "relative.py": "from .tables.vat import RATE\n",
    "upwards/__init__.py": "",
    "upwards/deep.py": "from ..taxes import rate\n",
    "circle.py": "import shop_7f3a.circle\n",
    "broken.py": "def (:\n",
    "lazy.py": "def f():\n    import shop_7f3a.broken\n",
}


@pytest.fixture
def change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A package that can be imported, and a function that changes a file of it, as for a new process."""
    folder = tmp_path / "shop_7f3a"

    def forget() -> None:
        loaded_sources.cache_clear()
        for name in [name for name in sys.modules if name.startswith("shop_7f3a")]:
            del sys.modules[name]

    def write(path: str, text: str) -> None:
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
        forget()

    for path, text in SOURCES.items():
        write(path, text)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield write
    forget()


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("prices", ["", ".prices", ".tables", ".tables.vat", ".taxes"]),
        ("relative", ["", ".relative", ".tables", ".tables.vat"]),
        ("upwards.deep", ["", ".tables", ".tables.vat", ".taxes", ".upwards", ".upwards.deep"]),
        ("bundle", ["", ".bundle", ".tables", ".tables.duty", ".tables.vat"]),
        ("circle", ["", ".circle"]),
        ("lazy", ["", ".broken", ".lazy"]),
        ("unused", ["", ".unused"]),
    ],
)
@pytest.mark.usefixtures("change")
def test_what_a_module_imports_of_its_package_counts_and_nothing_else(module, imported):
    assert list(imported_digests(f"shop_7f3a.{module}")) == [f"shop_7f3a{name}" for name in imported]


@pytest.mark.parametrize("path", ["prices.py", "taxes.py", "tables/vat.py", "__init__.py"])
def test_a_change_shows_in_the_digest_of_its_module_alone(change: Change, path: str):
    before = imported_digests("shop_7f3a.prices")
    change(path, SOURCES[path] + "# changed\n")
    after = imported_digests("shop_7f3a.prices")
    assert [name for name in before if before[name] != after[name]] == [
        ".".join(["shop_7f3a", *path.removesuffix(".py").split("/")]).removesuffix(".__init__")
    ]


def test_a_change_of_a_module_that_is_not_imported_changes_nothing(change: Change):
    before, whole = imported_digests("shop_7f3a.prices"), package_digest("shop_7f3a.prices")
    change("unused.py", "# changed\n")
    assert imported_digests("shop_7f3a.prices") == before
    assert package_digest("shop_7f3a.prices") != whole


def test_the_digests_are_those_of_the_code_that_was_loaded(change: Change, tmp_path: Path):
    before = imported_digests("shop_7f3a.prices")
    (tmp_path / "shop_7f3a" / "taxes.py").write_text("def rate(): return 0\n")
    assert imported_digests("shop_7f3a.prices") == before


def test_a_module_without_a_package_is_one_digest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "prices_7f3a.py").write_text("import json\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert list(imported_digests("prices_7f3a")) == ["prices_7f3a"]
    loaded_sources.cache_clear()
    del sys.modules["prices_7f3a"]


def test_the_first_of_several_folders_of_a_package_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for folder, text in (("first", "A = 1\n"), ("second", "A = 2\n")):
        (tmp_path / folder / "spread_7f3a").mkdir(parents=True)
        (tmp_path / folder / "spread_7f3a" / "one.py").write_text(text)
        (tmp_path / folder / "spread_7f3a" / f"{folder}.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path / "second"))
    monkeypatch.syspath_prepend(str(tmp_path / "first"))
    sources = loaded_sources("spread_7f3a.one")
    assert (sources["one.py"], set(sources)) == (b"A = 1\n", {"one.py", "first.py", "second.py"})
    loaded_sources.cache_clear()
    for name in ("spread_7f3a.one", "spread_7f3a"):
        del sys.modules[name]


def test_a_module_whose_source_cannot_be_read_is_refused_and_not_taken_as_unchanged():
    with pytest.raises(SourceMissing) as refusal:
        imported_digests("math")
    assert refusal.value.module == "math"


def test_a_module_that_is_not_installed_is_an_import_error():
    with pytest.raises(ImportError):
        imported_digests("no_such_module_7f3a")


def test_the_digest_of_a_source_is_fixed_because_renditions_keep_it():
    assert module_digests.digest_of({"shop": b"RATE = 21\n"}) == "952cd24c3cbbf84b"
