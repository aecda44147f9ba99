"""Observed states of resources, and the schedule of observations.

Only a resource that differs from its recorded state has a row, so an observation in which nothing
has changed writes nothing but the schedule.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from engine.principal import Principal
from engine.store.connection import Connection
from engine.store.encryption.encrypted_rows import decrypt_row
from engine.store.encryption.secret_values import DecryptionFailed
from engine.words import Json, ObservedState, ResourceAction

CHANNEL = "headgate_observe"

#: Of a stack and its nested stacks. A request during an observation makes it due again after it.
REQUEST = """
with recursive tree (id, project) as (
    select id, project from stack where id = $1 and deleted_at is null
    union all
    select c.id, c.project from tree t
     cross join lateral (select id, project from stack
                          where parent_id = t.id and deleted_at is null offset 0) c
), requested as (
    insert into observation_schedule as q (stack_id, project, next_at, requested_at)
    select id, project, 'epoch', clock_timestamp() from tree order by id
    on conflict (stack_id) do update
       set requested_at = excluded.requested_at,
           next_at = case when q.claimed_at is null then excluded.next_at else q.next_at end
    returning q.stack_id
)
select pg_notify('headgate_observe', '') from requested limit 1
"""
#: $2: the interval of a root stack and its nested stacks, whose next observation is at most that
#: far away afterwards.
SCHEDULE = """
with first as materialized (
    select clock_timestamp() + $2::interval * (0.9 + 0.2 * random()) as at,
           clock_timestamp() + $2::interval * 1.1 as latest,
           clock_timestamp() + $2::interval * 0.8 as early
), root as (
    insert into observation_schedule as q (stack_id, project, next_at, early_at)
    select s.id, s.project, f.at, f.early from stack s cross join first f
     where s.id = $1 and s.root_id is null
    on conflict (stack_id) do update
       set next_at = excluded.next_at, early_at = excluded.early_at
     where q.claimed_at is null
       and (q.next_at is null or q.next_at > (select latest from first))
)
update observation_schedule q set next_at = f.at, early_at = f.early
  from first f, (select id from stack where root_id = $1 and deleted_at is null) s
 where q.stack_id = s.id and q.claimed_at is null
   and (q.next_at is null or q.next_at > f.latest)
"""
#: $1: root stacks, whose nested stacks become due unless they are scheduled.
SCHEDULE_NESTED = """
insert into observation_schedule as q (stack_id, project, next_at)
select s.id, s.project, clock_timestamp()
  from unnest($1::uuid[]) r (id)
 cross join lateral (select id, project from stack
                      where root_id = r.id and deleted_at is null offset 0) s
 order by s.id
on conflict (stack_id) do update set next_at = excluded.next_at
 where q.claimed_at is null and q.next_at is null
"""
#: Projects with stacks by name. $1: after this one. $2: how many.
PROJECTS = """
with recursive step as (
    select (select min(project) from stack where project > $1) as project, 1 as nth
    union all
    select (select min(s.project) from stack s where s.project > t.project), t.nth + 1
      from step t where t.project is not null and t.nth < $2
)
select project from step where project is not null
"""
#: Schedules the root stacks of a project that are not scheduled. $2: interval, over which the
#: observations are spread. $3: after this stack. $4: how many. Returns the last one; null: there
#: are no more.
SCHEDULE_PROJECT = """
with page as materialized (
    select id, project from stack
     where project = $1 and id > $3 and root_id is null and deleted_at is null
     order by id limit $4
), added as (
    insert into observation_schedule as q (stack_id, project, next_at)
    select id, project, clock_timestamp() + $2::interval * random() from page order by id
    on conflict (stack_id) do update set next_at = excluded.next_at
     where q.claimed_at is null and q.next_at is null
)
select max(id::text)::uuid from page
"""
#: Makes resources whose change was reported due, unless their stack is observed now. $1: the
#: project. $2, $3: their physical IDs and types; null: any type. Found by the start of the ID,
#: because an index entry is limited. Returns the number of resources, of stacks, and of IDs that no
#: resource of the project has.
REPORT_CHANGES = """
with wanted as materialized (
    select distinct w.physical_id, w.type from unnest($2::text[], $3::text[]) w (physical_id, type)
), found as materialized (
    select w.physical_id, r.stack_id, r.id, r.replaced_by
      from wanted w
     cross join lateral (select stack_id, id, type, replaced_by from resource
                          where left(physical_id, 200) = left(w.physical_id, 200)
                            and physical_id = w.physical_id offset 0) r
     cross join lateral (select from stack
                          where id = r.stack_id and project = $1 and deleted_at is null offset 0) s
     where w.type is null or r.type = w.type
), changed as materialized (
    select stack_id, array_agg(distinct id) as ids from found where replaced_by is null
     group by stack_id
), due as (
    insert into observation_schedule as q (stack_id, project, next_at, reported, reported_at)
    select stack_id, $1, '1970-01-01 00:00:01+00', ids, clock_timestamp() from changed
     order by stack_id
    on conflict (stack_id) do update
       set reported = array(select unnest(q.reported) union select unnest(excluded.reported)),
           reported_at = excluded.reported_at,
           resume_at = case when q.claimed_at is null and q.next_at > excluded.next_at
                            then q.next_at else q.resume_at end,
           next_at = case when q.claimed_at is null
                          then least(q.next_at, excluded.next_at) else q.next_at end
    returning stack_id
), notified as (
    select pg_notify('headgate_observe', '') from due limit 1
)
select (select coalesce(sum(cardinality(ids)), 0)::integer from changed) as resources,
       (select count(*)::integer from due) as stacks,
       (select count(distinct w.physical_id)::integer from wanted w
         where not exists (select from found f where f.physical_id = w.physical_id)) as unknown,
       (select count(*) from notified) as notified
