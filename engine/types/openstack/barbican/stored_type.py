"""What all types of Barbican do alike.

The physical ID is the URL of the object. Objects cannot change, and their names are neither unique
nor can be changed. A create finds its object after a crash:

- Without a name in the template, the name is derived from the operation.
- With one, the progress records which objects had the name before. Of the others with the same
  content, the create claims one: it marks the object with its operation, unless another operation
  has marked it. A new object is marked once its URL is saved.
- The data of an order have the operation.
"""

from abc import abstractmethod
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import ClassVar, Final

from engine.types.contract import Call, Done, Failed, Outcome, Wait
from engine.types.custom_constraints import ValidationContext
from engine.types.openstack.barbican.references import id_in
from engine.types.openstack.cloud import Session, id_of
from engine.types.openstack.cloud_operation import (
    CloudType,
    outcome_of_error,
    poll,
    proceed,
    would_wait,
)
from engine.types.openstack.service_errors import FORBIDDEN, CloudError
from engine.types.openstack.services import KEY_MANAGER
from engine.types.operation_outcomes import CANCELLED
from engine.words import Json

#: Characters of a name.
MAX_NAME: Final = 255
#: How often a create looks for its object among those that other operations have marked.
MAX_ROUNDS: Final = 3
#: How many different pauses there are for operations that claim the same object.
_SHARES: Final = 1009
#: In the progress: the URL of the object; the IDs of objects that had its name before; how often
#: the object was looked for, because other operations claim it or no answer came; whether this
#: operation has claimed the object.
_REFERENCE, _KNOWN, _SEARCHES, _CLAIMED = "reference", "known", "searches", "claimed"
#: In the data of a create whose answer was lost: how a delete finds what it may have created.
_LOST: Final = "lost"
#: In `_LOST`: the key of the operation, and the name.
OPERATION, NAME = "operation", "name"
BUSY, BROKEN = "PENDING", "ERROR"

#: How the object of a create is recognized: `OPERATION`, `NAME`, `_KNOWN`.
Origin = Mapping[str, Json]


class ClaimConflict(Exception):
    """Other operations claim an object at the same time: try again later."""


