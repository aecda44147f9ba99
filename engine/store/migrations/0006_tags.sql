-- Subscriptions to the events of stacks with certain tags.

alter table subscription add column tags text[] not null default '{}';
