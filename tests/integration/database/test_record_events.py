"""`record_events` numbers and queues the events of one stack or of several."""

from uuid import UUID

import pytest

from engine.store.database import Database

STACKS = [UUID(int=1), UUID(int=2)]
MISSING = UUID(int=3)
CREATE = """
insert into stack (id, project, name, owner, version, traversal)
select id, 'p', 's' || n, 'ann', 1, 1 from unnest($1::uuid[]) with ordinality x (id, n)
"""
RECORD = """
select record_events(array_agg(
           row (id, 'headgate.test', null, null, null, null, null, '', null)::event_draft
           order by n))
  from unnest($1::uuid[]) with ordinality x (id, n)
"""
READ = "select stack_id, sequence from event order by stack_id, sequence"
QUEUED = "select stack_id, first, last from outbox order by stack_id"


@pytest.mark.parametrize(
    ("stacks", "recorded"),
    [
        ([], []),
        ([MISSING], []),
        ([STACKS[0]] * 2, [(STACKS[0], 1), (STACKS[0], 2)]),
        ([STACKS[1], STACKS[0], STACKS[1]],
         [(STACKS[0], 1), (STACKS[1], 1), (STACKS[1], 2)]),
        ([MISSING, STACKS[0]], [(STACKS[0], 1)]),
    ],
    ids=["no event", "a purged stack", "one stack", "two stacks", "a purged stack and another"],
)  # fmt: skip
async def test_events_of_stacks_that_exist_are_numbered_and_queued(
    database: Database, stacks: list[UUID], recorded: list[tuple[UUID, int]]
) -> None:
    async with database.connection() as conn:
        await conn.execute(CREATE, STACKS)
        await conn.execute(RECORD, stacks)
        assert [tuple(row) for row in await conn.fetch(READ)] == recorded
        queued = [
            (stack, first, last) for stack, first, last in map(tuple, await conn.fetch(QUEUED))
        ]
        assert queued == [
            (stack, 1, sum(one == stack for one, _ in recorded))
            for stack in sorted({one for one, _ in recorded})
        ]
        await conn.execute("select record_events('{}')")
