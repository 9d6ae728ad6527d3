"""The root of writers' errors; each error is defined beside the code that raises it."""

from tidemark.errors import TidemarkError


class WriterError(TidemarkError):
    """A writer refused its target, or the target failed."""
