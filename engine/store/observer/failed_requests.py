"""Requests to providers that have failed while their endpoint works, which policies do not repeat
for a while. All processes share them."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from engine.store.connection import Connection
from engine.store.observer.provider_endpoints import NewFailure, StoredFailure

#: $1 to $4: projects, types, endpoints and requests. $5: for how long ended pauses count.
READ = """
select f.project, f.type, f.endpoint, f.request, f.failures, f.reason, f.public_reason,
       f.until - clock_timestamp() as remaining, f.until
  from unnest($1::text[], $2::text[], $3::text[], $4::text[]) e (project, type, endpoint, request)
 cross join lateral (select * from failed_request
                      where project = e.project and type = e.type and endpoint = e.endpoint
                        and request = e.request
                        and until > clock_timestamp() - $5::interval offset 0) f
"""
#: $1: [{project, type, endpoint, request, failures, seconds, reason, public_reason}]. Of processes
#: that fail at the same time, the first one counts. Also deletes pauses that ended $2 ago, and of
#: those that the projects had before all but the $3 that end last.
STORE = """
with given as materialized (
    select * from jsonb_to_recordset($1) d (project text, type text, endpoint text, request text,
                                            failures integer, seconds double precision,
                                            reason text, public_reason text)
), old as materialized (
    select project, type, endpoint, request from failed_request
     where until < clock_timestamp() - $2::interval order by until limit 1000
       for update skip locked
), further as materialized (
    select f.project, f.type, f.endpoint, f.request
      from (select distinct project from given) p
     cross join lateral (select project, type, endpoint, request from failed_request
                          where project = p.project order by until desc offset $3) o
      join failed_request f on f.project = o.project and f.type = o.type
                           and f.endpoint = o.endpoint and f.request = o.request
       for update of f skip locked
), deleted as (
    delete from failed_request f using (select * from old union select * from further) o
     where f.project = o.project and f.type = o.type and f.endpoint = o.endpoint
       and f.request = o.request
       and not exists (select from given d
                        where d.project = o.project and d.type = o.type
                          and d.endpoint = o.endpoint and d.request = o.request)
)
insert into failed_request as f (project, type, endpoint, request, failures, until, reason,
                                 public_reason)
select project, type, endpoint, request, failures,
       clock_timestamp() + make_interval(secs => seconds), reason, public_reason
  from given order by project, type, endpoint, request
on conflict (project, type, endpoint, request) do update
   set failures = excluded.failures, until = excluded.until, reason = excluded.reason,
       public_reason = excluded.public_reason
 where f.failures < excluded.failures or f.until < clock_timestamp()
"""
#: $1 to $5: projects, types, endpoints and requests, and the ends of their pauses as they were
#: read. A pause that began later stays.
DELETE = """
with locked as materialized (
    select f.project, f.type, f.endpoint, f.request
      from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::timestamptz[])
           e (project, type, endpoint, request, until)
      join failed_request f on f.project = e.project and f.type = e.type
                           and f.endpoint = e.endpoint and f.request = e.request
                           and f.until = e.until
     order by 1, 2, 3, 4 for update of f
)
delete from failed_request f using locked e
 where f.project = e.project and f.type = e.type and f.endpoint = e.endpoint
   and f.request = e.request
"""
#: The project, the resource type, the endpoint, and the request or the stack.
RequestKey = tuple[str, str, str, str]


async def read(
    conn: Connection, requests: Sequence[RequestKey], remembered: timedelta
) -> dict[RequestKey, StoredFailure]:
    """Those that have failed. remembered: for how long after its pause a failure counts."""
    rows = await conn.fetch(READ, *_columns(requests), remembered)
    return {
        (row["project"], row["type"], row["endpoint"], row["request"]): StoredFailure.from_row(
            row, throttled=False
        )
        for row in rows
    }


async def store(
    conn: Connection,
    failures: Mapping[RequestKey, NewFailure],
    remembered: timedelta,
    limit: int,
) -> None:
    """remembered: for how long after its pause a failure counts. limit: of failures of a project,
    which new ones can exceed."""
    rows = [
        {
            "project": key[0],
            "type": key[1],
            "endpoint": key[2],
            "request": key[3],
            **one.as_row(),
        }
        for key, one in failures.items()
    ]
    await conn.execute(STORE, rows, remembered, limit)


async def delete(conn: Connection, requests: Mapping[RequestKey, datetime]) -> None:
    """requests: with the ends of their pauses as they were read."""
    keys = sorted(requests)
    await conn.execute(DELETE, *_columns(keys), [requests[key] for key in keys])


def _columns(requests: Sequence[RequestKey]) -> list[list[str]]:
    return [[one[column] for one in requests] for column in range(4)]