"""
#: Of one project: one requested observation, or several of reported changes, or several that
#: policies have scheduled, also those that may be early. Projects in the order of their earliest
#: one. $1: how many. $2: the lease. $3: projects to leave out.
CLAIM = """
with recursive turn as (
    select (select min(project) from observation_schedule where next_at is not null) as project
    union all
    select (select min(q.project) from observation_schedule q
             where q.next_at is not null and q.project > t.project)
      from turn t where t.project is not null
), first as materialized (
    select t.project, q.next_at from turn t
     cross join lateral (select next_at from observation_schedule
                          where project = t.project and next_at is not null
                          order by next_at limit 1) q
     where t.project <> all ($3) and q.next_at <= clock_timestamp()
     order by q.next_at limit 1
), due as materialized (
    select q.stack_id, q.next_at from first f
     cross join lateral (
         select d.stack_id, d.next_at from observation_schedule d
          where d.stack_id = any (array(
                    select n.stack_id
                      from (select stack_id, next_at, early_at from observation_schedule
                             where project = f.project and next_at is not null
                             order by next_at limit 4 * $1) n
                     where least(n.next_at, n.early_at) <= clock_timestamp()
                       and (n.next_at = f.next_at or f.next_at <> '1970-01-01 00:00:01+00')
                     order by n.next_at
                     limit case when f.next_at = 'epoch' then 1 else $1 end))
            and least(d.next_at, d.early_at) <= clock_timestamp()
            for update skip locked) q
), claimed as (
    update observation_schedule q
       set claim = q.claim + 1, claimed_at = clock_timestamp(), early_at = null,
           next_at = clock_timestamp() + $2
      from due d where q.stack_id = d.stack_id
    returning q.stack_id, q.claim, q.claimed_at, q.project,
              coalesce(q.requested_at > coalesce(q.observed_at, '-infinity'), false) as requested,
              q.reported is not null as reported,
              case when d.next_at = '1970-01-01 00:00:01+00' then q.reported end as resources
)
select c.stack_id, c.claim, c.claimed_at, c.project, c.requested, c.reported, c.resources, s.name,
       s.path,
       coalesce(s.root_id, s.id) as root_id, v.environment -> 'convergence' as section
  from claimed c
  left join stack s on s.id = c.stack_id and s.deleted_at is null
  left join stack o on o.id = coalesce(s.root_id, s.id)
  left join template v on v.stack_id = o.id and v.version = o.version
 order by c.stack_id
"""
#: $1, $2: stacks and their claims. $3: the lease. Returns those whose claim holds.
RENEW = """
update observation_schedule q set next_at = clock_timestamp() + $3
  from unnest($1::uuid[], $2::integer[]) c (stack_id, claim)
 where q.stack_id = c.stack_id and q.claim = c.claim and q.claimed_at is not null
returning q.stack_id
"""
#: $1: projects to leave out.
NEXT_DUE = """
with recursive turn as (
    select (select min(project) from observation_schedule where next_at is not null) as project
    union all
    select (select min(q.project) from observation_schedule q
             where q.next_at is not null and q.project > t.project)
      from turn t where t.project is not null
)
select min(q.next_at) - clock_timestamp() from turn t
 cross join lateral (select next_at from observation_schedule
                      where project = t.project and next_at is not null
                      order by next_at limit 1) q
 where t.project <> all ($1)
