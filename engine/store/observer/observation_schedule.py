"""When stacks are observed: requests, reported changes, intervals, and claims of the observer."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from engine.plan.convergence import merge_sections
from engine.store.connection import Connection
from engine.store.observer.observations import IS_DRIFT, STACK_OBSERVED_AT
from engine.words import Json

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
       set requested_at = clock_timestamp(),  -- later than a claim for which this has waited
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
#: A part of the next two statements: makes the stacks of `changed` due.
_DUE = """
due as (
    insert into observation_schedule as q (stack_id, project, next_at, reported, reported_at)
    select stack_id, project, '1970-01-01 00:00:01+00', ids, clock_timestamp() from changed
     order by stack_id
    on conflict (stack_id) do update
       set reported = array(select unnest(q.reported) union select unnest(excluded.reported)),
           reported_at = clock_timestamp(),  -- later than a claim for which this has waited
           resume_at = case when q.claimed_at is null and q.next_at > excluded.next_at
                            then q.next_at else q.resume_at end,
           next_at = case when q.claimed_at is null
                          then least(q.next_at, excluded.next_at) else q.next_at end
    returning stack_id
)
"""
#: Makes resources whose change was reported due, unless their stack is observed now. $1: the
#: project; null: any. $2, $3: their physical IDs and types; null: any type. Found by the start of
#: the ID, because an index entry is limited. A physical ID is unique for one endpoint only, so that
#: resources of other stacks, projects and services can have the same. A resource whose operation
#: waits for the object (`completion`) is left out, because its recorded state is not certain.
#: Returns the number of resources, of stacks, and of IDs that no resource and no waiting operation
#: of the project has.
REPORT_CHANGES = f"""
with wanted as materialized (
    select distinct w.physical_id, w.type from unnest($2::text[], $3::text[]) w (physical_id, type)
), found as materialized (
    select w.physical_id, s.project, r.stack_id, r.id, r.replaced_by
      from wanted w
     cross join lateral (select stack_id, id, type, replaced_by from resource
                          where left(physical_id, 200) = left(w.physical_id, 200)
                            and physical_id = w.physical_id offset 0) r
     cross join lateral (select project from stack
                          where id = r.stack_id and project = coalesce($1, project)
                            and deleted_at is null offset 0) s
     where (w.type is null or r.type = w.type)
       and not exists (
           select from completion c
             join node n on n.stack_id = c.stack_id and n.operation_key = c.operation_key
            where c.object_id = w.physical_id and c.stack_id = r.stack_id and n.resource_id = r.id
              and c.result is null and n.wake_at is not null and n.phase = 'execute')
), changed as materialized (
    select stack_id, project, array_agg(distinct id) as ids from found where replaced_by is null
     group by stack_id, project
), {_DUE.strip()}, notified as (
    select pg_notify('headgate_observe', '') from due limit 1
)
select (select coalesce(sum(cardinality(ids)), 0)::integer from changed) as resources,
       (select count(*)::integer from due) as stacks,
       (select count(distinct w.physical_id)::integer from wanted w
         where not exists (select from found f where f.physical_id = w.physical_id)
           and not exists (select from completion c
                             join completion_request q on q.id = c.request_id
                            where c.object_id = w.physical_id
                              and q.project = coalesce($1, q.project)
                           offset 0)) as unknown,
       (select count(*) from notified) as notified
