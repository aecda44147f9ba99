"""Secret values in documents: encrypted in place, and decrypted with the key."""

import base64
import hmac
import os
import re
from pathlib import Path
from uuid import UUID

import orjson
import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from engine.errors import Unavailable
from engine.store.access.token_keys import signing_key
from engine.store.database import Database, open_database
from engine.store.encryption.secret_values import (
    DecryptionFailed,
    EncryptedDocument,
    Keyring,
    Scope,
    Secret,
    decrypt,
)
from engine.types.contract import Done
from engine.words import Json
from tests.support.changes import thing
from tests.support.keys import KEY, KEYRING
from tests.support.program import Program, program
from tests.support.scripted_type import World

OTHER = Keyring(b"o" * 32, random_bytes=os.urandom)
CIPHERTEXT = re.compile(r'\{"\$sealed:v2:[0-9a-f]{16}": "[A-Za-z0-9+/=]+"\}')
SCOPE = Scope("p", UUID(int=1), "resource.properties")
DAMAGE = r"""update kept set document = regexp_replace(document::text, ': "..', ': "zz')::jsonb"""


def hidden(value: Json) -> Secret:
    return Secret(value, SCOPE)


@pytest.fixture
async def table(database: Database) -> str:
    async with database.connection() as conn:
        await conn.execute("create table kept (id integer primary key, document jsonb)")
    return "kept"


async def test_secret_values_are_encrypted_in_place(
    database: Database, database_url: str, table: str
) -> None:
    wholes = [
        hidden("secret"),
        {"a": hidden("secret"), "b": [1, hidden({"deep": "secret"})], "c": "open"},
        [hidden(None), hidden(1.5)],
    ]
    plain = ["secret", {"a": "secret", "b": [1, {"deep": "secret"}], "c": "open"}, [None, 1.5]]
    async with database.connection() as conn:
        await conn.executemany("insert into kept values ($1, $2)", list(enumerate(wholes)))
        rows = await conn.fetch("select document, document::text as text from kept order by id")
    assert [decrypt(row["document"], SCOPE) for row in rows] == plain
    assert not any("secret" in row["text"] or "deep" in row["text"] for row in rows)
    assert CIPHERTEXT.fullmatch(rows[0]["text"]) and '"c": "open"' in rows[1]["text"]
    # An equal value has the same ciphertext, so unchanged documents are not written again.
    assert len(set(CIPHERTEXT.findall(rows[0]["text"] + rows[1]["text"]))) == 2
    for keyring in (None, OTHER):
        other = await open_database(database_url, size=1, keyring=keyring)
        async with other.connection() as conn:
            [first, *_] = await conn.fetch("select document from kept order by id")
            with pytest.raises(DecryptionFailed, match="no key"):
                decrypt(first["document"], SCOPE)
            await conn.execute("update kept set document = $1 where id = 0", first["document"])
        await other.close()
    async with (
        database.connection() as conn
    ):  # a document written back without decryption is unchanged
        repeated = await conn.fetchval("select document::text from kept where id = 0")
    assert repeated == rows[0]["text"]


@pytest.mark.parametrize(
    "other_scope",
    [SCOPE._replace(project="other"), SCOPE._replace(owner=UUID(int=2)),
     SCOPE._replace(column="resource.data")],
)  # fmt: skip
async def test_a_value_moved_to_another_scope_is_not_decrypted(
    database: Database, table: str, other_scope: Scope
) -> None:
    """By project, owner and column. Equal values of two scopes have different ciphertexts."""
    async with database.connection() as conn:
        await conn.execute("insert into kept values (1, $1)", hidden("secret"))
        await conn.execute("insert into kept values (2, $1)", Secret("secret", other_scope))
        rows = await conn.fetch("select document, document::text as text from kept order by id")
    assert rows[0]["text"] != rows[1]["text"]
    with pytest.raises(DecryptionFailed, match="or was moved here"):
        decrypt(rows[0]["document"], other_scope)
    assert decrypt(rows[1]["document"], other_scope) == "secret"


