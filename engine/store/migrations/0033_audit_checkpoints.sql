-- Signed heads of the audit log: one chain of checkpoints for each project (engine/hooks/checkpoint.py).
-- The key that signs them is in a file and never here.

-- id: stands for the chain as the subject of events. number, digest: of the newest checkpoint.
create table audit_chain (
    project text primary key,
    id uuid not null default gen_random_uuid(),
    number integer not null default 0,
    digest text not null default repeat('0', 64)
);

-- heads: [[stack_id, number, hash]]. exported: it stands in the file of checkpoints.
create table audit_checkpoint (
    project text not null,
    number integer not null,
    at timestamptz not null,
    previous text not null,
    heads jsonb not null,
    digest text not null,
    key_id text not null,
    signature text not null,
    exported boolean not null default false,
    primary key (project, number)
);
create index audit_checkpoint_to_export on audit_checkpoint (project, number) where not exported;

-- How far each stack's log is signed.
create table audit_head (
    stack_id uuid primary key,
    number integer not null
);
create index decision_by_time on decision (at);
