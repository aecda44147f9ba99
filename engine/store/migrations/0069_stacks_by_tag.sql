-- Stacks are found by their tags and their project, which is one more entry: '/' and its name. Stacks without
-- tags are not in the index.
create function stack_tags(p_tags text[], p_project text) returns text[]
language sql immutable parallel safe as $$ select p_tags || ('/' || p_project) $$;
create index stack_by_tag on stack using gin (stack_tags(tags, project)) with (fastupdate = off)
    where tags <> '{}';
