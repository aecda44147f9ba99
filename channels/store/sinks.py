"""The event sinks that environments declare, stored as subscriptions.

A sink gets the events of its stack from the event that starts a change to an environment with the
sink, up to the one that starts a change to an environment without it. So in a rollback, the sinks
of the failed update get its failure, and the sinks of the previous version get the events after it.
Only the environment of the root stack declares sinks, which get the events of the whole stack tree.
"""

import base64
import secrets
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid5

import orjson

from channels.digest import stored_digest
from channels.quiet_hours import stored_quiet_hours
from channels.selection import Traits
from channels.store import subscriptions
from channels.store.records import OutboxRows, SubscriptionRecord
from channels.store.subscription_events import (
    SubscriptionEvent,
    SubscriptionEventKind,
    record_subscription_events,
)
from engine.errors import Invalid
from engine.store.connection import Connection
from engine.store.stacks.stack_locks import lock_stacks
from engine.words import Json

READ_STARTED = """
select e.stack_id, e.sequence, w.project, t.environment -> 'event_sinks' as sinks,
       t.requested_by as owner, t.requested_by_id as owner_id, t.requested_by_roles as owner_roles
  from unnest($1::uuid[], $2::text[], $3::bigint[], $4::bigint[]) w (stack_id, project, first, last)
 cross join lateral (
       select stack_id, sequence, data from event
        where stack_id = w.stack_id and sequence between w.first and w.last
          and type like 'headgate.stack.%.started' offset 0) e
 cross join lateral (
       select from stack where id = e.stack_id and root_id is null offset 0) s
 cross join lateral (
       select * from template
        where stack_id = e.stack_id and version = (e.data ->> 'version')::integer offset 0) t
 order by e.stack_id, e.sequence
"""
OF_STACKS = f"""
select {subscriptions.COLUMNS}
  from subscription where stack_id = any ($1::uuid[]) order by id
"""  # noqa: S608 - of constants
#: A sink keeps its first owner when a later version declares it: if you keep or restore an
#: environment, you do not become the owner of the sinks that others declared.
ENABLE = """
insert into subscription (id, project, channel, target, events, stacks, resources, types, points,
                          ordered, secrets, state, origin, tags, stack_id, owner, owner_id,
                          owner_roles, quiet_hours, digest)
select n.id, n.project, n.channel, n.target, n.events, '{}', n.resources, n.types, n.points,
       n.ordered,
       jsonb_build_array(n.secret), 'enabled', 'environment', '{}', n.stack_id, n.owner,
       n.owner_id, n.owner_roles, n.quiet_hours, n.digest
  from jsonb_to_recordset($1) as n (id uuid, project text, stack_id uuid, channel text, target text,
       events text[], resources text[], types text[], points text[], ordered boolean,
       secret jsonb, owner text, owner_id text, owner_roles text[], quiet_hours jsonb,
       digest jsonb)
on conflict (id) do update
   set state = 'enabled', reason = '', failures = 0, removed_at_sequence = null
"""
DROP = """
update subscription s
   set removed_at_sequence = n.sequence,
       reason = 'the environment of its stack no longer declares it'
  from unnest($1::uuid[], $2::bigint[]) n (id, sequence)
 where s.id = n.id
"""

#: The namespace of sink IDs, which are derived from the stack and the declaration.
_SINKS = UUID("0f3c1d52-6f0b-4c8e-9b57-5d0a4f6f2c11")


@dataclass(frozen=True, slots=True)
class SinkChanges:
    """The sinks that each event goes to. changes: by stack, (sequence number of the event that
    starts a change, IDs of the declared sinks from there on); the first entry is the state
    before."""

    changes: Mapping[UUID, Sequence[tuple[int, Set[UUID]]]] = field(default_factory=dict)

    def includes(self, subscription: SubscriptionRecord, traits: Traits, sequence: int) -> bool:
        """Whether a sink is declared at an event. True for subscriptions that are not sinks.

        The events of nested stacks have no order with those of the root stack: a sink gets them if
        it is declared before or after any change that is published with them.
        """
        if subscription.selection.stack_id is None:
            return True
        changes = self.changes.get(traits.root_id or traits.stack_id)
        if changes is not None and traits.root_id is not None:
            return any(subscription.id in names for _, names in changes)
        if changes is None and traits.root_id is not None:
            return subscription.removed_at_sequence is None
        if changes is None:
            return (
                subscription.removed_at_sequence is None
                or sequence < subscription.removed_at_sequence
            )
        return subscription.id in [names for number, names in changes if number <= sequence][-1]


