"""Credentials of traversals, stored encrypted while their work may need them."""

from collections.abc import Sequence
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encryption import Scope

#: Only where something is about to run.
KEEP = """
insert into credential (stack_id, traversal, sealed)
select s.*
  from unnest($1::uuid[], $2::integer[], $3::bytea[]) s (stack_id, traversal, sealed)
 where exists (select from node n
                where n.stack_id = s.stack_id and n.traversal = s.traversal
                  and n.wake_at is not null)
on conflict (stack_id, traversal) do update set sealed = excluded.sealed
"""
HAND_ON = """
insert into credential (stack_id, traversal, sealed)
select $1, $3, sealed from credential where stack_id = $1 and traversal = $2
on conflict do nothing
"""
READ = "select sealed from credential where stack_id = $1 and traversal = $2"
SEALED = """
select s.project, c.stack_id, c.sealed from credential c join stack s on s.id = c.stack_id
"""
PROJECTS = "select id, project from stack where id = any ($1::uuid[])"
FORGET = "select delete_unused_credentials($1)"


def scope(project: str, stack_id: UUID) -> Scope:
    """What the credentials of a stack are bound to."""
    return Scope(project, stack_id, "credential.sealed")


async def keep(conn: Connection, said: Sequence[tuple[UUID, int, bytes]]) -> None:
    """(stack, traversal, sealed) for those that have something to do; a newer one takes the place
    of an older one."""
    await conn.execute(KEEP, *map(list, zip(*said, strict=True)))


async def hand_on(conn: Connection, stack_id: UUID, traversal: int, to: int) -> None:
    """What a traversal acted with, its rollback acts with, too."""
    await conn.execute(HAND_ON, stack_id, traversal, to)


async def read(conn: Connection, stack_id: UUID, traversal: int) -> bytes | None:
    """What a traversal acts with, sealed."""
    sealed: bytes | None = await conn.fetchval(READ, stack_id, traversal)
    return sealed


async def forget(conn: Connection, stack_id: UUID) -> None:
    """Those of the stack's traversals that have nothing to do (any more)."""
    await conn.execute(FORGET, [stack_id])


async def projects_of(conn: Connection, stacks: Sequence[UUID]) -> dict[UUID, str]:
    """By stack."""
    return {row["id"]: row["project"] for row in await conn.fetch(PROJECTS, stacks)}


async def sealed_ones(conn: Connection) -> list[tuple[Scope, bytes]]:
    """All stored credentials, with the scopes that their encryption is bound to."""
    return [
        (scope(row["project"], row["stack_id"]), row["sealed"]) for row in await conn.fetch(SEALED)
    ]
