"""Creates, reads, changes and deletes subscriptions; each change records an event.

Called by the API, the outbox publisher and, for the subscriptions in the settings file, the start
of the program.
"""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from channels.quiet_hours import HELD
from channels.selection import EVERY_PROJECT, Selection
from channels.store.records import (
    NewSubscription,
    Origin,
    SubscriptionChange,
    SubscriptionRecord,
    SubscriptionState,
)
from channels.store.subscription_events import events_of_change, record_subscription_events
from engine.hooks.answer_rights import Automation
from engine.principal import Principal
from engine.store.connection import Connection
from engine.store.encryption.secret_values import Scope, Secret, decrypt, encrypted_members
from engine.store.maintenance.project_moves import find_left
from engine.words import Json

#: The columns of a `SubscriptionRecord`.
COLUMNS = """id, project, channel, target, events, stacks, resources, types, points, tags, ordered,
       state, reason, origin, stack_id, nested, removed_at_sequence, failures, created_at, name,
       owner, quiet_hours, digest"""
INSERT = f"""
insert into subscription (id, project, channel, target, events, stacks, resources, types, points,
                          ordered, secrets, state, origin, tags, stack_id, nested, name, owner,
                          owner_id, owner_roles, quiet_hours, digest)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, jsonb_build_array($11::jsonb), 'enabled',
        $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
returning {COLUMNS}
"""  # noqa: S608 - of constants
READ = f"""
select {COLUMNS}
  from subscription where project = $1 and id = $2
"""  # noqa: S608 - of constants
LIST = f"""
select {COLUMNS}
  from subscription
 where project = $1
   and ($2::uuid is null
        or (created_at, id) > (select created_at, id from subscription where id = $2))
   and (stack_id is null
        or exists (select 1 from stack k
                    where k.id = stack_id and k.deleted_at is null and removed_at_sequence is null)
        or exists (select 1 from delivery d
                    where d.subscription_id = subscription.id and d.state = 'pending'))
 order by created_at, id limit $3
"""  # noqa: S608 - of constants
IN_STATE = f"""
select {COLUMNS}
  from subscription where state = $3 and (project = any ($1::text[]) or project = $2)
 order by id
"""  # noqa: S608 - of constants
LOCK_ENABLED = """
select id from subscription where id = any ($1::uuid[]) and state = 'enabled' order by id
   for no key update
"""
CHANGE = f"""
update subscription
   set target = coalesce($3, target), events = coalesce($4, events),
       stacks = coalesce($5, stacks), resources = coalesce($6, resources),
       types = coalesce($7, types), points = coalesce($8, points),
       ordered = coalesce($9, ordered), tags = coalesce($11, tags), nested = coalesce($12, nested),
       state = coalesce($10, state),
       reason = case $10 when 'enabled' then '' when 'disabled' then 'disabled on request'
                         else reason end,
       failures = case when $10 = 'enabled' then 0 else failures end,
       owner = coalesce($13, owner), owner_id = coalesce($14, owner_id),
       owner_roles = coalesce($15, owner_roles),
       quiet_hours = case when $16 then $17 else quiet_hours end,
       digest = case when $18 then $19 else digest end
 where project = $1 and id = $2
returning {COLUMNS}
"""  # noqa: S608 - of constants
RELEASE_ALL = """
update delivery set next_at = clock_timestamp()
 where subscription_id = $1 and delivery_is_blocked(state, next_at)
"""
# $2: the reason of held deliveries, which the time of their end follows. Once it has passed, an
# attempt can be under way: that claim stays. An attempt of a released delivery has no reason.
RELEASE_HELD = """
update delivery set next_at = clock_timestamp(), error = null
 where subscription_id = any ($1::uuid[]) and state = 'pending' and next_at > clock_timestamp()
   and starts_with(error, $2)
   and substr(error, length($2) + 1) collate "C"
       > to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
"""
#: Those that wait for a digest in the future.
RELEASE_GATHERED = """
update delivery set next_at = clock_timestamp(), error = null, digest_at = null
 where subscription_id = any ($1::uuid[]) and state = 'pending'
   and digest_at > clock_timestamp() and next_at > clock_timestamp() and not digest_taken
"""
WAKE = "select pg_notify('headgate_delivery', '')"
LOCK_ONE = f"""
select {COLUMNS}
  from subscription where project = $1 and id = $2 for update
"""  # noqa: S608 - of constants
AUTOMATION = "select id, name, origin, owner, owner_id, owner_roles from subscription where id = $1"
FORGET_DELIVERIES = "delete from delivery where subscription_id = any ($1::uuid[])"
FORGET = "delete from subscription where id = any ($1::uuid[])"


