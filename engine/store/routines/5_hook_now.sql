-- A hook with what is derived of it: whose approvals it has, its stack, and the outermost stack.

drop view if exists hook_now cascade; -- and what asks for it, which is made after it

create view hook_now as
select h.*, s.name as stack_name, s.path as stack_path,
       coalesce(s.root_id, s.id) as root_stack_id,
       case when s.root_id is null then s.name
            else (select r.name from stack r where r.id = s.root_id) end as root_stack_name,
       a.names as approved_by, a.keys as approved_keys
  from hook h join stack s on s.id = h.stack_id
 cross join lateral (
       -- A principal counts once, by whatever name; of earlier versions the name is all there is.
       select coalesce(array_agg(o.by order by o.first), '{}') as names,
              coalesce(array_agg(o.key order by o.first), '{}') as keys
         from (select coalesce(nullif(d.principal, ''), 'name:' || d.by) as key,
                      (array_agg(d.by order by d.number))[1] as by, min(d.number) as first
                 from decision d
                where d.stack_id = h.stack_id and d.hook_id = h.id
                  and d.kind in ('continue', 'step', 'step-into', 'step-out', 'run', 'patch')
                group by 1) o) a;
