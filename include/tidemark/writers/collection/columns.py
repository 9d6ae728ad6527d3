"""The columns of a collection in a pipeline file: ``{owner: text, balance: decimal}``.

They are kept as a list, also in stored settings: the order of key columns matters, and JSON objects have
none. What types a column may have is decided in ``tidemark.collection.model.column_types``.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator

from tidemark.collection.model.column_types import column_type, key_type
from tidemark.collection.model.schema import SYSTEM_COLUMNS, Column
from tidemark.pipeline import checks
from tidemark.pipeline.problems import Disagreement, Finding, quoted

_RENAME = "Declare the name that the transform `rename` gives the field."
_KEY_NAMES = (
    "A key that is taken as it is can have any name. The fields of a JSON key cannot be renamed: send "
    "another key."
)


class DeclaredColumn(NamedTuple):
    """A column as a file declares it: its name, and its type as CQL spells it."""

    name: str
    type: str


def _reader(type_of: Callable[[str], Any], advice: str) -> Callable[[Any], Any]:
    def read(declared: Any) -> Any:
        """The columns of a mapping, or of a list of pairs as stored settings have it."""
        if isinstance(declared, list | tuple) and all(map(_is_pair, declared)):
            declared = _as_mapping(declared)
        if not isinstance(declared, Mapping):
            raise ValueError(f"must be a mapping from columns to CQL types, not {quoted(declared)}.")
        findings = list(_findings(declared, type_of, advice))
        if findings:
            raise Disagreement(findings)
        return tuple(DeclaredColumn(name, str(type_of(text))) for name, text in declared.items())

    return read


KeyColumns = Annotated[tuple[DeclaredColumn, ...], BeforeValidator(_reader(key_type, _KEY_NAMES))]
DataColumns = Annotated[tuple[DeclaredColumn, ...], BeforeValidator(_reader(column_type, _RENAME))]


def as_columns(declared: Iterable[DeclaredColumn]) -> tuple[Column, ...]:
    """The columns with their types."""
    return tuple(Column(name, column_type(text)) for name, text in declared)


def _as_mapping(pairs: Iterable[Any]) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for name, text in pairs:
        if name in found:
            raise ValueError(f"has {quoted(name)} twice. Give every column its own name.")
        found[name] = text
    return found


def _is_pair(item: Any) -> bool:
    return isinstance(item, list | tuple) and len(item) == 2


def _findings(declared: Mapping[Any, Any], type_of: Callable[[str], Any], advice: str) -> Iterator[Finding]:
    for name, text in declared.items():
        if problem := _problem_of_name(name, advice):
            yield Finding((str(name),), problem)
        if not isinstance(text, str):
            shown = quoted(text)
            yield Finding((str(name),), f"must be a CQL type, not {shown}. Put a type with commas in quotes.")
            continue
        try:
            type_of(text)
        except ValueError as error:
            yield Finding((str(name),), str(error))


def _problem_of_name(name: Any, advice: str) -> str | None:
    if name in SYSTEM_COLUMNS:
        return f"is a column that every collection has itself ({', '.join(SYSTEM_COLUMNS)}). {advice}"
    try:
        checks.identifier(str(name))
    except ValueError as error:
        return f"{error} {advice}"
    return None
