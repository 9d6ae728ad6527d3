"""``expect``: the differences that the next rendition of a writer is meant to have, each with its reason.

A rule is about rows that are missing in the new rendition, added in it, or changed, and may be limited to a
column, by conditions, and in number. The rows themselves are compared in ``verification.renditions``.
"""

import json
import re
from dataclasses import dataclass
from decimal import Decimal, DecimalException
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, model_validator

from tidemark.pipeline import checks
from tidemark.pipeline.parts import Count, Declaration
from tidemark.pipeline.problems import Disagreement, Finding, quoted

_CONDITION = re.compile(
    r"""\s*(?P<field>[^\s=<>"']+)\s*(?P<operator>==|=~|>=|<=|>|<)\s*"""
    r"""(?P<value>"(?:[^"\\]|\\.)*"|'[^']*'|[^\s"']+)\s*(?P<more>\band\b|$)"""
)
_SIDES = {"old": True, "new": False}
_ORDERED = frozenset({">", ">=", "<", "<="})


class RowChange(StrEnum):
    """How a row of the new rendition differs from the one that readers use now.

    Attributes:
        MISSING: The new rendition does not have it.
        ADDED: Only the new rendition has it.
        CHANGED: Both have it, and columns differ.
    """

    MISSING = "missing"
    ADDED = "added"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on a row: a field compares with a value.

    Attributes:
        field: The field's name, without ``old.`` or ``new.``.
        is_old: Whether it is the field of the row that readers use now; None: of that row, or of the new one
            where there is none.
        operator: As in the transform ``skip``.
        match: The value.
    """

    field: str
    is_old: bool | None
    operator: str
    match: Any


def parse_conditions(text: str) -> tuple[Condition, ...]:
    """The conditions of ``owner == carol and new.balance > 10``; raises ``ValueError`` with the rest of a
    sentence that begins with the key's name."""
    found: list[Condition] = []
    at, goes_on = 0, True
    while goes_on:
        part = _CONDITION.match(text, at)
        if part is None:
            problem = "ends after `and`" if found and not text[at:].strip() else "is no condition"
            shown = quoted(text[at:].strip() or text)
            raise ValueError(
                f"{problem} at {shown}. Write conditions as `owner == carol and new.balance > 10`, and texts "
                "with blanks in quotes."
            )
        found.append(_condition(part["field"], part["operator"], part["value"]))
        at, goes_on = part.end(), bool(part["more"])
    return tuple(found)


def _condition(field: str, operator: str, value: str) -> Condition:
    side, dot, rest = field.partition(".")
    is_old, name = (_SIDES[side], rest) if dot and side in _SIDES else (None, field)
    match = _value(value)
    if operator == "=~":
        match = match if isinstance(match, str) else value
        checks.expression(match)
    elif operator in _ORDERED and not _is_number(match):
        raise ValueError(f"compares `{field}` with {quoted(match)}, and `{operator}` needs a number.")
    return Condition(name, is_old, operator, match)


def _value(text: str) -> Any:
    """A number, true, false or null as JSON has it; everything else is text."""
    if text.startswith("'"):
        return text[1:-1]
    try:
        return json.loads(text, parse_float=Decimal)
    except ValueError:
        return text


def _is_number(value: Any) -> bool:
    try:
        return not isinstance(value, bool) and Decimal(value).is_finite()
    except (TypeError, ValueError, DecimalException):
        return False


def _conditions(text: str) -> str:
    parse_conditions(text)
    return text


def _reason(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty. Say why the difference is meant: reports show it.")
    return text.strip()


class Expectation(Declaration):
    """A difference between the new rendition and the one that readers use, which is meant."""

    rows: RowChange = RowChange.CHANGED
    column: str | None = None
    """The column that may differ; only for changed rows. None: any."""
    where: Annotated[str, AfterValidator(_conditions)] | None = None
    """Conditions on the row. None: every row."""
    at_most: Annotated[Count, Field(ge=0)] | None = None
    """The most rows; more of them are unexplained."""
    reason: Annotated[str, AfterValidator(_reason)]

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions of ``where``."""
        return parse_conditions(self.where) if self.where else ()

    @property
    def told(self) -> str:
        """The rule in words, without its reason."""
        text = f"{self.rows} rows" if self.column is None else f"changed `{self.column}`"
        text += f" where {self.where}" if self.where else ""
        return f"{text}, at most {self.at_most:,}" if self.at_most is not None else text

    @model_validator(mode="after")
    def _names_a_column_of_changed_rows_only(self) -> Self:
        if self.column is not None and self.rows is not RowChange.CHANGED:
            text = f"is taken with `rows: changed` only; a row is {self.rows} whole. Use `where`."
            raise Disagreement([Finding(("column",), text)])
        return self