"""  # noqa: S608 - of constants
#: Makes resources due, as changes that were reported. $1: [{stack_id, ids}].
REPORT_RESOURCES = f"""
with changed as materialized (
    select d.stack_id, s.project, d.ids
      from jsonb_to_recordset($1) d (stack_id uuid, ids uuid[])
     cross join lateral (
           select project from stack
            where id = d.stack_id and deleted_at is null offset 0) s
), {_DUE.strip()}
select pg_notify('headgate_observe', '') from due limit 1
"""  # noqa: S608 - of constants
#: Of one project: one requested observation, or several of reported changes, or several that
#: policies have scheduled, also those that may be early, or several of resources that were left
#: out. Projects in the order of their earliest one. The limit is that of the rows that are locked:
#: another process that claims at the same time gets as many other ones, not the rest of these.
#: $1: how many. $2: the lease. $3: projects to leave out. $4: projects of which only a requested
#: observation may be claimed. $5: projects of which reported changes follow what else is due.
CLAIM = """
with recursive turn as (
    select (select min(project) from observation_schedule where next_at is not null) as project
    union all
    select (select min(q.project) from observation_schedule q
             where q.next_at is not null and q.project > t.project)
      from turn t where t.project is not null
), first as materialized (
    select t.project, q.next_at, q.deferred from turn t
     cross join lateral (
         (select next_at, deferred is not null as deferred, next_at as rank, 1 as nth
            from observation_schedule
           where project = t.project
             and next_at <= case when t.project = any ($4) then timestamptz 'epoch'
                                 else 'infinity' end
           order by next_at limit 1)
         union all
         select next_at, deferred, '1970-01-01 00:00:01+00', 0
           from (select next_at, deferred is not null as deferred from observation_schedule
                  where project = t.project and next_at >= '1970-01-02'
                    and t.project = any ($5) and t.project <> all ($4)
                  order by next_at limit 1) x
          where next_at <= clock_timestamp()
          order by rank, nth limit 1) q
     where t.project <> all ($3) and q.next_at <= clock_timestamp()
     order by q.rank limit 1
), due as materialized (
    select q.stack_id, q.next_at,
           q.next_at = '1970-01-01 00:00:01+00' or q.next_at <> 'epoch' and q.reported is null
               as parts
      from first f
     cross join lateral (
         select d.stack_id, d.next_at, d.reported from observation_schedule d
          where d.stack_id = any (array(
                    select n.stack_id
                      from (select stack_id, next_at, early_at, deferred is not null as deferred
                              from observation_schedule
                             where project = f.project and next_at >= f.next_at
                             order by next_at limit 4 * $1) n
                     where least(n.next_at, n.early_at) <= clock_timestamp()
                       and (n.deferred = f.deferred or f.next_at < '1970-01-02')
                       and (n.next_at = f.next_at or f.next_at <> '1970-01-01 00:00:01+00')
                     order by n.next_at
                     limit case when f.next_at = 'epoch' then $1 else 4 * $1 end))
            and least(d.next_at, d.early_at) <= clock_timestamp()
          order by d.next_at
          limit case when f.next_at = 'epoch' then 1 else $1 end
            for update skip locked) q
), claimed as (
    update observation_schedule q
       set claim = q.claim + 1, claimed_at = clock_timestamp(), early_at = null,
           next_at = clock_timestamp() + $2,
           deferred = case when d.parts then q.deferred end,
           deferred_since = case when d.parts then q.deferred_since end
      from due d where q.stack_id = d.stack_id
    returning q.stack_id, q.claim, q.claimed_at, q.project, q.observed_at,
              q.drifted_at,
              coalesce(q.requested_at > coalesce(q.observed_at, '-infinity'), false) as requested,
              q.reported is not null or q.deferred is not null and q.deferred_since is null
                  as reported,
              case when d.next_at = '1970-01-01 00:00:01+00' then q.reported
                   else q.deferred end as resources,
              d.next_at <> '1970-01-01 00:00:01+00' and q.deferred is not null as deferred,
              d.next_at <> '1970-01-01 00:00:01+00' and q.deferred_since is not null as rest
)
select c.stack_id, c.claim, c.claimed_at, c.project, c.requested, c.reported, c.resources,
       c.deferred, c.rest,
       exists (select from observation b where b.stack_id = c.stack_id) as differs,
       c.observed_at, c.drifted_at, s.changed_at, s.name, s.path,
       coalesce(s.region, '') as region, coalesce(s.root_id, s.id) as root_id,
       v.template -> 'convergence' as by_template,
       v.environment -> 'convergence' as by_environment
  from claimed c
  left join stack s on s.id = c.stack_id and s.deleted_at is null
  left join stack o on o.id = coalesce(s.root_id, s.id)
  left join template v on v.stack_id = o.id and v.version = o.version
 order by c.stack_id
