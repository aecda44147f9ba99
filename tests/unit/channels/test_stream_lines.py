"""The format of the event stream."""

import pytest

from channels.store.records import Cursor
from channels.stream import event_id, event_text, parse_event_id
from engine.errors import Invalid


def test_an_event_is_one_block() -> None:
    text = event_text(Cursor(7, 3), "headgate.hook.waiting", {"a": "line\nbreak\r", "b": 1})
    assert text == (
        b'id: 7-3\nevent: headgate.hook.waiting\ndata: {"a":"line\\nbreak\\r","b":1}\n\n'
    )


def test_an_id_is_parsed_as_it_was_formatted() -> None:
    assert parse_event_id(event_id(Cursor(7, 3))) == Cursor(7, 3)


@pytest.mark.parametrize(
    "text",
    [
        "7",
        "7-",
        "-3",
        "a-3",
        "7-3-1",
        "7 - 3",
        "-7-3",
        "+7-3",
        "\u0667-\u0663",
        "9" * 20 + "-1",
        "1-" + "9" * 50,
    ],
)
def test_an_invalid_id_is_refused(text: str) -> None:
    with pytest.raises(Invalid) as caught:
        parse_event_id(text)
    assert caught.value.findings[0].place == "Last-Event-ID"
