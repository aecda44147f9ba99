-- Trusts of Keystone that users have given this installation, until they are deleted in Keystone.
create table trust (
    id uuid primary key,                         -- derived from the trust; credential.trust
    project text not null,
    encrypted bytea not null,                    -- the trust, as a credential
    due_at timestamptz not null                  -- it may be deleted then, if no credential is it
);
create index trust_due on trust (due_at);
alter table credential
    add column trust uuid;                       -- trust.id; zeros: no trust; null: unknown
create index credential_trust on credential (trust) where trust is not null;
