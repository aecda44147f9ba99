-- The entries of a hook in the audit log are found by its ID alone. With the stack as the first column, PostgreSQL
-- read all entries of the stack instead, if the statistics said that stacks have few.
create index decision_of_hook on decision (hook_id) where hook_id is not null;
drop index decision_by_hook;
-- Found when their stack is purged.
create index idempotency_by_stack on idempotency (stack_id);
