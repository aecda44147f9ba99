"""Server-sent events from bytes."""

from headgate.event_stream_parser import EventStreamParser


def test_an_incomplete_event_is_not_returned() -> None:
    reader = EventStreamParser()
    assert list(reader.feed(b"id: 1-1\ndata: {}\n")) == []
    assert list(reader.feed(b"\n")) == [{"id": "1-1", "data": "{}"}]


def test_a_place_without_an_event_has_an_id() -> None:
    reader = EventStreamParser()
    assert list(reader.feed(b": connected\nid: 7-1\n")) == [] and reader.last_id == ""
    assert list(reader.feed(b"\n")) == [] and reader.last_id == "7-1"
    seen = [reader.last_id for _ in reader.feed(b"id: 8-1\ndata: {}\n\nid: 9-1\ndata: {}\n\n")]
    assert seen == ["8-1", "9-1"]
    assert list(reader.feed(b": heartbeat\n\n")) == [] and reader.last_id == "9-1"


def test_an_event_can_be_long() -> None:
    long = b"x" * 1_000_000
    (fields,) = EventStreamParser().feed(b"data: " + long + b"\n\n")
    assert len(fields["data"]) == len(long)
