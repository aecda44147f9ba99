-- Hooks that are due, project by project: the deadlines of one do not delay those of another.
create index hook_due_by_project on hook (project, deadline) where state = 'waiting';
-- The new one begins with the same column.
drop index hook_waiting_by_project;

-- Without statistics, PostgreSQL takes any index that begins with a column it is given. With the id
-- first, no look-up by an event's number reads all events of a stack, and none by a hook all
-- deliveries of a stack; with the stack first, none by a subscription all that it is to get.
create index event_by_own_id on event (id, stack_id);
drop index event_by_id;
create index delivery_of_hook on delivery (hook_id, stack_id) where hook_id is not null;
drop index delivery_by_hook;
create index delivery_sending on delivery (stack_id, subscription_id, sequence)
    where state = 'pending' and next_at is not null;
drop index delivery_under_way;

-- The latest time that was seen of the database's clock, and when it was set back last, by how much.
create table clock_mark (
    only_one boolean primary key default true check (only_one),
    seen_at timestamptz not null,
    set_back_at timestamptz,
    set_back_by interval
);
insert into clock_mark (seen_at) values (clock_timestamp());
