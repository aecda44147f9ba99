-- A hook with its stack, its root stack and its approvals. operator_approval: only if its rule allows
-- patches.

drop view if exists hook_details cascade; -- with its dependents, which are created later

create view hook_details as
select h.*, s.name as stack_name, s.path as stack_path,
       coalesce(s.root_id, s.id) as root_stack_id,
       case when s.root_id is null then s.name
            else (select r.name from stack r where r.id = s.root_id) end as root_stack_name,
       a.names as approved_by, a.keys as approved_keys,
       case when h.rule ? 'patch'
            then operator_approval(h.stack_id, h.traversal, h.node) end as operator_approval
  from hook h join stack s on s.id = h.stack_id
 cross join lateral (
       -- A principal counts once. Entries of earlier versions have a name and no identity.
       select coalesce(array_agg(o.by order by o.first), '{}') as names,
              coalesce(array_agg(o.key order by o.first), '{}') as keys
         from (select coalesce(nullif(d.principal, ''), 'name:' || d.by) as key,
                      (array_agg(d.by order by d.number))[1] as by, min(d.number) as first
                 from decision d
                where d.hook_id = h.id -- of one stack; its other entries are not read
                  and d.kind in ('continue', 'step', 'step-into', 'step-out', 'run', 'patch',
                                 'adopt', 'repair')
                group by 1) o) a;
