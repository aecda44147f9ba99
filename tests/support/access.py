"""Tokens and passwords that a test inserts into the database, as `headgate admin create-token`
does.
"""

import secrets
from collections.abc import Sequence
from uuid import uuid4

from engine.store.access import tokens
from engine.store.database import Database
from hub.auth.token_issuer import TokenRequest, issue


async def insert_credential(
    database: Database, project: str, name: str, roles: Sequence[str], *, password: str = ""
) -> str:
    """Return the token, or the password if one was given."""
    token_row, token = issue(
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
        await tokens.create(conn, token_row)
    return token or password


async def table_text(database: Database, table: str) -> str:
    """All rows of a table, as text."""
    async with database.connection() as conn:
        rows = await conn.fetch(f"select t::text as row from {table} t")
    return "\n".join(row["row"] for row in rows)
