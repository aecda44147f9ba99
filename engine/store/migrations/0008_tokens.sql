-- Who may ask for what: API tokens, and passwords for HTTP basic. Kept as hashes.

create table token (
    id uuid primary key,
    project text not null,      -- '*': every project
    name text not null,         -- who it is, for the record
    roles text[] not null,
    kind text not null check (kind in ('token', 'password')),
    hash text not null,
    created_by text not null,
    created_at timestamptz not null default now(),
    expires_at timestamptz,
    used_at timestamptz,        -- roughly: not written at every request
    revoked_at timestamptz,
    revoked_by text
);
create index token_by_project on token (project, created_at, id);
-- A name has one password in a project.
create unique index token_password on token (project, name)
    where kind = 'password' and revoked_at is null;
