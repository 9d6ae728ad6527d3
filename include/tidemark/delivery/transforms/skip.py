"""The transform ``skip``: keeps a message whose field compares as declared, and drops the others or makes
deletes of them."""

import json
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal, DecimalException
from enum import StrEnum
from typing import Annotated, Any, Self, assert_never

from pydantic import BeforeValidator, Field, model_validator

from tidemark.delivery.transforms.document import Change, Operation, Unfit
from tidemark.errors import did_you_mean
from tidemark.pipeline import checks
from tidemark.pipeline.problems import Disagreement, Finding, quoted
from tidemark.pipeline.transforms import Transform, TransformKind

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def number_of(value: object) -> Decimal:
    """The number that a value is, or that its text represents.

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
            pass  # the exponent is out of range
    raise ValueError(f"is {quoted(value)}, which is not a number.")


class SkipOperator(StrEnum):
    """How a ``skip`` compares a field with ``match``. ``OPERATOR_NAMES`` has further names of them."""

    EQUAL = "=="
    FINDS = "=~"
    GREATER = ">"
    AT_LEAST = ">="
    LESS = "<"
    AT_MOST = "<="

    @classmethod
    def _missing_(cls, value: object) -> "SkipOperator | None":
        symbol = OPERATOR_NAMES.get(value.removeprefix("$")) if isinstance(value, str) else None
        return cls(symbol) if symbol else None


OPERATOR_NAMES = {"eq": "==", "gt": ">", "gte": ">=", "lt": "<", "lte": "<="}
"""Other names of operators, which may also begin with a dollar sign."""


def _an_operator(value: Any) -> SkipOperator:
    try:
        return SkipOperator(value)
    except ValueError:
        # Operators that look alike mean different things, so only `==` is suggested: languages spell it
        # differently.
        hint = did_you_mean(value, [SkipOperator.EQUAL], "") if isinstance(value, str) else ""
        known = f"is {quoted(value)}, which is not one of {', '.join(SkipOperator)}."
        raise ValueError(f"{known} {hint}".rstrip()) from None


class SkippedAs(StrEnum):
    """What becomes of a message that is not kept.

    Attributes:
        DROP: It is not written.
        DELETE: It deletes the row of its key, so that a row which is no longer kept disappears.
    """

    DROP = "drop"
    DELETE = "delete"


def _is_drop(then: SkippedAs) -> bool:
    return then is SkippedAs.DROP


class Skip(Transform):
    """Keeps a message whose ``field`` compares with ``match`` as ``operator`` says; drops the others, or
    makes deletes of them."""

    called = "skip"
    field: str
    operator: Annotated[SkipOperator, BeforeValidator(_an_operator)]
    match: Any
    # Not part of the stored settings of writers that have no such key.
    then: SkippedAs = Field(SkippedAs.DROP, exclude_if=_is_drop)

    @property
    def deleting_key(self) -> str | None:
        """See ``Transform``."""
        return "then" if self.then is SkippedAs.DELETE else None

    @model_validator(mode="after")
    def _has_something_to_compare_with(self) -> Self:
        try:
            self._check_match()
        except ValueError as error:
            raise Disagreement([Finding(("match",), str(error))]) from None
        return self

    def _check_match(self) -> None:
        match self.operator:
            case SkipOperator.EQUAL:
                try:
                    json.dumps(self.match, allow_nan=False)
                except (TypeError, ValueError, RecursionError):
                    raise ValueError("is or holds something that JSON does not have. Remove it.") from None
            case SkipOperator.FINDS if isinstance(self.match, str):
                checks.expression(self.match)
            case SkipOperator.FINDS:
                raise ValueError(f"is {quoted(self.match)}, but `=~` needs an expression. Put it in quotes.")
            case _:
                try:
                    number_of(self.match)
                except ValueError as error:
                    raise ValueError(f"{error} `{self.operator}` compares numbers.") from None


def _skipping(declared: Skip) -> Change:
    keeps, field = comparison(declared.field, declared.operator, declared.match), declared.field
    if declared.then is SkippedAs.DELETE:
        return lambda document: (
            document if keeps(document.data.get(field)) else replace(document, op=Operation.DELETE)
        )
    return lambda document: document if keeps(document.data.get(field)) else None


def comparison(field: str, operator: SkipOperator, wanted: Any) -> Callable[[Any], bool]:
    """The function that compares the value of a field, None for a missing one, with the wanted one.

    It raises ``Unfit`` for a value that cannot be compared so, such as a text with ``>``.
    """
    name = f"field {quoted(field)}"
    if operator is SkipOperator.EQUAL:
        return lambda value: _same(value, wanted)
    if operator is SkipOperator.FINDS:
        expression = re.compile(wanted)
        return lambda value: expression.search(_text(name, value)) is not None
    bound = number_of(wanted)
    match operator:
        case SkipOperator.GREATER:
            return lambda value: _number(name, value) > bound
        case SkipOperator.AT_LEAST:
            return lambda value: _number(name, value) >= bound
        case SkipOperator.LESS:
            return lambda value: _number(name, value) < bound
        case SkipOperator.AT_MOST:
            return lambda value: _number(name, value) <= bound
        case _:
            assert_never(operator)


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal: numbers by value, everything else by type and value."""
    match one, other:
        case (bool(), _) | (_, bool()):
            return one is other
        case (int() | float() | Decimal(), int() | float() | Decimal()):
            try:
                return number_of(one) == number_of(other)
            except ValueError:  # NaN and infinity equal nothing
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
        raise Unfit(f"{name} is {quoted(value)}, which is not text.")
    return value


def _number(name: str, value: Any) -> Decimal:
    try:
        return number_of(value)
    except ValueError as error:
        raise Unfit(f"{name} {error}") from None


SKIP = TransformKind(Skip, _skipping)
