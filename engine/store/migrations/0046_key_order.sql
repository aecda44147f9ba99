-- The order in which a client sent the keys of the template, the environment and the parameters, where it
-- differs from that of jsonb (engine/store/key_order.py).
alter table template add column key_order jsonb not null default '{}';
