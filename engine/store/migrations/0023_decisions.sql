-- The trail over a whole project, newest first; also of stacks that are purged.

alter table decision add column project text; -- null: of a stack that was purged before
update decision d set project = s.project from stack s where s.id = d.stack_id;
create index decision_by_project on decision (project, at, stack_id, number);

-- A process of an earlier version may write meanwhile, and knows nothing of it.
create function decision_of_project() returns trigger language plpgsql as $$
begin
    new.project := (select project from stack where id = new.stack_id);
    return new;
end;
$$;
create trigger decision_of_project before insert on decision
    for each row when (new.project is null) execute function decision_of_project();
