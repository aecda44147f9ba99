-- The tags of root stacks that are not deleted: pages of the stacks with a tag are found by key, in their
-- order. Triggers write them, also for processes of the previous release.
create table stack_tag (
    project text not null,
    tag text not null,
    created_at timestamptz not null,             -- of the stack
    stack_id uuid not null,
    primary key (project, tag, created_at, stack_id)
);

create function tag_stack() returns trigger language plpgsql as $$
begin
    if old.id is not null then
        delete from stack_tag
         where project = old.project and tag = any (old.tags) and created_at = old.created_at
           and stack_id = old.id;
    end if;
    if new.id is not null and new.parent_id is null and new.deleted_at is null then
        insert into stack_tag (project, tag, created_at, stack_id)
        select distinct new.project, t.tag, new.created_at, new.id
          from unnest(new.tags) t (tag) where t.tag is not null
        on conflict do nothing;
    end if;
    return null;
end;
$$;
create trigger tag_new_stack after insert on stack
    for each row when (new.tags <> '{}' and new.parent_id is null) execute function tag_stack();
create trigger tag_stack after update of tags, parent_id, deleted_at on stack
    for each row when ((old.tags <> '{}' or new.tags <> '{}')
                       and (old.tags <> new.tags or (old.parent_id is null) <> (new.parent_id is null)
                            or (old.deleted_at is null) <> (new.deleted_at is null)))
    execute function tag_stack();
create trigger untag_stack after delete on stack
    for each row when (old.tags <> '{}' and old.deleted_at is null) execute function tag_stack();

insert into stack_tag (project, tag, created_at, stack_id)
select distinct s.project, t.tag, s.created_at, s.id
  from stack s cross join unnest(s.tags) t (tag)
 where s.parent_id is null and s.deleted_at is null and t.tag is not null;
