"""Secrets that are planted in one place, and looked for in every other."""

import base64
import secrets
from collections.abc import Iterable, Iterator
from pathlib import Path

import asyncpg

from engine.store.database import Database

#: How much of a secret is looked for: what is cut off a secret is secret, too.
PIECE = 12
_TABLES = """
select c.oid::regclass::text as name from pg_class c
 where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' order by 1
"""


def plant(where: str) -> str:
    """A new secret, with no character that JSON or a URL writes otherwise in its first half."""
    return f'{secrets.token_hex(PIECE)}-{where} "é\\'


def needles(secret: str) -> Iterator[bytes]:
    """What is looked for: a piece of the secret as it is, in hexadecimal and in base64."""
    piece = secret[:PIECE].encode()
    yield piece.lower()
    yield piece.hex().encode()
    for before in range(3):
        cut = -(before + len(piece)) % 3
        coded = base64.b64encode(b"\0" * before + piece)
        start = (before * 8 + 5) // 6
        yield coded[start : len(coded) - (2 if cut else 0) - cut].lower()


class Findings:
    """Texts by where they came out, and the secrets found there. secrets: name -> value."""

    def __init__(self) -> None:
        self.secrets: dict[str, str] = {}
        self.seen: dict[str, int] = {}
        self.found: list[str] = []
        self._needles: dict[str, list[bytes]] = {}

    def plant(self, name: str, value: str | None = None) -> str:
        secret = self.secrets[name] = plant(name) if value is None else value
        self._needles[name] = list(needles(secret))
        return secret

    def look(self, where: str, text: str | bytes) -> None:
        """Look for every secret in a text."""
        raw = (text.encode() if isinstance(text, str) else text).lower()
        self.seen[where] = self.seen.get(where, 0) + len(raw)
        for name, sought in self._needles.items():
            for needle in sought:
                if (at := raw.find(needle)) >= 0:
                    around = raw[max(at - 160, 0) : at + 60].decode(errors="replace")
                    self.found.append(f"{name} in {where}: ...{around}")
                    break

    def has(self, name: str, text: str) -> bool:
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
    """The file of the write-ahead log that is written now."""
    return str(await conn.fetchval("select pg_walfile_name(pg_current_wal_lsn())"))


async def wal_since(conn: asyncpg.Connection, first: str) -> Iterable[tuple[str, bytes]]:
    """The files of the write-ahead log from one on, with all that is written so far."""
    await conn.execute("select pg_switch_wal()")
    directory = Path(str(await conn.fetchval("show data_directory"))) / "pg_wal"
    files = sorted(one for one in directory.iterdir() if len(one.name) == len(first))
    return ((one.name, one.read_bytes()) for one in files if one.name >= first)
