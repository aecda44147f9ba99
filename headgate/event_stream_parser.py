"""Parses server-sent events."""

from collections.abc import Iterator

#: Maximum bytes of one line of an event stream.
MAX_LINE = 16 * 1024 * 1024


class EventStreamParser:
    """Parses server-sent events from chunks of bytes into their fields: id, event, data.

    last_id: the last ID, also of a place without an event; empty: there was none.
    """

    def __init__(self) -> None:
        self.last_id = ""
        self._rest = b""
        self._fields: dict[str, str] = {}

    def feed(self, chunk: bytes) -> Iterator[dict[str, str]]:
        """The events that this chunk completes. Raises ValueError if a line is too long."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise ValueError(f"a line of the stream is longer than {MAX_LINE} bytes")
        for line in lines:
            event = self._line(line.rstrip(b"\r").decode(errors="replace"))
            if event is not None:
                yield event

    def _line(self, line: str) -> dict[str, str] | None:
        if line.startswith(":"):
            return None
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return None
        fields, self._fields = self._fields, {}
        self.last_id = fields.get("id", self.last_id)
        return fields if "data" in fields else None
