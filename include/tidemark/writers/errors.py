"""The root of what the writers refuse to do; each error is beside the code that raises it."""

from tidemark.errors import TidemarkError


class WriterError(TidemarkError):
    """A target is not as its writer left it, or does not take what is written."""