"""
#: $1, $2: stacks, and the ID after which the page starts in each; of reported changes, stacks and
#: IDs. $3: its length. $4: bytes of large properties and attributes after which it ends. Sorted by
#: stack and ID, so that only the last stack can have more. Resources with an operation that runs or
#: failed are left out, because their recorded state is not certain.
_read_page = """
with page as materialized (
    select r.stack_id, r.id, r.bytes
      from unnest($1::uuid[], $2::uuid[]) w (stack_id, id)
     cross join lateral (
         select c.stack_id, c.id, c.bytes from resource c
          where c.stack_id = w.stack_id and c.id {compared} w.id
            and c.physical_id is not null and c.replaced_by is null
            and c.status = 'COMPLETE' and c.action not in ('INIT', 'DELETE', 'SUSPEND')
            and not exists (select from node n
                             where n.stack_id = c.stack_id and n.resource_id = c.id
                               and n.traversal = (select traversal from stack where id = w.stack_id)
                               and n.state in ('running', 'parked', 'ready')
                               and n.phase in ('execute', 'confirm'))
          order by c.id limit $3 offset 0) r
     order by r.stack_id, r.id limit $3
), fitting as (
    select stack_id, id,
           sum(bytes) over (order by stack_id, id rows unbounded preceding) - bytes as bytes_before
      from page
)
select r.stack_id, r.id, r.name, r.type, r.physical_id, r.properties, r.data, r.attributes,
       r.updated_at, r.masked_properties is not null as has_secrets, clock_timestamp() as now
  from fitting f
 cross join lateral (select * from resource
                      where stack_id = f.stack_id and id = f.id offset 0) r
 where f.bytes_before < $4 order by r.stack_id, r.id
"""
READ_PAGE = _read_page.format(compared=">")
READ_REPORTED = _read_page.format(compared="=")
#: $1: observed resources: [{stack_id, id, recorded_at, state, differences, reason}]; state null:
#: as recorded. A row is written only if the state differs from the one before, and only if the
#: resource is the same as when it was read. Returns how many have become different.
WRITE = """
with observed as materialized (
    select o.* from jsonb_to_recordset($1) o (stack_id uuid, id uuid, recorded_at timestamptz,
                                              state text, differences jsonb, reason text)
      join resource r on r.stack_id = o.stack_id and r.id = o.id and r.updated_at = o.recorded_at
      join stack s on s.id = o.stack_id and s.deleted_at is null
), ended as (
    delete from observation b using observed o
     where b.stack_id = o.stack_id and b.resource_id = o.id and o.state is null
       and b.reported is null
), resolved as (
    update observation b set resolved_at = clock_timestamp() from observed o
     where b.stack_id = o.stack_id and b.resource_id = o.id and o.state is null
       and b.reported is not null and b.resolved_at is null
), found as materialized (
    select from observed o
     where o.state <> 'unknown'
       and not exists (select from observation b
                        where b.stack_id = o.stack_id and b.resource_id = o.id
                          and b.state <> 'unknown' and b.recorded_at = o.recorded_at
                          and b.resolved_at is null)
), written as (
    insert into observation as b (stack_id, resource_id, state, differences, reason, recorded_at,
                                  since, observed_at)
    select o.stack_id, o.id, o.state, o.differences, o.reason, o.recorded_at, clock_timestamp(),
           clock_timestamp()
      from observed o where o.state is not null order by o.stack_id, o.id
    on conflict (stack_id, resource_id) do update
       set state = excluded.state, differences = excluded.differences, reason = excluded.reason,
           recorded_at = excluded.recorded_at, observed_at = excluded.observed_at,
           resolved_at = null,
           since = case when b.state = excluded.state and b.recorded_at = excluded.recorded_at
                         and b.resolved_at is null
                        then b.since else excluded.since end
     where (b.state, b.differences, b.reason, b.recorded_at)
           is distinct from (excluded.state, excluded.differences, excluded.reason,
                             excluded.recorded_at)
        or b.resolved_at is not null
)
select count(*) from found
"""
#: Ends observations unless another process has claimed their stack since. $1 to $5: stacks, claims,
#: times until the next observation (null: none), observable resources, and not observable ones.
#: Also ends the observations of resources that are gone.
FINISH = """
with finished as (
    update observation_schedule q
       set next_at = case when q.requested_at > q.claimed_at then 'epoch'
                          when q.reported_at > q.claimed_at then '1970-01-01 00:00:01+00'
                          else clock_timestamp() + e.next_in end,
           early_at = case when greatest(q.requested_at, q.reported_at) > q.claimed_at then null
                           else clock_timestamp() + e.next_in * 0.8 end,
           reported = case when q.reported_at > q.claimed_at then q.reported end,
           resume_at = case when q.reported_at > q.claimed_at
                            then clock_timestamp() + e.next_in end,
           observed_at = q.claimed_at, claimed_at = null, observable = e.observable,
           not_observable = e.not_observable
      from unnest($1::uuid[], $2::integer[], $3::interval[], $4::integer[], $5::integer[])
           e (stack_id, claim, next_in, observable, not_observable)
     where q.stack_id = e.stack_id and q.claim = e.claim and q.claimed_at is not null
    returning q.stack_id
), gone as materialized (
    select b.stack_id, b.resource_id, b.reported is not null as reported
      from finished f join observation b on b.stack_id = f.stack_id
     where not exists (select from resource r
                        where r.stack_id = b.stack_id and r.id = b.resource_id
                          and r.replaced_by is null)
), resolved as (
    update observation b set resolved_at = clock_timestamp() from gone g
     where b.stack_id = g.stack_id and b.resource_id = g.resource_id and g.reported
       and b.resolved_at is null
)
delete from observation b using gone g
 where b.stack_id = g.stack_id and b.resource_id = g.resource_id and not g.reported
