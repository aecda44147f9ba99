"""Server-sent events that arrive in arbitrary pieces."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from headgate.event_stream_parser import EventStreamParser

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
def test_events_do_not_depend_on_chunks(cuts: list[int]) -> None:
    reader, places = EventStreamParser(), [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[a:b] for a, b in pairwise(places)]
    assert [fields for chunk in chunks for fields in reader.feed(chunk)] == EXPECTED
