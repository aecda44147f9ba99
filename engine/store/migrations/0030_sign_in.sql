-- Sign-in: attempts by password, sessions of browsers, the mode that a token was made in.

-- Attempts that were reserved and not given back, by address block or by name. A crash of the
-- database empties it, which ends lock-outs early and does no other harm.
create unlogged table sign_in_attempt (
    key bytea primary key,       -- hash of the address block, or of the name
    count integer not null,
    last_at timestamptz not null
);
create index sign_in_attempt_by_age on sign_in_attempt (last_at);

-- From where a name has signed in: attempts from there do not share a count with those from
-- elsewhere, so that strangers cannot lock a name out of its usual place.
create table sign_in_place (
    key bytea primary key,       -- hash of the name and the address block
    last_at timestamptz not null
);
create index sign_in_place_by_age on sign_in_place (last_at);

create table session (
    id bytea primary key,        -- hash of the cookie, which is stored nowhere
    mode text not null,          -- [auth] mode in which it began
    owner text not null,         -- who began it: id of a token, or of a user in Keystone
    token_id uuid,               -- mode tokens: the token or password that it began with
    name text not null,          -- mode none: the name that was sent
    encrypted bytea,             -- mode keystone: the token, encrypted with a key from the cookie
    created_at timestamptz not null default now(),
    expires_at timestamptz not null
);
create index session_by_owner on session (owner, created_at);
create index session_by_end on session (expires_at);

-- [auth] mode in which a token was made; without a row: tokens. Not a column of `token`: processes
-- of the version before read all of its columns.
create table token_mode (
    token_id uuid primary key references token on delete cascade,
    mode text not null
);