"""
#: $1, $2: stacks and their claims. $3: the lease. Returns those whose claim holds, and the time.
RENEW = """
update observation_schedule q set next_at = clock_timestamp() + $3
  from unnest($1::uuid[], $2::integer[]) c (stack_id, claim)
 where q.stack_id = c.stack_id and q.claim = c.claim and q.claimed_at is not null
returning q.stack_id, clock_timestamp() as now
"""
#: As `RENEW`, without the rows that a transaction has locked: it renews or ends their claims.
RENEW_UNLOCKED = """
with unlocked as materialized (
    select q.stack_id from unnest($1::uuid[], $2::integer[]) c (stack_id, claim)
      join observation_schedule q on q.stack_id = c.stack_id and q.claim = c.claim
     where q.claimed_at is not null
       for update of q skip locked
)
update observation_schedule q set next_at = clock_timestamp() + $3
  from unlocked u where q.stack_id = u.stack_id
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
#: Ends observations unless another process has claimed their stack since. $1 to $5: stacks, claims,
#: times until the next observation (null: none), observable resources, and not observable ones
#: (null: as before). $6: whether a provider was asked.
#: Also ends the observations of resources that are gone; their drift has ended, as a repair that
#: replaces a resource ends it. Reported drift counts only if the stack still has a resource of that
#: name. Without a report, the name is gone too: only the nodes of past traversals have it, and a
#: search for it there would read whole graphs. If no repair waits any more, forgets since when one
#: has waited (see `waiting_repairs`).
FINISH = f"""
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
           observed_at = coalesce(q.deferred_since, q.claimed_at), claimed_at = null,
           polled_at = case when e.polled then coalesce(q.deferred_since, q.claimed_at)
                           else coalesce(q.polled_at, q.observed_at, '-infinity') end,
           deferred = null, deferred_since = null,
           drifted_at = case when exists (
               select from observation b
                where b.stack_id = q.stack_id and b.resolved_at is null and {IS_DRIFT}
                  and not exists (select from resource r
                                   where r.stack_id = b.stack_id and r.id = b.resource_id
                                     and r.replaced_by is null)
                  and (b.reported is null
                       or exists (select from resource r
                                   where r.stack_id = b.stack_id
                                     and r.name = b.reported ->> 'name'
                                     and r.replaced_by is null))
           ) then clock_timestamp() else q.drifted_at end,
           repair_waits_at = case when q.repair_root is not null then q.repair_waits_at end,
           observable = coalesce(e.observable, q.observable),
           not_observable = coalesce(e.not_observable, q.not_observable)
      from unnest($1::uuid[], $2::integer[], $3::interval[], $4::integer[], $5::integer[],
                  $6::boolean[]) e (stack_id, claim, next_in, observable, not_observable, polled)
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
"""  # noqa: S608 - of constants
#: Ends observations of reported changes. $1 to $3: stacks, claims, and intervals (null: none). $4:
#: whether their resources had been left out before. The schedule stays, unless the interval has
#: become shorter.
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
       deferred = case when not e.deferred then q.deferred end,
       repair_waits_at = case when q.repair_root is not null then q.repair_waits_at end,
       claimed_at = null
  from unnest($1::uuid[], $2::integer[], $3::interval[], $4::boolean[])
       e (stack_id, claim, next_in, deferred)
 where q.stack_id = e.stack_id and q.claim = e.claim and q.claimed_at is not null
