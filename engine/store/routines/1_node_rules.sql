-- Rules about nodes that statements apply under the lock of a stack, or to many rows. Each is in one place;
-- PostgreSQL replaces a call by its body. tests/integration/database/test_rules_in_sql.py compares them
-- with Python, and with the model (tests/model/store.py), for all cases.

-- `ENDED`: the states of a node that never changes again.
create or replace function is_ended(p_state text)
returns boolean
language sql immutable as $$ select p_state in ('done', 'failed', 'stopped', 'dropped') $$;

-- Whether the operation of a node may be under way: it is called, parked, or about to be called.
create or replace function is_operating(p_state text, p_phase text)
returns boolean
language sql immutable as $$
    select p_state in ('running', 'parked', 'ready') and p_phase in ('execute', 'confirm')
$$;

-- The start of an operation.

-- Whether an operation starts when its node begins to run in this phase.
create or replace function starts_operation(p_phase text, p_started_at timestamptz)
returns boolean
language sql immutable as $$ select p_phase = 'execute' and p_started_at is null $$;

-- Whether a claim calls an operation again because the process that ran it has ended. Gates have none.
create or replace function is_restarted(p_state text, p_phase text, p_started_at timestamptz,
                                        p_operation text)
returns boolean
language sql immutable as $$
    select p_state = 'running' and p_phase = 'execute' and p_started_at is not null
           and p_operation not in ('begin', 'finish')
$$;

-- The operation key after a change of the node. p_before: its operation before. When an update ends with
-- a replacement, its create is another operation. An operation gets its key when it is first called.
create or replace function operation_key_after(p_key uuid, p_before text, p_operation text,
                                               p_phase text)
returns uuid
language sql volatile as $$
    select case when p_phase = 'execute'
                then coalesce(case when p_before = p_operation then p_key end, gen_random_uuid())
                when p_before = p_operation then p_key end
$$;

-- Whether an operation that parks is called again at once: `wake_nodes` woke it while it was being called.
create or replace function is_called_again(p_call_again boolean, p_state text, p_phase text)
returns boolean
language sql immutable as $$
    select p_call_again and p_state = 'parked' and p_phase = 'execute'
$$;

-- Hooks.

-- The resource that a node at a hook shows: after a replacement, the new one.
create or replace function resource_at_hook(p_phase text, p_operation text, p_resource_id uuid,
                                            p_replacement_id uuid)
returns uuid
language sql immutable as $$
    select case when p_phase = 'post' and p_operation = 'replace' then p_replacement_id
                else p_resource_id end
$$;

-- Steps that are refused (rule 10 of engine/node/machine.py; `decide_again` in engine/work/nodes/job.py).

-- Whether a step is not written, and the machine decides again. An ended traversal opens no hooks. In
-- another step mode than that of the decision, p_decided_mode, other hooks open before the operation or
-- after it.
create or replace function is_refused(p_traversal_state text, p_step_mode text,
                                      p_decided_mode text, p_state text, p_opens_hook boolean)
returns boolean
language sql immutable as $$
    select p_opens_hook and p_traversal_state <> 'running'
           or p_traversal_state = 'running' and p_decided_mode is distinct from p_step_mode
              and (p_opens_hook or p_state = 'running')
$$;

-- Runs (engine/work/nodes/runs.py).

-- Whether the nodes of a traversal may be executed in runs. Stepping stops before each operation.
create or replace function has_runs(p_traversal_state text, p_step_mode text)
returns boolean
language sql immutable as $$
    select p_traversal_state = 'running' and p_step_mode is distinct from 'step'
$$;

-- Whether a node whose type only computes may be in a run.
create or replace function is_run_node(p_operation text, p_phase text, p_rules jsonb)
returns boolean
language sql immutable as $$
    select p_operation = 'create' and p_phase = 'execute' and p_rules is null
$$;

-- Whether it may be a later node of a run: the one node for which it waits is in the run, too.
create or replace function is_later_run_node(p_operation text, p_phase text, p_rules jsonb,
                                             p_state text, p_pending_dependencies integer)
returns boolean
language sql immutable as $$
    select is_run_node(p_operation, p_phase, p_rules)
           and p_state = 'waiting' and p_pending_dependencies = 1
$$;

-- Leases that expired in a row.

-- Their number when a node is claimed. No worker: a process that stopped released the node.
create or replace function expired_leases_at_claim(p_expired_leases integer, p_state text,
                                                   p_worker text)
returns integer
language sql immutable as $$
    select p_expired_leases + (p_state = 'running' and p_worker is not null)::integer
$$;

-- `is_last_try`: whether the node has one try left.
create or replace function is_last_try(p_expired_leases integer)
returns boolean
language sql immutable as $$ select p_expired_leases = max_expired_leases() - 1 $$;

-- `is_given_up`: whether it has none.
create or replace function is_given_up(p_expired_leases integer)
returns boolean
language sql immutable as $$ select p_expired_leases >= max_expired_leases() $$;

-- Whether the node may have ended its workers, and is tried again.
create or replace function is_suspect(p_expired_leases integer)
returns boolean
language sql immutable as $$ select p_expired_leases > 0 and not is_given_up(p_expired_leases) $$;

-- Events.

-- `ACTION_OF`: the action that an operation's events have.
create or replace function action_of(p_operation text)
returns text
language sql immutable as $$
    select case when p_operation = 'replace' then 'CREATE' else upper(p_operation) end as action
$$;

-- `CURRENT_ACTION_OF`: the action of the resource on which the operation runs. A replacement updates it.
create or replace function current_action_of(p_operation text)
returns text
language sql immutable as $$
    select case when p_operation = 'replace' then 'UPDATE' else action_of(p_operation) end as action
$$;