class StoredType(CloudType):
    """A type of Barbican.

    what: one object, in messages. path: of the collection. key: of the list. reference: the field
    with the URL of an object.
    """

    cancellable = True
    what: ClassVar[str]
    path: ClassVar[str]
    key: ClassVar[str]
    reference_field: ClassVar[str]

    # ---- what differs between the types

    @abstractmethod
    async def body(self, session: Session, call: Call, name: str) -> Mapping[str, Json]:
        """The body of the request that creates the object."""

    @abstractmethod
    async def attributes_of(
        self, session: Session, found: Mapping[str, Json]
    ) -> Mapping[str, Json]: ...

    @abstractmethod
    async def is_alike(
        self, session: Session, properties: Mapping[str, Json], found: Mapping[str, Json]
    ) -> bool:
        """Whether an object has the content that the properties ask for."""

    @abstractmethod
    async def claim(self, session: Session, object_id: str, operation: str) -> bool:
        """Mark an object with an operation. False: another operation has marked it."""

    def shares_name(self, properties: Mapping[str, Json]) -> bool:
        """Whether other objects may have the name, so that a create claims its own."""
        return properties.get(NAME) is not None

    # ---- operations

    async def create(self, call: Call) -> Outcome:
        try:
            outcome = await self._create(call, self._cloud.session(call))
        except ClaimConflict:
            outcome = self._search_again(call)
        except CloudError as error:
            return self._failed_create(call, error)
        if call.cancelled and would_wait(call, outcome):
            return self._failed_create(call, CloudError(CANCELLED, public=CANCELLED))
        return outcome

    def _failed_create(self, call: Call, error: CloudError) -> Outcome:
        progress, data = dict(call.progress or {}), dict(call.data)
        reference = progress.get(_REFERENCE)
        refused = error.status is not None and error.status < 500
        if refused:
            error.public = str(error)  # Barbican names properties, and quotes no payload
        if reference is None:
            may_exist = call.repeated or not refused
        else:
            may_exist = self.shares_name(call.properties) and not progress.get(_CLAIMED)
            if may_exist:
                reference = None  # it may belong to another operation
        if may_exist:
            data[_LOST] = self._origin(call)
        outcome = outcome_of_error(call, error, reference, data)
        if isinstance(outcome, Wait):
            searches = max(1, progress.get(_SEARCHES, 0))
            return replace(outcome, progress={**outcome.progress, _SEARCHES: searches})
        return outcome

    def _search_again(self, call: Call) -> Wait:
        progress = dict(call.progress or {})
        public = f"other resources claim the {self.what} of the same name"
        waits = poll(call, {**progress, _SEARCHES: progress.get(_SEARCHES, 0) + 1}, public, public)
        if waits.until is None:
            return waits
        # Operations with equal pauses would withdraw at the same time, again and again.
        share = call.operation_key.int % _SHARES / _SHARES
        return replace(waits, until=waits.until + share * (waits.until - call.now))

    def _origin(self, call: Call) -> Origin:
        given = call.properties.get(NAME)
        known = (call.progress or {}).get(_KNOWN)
        name = call.own_name[-MAX_NAME:] if given is None else str(given).strip()
        return {OPERATION: str(call.operation_key), NAME: name, _KNOWN: known}

    async def _create(self, call: Call, session: Session) -> Outcome:
        progress, origin = dict(call.progress or {}), self._origin(call)
        shares = self.shares_name(call.properties)
        if reference := progress.get(_REFERENCE):
            object_id = id_in(reference)
            if not shares or progress.get(_CLAIMED):
                return await self._finish(call, session, progress, object_id)
            if await self.claim(session, object_id, origin[OPERATION]):
                return proceed(call, {**progress, _CLAIMED: True})
            del progress[_REFERENCE]
            return proceed(call, {**progress, _SEARCHES: 1})
        if shares and _KNOWN not in progress:
            known = [id_in(self._reference(one)) async for one in self._list_named(session, origin)]
            return proceed(call, {**progress, _KNOWN: known})
        found = None
        if call.repeated or progress.get(_SEARCHES):
            rounds = progress.get(_SEARCHES, 0)
            found = await self._find(session, origin, call.properties, rounds)
        if found is None:
            doing, body = f"create the {self.what}", await self.body(session, call, origin[NAME])
            answer = await session.request(KEY_MANAGER, "POST", self.path, doing, body)
            found = self._reference(answer if isinstance(answer, Mapping) else {})
        return proceed(call, {**progress, _REFERENCE: found})

    async def _finish(
        self, call: Call, session: Session, progress: Mapping[str, Json], object_id: str
    ) -> Outcome:
        found = await self._read(session, object_id)
        if found is None:
            reason = f"the {self.what} was deleted during its create"
            return Failed(reason, None, call.data, public_reason=reason)
        if found.get("status") == BUSY:
            public = f"the {self.what} is not ready"
            return poll(call, progress, public, public)
        return await self._done(session, found)

    async def _done(self, session: Session, found: Mapping[str, Json]) -> Done:
        if found.get("status") == BROKEN:
            code, why = found.get("error_status_code"), found.get("error_reason")
            public = f"the {self.what} has failed"
            raise CloudError(f"{public}: {code} {why}", public=public)
        return Done(self._reference(found), await self.attributes_of(session, found))

    async def _delete(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        reference = call.physical_id
        if reference is None and (lost := call.data.get(_LOST)) is not None:
            try:
                rounds = (call.progress or {}).get(_SEARCHES, 0)
                reference = await self._find(session, lost, call.properties, rounds)
            except ClaimConflict:
                return self._search_again(call)
        if reference is not None:
            path = f"{self.path}/{id_in(reference)}"
            await session.delete(KEY_MANAGER, path, f"delete the {self.what}")
        return Done(None)

    async def _check(self, call: Call) -> Outcome:
        session = self._cloud.session(call)
        found = await self._read(session, id_in(call.physical_id))
        if found is None:
            public = f"the {self.what} does not exist"
            return Failed(f"{public}: {call.physical_id}", None, call.data, public_reason=public)
        done = await self._done(session, found)
        return Done(call.physical_id, done.attributes, call.data)

    async def check_external(self, physical_id: str, context: ValidationContext) -> str | None:
        if not context.credential:
            return None
        session = self._cloud.session(context)
        try:
            found = await self._read(session, id_in(physical_id))
        except CloudError as error:
            return str(error)
        return None if found else f"there is no {self.what} {physical_id}"

    # ---- requests

    def _reference(self, found: Mapping[str, Json]) -> str:
        return id_of(KEY_MANAGER, found, self.reference_field)

    async def _read(self, session: Session, object_id: str) -> Mapping[str, Json] | None:
        path = f"{self.path}/{object_id}"
        return await session.find(KEY_MANAGER, path, "", f"read the {self.what}")

    async def _list_named(
        self, session: Session, origin: Origin
    ) -> AsyncIterator[Mapping[str, Json]]:
        """The objects with the name of a create."""
        query = {"name": origin[NAME]}
        async for page in session.pages(KEY_MANAGER, self.path, self.key, query):
            for one in page:
                if one.get("name") == origin[NAME]:
                    yield one

    async def _find(
        self, session: Session, origin: Origin, properties: Mapping[str, Json], rounds: int
    ) -> str | None:
        """The URL of the object that an earlier call of a create has created.

        rounds: how often it was looked for. Raises ClaimConflict.
        """
        refused = False
        shares, known = self.shares_name(properties), set(origin.get(_KNOWN) or ())
        if shares and origin.get(_KNOWN) is None:
            return None  # nothing was created yet
        candidates = [one async for one in self._list_named(session, origin)]
        for one in sorted(candidates, key=lambda one: self._rank(origin, one)):
            reference = self._reference(one)
            object_id = id_in(reference)
            if not shares:
                return reference
            if object_id not in known and await self._is_readable_and_alike(
                session, properties, one
            ):
                if await self.claim(session, object_id, origin[OPERATION]):
                    return reference
                refused = True
        if refused and rounds < MAX_ROUNDS:
            raise ClaimConflict  # an operation that has marked it may withdraw
        return None

    async def _is_readable_and_alike(
        self, session: Session, properties: Mapping[str, Json], found: Mapping[str, Json]
    ) -> bool:
        """As `is_alike`; False for objects that only other users may read, and deleted ones."""
        try:
            return await self.is_alike(session, properties, found)
        except CloudError as error:
            if error.status == FORBIDDEN or error.is_missing:
                return False
            raise

    def _rank(self, origin: Origin, found: Mapping[str, Json]) -> bytes:
        """The place of a candidate: each operation has an order of its own, so that few claim the
        same one."""
        return sha256(f"{origin[OPERATION]} {self._reference(found)}".encode()).digest()
