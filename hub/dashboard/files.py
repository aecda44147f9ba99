"""The files of the dashboard, read once: they do not change while a server runs."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "page"
TYPES: Mapping[str, str] = {
    ".css": "text/css",
    ".html": "text/html",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
}


@dataclass(frozen=True, slots=True)
class File:
    """zipped: the body compressed with gzip."""

    content_type: str
    body: bytes
    zipped: bytes


@dataclass(frozen=True, slots=True)
class Files:
    """digest: of all files; part of their address, so that browsers can cache them."""

    digest: str
    by_path: Mapping[str, File]


@cache
def all_files() -> Files:
    found = {
        path.relative_to(FOLDER).as_posix(): _read(path)
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in TYPES
    }
    digest = hashlib.sha256()
    for name, file in found.items():
        digest.update(b"%b %d\n%b" % (name.encode(), len(file.body), file.body))
    return Files(digest.hexdigest()[:16], found)


def _read(path: Path) -> File:
    body = path.read_bytes()
    return File(TYPES[path.suffix], body, gzip.compress(body, mtime=0))
