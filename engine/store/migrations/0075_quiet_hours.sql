-- The times at which a subscription for people holds its deliveries: days, from, to, timezone. Null: none.
alter table subscription add column quiet_hours jsonb;
