"""A message as people and JSON see it: bytes as text where they are text, else marked as base64."""

import base64
from collections.abc import Mapping
from typing import Any


def readable(message: Mapping[str, Any]) -> dict[str, Any]:
    """All columns of a message, ready for JSON; nothing is cut."""
    headers = [[header["name"], text_of(header["value"])] for header in message["headers"] or ()]
    return {
        **message,
        "key": text_of(message["key"]),
        "value": text_of(message["value"]),
        "headers": headers,
    }


def text_of(data: bytes | None) -> Any:
    """Bytes as text, or as something that says it is not."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


def restored(shown: Mapping[str, Any]) -> dict[str, Any]:
    """The message that ``readable`` showed."""
    headers = [{"name": name, "value": bytes_of(value)} for name, value in shown["headers"]]
    return {
        **shown,
        "key": bytes_of(shown["key"]),
        "value": bytes_of(shown["value"]),
        "headers": headers,
    }


def bytes_of(text: Any) -> bytes | None:
    """The bytes that ``text_of`` showed."""
    if text is None:
        return None
    return base64.b64decode(text["base64"]) if isinstance(text, Mapping) else str(text).encode()