"""
#: Ends observations of reported changes. $1 to $3: stacks, claims, and intervals (null: none). The
#: schedule stays, unless the interval has become shorter.
FINISH_REPORTED = """
update observation_schedule q
   set next_at = case when q.requested_at > q.claimed_at then 'epoch'
                      when q.reported_at > q.claimed_at then '1970-01-01 00:00:01+00'
                      else least(q.resume_at, clock_timestamp() + e.next_in * 1.2) end,
       early_at = case when not coalesce(greatest(q.requested_at, q.reported_at) > q.claimed_at,
                                         false)
                       then least(q.resume_at, clock_timestamp() + e.next_in * 1.2)
                            - e.next_in * 0.2 end,
       reported = case when q.reported_at > q.claimed_at then q.reported end,
       resume_at = case when q.reported_at > q.claimed_at
                        then least(q.resume_at, clock_timestamp() + e.next_in * 1.2) end,
       claimed_at = null
  from unnest($1::uuid[], $2::integer[], $3::interval[]) e (stack_id, claim, next_in)
 where q.stack_id = e.stack_id and q.claim = e.claim and q.claimed_at is not null
"""
#: Ends claims without an observation. $3: until the next one; null: when one is requested.
RELEASE = """
update observation_schedule q
   set next_at = case when q.requested_at > q.claimed_at then 'epoch'
                      when q.reported_at > q.claimed_at then '1970-01-01 00:00:01+00'
                      else clock_timestamp() + $3 end, claimed_at = null
  from unnest($1::uuid[], $2::integer[]) c (stack_id, claim)
 where q.stack_id = c.stack_id and q.claim = c.claim and q.claimed_at is not null
"""
FORGET = """
delete from observation_schedule q using unnest($1::uuid[], $2::integer[]) c (stack_id, claim)
 where q.stack_id = c.stack_id and q.claim = c.claim and q.claimed_at is not null
"""
#: Of a stack and its nested stacks. due: an observation that was requested, or of a reported
#: change, has not ended.
READ_SCHEDULE = """
with recursive tree (id) as (
    select id from stack where id = $1
    union all
    select c.id from tree t
     cross join lateral (select id from stack
                          where parent_id = t.id and deleted_at is null offset 0) c
)
select case when count(q.observed_at) = count(*) then min(q.observed_at) end as observed_at,
       coalesce(bool_or(q.reported is not null
                        or q.requested_at > coalesce(q.observed_at, '-infinity')), false) as due,
       coalesce(sum(q.observable), 0)::integer as observable,
       coalesce(sum(q.not_observable), 0)::integer as not_observable,
       min(q.next_at) filter (where q.claimed_at is null and q.next_at > '1970-01-02') as next_at
  from tree t left join observation_schedule q on q.stack_id = t.id
"""
#: The section of the environment of a stack's root stack.
READ_SECTION = """
select v.environment -> 'convergence'
  from stack s join stack o on o.id = coalesce(s.root_id, s.id)
  join template v on v.stack_id = o.id and v.version = o.version
 where s.id = $1
"""
#: Of a stack and its nested stacks. Observations of an earlier state of a resource are left out.
READ_DRIFT = """
with recursive tree (id, name, path) as (
    select id, name, '' from stack where id = $1
    union all
    select c.id, c.name, c.path from tree t
     cross join lateral (select id, name, path from stack
                          where parent_id = t.id and deleted_at is null offset 0) c
)
select t.id as stack_id, t.name as stack_name, t.path, r.id as resource_id, r.name, r.type,
       r.physical_id, b.state, b.differences, b.reason, b.since, b.observed_at,
       b.reported ->> 'unrepaired' as unrepaired
  from tree t
 cross join lateral (select * from observation
                      where stack_id = t.id and resolved_at is null offset 0) b
 cross join lateral (select * from resource q
                      where q.stack_id = t.id and q.id = b.resource_id
                        and q.updated_at = b.recorded_at and q.replaced_by is null offset 0) r
 order by t.path, r.name
