"""The root of what goes wrong in a delivery; each error is beside the code that raises it."""

from tidemark.errors import TidemarkError


class DeliveryError(TidemarkError):
    """A writer's messages, its position or its gate are not as a delivery or an operator needs them."""
