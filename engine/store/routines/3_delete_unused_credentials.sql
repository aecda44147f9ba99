-- Deletes the credentials of traversals that are not ending and of which no node is ready, running,
-- or waits for a timer. The current traversal keeps its credential also while one of its nodes waits for
-- an operation of an earlier traversal. What only names a credential of the project, as its `trust` says
-- (`HANDED_OVER` in trusts.py), stays until its traversal has ended. The caller has locked the stacks' rows.
-- "offset 0": PostgreSQL searches by key for each credential, instead of reading the nodes of all stacks.
create or replace function delete_unused_credentials(p_stacks uuid[]) returns void
language sql as $$
    delete from credential c
     using unnest(p_stacks) k (id)
     where c.stack_id = k.id
       and not exists (select from node n
                        where n.stack_id = c.stack_id and n.traversal = c.traversal
                          and n.wake_at is not null offset 0)
       and not exists (select from stack s
                        cross join lateral (
                              select n.started_at, n.state, n.phase from node n
                               where n.stack_id = s.id and n.traversal < s.traversal
                                 and n.successor is not null offset 0) n
                        where s.id = c.stack_id and s.traversal = c.traversal
                          and n.started_at is not null and is_operating(n.state, n.phase) offset 0)
       and not exists (select from traversal t
                        where t.stack_id = c.stack_id and t.number = c.traversal
                          and (t.state = 'ending'
                               or c.trust = '00000000-0000-0000-0000-000000000001'
                                  and t.state = 'running') offset 0);
$$;
