-- What the routines of engine/store/routines hand to each other.

create type node_key as (stack_id uuid, traversal integer, id integer);

create type event_draft as (
    stack_id uuid, type text, resource_name text, resource_type text, physical_id text,
    action text, status text, reason text, data jsonb
);
