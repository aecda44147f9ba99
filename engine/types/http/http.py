"""Headgate::HTTP: a resource that HTTP requests to a service create, update and delete.

A request that changes something has the operation key, and is not repeated once its response is
saved. After a crash before that, the operation first looks for the object of the lost request, if
the template defines `find`; otherwise it repeats the request with the same key.
"""

from collections.abc import AsyncIterator, Awaitable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from engine.errors import Findings, HeadgateError, Unavailable
from engine.hot.schema.properties import fill_defaults
from engine.types.completion import AcceptedOperation, ObjectsUnknown
from engine.types.contract import Call, Done, Failed, Outcome, Replace, ResourceType, Wait
from engine.types.http.adoption import adopted_places, adopted_value, with_live_values
from engine.types.http.json_paths import InvalidPath, is_path
from engine.types.http.object_observer import ObjectObserver
from engine.types.http.observation import list_key
from engine.types.http.property_checks import check, missing_property
from engine.types.http.remote_object import (
    ACCEPTED,
    KEPT,
    OTHER_OBJECT_REMEDY,
    Readiness,
    RemoteObject,
    completes_by_list,
    differing_paths,
    id_in,
    object_in_progress,
    object_of,
    other_object,
    parse_json,
    poll_again,
    progress_of,
    readiness,
    since_of,
    then_read,
    with_response,
)
from engine.types.http.requests import (
    PlaceholderError,
    address,
    build,
    header_templates,
    import_error,
    is_same_request,
    names_in,
    origin,
    secret_header_places,
)
from engine.types.http.schema import DEFAULT_INTERVAL, DEFAULT_TIMEOUT, SCHEMA
from engine.types.http.service import OFF, HttpService, HttpSettings
from engine.types.http_client import GONE, HttpClient, ServiceError
from engine.types.live_object import LiveObject, UnreadableCode, UnreadableObject
from engine.types.observation import Observation
from engine.types.observed_list import ObservedList
from engine.types.operation_outcomes import CANCELLED
from engine.types.operator_credentials import Credentials
from engine.words import Json, ObservedState, ResourceId

#: A change of only these properties sends no request: they matter to later operations.
LATER_PROPERTIES = frozenset(
    {"attributes", "check", "compare", "credential", "delete", "find", "headers", "hidden", "id",
     "idempotency_header", "interval", "list", "read", "ready", "timeout", "update"}
)  # fmt: skip
#: The properties that a list request of the observer needs, and with which it judges an object.
LIST_PROPERTIES = ("base", "credential", "headers", "list", "ready")
#: Until an operation waits for the observer, if that could not be stored.
UNAVAILABLE_PAUSE = timedelta(seconds=1)
OTHER_ID_REMEDY = "Import the object by the ID that the response has."
LACKING_REMEDY = "Name paths that the response has in `ready` and `compare`."
#: Reasons for which no delete request is sent.
SAME_OBJECT = "the resource that has replaced it is the same object"
PERHAPS_SAME_OBJECT = (
    "not deleted, because the resource that has replaced it has the same ID and URL, and may be "
    "the same object; but its headers or credential differ: if it is another one, delete this one"
)


