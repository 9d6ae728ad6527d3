"""Errors about operations."""

from tidemark.errors import TidemarkError


class BadOperation(TidemarkError):
    """An operation that is refused; the text is the reason, as a clause about it."""