"""
#: Ends observations that have left out resources, which are observed alone later. $1: [{stack_id,
#: claim, seconds: until then, resources, reason, whole: all of the stack was to be observed, rest:
#: what such an observation had left out, reported: resources that were reported now, observable,
#: not_observable: null: as before, polled: a provider was asked}].
DEFER = """
update observation_schedule q
   set next_at = case when q.requested_at > q.claimed_at then 'epoch'
                      when q.reported_at > q.claimed_at then '1970-01-01 00:00:01+00'
                      else clock_timestamp() + make_interval(secs => d.seconds) end,
       resume_at = case when q.reported_at > q.claimed_at
                        then clock_timestamp() + make_interval(secs => d.seconds)
                        else q.resume_at end,
       reported = case when q.reported_at > q.claimed_at then q.reported end,
       deferred = case when d.reported then array(select unnest(q.deferred)
                                                   union select unnest(d.resources))
                       else d.resources end,
       deferred_since = case when d.whole then q.claimed_at else q.deferred_since end,
       polled_at = case when d.whole and d.polled then q.claimed_at
                       when d.whole then coalesce(q.polled_at, q.observed_at, '-infinity')
                       when d.rest and d.polled then q.deferred_since
                       else q.polled_at end,
       deferred_reason = d.reason, early_at = null, claimed_at = null,
       observable = coalesce(d.observable, q.observable),
       not_observable = coalesce(d.not_observable, q.not_observable)
  from jsonb_to_recordset($1) d (stack_id uuid, claim integer, seconds double precision,
                                 resources uuid[], reason text, reported boolean, whole boolean,
                                 rest boolean, observable integer, not_observable integer,
                                 polled boolean)
 where q.stack_id = d.stack_id and q.claim = d.claim and q.claimed_at is not null
   and q.stack_id = any (array(select (x ->> 'stack_id')::uuid from jsonb_array_elements($1) x))
"""
#: Ends claims without an observation. $3: until the next one; null: when one is requested. $4: why,
#: for resources that wait since an earlier observation has left them out; empty: as before.
RELEASE = """
update observation_schedule q
   set next_at = case when q.requested_at > q.claimed_at then 'epoch'
                      when q.reported_at > q.claimed_at then '1970-01-01 00:00:01+00'
                      else clock_timestamp() + $3 end, claimed_at = null,
       deferred = case when $3::interval is not null then q.deferred end,
       deferred_reason = case $4 when '' then q.deferred_reason else $4 end
  from unnest($1::uuid[], $2::integer[]) c (stack_id, claim)
 where q.stack_id = c.stack_id and q.claim = c.claim and q.claimed_at is not null
"""
FORGET = """
delete from observation_schedule q using unnest($1::uuid[], $2::integer[]) c (stack_id, claim)
 where q.stack_id = c.stack_id and q.claim = c.claim and q.claimed_at is not null
"""
#: Of a stack and its nested stacks. due: an observation that was requested, or of a reported
#: change, has not ended. requested: one that was requested; reports do not delay it. starting: one
#: runs, or its time has come.
READ_SCHEDULE = f"""
with recursive tree (id) as (
    select id from stack where id = $1
    union all
    select c.id from tree t
     cross join lateral (select id from stack
                          where parent_id = t.id and deleted_at is null offset 0) c
)
select case when count(q.shown_at) = count(*) then min(q.shown_at) end as observed_at,
       coalesce(bool_or(q.reported is not null
                        or q.deferred is not null and q.deferred_since is null
                        or q.requested_at > coalesce(q.observed_at, '-infinity')), false) as due,
       coalesce(bool_or(q.requested_at > coalesce(q.observed_at, '-infinity')), false)
           as requested,
       coalesce(sum(q.observable), 0)::integer as observable,
       coalesce(sum(q.not_observable), 0)::integer as not_observable,
       min(q.next_at) filter (where q.claimed_at is null and q.next_at > '1970-01-02') as next_at,
       coalesce(bool_or(q.claimed_at is not null or q.next_at <= clock_timestamp()), false)
           as starting
  from tree t
  left join lateral (select q.*, {STACK_OBSERVED_AT} as shown_at from observation_schedule q
                      where q.stack_id = t.id offset 0) q on true
"""  # noqa: S608 - of constants
#: The sections of the template and the environment of a stack's root stack.
READ_SECTION = """
select v.template -> 'convergence' as by_template, v.environment -> 'convergence' as by_environment
  from stack s join stack o on o.id = coalesce(s.root_id, s.id)
  join template v on v.stack_id = o.id and v.version = o.version
 where s.id = $1