async def test_a_users_document_is_never_treated_as_an_encrypted_value(
    database: Database, table: str
) -> None:
    """In every notation of the user, also for a reader with the key."""
    async with database.connection() as conn:
        await conn.execute("insert into kept values (1, $1)", hidden("secret"))
        copied = orjson.loads(await conn.fetchval("select document::text from kept where id = 1"))
        ((field, text),) = copied.items()
        documents = [
            copied,
            {"a": copied, "b": hidden(copied)},
            [{"deep": {"$sealed:0123456789abcdef": "AAAA"}}],
            {"$sealed:user:x": 1, f"$sealed:user:{field}": text, "$sealed:": None},
            f'"{field}": "{text}"',
        ]
        plain = [documents[0], {"a": copied, "b": copied}, *documents[2:]]
        await conn.execute("truncate kept")
        await conn.executemany("insert into kept values ($1, $2)", list(enumerate(documents)))
        rows = await conn.fetch("select document from kept order by id")
    assert [decrypt(row["document"], SCOPE) for row in rows] == plain
    assert [type(row["document"]) is EncryptedDocument for row in rows] == [False, True] + [
        False
    ] * 3


async def test_values_of_earlier_versions_are_read(database: Database, table: str) -> None:
    """Those values have no scope."""
    tag = hmac.digest(KEY, b"tag of hidden values", "sha256").hex()[:16]
    nonce = b"n" * 12
    text = base64.b64encode(nonce + AESGCM(KEY).encrypt(nonce, b'{"a":1}', None)).decode()
    async with database.connection() as conn:
        await conn.execute(
            "insert into kept values (1, $1::text::jsonb)",
            orjson.dumps({"x": {f"$sealed:{tag}": text}}).decode(),
        )
        row = await conn.fetchrow("select document from kept")
    assert row is not None and decrypt(row["document"], SCOPE) == {"x": {"a": 1}}


async def test_a_damaged_value_raises_when_it_is_used(database: Database, table: str) -> None:
    """The row and its neighbors can still be read."""
    async with database.connection() as conn:
        await conn.executemany(
            "insert into kept values ($1, $2)", [(1, {"a": hidden("secret")}), (2, {"b": 1})]
        )
        await conn.execute(DAMAGE)
        rows = await conn.fetch("select document from kept order by id")
    assert rows[1]["document"] == {"b": 1}
    with pytest.raises(DecryptionFailed, match="is damaged") as raised:
        decrypt(rows[0]["document"], SCOPE)
    assert raised.value.finding.remedy and raised.value.code == "Undecryptable"


async def test_without_a_key_no_secret_is_written(database_url: str, table: str) -> None:
    keyless = await open_database(database_url, size=1)
    async with keyless.connection() as conn:
        with pytest.raises(Exception, match="is not JSON serializable: Secret"):
            await conn.execute("insert into kept values (1, $1)", hidden("x"))
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
    with pytest.raises(Unavailable, match="encrypted with another key") as refused:
        async with program(database_url, {"credentials.key_file": str(key)}):
            pass
    assert refused.value.finding.place == "[credentials] key_file"


async def test_an_unencrypted_first_token_key_is_encrypted(database: Database) -> None:
    async with database.connection() as conn:
        await conn.execute("insert into instance (signing_key) values ($1)", b"s" * 32)
        assert await signing_key(conn, b"f" * 32, KEYRING) == b"s" * 32
        kept: bytes = await conn.fetchval("select signing_key from instance")
        assert b"s" * 8 not in kept and len(kept) > 32
        assert await signing_key(conn, b"f" * 32, KEYRING) == b"s" * 32
        with pytest.raises(Unavailable):
            await signing_key(conn, b"f" * 32, OTHER)


async def test_values_that_an_operation_returns_as_secret_are_encrypted(
    run: Program, world: World
) -> None:
    world.script("create", "a", Done("id", {"size": "hush"}, {"mine": "hush"}, secret={"size"}))
    await run.create("s", {"a": thing()})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    shown = (await run.stack_request("GET", "s", "/resources/a"))["resource"]["attributes"]
    assert shown["size"] == "******"
    async with run.database.connection() as conn:
        stored = await conn.fetchval("select attributes::text || data::text from resource")
    assert "$sealed" in stored and "hush" not in stored
