"""The refusal of one message: no row can be made of it."""


class NoRow(ValueError):
    """A message of which no row can be made; the text is a clause that says why, and what to do."""
