"""Texts and bytes as CQL bytes. An empty text is a value, and not null."""

import binascii
from typing import Any

from tidemark.collection.model.values.misfit import Misfit


def text(value: Any) -> bytes:
    """``text``: any string that UTF-8 can encode."""
    if type(value) is not str:
        raise Misfit(value, "is not text")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise Misfit(value, "has one half of a surrogate pair, which UTF-8 cannot encode") from None


def ascii_text(value: Any) -> bytes:
    """``ascii``."""
    if type(value) is not str:
        raise Misfit(value, "is not text")
    if not value.isascii():
        raise Misfit(value, "has characters that ASCII does not have")
    return value.encode()


def blob(value: Any) -> bytes:
    """``blob``: base64 with padding, in the form that an encoder makes."""
    if type(value) is str:
        try:
            data = binascii.a2b_base64(value, strict_mode=True)
        except ValueError:
            data = None
        # The last character may have bits that no byte takes.
        if data is not None and binascii.b2a_base64(data, newline=False) == value.encode():
            return data
    raise Misfit(value, "is not base64 text")
