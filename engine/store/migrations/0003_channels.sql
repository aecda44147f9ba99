-- Subscriptions and deliveries.
--
-- Locks are taken in this order: publishing, stacks by id, subscriptions by id, deliveries.

-- The position given last to a row of the outbox. Whoever publishes holds this row's lock.
create table publishing (
    only_one boolean primary key default true check (only_one),
    position bigint not null
);
insert into publishing (position) values (0);

create table subscription (
    id uuid primary key,
    project text not null,      -- '*': every project; only the configuration may say so
    channel text not null,
    target text not null,
    events text[] not null,     -- globs on the CloudEvents type; empty: all
    stacks text[] not null,
    resources text[] not null,
    types text[] not null,
    points text[] not null,
    ordered boolean not null,
    secrets text[] not null,    -- newest first; two while a rotation lasts
    rotated_at timestamptz,
    failures integer not null default 0, -- deliveries given up since the last that arrived
    state text not null check (state in ('enabled', 'disabled')),
    reason text not null default '',
    origin text not null check (origin in ('api', 'configuration')),
    created_at timestamptz not null default now()
);
create index subscription_by_project on subscription (project, created_at, id);

create table delivery (
    stack_id uuid not null,
    sequence bigint not null,
    subscription_id uuid not null,
    id uuid not null default gen_random_uuid(),
    project text not null,
    event_id uuid not null,
    type text not null,
    hook_id uuid,               -- set for notices of hooks that wait
    urgent boolean not null,    -- notices of waiting hooks have a lane of their own
    state text not null check (state in ('pending', 'delivered', 'dead')),
    attempts integer not null default 0,
    claim integer not null default 0, -- fencing: counts up with every claim
    -- Pending: when to try; while it is tried, the end of the lease; null: an earlier one of the
    -- same stack is still to be delivered (ordered subscriptions). Otherwise null.
    next_at timestamptz,
    code integer,
    error text,
    answer text,                -- first bytes of the last answer
    created_at timestamptz not null default now(),
    settled_at timestamptz,
    primary key (stack_id, sequence, subscription_id)
) with (fillfactor = 70);
create unique index delivery_by_id on delivery (id);
create index delivery_due on delivery (urgent, subscription_id, next_at)
    where state = 'pending' and next_at is not null;
create index delivery_blocked on delivery (subscription_id, stack_id, sequence)
    where state = 'pending' and next_at is null;
create index delivery_under_way on delivery (subscription_id, stack_id)
    where state = 'pending' and next_at is not null;
create index delivery_by_subscription on delivery (subscription_id, created_at, id);
create index delivery_by_hook on delivery (stack_id, hook_id) where hook_id is not null;

-- Of each (subscription, stack) given, lets the earliest blocked delivery go, unless one is on its
-- way. The subscriptions' rows must be locked by the caller. Returns how many go.
create function release_deliveries(p_subscriptions uuid[], p_stacks uuid[]) returns bigint
language sql as $$
    with pair as (
        select distinct subscription_id, stack_id
          from unnest(p_subscriptions, p_stacks) p (subscription_id, stack_id)
    ), head as (
        select p.stack_id, p.subscription_id, d.sequence
          from pair p
         cross join lateral (
               select d.sequence from delivery d
                where d.subscription_id = p.subscription_id and d.stack_id = p.stack_id
                  and d.state = 'pending' and d.next_at is null
                order by d.sequence limit 1) d
         where not exists (
               select 1 from delivery d
                where d.subscription_id = p.subscription_id and d.stack_id = p.stack_id
                  and d.state = 'pending' and d.next_at is not null)
    ), released as (
        update delivery d set next_at = clock_timestamp()
          from head h
         where d.stack_id = h.stack_id and d.sequence = h.sequence
           and d.subscription_id = h.subscription_id
        returning 1
    )
    select count(*) from released
$$;
