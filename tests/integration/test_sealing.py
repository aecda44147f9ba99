"""Hidden values in documents: sealed where they stand, plain again for whoever has the key."""

import os
import re
from pathlib import Path

import pytest

from engine.errors import Unavailable
from engine.store.database import Database, open_database
from engine.store.instance import signing_key
from engine.store.sealing import Hidden, Sealed, Sealer
from tests.support.keys import A_SEALER
from tests.support.program import program

OTHER = Sealer(b"o" * 32, random_bytes=os.urandom)
SEALED = re.compile(r'\{"\$sealed:[0-9a-f]{16}": "[A-Za-z0-9+/=]+"\}')


@pytest.fixture
async def table(database: Database) -> str:
    async with database.connection() as conn:
        await conn.execute("create table kept (id integer primary key, document jsonb)")
    return "kept"


async def test_hidden_values_are_sealed_wherever_they_stand(
    database: Database, database_url: str, table: str
) -> None:
    wholes = [
        Hidden("secret"),
        {"a": Hidden("secret"), "b": [1, Hidden({"deep": "secret"})], "c": "open"},
        [Hidden(None), Hidden(1.5)],
    ]
    plain = ["secret", {"a": "secret", "b": [1, {"deep": "secret"}], "c": "open"}, [None, 1.5]]
    async with database.connection() as conn:
        await conn.executemany("insert into kept values ($1, $2)", list(enumerate(wholes)))
        rows = await conn.fetch("select document, document::text as text from kept order by id")
    assert [row["document"] for row in rows] == plain
    assert not any("secret" in row["text"] or "deep" in row["text"] for row in rows)
    assert SEALED.fullmatch(rows[0]["text"]) and '"c": "open"' in rows[1]["text"]
    # The same value is the same text, so that what has not changed is not written again.
    assert len(set(SEALED.findall(rows[0]["text"] + rows[1]["text"]))) == 2
    for sealer in (None, OTHER):
        other = await open_database(database_url, size=1, sealer=sealer)
        async with other.connection() as conn:
            [first, *_] = await conn.fetch("select document from kept order by id")
            assert "secret" not in str(first) and len(first["document"]) == 1
        await other.close()


async def test_nobody_brings_a_sealed_value_in_from_outside(database: Database, table: str) -> None:
    """The tag is nobody's to know; and what has another one is a document as any other."""
    forged = {"$sealed:0123456789abcdef": "AAAA"}
    async with database.connection() as conn:
        await conn.execute("insert into kept values (1, $1)", {"a": forged, "b": Hidden(forged)})
        row = await conn.fetchrow("select document from kept")
    assert row is not None and row["document"] == {"a": forged, "b": forged}


async def test_a_damaged_value_is_told(database: Database, table: str) -> None:
    async with database.connection() as conn:
        await conn.execute("insert into kept values (1, $1)", {"a": Hidden("secret")})
        await conn.execute(
            r"""update kept set document = regexp_replace(document::text, ': "..', ': "zz')::jsonb"""
        )
        with pytest.raises(Sealed, match="is damaged"):
            await conn.fetch("select document from kept")


async def test_without_a_key_nothing_hidden_is_written(database_url: str, table: str) -> None:
    keyless = await open_database(database_url, size=1)
    async with keyless.connection() as conn:
        with pytest.raises(Exception, match="Hidden object"):
            await conn.execute("insert into kept values (1, $1)", Hidden("x"))
        assert await conn.fetchval("select count(*) from kept") == 0
    await keyless.close()


async def test_a_server_with_another_key_does_not_start(
    database_url: str, data_directory: Path
) -> None:
    async with program(database_url):
        pass
    data_directory.mkdir(exist_ok=True)
    key = data_directory / "other.key"
    key.write_bytes(b"o" * 32)
    with pytest.raises(Unavailable, match="sealed with another key") as refused:
        async with program(database_url, {"credentials.key_file": str(key)}):
            pass
    assert refused.value.finding.place == "[credentials] key_file"


async def test_the_key_of_hook_tokens_is_sealed_also_when_it_was_not(database: Database) -> None:
    async with database.connection() as conn:
        await conn.execute("insert into instance (signing_key) values ($1)", b"s" * 32)
        assert await signing_key(conn, b"f" * 32, A_SEALER) == b"s" * 32
        kept: bytes = await conn.fetchval("select signing_key from instance")
        assert b"s" * 8 not in kept and len(kept) > 32
        assert await signing_key(conn, b"f" * 32, A_SEALER) == b"s" * 32
        with pytest.raises(Unavailable):
            await signing_key(conn, b"f" * 32, OTHER)
