"""The root of every error Tidemark raises on purpose.

Such an error is for a person: its text is one or two sentences that say what is wrong, what did not happen
and what to do next. The command line prints it and exits with 1; anything else that escapes is a defect and
keeps its traceback. The pure packages (``journal``, ``log``) import nothing of ours and have roots of their
own, deriving from ``ValueError``.
"""


class TidemarkError(Exception):
    """Something a person can put right, said in the words they need for it."""

    needs_person = False
    """Whether trying again by itself cannot help: a person has to do something first."""
