"""Server-sent events, from bytes as they come to fields. Pure."""

from collections.abc import Iterator

#: Bytes of one unfinished line. An event is one line, and a hook's notice may be a long one.
LONGEST = 16 * 1024 * 1024


class Reader:
    """Feed it what the network gives; it gives each event's fields (id, event, data)."""

    def __init__(self) -> None:
        self._rest = b""
        self._fields: dict[str, str] = {}

    def feed(self, chunk: bytes) -> Iterator[dict[str, str]]:
        """Events that this chunk completes. Raises ValueError at a line without an end."""
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        if len(self._rest) > LONGEST:
            raise ValueError(f"a line of the stream is longer than {LONGEST} bytes")
        for line in lines:
            found = self._line(line.rstrip(b"\r").decode(errors="replace"))
            if found is not None:
                yield found

    def _line(self, line: str) -> dict[str, str] | None:
        if line.startswith(":"):
            return None
        if line:
            name, _, value = line.partition(":")
            self._fields[name] = value.removeprefix(" ")
            return None
        fields, self._fields = self._fields, {}
        return fields if "data" in fields else None
