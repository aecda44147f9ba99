"""What must be true of a stack's rows at any moment; each query finds what breaks one rule."""

from uuid import UUID

from engine.store.connection import Connection
from engine.store.maintenance.invariants import INVARIANTS

#: Besides those that hold for any database: while nothing is purged, and of what hooks promise.
#: Rule -> a query that finds its breaches.
RULES = {
    "time counts exactly while anything but hooks is left": """
        select number from traversal where stack_id = $1
           and (working_since is not null)
               <> (state = 'running' and active_nodes > blocked_nodes)""",
    "nothing of a traversal that is over begins": """
        select n.traversal, n.id from node n
          join traversal t on t.stack_id = n.stack_id and t.number = n.traversal
         where n.stack_id = $1 and t.state not in ('running', 'ending')
           and (n.state = 'waiting' or n.state = 'ready' and n.confirmation is null
                or n.state in ('running', 'parked') and n.phase <> 'execute')""",
    "events are numbered without a gap": """
        select s.sequence from stack s where s.id = $1
           and s.sequence <> (select count(*) from event e where e.stack_id = s.id)""",
    "no operation without the answers to its hooks": """
        select n.name, n.operation, r.value ->> 'point' from node n
          join traversal t on t.stack_id = n.stack_id and t.number = n.traversal
         cross join jsonb_array_elements(coalesce(n.rules, '[]')) r
         where n.stack_id = $1 and n.phase in ('execute', 'post') and n.started_at is not null
           and coalesce(r.value ->> 'mode', 'wait') <> 'notify'
           and t.step_mode is distinct from 'run'
           and r.value ->> 'point' = any (
               case n.operation when 'create' then '{pre-create}'::text[]
                                when 'update' then '{pre-update}'
                                when 'replace' then '{pre-update,pre-replace,pre-create}'
                                when 'delete' then '{pre-delete}' else '{}' end)
           and not exists (select from hook h where h.stack_id = n.stack_id
                              and h.traversal = n.traversal and h.node = n.id
                              and h.point = r.value ->> 'point' and h.mode = 'wait'
                              and h.decision in ('continue', 'step', 'run'))""",
}

#: What lets a rule of any database look at all stacks, and has it planned anew each time.
OR_ALL = "$1::uuid is null or "
#: One question for all rules, as it is asked after each of thousands of steps.
BROKEN = " union all ".join(
    f"select '{rule}' as rule, row(found.*)::text as what from ({query}) found"
    for rule, query in {**INVARIANTS, **RULES}.items()
).replace(OR_ALL, "")


async def breaches(conn: Connection, stack_id: UUID) -> list[str]:
    """Every rule that does not hold now, with what breaks it."""
    return [f"{row['rule']}: {row['what']}" for row in await conn.fetch(BROKEN, stack_id)]