#: For quotas: subscriptions that the project created with the API.
USED = """
select count(*)
  from (select id from subscription where project = $1 and origin = 'api' limit $2) s
"""


async def create(conn: Connection, new: NewSubscription, by: str) -> SubscriptionRecord:
    """by: the display name of the principal."""
    async with conn.transaction():
        created = record_of(await conn.fetchrow(INSERT, *columns_of(new)))
        await record_subscription_events(conn, events_of_change(None, created, by))
        return created


def columns_of(new: NewSubscription) -> tuple[Any, ...]:
    """The arguments of INSERT."""
    chosen = new.selection
    return (
        new.id, new.project, new.channel, new.target, list(chosen.events), list(chosen.stacks),
        list(chosen.resources), list(chosen.types), list(chosen.points), new.ordered,
        encrypted_secret(new.secret, new.project, new.id),
        new.origin, list(chosen.tags), chosen.stack_id, chosen.nested, new.name, new.owner.name,
        new.owner.id, list(new.owner.roles), new.quiet_hours, new.digest,
    )  # fmt: skip


async def get(conn: Connection, project: str, subscription_id: UUID) -> SubscriptionRecord | None:
    row = await conn.fetchrow(READ, project, subscription_id)
    return record_of(row) if row else None


async def list_page(
    conn: Connection, project: str, *, marker: UUID | None, limit: int
) -> list[SubscriptionRecord]:
    """In the order of their creation. marker: the last one of the previous page. Call it in
    `ReadDatabase.page`.

    Event sinks of deleted stacks, or that the environment no longer declares, are left out unless
    they have pending deliveries.
    """
    return [record_of(row) for row in await conn.fetch(LIST, project, marker, limit)]


async def update(
    conn: Connection, project: str, subscription_id: UUID, change: SubscriptionChange, by: str
) -> SubscriptionRecord | None:
    """None: the project has no such subscription."""
    async with conn.transaction():
        before = await lock(conn, project, subscription_id)
        if before is None:
            return None
        row = await conn.fetchrow(
            CHANGE, project, subscription_id, change.target, change.events, change.stacks,
            change.resources, change.types, change.points, change.ordered, change.state,
            change.tags, change.nested, *_owner(change.owner),
            change.sets_quiet_hours, change.quiet_hours, change.sets_digest, change.digest,
        )  # fmt: skip
        if change.ordered is False:
            await conn.execute(RELEASE_ALL, subscription_id)
        if change.sets_quiet_hours or change.sets_digest:
            await _release(conn, [subscription_id])
        now = record_of(row)
        await record_subscription_events(conn, events_of_change(before, now, by))
        await conn.execute(WAKE)
        return now


async def _release(conn: Connection, ids: Sequence[UUID]) -> None:
    """Send what quiet hours and digests of subscriptions hold; the new ones apply to it."""
    await conn.execute(RELEASE_HELD, ids, HELD)
    await conn.execute(RELEASE_GATHERED, ids)


def decrypted_secrets(stored: Json, project: str, subscription_id: UUID) -> tuple[str, ...]:
    """Raises DecryptionFailed if a secret cannot be decrypted."""
    scope = _secrets_of(project, subscription_id)
    return tuple(decrypt(one, scope) for one in encrypted_members(stored))


def encrypted_secret(secret: str, project: str, subscription_id: UUID) -> Secret:
    return Secret(secret, _secrets_of(project, subscription_id))


def _secrets_of(project: str, subscription_id: UUID) -> Scope:
    return Scope(project, subscription_id, "subscription.secrets")


async def delete(conn: Connection, project: str, subscription_id: UUID, by: str) -> bool:
    """With its deliveries. False: the project has no such subscription."""
    async with conn.transaction():
        one = await lock(conn, project, subscription_id)
        if one is None:
            return False
        await record_subscription_events(conn, events_of_change(one, None, by))
        await delete_with_deliveries(conn, [subscription_id])
        return True


def _owner(owner: Principal | None) -> tuple[Any, ...]:
    """Arguments of CHANGE; nulls keep the owner."""
    return (None,) * 3 if owner is None else (owner.name, owner.id, list(owner.roles))


async def automation_of(conn: Connection, subscription_id: UUID) -> Automation | None:
    """A subscription as an answerer of hooks, without the current rights of its owner. None: it was
    deleted, so its tokens are invalid."""
    row = await conn.fetchrow(AUTOMATION, subscription_id)
    return answerer(row) if row else None


