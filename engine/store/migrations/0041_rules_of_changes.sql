-- The principals, besides the requester, that the rules of a traversal with `exclude: requester` exclude:
-- their keys, for nested traversals and live breakpoints.
alter table traversal add column excluded text[] not null default '{}';

-- The rules of the parent stack for nested stacks, as the last change of the parent passed them on:
-- see `nested_breakpoints`. A signal to a scaling policy starts a traversal of the nested stack alone.
alter table stack add column parent_rules jsonb not null default '[]';

update stack s
   set parent_rules = coalesce((
           select jsonb_agg(b.rule)
             from traversal p cross join jsonb_array_elements(p.nested_breakpoints) b (rule)
            where p.stack_id = s.parent_id
              and p.number = (select t.parent_traversal from traversal t
                               where t.stack_id = s.id and t.parent_traversal is not null
                                 and t.action in ('CREATE', 'UPDATE')
                               order by t.number desc limit 1)
              and not (b.rule ->> 'requested')::boolean), '[]')
 where s.parent_id is not null and s.deleted_at is null;
