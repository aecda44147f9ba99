"""Decodes the properties of messages without errors.

The library raises for text that is not UTF-8 and for times after the year 9999. Brokers accept
both, and the error ends the connection: the broker would deliver such a message again and again,
and no process could keep a connection.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from struct import unpack_from
from typing import Any

from pamqp import decode
from pamqp.base import BasicProperties
from pamqp.commands import Basic

#: Size in bytes of the longest headers that are decoded. The cost grows with the square.
MAX_HEADERS_BYTES = 16_384


def replace_property_decoder() -> None:
    """Make the library decode the properties of received messages with `read_properties`."""
    Basic.Properties.unmarshal = read_properties  # type: ignore[assignment, method-assign]


def read_properties(properties: BasicProperties, flags: int, data: bytes) -> None:
    """Set the properties that the flags name. A property that cannot be decoded is left out; text
    that is not UTF-8 has replacement characters."""
    for name in properties.__slots__:
        if flags & properties.flags[name]:
            size, value = _DECODERS[properties.amqp_type(name)](data)
            setattr(properties, name, value)
            data = data[size:]


def _octet(data: bytes) -> tuple[int, int]:
    return 1, data[0]


def _text(data: bytes) -> tuple[int, str]:
    end = 1 + data[0]
    return end, data[1:end].decode(errors="replace")


def _time(data: bytes) -> tuple[int, datetime | None]:
    (seconds,) = unpack_from(">Q", data)
    try:
        return 8, datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return 8, None


def _headers(data: bytes) -> tuple[int, Any]:
    (length,) = unpack_from(">I", data)
    end = 4 + length
    if length > MAX_HEADERS_BYTES:
        return end, None
    try:
        return end, decode.field_table(data[:end])[1]
    except (ValueError, ArithmeticError, OSError, RecursionError):
        return end, None


_DECODERS: Mapping[str, Callable[[bytes], tuple[int, Any]]] = {
    "octet": _octet,
    "shortstr": _text,
    "table": _headers,
    "timestamp": _time,
}
