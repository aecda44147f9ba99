-- Stacks inside of stacks: each the child of one resource, begun and waited for by its node.

alter table stack
    add column parent_id uuid,                   -- the stack around it
    add column parent_resource uuid,             -- the resource of that which it belongs to
    add column root_id uuid,                     -- the outermost stack; null: it is that itself
    add column path text not null default '';    -- names of the resources that lead to it: web/0
create index stack_by_parent on stack (parent_id, parent_resource) where parent_id is not null;
create index stack_by_root on stack (root_id) where root_id is not null;

alter table traversal
    add column parent_traversal integer,         -- the node of the stack around that began it,
    add column parent_node integer,
    add column parent_key uuid,                  -- the key of its operation, and the step of that
    add column step text,
    add column asked jsonb not null default '[]',     -- breakpoints asked for with it: [{pattern, rule}]
    add column cleared text[] not null default '{}',  -- and those that are to be left out
    drop constraint traversal_pace_check,
    add constraint traversal_pace_check check (pace in ('step', 'into', 'run'));

-- Somebody wants it called again, though its operation has not said yet until when it waits.
alter table node add column woken boolean not null default false;
