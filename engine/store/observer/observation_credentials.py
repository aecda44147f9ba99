"""Application credentials of Keystone that owners of projects have handed over for observations,
and for repairs of drift if they say so: at most one for each project.

Each has an audit log of its own, with its ID in place of a stack's, so that the log of the project
shows who has set and deleted it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from engine.hooks.hash_chain import Entry
from engine.principal import Principal
from engine.store.audit import audit_log
from engine.store.connection import Connection
from engine.store.encryption.secret_values import Scope
from engine.words import Json

#: Kinds of entries of the audit log.
SET: Final = "observation-credential-set"
DELETED: Final = "observation-credential-deleted"
#: Serializes the changes of a project's credential until the end of the transaction.
LOCK = """
select clock_timestamp() as now
  from (select pg_advisory_xact_lock(hashtextextended('observation credential ' || $1, 0))) l
"""
DELETE = """
delete from observation_credential where project = $1
returning id, application_credential_id, name
"""
INSERT = """
insert into observation_credential (
    id, project, application_credential_id, name, user_id, user_name, roles, access_rules,
    encrypted, created_by, created_at, expires_at, used_at, repairs)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $11, $13)
"""
#: The trigger of the table finds no project, because the entry is of no stack.
SET_PROJECT = "update decision set project = $2 where stack_id = $1 and project is null"
#: After a change of the credential, observations need not wait until earlier failures are over.
END_PAUSES = """
with requests as (
    update failed_request set until = clock_timestamp()
     where project = $1 and until > clock_timestamp()
)
update provider_failure set until = clock_timestamp()
 where project = $1 and not throttled and until > clock_timestamp()
"""
READ = """
select id, project, application_credential_id, name, user_id, user_name, roles, access_rules,
       created_by, created_at, expires_at, used_at, failed_at, reason, repairs,
       clock_timestamp() as now
  from observation_credential where project = $1
"""
FIND_ID = "select id from observation_credential where project = $1"
READ_STORED = """
select id, project, application_credential_id, encrypted, expires_at, repairs,
       clock_timestamp() as now
  from observation_credential where id = $1
"""
MARK_USED = "update observation_credential set used_at = clock_timestamp() where id = $1"
MARK_FAILED = """
update observation_credential set failed_at = clock_timestamp(), reason = $2 where id = $1
"""
COUNT = """
select case when expires_at <= clock_timestamp() then 'expired'
            when failed_at > used_at then 'refused' else 'valid' end as state,
       count(*)::integer as count
  from observation_credential group by 1
"""
STATES: Final = ("valid", "refused", "expired")


@dataclass(frozen=True, slots=True)
class ObservationCredential:
    """user_id, user_name: of the owner in Keystone. roles: names. access_rules: services accept
    only the requests that these allow. expires_at: None: Keystone has named no time. used_at:
    Keystone gave a token last. failed_at, reason: it refused the credential last. repairs: repairs
    of drift may act with it. now: of the database."""

    id: UUID
    project: str
    application_credential_id: str
    name: str
    user_id: str
    user_name: str
    roles: Sequence[str]
    access_rules: bool
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    used_at: datetime
    failed_at: datetime | None
    reason: str | None
    repairs: bool
    now: datetime

    @property
    def state(self) -> str:
        """One of STATES, as COUNT computes it."""
        if self.expires_at is not None and self.expires_at <= self.now:
            return "expired"
        return "refused" if self.failed_at and self.failed_at > self.used_at else "valid"


@dataclass(frozen=True, slots=True)
class NewCredential:
    """See `ObservationCredential`. encrypted: its secret."""

    id: UUID
    project: str
    application_credential_id: str
    name: str
    user_id: str
    user_name: str
    roles: Sequence[str]
    access_rules: bool
    expires_at: datetime | None
    encrypted: bytes = field(repr=False)
    repairs: bool = False


@dataclass(frozen=True, slots=True)
class StoredCredential:
    """repairs: repairs of drift may act with it. now: of the database."""

    id: UUID
    project: str
    application_credential_id: str
    encrypted: bytes = field(repr=False)
    expires_at: datetime | None
    repairs: bool
    now: datetime

    @property
    def has_expired(self) -> bool:
        return self.expires_at is not None and self.expires_at <= self.now


def scope(project: str, id_: UUID) -> Scope:
    """The scope of the encryption of a secret."""
    return Scope(project, id_, "observation_credential.encrypted")


@dataclass(frozen=True, slots=True)
class _Change:
    """A change of a project's credential, for the audit log. at: of the database."""

    project: str
    by: Principal
    at: datetime

    async def record(self, conn: Connection, kind: str, id_: UUID, data: Json) -> None:
        entry = Entry(
            id_, None, kind, self.by.name, "api", self.at,
            principal=self.by.id, token_id=self.by.token_id, data=data,
        )  # fmt: skip
        await audit_log.record(conn, [entry])
        await conn.execute(SET_PROJECT, id_, self.project)


async def _begin_change(conn: Connection, project: str, by: Principal) -> _Change:
    return _Change(project, by, await conn.fetchval(LOCK, project))


async def store(conn: Connection, new: NewCredential, by: Principal) -> None:
    """Replace the credential of a project, in the caller's transaction."""
    change = await _begin_change(conn, new.project, by)
    await _delete(conn, change)
    await conn.execute(
        INSERT, new.id, new.project, new.application_credential_id, new.name, new.user_id,
        new.user_name, list(new.roles), new.access_rules, new.encrypted, by.name, change.at,
        new.expires_at, new.repairs,
    )  # fmt: skip
    data = {
        "application_credential_id": new.application_credential_id,
        "name": new.name,
        "user": new.user_name,
        "roles": list(new.roles),
        "repairs": new.repairs,
    }
    await change.record(conn, SET, new.id, data)
    await conn.execute(END_PAUSES, new.project)


async def delete(conn: Connection, project: str, by: Principal) -> bool:
    """Delete the credential of a project, in the caller's transaction. False: there is none."""
    return await _delete(conn, await _begin_change(conn, project, by))


async def _delete(conn: Connection, change: _Change) -> bool:
    row = await conn.fetchrow(DELETE, change.project)
    if row is None:
        return False
    data = {"application_credential_id": row["application_credential_id"], "name": row["name"]}
    await change.record(conn, DELETED, row["id"], data)
    return True


async def read(conn: Connection, project: str) -> ObservationCredential | None:
    row = await conn.fetchrow(READ, project)
    return ObservationCredential(**row) if row else None


async def find_id(conn: Connection, project: str) -> UUID | None:
    """The ID of the credential of a project."""
    found: UUID | None = await conn.fetchval(FIND_ID, project)
    return found


async def read_stored(conn: Connection, id_: UUID) -> StoredCredential | None:
    row = await conn.fetchrow(READ_STORED, id_)
    return StoredCredential(**row) if row else None


async def mark_used(conn: Connection, id_: UUID) -> None:
    await conn.execute(MARK_USED, id_)


async def mark_failed(conn: Connection, id_: UUID, reason: str) -> None:
    await conn.execute(MARK_FAILED, id_, reason)


async def count_states(conn: Connection) -> dict[str, int]:
    """The number of credentials in each of STATES."""
    found = {row["state"]: row["count"] for row in await conn.fetch(COUNT)}
    return {state: found.get(state, 0) for state in STATES}
