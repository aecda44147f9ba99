-- The event headgate.hook.unheard is now headgate.hook.undeliverable; columns have the same word.
alter table hook rename column told_at to notified_at;
alter table hook rename column unheard_at to undeliverable_at;
update event set type = 'headgate.hook.undeliverable' where type = 'headgate.hook.unheard';
update subscription
   set events = array_replace(events, 'headgate.hook.unheard', 'headgate.hook.undeliverable')
 where 'headgate.hook.unheard' = any (events);
update delivery set type = 'headgate.hook.undeliverable' where type = 'headgate.hook.unheard';
