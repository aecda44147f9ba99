"""The event sinks that environments name: subscriptions that come and go with them.

A sink hears of its stack from the event that begins a change to an environment that names it, up to
the one that begins a change to an environment that does not. So a rollback tells the sinks of the
update that it failed, and then those of the version before. What stacks inside inherit of the
environment around them names no sinks anew: those of the outermost stack hear of all of them.
"""

import base64
import secrets
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid5

import orjson

from channels.selection import Traits
from channels.store import subscriptions
from channels.store.records import SubscriptionRecord
from channels.store.subscription_events import Kind, SubscriptionEvent, record_subscription_events
from engine.store.connection import Connection
from engine.store.stack_locks import lock_stacks
from engine.words import Json

READ_BEGINNINGS = """
select e.stack_id, e.sequence, w.project, t.environment -> 'event_sinks' as sinks,
       t.requested_by as owner, t.requested_by_id as owner_id, t.requested_by_roles as owner_roles
  from unnest($1::uuid[], $2::text[], $3::bigint[], $4::bigint[]) w (stack_id, project, first, last)
  join event e on e.stack_id = w.stack_id and e.sequence between w.first and w.last
   and e.type like 'headgate.stack.%.started'
  join stack s on s.id = e.stack_id and s.root_id is null
  join template t on t.stack_id = e.stack_id and t.version = (e.data ->> 'version')::integer
 order by e.stack_id, e.sequence
"""
OF_STACKS = """
select id, project, channel, target, events, stacks, resources, types, points, tags, ordered, state,
       reason, origin, stack_id, nested, named_until, failures, created_at,
       name, owner
  from subscription where stack_id = any ($1::uuid[]) order by id
"""
#: A sink keeps its first owner, also where a later version names it: keeping or restoring an
#: environment does not make you responsible for the sinks that others wrote into it.
NAME = """
insert into subscription (id, project, channel, target, events, stacks, resources, types, points,
                          ordered, secrets, state, origin, tags, stack_id, owner, owner_id,
                          owner_roles)
select n.id, n.project, n.channel, n.target, n.events, '{}', n.resources, n.types, n.points,
       n.ordered,
       jsonb_build_array(n.secret), 'enabled', 'environment', '{}', n.stack_id, n.owner,
       n.owner_id, n.owner_roles
  from jsonb_to_recordset($1) as n (id uuid, project text, stack_id uuid, channel text, target text,
       events text[], resources text[], types text[], points text[], ordered boolean,
       secret jsonb, owner text, owner_id text, owner_roles text[])
on conflict (id) do update
   set state = 'enabled', reason = '', failures = 0, named_until = null
"""
DROP = """
update subscription s
   set named_until = n.sequence, reason = 'the environment of its stack names it no more'
  from unnest($1::uuid[], $2::bigint[]) n (id, sequence)
 where s.id = n.id
"""

#: Ids of sinks are made from their stack and what they say.
_SINKS = UUID("0f3c1d52-6f0b-4c8e-9b57-5d0a4f6f2c11")


@dataclass(frozen=True, slots=True)
class Named:
    """Which sinks are named at which event. changes: by stack, (number of the event that begins a
    change, ids named from there on); the first is what was before."""

    changes: Mapping[UUID, Sequence[tuple[int, Set[UUID]]]] = field(default_factory=dict)

    def hears(self, one: SubscriptionRecord, traits: Traits, sequence: int) -> bool:
        """Whether a subscription is there to hear an event; all but sinks always are.

        Events inside are in no order with those around: they are heard if a sink is named before
        or after any change that is published with them.
        """
        if one.selection.stack_id is None:
            return True
        changes = self.changes.get(traits.root_id or traits.stack_id)
        if changes is not None and traits.root_id is not None:
            return any(one.id in names for _, names in changes)
        if changes is None and traits.root_id is not None:
            return one.named_until is None
        if changes is None:
            return one.named_until is None or sequence < one.named_until
        return one.id in [names for number, names in changes if number <= sequence][-1]