async def apply_sinks(conn: Connection, rows: OutboxRows) -> SinkChanges:
    """Update the sinks for the changes that started. rows: in publication.

    Locks all stacks of the rows if sinks change.
    """
    started = await conn.fetch(READ_STARTED, rows.stacks, rows.projects, rows.first, rows.last)
    if not started:
        return SinkChanges()
    stored = await _of_stacks(conn, [row["stack_id"] for row in started])
    declared = {one["id"]: one for row in reversed(started) for one in _sinks(row)}
    if not declared and not stored:
        return SinkChanges()
    changes: dict[UUID, list[tuple[int, Set[UUID]]]] = {}
    for row in started:
        stack_id = row["stack_id"]
        before = {
            one.id for one in stored if _is_declared(one) and one.selection.stack_id == stack_id
        }
        names = {one["id"] for one in _sinks(row)}
        changes.setdefault(stack_id, [(0, before)]).append((row["sequence"], names))
    await lock_stacks(conn, {*rows.stacks})
    await _update(conn, stored, declared, changes)
    return SinkChanges(changes)


async def _update(
    conn: Connection,
    stored: Sequence[SubscriptionRecord],
    declared: Mapping[UUID, dict[str, Json]],
    changes: Mapping[UUID, Sequence[tuple[int, Set[UUID]]]],
) -> None:
    before_ids = {one.id for one in stored if _is_declared(one)}
    enabled = {one.id for one in stored if _is_declared(one) and one.state == "enabled"}
    dropped = dict(_find_dropped(changes.values()))
    new = [one | {"secret": subscriptions.encrypted_secret(_new_secret(), one["project"], name)}
            for name, one in sorted(declared.items()) if name not in enabled]  # fmt: skip
    await conn.execute(ENABLE, new)
    await conn.execute(DROP, list(dropped), list(dropped.values()))
    await conn.execute(subscriptions.WAKE)
    now = await _of_stacks(conn, sorted(changes))
    by = "environment"
    kind, why = SubscriptionEventKind.ENABLED, "An environment declares it"
    events = [SubscriptionEvent(kind, one, why, by)
            for one in now if one.id in declared and one.id not in before_ids]  # fmt: skip
    events += [
        SubscriptionEvent(SubscriptionEventKind.DELETED, one, one.reason, by)
        for one in now
        if one.id in dropped
    ]
    await record_subscription_events(conn, events)


def _new_secret() -> str:
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def _find_dropped(
    changes: Iterable[Sequence[tuple[int, Set[UUID]]]],
) -> Iterable[tuple[UUID, int]]:
    """Sinks that the last change of a stack does not declare, with the event that dropped them."""
    for history in changes:
        last = history[-1][1]
        for (_, names), (number, after) in pairwise(history):
            yield from ((name, number) for name in names - after - last)


def _is_declared(subscription: SubscriptionRecord) -> bool:
    return subscription.removed_at_sequence is None


async def _of_stacks(conn: Connection, stacks: Sequence[UUID]) -> list[SubscriptionRecord]:
    return [subscriptions.record_of(row) for row in await conn.fetch(OF_STACKS, stacks)]


def _sinks(row: Any) -> list[dict[str, Json]]:
    """The sinks of a started change, as arguments of ENABLE. Equal declarations have equal IDs,
    in any notation."""
    declared = [
        {
            "channel": sink["type"],
            "target": sink["target"],
            "events": _as_list(sink.get("events")),
            "resources": _as_list(sink.get("resources")),
            "types": _as_list(sink.get("resource_types")),
            "points": _as_list(sink.get("points")),
            "ordered": sink.get("ordered", _is_immediate(sink)),
            **_schedule(sink),
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
        for sink in declared
    ]


def _is_immediate(sink: Mapping[str, Json]) -> bool:
    return sink.get("quiet_hours") is None and sink.get("digest") is None


def _schedule(sink: Mapping[str, Json]) -> dict[str, Json]:
    """Quiet hours and digest as they are stored; without any, the IDs of sinks are those of earlier
    releases. If this system does not know their time zone, they stay as they are declared, and each
    delivery of this sink fails with that reason."""
    try:
        declared = {
            "quiet_hours": stored_quiet_hours(sink.get("quiet_hours")),
            "digest": stored_digest(sink.get("digest")),
        }
    except Invalid:
        return {name: sink[name] for name in ("quiet_hours", "digest") if sink.get(name)}
    return {name: one.as_section() for name, one in declared.items() if one is not None}


def _as_list(globs: Json) -> list[str]:
    """A single glob may be written without a list."""
    return [globs] if isinstance(globs, str) else list(globs or [])