"""
#: Whether a stack does not own the physical resource of its resource `r`: it has external_id in the
#: template, or is an entry of the section `data`.
IS_EXTERNAL = """(
    starts_with(r.name, 'data.')
    or exists (select from stack e
                 join template v on v.stack_id = e.id and v.version = e.version
                where e.id = r.stack_id
                  and v.template -> 'resources' -> split_part(r.name, '[', 1) ->> 'external_id'
                      is not null)
)"""
#: $2, $3: observed states, and the action that a resource in this state gets. $4: names of
#: resources of the stack, which may own nested stacks; $5: resources with drift; null: all. The
#: resources that own the stacks of changed ones lose their digest, so that the update continues
#: into these stacks. Resources that the stack does not own (external_id, data) are left out.
MARK_DRIFTED = f"""
with recursive tree (id, parent_id, parent_resource) as (
    select id, null::uuid, null::uuid from stack where id = $1
    union all
    select c.id, c.parent_id, c.parent_resource from tree t
     cross join lateral (select id, parent_id, parent_resource from stack
                          where parent_id = t.id and deleted_at is null offset 0) c
     where t.parent_id is not null or $4::text[] is null
        or exists (select from resource p
                    where p.stack_id = t.id and p.id = c.parent_resource and p.name = any ($4))
), marked as (
    update resource r
       set action = m.action, status = 'FAILED', tainted = true,
           reason = concat_ws(': ', 'drift: ' || b.state, nullif(b.reason, '')),
           updated_at = clock_timestamp()
      from tree t
     cross join lateral (select * from observation
                          where stack_id = t.id and resolved_at is null offset 0) b
      join unnest($2::text[], $3::text[]) m (state, action) on m.state = b.state
     where r.stack_id = b.stack_id and r.id = b.resource_id and r.updated_at = b.recorded_at
       and r.replaced_by is null
       and (t.parent_id is not null or $4::text[] is null or r.name = any ($4))
       and not {IS_EXTERNAL}
       and ($5::uuid[] is null or r.id = any ($5))
    returning r.stack_id
), owner (stack_id, id) as (
    select parent_id, parent_resource from tree
     where id in (select stack_id from marked) and parent_id is not null
    union
    select t.parent_id, t.parent_resource
      from owner o join tree t on t.id = o.stack_id and t.parent_id is not null
), reset as (
    update resource r set digest = '' from owner o where r.stack_id = o.stack_id and r.id = o.id
)
select count(*) from marked
"""  # noqa: S608 - of constants

#: Stacks with drift or its end to report. $1, $2: stacks, and how long drift must last.
UNREPORTED = """
select w.stack_id
  from unnest($1::uuid[], $2::interval[]) w (stack_id, tolerate)
 where exists (
     select from observation b
      where b.stack_id = w.stack_id
        and (b.resolved_at is not null
             or b.state <> 'unknown' and b.since <= clock_timestamp() - w.tolerate
                and (b.reported is null
                     or (b.reported ->> 'state', b.reported -> 'differences')
                        is distinct from (b.state, b.differences))))
"""
#: $2: how long drift must last. $3: the state of resources whose drift has ended. The caller has
#: locked the stack.
REPORT = """
with due as materialized (
    select b.resource_id, b.state, b.differences, b.reason, b.since, r.name, r.type, r.physical_id,
           r.action, r.status
      from observation b
      join resource r on r.stack_id = b.stack_id and r.id = b.resource_id
                     and r.updated_at = b.recorded_at and r.replaced_by is null
     where b.stack_id = $1 and b.resolved_at is null and b.state <> 'unknown'
       and b.since <= clock_timestamp() - $2::interval
       and (b.reported is null
            or (b.reported ->> 'state', b.reported -> 'differences')
               is distinct from (b.state, b.differences))
), marked as (
    update observation b
       set reported = jsonb_build_object('name', d.name, 'type', d.type,
                                         'physical_id', d.physical_id, 'state', d.state,
                                         'differences', d.differences)
      from due d where b.stack_id = $1 and b.resource_id = d.resource_id
), ended as (
    delete from observation where stack_id = $1 and resolved_at is not null
    returning reported, since
), draft as (
    select 'detected' as moment, name, type, physical_id, action, status,
           concat_ws(': ', 'drift: ' || state, nullif(reason, '')) as reason,
           jsonb_build_object('state', state, 'differences', differences, 'since', since) as drift
      from due
    union all
    select 'resolved', e.reported ->> 'name', e.reported ->> 'type',
           coalesce(r.physical_id, e.reported ->> 'physical_id'), coalesce(r.action, 'DELETE'),
           coalesce(r.status, 'COMPLETE'), 'drift: resolved',
           jsonb_build_object('state', $3::text, 'differences', '[]'::jsonb, 'since', e.since)
      from ended e
      left join lateral (select physical_id, action, status from resource
                          where stack_id = $1 and name = e.reported ->> 'name'
                            and replaced_by is null limit 1) r on true
)
select record_events(array_agg(
           row ($1::uuid, 'headgate.resource.drift.' || moment, name, type, physical_id, action,
                status, reason, jsonb_build_object('operation', 'drift', 'drift', drift)
           )::event_draft order by moment desc, name))
  from draft having count(*) > 0
