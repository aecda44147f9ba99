-- Types of parameters and results of `advance` and its parts.

drop type if exists advance_row cascade; -- with its dependents, which are created later
drop type if exists unread_node cascade;
drop type if exists run_node cascade;
drop type if exists refused_step cascade;
drop type if exists changed_node cascade;
drop type if exists added_node cascade;
drop type if exists moved_node cascade;
drop type if exists due_traversal cascade;
drop type if exists traversal_change cascade;

-- A row of the result of `advance`. kind: see there; columns that a kind does not use are null.
create type advance_row as (
    kind text, stack_id uuid, project text, stack_name text, traversal integer, node integer,
    claim integer, resource_id uuid, replacement_id uuid, name text, type text, operation text,
    direction text, phase text, definition jsonb, rules jsonb, breakpoints_hit text[],
    operation_key uuid, progress jsonb, attempts integer, started boolean, dependents text[],
    row_type text, action text, status text, physical_id text, reference jsonb, properties jsonb,
    masked_properties jsonb, attributes jsonb, data jsonb, metadata jsonb, digest text,
    tainted boolean, protected boolean, deletion_policy text, replaced_by uuid, inputs jsonb,
    now timestamptz, step_mode text, confirmation jsonb, patched jsonb, answers jsonb, credential bytea,
    signals jsonb, traceparent text, path text, traversal_state text, signal_resource_type text,
    secret_attributes jsonb, expired_leases integer, restarts integer, restarted boolean,
    size integer, run_after integer, lifecycle jsonb, cancelled boolean, reason text, due_in double precision
);

-- A traversal with due nodes. labelled: some of its nodes have a label. current_traversal: of its stack.
create type due_traversal as (stack_id uuid, traversal integer, labelled boolean, current_traversal integer);

-- New values of a traversal whose nodes changed, before its row is written. labelled: some of its nodes have
-- a label.
create type traversal_change as (
    stack_id uuid, traversal integer, project text, labelled boolean, state text, active_nodes integer,
    blocked_nodes integer, working_time interval, working_since timestamptz, accepted boolean
);

-- A claimed node whose documents are not read. size: their approximate size in bytes.
create type unread_node as (stack_id uuid, traversal integer, id integer, size integer);

-- A waiting node that a worker may execute with the node run_after, on which alone it waits.
create type run_node as (stack_id uuid, traversal integer, id integer, run_after integer);

-- A step that was not written, because its traversal has ended or changed its step mode. step_mode: the
-- current one.
create type refused_step as (
    stack_id uuid, traversal integer, node integer, claim integer, traversal_state text, reason text,
    step_mode text
);

-- A node that changed its state. was_blocked, is_blocked: it was, or is now, parked without a timer.
-- dependents: nodes that wait for it. successor: the node of `current_traversal` that waits for it.
-- replacement_id: the resource that its operation created as a replacement. was_waiting: it ended in the
-- run of another node, and was not an active node before.
create type changed_node as (
    stack_id uuid, traversal integer, node integer, state text, operation text,
    was_blocked boolean, is_blocked boolean, dependents integer[], successor integer,
    current_traversal integer, replacement_id uuid, was_waiting boolean
);

-- A node to add to a graph. added_by: the node that has replaced its resource. after: the nodes that it
-- waits for. dependents: the nodes that wait for it. label: as in `node`.
create type added_node as (
    stack_id uuid, traversal integer, id integer, added_by integer, type text, operation text,
    definition jsonb, after integer[], dependents integer[], label text
);
