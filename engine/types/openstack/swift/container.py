"""OS::Swift::Container: a container of objects.

A container has no ID but its name. A create takes no container that exists: it marks the one that
it creates with metadata named after the operation, by which a repeated create finds it.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Final
from urllib.parse import quote, urlsplit

from engine.errors import Findings
from engine.types.contract import Call, Done, Failed, Outcome, Replace
from engine.types.custom_constraints import ValidationContext
from engine.types.observation import PRESENT, Observation, admit_requests
from engine.types.openstack.cloud import Session
from engine.types.openstack.cloud_operation import (
    CloudType,
    outcome_of_error,
    poll,
    proceed,
    run_guarded,
    unknown_state,
)
from engine.types.openstack.object_type import existing_error
from engine.types.openstack.service_errors import CONFLICT, CloudError
from engine.types.openstack.services import OBJECT_STORE
from engine.types.openstack.swift.metadata import (
    CONTAINER,
    HEADERS,
    MAX_NAME,
    NAME,
    check_container,
    check_name,
    header_names,
    headers_of,
    with_removals,
)
from engine.types.openstack.swift.requests import (
    account_url,
    create_container,
    find_container,
    is_marked,
    list_containers,
    remove_container,
    remove_objects,
    write_headers,
)
from engine.types.openstack.swift.schema import CONTAINER as SCHEMA
from engine.words import Json, ObservedState, ResourceId

PURGE: Final = "PurgeOnDelete"
#: In the data: the name of a container that creates without an answer may have created, and their
#: operations.
_LOST: Final = "lost"
#: In the data: the headers that a failed operation may have set.
_UNFINISHED: Final = "unfinished"
#: How often a delete waits for a container that has objects although its list has none.
MAX_REFUSED: Final = 20


class Container(CloudType):
    """A failed container is repaired by an update: a replacement could not get its name."""

    replaces_tainted = False
    repairs = True
    template_ids = True
    schema = SCHEMA

    async def create(self, call: Call) -> Outcome:
        """Also an update of a resource whose create has failed."""
        session, lost = self._cloud.session(call), call.data.get(_LOST) or {}
        name = _name_of(call, lost)
        operations = sorted({str(call.operation_key), *lost.get("operations", ())})
        try:
            await _create_marked(call, session, name, operations)
        except CloudError as error:
            known = {key: one for key, one in call.data.items() if key != _LOST}
            if error.status != CONFLICT:
                known[_LOST] = {"name": name, "operations": operations}
            return outcome_of_error(call, error, None, known)
        return await self._write(call, session, name)

    async def update(self, call: Call) -> Outcome:
        if call.physical_id is None:
            return await self.create(call)
        session = self._cloud.session(call)
        return await self._write(call, session, call.physical_id)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        check_container(properties, place, findings)

    async def check_external(self, physical_id: str, context: ValidationContext) -> str | None:
        if not context.credential:
            return None
        try:
            found = await find_container(self._cloud.session(context), physical_id)
        except CloudError as error:
            return str(error)
        return None if found is not None else f"there is no container {physical_id}"

    async def _write(self, call: Call, session: Session, name: str) -> Outcome:
        """Set the headers of the container and its account. Those that the resource had before, or
        that a failed operation may have set, are removed."""
        unfinished = call.data.get(_UNFINISHED) or {}
        before = {
            of: {*header_names(call.previous or {}, of), *unfinished.get(of, ())} for of in HEADERS
        }
        tried = {of: sorted(before[of] | header_names(call.properties, of)) for of in HEADERS}

        async def write() -> Outcome:
            for of, properties in HEADERS.items():
                if of in unfinished or any(call.touches(one) for one in properties):
                    headers = with_removals(headers_of(call.properties, of), before[of])
                    path_name = name if of == CONTAINER else None
                    if headers and not await write_headers(session, path_name, headers):
                        return _missing(call, name)
            found = await find_container(session, name)
            return _missing(call, name) if found is None else await _done(session, name, found)

        known = {key: one for key, one in call.data.items() if key != _LOST}
        return await run_guarded(call, write, name, {**known, _UNFINISHED: tried})

    async def _delete(self, call: Call) -> Outcome:
        session, name = self._cloud.session(call), call.physical_id
        if name is None and (name := await _find_lost(call, session)) is None:
            return Done(None)
        if await remove_container(session, name):
            return Done(None)
        if call.properties.get(PURGE):
            if await remove_objects(session, name):
                return proceed(call, {}, "deleting the objects of the container")
        elif count := await _count_objects(session, name):
            public = "the container is not empty"
            remedy = (
                "Delete its objects, then repeat the delete. "
                f"With {PURGE}: true, Headgate deletes them."
            )
            reason = f"the container {name} is not empty: it has {count} objects"
            raise CloudError(f"{reason}. {remedy}", status=CONFLICT, public=public)
        tries = (call.progress or {}).get("tries", 0)
        public = "Swift does not delete the container, although its list has no objects"
        if tries >= MAX_REFUSED:
            remedy = "Delete former versions of its objects, then repeat the delete."
            raise CloudError(f"{public}: {name}. {remedy}", public=public)
        return poll(call, dict(call.progress or {}), public, public)

    async def _check(self, call: Call) -> Outcome:
        session, name = self._cloud.session(call), str(call.physical_id)
        found = await find_container(session, name)
        if found is None:
            public = "the container does not exist"
            return Failed(f"{public}: {name}", None, call.data, public_reason=public)
        done = await _done(session, name, found)
        return Done(done.physical_id, done.attributes, call.data)

    # ---- observation

    def observation_key(self, call: Call) -> str | None:
        known = call.physical_id is not None and self._cloud.has_observer(call)
        return self.schema.name if known else None

    def observation_endpoint(self, call: Call) -> str:
        return OBJECT_STORE.name

    def observed_paths(self, properties: Mapping[str, Json]) -> Collection[str]:
        """None: lists have no headers of containers."""
        return ()

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        """One list of the project's account. It may lack a new container, so that one that it lacks
        is read by itself."""
        session = self._cloud.observer_session(calls[0])
        names = {str(call.physical_id) for call in calls}
        try:
            endpoint = await session.endpoint(OBJECT_STORE, "list the containers")
            account = account_url(endpoint, calls[0].project)
            async for page in list_containers(session, _common_prefix(names), account):
                names.difference_update(page)
            alone = sorted(names)
            later = set(alone[await admit_requests(len(alone)) :])
            missing = {
                one
                for one in alone
                if one not in later and await find_container(session, one, account) is None
            }
        except CloudError as error:
            return {call.resource_id: unknown_state(error) for call in calls}
        reason = "the container does not exist"
        gone = Observation(ObservedState.MISSING, (), reason, reason)
        return {
            call.resource_id: gone if call.physical_id in missing else PRESENT
            for call in calls
            if call.physical_id not in later
        }


def _name_of(call: Call, lost: Mapping[str, Json]) -> str:
    """The name of the container that a create makes. lost: of an earlier one."""
    own = call.own_name.encode()[-MAX_NAME:].decode(errors="ignore")
    return str(call.properties.get(NAME) or lost.get("name") or own)


async def _create_marked(
    call: Call, session: Session, name: str, operations: Collection[str]
) -> None:
    """Create the container unless one of these operations has created it. Raises CloudError."""
    if reason := check_name(name):
        public = "Swift cannot have a container of this name"
        raise CloudError(f'the name "{name}" {reason}', public=public)
    found = await find_container(session, name)
    if found is None:
        if await create_container(session, name, call.operation_key):
            return
    elif is_marked(found, operations):
        return
    raise existing_error("container", name)


async def _find_lost(call: Call, session: Session) -> str | None:
    """The name of the container that a create without an answer has created."""
    if (lost := call.data.get(_LOST)) is None:
        return None
    found = await find_container(session, lost["name"])
    is_own = found is not None and is_marked(found, lost["operations"])
    return str(lost["name"]) if is_own else None


async def _count_objects(session: Session, name: str) -> int:
    found = await find_container(session, name)
    return 0 if found is None else _number(found, "x-container-object-count")


def _missing(call: Call, name: str) -> Outcome:
    """The outcome of an operation whose container does not exist: it was deleted outside of the
    stack."""
    if call.physical_id is not None:
        return Replace()
    public = "the container was deleted during its create"
    return Failed(f"{public}: {name}", None, {}, retry=True, public_reason=public)


async def _done(session: Session, name: str, headers: Mapping[str, Json]) -> Done:
    root = await session.endpoint(OBJECT_STORE, "read the container")
    attributes: dict[str, Json] = {
        "BytesUsed": _number(headers, "x-container-bytes-used"),
        "DomainName": urlsplit(root).hostname,
        "HeadContainer": dict(headers),
        "ObjectCount": _number(headers, "x-container-object-count"),
        "RootURL": root,
        "WebsiteURL": f"{root}/{quote(name, safe='')}",
        "show": dict(headers),
    }
    return Done(name, attributes)


def _common_prefix(names: Collection[str]) -> str:
    first, last = min(names), max(names)
    same = next((at for at, one in enumerate(first) if last[at : at + 1] != one), len(first))
    return first[:same]


def _number(headers: Mapping[str, Json], name: str) -> int:
    value = str(headers.get(name) or "")
    return int(value) if value.isascii() and value.isdigit() else 0