"""
#: Reported drift that `converge` repairs. $1: root stacks. $2: observed states. names: of resources
#: of the root stack, which may own the nested stack of a resource with drift. has_external: there
#: is drift of a resource that the stack does not own, and no event says that it is not repaired.
REPAIRABLE = f"""
select t.root_id,
       coalesce(array_agg(distinct coalesce(t.top, r.name)) filter (where not r.external), '{{}}')
           as names,
       bool_or(r.external and not b.reported ? 'unrepaired') as has_external
  from stacks_of_roots($1) t
 cross join lateral (select * from observation
                      where stack_id = t.id and reported is not null and resolved_at is null
                        and state = any ($2) offset 0) b
 cross join lateral (select r.name, {IS_EXTERNAL} as external from resource r
                      where r.stack_id = t.id and r.id = b.resource_id
                        and r.updated_at = b.recorded_at and r.replaced_by is null offset 0) r
 group by t.root_id
"""  # noqa: S608 - of constants
#: Updates that the observer started within a day. $2: its principal.
COUNT_REPAIRS = """
select count(*) from traversal
 where stack_id = $1 and requested_by_id = $2 and action = 'UPDATE'
   and started_at > clock_timestamp() - interval '1 day'
"""
#: Of a stack and its nested stacks.
READ_TREE = """
select id from stack where (id = $1 or root_id = $1) and deleted_at is null
"""
#: $1: stacks, which the caller has locked. $2: why their reported drift is not repaired. Drift with
#: this reason is left out. $3: that of resources that the stacks do not own, or of the others. $4:
#: only of these resources; null: of all.
RECORD_UNREPAIRED = f"""
with marked as (
    update observation b set reported = b.reported || jsonb_build_object('unrepaired', $2::text)
      from resource r
     where b.stack_id = any ($1) and b.reported is not null and b.resolved_at is null
       and b.state <> 'unknown' and b.reported ->> 'unrepaired' is distinct from $2
       and ($4::uuid[] is null or b.resource_id = any ($4))
       and r.stack_id = b.stack_id and r.id = b.resource_id and r.updated_at = b.recorded_at
       and {IS_EXTERNAL} = $3
    returning b.stack_id, b.state, b.differences, b.since, r.name, r.type, r.physical_id, r.action,
              r.status
)
select record_events(array_agg(
           row (stack_id, 'headgate.resource.drift.unrepaired', name, type, physical_id, action,
                status, 'drift: not repaired: ' || $2,
                jsonb_build_object('operation', 'drift', 'drift', jsonb_build_object(
                    'state', state, 'differences', differences, 'since', since))
           )::event_draft order by stack_id, name))
  from marked having count(*) > 0
"""  # noqa: S608 - of constants

#: Before every ID.
FIRST = UUID(int=0)
ENCRYPTED = ("properties", "data", "attributes")


@dataclass(frozen=True, slots=True)
class ClaimedStack:
    """A stack to observe. name: None: it was deleted; then root_id is None, too. requested: not by
    its policy alone. reported: changes were reported. resources: those alone; None: all. path: from
    the root stack. section: `convergence` of the root's environment.
    """

    stack_id: UUID
    claim: int
    claimed_at: datetime
    project: str
    requested: bool
    reported: bool
    resources: Sequence[UUID] | None
    name: str | None
    path: str | None
    root_id: UUID | None
    section: Json


@dataclass(frozen=True, slots=True)
class RecordedResource:
    """The recorded state of a resource, decrypted. now: the database's time."""

    stack_id: UUID
    id: UUID
    name: str
    type: str
    physical_id: str
    properties: Mapping[str, Json] | None
    data: Mapping[str, Json]
    attributes: Mapping[str, Json]
    updated_at: datetime
    has_secrets: bool
    now: datetime


@dataclass(frozen=True, slots=True)
class ResourcePage:
    """resources: those that could be decrypted. failed: the error of other stacks. last: the stack
    and the ID of the last resource; None: the page is empty, so the stacks have no more."""

    resources: Sequence[RecordedResource]
    failed: Mapping[UUID, DecryptionFailed]
    last: tuple[UUID, UUID] | None


@dataclass(frozen=True, slots=True)
class ObservedResource:
    """recorded_at: `RecordedResource.updated_at`. state: None: as recorded. differences:
    [{path, desired, observed}], without secrets."""

    stack_id: UUID
    id: UUID
    recorded_at: datetime
    state: str | None
    differences: Sequence[Mapping[str, Json]] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True)
class ObservationStatus:
    """Of a stack and its nested stacks. observed_at: start of the oldest of their last
    observations; None: one was never observed. due: an observation that was requested, or of a
    reported change, has not ended.
    observable, not_observable: number of resources. next_at: when a policy observes one next."""

    observed_at: datetime | None
    due: bool
    observable: int
    not_observable: int
    next_at: datetime | None


