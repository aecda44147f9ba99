-- The stacks that a list shows by default: neither deleted nor nested. The time is an expression, so that
-- only this index has the order by it: PostgreSQL would otherwise choose between this index and
-- stack_by_age, and it cannot estimate how many stacks are nested.
create index stack_listed on stack (project, coalesce(created_at, '-infinity'), id)
    where parent_id is null and deleted_at is null;
