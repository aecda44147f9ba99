"""Tokens as the operator makes the first one: in the database."""

import secrets
from collections.abc import Sequence
from uuid import uuid4

from engine.store import tokens
from engine.store.database import Database
from hub.auth.token_issuer import TokenRequest, given


async def given_directly(
    database: Database, project: str, name: str, roles: Sequence[str], *, password: str = ""
) -> str:
    """The token; or the password, which is one by then."""
    kept, token = given(
        TokenRequest(
            id=uuid4(),
            project=project,
            name=name,
            roles=roles,
            by="a test",
            password=password or None,
            random_bytes=secrets.token_bytes(32),
        )
    )
    async with database.connection() as conn:
        await tokens.create(conn, kept)
    return token or password


async def everything_in(database: Database, table: str) -> str:
    """All rows of a table, as text."""
    async with database.connection() as conn:
        rows = await conn.fetch(f"select t::text as row from {table} t")
    return "\n".join(row["row"] for row in rows)
