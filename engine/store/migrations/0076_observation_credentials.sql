-- Application credentials of Keystone that owners of projects have handed over for observations.
create table observation_credential (
    id uuid primary key,                         -- another one for each credential that is set
    project text not null unique,
    application_credential_id text not null,
    name text not null,                          -- of the application credential
    user_id text not null,                       -- of its owner in Keystone
    user_name text not null,
    roles jsonb not null,                        -- their names
    access_rules boolean not null,
    encrypted bytea not null,                    -- its secret
    created_by text not null,
    created_at timestamptz not null,
    expires_at timestamptz,                      -- null: Keystone has named no time
    used_at timestamptz,                         -- Keystone gave a token last
    failed_at timestamptz,                       -- Keystone refused it last
    reason text                                  -- of the refusal
);
create index observation_credential_expired on observation_credential (expires_at)
    where expires_at is not null;
