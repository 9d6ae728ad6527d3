"""The root of delivery errors; each error is defined beside the code that raises it."""

from tidemark.errors import TidemarkError


class DeliveryError(TidemarkError):
    """A delivery, or an operator's action on a writer, was refused or failed."""
