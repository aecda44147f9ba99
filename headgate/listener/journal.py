"""The notifications whose handlers run, in a file, so that they run again after a restart."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Json = Any


class Journal:
    """Entries by the ID of the hook, in a JSON file that only its owner can read: it has tokens."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.entries: dict[str, Json] = _read(path)
        self._write()  # a path that cannot be written is an error now, and not at the first hook

    def add(self, key: str, entry: Mapping[str, Json]) -> None:
        """Returns when the entry is on disk."""
        self.entries[key] = dict(entry)
        self._write()

    def remove(self, *keys: str) -> None:
        if any([self.entries.pop(key, None) is not None for key in keys]):
            self._write()

    def _write(self) -> None:
        new = self._path.with_name(f"{self._path.name}.new")
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(self.entries, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(self._path)


def _read(path: Path) -> dict[str, Json]:
    try:
        entries = json.loads(path.read_text() or "{}")
    except FileNotFoundError:
        return {}
    except ValueError:
        entries = None
    if not isinstance(entries, dict):
        raise ValueError(f"{path} is not the journal of a listener; remove it, or choose another")
    return entries
