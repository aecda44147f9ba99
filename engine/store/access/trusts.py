"""Trusts of Keystone that changes act with: stored from their creation until they are deleted in
Keystone, which is allowed when no stored credential is the trust."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from hashlib import sha256
from typing import Final
from uuid import UUID

from engine.store.connection import Connection
from engine.store.encryption.secret_values import Scope

#: The prefix of a trust, which a traversal stores because a token could expire before its end.
TRUST: Final = "keystone-trust:"
#: The prefix of the ID of an observation credential with which a repair acts, for the traversal. It
#: names the credential and has no secret.
HANDED_OVER_PREFIX: Final = "handed-over-credential:"
#: Until a trust that was taken is taken again, because its process died or Keystone was away.
RETRY: Final = timedelta(minutes=5)
#: Trusts that are taken at once.
BATCH: Final = 20
#: In `credential.trust`: the credential is no trust. Null: unknown, because a release before
#: 0.2.0 has stored it.
NO_TRUST: Final = UUID(int=0)
#: In `credential.trust`: the credential has HANDED_OVER_PREFIX. Such a row stays until its
#: traversal has ended, and no other credential replaces it.
HANDED_OVER: Final = UUID(int=1)

INSERT = """
insert into trust (id, project, encrypted, due_at)
values ($1, $2, $3, statement_timestamp() + $4::interval)
on conflict (id) do nothing
"""
TAKE_UNUSED = """
update trust t set due_at = statement_timestamp() + $1::interval
 where t.id in (select one.id from trust one
                 where one.due_at <= statement_timestamp()
                   and not exists (select from credential c where c.trust = one.id)
                   and not exists (select from converge_request r
                                    where r.trust = one.id and r.encrypted is not null)
                   and one.project not in (select s.project
                                             from credential c join stack s on s.id = c.stack_id
                                            where c.trust is null)
                 order by one.due_at limit $2 for update skip locked)
returning id, project, encrypted
"""
DELETE = "delete from trust where id = any ($1)"


@dataclass(frozen=True, slots=True)
class StoredTrust:
    id: UUID
    project: str
    encrypted: bytes = field(repr=False)


def row_id(trust: str) -> UUID:
    """The ID of the row of a trust."""
    return UUID(bytes=sha256(trust.encode()).digest()[:16])


def trust_id(credential: str) -> UUID:
    """The ID of the row of a trust; NO_TRUST, HANDED_OVER: the credential is no trust."""
    if credential.startswith(HANDED_OVER_PREFIX):
        return HANDED_OVER
    return row_id(credential) if credential.startswith(TRUST) else NO_TRUST


def scope(project: str, id_: UUID) -> Scope:
    """The scope of the encryption of a trust."""
    return Scope(project, id_, "trust.encrypted")


async def store(conn: Connection, trust: StoredTrust, kept: timedelta) -> None:
    """kept: how long the trust is kept at least."""
    await conn.execute(INSERT, trust.id, trust.project, trust.encrypted, kept)


async def take_unused(conn: Connection) -> list[StoredTrust]:
    """Trusts that no change uses and no request will use. Other processes do not get them until
    RETRY has passed. None of a project that has a credential from before the trusts of credentials
    were recorded."""
    rows = await conn.fetch(TAKE_UNUSED, RETRY, BATCH)
    return [StoredTrust(**row) for row in rows]


async def delete(conn: Connection, ids: Sequence[UUID]) -> None:
    await conn.execute(DELETE, ids)
