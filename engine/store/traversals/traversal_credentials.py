"""Credentials of traversals, stored encrypted while their work may need them."""

from collections.abc import Sequence
from uuid import UUID

from engine.store.access.trusts import HANDED_OVER
from engine.store.connection import Connection
from engine.store.encryption.secret_values import Scope

#: Only for traversals that `delete_unused_credentials` leaves theirs. $5: `trusts.HANDED_OVER`.
INSERT = """
insert into credential (stack_id, traversal, encrypted, trust)
select s.*
  from unnest($1::uuid[], $2::integer[], $3::bytea[], $4::uuid[])
       s (stack_id, traversal, encrypted, trust)
 where s.trust = $5
    or exists (select from node n
                where n.stack_id = s.stack_id and n.traversal = s.traversal
                  and n.wake_at is not null)
    or exists (select from node n
                where n.stack_id = s.stack_id and n.traversal < s.traversal
                  and n.successor is not null and n.started_at is not null
                  and is_operating(n.state, n.phase))
on conflict (stack_id, traversal)
do update set encrypted = excluded.encrypted, trust = excluded.trust
    where credential.trust is distinct from $5
"""
#: $4: `trusts.HANDED_OVER`.
COPY = """
insert into credential (stack_id, traversal, encrypted, trust)
select $1, $3, encrypted, trust from credential
 where stack_id = $1 and traversal = $2 and trust is distinct from $4
on conflict do nothing
"""
IS_HANDED_OVER = """
select exists (select from credential where stack_id = $1 and traversal = $2 and trust = $3)
"""
READ = "select encrypted from credential where stack_id = $1 and traversal = $2"
READ_ALL = """
select s.project, c.stack_id, c.encrypted from credential c join stack s on s.id = c.stack_id
"""
READ_PROJECTS = "select id, project from stack where id = any ($1::uuid[])"
DELETE_UNUSED = "select delete_unused_credentials($1)"


def scope(project: str, stack_id: UUID) -> Scope:
    """The scope to which the encryption of a stack's credentials is bound. Its column is an earlier
    name, which ciphertexts in databases have."""
    return Scope(project, stack_id, "credential.sealed")


async def store(conn: Connection, encrypted: Sequence[tuple[UUID, int, bytes, UUID]]) -> None:
    """Store or replace (stack, traversal, ciphertext, `trust_id`) for traversals that have
    work now. Nothing replaces a credential that its project has handed over."""
    await conn.execute(INSERT, *map(list, zip(*encrypted, strict=True)), HANDED_OVER)


async def copy(conn: Connection, stack_id: UUID, traversal: int, to: int) -> None:
    """Copy the credential of a traversal to its rollback, unless its project has handed it over:
    the rollback changes also resources without drift."""
    await conn.execute(COPY, stack_id, traversal, to, HANDED_OVER)


async def is_handed_over(conn: Connection, stack_id: UUID, traversal: int) -> bool:
    """Whether a traversal under way acts with a credential that its project has handed over."""
    return bool(await conn.fetchval(IS_HANDED_OVER, stack_id, traversal, HANDED_OVER))


async def read(conn: Connection, stack_id: UUID, traversal: int) -> bytes | None:
    """The encrypted credential of a traversal."""
    encrypted: bytes | None = await conn.fetchval(READ, stack_id, traversal)
    return encrypted


async def delete_unused(conn: Connection, stack_id: UUID) -> None:
    """Delete the credentials of the stack's traversals that have no work now."""
    await conn.execute(DELETE_UNUSED, [stack_id])


async def projects_of(conn: Connection, stacks: Sequence[UUID]) -> dict[UUID, str]:
    """The project of each stack."""
    return {row["id"]: row["project"] for row in await conn.fetch(READ_PROJECTS, stacks)}


async def read_encrypted_credentials(conn: Connection) -> list[tuple[Scope, bytes]]:
    """All stored credentials, with the scopes of their encryption."""
    rows = await conn.fetch(READ_ALL)
    return [(scope(row["project"], row["stack_id"]), row["encrypted"]) for row in rows]