@dataclass(frozen=True, slots=True)
class DriftedResource:
    """A resource whose observed state differs from the recorded one. path: of its stack.
    unrepaired: why its policy does not repair it; None: no attempt failed."""

    stack_id: UUID
    stack_name: str
    path: str
    resource_id: UUID
    name: str
    type: str
    physical_id: str
    state: str
    differences: Sequence[Mapping[str, Json]]
    reason: str
    since: datetime
    observed_at: datetime
    unrepaired: str | None


@dataclass(frozen=True, slots=True)
class ReportedChanges:
    """Number of resources and stacks that will be observed, and of unknown physical IDs."""

    resources: int
    stacks: int
    unknown: int


@dataclass(frozen=True, slots=True)
class RepairableStack:
    """A root stack with drift to repair. names: of its resources, which may own the nested stack of
    a resource with drift. has_external: there is drift of a resource that the stack does not own,
    and no event says yet that it is not repaired."""

    root_id: UUID
    names: list[str]
    has_external: bool


@dataclass(frozen=True, slots=True)
class FinishedObservation:
    """next_in: until the next one; None: it is requested."""

    claimed: ClaimedStack
    next_in: timedelta | None
    observable: int
    not_observable: int


async def request(conn: Connection, stack_id: UUID) -> None:
    """Make the observation of a stack and its nested stacks due."""
    await conn.execute(REQUEST, stack_id)


async def report_changes(
    conn: Connection, project: str, changes: Sequence[tuple[str, str | None]]
) -> ReportedChanges:
    """Make resources of a project due. changes: physical IDs and types (None: any)."""
    ids, types = [one for one, _ in changes], [type_ for _, type_ in changes]
    row = await conn.fetchrow(REPORT_CHANGES, project, ids, types)
    if row is None:
        raise LookupError("the statement returns one row")
    return ReportedChanges(row["resources"], row["stacks"], row["unknown"])


async def schedule(conn: Connection, root_id: UUID, every: timedelta) -> None:
    """Observe a root stack and its nested stacks within an interval; others are ignored."""
    await conn.execute(SCHEDULE, root_id, every)


async def schedule_nested(conn: Connection, root_ids: Sequence[UUID]) -> None:
    await conn.execute(SCHEDULE_NESTED, root_ids)


async def read_projects(conn: Connection, after: str, limit: int) -> list[str]:
    """Projects with stacks, by name."""
    return [row["project"] for row in await conn.fetch(PROJECTS, after, limit)]


async def schedule_project(
    conn: Connection, project: str, every: timedelta, after: UUID, limit: int
) -> UUID | None:
    """Schedule the next root stacks of a project that are not scheduled, spread over an interval.
    Returns the last one; None: there are no more."""
    last: UUID | None = await conn.fetchval(SCHEDULE_PROJECT, project, every, after, limit)
    return last


async def claim(
    conn: Connection, limit: int, lease: timedelta, except_projects: Sequence[str] = ()
) -> list[ClaimedStack]:
    """Claim stacks of one project, by ID: one that was requested, or several of policies."""
    rows = await conn.fetch(CLAIM, limit, lease, except_projects)
    return [ClaimedStack(**row) for row in rows]


async def renew(conn: Connection, claimed: Sequence[ClaimedStack], lease: timedelta) -> set[UUID]:
    """Return the stacks whose claim still holds."""
    rows = await conn.fetch(RENEW, *_claims(claimed), lease)
    return {row["stack_id"] for row in rows}


async def until_next(conn: Connection, except_projects: Sequence[str] = ()) -> timedelta | None:
    """The time until the next observation is due; None: none is."""
    due: timedelta | None = await conn.fetchval(NEXT_DUE, except_projects)
    return due


async def read_page(
    conn: Connection, after: Mapping[UUID, UUID], project: str, limit: int, max_bytes: int
) -> ResourcePage:
    """The next resources of stacks of a project, by stack and ID. after: the last ID of each."""
    rows = await conn.fetch(READ_PAGE, [*after], [*after.values()], limit, max_bytes)
    return _decrypt_page(rows, project)


async def read_reported(
    conn: Connection,
    resources: Sequence[tuple[UUID, UUID]],
    project: str,
    limit: int,
    max_bytes: int,
) -> ResourcePage:
    """The first of these resources of a project. resources: their stacks and IDs."""
    stacks, ids = [stack for stack, _ in resources], [one for _, one in resources]
    rows = await conn.fetch(READ_REPORTED, stacks, ids, limit, max_bytes)
    return _decrypt_page(rows, project)


def _decrypt_page(rows: Sequence[Json], project: str) -> ResourcePage:
    found: list[RecordedResource] = []
    failed: dict[UUID, DecryptionFailed] = {}
    for row in rows:
        stack_id = row["stack_id"]
        try:
            shown = decrypt_row(row, project, stack_id, "resource", ENCRYPTED)
        except DecryptionFailed as error:
            failed[stack_id] = error
        else:
            found.append(RecordedResource(**shown))
    last = (rows[-1]["stack_id"], rows[-1]["id"]) if rows else None
    return ResourcePage([one for one in found if one.stack_id not in failed], failed, last)


