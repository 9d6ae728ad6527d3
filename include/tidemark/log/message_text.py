"""Messages as JSON values: bytes as text where they are UTF-8, else as ``{"base64": …}``."""

import base64
from collections.abc import Mapping
from typing import Any


def readable(message: Mapping[str, Any]) -> dict[str, Any]:
    """All columns of a message as JSON values, uncut."""
    headers = [[header["name"], text_of(header["value"])] for header in message["headers"] or ()]
    return {
        **message,
        "key": text_of(message["key"]),
        "value": text_of(message["value"]),
        "headers": headers,
    }


def text_of(data: bytes | None) -> Any:
    """Bytes as text where they are UTF-8, else as ``{"base64": …}``."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def restored(shown: Mapping[str, Any]) -> dict[str, Any]:
    """The inverse of ``readable``."""
    headers = [{"name": name, "value": bytes_of(value)} for name, value in shown["headers"]]
    return {
        **shown,
        "key": bytes_of(shown["key"]),
        "value": bytes_of(shown["value"]),
        "headers": headers,
    }


def bytes_of(text: Any) -> bytes | None:
    """The inverse of ``text_of``."""
    if text is None:
        return None
    return base64.b64decode(text["base64"]) if isinstance(text, Mapping) else str(text).encode()
