"""Properties of AMQP messages that the library cannot decode."""

import struct

import pytest
from pamqp import encode
from pamqp.commands import Basic

from channels.amqp.message_properties import MAX_HEADERS_BYTES, read_properties

FLAGS = Basic.Properties.flags


def text(raw: bytes) -> bytes:
    return struct.pack("B", len(raw)) + raw


def table(raw: bytes) -> bytes:
    return struct.pack(">I", len(raw)) + raw


def read(**parts: bytes) -> Basic.Properties:
    """parts: encoded properties, in the order of the protocol."""
    properties = Basic.Properties()
    flags = sum(FLAGS[name] for name in parts)
    read_properties(properties, flags, b"".join(parts.values()))
    return properties


def nested_tables(levels: int) -> bytes:
    inner = b""
    for _ in range(levels):
        inner = b"\x01aF" + table(inner)
    return inner


def test_valid_properties_are_read() -> None:
    headers = encode.field_table({"a": "b"})
    time = struct.pack(">Q", 1_700_000_000)
    found = read(
        content_type=text(b"text/plain"), headers=headers, delivery_mode=b"\x02",
        correlation_id=text(b"id"), timestamp=time, user_id=text("j\u00fcrg".encode()),
    )  # fmt: skip
    assert (found.content_type, found.headers, found.delivery_mode) == ("text/plain", {"a": "b"}, 2)
    assert (found.correlation_id, found.user_id) == ("id", "j\u00fcrg")
    assert found.timestamp is not None and found.timestamp.timestamp() == 1_700_000_000


@pytest.mark.parametrize("name", ["content_type", "correlation_id", "reply_to", "message_id"])
def test_text_that_is_not_utf_8_is_replaced(name: str) -> None:
    assert getattr(read(**{name: text(b"a\xff")}), name) == "a\ufffd"


@pytest.mark.parametrize(
    "headers",
    [
        b"\x01\xffS\x00\x00\x00\x00",
        b"\x01aT\x7f\xff\xff\xff\xff\xff\xff\xff",
        b"\x01aZ",
        b"\x01aS\x00\x00",
        nested_tables(1_500),
        b"\x01at\x01" * MAX_HEADERS_BYTES,
    ],
    ids=["key", "time", "kind", "cut off", "nested", "long"],
)
def test_headers_that_cannot_be_decoded_are_left_out(headers: bytes) -> None:
    found = read(headers=table(headers), correlation_id=text(b"id"))
    assert (found.headers, found.correlation_id) == (None, "id")


@pytest.mark.parametrize("seconds", [2**63, 2**64 - 1, 10**12])
def test_a_time_after_the_last_year_is_left_out(seconds: int) -> None:
    found = read(timestamp=struct.pack(">Q", seconds), app_id=text(b"a"))
    assert (found.timestamp, found.app_id) == (None, "a")
