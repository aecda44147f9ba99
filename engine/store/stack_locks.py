"""The lock that orders all changes of a stack: its row in `stack`."""

from collections.abc import Iterable
from uuid import UUID

from engine.store.connection import Connection

LOCK_STACKS = "select id from stack where id = any ($1::uuid[]) order by id for no key update"


async def lock_stacks(conn: Connection, stack_ids: Iterable[UUID]) -> None:
    """Lock the rows of these stacks until the transaction ends, in the order of their IDs.

    Every writer of a stack's nodes, hooks or events takes this lock first. IDs without a row are
    skipped.
    """
    await conn.execute(LOCK_STACKS, list(set(stack_ids)))