"""
#: Before every ID.
FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class ClaimedStack:
    """A stack to observe. name: None: it was deleted; then root_id is None, too. requested: not by
    its policy alone. reported: changes were reported. resources: those alone; None: all.
    deferred: an observation has left them out; rest: one of the whole stack. differs: a resource
    differed at the last observation. observed_at: start of that; None: there was none. drifted_at:
    when drift was last found or ended; None: never. changed_at: by a request. path: from the root
    stack. region: `Call.region`. section: `convergence` of the root's template and environment.
    """

    stack_id: UUID
    claim: int
    claimed_at: datetime
    project: str
    requested: bool
    reported: bool
    resources: Sequence[UUID] | None
    deferred: bool
    rest: bool
    differs: bool
    observed_at: datetime | None
    drifted_at: datetime | None
    changed_at: datetime | None
    name: str | None
    path: str | None
    region: str
    root_id: UUID | None
    section: Json

    @property
    def of_report(self) -> bool:
        """Whether reported changes alone are observed."""
        return self.resources is not None and not self.deferred


@dataclass(frozen=True, slots=True)
class ObservationStatus:
    """Of a stack and its nested stacks. observed_at: start of the oldest of their last
    observations that asked a provider; None: one was never observed. due: an observation that was
    requested, or of a reported change, has not ended. requested: one that was requested has not.
    observable, not_observable: number of resources. next_at: when one is scheduled next. starting:
    the observation of one runs, or its time has come."""

    observed_at: datetime | None
    due: bool
    requested: bool
    observable: int
    not_observable: int
    next_at: datetime | None
    starting: bool = False


@dataclass(frozen=True, slots=True)
class ReportedChanges:
    """Number of resources and stacks that will be observed, and of unknown physical IDs."""

    resources: int
    stacks: int
    unknown: int


@dataclass(frozen=True, slots=True)
class FinishedObservation:
    """next_in: until the next one; None: it is requested. observable, not_observable: number of
    resources. polled: a provider was asked, or there was nothing to ask about."""

    claimed: ClaimedStack
    next_in: timedelta | None
    observable: int
    not_observable: int
    polled: bool = True


@dataclass(frozen=True, slots=True)
class DeferredObservation:
    """An observation that has left out resources. next_in: until they are observed. observable:
    number of resources, with these. polled: see `FinishedObservation`."""

    claimed: ClaimedStack
    resources: Sequence[UUID]
    next_in: timedelta
    reason: str
    observable: int
    not_observable: int
    polled: bool = True


async def request(conn: Connection, stack_id: UUID) -> None:
    """Make the observation of a stack and its nested stacks due."""
    await conn.execute(REQUEST, stack_id)


async def report_changes(
    conn: Connection, project: str | None, changes: Sequence[tuple[str, str | None]]
) -> ReportedChanges:
    """Make resources of a project (None: of all) due. changes: physical IDs and types (None:
    any)."""
    ids, types = [one for one, _ in changes], [type_ for _, type_ in changes]
    row = await conn.fetchrow(REPORT_CHANGES, project, ids, types)
    if row is None:
        raise LookupError("the statement returns one row")
    return ReportedChanges(row["resources"], row["stacks"], row["unknown"])


async def report_resources(
    conn: Connection, resources: Sequence[tuple[UUID, Sequence[UUID]]]
) -> None:
    """Make resources due: (ID of the stack, IDs of its resources)."""
    rows = [
        {"stack_id": str(stack_id), "ids": [str(one) for one in ids]} for stack_id, ids in resources
    ]
    await conn.execute(REPORT_RESOURCES, rows)


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
    conn: Connection,
    limit: int,
    lease: timedelta,
    except_projects: Sequence[str] = (),
    *,
    urgent_only: Sequence[str] = (),
    reports_last: Sequence[str] = (),
) -> list[ClaimedStack]:
    """Claim stacks of one project, by ID: one that was requested, or several of policies. In a
    transaction by index: without statistics, a plan could read and sort all stacks of a project.
    urgent_only: projects of which only a requested observation may be claimed. reports_last: those
    of which other stacks precede reported changes."""
    rows = await conn.fetch(CLAIM, limit, lease, except_projects, urgent_only, reports_last)
    return [_claimed_stack(**row) for row in rows]


def _claimed_stack(by_template: Json, by_environment: Json, **columns: Any) -> ClaimedStack:
    return ClaimedStack(**columns, section=merge_sections(by_template, by_environment))


async def renew(
    conn: Connection, claimed: Sequence[ClaimedStack], lease: timedelta
) -> dict[UUID, datetime]:
    """Return the stacks whose claim still holds, with the database's time."""
    rows = await conn.fetch(RENEW, *_claims(claimed), lease)
    return {row["stack_id"]: row["now"] for row in rows}


