"""The key of an entity as records have it: bytes that decode to the key's text.

Several byte sequences decode to the same text where they are not UTF-8. Knows nothing of records.
"""

from tidemark.journal.codec.json_text import storable
from tidemark.journal.codec.record import read_key

_REPLACED = "\ufffd"


class WantedKey:
    """One entity's key, compared with the keys of records."""

    __slots__ = ("is_ambiguous", "raw", "text")

    def __init__(self, text: str) -> None:
        self.text, self.raw = text, storable(text).encode()
        self.is_ambiguous = _REPLACED in text
        """Whether other bytes than ``raw`` may decode to the text."""

    def is_key(self, found: bytes | None) -> bool:
        """Whether a record with this key belongs to the entity."""
        if found == self.raw:
            return True
        return self.is_ambiguous and found is not None and read_key(found) == self.text
