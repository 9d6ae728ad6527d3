"""UUIDs and internet addresses, from their texts."""

import re
from ipaddress import ip_address
from typing import Any

from tidemark.collection.model.values.misfit import Misfit

_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")


def uuid(value: Any) -> bytes:
    """``uuid``: 32 hexadecimal digits in five groups."""
    if type(value) is str and _UUID.fullmatch(value):
        return bytes.fromhex(value.replace("-", ""))
    raise Misfit(value, "is not a UUID")


def timeuuid(value: Any) -> bytes:
    """``timeuuid``: a UUID of version 1."""
    data = uuid(value)
    if data[6] >> 4 != 1:
        raise Misfit(value, "is not a UUID of version 1")
    return data


def inet(value: Any) -> bytes:
    """``inet``: an address of IPv4 or IPv6."""
    # The cell has no place for the zone after a %.
    if type(value) is str and "%" not in value:
        try:
            return ip_address(value).packed
        except ValueError:
            pass  # refused below
    raise Misfit(value, "is not an internet address")