async def renew_unlocked(
    conn: Connection, claimed: Sequence[ClaimedStack], lease: timedelta
) -> None:
    """Renew the claims that still hold and that no other transaction changes now."""
    await conn.execute(RENEW_UNLOCKED, *_claims(claimed), lease)


async def until_next(conn: Connection, except_projects: Sequence[str] = ()) -> timedelta | None:
    """The time until the next observation is due; None: none is."""
    due: timedelta | None = await conn.fetchval(NEXT_DUE, except_projects)
    return due


async def finish(conn: Connection, finished: Sequence[FinishedObservation]) -> None:
    whole = [one for one in finished if one.claimed.resources is None or one.claimed.rest]
    reported = [one for one in finished if one.claimed.resources is not None]
    reported = [one for one in reported if not one.claimed.rest]
    if whole:
        await conn.execute(
            FINISH,
            *_claims([one.claimed for one in whole]),
            [one.next_in for one in whole],
            [None if one.claimed.rest else one.observable for one in whole],
            [None if one.claimed.rest else one.not_observable for one in whole],
            [one.polled for one in whole],
        )
    if reported:
        claims = _claims([one.claimed for one in reported])
        intervals = [one.next_in for one in reported]
        deferred = [one.claimed.deferred for one in reported]
        await conn.execute(FINISH_REPORTED, *claims, intervals, deferred)


async def defer(conn: Connection, deferred: Sequence[DeferredObservation]) -> None:
    """End observations that have left out resources, which are observed alone later."""
    await conn.execute(DEFER, [_deferred_row(one) for one in deferred])


def _deferred_row(one: DeferredObservation) -> dict[str, Json]:
    claimed = one.claimed
    whole = claimed.resources is None
    return {
        "stack_id": str(claimed.stack_id),
        "claim": claimed.claim,
        "seconds": one.next_in.total_seconds(),
        "resources": [str(resource_id) for resource_id in one.resources],
        "reason": one.reason,
        "reported": not whole and not claimed.deferred,
        "whole": whole,
        "rest": claimed.rest,
        "polled": one.polled,
        "observable": one.observable if whole else None,
        "not_observable": one.not_observable if whole else None,
    }


async def release(
    conn: Connection,
    claimed: Sequence[ClaimedStack],
    until_next: timedelta | None,
    reason: str = "",
) -> None:
    """End claims without an observation. until_next: None: the next one is requested. reason: why,
    as in `DeferredObservation`; "": the observation was only interrupted."""
    await conn.execute(RELEASE, *_claims(claimed), until_next, reason)


async def forget(conn: Connection, claimed: Sequence[ClaimedStack]) -> None:
    """End the observations of deleted stacks."""
    await conn.execute(FORGET, *_claims(claimed))


def _claims(claimed: Sequence[ClaimedStack]) -> tuple[list[UUID], list[int]]:
    return [one.stack_id for one in claimed], [one.claim for one in claimed]


async def read_status(conn: Connection, stack_id: UUID) -> ObservationStatus:
    row = await conn.fetchrow(READ_SCHEDULE, stack_id)
    return ObservationStatus(**row) if row else ObservationStatus(None, False, False, 0, 0, None)


async def read_section(conn: Connection, stack_id: UUID) -> Json:
    """The section `convergence` of a stack's root stack, or None."""
    row = await conn.fetchrow(READ_SECTION, stack_id)
    return merge_sections(row["by_template"], row["by_environment"]) if row else None
