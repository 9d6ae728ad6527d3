"""The transforms ``rename``, ``pick`` and ``omit``, which change the fields of a document."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from tidemark.delivery.transforms.document import Change, Document
from tidemark.pipeline.parts import each_once
from tidemark.pipeline.problems import Disagreement, Finding, quoted
from tidemark.pipeline.transforms import Transform, TransformKind


def _no_two_into_one(fields: dict[str, str]) -> dict[str, str]:
    taken: dict[str, str] = {}
    findings = [
        Finding((old,), f"becomes {quoted(new)}, as `{taken[new]}` does. Give each field its own name.")
        for old, new in fields.items()
        if taken.setdefault(new, old) != old
    ]
    if findings:
        raise Disagreement(findings)
    return fields


FieldNames = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(each_once)]
NewNames = Annotated[dict[str, str], Field(min_length=1), AfterValidator(_no_two_into_one)]


class Rename(Transform):
    """Renames fields: ``{old: new}``."""

    called = "rename"
    fields: NewNames


class Pick(Transform):
    """Keeps these fields and no others."""

    called = "pick"
    fields: FieldNames


class Omit(Transform):
    """Removes these fields."""

    called = "omit"
    fields: FieldNames


def _renaming(declared: Rename) -> Change:
    return lambda document: replace(document, data=_renamed(document.data, declared.fields))


def _renamed(data: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """All fields renamed at once: ``{a: b, b: a}`` swaps, ``{a: a}`` keeps.

    A renamed field keeps its place and replaces one that already has its new name. Old names that the
    document does not have are ignored.
    """
    replaced = {new for old, new in names.items() if old in data}
    return {
        names.get(field, field): value
        for field, value in data.items()
        if field in names or field not in replaced
    }


def _choosing(declared: Pick | Omit) -> Change:
    listed_stay = isinstance(declared, Pick)

    def choose(document: Document) -> Document:
        fields = document.data.items()
        kept = {field: value for field, value in fields if (field in declared.fields) is listed_stay}
        return replace(document, data=kept)

    return choose


RENAME = TransformKind(Rename, _renaming)
PICK = TransformKind(Pick, _choosing)
OMIT = TransformKind(Omit, _choosing)
