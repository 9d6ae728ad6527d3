"""A pipeline's own expectations: ``include/expectations/<name>.yaml``, in Great Expectations' words.

Three lists: ``captured_files`` is judged on what the capture counted on its way and costs nothing;
``messages`` is judged on every message and costs a second pass of Spark; ``delivered`` is judged on the heads
of the entities that a reconciliation looks at. What a suite cannot do: take away one of the rules that every
capture and every delivery must keep.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from tidemark.errors import with_fields
from tidemark.log.errors import LogError

SUFFIXES = (".yaml", ".json")
DEFAULT = "default"


@with_fields
class BadSuite(LogError):
    """A file of expectations that cannot be used."""

    needs_person = True

    file: Path
    problem: str

    text = "{file}: {problem} Nothing was captured; correct the file and run again."


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


def _own_only(kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    """Refuse arguments that have a field of their own, or that a suite must not set."""
    others = {"catch_exceptions", "id", "meta", "notes", "result_format", "severity"} & kwargs.keys()
    if others:
        raise ValueError(f"{', '.join(sorted(others))} cannot be part of kwargs")
    return kwargs


class ExpectationDeclaration(_Part):
    """One expectation in the JSON form of Great Expectations."""

    type: str
    kwargs: Annotated[Mapping[str, Any], AfterValidator(_own_only)] = {}
    severity: Literal["critical", "warning", "info"] = "critical"
    notes: str | None = None


Expectations = Annotated[
    tuple[ExpectationDeclaration, ...],
    # A list whose only item is commented out reads as null.
    BeforeValidator(lambda declared: () if declared is None else declared),
]


class Suite(_Part):
    """The expectations of a pipeline on its captures and deliveries, in addition to the built-in rules."""

    captured_files: Expectations = ()
    messages: Expectations = ()
    delivered: Expectations = ()


def load_suite(folder: Path, name: str) -> Suite:
    """The suite of this name; raises ``BadSuite``. The default suite is empty where it has no file."""
    files = [file for suffix in SUFFIXES if (file := folder / f"{name}{suffix}").is_file()]
    if not files:
        if name == DEFAULT:
            return Suite()
        raise BadSuite(folder / f"{name}.yaml", "there is no such file.")
    return _read(files[0])


def _read(file: Path) -> Suite:
    try:
        text = file.read_text(encoding="utf-8")
        declared = json.loads(text) if file.suffix == ".json" else YAML(typ="safe").load(text)
    except MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}: " if error.problem_mark else ""
        raise BadSuite(file, f"this is not YAML ({line}{error.problem}).") from None
    except (YAMLError, ValueError) as error:
        raise BadSuite(file, f"this is not {file.suffix[1:].upper()} ({error}).") from None
    except OSError as error:
        raise BadSuite(file, f"this cannot be read ({error.strerror}).") from None
    try:
        return Suite.model_validate({} if declared is None else declared)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        raise BadSuite(file, f"{place}: {first['msg']}.") from None
