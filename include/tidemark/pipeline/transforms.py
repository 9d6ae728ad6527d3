"""The transforms a pipeline file can declare for a writer.

In the file a list of mappings with one key each, the transform's name: ``[{omit: {fields: [card]}}]``. Only
the settings; what a transform does with a document is in ``tidemark.delivery.transform_chain``. What cannot
work for any message is refused here, when the file is loaded, and not at the first message.
"""

import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal, DecimalException
from importlib import import_module
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Discriminator,
    Field,
    SerializerFunctionWrapHandler,
    Tag,
    ValidationInfo,
    WrapSerializer,
    model_validator,
)

from tidemark.errors import did_you_mean
from tidemark.pipeline import checks
from tidemark.pipeline.choices import Operator
from tidemark.pipeline.parts import Count, Declaration, Expression, each_once
from tidemark.pipeline.problems import Contradiction, Finding, quoted

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def number_of(value: object) -> Decimal:
    """The number that a value is, or that its text says.

    A float is the decimal it is written as, so that 0.1 in a file and 0.1 in a message are the same number.
    Raises ``ValueError`` with the rest of a sentence that begins with the value's name.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return Decimal(value)
    if isinstance(value, float) and math.isfinite(value):
        return Decimal(repr(float(value)))
    if isinstance(value, Decimal) and value.is_finite():
        return value
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        try:
            return Decimal(value)
        except DecimalException:
            pass  # an exponent that no number has
    raise ValueError(f"is {quoted(value)}, which is not a number.")


def function_at(path: str) -> Callable[[Any], Any]:
    """What a dotted path names; its module is imported.

    Raises ``ValueError`` with the rest of a sentence that begins with the key's name.
    """
    module_name, name = _dotted(path)
    try:
        module = import_module(module_name)
        found = getattr(module, name, None)
    except (Exception, SystemExit) as error:  # whatever a module does, it must not hide the other pipelines
        raise ValueError(
            f"is {quoted(path)}, which cannot be imported ({type(error).__name__}: {shortened(error)}). "
            "Correct the path or the module; it must be importable wherever pipelines are read and delivered."
        ) from error
    if found is None:
        functions = [each for each, value in vars(module).items() if callable(value)]
        hint = did_you_mean(name, functions, "Name a function of that module.")
        raise ValueError(f"is {quoted(path)}, but the module has no `{name}`. {hint}")
    if not callable(found):
        raise ValueError(
            f"is {quoted(path)}, which cannot be called: it is of type {type(found).__name__}. "
            "Name a function."
        )
    return found  # type: ignore[no-any-return]  # what it takes and gives is seen when it is called


def _dotted(path: str) -> tuple[str, str]:
    """The module and the name in it."""
    module_name, _, name = path.rpartition(".")
    if not module_name or not all(part.isidentifier() for part in path.split(".")):
        raise ValueError(f"is {quoted(path)}, which is not a dotted path. Write package.module.name.")
    return module_name, name


def shortened(error: BaseException) -> str:
    """What an error of somebody else's code says, on one line and not for pages."""
    text = " ".join(str(error).split())
    return text if len(text) <= 200 else text[:199] + "…"


def _a_function(path: str, info: ValidationInfo) -> str:
    _dotted(path)
    checks.listed_function(path, info)  # before it is imported: importing runs its code
    function_at(path)
    return path


def _an_operator(value: Any) -> Operator:
    try:
        return Operator(value)
    except ValueError:
        # Signs that look alike mean different things: only the one that every language spells its own way
        # is worth a guess.
        hint = did_you_mean(value, [Operator.EQUAL], "") if isinstance(value, str) else ""
        known = f"is {quoted(value)}, which is not one of {', '.join(Operator)}."
        raise ValueError(f"{known} {hint}".rstrip()) from None


def _no_two_into_one(fields: dict[str, str]) -> dict[str, str]:
    taken: dict[str, str] = {}
    findings = [
        Finding((old,), f"becomes {quoted(new)}, as `{taken[new]}` does. Give each field its own name.")
        for old, new in fields.items()
        if taken.setdefault(new, old) != old
    ]
    if findings:
        raise Contradiction(findings)
    return fields


FieldNames = Annotated[tuple[str, ...], Field(min_length=1), AfterValidator(each_once)]
NewNames = Annotated[dict[str, str], Field(min_length=1), AfterValidator(_no_two_into_one)]


