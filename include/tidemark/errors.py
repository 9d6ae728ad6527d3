"""The root of every error Tidemark raises on purpose.

Such an error is for an operator: its text is a few sentences that say what is wrong, what did not happen and
what to do next. The command line prints it and exits with 1; anything else that escapes is a defect and keeps
its traceback. Below the root every package has a family of its own (``LogError``, ``JournalError``,
``DeliveryError``, …), which a caller catches when it knows what to do about that part of the system. This
module imports nothing of the library, so every package may use it.

An error with facts declares each of them once, as a field, and a text that names them::

    @with_fields
    class FileMissing(LogError):
        pipeline: str
        path: str

        text = "{pipeline}: {path} is missing. Nothing was delivered from it. Restore it from a backup."

    raise FileMissing("orders", "segments/0.parquet")

A text that has to be worked out is a ``__str__`` instead. An error that has nothing but a text is an ordinary
exception: ``raise BadBinding("t=1 does not follow.")``. All of them can be pickled and copied, so that they
reach the driver from a Spark worker with their fields.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, ClassVar, TypeVar, dataclass_transform


class TidemarkError(Exception):
    """Something an operator can put right. Catch this to catch every error the library raises on purpose."""

    needs_person = False
    """Whether a retry cannot help: a person has to do something first. Airflow then does not retry."""

    text: ClassVar[str] = ""
    """What the error says, with the names of its fields in braces, as ``str.format`` takes them."""

    def __str__(self) -> str:
        return self.text.format_map(vars(self)) if self.text else super().__str__()

    def __post_init__(self) -> None:
        # Exception knows the arguments by position only; loggers and repr() expect the text there.
        self.args = (str(self),)

    def __reduce__(self) -> tuple[Callable[..., "TidemarkError"], tuple[Any, ...], dict[str, Any]]:
        return _made_again, (type(self), *self.args), self.__dict__


def _made_again(kind: type[TidemarkError], *args: Any) -> TidemarkError:
    """An error from a pickle, without its constructor: the fields follow as its state."""
    return kind.__new__(kind, *args)


AnError = TypeVar("AnError", bound=TidemarkError)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def with_fields(kind: type[AnError]) -> type[AnError]:
    """An error whose annotated fields are the parameters of its constructor.

    Two errors stay different things even with the same fields, and ``repr`` shows the text, as for every
    exception.
    """
    return dataclass(eq=False, repr=False)(kind)


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    found = get_close_matches(word.casefold(), by_folded, n=1)
    return by_folded[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """A question with the nearest known word; without one, what ``otherwise`` says."""
    meant = closest(word, known)
    return f"Did you mean `{meant}`?" if meant else otherwise
