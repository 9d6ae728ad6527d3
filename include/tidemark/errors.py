"""The root of every error Tidemark raises on purpose.

Such an error is for an operator: its text is a few sentences that say what happened, what did not happen and
what to do next. The command line prints it and exits with 1. Any other exception is a defect and keeps its
traceback. Every package has its own family below the root (``LogError``, ``JournalError``,
``DeliveryError``, …), for callers that handle the errors of one part of the system. This module imports
nothing of the library, so every package may use it.

An error with fields declares each of them once, and a text that refers to them::

    @with_fields
    class FileMissing(LogError):
        pipeline: str
        path: str

        text = "{pipeline}: {path} is missing. Nothing was delivered from it. Restore it from a backup."

    raise FileMissing("orders", "segments/0.parquet")

An error whose text has to be computed overrides ``__str__`` instead. An error without fields is an ordinary
exception: ``raise BadBinding("t=1 does not follow.")``. All of them can be pickled and copied, so that a
Spark worker's error reaches the driver with its fields.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, ClassVar, TypeVar, dataclass_transform


class TidemarkError(Exception):
    """A problem that an operator can fix. The base class of every error that the library raises on
    purpose.
    """

    needs_person = False
    """Whether a retry cannot succeed before an operator has acted. Airflow then does not retry."""

    text: ClassVar[str] = ""
    """The template of the message for ``str.format``: names of fields or properties in braces."""

    def __str__(self) -> str:
        return self.text.format_map(_Attributes(self)) if self.text else super().__str__()

    def __post_init__(self) -> None:
        # Loggers and repr() of exceptions show ``args``, which a dataclass constructor would leave empty.
        self.args = (str(self),)

    def __reduce__(self) -> tuple[Callable[..., "TidemarkError"], tuple[Any, ...], dict[str, Any]]:
        return _unpickled, (type(self), *self.args), self.__dict__


class _Attributes:
    """The attributes of an error, as ``str.format_map`` reads them."""

    def __init__(self, error: TidemarkError) -> None:
        self._error = error

    def __getitem__(self, name: str) -> Any:
        return getattr(self._error, name)


def _unpickled(kind: type[TidemarkError], *args: Any) -> TidemarkError:
    """An error made without its constructor: pickle restores the fields from its state afterwards."""
    return kind.__new__(kind, *args)


AnError = TypeVar("AnError", bound=TidemarkError)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def with_fields(kind: type[AnError]) -> type[AnError]:
    """Class decorator: the annotated fields become the parameters of the error's constructor.

    As for every exception, errors with equal fields are not equal, and ``repr`` shows the text.
    """
    return dataclass(eq=False, repr=False)(kind)


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that is most similar to ``word``, ignoring case; None where none is similar."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    found = get_close_matches(word.casefold(), by_folded, n=1)
    return by_folded[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """A question that suggests the most similar known word; ``otherwise`` where none is similar."""
    meant = closest(word, known)
    return f"Did you mean `{meant}`?" if meant else otherwise
