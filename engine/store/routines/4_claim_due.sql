-- Claims work for p_worker that is due at p_due_at, in at most 16 traversals: up to p_limit nodes, and
-- traversals to end. p_after, p_bytes, p_include_suspects, p_run_types, p_labels: see `advance`. p_now: time
-- of the claims.
-- p_due: the traversals, whose stacks are then locked. p_ends: traversals to end. p_claimed, p_unread:
-- nodes. p_first: the claimed nodes that may begin a run. p_last_project: the project that was served last.
-- p_events: events to record.
-- p_changes: traversals whose nodes have just changed: they are due, but their rows do not say so yet.
-- Only `advance` calls it, so its planner settings apply.
drop function if exists claim_due(text, interval, timestamptz, integer, text, bigint);
drop function if exists claim_due(text, interval, timestamptz, integer, text, bigint, boolean);
drop function if exists claim_due(text, interval, timestamptz, integer, text, bigint, boolean, text[]);
drop function if exists claim_due(text, interval, timestamptz, integer, text, bigint, boolean, text[], text[]);
drop function if exists claim_due(text, interval, timestamptz, integer, text, bigint, boolean, text[], text[],
                                  traversal_change[]);

create function claim_due(p_worker text, p_lease interval, p_due_at timestamptz, p_limit integer,
                          p_after text, p_bytes bigint, p_include_suspects boolean,
                          p_run_types text[], p_labels text[], p_changes traversal_change[],
                          out p_now timestamptz, out p_due due_traversal[], out p_ends node_key[],
                          out p_claimed node_key[], out p_unread unread_node[],
                          out p_first node_key[], out p_last_project text, out p_events event_draft[])
language plpgsql as $$
declare
    v_due due_traversal[];
    v_unlabelled boolean := '' = any (p_labels);