class Transform(Declaration):
    """What every transform has."""

    called: ClassVar[str]
    """Its name in the file."""

    namespaces: Expression = ".*"
    """Messages that originate elsewhere pass it by."""

    def __hash__(self) -> int:
        return hash((self.called, self.namespaces))  # the rest may hold mappings and lists


class Rename(Transform):
    """Gives fields other names: ``{old: new}``."""

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


class Skip(Transform):
    """Keeps a message whose ``field`` compares with ``match`` as ``operator`` says; drops the others."""

    called = "skip"
    field: str
    operator: Annotated[Operator, BeforeValidator(_an_operator)]
    match: Any

    @model_validator(mode="after")
    def _has_something_to_compare_with(self) -> Self:
        try:
            self._check_match()
        except ValueError as error:
            raise Contradiction([Finding(("match",), str(error))]) from None
        return self

    def _check_match(self) -> None:
        match self.operator:
            case Operator.EQUAL:
                try:
                    json.dumps(self.match, allow_nan=False)
                except (TypeError, ValueError, RecursionError):
                    raise ValueError("is or holds something that JSON does not have. Remove it.") from None
            case Operator.FINDS if isinstance(self.match, str):
                checks.expression(self.match)
            case Operator.FINDS:
                raise ValueError(f"is {quoted(self.match)}, but `=~` needs an expression. Put it in quotes.")
            case _:
                try:
                    number_of(self.match)
                except ValueError as error:
                    raise ValueError(f"{error} `{self.operator}` compares numbers.") from None


class Pretty(Transform):
    """Logs the data, indented by ``spaces``; 0 puts it on one line."""

    called = "pretty"
    spaces: Annotated[Count, Field(ge=0)] = 2


class Function(Transform):
    """Calls a Python function."""

    called = "function"
    path: Annotated[str, AfterValidator(_a_function)]


TRANSFORMS: Mapping[str, type[Transform]] = {
    transform.called: transform for transform in (Rename, Pick, Omit, Skip, Pretty, Function)
}
_KEYS = {key for transform in TRANSFORMS.values() for key in transform.model_fields}


def _one_known_name(item: Any) -> Any:
    """Lets a transform or a mapping with a transform's name as its only key pass."""
    if isinstance(item, Transform):
        return item
    names = ", ".join(TRANSFORMS)
    if not isinstance(item, dict) or not item:
        what = "text" if isinstance(item, str) else "an empty one" if item == {} else quoted(item)
        raise ValueError(f"must be a mapping from a transform's name, not {what}. Transforms: {names}.")
    unknown = [Finding((str(key),), _not_a_name(str(key))) for key in item if key not in TRANSFORMS]
    if unknown:
        raise Contradiction(unknown)
    if len(item) > 1:
        raise ValueError(f"has {len(item)} transforms in it. Give each its own place in the list.")
    return item


def _not_a_name(key: str) -> str:
    if key in _KEYS:
        return "is not a transform but a key of one. Indent it below the transform's name."
    hint = did_you_mean(key, TRANSFORMS, f"Transforms: {', '.join(TRANSFORMS)}.")
    return f"is an unknown transform. {hint}"


def _name(item: Any) -> str:
    return item.called if isinstance(item, Transform) else next(iter(item))


def _settings(item: Any) -> Any:
    return item if isinstance(item, Transform) else next(iter(item.values()))


def _with_name(transform: Transform, settings: SerializerFunctionWrapHandler) -> dict[str, Any]:
    return {transform.called: settings(transform)}


_Settings = BeforeValidator(_settings)
AnyTransform = Annotated[
    Annotated[Rename, _Settings, Tag(Rename.called)]
    | Annotated[Pick, _Settings, Tag(Pick.called)]
    | Annotated[Omit, _Settings, Tag(Omit.called)]
    | Annotated[Skip, _Settings, Tag(Skip.called)]
    | Annotated[Pretty, _Settings, Tag(Pretty.called)]
    | Annotated[Function, _Settings, Tag(Function.called)],
    Discriminator(_name),
    BeforeValidator(_one_known_name),
    WrapSerializer(_with_name),
]
Transforms = tuple[AnyTransform, ...]
"""What the key ``transforms`` of a writer holds, for every kind of writer that takes them."""
