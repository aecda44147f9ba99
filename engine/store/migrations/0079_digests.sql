-- The digest of a subscription for people: every, at, timezone. Null: none.
alter table subscription add column digest jsonb;
-- The digest for which a delivery waits; and whether a process sends it now, with the lease in next_at.
alter table delivery add column digest_at timestamptz;
alter table delivery add column digest_taken boolean not null default false;
create index delivery_digest on delivery (subscription_id, digest_at)
    where state = 'pending' and digest_at is not null;
