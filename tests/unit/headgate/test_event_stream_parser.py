"""Server-sent events from bytes."""

from headgate.event_stream_parser import EventStreamParser


def test_an_incomplete_event_is_not_returned() -> None:
    reader = EventStreamParser()
    assert list(reader.feed(b"id: 1-1\ndata: {}\n")) == []
    assert list(reader.feed(b"\n")) == [{"id": "1-1", "data": "{}"}]


def test_an_event_can_be_long() -> None:
    long = b"x" * 1_000_000
    (fields,) = EventStreamParser().feed(b"data: " + long + b"\n\n")
    assert len(fields["data"]) == len(long)
