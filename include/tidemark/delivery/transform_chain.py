"""What a writer's transforms do with a message: a chain of steps from a document to a document or to nothing.

Two writers may be handed the same document, so no step changes the one it gets. The same document always
comes out the same: a binding that is delivered twice must be written twice alike. No I/O but the log line
of ``pretty``; what a declared function does is its author's affair.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from enum import StrEnum
from math import isfinite
from typing import Any, assert_never

import structlog

from tidemark.delivery.errors import DeliveryError
from tidemark.errors import with_fields
from tidemark.pipeline.choices import Operator
from tidemark.pipeline.problems import quoted
from tidemark.pipeline.transforms import (
    AnyTransform,
    Function,
    Omit,
    Pick,
    Pretty,
    Rename,
    Skip,
    function_at,
    number_of,
    shortened,
)

events = structlog.get_logger()


class Operation(StrEnum):
    """What a document does at the target."""

    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True, slots=True)
class Document:
    """A message as transforms see it."""

    op: Operation
    ts: int
    """Milliseconds since 1970."""
    namespace: str
    data: Mapping[str, Any]
    """JSON values by field."""


Change = Callable[[Document], Document | None]


@with_fields
class TransformFailed(DeliveryError):
    """A transform could not do its work on a message."""

    needs_person = True

    transform: str
    problem: str

    text = (
        "transform {transform}: {problem} The message was not written. Put the transform or the producer "
        "right."
    )


class _Unfit(Exception):
    """A document that a step has no answer for, as one sentence."""


@dataclass(frozen=True, slots=True)
class _Step:
    place: str
    subject: str
    """What raises when it raises."""
    namespaces: re.Pattern[str]
    change: Change


class Chain:
    """The transforms of one writer, in their order."""

    def __init__(self, transforms: Sequence[AnyTransform]) -> None:
        self._transforms = tuple(transforms)
        self._steps = tuple(_step(number, each) for number, each in enumerate(self._transforms, start=1))

    def __reduce__(self) -> tuple[type["Chain"], tuple[tuple[AnyTransform, ...]]]:
        return type(self), (self._transforms,)  # where it arrives, functions are found by their paths again

    def apply(self, document: Document, origin: str) -> Document | None:
        """What is left of a document; None when a transform drops it. Raises ``TransformFailed``.

        ``origin`` is the namespace the message came from: it decides which transforms apply, whatever an
        earlier one made of the document's namespace. A document that arrives as a delete has no data, so
        nothing applies to it.
        """
        if document.op is Operation.DELETE:
            return document
        for step in self._steps:
            if not step.namespaces.search(origin):
                continue
            try:
                changed = step.change(document)
            except _Unfit as unfit:
                raise TransformFailed(step.place, str(unfit)) from None
            except Exception as error:
                said = f"{type(error).__name__}: {shortened(error)}"
                raise TransformFailed(step.place, f"{step.subject} raised {said.rstrip('.: ')}.") from error
            if changed is None:
                return None
            document = changed
        return document


def _step(number: int, declared: AnyTransform) -> _Step:
    place = f"{number} ({declared.called})"
    subject = f"`{declared.path}`" if isinstance(declared, Function) else "it"
    return _Step(place, subject, re.compile(declared.namespaces), _change(declared, place))


def _change(declared: AnyTransform, place: str) -> Change:
    match declared:
        case Rename(fields=names):
            return lambda document: replace(document, data=_renamed(document.data, names))
        case Pick(fields=fields):
            return lambda document: replace(
                document, data={field: value for field, value in document.data.items() if field in fields}
            )
        case Omit(fields=fields):
            return lambda document: replace(
                document, data={field: value for field, value in document.data.items() if field not in fields}
            )
        case Skip():
            keeps = _comparison(declared)
            return lambda document: document if keeps(document.data.get(declared.field)) else None
        case Pretty(spaces=spaces):
            return lambda document: _logged(document, spaces)
        case Function(path=path):
            return _calling(path, place)
        case _:
            assert_never(declared)


def _renamed(data: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """All fields renamed at once: ``{a: b, b: a}`` swaps, ``{a: a}`` keeps.

    A renamed field stands in its old place and replaces one that already has its new name; an old name that
    the document does not have changes nothing.
    """
    replaced = {new for old, new in names.items() if old in data}
    return {
        names.get(field, field): value
        for field, value in data.items()
        if field in names or field not in replaced
    }


def _comparison(declared: Skip) -> Callable[[Any], bool]:
    """Whether ``skip`` keeps a message, from the value of its field; None for one that is not there."""
    name, wanted = f"field {quoted(declared.field)}", declared.match
    if declared.operator is Operator.EQUAL:
        return lambda value: _same(value, wanted)
    if declared.operator is Operator.FINDS:
        expression = re.compile(wanted)
        return lambda value: expression.search(_text(name, value)) is not None
    bound = number_of(wanted)
    match declared.operator:
        case Operator.GREATER:
            return lambda value: _number(name, value) > bound
        case Operator.AT_LEAST:
            return lambda value: _number(name, value) >= bound
        case Operator.LESS:
            return lambda value: _number(name, value) < bound
        case Operator.AT_MOST:
            return lambda value: _number(name, value) <= bound
        case _:
            assert_never(declared.operator)


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same value: numbers by what they amount to, everything else by kind."""
    match one, other:
        case (bool(), _) | (_, bool()):
            return one is other
        case (int() | float() | Decimal(), int() | float() | Decimal()):
            try:
                return number_of(one) == number_of(other)
            except ValueError:  # a NaN or an infinity is the same as nothing
                return False
        case (list(), list()):
            return len(one) == len(other) and all(map(_same, one, other))
        case (Mapping(), Mapping()):
            return one.keys() == other.keys() and all(_same(value, other[key]) for key, value in one.items())
        case (str(), str()):
            return one == other
    return one is None and other is None


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _Unfit(f"{name} is {quoted(value)}, which is not text.")
    return value


