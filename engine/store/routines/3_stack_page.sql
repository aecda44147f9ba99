-- A page of the stacks of a project, in an order that an index has: 'newest' or 'oldest', after the
-- position (p_created_at, p_id); 'named': those with p_names, newest first; 'name' or 'name descending',
-- after p_name (null: from the last). p_filter: see `stack_matches`.
drop function if exists stack_page(text, text, timestamptz, uuid, text[], text, jsonb, integer);

create function stack_page(p_order text, p_project text, p_created_at timestamptz, p_id uuid,
                           p_names text[], p_name text, p_filter jsonb, p_limit integer)
returns setof current_stack
language plpgsql stable
-- Planned once for each connection, for searches by key. Otherwise PostgreSQL plans each call anew: for an
-- unknown limit it expects a tenth of all stacks, which seems to cost more than planning.
set plan_cache_mode = force_generic_plan
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set enable_sort = off
set enable_incremental_sort = off
as $$
declare
    -- Deleted and nested stacks are in no page, and the index stack_listed leaves them out. "coalesce" is
    -- an expression of this index.
    v_listed boolean := not p_filter ?| array['show_deleted', 'show_nested', 'parents'];
    v_excluded text[] := array(select jsonb_array_elements_text(p_filter -> 'not_tags_any'));
    v_plain boolean := p_filter - 'not_tags_any' = '{}';
begin
    if p_order = 'newest' and v_listed then
        return query
        select s.* from current_stack s
         where s.project = p_project
           and (coalesce(s.created_at, '-infinity'), s.id) < (p_created_at, p_id)
           and s.deleted_at is null and s.parent_id is null
           and stack_is_listed(s, p_filter, v_plain, v_excluded)
         order by coalesce(s.created_at, '-infinity') desc, s.id desc limit p_limit;
    elsif p_order = 'newest' then
        return query
        select s.* from current_stack s
         where s.project = p_project and (s.created_at, s.id) < (p_created_at, p_id)
           and stack_is_listed(s, p_filter, v_plain, v_excluded)
         order by s.created_at desc, s.id desc limit p_limit;
    elsif p_order = 'oldest' and v_listed then
        return query
        select s.* from current_stack s
         where s.project = p_project
           and (coalesce(s.created_at, '-infinity'), s.id) > (p_created_at, p_id)
           and s.deleted_at is null and s.parent_id is null
           and stack_is_listed(s, p_filter, v_plain, v_excluded)
         order by coalesce(s.created_at, '-infinity'), s.id limit p_limit;
    elsif p_order = 'oldest' then
        return query
        select s.* from current_stack s
         where s.project = p_project and (s.created_at, s.id) > (p_created_at, p_id)
           and stack_is_listed(s, p_filter, v_plain, v_excluded)
         order by s.created_at, s.id limit p_limit;
    elsif p_order = 'named' then
        return query
        with named as materialized (
            select s.* from current_stack s
             where s.project = p_project and s.deleted_at is null and s.name = any (p_names)
               and stack_is_listed(s, p_filter, v_plain, v_excluded)
        )
        select s.* from named s
         order by s.created_at desc, s.id desc limit p_limit;
    -- Stacks that are not deleted have different names.
    elsif p_order = 'name' then
        return query
        select s.* from current_stack s
         where s.project = p_project and s.deleted_at is null and s.name > p_name
           and stack_is_listed(s, p_filter, v_plain, v_excluded)
         order by s.name limit p_limit;
    elsif p_name is null then
        return query
        select s.* from current_stack s
         where s.project = p_project and s.deleted_at is null
           and stack_is_listed(s, p_filter, v_plain, v_excluded)
         order by s.name desc limit p_limit;
    else
        return query
        select s.* from current_stack s
         where s.project = p_project and s.deleted_at is null and s.name < p_name
           and stack_is_listed(s, p_filter, v_plain, v_excluded)
         order by s.name desc limit p_limit;
    end if;
end;
$$;
