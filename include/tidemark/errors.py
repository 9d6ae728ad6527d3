"""The root of every error Tidemark raises on purpose.

Such an error is for an operator: its text is a few sentences that say what is wrong, what did not happen and
what to do next. The command line prints it and exits with 1; anything else that escapes is a defect and keeps
its traceback. Below the root every package has a family of its own (``LogError``, ``JournalError``,
``DeliveryError``, …), which a caller catches when it knows what to do about that part of the system. This
module imports nothing of the library, so every package may use it.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class TidemarkError(Exception):
    """Something an operator can put right. Catch this to catch every error the library raises on purpose."""

    needs_person = False
    """Whether a retry cannot help: a person has to do something first. Airflow then does not retry."""


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    found = get_close_matches(word.casefold(), by_folded, n=1)
    return by_folded[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """A question with the nearest known word; without one, what ``otherwise`` says."""
    meant = closest(word, known)
    return f"Did you mean `{meant}`?" if meant else otherwise