async def write(conn: Connection, observed: Sequence[ObservedResource]) -> int:
    """Return how many resources have become different."""
    rows = [
        {
            "stack_id": str(one.stack_id),
            "id": str(one.id),
            "recorded_at": one.recorded_at.isoformat(),
            "state": one.state,
            "differences": one.differences,
            "reason": one.reason,
        }
        for one in observed
    ]
    found: int = await conn.fetchval(WRITE, rows)
    return found


async def finish(conn: Connection, finished: Sequence[FinishedObservation]) -> None:
    whole = [one for one in finished if one.claimed.resources is None]
    reported = [one for one in finished if one.claimed.resources is not None]
    if whole:
        await conn.execute(
            FINISH,
            *_claims([one.claimed for one in whole]),
            [one.next_in for one in whole],
            [one.observable for one in whole],
            [one.not_observable for one in whole],
        )
    if reported:
        claims = _claims([one.claimed for one in reported])
        await conn.execute(FINISH_REPORTED, *claims, [one.next_in for one in reported])


async def release(
    conn: Connection, claimed: Sequence[ClaimedStack], until_next: timedelta | None
) -> None:
    """End claims without an observation. until_next: None: the next one is requested."""
    await conn.execute(RELEASE, *_claims(claimed), until_next)


async def forget(conn: Connection, claimed: Sequence[ClaimedStack]) -> None:
    """End the observations of deleted stacks."""
    await conn.execute(FORGET, *_claims(claimed))


def _claims(claimed: Sequence[ClaimedStack]) -> tuple[list[UUID], list[int]]:
    return [one.stack_id for one in claimed], [one.claim for one in claimed]


async def read_status(conn: Connection, stack_id: UUID) -> ObservationStatus:
    row = await conn.fetchrow(READ_SCHEDULE, stack_id)
    return ObservationStatus(**row) if row else ObservationStatus(None, False, 0, 0, None)


async def read_section(conn: Connection, stack_id: UUID) -> Json:
    """The section `convergence` in the environment of a stack's root stack, or None."""
    return await conn.fetchval(READ_SECTION, stack_id)


async def mark_drifted(
    conn: Connection,
    stack_id: UUID,
    repaired_as: Mapping[ObservedState, ResourceAction],
    names: Sequence[str] | None = None,
    resources: Sequence[UUID] | None = None,
) -> int:
    """Mark the drifted resources of a stack and its nested stacks as failed, so that the next
    update repairs them; return their number. The caller has locked these stacks.

    repaired_as: the action that a resource gets, by observed state. names: of resources of the
    stack; those of the nested stacks of others are left out, too. None: all. resources: only these;
    None: all.
    """
    states, actions = list(repaired_as), list(repaired_as.values())
    marked: int = await conn.fetchval(MARK_DRIFTED, stack_id, states, actions, names, resources)
    return marked


async def read_drift(conn: Connection, stack_id: UUID) -> list[DriftedResource]:
    return [DriftedResource(**row) for row in await conn.fetch(READ_DRIFT, stack_id)]


async def read_unreported(conn: Connection, tolerated: Mapping[UUID, timedelta]) -> list[UUID]:
    """The stacks with drift or its end to report. tolerated: how long drift must last, by stack."""
    rows = await conn.fetch(UNREPORTED, [*tolerated], [*tolerated.values()])
    return [row["stack_id"] for row in rows]


async def report(conn: Connection, stack_id: UUID, tolerate: timedelta) -> None:
    """Record events of new, changed and resolved drift. The caller has locked the stack."""
    await conn.execute(REPORT, stack_id, tolerate, ObservedState.PRESENT)


async def read_repairable(
    conn: Connection, root_ids: Sequence[UUID], states: Sequence[ObservedState]
) -> list[RepairableStack]:
    """Root stacks with reported drift in these states, also of their nested stacks."""
    return [RepairableStack(**row) for row in await conn.fetch(REPAIRABLE, root_ids, states)]


async def count_repairs(conn: Connection, stack_id: UUID, by: Principal) -> int:
    """The updates that a part of the engine has started within a day."""
    count: int = await conn.fetchval(COUNT_REPAIRS, stack_id, by.id)
    return count


async def read_tree(conn: Connection, root_id: UUID) -> list[UUID]:
    """A root stack and its nested stacks."""
    return [row["id"] for row in await conn.fetch(READ_TREE, root_id)]


async def record_unrepaired(
    conn: Connection,
    stack_ids: Sequence[UUID],
    reason: str,
    resources: Sequence[UUID] | None = None,
    *,
    external: bool = False,
) -> None:
    """Record once for each reason that reported drift is not repaired. resources: only of these;
    None: of all. external: of resources that the stacks do not own; else of the others. The caller
    has locked the stacks."""
    await conn.execute(RECORD_UNREPAIRED, stack_ids, reason, external, resources)