class Http(ResourceType):
    """The resource type: its operations, and what it waits for."""

    replaces_tainted = False
    uses_credential = False
    cancellable = True
    schema = SCHEMA

    def __init__(self, settings: HttpSettings, web: HttpClient, credentials: Credentials) -> None:
        self._service = HttpService(settings, web, credentials)
        self._observer = ObjectObserver(self._service)
        self.constraints = (credentials,)

    async def create(self, call: Call) -> Outcome:
        begun = RemoteObject.start(call)
        if call.cancelled:
            return _cancellation(begun if call.progress is None else object_in_progress(call))
        if call.progress is not None:
            return await self._run_guarded(
                call, object_in_progress(call), self._wait_until_ready(call)
            )
        return await self._run_guarded(call, begun, self._create(call, begun))

    async def update(self, call: Call) -> Outcome:
        remote = object_of(call)
        if call.cancelled:
            return _cancellation(remote)
        if call.progress is not None:
            return await self._run_guarded(
                call, object_in_progress(call), self._wait_until_ready(call)
            )
        if _sends_nothing(call, remote):
            return await self._run_guarded(call, remote, self._take_over(call, remote))
        if not call.properties.get("update"):
            return Replace()
        return await self._run_guarded(call, remote, self._change(call, remote))

    async def delete(self, call: Call) -> Outcome:
        if not call.properties.get("delete"):
            return Done(None)
        remote = object_of(call)
        return await self._run_guarded(call, remote, self._delete(call, remote))

    async def check(self, call: Call) -> Outcome:
        if not (call.properties.get("check") or call.properties.get("read")):
            reason = "CHECK not supported: no read"
            return Done(call.physical_id, call.attributes, call.data, reason, public_reason=reason)
        remote = object_of(call)
        return await self._run_guarded(call, remote, self._compare(call, remote))

    async def adopt(self, call: Call) -> Outcome:
        remote = object_of(call)
        if not call.properties.get("read"):
            return remote.done()
        return await self._run_guarded(call, remote, self._compare(call, remote))

    def observation_key(self, call: Call) -> str | None:
        if not self._service.settings.enabled:
            return None
        if call.properties.get("list"):
            return list_key(call.properties)
        reads = call.properties.get("check") or call.properties.get("read")
        return str(call.resource_id) if reads else None

    def observation_endpoint(self, call: Call) -> str:
        names = ("list", "check", "read")
        reads = next(filter(None, map(call.properties.get, names)), {"url": ""})
        return origin(address(call.properties, reads))

    def observed_paths(self, properties: Mapping[str, Json]) -> Collection[str] | None:
        compare = properties.get("compare", {})
        return list(compare) if isinstance(compare, Mapping) else None

    def adopted_places(
        self, properties: Mapping[str, Json], path: str
    ) -> Sequence[tuple[str, ...]]:
        return adopted_places(properties, path)

    def adopted_value(self, place: Sequence[str], value: Json) -> Json:
        return adopted_value(place, value)

    async def read_live(self, call: Call, imported: Collection[str]) -> LiveObject:
        """The given properties, in which the values of `compare` are those of the object. No hook
        precedes the request, so a request that can change something is refused."""
        if not call.properties.get("read"):
            raise UnreadableObject(
                UnreadableCode.INVALID,
                "properties",
                "the property read is missing: without it, the object cannot be read",
                "Give the requests of the resource: at least create and read.",
            )
        call = replace(call, properties=fill_defaults(self.schema, call.properties))
        findings = Findings()
        self.check_properties(call.properties, "properties", findings)
        for wrong in findings.all[:1]:
            code = UnreadableCode.INVALID
            raise UnreadableObject(code, wrong.place, wrong.reason, wrong.remedy)
        if unsafe := import_error(call.properties):
            raise UnreadableObject(UnreadableCode.INVALID, *unsafe)
        remote = object_of(call)
        try:
            content = parse_json("read", await self._service.send(call, "read", remote))
            if (other := other_object(remote, call.properties, content)) is not None:
                reason = self._service.mask_text(call, remote, other.reason)
                raise UnreadableObject(UnreadableCode.INVALID, "id", reason, OTHER_ID_REMEDY)
            observed = self._observer.observe_object(call, content)
            properties = with_live_values(call.properties, observed.differences, content)
        except (ServiceError, InvalidPath, PlaceholderError) as error:
            raise self._unreadable(call, remote, error) from None
        if observed.state in (ObservedState.DEGRADED, ObservedState.UNKNOWN):
            remedy = LACKING_REMEDY if observed.incomplete else "Repair the object first."
            raise UnreadableObject(UnreadableCode.UNSUPPORTED, "id", observed.reason, remedy)
        left = self._observer.observe_object(replace(call, properties=properties), content)
        secrets = list(secret_header_places(properties))
        return LiveObject("", properties, differences=left.differences, secrets=secrets)

    def _unreadable(self, call: Call, remote: RemoteObject, error: Exception) -> UnreadableObject:
        status = error.status if isinstance(error, ServiceError) else 0
        code, remedy = UnreadableCode.UNAVAILABLE, "Check the ID, the URL and the credential."
        if status in GONE:
            code = UnreadableCode.MISSING
        elif status in (401, 403):
            code = UnreadableCode.FORBIDDEN
        return UnreadableObject(
            code, "id", self._service.mask_text(call, remote, str(error)), remedy
        )

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        return await self._observer.observe(calls)

    def observed_list(self, call: Call) -> ObservedList | None:
        return self._observer.observed_list(call)

    async def read_objects(
        self, project: str, definition: Mapping[str, Json]
    ) -> AsyncIterator[Mapping[str, Json]]:
        try:
            async for page in self._service.pages(project, definition, definition["values"]):
                yield dict(page)
        except ServiceError as error:
            reason = error.public or "list: the request failed"
            raise ObjectsUnknown(reason, error.throttled) from None
        except (InvalidPath, PlaceholderError):
            raise ObjectsUnknown("list: the request is not valid") from None

    def objects_endpoint(self, definition: Mapping[str, Json]) -> str:
        return origin(address(definition, definition["list"]))

    def is_complete(self, definition: Mapping[str, Json], found: Json) -> bool:
        return readiness(definition["ready"], found)[0] is not Readiness.NOT_YET

    def needs_replace(self, call: Call) -> bool:
        return not _sends_nothing(call, object_of(call)) and not call.properties.get("update")

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        if not self._service.settings.enabled:
            findings.add(place, *OFF)
            return
        check(properties, self._service.web.refusal, place, findings)
        max_timeout = self._service.settings.max_timeout.total_seconds()
        if (properties.get("timeout") or 0) > max_timeout:
            findings.add(
                f"{place}.timeout",
                f"is longer than the {max_timeout:g} seconds allowed here",
                "The operator sets the longest: [resource_types.http] max_timeout.",
            )

    async def _create(self, call: Call, remote: RemoteObject) -> Outcome:
        if reason := missing_property(call.properties):
            raise ServiceError(reason, public="create: the properties are not valid")
        found = await self._find(call, remote) if call.properties.get("find") else None
        if found is not None:
            return Wait(call.now, progress_of(replace(remote, id=found)))
        response = await self._service.send(call, "create", remote)
        reads = is_path(call.properties.get("id")) or call.properties.get("attributes")
        content = parse_json("create", response) if reads else None
        object_id = id_in(call.properties.get("id"), remote.key, content)
        if object_id is None and call.properties.get("find"):
            object_id = await self._find(call, remote)
        if object_id is None:
            raise ServiceError(
                f"create: the response has no id at {call.properties['id']}",
                public="create: the response has no id",
            )
        remote = with_response(replace(remote, id=object_id), call.properties, content)
        if completes_by_list(call.properties):
            return await self._wait_for_observer(call, remote)
        return then_read(call, remote)

    async def _change(self, call: Call, remote: RemoteObject) -> Outcome:
        response = await self._service.send(call, "update", remote)
        reads = call.properties.get("attributes") and not call.properties.get("read")
        content = parse_json("update", response) if reads else None
        if other_object(remote, call.properties, content) is not None:
            content = None  # for example a task: attributes keep their values
        remote = with_response(remote, call.properties, content)
        if completes_by_list(call.properties):
            return await self._wait_for_observer(call, remote)
        return then_read(call, remote)

    async def _take_over(self, call: Call, remote: RemoteObject) -> Outcome:
        """An update that sends nothing. If it changes where responses have the ID, they must have
        that of the object there: no later response will have another one."""
        name = next(filter(call.properties.get, ("read", "check")), None)
        if name and "id" in call.changed:
            try:
                content = parse_json(name, await self._service.send(call, name, remote))
            except ServiceError:
                content = None  # says nothing about the ID
            if (other := other_object(remote, call.properties, content)) is not None:
                public = (
                    f"{name}: the response has another ID at {other.path} than this object, which"
                    f' is "{other.own_id[:KEPT]}". {OTHER_OBJECT_REMEDY}'
                )
                raise ServiceError(f"{name}: {other.reason}", public=public)
        return await self._wait_until_ready(call, remote)

    async def _find(self, call: Call, remote: RemoteObject) -> str | None:
        """The ID of the object that a lost request created; None if there is none."""
        try:
            response = await self._service.send(call, "find", remote)
        except ServiceError as error:
            if error.status in GONE:
                return None
            raise
        return id_in(call.properties.get("id"), remote.key, parse_json("find", response))

    async def _wait_until_ready(self, call: Call, remote: RemoteObject | None = None) -> Outcome:
        """Read until the object is ready. remote: at the first call, before there is progress."""
        remote = remote or object_in_progress(call)
        if completes_by_list(call.properties):
            return await self._wait_for_observer(call, remote)
        if not call.properties.get("read"):
            return with_response(remote, call.properties, None).done()
        since = since_of(call)
        try:
            content = parse_json("read", await self._service.send(call, "read", remote))
            if (other := other_object(remote, call.properties, content)) is not None:
                raise ServiceError(other.reason, retry=True, public=other.public)
            remote = with_response(remote, call.properties, content)
            how, state = readiness(call.properties.get("ready"), content)
        except ServiceError as error:
            early = call.properties.get("ready") and error.status in GONE
            if not (error.retry or early):
                raise
            how, state = Readiness.NOT_YET, str(error)
        if how is Readiness.READY:
            return remote.done()
        if how is Readiness.FAILED:
            raise ServiceError(f"the object has failed: {state}", public="the object has failed")
        if self._is_over(call, since):
            late = f"the object was not ready within {self._seconds(call):g} s"
            raise ServiceError(f"{late}: {state}", public=late)
        public = "the object is not ready"
        reason = f"{public}: {self._service.mask_text(call, remote, state)}"
        return poll_again(call, remote, since, reason, public=public)

    async def _wait_for_observer(self, call: Call, remote: RemoteObject) -> Outcome:
        """Wait until the observer finds the object ready or failed in the list. At the time limit,
        the object is read once more, if `read` is defined."""
        if self.completions is None:
            raise ServiceError("ready: no observer runs", public="ready: no observer runs")
        since, state = since_of(call), "unknown"
        progress = {**progress_of(remote), "since": since.isoformat()}
        try:
            found = await self.completions.wait(self._accepted_operation(call, remote))
        except Unavailable:  # the object is saved first
            return Wait(call.now + UNAVAILABLE_PAUSE, progress)
        except HeadgateError as error:
            raise ServiceError(str(error)) from None
        if found is None and self._is_over(call, since) and call.properties.get("read"):
            found = parse_json("read", await self._service.send(call, "read", remote))
            if (other := other_object(remote, call.properties, found)) is not None:
                found, state = None, other.reason
        if found is not None:
            remote = with_response(remote, call.properties, found)
            how, state = readiness(call.properties["ready"], found)
            if how is Readiness.READY:
                return remote.done()
            if how is Readiness.FAILED:
                raise ServiceError(
                    f"the object has failed: {state}", public="the object has failed"
                )
        if self._is_over(call, since):
            late = f"the object was not ready within {self._seconds(call):g} s"
            raise ServiceError(f"{late}: {state}", public=late)
        reason = "the object is not ready; the observer reads the list"
        until = since + timedelta(seconds=self._seconds(call))
        return Wait(until, progress, reason, public_reason=reason)

    def _accepted_operation(self, call: Call, remote: RemoteObject) -> AcceptedOperation:
        properties = call.properties
        definition = {name: properties[name] for name in LIST_PROPERTIES if name in properties}
        used = list(names_in([properties.get("headers"), properties["list"].get("headers")]))
        definition["values"] = {name: remote.values().get(name) for name in used}
        return AcceptedOperation(
            call.project,
            call.stack_id,
            call.operation_key,
            self.schema.name,
            list_key(properties),
            str(remote.id),
            definition,
            float(properties.get("interval") or DEFAULT_INTERVAL),
        )

    async def _delete(self, call: Call, remote: RemoteObject) -> Outcome:
        remote = await self._with_id(call, remote)
        if remote.id is None and "id" in names_in(call.properties["delete"]):
            reason = "unknown whether the lost request created an object"
            return Done(None, reason=reason, public_reason=reason)
        if call.progress is not None:
            return await self._wait_until_deleted(call, remote)
        if kept := await self._reason_to_keep(call, remote):
            return Done(None, reason=kept, public_reason=kept)
        try:
            response = await self._service.send(call, "delete", remote)
        except ServiceError as error:
            if error.status in GONE:
                return Done(None)
            raise
        if response.status == ACCEPTED and call.properties.get("read"):
            reason = "the service accepted the delete request"
            return poll_again(call, remote, call.now, reason, public=reason)
        return Done(None)

    async def _reason_to_keep(self, call: Call, remote: RemoteObject) -> str | None:
        """Why no delete request is sent: it would or could delete the object of the resource that
        has replaced this one, because the template chooses its ID. Raises ServiceError."""
        if self.successors is None:
            return None
        try:
            found = await self.successors.read(call.stack_id, call.resource_id)
        except HeadgateError as error:
            text = "the resource that has replaced this one cannot be read"
            raise ServiceError(f"{text}: {error}", retry=True, public=text) from None
        if found is None:
            return None
        new = RemoteObject.read(found.data, remote.id, remote.key)
        other = {**found.properties}
        other["delete"] = other.get("delete") or call.properties["delete"]
        try:
            is_same = is_same_request(
                build("delete", call.properties, remote.values(), ""),
                build("delete", other, new.values(), ""),
            )
        except PlaceholderError:
            return None
        if not is_same:
            return None
        return SAME_OBJECT if _access(call.properties) == _access(other) else PERHAPS_SAME_OBJECT

    async def _with_id(self, call: Call, remote: RemoteObject) -> RemoteObject:
        if remote.id is not None or not call.properties.get("find") or call.progress is not None:
            return remote
        return replace(remote, id=await self._find(call, remote))

    async def _wait_until_deleted(self, call: Call, remote: RemoteObject) -> Outcome:
        since = since_of(call)
        try:
            await self._service.send(call, "read", remote)
        except ServiceError as error:
            if error.status in GONE:
                return Done(None)
            if not error.retry:
                raise
        if self._is_over(call, since):
            seconds = self._seconds(call)
            late = f"delete was accepted, but the object still existed {seconds:g} s later"
            raise ServiceError(late, public=late)
        reason = "the service accepted the delete request, but the object still exists"
        return poll_again(call, remote, since, reason, public=reason)

    async def _compare(self, call: Call, remote: RemoteObject) -> Outcome:
        name = "check" if call.properties.get("check") else "read"
        try:
            content = parse_json(name, await self._service.send(call, name, remote))
        except ServiceError as error:
            if error.status in GONE:
                gone = f"the object does not exist: the service answered {error.status}"
                raise ServiceError(gone, public=gone) from None
            raise
        if (other := other_object(remote, call.properties, content)) is not None:
            raise ServiceError(other.reason, public=other.public)
        wrong = differing_paths(call.properties.get("compare"), content)
        if wrong:
            raise ServiceError(
                f"the object differs from `compare` at {', '.join(wrong)}",
                public="the object differs from `compare`",
            )
        how, state = readiness(call.properties.get("ready"), content)
        if how is not Readiness.READY:
            raise ServiceError(
                f"the object is not ready: {state}", public="the object is not ready"
            )
        return with_response(remote, call.properties, content if name == "read" else None).done()

    async def _run_guarded(
        self, call: Call, remote: RemoteObject, run: Awaitable[Outcome]
    ) -> Outcome:
        """Convert errors to Failed, with the data of the object."""
        try:
            return await run
        except ServiceError as error:
            reason, retry = self._service.mask_text(call, remote, str(error)), error.retry
            public = error.public
        except (InvalidPath, PlaceholderError) as error:  # values that validation did not know
            reason, retry, public = str(error), False, ""
        data = remote.data(unfinished=True)
        return Failed(reason, remote.id, data, retry=retry, public_reason=public)

    def _is_over(self, call: Call, since: datetime) -> bool:
        return call.now >= since + timedelta(seconds=self._seconds(call))

    def _seconds(self, call: Call) -> float:
        timeout = float(call.properties.get("timeout") or DEFAULT_TIMEOUT)
        return min(timeout, self._service.settings.max_timeout.total_seconds())


def _cancellation(remote: RemoteObject) -> Failed:
    """The failure of a cancelled operation, with the object that may exist."""
    data = remote.data(unfinished=True)
    return Failed(CANCELLED, remote.id, data, public_reason=CANCELLED)


def _sends_nothing(call: Call, remote: RemoteObject) -> bool:
    """Whether only properties in LATER_PROPERTIES changed, and the last operation did not fail."""
    return bool(call.changed) and call.changed <= LATER_PROPERTIES and not remote.unfinished


def _access(properties: Mapping[str, Json]) -> tuple[Json, Mapping[str, str]]:
    """What can make a service find another object at the URL of the delete request, such as the
    name of a tenant; it can also be another token for the same object.

    Values of placeholders do not count: they are of the object itself.
    """
    headers = header_templates(properties, properties["delete"])
    return properties.get("credential"), {name.lower(): text for name, text in headers.items()}
