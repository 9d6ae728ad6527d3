"""A pipeline's own expectations: ``include/expectations/<name>.yaml``, in Great Expectations' words.

Two lists: ``captured_files`` is judged on what the capture counted on its way and costs nothing;
``messages`` is judged on every message and costs a second pass of Spark. What a suite cannot do: take away
one of the rules that every capture must keep (``audit.py``).
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from tidemark.errors import TidemarkError

SUFFIXES = (".yaml", ".json")
DEFAULT = "default"


class BadSuite(TidemarkError):
    """A file of expectations that cannot be used."""

    needs_person = True

    def __init__(self, file: Path, problem: str) -> None:
        super().__init__(f"{file}: {problem} Nothing was captured; correct the file and run again.")
        self.file, self.problem = file, problem


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ExpectationDeclaration(_Part):
    """One expectation, as Great Expectations writes it down."""

    type: str
    kwargs: Mapping[str, Any] = {}
    severity: Literal["critical", "warning", "info"] = "critical"
    notes: str | None = None


class Suite(_Part):
    """What a pipeline expects of its captures beyond what always holds."""

    captured_files: tuple[ExpectationDeclaration, ...] = ()
    messages: tuple[ExpectationDeclaration, ...] = ()


def load_suite(folder: Path, name: str) -> Suite:
    """The suite of this name; the default one is empty where no file says otherwise."""
    files = [file for suffix in SUFFIXES if (file := folder / f"{name}{suffix}").is_file()]
    if not files:
        if name == DEFAULT:
            return Suite()
        raise BadSuite(folder / f"{name}.yaml", "there is no such file.")
    return _read(files[0])


def _read(file: Path) -> Suite:
    try:
        # JSON is YAML: one reader for both.
        declared = YAML(typ="safe").load(file.read_text())
    except YAMLError as error:
        raise BadSuite(file, f"this is not YAML ({str(error).splitlines()[0]}).") from None
    try:
        return Suite.model_validate(declared or {})
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise BadSuite(file, f"{place}: {first['msg']}.") from None
