-- The pending deliveries of a subscription are found by key, also after many newer ones have ended. "coalesce":
-- no other statement uses this index. Without statistics, PostgreSQL would read it from end to end for
-- statements that write the result of a delivery.
create index delivery_pending on delivery (subscription_id, created_at, id)
    where coalesce(state, 'delivered') = 'pending';