async def follow_sinks(conn: Connection, rows: Sequence[Any]) -> Named:
    """Let the sinks follow the changes that began. rows: of the outbox, to be published now.

    When there is anything to do, all stacks of the rows are locked.
    """
    columns = ("stack_id", "project", "first", "last")
    beginnings = await conn.fetch(
        READ_BEGINNINGS, *([row[name] for row in rows] for name in columns)
    )
    if not beginnings:
        return Named()
    there = await _of_stacks(conn, [row["stack_id"] for row in beginnings])
    wanted = {one["id"]: one for row in reversed(beginnings) for one in _sinks(row)}
    if not wanted and not there:
        return Named()
    changes: dict[UUID, list[tuple[int, Set[UUID]]]] = {}
    for row in beginnings:
        stack_id = row["stack_id"]
        before = {one.id for one in there if _is_named(one) and one.selection.stack_id == stack_id}
        names = {one["id"] for one in _sinks(row)}
        changes.setdefault(stack_id, [(0, before)]).append((row["sequence"], names))
    await lock_stacks(conn, {row["stack_id"] for row in rows})
    await _follow(conn, there, wanted, changes)
    return Named(changes)


async def _follow(
    conn: Connection,
    there: Sequence[SubscriptionRecord],
    wanted: Mapping[UUID, dict[str, Json]],
    changes: Mapping[UUID, Sequence[tuple[int, Set[UUID]]]],
) -> None:
    named = {one.id for one in there if _is_named(one)}
    well = {one.id for one in there if _is_named(one) and one.state == "enabled"}
    dropped = dict(_dropped(changes.values()))
    anew = [one | {"secret": subscriptions.sealed_secret(_new_secret(), one["project"], name)}
            for name, one in sorted(wanted.items()) if name not in well]  # fmt: skip
    await conn.execute(NAME, anew)
    await conn.execute(DROP, list(dropped), list(dropped.values()))
    await conn.execute(subscriptions.WAKE)
    now = await _of_stacks(conn, sorted(changes))
    by = "environment"
    told = [SubscriptionEvent(Kind.ENABLED, one, "An environment names it", by)
            for one in now if one.id in wanted and one.id not in named]  # fmt: skip
    told += [
        SubscriptionEvent(Kind.DELETED, one, one.reason, by) for one in now if one.id in dropped
    ]
    await record_subscription_events(conn, told)


def _new_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def _dropped(
    changes: Iterable[Sequence[tuple[int, Set[UUID]]]],
) -> Iterable[tuple[UUID, int]]:
    """Sinks that the last of a stack's changes names no more, and the event that left them out."""
    for walk in changes:
        last = walk[-1][1]
        for (_, names), (number, after) in pairwise(walk):
            yield from ((name, number) for name in names - after - last)


def _is_named(one: SubscriptionRecord) -> bool:
    return one.named_until is None


async def _of_stacks(conn: Connection, stacks: Sequence[UUID]) -> list[SubscriptionRecord]:
    return [subscriptions.record_of(row) for row in await conn.fetch(OF_STACKS, stacks)]


def _sinks(row: Any) -> list[dict[str, Json]]:
    """The sinks of a beginning, as NAME takes them; ids by what they come to, however written."""
    said = [
        {
            "channel": sink["type"],
            "target": sink["target"],
            "events": _listed(sink.get("events")),
            "resources": _listed(sink.get("resources")),
            "types": _listed(sink.get("resource_types")),
            "points": _listed(sink.get("points")),
            "ordered": sink.get("ordered", True),
        }
        for sink in row["sinks"] or []
    ]
    stack_id, project = row["stack_id"], row["project"]
    return [
        {
            "id": uuid5(_SINKS, f"{stack_id} {orjson.dumps(sink).decode()}"),
            "project": project,
            "stack_id": stack_id,
            "owner": row["owner"],
            "owner_id": row["owner_id"],
            "owner_roles": row["owner_roles"],
            **sink,
        }
        for sink in said
    ]


def _listed(globs: Json) -> list[str]:
    """One glob may stand without its list."""
    return [globs] if isinstance(globs, str) else list(globs or [])
