-- Whether a stack matches a filter (StackFilter in engine/store/stacks/stack_lists.py). A key that the filter
-- lacks matches every stack.

create or replace function stack_matches(s current_stack, f jsonb) returns boolean
language sql stable as $$
    select (f -> 'show_deleted' is not null or s.deleted_at is null)
       and (f -> 'show_nested' is not null or f -> 'parents' is not null or s.parent_id is null)
       and (f -> 'parents' is null or f -> 'parents' ? s.parent_id::text)
       and (f -> 'names' is null or f -> 'names' ? s.name)
       and (f -> 'ids' is null or f -> 'ids' ? s.id::text)
       and (f -> 'statuses' is null
            or f -> 'statuses' ?| array[s.status, s.action || '_' || s.status])
       and (f -> 'actions' is null or f -> 'actions' ? s.action)
       and (f -> 'owners' is null or f -> 'owners' ? s.owner)
       and (f -> 'projects' is null or f -> 'projects' ? s.project)
       and (f -> 'reasons' is null or f -> 'reasons' ? s.reason)
       and (f -> 'disable_rollback' is null
            or f -> 'disable_rollback' @> to_jsonb(s.disable_rollback))
       and (f -> 'timeout_mins' is null or f -> 'timeout_mins' @> to_jsonb(s.timeout_mins))
       and (f -> 'tags' is null or to_jsonb(s.tags) @> (f -> 'tags'))
       and (f -> 'tags_any' is null
            or s.tags && array(select jsonb_array_elements_text(f -> 'tags_any')))
       and (f -> 'not_tags' is null or not to_jsonb(s.tags) @> (f -> 'not_tags'))
       and (f -> 'not_tags_any' is null
            or not s.tags && array(select jsonb_array_elements_text(f -> 'not_tags_any')))
$$;

-- The same for a page of stacks. p_plain: the filter has no key but `not_tags_any`, whose tags are
-- p_excluded: `stack_matches` costs more than reading a stack, and most lists need only these conditions.
create or replace function stack_is_listed(s current_stack, f jsonb, p_plain boolean,
                                           p_excluded text[])
returns boolean
language sql stable as $$
    select case when p_plain then s.deleted_at is null and s.parent_id is null
                                  and not s.tags && p_excluded
                else stack_matches(s, f) end
$$;
