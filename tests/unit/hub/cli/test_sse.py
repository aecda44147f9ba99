"""Server-sent events from bytes."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from hub.cli.sse import Reader

STREAM = (
    b": connected\n\n"
    b'id: 1-2\nevent: headgate.stack.create.started\ndata: {"a": "\xc3\xa4: b"}\n\n'
    b": heartbeat\n\n"
    b"id: 2-9\ndata:{}\r\n\r\n"
)
EXPECTED = [
    {"id": "1-2", "event": "headgate.stack.create.started", "data": '{"a": "ä: b"}'},
    {"id": "2-9", "data": "{}"},
]


@given(st.lists(st.integers(0, len(STREAM))))
def test_however_the_bytes_arrive_the_events_are_the_same(cuts: list[int]) -> None:
    reader, places = Reader(), [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[a:b] for a, b in pairwise(places)]
    assert [fields for chunk in chunks for fields in reader.feed(chunk)] == EXPECTED


def test_an_unfinished_event_is_kept_back() -> None:
    reader = Reader()
    assert list(reader.feed(b"id: 1-1\ndata: {}\n")) == []
    assert list(reader.feed(b"\n")) == [{"id": "1-1", "data": "{}"}]


def test_an_event_may_be_long() -> None:
    long = b"x" * 1_000_000
    (fields,) = Reader().feed(b"data: " + long + b"\n\n")
    assert len(fields["data"]) == len(long)
