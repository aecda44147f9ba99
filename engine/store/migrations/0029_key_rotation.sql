-- Keys are rotated while processes run: which encryption keys a process has, the key that it
-- encrypts with first; and the keys that tokens of hooks, signals and servers derive from.

alter table process add column key_ids text[] not null default '{}';

create table token_key (
    version integer primary key,
    sealed bytea not null,               -- encrypted as engine/store/encryption.py does
    created_at timestamptz not null default clock_timestamp(),
    retired_at timestamptz,              -- null: tokens are made with it
    expires_at timestamptz               -- tokens for signals and servers are accepted until then
);
create unique index token_key_current on token_key ((true)) where retired_at is null;
