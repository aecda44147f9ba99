"""Formats server-sent events and parses the IDs with which readers resume."""

from collections.abc import Mapping

import orjson

from channels.store.records import Cursor
from engine.errors import Conflict, Finding, Invalid
from engine.words import Json

CONTENT_TYPE = "text/event-stream"

#: A comment, which keeps the connection open and which clients ignore.
HEARTBEAT = b": heartbeat\n\n"

_LARGEST = 2**63 - 1


def event_id(cursor: Cursor) -> str:
    return f"{cursor.position}-{cursor.sequence}"


def parse_event_id(text: str) -> Cursor:
    """Parse a Last-Event-ID. Raises Invalid if it is not an ID of this stream."""
    position, dash, sequence = text.partition("-")
    if dash and all(part.isascii() and part.isdigit() for part in (position, sequence)):
        cursor = Cursor(int(position[:20]), int(sequence[:20]))
        if max(cursor.position, cursor.sequence) <= _LARGEST:
            return cursor
    raise Invalid([unknown_id("is not an ID of this stream")])


def unknown_id(reason: str) -> Finding:
    remedy = "Send the ID of the last event you read, or none to read new events only."
    return Finding("Last-Event-ID", reason, remedy, "InvalidEventId")


def gone(lowest: Cursor) -> Conflict:
    return Conflict(
        "the events after this one have been deleted, so you have missed some",
        place="Last-Event-ID",
        remedy="Read the current state of the stacks, then reconnect without an ID; the retained"
        f" events begin after {event_id(lowest)}.",
        code="EventsGone",
    )


def event_text(cursor: Cursor, kind: str, document: Mapping[str, Json]) -> bytes:
    """One event. The document fits on one line, because JSON escapes line breaks."""
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (
        event_id(cursor).encode(),
        kind.encode(),
        orjson.dumps(document),
    )
