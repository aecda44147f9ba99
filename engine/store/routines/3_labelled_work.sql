-- Work of nodes with labels. Programs of stacks without labels call none of these functions.

drop function if exists lock_labelled_work(text[], timestamptz, text);
drop function if exists lock_labelled_work(text[], timestamptz, text, traversal_change[]);

-- Locks the stacks of at most 16 traversals with due nodes that have one of the labels; '': nodes without a
-- label. p_after, p_changes, p_due, p_last_project: see `claim_due`. Stacks that another worker has locked are skipped.
create function lock_labelled_work(p_labels text[], p_due_at timestamptz, p_after text,
                                   p_changes traversal_change[],
                                   out p_due due_traversal[], out p_last_project text)
language plpgsql as $$
declare
    v_due due_traversal[];
begin
    with due as (
        select t.stack_id, t.traversal, t.labelled
          from due_traversals(p_due_at, p_changes, 17) t where '' = any (p_labels)
        union all
        select w.* from unnest(p_labels) l (label)
         cross join lateral (
               select w.stack_id, w.traversal, true from labelled_work w
                where w.label = l.label and w.wake_at <= p_due_at order by w.wake_at limit 17) w
    )
    select coalesce(array_agg(row (d.stack_id, d.traversal, d.labelled, null)::due_traversal), '{}')
      into v_due from (select stack_id, traversal, bool_or(labelled) as labelled
                         from due group by 1, 2) d;
    if cardinality(v_due) <= 16 then
        with locked as (
            select d.stack_id, d.traversal, d.labelled, s.traversal as current_traversal
              from unnest(v_due) d join stack s on s.id = d.stack_id
               for no key update of s skip locked
        )
        select coalesce(array_agg(row (stack_id, traversal, labelled, current_traversal)::due_traversal), '{}')
          into p_due from locked;
        return;
    end if;
    -- Each project with due work gets one turn before any gets a second one.
    with recursive step as (
        select l.label, (select min(w.project) from labelled_work w
                          where w.label = l.label and w.wake_at is not null) as project
          from unnest(p_labels) l (label)
        union all
        select p.label, (select min(w.project) from labelled_work w
                          where w.label = p.label and w.wake_at is not null
                            and w.project > p.project)
          from step p where p.project is not null
    ), project as (
        select q.name, row_number() over (order by q.name <= p_after, q.name) as nth
          from (select p.project from step p where p.project is not null
                union
                select n.name from next_projects('', 200) n (name) where '' = any (p_labels)) q (name)
    ), due as (
        select d.stack_id, d.traversal, bool_or(d.labelled) as labelled, p.name, p.nth,
               row_number() over (partition by p.name order by min(d.wake_at)) as turn
          from project p cross join lateral (
               select t.* from due_traversals_of(p.name, p_due_at, p_changes, 16) t
                where '' = any (p_labels)
               union all
               select w.* from unnest(p_labels) l (label)
                cross join lateral (
                      select w.stack_id, w.traversal, true, w.wake_at from labelled_work w
                       where w.label = l.label and w.project = p.name and w.wake_at <= p_due_at
                       order by w.wake_at limit 16) w) d
         group by d.stack_id, d.traversal, p.name, p.nth
    ), first as (
        select d.* from due d order by d.turn, d.nth limit 16
    ), locked as (
        select f.stack_id, f.traversal, f.labelled, s.traversal as current_traversal
          from first f join stack s on s.id = f.stack_id
           for no key update of s skip locked
    )
    select coalesce(array_agg(row (stack_id, traversal, labelled, current_traversal)::due_traversal), '{}'),
           (select name from first order by turn desc, nth desc limit 1)
      into p_due, p_last_project from locked;
end;
$$;

-- Updates when nodes with labels are due, for all traversals of these stacks, which are locked. Returns
-- whether some are due.
create or replace function time_labelled_work(p_stacks uuid[]) returns boolean
language sql as $$
    with timed as (
        select w.stack_id, w.traversal, w.label, w.wake_at as before, n.wake_at
          from labelled_work w
         cross join lateral (
               select min(n.wake_at) as wake_at from node n
                where n.stack_id = w.stack_id and n.traversal = w.traversal
                  and n.label = w.label and n.wake_at is not null) n
         where w.stack_id = any (p_stacks)
    ), updated as (
        update labelled_work w set wake_at = t.wake_at
          from timed t
         where w.stack_id = t.stack_id and w.traversal = t.traversal and w.label = t.label
           and t.wake_at is distinct from t.before
    )
    select coalesce(bool_or(wake_at <= clock_timestamp()), false) from timed
$$;

-- Seconds until work for these labels is due, negative if it is overdue; null: none is planned.
create or replace function labelled_work_due_in(p_labels text[]) returns double precision
language sql stable as $$
    select extract(epoch from least(
               (select min(t.wake_at) from traversal t
                 where '' = any (p_labels) and t.wake_at is not null),
               (select min(w.wake_at) from unnest(p_labels) l (label)
                 cross join lateral (
                       select min(w.wake_at) as wake_at from labelled_work w
                        where w.label = l.label and w.wake_at is not null offset 0) w))
           - clock_timestamp())
$$;
