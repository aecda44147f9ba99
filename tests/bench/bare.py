"""The machine's own limit: settle and claim with nothing around it.

The same SQL function, on the same graph, with steps that say no more than "done".
"""

import time
from datetime import timedelta
from uuid import UUID, uuid4

from engine.store.advance import Claim, advance
from engine.store.database import Database
from engine.words import Json

INSERT = """
insert into stack (id, project, name, owner, version, traversal) values ($1, 'bare', $2, '', 1, 1);
"""
INSERT_TRAVERSAL = """
insert into traversal (stack_id, number, project, action, version, state, reason, digest, active,
                       wake_at, requested_by)
values ($1, 1, 'bare', 'CREATE', 1, 'running', '', '', $2, now(), '')
"""
INSERT_NODES = """
insert into node (stack_id, traversal, id, resource_id, name, type, operation, direction, state,
                  phase, waits, requirers, reads, passed, claim, wake_at)
select $1, 1, n, gen_random_uuid(), 'r' || n, 'T', 'create', 'forward',
       case when w = 0 then 'ready' else 'waiting' end, 'act', w, r, '{}', '{}', 0,
       case when w = 0 then now() end
  from jsonb_to_recordset($2) as g (n integer, w integer, r integer[])
"""
EMPTY: dict[str, Json] = {
    "state": "done", "phase": "post", "operation": "create", "passed": [], "wake_at": None,
    "progress": None, "attempts": 0, "reason": None, "resource": None, "kept": None, "hook": None,
    "events": [],
}  # fmt: skip


async def rate(database: Database, resources: Json, batch: int) -> float:
    """Nodes a second."""
    stack_id = await _insert(database, resources)
    steps: list[Json] = []
    done = 0
    began = time.perf_counter()
    async with database.connection() as conn:
        while done < len(resources):
            got = await advance(conn, "bare", timedelta(minutes=1), batch, steps)
            steps = [_done(work.key) for work in got.work if work.key.stack_id == stack_id]
            done += len(steps)
        await advance(conn, "bare", timedelta(minutes=1), 0, steps)
    return len(resources) / (time.perf_counter() - began)


def _done(key: Claim) -> Json:
    return EMPTY | {
        "stack_id": key.stack_id, "traversal": key.traversal, "node": key.node, "claim": key.claim
    }  # fmt: skip


async def _insert(database: Database, resources: Json) -> UUID:
    stack_id = uuid4()
    place = {name: index for index, name in enumerate(resources)}
    requirers: list[list[int]] = [[] for _ in resources]
    waits = []
    for name, one in resources.items():
        before = one.get("depends_on", [])
        before = [before] if isinstance(before, str) else before
        waits.append(len(set(before)))
        for other in set(before):
            requirers[place[other]].append(place[name])
    nodes = [
        {"n": n, "w": w, "r": r} for n, (w, r) in enumerate(zip(waits, requirers, strict=True))
    ]
    async with database.transaction() as conn:
        await conn.execute(INSERT.rstrip().rstrip(";"), stack_id, str(stack_id))
        await conn.execute(INSERT_TRAVERSAL, stack_id, waits.count(0))
        await conn.execute(INSERT_NODES, stack_id, nodes)
    return stack_id
