-- Subscriptions hear of stacks inside of those that they are about, unless they say otherwise.

alter table subscription add column nested boolean not null default true;
