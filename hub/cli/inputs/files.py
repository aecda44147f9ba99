"""Files of the command line, as text."""

from functools import partial
from pathlib import Path

from engine.errors import Finding
from hub.cli.signals import read_until_signal

#: Maximum bytes of one file: more than any request may have.
MAX_BYTES = 8 * 1024 * 1024


class InputError(Exception):
    """A file or option that cannot be used, with the reason. finding: what is wrong in a document
    and where, with the path of its file; None for other errors.
    """

    def __init__(self, message: str, finding: Finding | None = None) -> None:
        super().__init__(message)
        self.finding = finding


def shown_path(path: Path) -> str:
    """A path as text, relative to the working directory if it is below it."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def read_text(path: Path) -> str:
    """Raises InputError."""
    try:
        raw = _read(path) if path.is_file() else read_until_signal(partial(_read, path))
        if len(raw) > MAX_BYTES:
            size = f"{MAX_BYTES >> 20} MiB"
            raise InputError(f"{path}: is larger than {size}; no request may be as large")
        return raw.decode()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        reason = "it is not a text file in UTF-8. Save it in this encoding"
        raise InputError(f"{path}: cannot be read: {reason}") from error


def _read(path: Path) -> bytes:
    """At most one byte more than a file may have. Raises OSError."""
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)