def _number(name: str, value: Any) -> Decimal:
    try:
        return number_of(value)
    except ValueError as error:
        raise _Unfit(f"{name} {error}") from None


def _logged(document: Document, spaces: int) -> Document:
    text = json.dumps(
        dict(document.data),
        ensure_ascii=False,
        indent=spaces or None,
        default=str,  # a Decimal: all its digits, though in quotes
    )
    events.info("document", namespace=document.namespace, op=document.op.value, ts=document.ts, data=text)
    return document


def _calling(path: str, place: str) -> Change:
    try:
        function = function_at(path)
    except ValueError as error:  # it was there when the file was loaded, but is not here
        raise TransformFailed(place, f"`path` {error}") from error

    def call(document: Document) -> Document | None:
        # It gets its own copy, because people do change what they are given.
        result = function(replace(document, data=_copied(document.data)))
        if result is None:
            return None
        if not isinstance(result, Document):
            kind = type(result).__name__
            raise _Unfit(f"`{path}` returned something of type {kind}. Return a Document, or None to drop.")
        if problem := _wrong_field(result):
            raise _Unfit(f"`{path}` returned a document whose {problem}.")
        return result

    return call


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value


def _wrong_field(document: Document) -> str | None:
    """What is wrong with the types in a document that somebody else's code made."""
    if not isinstance(document.op, Operation):
        return f"`op` is {quoted(document.op)}, which is not an Operation"
    if type(document.ts) is not int or not -(2**63) <= document.ts < 2**63:
        return f"`ts` is {quoted(document.ts)}, which is not a whole number of 64 bits"
    if not isinstance(document.namespace, str):
        return f"`namespace` is {quoted(document.namespace)}, which is not text"
    if not isinstance(document.data, dict):
        return f"`data` is of type {type(document.data).__name__}, which is not a dict"
    if foreign := _not_json(document.data):
        return f"`data` holds {foreign}, which JSON does not have"
    return None


def _not_json(value: Any) -> str | None:
    """The first thing inside a value that JSON has no way to write."""
    if value is None or isinstance(value, str | int):
        return None
    if isinstance(value, float | Decimal):
        return None if isfinite(value) else f"the number {value}"
    if isinstance(value, list):
        return next(filter(None, map(_not_json, value)), None)
    if isinstance(value, dict):
        if odd := [key for key in value if not isinstance(key, str)]:
            return f"the key {quoted(odd[0])}"
        return next(filter(None, map(_not_json, value.values())), None)
    return f"something of type {type(value).__name__}"
