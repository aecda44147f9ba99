-- A hook with what is derived of it: whose approvals it has, its stack, and the outermost stack.

drop view if exists hook_now cascade; -- and what asks for it, which is made after it

create view hook_now as
select h.*, s.name as stack_name, s.path as stack_path,
       coalesce(s.root_id, s.id) as root_stack_id,
       case when s.root_id is null then s.name
            else (select r.name from stack r where r.id = s.root_id) end as root_stack_name,
       array(select d.by from decision d
              where d.stack_id = h.stack_id and d.hook_id = h.id
                and d.kind in ('continue', 'step', 'step-into', 'step-out', 'run',
                              'patch')
              group by d.by order by min(d.number)) as approved_by
  from hook h join stack s on s.id = h.stack_id;
