-- A page of the stacks of a project, in an order that an index has: 'newest' or 'oldest', after the
-- position (p_created_at, p_id); 'named, newest' or 'named, oldest': the same, of those with p_names; 'name'
-- or 'name descending', after p_name (null: from the last). p_filter: see `stack_matches`.
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
    v_tags text[] := array(select jsonb_array_elements_text(p_filter -> 'tags'));
    v_any_tag text[] := array(select jsonb_array_elements_text(p_filter -> 'tags_any'));
    v_read text[];  -- the tags by which stacks are found in the order of the page; null: not by tags
    v_near bigint;  -- stacks with the tags, among the first ones after the position
    v_few integer := 500;
    v_ids uuid[];   -- of the stacks with the tags; null: these are not few
begin
    -- stack_tag has the stacks of each tag in their order. Of those with several tags, it reads the ones with the
    -- tag that is the last to occur after the position.
    if v_listed and v_tags <> '{}' and p_order = 'newest' then
        v_read := array(
            select w.tag from unnest(v_tags) w (tag)
              left join lateral (
                   select g.created_at from stack_tag g
                    where g.project = p_project and g.tag = w.tag
                      and (g.created_at, g.stack_id) < (p_created_at, p_id)
                    order by g.created_at desc, g.stack_id desc limit 1) f on true
             order by f.created_at nulls first limit 1);
    elsif v_listed and v_tags <> '{}' and p_order = 'oldest' then
        v_read := array(
            select w.tag from unnest(v_tags) w (tag)
              left join lateral (
                   select g.created_at from stack_tag g
                    where g.project = p_project and g.tag = w.tag
                      and (g.created_at, g.stack_id) > (p_created_at, p_id)
                    order by g.created_at, g.stack_id limit 1) f on true
             order by f.created_at desc nulls first limit 1);
    elsif v_listed and v_any_tag <> '{}' then
        v_read := array(select distinct w.tag from unnest(v_any_tag) w (tag));
    end if;
    -- Others: few stacks with the tags are found by them. Many are soon found in the order of the page: so
    -- try that first.
    if (p_order = 'newest' or p_order = 'oldest')
       and (v_tags <> '{}' or v_any_tag <> '{}') and (not v_listed or cardinality(v_tags) > 1) then
        if v_read is not null and p_order = 'newest' then
            select count(*) into v_near
              from (select from (
                        select g.stack_id from stack_tag g
                         where g.project = p_project and g.tag = v_read[1]
                           and (g.created_at, g.stack_id) < (p_created_at, p_id)
                         order by g.created_at desc, g.stack_id desc limit 5 * p_limit) g
                     cross join lateral (
                           select s.tags from stack s where s.id = g.stack_id offset 0) s
                     where s.tags @> v_tags limit p_limit) m;
        elsif v_read is not null then
            select count(*) into v_near
              from (select from (
                        select g.stack_id from stack_tag g
                         where g.project = p_project and g.tag = v_read[1]
                           and (g.created_at, g.stack_id) > (p_created_at, p_id)
                         order by g.created_at, g.stack_id limit 5 * p_limit) g
                     cross join lateral (
                           select s.tags from stack s where s.id = g.stack_id offset 0) s
                     where s.tags @> v_tags limit p_limit) m;
        elsif p_order = 'newest' then
            select count(*) into v_near
              from (select s.tags from stack s
                     where s.project = p_project and (s.created_at, s.id) < (p_created_at, p_id)
                     order by s.created_at desc, s.id desc limit 5 * p_limit) s
             where s.tags @> v_tags and (v_any_tag = '{}' or s.tags && v_any_tag);
        else
            select count(*) into v_near
              from (select s.tags from stack s
                     where s.project = p_project and (s.created_at, s.id) > (p_created_at, p_id)
                     order by s.created_at, s.id limit 5 * p_limit) s
             where s.tags @> v_tags and (v_any_tag = '{}' or s.tags && v_any_tag);
        end if;
        if v_near < coalesce(p_limit, v_near + 1) then
            v_ids := array(
                select s.id from stack s
                 where stack_tags(s.tags, s.project) @> (v_tags || ('/' || p_project)) and s.tags <> '{}'
                   and stack_tags(s.tags, s.project)
                       && case when v_any_tag = '{}' then array['/' || p_project] else v_any_tag end
                 limit v_few + 1);
        end if;
    end if;
    if cardinality(v_ids) <= v_few then
        return query
        with tagged as materialized (
            select s.*
              from unnest(v_ids) k (id)
             cross join lateral (
                   select c.* from current_stack c
                    where c.id = k.id and c.project = p_project offset 0) s
             where case when p_order = 'newest' then (s.created_at, s.id) < (p_created_at, p_id)
                        else (s.created_at, s.id) > (p_created_at, p_id) end
               and stack_is_listed(s, p_filter, v_plain, v_excluded)
        )
        select s.* from tagged s
         order by case when p_order = 'newest' then s.created_at end desc,
                  case when p_order = 'newest' then s.id end desc,
                  case when p_order = 'oldest' then s.created_at end,
                  case when p_order = 'oldest' then s.id end limit p_limit;
    elsif p_order = 'newest' and v_read is not null then
        return query
        with tagged as materialized (
            select s.*
              from unnest(v_read) w (tag)
             cross join lateral (
                   select s.*
                     from stack_tag g
                    cross join lateral (
                          select c.* from current_stack c where c.id = g.stack_id offset 0) s
                    where g.project = p_project and g.tag = w.tag
                      and (g.created_at, g.stack_id) < (p_created_at, p_id)
                      and stack_is_listed(s, p_filter, v_plain, v_excluded)
                    order by g.created_at desc, g.stack_id desc limit p_limit) s
        )
        select distinct on (s.created_at, s.id) s.* from tagged s
         order by s.created_at desc, s.id desc limit p_limit;
    elsif p_order = 'oldest' and v_read is not null then
        return query
        with tagged as materialized (
            select s.*
              from unnest(v_read) w (tag)
             cross join lateral (
                   select s.*
                     from stack_tag g
                    cross join lateral (
                          select c.* from current_stack c where c.id = g.stack_id offset 0) s
                    where g.project = p_project and g.tag = w.tag
                      and (g.created_at, g.stack_id) > (p_created_at, p_id)
                      and stack_is_listed(s, p_filter, v_plain, v_excluded)
                    order by g.created_at, g.stack_id limit p_limit) s
        )
        select distinct on (s.created_at, s.id) s.* from tagged s
         order by s.created_at, s.id limit p_limit;
    elsif p_order = 'newest' and v_listed then
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
    elsif p_order like 'named%' then
        -- 'named': the first page, from processes of the previous release.
        return query
        with named as materialized (
            select s.*
              from (select distinct w.name from unnest(p_names) w (name)) w
             cross join lateral (
                   select c.* from current_stack c
                    where c.project = p_project and c.name = w.name and c.deleted_at is null offset 0) s
             where case p_order when 'named' then true
                                when 'named, newest' then (s.created_at, s.id) < (p_created_at, p_id)
                                else (s.created_at, s.id) > (p_created_at, p_id) end
               and stack_is_listed(s, p_filter, v_plain, v_excluded)
        )
        select s.* from named s
         order by case when p_order <> 'named, oldest' then s.created_at end desc,
                  case when p_order <> 'named, oldest' then s.id end desc,
                  case when p_order = 'named, oldest' then s.created_at end,
                  case when p_order = 'named, oldest' then s.id end limit p_limit;
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
