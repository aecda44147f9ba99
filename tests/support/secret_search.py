"""Plants unique secrets, and searches outputs for them."""

import base64
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

import asyncpg

from engine.store.database import Database

#: The number of characters to search for: a part of a secret is secret, too.
PIECE_LENGTH = 12
_TABLES = """
select c.oid::regclass::text as name from pg_class c
 where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' order by 1
"""


def new_secret(where: str) -> str:
    """A new secret. Its first half has no character that JSON or a URL would escape."""
    return f'{secrets.token_hex(PIECE_LENGTH)}-{where} "é\\'


def needles(secret: str) -> Iterator[bytes]:
    """The byte strings to search for: a piece of the secret in plain text, hexadecimal
    and base64.
    """
    piece = secret[:PIECE_LENGTH].encode()
    yield piece.lower()
    yield piece.hex().encode()
    for before in range(3):
        cut = -(before + len(piece)) % 3
        coded = base64.b64encode(b"\0" * before + piece)
        start = (before * 8 + 5) // 6
        yield coded[start : len(coded) - (2 if cut else 0) - cut].lower()


class SecretSearch:
    """Texts by their origin, and the secrets found in them. secrets: name -> value."""

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        self.seen: dict[str, int] = {}
        self.found: list[str] = []
        self._needles: dict[str, list[bytes]] = {}

    def new_secret(self, name: str, value: str | None = None) -> str:
        secret = self.secrets[name] = new_secret(name) if value is None else value
        self._needles[name] = list(needles(secret))
        return secret

    def search(self, where: str, text: str | bytes) -> None:
        """Search a text for every secret."""
        raw = (text.encode() if isinstance(text, str) else text).lower()
        self.seen[where] = self.seen.get(where, 0) + len(raw)
        for name, secret_needles in self._needles.items():
            for needle in secret_needles:
                if (at := raw.find(needle)) >= 0:
                    context = raw[max(at - 160, 0) : at + 60].decode(errors="replace")
                    self.found.append(f"{name} in {where}: ...{context}")
                    break

    def contains(self, name: str, text: str) -> bool:
        return any(one in text.lower().encode() for one in self._needles[name])


async def rows_of(database: Database) -> dict[str, str]:
    """All rows of all tables as text, by table."""
    async with database.connection() as conn:
        names = [row["name"] for row in await conn.fetch(_TABLES)]
        return {
            name: "\n".join(
                row["row"] for row in await conn.fetch(f"select t::text as row from {name} t")
            )
            for name in names
        }


async def wal_start(conn: asyncpg.Connection) -> str:
    """The name of the current file of the write-ahead log."""
    return str(await conn.fetchval("select pg_walfile_name(pg_current_wal_lsn())"))


async def wal_since(conn: asyncpg.Connection, first: str) -> Iterable[tuple[str, bytes]]:
    """Name and content of the files of the write-ahead log, from `first` on."""
    await conn.execute("select pg_switch_wal()")
    directory = Path(str(await conn.fetchval("show data_directory"))) / "pg_wal"
    files = sorted(one for one in directory.iterdir() if len(one.name) == len(first))
    return ((one.name, one.read_bytes()) for one in files if one.name >= first)
