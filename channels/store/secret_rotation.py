"""Rotates the signing secret of a subscription: for ROTATION, the previous secret also signs."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from channels.store.subscription_events import (
    SubscriptionEvent,
    SubscriptionEventKind,
    record_subscription_events,
)
from channels.store.subscriptions import decrypted_secrets, encrypted_secret, lock
from engine.store.connection import Connection
from engine.store.encryption.secret_values import encrypted_members

#: How long the previous secret also signs after a rotation.
ROTATION = timedelta(days=1)

ROTATE = """
update subscription
   set secrets = jsonb_build_array($3::jsonb, secrets -> 0), rotated_at = clock_timestamp()
 where project = $1 and id = $2
"""
SECRETS = "select secrets, rotated_at, now() as now, project from subscription where id = $1"


async def rotate(
    conn: Connection, project: str, subscription_id: UUID, secret: str, by: str
) -> bool:
    """Replace the signing secret; the previous one also signs for ROTATION. False: the project has
    no such subscription."""
    async with conn.transaction():
        one = await lock(conn, project, subscription_id)
        if one is None:
            return False
        await conn.execute(
            ROTATE, project, subscription_id, encrypted_secret(secret, project, subscription_id)
        )
        reason = "It has a new signing secret; the previous one also signs for a day"
        await record_subscription_events(
            conn, [SubscriptionEvent(SubscriptionEventKind.ROTATED, one, reason, by)]
        )
        return True


async def secrets_now(
    conn: Connection, subscription_id: UUID
) -> tuple[tuple[str, ...], datetime] | None:
    """The current signing secrets, newest first, and the database's time. None: there is no such
    subscription. Raises DecryptionFailed if a secret cannot be decrypted.
    """
    row = await conn.fetchrow(SECRETS, subscription_id)
    if row is None:
        return None
    return signing_secrets(row, row["project"], subscription_id), row["now"]


def signing_secrets(row: Any, project: str, subscription_id: UUID) -> tuple[str, ...]:
    """The secrets that sign at `now`, newest first. row: has `secrets`, `rotated_at` and `now`.
    project: of the subscription. Raises DecryptionFailed.
    """
    rotated_at: datetime | None = row["rotated_at"]
    rotating = rotated_at is not None and rotated_at > row["now"] - ROTATION
    stored = encrypted_members(row["secrets"])
    return decrypted_secrets(stored if rotating else stored[:1], project, subscription_id)
