-- Subscriptions tell what becomes of them, and the environment of a stack may name some.
--
-- stack_id and sequence of an event, its outbox row and its deliveries: of the stack that it is of;
-- of the subscription, when it is about one and of no stack.

alter table subscription
    add column sequence bigint not null default 0, -- number of its newest event
    add column stack_id uuid,                      -- of origin environment: hears of it alone
    add column named_until bigint,                 -- the event of it that began a change to an
                                                   -- environment without this; null: named still
    drop constraint subscription_origin_check,
    add constraint subscription_origin_check
        check (origin in ('api', 'configuration', 'environment'));
create index subscription_by_stack on subscription (stack_id) where stack_id is not null;

-- When the last way to tell anybody of a hook had failed; null while there is one, or never was.
alter table hook add column unheard_at timestamptz;
create index delivery_notice on delivery (subscription_id)
    where state = 'pending' and hook_id is not null;

-- Of an ordered subscription, several deliveries of a stack may be under way, one after the other.
drop index delivery_under_way;
create index delivery_under_way on delivery (subscription_id, stack_id, sequence)
    where state = 'pending' and next_at is not null;
