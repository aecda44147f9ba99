"""Application credentials with which the observer reads the objects of a project. The owner of the
project hands one over; without it, only the operator's reader credential observes OpenStack. If the
owner says so, repairs of drift act with it, too: no user waits for them whose token they could use.

The secret is decrypted only to ask Keystone for a token, which observations and repairs of the
project share. A traversal stores the ID of the credential only, so that a deleted credential is
used by no further operation.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from time import monotonic
from typing import Any, Final
from uuid import UUID
from weakref import WeakValueDictionary

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Finding, Forbidden, HeadgateError, Invalid, Unavailable
from engine.principal import Principal
from engine.store.access.trusts import HANDED_OVER_PREFIX
from engine.store.database import Database
from engine.store.encryption.secret_values import Keyring
from engine.store.observer import observation_credentials as store
from engine.store.observer.observation_credentials import NewCredential, StoredCredential
from engine.ttl_cache import TtlCache
from engine.types.openstack.cloud import OBSERVATION_CREDENTIAL_REFUSED
from hub.auth.keystone_client import (
    ApplicationCredential,
    CredentialRejected,
    IssuedToken,
    KeystoneClient,
)
from hub.auth.request_credentials import RequestCredentials, cache_key

Json = Any
log: FilteringBoundLogger = structlog.get_logger()

#: Seconds for which a token is reused; Keystone's default lifetime is an hour.
TOKEN_REUSED: Final = 600.0
#: Seconds for which a refused credential is not presented again.
REFUSAL_KEPT: Final = 60.0
#: Seconds for which the catalog of a token is kept, and Keystone's default lifetime of tokens.
TOKEN_LIFETIME: Final = 3_600.0
#: Catalogs are large: some 20 KB each.
MAX_CATALOGS: Final = 1_000
#: The fields of a request that sets a credential.
ID, SECRET = "application_credential_id", "application_credential_secret"
REPLACE: Final = (
    "Set another one: `headgate observation-credential set`. Then request an observation."
)
#: The place, the code and the remedy of the error if a repair has no credential.
PLACE, NO_REPAIR_CREDENTIAL = "observation-credential", "NoRepairCredential"
FOR_REPAIRS: Final = (
    "Hand one over: `headgate observation-credential set ID --for-repairs`. Or converge the stack,"
    " which acts with your own token."
)


@dataclass(frozen=True, slots=True)
class _Known:
    """The answer of Keystone: a token, or why there is none."""

    issued: IssuedToken | None
    refusal: str = ""


class ObservationCredentials:
    """new_id: of credentials."""

    def __init__(
        self, client: KeystoneClient, database: Database, keyring: Keyring,
        new_id: Callable[[], UUID],
    ) -> None:  # fmt: skip
        self._client = client
        self._database = database
        self._keyring = keyring
        self._new_id = new_id
        self._known: TtlCache[str, _Known] = TtlCache()
        #: By `cache_key` of tokens: access rules may forbid to ask for the catalog later.
        self._catalogs: TtlCache[str, Sequence[Mapping[str, Json]]] = TtlCache(
            max_entries=MAX_CATALOGS
        )
        #: Observations of a project request one token together.
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def accept(
        self, project: str, credential_id: str, secret: str, by: Principal, *, repairs: bool = False
    ) -> None:
        """Store a credential of a project in place of an earlier one, after Keystone has confirmed
        it. repairs: repairs of drift may act with it. Raises Invalid, Unavailable."""
        try:
            issued = await self._client.token_by_application_credential(credential_id, secret)
        except CredentialRejected as error:
            raise _refusal(
                SECRET,
                f"Keystone rejected the application credential {credential_id} with {error.status}",
                "Check ID and secret: `openstack application credential show` shows whether it has"
                " expired. Its user must be enabled and still have its roles.",
            ) from None
        found = issued.credential
        check(project, found)
        expires_at = await self._client.expiry_of(found, issued.token)
        id_ = self._new_id()
        new = NewCredential(
            id_, project, credential_id, found.name, found.user_id, found.user_name, found.roles,
            found.access_rules, expires_at,
            self._keyring.encrypt(store.scope(project, id_), secret), repairs,
        )  # fmt: skip
        async with self._database.transaction() as conn:
            await store.store(conn, new, by)
        log.info("observation_credential.set", project=project, credential=credential_id)

    async def find_for_repairs(self, project: str) -> str:
        """What a repair of drift in a project stores with its traversal, for `repair_token`. Raises
        Forbidden if the project has no credential that a repair can act with, Unavailable."""
        async with self._database.connection() as conn:
            id_ = await store.find_id(conn, project)
        if id_ is None:
            raise Forbidden(
                "the project has handed over no credential with which a repair can act",
                place=PLACE, remedy=FOR_REPAIRS, code=NO_REPAIR_CREDENTIAL,
            )  # fmt: skip
        await self.repair_token(credential := f"{HANDED_OVER_PREFIX}{id_}")
        return credential

    async def repair_token(self, credential: str, refused: str = "") -> str:
        """A token for what `find_for_repairs` has returned. refused: one that a service has
        refused. It reads the stored credential each time, so that no operation begins with a
        deleted one. Raises Forbidden, Unavailable, DecryptionFailed."""
        id_ = credential.removeprefix(HANDED_OVER_PREFIX)
        async with self._database.connection() as conn:
            stored = await store.read_stored(conn, UUID(id_))
        if stored is None:
            reason = "the credential of the project with which this repair acts was deleted"
        elif not stored.repairs:
            reason = f"{_credential_name(stored)} was handed over for observations only"
        elif stored.has_expired:
            reason = expired_reason(stored)
        else:
            try:
                return (await self.token(id_, refused)).token
            except Forbidden as error:
                reason = error.finding.reason
        raise Forbidden(reason, place=PLACE, remedy=FOR_REPAIRS, code=NO_REPAIR_CREDENTIAL)

    def catalog_of(self, token: str) -> Sequence[Mapping[str, Json]] | None:
        """The service catalog of a token that this has issued; None: of another token."""
        return self._catalogs.get(cache_key(RequestCredentials(token=token)), monotonic())

    async def token(self, credential: str, refused: str = "") -> IssuedToken:
        """A token of a stored credential. refused: one that a service has refused. Raises
        Forbidden, Unavailable, DecryptionFailed."""
        lock = self._locks.setdefault(credential, asyncio.Lock())
        async with lock:
            known = self._known.get(credential, monotonic())
            if known is None or (known.issued is not None and known.issued.token == refused):
                known = await self._ask(credential)
                lasts = TOKEN_REUSED if known.issued is not None else REFUSAL_KEPT
                self._known.keep(credential, known, monotonic() + lasts)
        if known.issued is None:
            raise Forbidden(known.refusal, remedy=REPLACE, code=OBSERVATION_CREDENTIAL_REFUSED)
        return known.issued

    async def _ask(self, credential: str) -> _Known:
        id_ = UUID(credential)
        async with self._database.connection() as conn:
            stored = await store.read_stored(conn, id_)
        if stored is None:
            return _Known(None, "the observation credential of this project was deleted")
        if stored.has_expired:
            return _Known(None, expired_reason(stored))
        scope = store.scope(stored.project, id_)
        secret = self._keyring.decrypt(scope, stored.encrypted)
        try:
            issued = await self._client.token_by_application_credential(
                stored.application_credential_id, secret
            )
        except CredentialRejected as error:
            reason = refused_reason(stored, error.status)
            await self._record(id_, reason)
            log.warning(
                "observation_credential.refused", project=stored.project,
                credential=stored.application_credential_id, status=error.status,
            )  # fmt: skip
            return _Known(None, reason)
        await self._record(id_)
        place = cache_key(RequestCredentials(token=issued.token))
        self._catalogs.keep(place, issued.catalog, monotonic() + TOKEN_LIFETIME)
        return _Known(issued)

    async def _record(self, id_: UUID, failure: str = "") -> None:
        """Without the database, nothing is recorded."""
        with suppress(Unavailable):
            async with self._database.connection() as conn:
                if failure:
                    await store.mark_failed(conn, id_, failure)
                else:
                    await store.mark_used(conn, id_)


def check(project: str, found: ApplicationCredential) -> None:
    """Raises Invalid if a credential is not fit for observations of a project. Pure."""
    if found.project_id != project:
        raise _refusal(
            ID,
            f"the application credential {found.id} belongs to another project",
            "Create one with a token of this project: `openstack application credential create`.",
        )
    if not found.is_restricted:
        raise _refusal(
            ID,
            f"the application credential {found.id} is unrestricted: its holder can create"
            " application credentials and trusts of its user",
            "Create one without --unrestricted.",
        )


def expired_reason(stored: StoredCredential) -> str:
    """Why an expired credential is not used. Pure."""
    expired = stored.expires_at.astimezone(UTC) if stored.expires_at else None
    at = f" at {expired:%Y-%m-%dT%H:%M:%SZ}" if expired else ""
    return f"{_credential_name(stored)} expired{at}"


def refused_reason(stored: StoredCredential, status: int) -> str:
    """Why a credential that Keystone has rejected is not used. Pure."""
    return (
        f"Keystone rejected {_credential_name(stored)} with {status}: it was deleted or has"
        " expired, or its user is disabled or has lost a role"
    )


def _credential_name(stored: StoredCredential) -> str:
    return f"the observation credential {stored.application_credential_id} of this project"


def _refusal(place: str, reason: str, remedy: str) -> HeadgateError:
    return Invalid([Finding(place, reason, remedy, OBSERVATION_CREDENTIAL_REFUSED)])