begin
    p_now := clock_timestamp();
    p_due := '{}';
    p_ends := '{}';
    p_claimed := '{}';
    p_unread := '{}';
    p_first := '{}';
    p_events := '{}';
    if p_labels <> '{""}' then
        select l.p_due, l.p_last_project into p_due, p_last_project
          from lock_labelled_work(p_labels, p_due_at, p_after, p_changes) l;
    else
        select array_agg(row (t.stack_id, t.traversal, t.labelled, null)::due_traversal) into v_due
          from due_traversals(p_due_at, p_changes, 17) t;
        if v_due is null then
            return;
        end if;
        if cardinality(v_due) <= 16 then
            -- All get their turn. A stack that another worker has locked is skipped, because that worker
            -- also claims its nodes.
            with locked as (
                select d.stack_id, d.traversal, d.labelled, s.traversal as current_traversal
                  from unnest(v_due) d join stack s on s.id = d.stack_id
                   for no key update of s skip locked
            )
            select coalesce(array_agg(row (stack_id, traversal, labelled, current_traversal)::due_traversal), '{}')
              into p_due from locked;
        else
            -- Each project with due work gets one turn before any gets a second one.
            with project as (
                select p.name, p.nth from next_projects(p_after, 100) with ordinality p (name, nth)
                union all
                select p.name, 100 + p.nth
                  from next_projects('', 100) with ordinality p (name, nth) where p.name <= p_after
            ), due as (
                select t.stack_id, t.traversal, t.labelled, p.name, p.nth,
                       row_number() over (partition by p.nth order by t.wake_at) as turn
                  from project p
                 cross join lateral due_traversals_of(p.name, p_due_at, p_changes, 16) t
            ), first as (
                select d.* from due d order by d.turn, d.nth limit 16
            ), locked as (
                select f.stack_id, f.traversal, f.labelled, s.traversal as current_traversal
                  from first f join stack s on s.id = f.stack_id
                   for no key update of s skip locked
            )
            select coalesce(array_agg(row (stack_id, traversal, labelled, current_traversal)::due_traversal), '{}'),
                   (select name from first order by turn desc, nth desc limit 1)
              into p_due, p_last_project from locked;
        end if;
    end if;
    if p_due = '{}' then
        return;
    end if;
    p_now := clock_timestamp();

    if v_unlabelled then
        select coalesce(array_agg(row (d.stack_id, d.traversal, null)::node_key), '{}') into p_ends
          from unnest(p_due) d
          left join lateral (
               select * from unnest(p_changes) c
                where c.stack_id = d.stack_id and c.traversal = d.traversal limit 1) c on true
         cross join lateral (
               select t.state, t.working_time, t.working_since, t.time_limit from traversal t
                where t.stack_id = d.stack_id and t.number = d.traversal
                  and (c.state is not null or t.wake_at <= p_now) offset 0) t
         where case when c.state is null
                    then must_end(t.state, t.working_time, t.working_since, t.time_limit, p_now)
                    else must_end(c.state, c.working_time, c.working_since, t.time_limit, p_now) end;
    end if;

    with candidate as (
        select n.stack_id, n.traversal, n.id, n.wake_at, n.resource_id, n.reads, n.bytes,
               starts_operation(n.phase, n.started_at) as starts,
               is_restarted(n.state, n.phase, n.started_at, n.operation) as restarts,
               expired_leases_at_claim(n.expired_leases, n.state, n.worker) as expired_leases,
               row_number() over (partition by n.stack_id order by n.wake_at, n.id) as turn
          from unnest(p_due) d
         cross join lateral (
               -- In the order of the index alone: all nodes of a graph can be due at the same time, and
               -- sorting them by another column would read all of them for each claim.
               (select n.stack_id, n.traversal, n.id, n.wake_at, n.resource_id, n.reads, n.bytes,
                       n.phase, n.started_at, n.state, n.operation, n.expired_leases, n.worker
                  from node n
                 where not d.labelled and v_unlabelled
                   and n.stack_id = d.stack_id and n.traversal = d.traversal
                   and n.wake_at <= p_now
                   and (p_include_suspects
                        or not is_suspect(
                               expired_leases_at_claim(n.expired_leases, n.state, n.worker)))
                 order by n.wake_at limit p_limit)
               union all
               (select n.* from unnest(p_labels) l (label)
                 cross join lateral (
                       select n.stack_id, n.traversal, n.id, n.wake_at, n.resource_id, n.reads, n.bytes,
                              n.phase, n.started_at, n.state, n.operation, n.expired_leases, n.worker
                         from node n
                        where n.stack_id = d.stack_id and n.traversal = d.traversal
                          and n.label = l.label and n.wake_at <= p_now
                          and (p_include_suspects
                               or not is_suspect(
                                      expired_leases_at_claim(n.expired_leases, n.state, n.worker)))
                        order by n.wake_at limit p_limit) n
                 where d.labelled)) n
         where not exists (select from unnest(p_ends) e
                            where e.stack_id = d.stack_id and e.traversal = d.traversal)
    ), suspect as (
        -- A node with one attempt left is claimed alone, because an expired lease is counted for
        -- every node of its worker.
        select * from candidate where is_last_try(expired_leases)
         order by turn, wake_at limit 1
    ), chosen as (
        (select * from candidate where not exists (select from suspect)
          order by turn limit p_limit)
        union all select * from suspect
    ), sized as (
        select c.*, c.bytes
               + coalesce((select r.bytes from resource r
                            where r.stack_id = c.stack_id and r.id = c.resource_id), 0)
               + case when c.reads = '{}' then 0 else
                 (select coalesce(sum(x.bytes), 0)
                    from unnest(c.reads) q (name)
                   cross join lateral (
                         select x.bytes from resource x
                          where x.name = q.name and x.stack_id = c.stack_id
                            and x.replaced_by is null offset 0) x) end as size
          from chosen c
    ), within_limit as (
        select *, p_bytes < 0 or is_given_up(expired_leases)
                  or size > too_large() as unread
          from (select s.*, sum(s.size) over (order by s.turn, s.wake_at, s.stack_id, s.id)
                            - s.size as before from sized s) f
         where before = 0 or before < p_bytes
    ), claimed as (
        update node n
           set state = 'running', claim = n.claim + 1, worker = p_worker,
               wake_at = p_now + p_lease, expired_leases = c.expired_leases,
               restarted = c.restarts and not c.unread,
               restarts = n.restarts + (c.restarts and not c.unread)::integer,
               started_at = case when c.starts then p_now else n.started_at end,
               operation_key = operation_key_after(n.operation_key, n.operation, n.operation, n.phase)
          from within_limit c
         where n.stack_id = c.stack_id and n.traversal = c.traversal and n.id = c.id
        returning n.stack_id, n.traversal, n.id, n.resource_id, n.name, n.type, n.operation,
                  n.operation_key, n.restarts, n.restarted, c.starts, c.unread,
                  least(c.size, 2147483647)::integer as size,
                  -- A run contains no node whose worker ended before, so that the cause is found.
                  n.type = any (p_run_types) and is_run_node(n.operation, n.phase, n.rules)
                  and n.dependents <> '{}' and n.expired_leases = 0 as first
    )
    select coalesce(array_agg(row (k.stack_id, k.traversal, k.id)::node_key order by k.id)
                    filter (where not k.unread), '{}'),
           coalesce(array_agg(row (k.stack_id, k.traversal, k.id, k.size)::unread_node order by k.id)
                    filter (where k.unread), '{}'),
           coalesce(array_agg(row (k.stack_id, k.traversal, k.id)::node_key order by k.id)
                    filter (where k.first and not k.unread), '{}'),
           coalesce(array_agg(row (k.stack_id, 'headgate.resource.' || k.operation
                                   || case when k.restarted then '.restarted' else '.started' end,
                                   k.name, k.type, r.physical_id, action_of(k.operation),
                                   'IN_PROGRESS',
                                   case when k.restarted
                                        then 'called again with the same operation key: the '
                                             'process that ran the operation has ended'
                                        else 'state changed' end,
                                   jsonb_build_object('operation', k.operation, 'traversal',
                                                      k.traversal, 'node', k.id)
                                   || case when k.operation in ('create', 'replace')
                                           then jsonb_build_object('key',
                                               left(replace(k.operation_key::text, '-', ''), 12))
                                           else '{}' end
                                   || case when k.restarted then jsonb_build_object(
                                           'attempt', k.restarts + 1,
                                           'operation_key', k.operation_key)
                                           else '{}' end
                                   || case when r.replaced_by is null then '{}'::jsonb
                                           else '{"replaced": true}' end)::event_draft
                              order by k.id) filter (where k.starts or k.restarted), '{}')
      into p_claimed, p_unread, p_first, p_events
      from claimed k
      left join lateral ( -- a planned resource does not exist yet
           select r.physical_id, r.replaced_by from resource r
            where (k.starts or k.restarted) and k.operation <> 'create'
              and r.stack_id = k.stack_id and r.id = k.resource_id offset 0) r on true;
end;
$$;