def answerer(row: Any) -> Automation:
    """row: has the columns of AUTOMATION."""
    owner = Principal(row["owner_id"], row["owner"], roles=tuple(row["owner_roles"]))
    name = row["name"] or str(row["id"])
    return Automation(row["id"], name, row["origin"] == Origin.CONFIGURATION, owner)


async def lock(conn: Connection, project: str, subscription_id: UUID) -> SubscriptionRecord | None:
    """None: the project has no such subscription."""
    row = await conn.fetchrow(LOCK_ONE, project, subscription_id)
    return record_of(row) if row else None


async def delete_with_deliveries(conn: Connection, ids: Sequence[UUID]) -> None:
    """Delete locked subscriptions with their deliveries."""
    await conn.execute(FORGET_DELIVERIES, ids)
    await conn.execute(FORGET, ids)


async def in_state(
    conn: Connection, projects: Sequence[str], state: SubscriptionState
) -> list[SubscriptionRecord]:
    """Subscriptions in a state, of any of these projects or of every project."""
    return [record_of(row) for row in await conn.fetch(IN_STATE, projects, EVERY_PROJECT, state)]


async def lock_enabled(conn: Connection, ids: Sequence[UUID]) -> set[UUID]:
    """Lock those of these subscriptions that are enabled, in the order of their IDs; return
    them."""
    return {row["id"] for row in await conn.fetch(LOCK_ENABLED, ids)}


def record_of(row: Any) -> SubscriptionRecord:
    """row: has the columns of READ."""
    fields = dict(row)
    names = ("events", "stacks", "resources", "types", "points", "tags", "stack_id", "nested")
    return SubscriptionRecord(selection=Selection(*(fields.pop(n) for n in names)), **fields)


LOCK_CONFIGURED = f"""
select {COLUMNS}
  from subscription where origin = 'configuration' order by id for update
"""  # noqa: S608 - of constants
CONFIGURE = """
insert into subscription (id, project, channel, target, events, stacks, resources, types, points,
                          ordered, secrets, state, origin, tags, stack_id, nested, name, owner,
                          owner_id, owner_roles, quiet_hours, digest)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, jsonb_build_array($11::jsonb), 'enabled',
        $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)
on conflict (id) do update
   set project = excluded.project, channel = excluded.channel, target = excluded.target,
       events = excluded.events, stacks = excluded.stacks, resources = excluded.resources,
       types = excluded.types, points = excluded.points, tags = excluded.tags,
       ordered = excluded.ordered, nested = excluded.nested, name = excluded.name,
       quiet_hours = excluded.quiet_hours, digest = excluded.digest,
       owner = '', owner_id = '', owner_roles = '{}', origin = 'configuration',
       secrets = case when $22 or excluded.secrets -> 0 = subscription.secrets -> 0
                      then subscription.secrets else excluded.secrets end,
       state = 'enabled', reason = '', failures = 0
"""


async def configure(conn: Connection, subscriptions: Sequence[NewSubscription]) -> None:
    """Replace the subscriptions of the settings file by these; equal IDs keep their secrets if
    `keeps_secret`. Changed quiet hours and digests release what they held. Those of projects that
    have moved to another cell are not stored."""
    async with conn.transaction():
        left = await find_left(conn, [one.project for one in subscriptions])
        subscriptions = [one for one in subscriptions if one.project not in left]
        before = await _lock_configured(conn)
        removed = sorted(before.keys() - {new.id for new in subscriptions})
        events = [
            one for name in removed for one in events_of_change(before[name], None, "configuration")
        ]
        await record_subscription_events(conn, events)
        await delete_with_deliveries(conn, removed)
        await conn.executemany(
            CONFIGURE, [(*columns_of(new), new.keeps_secret) for new in subscriptions]
        )
        after = await _lock_configured(conn)
        changed = [
            name for name in before.keys() & after.keys()
            if (before[name].quiet_hours, before[name].digest)
            != (after[name].quiet_hours, after[name].digest)
        ]  # fmt: skip
        await _release(conn, changed)
        changes = (
            events_of_change(before.get(name), one, "configuration") for name, one in after.items()
        )
        await record_subscription_events(conn, [one for events in changes for one in events])
        await conn.execute(WAKE)


async def _lock_configured(conn: Connection) -> dict[UUID, SubscriptionRecord]:
    return {row["id"]: record_of(row) for row in await conn.fetch(LOCK_CONFIGURED)}
