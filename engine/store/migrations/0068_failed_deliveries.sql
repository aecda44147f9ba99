-- Few of a subscription's deliveries are dead, and users list these.
create index delivery_dead on delivery (subscription_id, created_at, id) where state = 'dead';
