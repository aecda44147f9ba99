-- Deletes the credentials of traversals that are not ending and of which no node is ready, running,
-- waits for a timer, or waits for an operation of an earlier traversal that is still under way. What
-- only names a credential of the project, as its `trust` says (`HANDED_OVER` in trusts.py), stays until
-- its traversal has ended. The caller has locked the stacks' rows.
create or replace function delete_unused_credentials(p_stacks uuid[]) returns void
language sql as $$
    delete from credential c
     where c.stack_id = any (p_stacks)
       and not exists (select from node n
                        where n.stack_id = c.stack_id and n.traversal = c.traversal
                          and n.wake_at is not null)
       and not exists (select from node n
                        where n.stack_id = c.stack_id and n.traversal < c.traversal
                          and n.successor is not null and n.started_at is not null
                          and is_operating(n.state, n.phase))
       and not exists (select from traversal t
                        where t.stack_id = c.stack_id and t.number = c.traversal
                          and (t.state = 'ending'
                               or c.trust = '00000000-0000-0000-0000-000000000001'
                                  and t.state = 'running'));
$$;
