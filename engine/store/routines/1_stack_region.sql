-- The region of a stack. Not in the rows of `advance`, whose columns the previous release knows. Volatile, and not
-- in SQL, so that it also sees a stack that was committed after the calling statement began.
create or replace function stack_region(p_stack uuid) returns text
language plpgsql as $$
begin
    return (select s.region from stack s where s.id = p_stack);
end;
$$;
