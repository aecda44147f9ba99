-- Who acts, by a stable identity beside the display name. '': written by an earlier version.

alter table traversal add column requested_by_id text not null default '';
alter table hook
    add column requested_by_id text not null default '',
    add column decided_by_id text not null default '';

-- form: which fields the hash of an entry covers (engine/hooks/hash_chain.py). token_id: of what
-- authenticated them: the API token, or the subscription that the hook's token was given to.
alter table decision
    add column principal text not null default '',
    add column token_id text not null default '',
    add column form integer not null default 1;

-- The event sinks that a version is the first to name answer hooks with these rights.
alter table template
    add column requested_by_id text not null default '',
    add column requested_by_roles text[] not null default '{}';

-- name: of the settings; ''. owner: who made it, or last changed where it goes and what it hears.
alter table subscription
    add column name text not null default '',
    add column owner text not null default '',
    add column owner_id text not null default '',
    add column owner_roles text[] not null default '{}';
