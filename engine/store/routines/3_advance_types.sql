-- Types of parameters and results of `advance` and its parts.

drop type if exists advance_row cascade; -- with its dependents, which are created later
drop type if exists unread_node cascade;
drop type if exists refused_step cascade;
drop type if exists moved_node cascade;

-- A row of the result of `advance`. kind: see there; columns that a kind does not use are null.
create type advance_row as (
    kind text, stack_id uuid, project text, stack_name text, traversal integer, node integer,
    claim integer, resource_id uuid, replacement_id uuid, name text, type text, operation text,
    direction text, phase text, definition jsonb, rules jsonb, passed text[], operation_key uuid,
    progress jsonb, attempts integer, started boolean, dependents text[], row_type text,
    action text, status text, physical_id text, reference jsonb, properties jsonb, shown jsonb,
    attributes jsonb, data jsonb, metadata jsonb, digest text, broken boolean, protected boolean,
    deletion_policy text, replaced_by uuid, inputs jsonb, now timestamptz, pace text,
    confirmed jsonb, patched jsonb, answers jsonb, credential bytea, signals jsonb,
    traceparent text, path text, traversal_state text, awaited text, secret jsonb, lost integer,
    restarts integer, restarted boolean, size integer, reason text
);

-- A claimed node whose documents are not read. size: their approximate size in bytes.
create type unread_node as (stack_id uuid, traversal integer, id integer, size integer);

-- A step that was not written, because it opens a hook and its traversal has ended.
create type refused_step as (
    stack_id uuid, traversal integer, node integer, claim integer, traversal_state text, reason text
);

-- A node that changed its state. held, holds: it was, or is now, parked without a timer. requirers:
-- nodes that wait for it. successor: the node of traversal `current` that waits for it. moved_to: ID of
-- the resource that its operation created as a replacement.
create type moved_node as (
    stack_id uuid, traversal integer, node integer, state text, operation text, held boolean,
    holds boolean, requirers integer[], successor integer, current integer, moved_to uuid
);
