"""The root of every error Tidemark raises on purpose.

Such an error is for a person: its text is one or two sentences that say what is wrong, what did not happen
and what to do next. The command line prints it and exits with 1; anything else that escapes is a defect and
keeps its traceback. The pure packages (``journal``, ``log``) import nothing of ours and have roots of their
own, deriving from ``ValueError``.
"""

from collections.abc import Iterable
from difflib import get_close_matches


class TidemarkError(Exception):
    """Something a person can put right, said in the words they need for it."""

    needs_person = False
    """Whether trying again by itself cannot help: a person has to do something first."""


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    by_folded = {candidate.casefold(): candidate for candidate in known}
    found = get_close_matches(word.casefold(), by_folded, n=1)
    return by_folded[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """A question with the nearest known word; without one, what ``otherwise`` says."""
    meant = closest(word, known)
    return f"Did you mean `{meant}`?" if meant else otherwise
