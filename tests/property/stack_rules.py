"""What must be true of a stack's rows at any moment; each query finds what breaks one rule."""

from uuid import UUID

from engine.store.database import Connection

#: Rule -> a query that finds its breaches.
RULES = {
    "the counter of active nodes is what it is derived from": """
        select t.number, t.active, n.active from traversal t cross join lateral (
            select count(*) filter (where n.state in ('ready', 'running', 'parked')
                   or n.state = 'waiting' and exists (
                       select from node o where o.stack_id = n.stack_id
                          and o.traversal < n.traversal and o.successor = n.id
                          and o.state in ('ready', 'running', 'parked'))) as active
              from node n where n.stack_id = t.stack_id and n.traversal = t.number) n
         where t.stack_id = $1 and t.state = 'running' and t.active <> n.active""",
    "the counter of held nodes is what it is derived from": """
        select t.number from traversal t
         where t.stack_id = $1 and t.state = 'running' and t.held <> (
             select count(*) from node n where n.stack_id = t.stack_id
                and n.traversal = t.number and n.state = 'parked' and n.phase <> 'act')""",
    "time counts exactly while anything but hooks is left": """
        select number from traversal where stack_id = $1 and state = 'running'
           and (working_since is not null) <> (active > held)""",
    "a node waits for as many as have not ended": """
        select n.id, n.waits from node n where n.stack_id = $1 and n.state = 'waiting'
           and n.waits <> (
               select count(*) from node b where b.stack_id = n.stack_id
                  and b.traversal = n.traversal and n.id = any (b.requirers)
                  and b.state <> 'done')
             + (select count(*) from node o where o.stack_id = n.stack_id
                   and o.traversal < n.traversal and o.successor = n.id
                   and o.state in ('ready', 'running', 'parked'))""",
    "nothing of a traversal that is over begins": """
        select n.traversal, n.id from node n
          join traversal t on t.stack_id = n.stack_id and t.number = n.traversal
         where n.stack_id = $1 and t.state not in ('running', 'ending')
           and (n.state = 'waiting' or n.state = 'ready' and n.confirmed is null
                or n.state in ('running', 'parked') and n.phase <> 'act')""",
    "only the current traversal is under way": """
        select t.number from traversal t join stack s on s.id = t.stack_id
         where s.id = $1 and t.state in ('running', 'ending') and t.number <> s.traversal""",
    "a hook waits where its node is parked, and nowhere else": """
        select h.id from hook h left join node n on n.stack_id = h.stack_id
           and n.traversal = h.traversal and n.id = h.node
         where h.stack_id = $1 and h.state = 'waiting'
           and (n.state is distinct from 'parked' or n.phase = 'act')""",
    "a node parked at a breakpoint has one waiting hook": """
        select n.id from node n where n.stack_id = $1 and n.state = 'parked' and n.phase <> 'act'
           and 1 <> (select count(*) from hook h where h.stack_id = n.stack_id
                        and h.traversal = n.traversal and h.node = n.id and h.state = 'waiting')""",
    "one row stands for a name": """
        select name from resource where stack_id = $1 and replaced_by is null
         group by name having count(*) > 1""",
    "events are numbered without a gap": """
        select s.sequence from stack s where s.id = $1
           and s.sequence <> (select count(*) from event e where e.stack_id = s.id)""",
    "no operation without the answers to its hooks": """
        select n.name, n.operation, r.value ->> 'point' from node n
          join traversal t on t.stack_id = n.stack_id and t.number = n.traversal
         cross join jsonb_array_elements(coalesce(n.rules, '[]')) r
         where n.stack_id = $1 and n.phase in ('act', 'post') and n.started_at is not null
           and coalesce(r.value ->> 'mode', 'wait') <> 'notify'
           and t.pace is distinct from 'run'
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


async def breaches(conn: Connection, stack_id: UUID) -> list[str]:
    """Every rule that does not hold now, with what breaks it."""
    found = []
    for rule, query in RULES.items():
        rows = await conn.fetch(query, stack_id)
        found += [f"{rule}: {tuple(row.values())}" for row in rows]
    return found
