"""Headgate::HTTP: a resource that HTTP requests to a service create, update and delete.

A request that changes something has the operation key, and is not repeated once its response is
saved. After a crash before that, the operation first looks for the object of the lost request, if
the template defines `find`; otherwise it repeats the request with the same key.
"""

import asyncio
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from engine.errors import Findings, HeadgateError, Unavailable, nearest
from engine.hot.schema.properties import fill_defaults
from engine.types.completion import AcceptedOperation, ObjectsUnknown
from engine.types.contract import Call, Done, Failed, Outcome, Replace, ResourceType, Wait
from engine.types.http.adoption import adopted_places, with_live_values
from engine.types.http.json_paths import InvalidPath, is_path, read_path
from engine.types.http.observation import (
    MAX_PAGES,
    list_key,
    next_page,
    observe_object,
    read_page,
)
from engine.types.http.remote_object import (
    ACCEPTED,
    Readiness,
    RemoteObject,
    check_status,
    completes_by_list,
    differing_paths,
    id_in,
    object_in_progress,
    object_of,
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
    header_error,
    header_templates,
    import_error,
    is_same_request,
    names_in,
    origin,
    secret_header_places,
)
from engine.types.http.schema import DEFAULT_INTERVAL, DEFAULT_TIMEOUT, METHODS, SCHEMA
from engine.types.http_client import (
    GONE,
    HttpClient,
    NoResponse,
    Request,
    Response,
    ServiceError,
)
from engine.types.live_object import LiveObject, UnreadableCode, UnreadableObject
from engine.types.observation import Observation, request_sent
from engine.types.operation_outcomes import CANCELLED
from engine.types.operator_credentials import CredentialDenied, Credentials
from engine.types.text_cleaning import MIN_SECRET_LENGTH, mask_secrets
from engine.words import Json, ObservedState, ResourceId

#: (place below the properties, reason, remedy)
Wrong = tuple[str, str, str]
#: Returns (reason, remedy) for a URL that the egress policy denies.
Refusal = Callable[[str], tuple[str, str] | None]

#: The placeholders that are known before the resource is created.
BEFORE = ("key",)
_PATH = "Write a path such as $.status.phase; see docs/reference/resource-types.md."


def check(properties: Mapping[str, Json], refusal: Refusal, place: str, findings: Findings) -> None:
    """Add findings. properties: without values that are unknown before creation."""
    for where, reason, remedy in _all(properties, refusal):
        findings.add(f"{place}.{where}", reason, remedy)


def _all(properties: Mapping[str, Json], refusal: Refusal) -> Iterator[Wrong]:
    for name in METHODS:
        if isinstance(properties.get(name), Mapping):
            yield from _request(name, properties, refusal)
    yield from _headers("headers", properties.get("headers"))
    yield from _paths(properties)
    attributes = properties.get("attributes")
    if isinstance(attributes, Mapping):
        for name in properties.get("hidden") or []:
            if name not in attributes:
                remedy = nearest(str(name), list(attributes)) or "Add it to `attributes`."
                yield "hidden", f'hides "{name}", which is not one of its attributes', remedy
    header = properties.get("idempotency_header")
    if isinstance(header, str) and header and (wrong := header_error(header, "")):
        yield "idempotency_header", wrong, "Name another header."


def _request(name: str, properties: Mapping[str, Json], refusal: Refusal) -> Iterator[Wrong]:
    request = properties[name]
    if name == "list":
        known: list[str] | None = []
    else:
        known = [*BEFORE] if name in ("create", "find") else _known_after(properties)
    for one in dict.fromkeys(
        names_in({key: request.get(key) for key in ("url", "headers", "body")})
    ):
        if known is not None and one not in known:
            known_here = f"Known here: {', '.join(known)}." if known else "Write the value itself."
            remedy = nearest(one, known) or known_here
            yield name, f"${{{one}}} is not known in this request", remedy
    yield from _headers(f"{name}.headers", request.get("headers"))
    if "url" in request and ("base" in properties or not str(request["url"]).startswith("/")):
        yield from _address(name, address(properties, request), refusal)


def _known_after(properties: Mapping[str, Json]) -> list[str] | None:
    """The placeholders in requests after create; None if they are not known yet."""
    attributes = properties.get("attributes") or {}
    hidden = properties.get("hidden") or []
    if not isinstance(attributes, Mapping):
        return None
    kinds = {one: "secrets" if one in hidden else "outputs" for one in attributes}
    return ["id", "key", *(f"{kind}.{one}" for one, kind in kinds.items())]


def _address(name: str, url: str, refusal: Refusal) -> Iterator[Wrong]:
    server = origin(url)
    if "${" in server or not server:
        remedy = "Write https://host/path; use placeholders only after the host."
        yield f"{name}.url", "has no fixed host", remedy
    elif (wrong := refusal(server)) is not None:
        yield f"{name}.url", *wrong


def _headers(place: str, headers: Json) -> Iterator[Wrong]:
    for name, value in (headers if isinstance(headers, Mapping) else {}).items():
        if value is not None and (wrong := header_error(str(name), value)):
            yield f"{place}.{name}", wrong, "Remove or correct it."


def _paths(properties: Mapping[str, Json]) -> Iterator[Wrong]:
    paths: dict[str, Json] = {}
    if is_path(properties.get("id")):
        paths["id"] = properties["id"]
    if isinstance(properties.get("attributes"), Mapping):
        paths |= {f"attributes.{name}": one for name, one in properties["attributes"].items()}
    if isinstance(properties.get("compare"), Mapping):
        paths |= {f"compare.{one}": one for one in properties["compare"]}
    if isinstance(properties.get("ready"), Mapping) and "path" in properties["ready"]:
        paths["ready.path"] = properties["ready"]["path"]
    if isinstance(listing := properties.get("list"), Mapping):
        known = ("items", "id", "next")
        paths |= {f"list.{name}": listing[name] for name in known if name in listing}
    for place, path in paths.items():
        try:
            read_path(path if isinstance(path, str) else "")
        except InvalidPath as error:
            yield place, str(error), _PATH


def missing_property(properties: Mapping[str, Json]) -> str | None:
    """The reason why a property lacks another one that it needs; None if there is none."""
    source = (properties.get("ready") or {}).get("source", "read")
    if properties.get("ready") and not properties.get(source):
        return f"ready uses the result of {source}, which is missing"
    if properties.get("compare") and not any(map(properties.get, ("read", "check", "list"))):
        return "compare uses the result of read, which is missing"
    if properties.get("find") and not is_path(properties.get("id")):
        return "find needs the JSON path of the ID in the property id"
    return None


__all__ = ["Http", "HttpSettings"]

#: A change of only these properties sends no request: they matter to later operations.
LATER_PROPERTIES = frozenset(
    {"attributes", "check", "compare", "credential", "delete", "find", "headers", "hidden", "id",
     "idempotency_header", "interval", "list", "read", "ready", "timeout", "update"}
)  # fmt: skip
#: Items of a list between which other work of the process continues.
ITEMS_AT_ONCE = 50
#: The properties that a list request of the observer needs, and with which it judges an object.
LIST_PROPERTIES = ("base", "credential", "headers", "list", "ready")
#: Until an operation waits for the observer, if that could not be stored.
UNAVAILABLE_PAUSE = timedelta(seconds=1)
_ABSENT = "the list of the service does not have it"
_OFF = (
    "Headgate::HTTP is off on this server",
    "The operator turns it on: [resource_types.http] enabled = true.",
)


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """max_timeout: the upper limit for the property `timeout`."""

    enabled: bool = False
    max_timeout: timedelta = timedelta(hours=1)


#: Reasons for which no delete request is sent.
SAME_OBJECT = "the resource that has replaced it is the same object"
PERHAPS_SAME_OBJECT = (
    "not deleted, because the resource that has replaced it has the same ID and URL, and may be "
    "the same object; but its headers or credential differ: if it is another one, delete this one"
)


class Http(ResourceType):
    replaces_tainted = False
    uses_credential = False
    cancellable = True
    schema = SCHEMA

    def __init__(self, settings: HttpSettings, web: HttpClient, credentials: Credentials) -> None:
        self._settings = settings
        self._web = web
        self._credentials = credentials
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
            return await self._run_guarded(call, remote, self._wait_until_ready(call, remote))
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
        if not self._settings.enabled:
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
            content = parse_json("read", await self._send(call, "read", remote))
            observed = self._observe_object(call, content)
            properties = with_live_values(call.properties, observed.differences, content)
        except (ServiceError, InvalidPath, PlaceholderError) as error:
            raise self._unreadable(call, remote, error) from None
        if observed.state in (ObservedState.DEGRADED, ObservedState.UNKNOWN):
            raise UnreadableObject(
                UnreadableCode.UNSUPPORTED, "id", observed.reason, "Repair the object first."
            )
        left = self._observe_object(replace(call, properties=properties), content)
        secrets = list(secret_header_places(properties))
        return LiveObject("", properties, differences=left.differences, secrets=secrets)

    def _unreadable(self, call: Call, remote: RemoteObject, error: Exception) -> UnreadableObject:
        status = error.status if isinstance(error, ServiceError) else 0
        code, remedy = UnreadableCode.UNAVAILABLE, "Check the ID, the URL and the credential."
        if status in GONE:
            code = UnreadableCode.MISSING
        elif status in (401, 403):
            code = UnreadableCode.FORBIDDEN
        return UnreadableObject(code, "id", self._mask_text(call, remote, str(error)), remedy)

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        """An object that one list lacks may have moved between its pages: only if a second list
        lacks it as well, it is missing.
        """
        if not calls[0].properties.get("list"):
            return {call.resource_id: await self._observe_alone(call) for call in calls}
        try:
            found = await self._observe_listed(calls)
            if absent := [call for call in calls if call.resource_id not in found]:
                found |= await self._observe_listed(absent)
            missing = Observation(ObservedState.MISSING, (), _ABSENT, _ABSENT)
            return {call.resource_id: found.get(call.resource_id, missing) for call in calls}
        except (ServiceError, InvalidPath, PlaceholderError) as error:
            unknown = self._unknown(calls[0], object_of(calls[0]), error)
            return {call.resource_id: unknown for call in calls}

    async def _observe_alone(self, call: Call) -> Observation:
        remote, name = object_of(call), "check" if call.properties.get("check") else "read"
        try:
            content = parse_json(name, await self._send(call, name, remote))
        except ServiceError as error:
            if error.status in GONE:
                gone = f"the service answered {error.status}"
                return Observation(ObservedState.MISSING, (), gone, gone)
            return self._unknown(call, remote, error)
        except (InvalidPath, PlaceholderError) as error:
            return self._unknown(call, remote, error)
        return self._observe_object(call, content)

    async def _observe_listed(self, calls: Sequence[Call]) -> dict[ResourceId, Observation]:
        """The objects that are in the list, one page after another: no page is kept. Raises
        ServiceError, InvalidPath, PlaceholderError.
        """
        by_id: dict[str, list[Call]] = {}
        for call in calls:
            by_id.setdefault(str(call.physical_id), []).append(call)
        found: dict[ResourceId, Observation] = {}
        first = calls[0]
        values = object_of(first).values()
        async for page in self._pages(first.project, first.properties, values):
            for number, (item_id, item) in enumerate(page):
                for call in by_id.get(item_id, ()):
                    found[call.resource_id] = self._observe_object(call, item)
                if number % ITEMS_AT_ONCE == 0:
                    await asyncio.sleep(0)  # a page may have any number of items
        return found

    async def _pages(
        self, project: str, properties: Mapping[str, Json], values: Mapping[str, Json]
    ) -> AsyncIterator[Iterator[tuple[str, Json]]]:
        """Yield the IDs and the items of each page of the list. values: of placeholders.

        Raises ServiceError, also while a page is read; InvalidPath, PlaceholderError.
        """
        listing, url = properties["list"], ""
        for _ in range(MAX_PAGES):
            response, request = await self._send_request("list", project, properties, values, url)
            content = parse_json("list", response)
            yield read_page(listing, content)
            url = next_page(listing, content, request.url) or ""
            if not url:
                return
        reason = f"list: there are more than {MAX_PAGES} pages"
        raise ServiceError(reason, public=reason)

    async def read_objects(
        self, project: str, definition: Mapping[str, Json]
    ) -> AsyncIterator[Mapping[str, Json]]:
        try:
            async for page in self._pages(project, definition, definition["values"]):
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

    def _observe_object(self, call: Call, content: Json) -> Observation:
        remote = object_of(call)
        try:
            return observe_object(call.properties, content, self._secrets(call, remote))
        except InvalidPath as error:
            return self._unknown(call, remote, error)

    def _unknown(self, call: Call, remote: RemoteObject, error: Exception) -> Observation:
        service = error if isinstance(error, ServiceError) else ServiceError("")
        text = self._mask_text(call, remote, str(error))
        return Observation.unknown(text, service.public, service.throttled)

    def needs_replace(self, call: Call) -> bool:
        return not _sends_nothing(call, object_of(call)) and not call.properties.get("update")

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        if not self._settings.enabled:
            findings.add(place, *_OFF)
            return
        check(properties, self._web.refusal, place, findings)
        max_timeout = self._settings.max_timeout.total_seconds()
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
        response = await self._send(call, "create", remote)
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
        response = await self._send(call, "update", remote)
        reads = call.properties.get("attributes") and not call.properties.get("read")
        content = parse_json("update", response) if reads else None
        remote = with_response(remote, call.properties, content)
        if completes_by_list(call.properties):
            return await self._wait_for_observer(call, remote)
        return then_read(call, remote)

    async def _find(self, call: Call, remote: RemoteObject) -> str | None:
        """The ID of the object that a lost request created; None if there is none."""
        try:
            response = await self._send(call, "find", remote)
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
            content = parse_json("read", await self._send(call, "read", remote))
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
        reason = f"{public}: {self._mask_text(call, remote, state)}"
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
            found = parse_json("read", await self._send(call, "read", remote))
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
            response = await self._send(call, "delete", remote)
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
            await self._send(call, "read", remote)
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
            content = parse_json(name, await self._send(call, name, remote))
        except ServiceError as error:
            if error.status in GONE:
                gone = f"the object does not exist: the service answered {error.status}"
                raise ServiceError(gone, public=gone) from None
            raise
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

    async def _send(self, call: Call, name: str, remote: RemoteObject) -> Response:
        """Send one request. Raises ServiceError unless its response is a success."""
        key = str(call.operation_key)
        response, _ = await self._send_request(
            name, call.project, call.properties, remote.values(), key=key
        )
        return response

    async def _send_request(
        self,
        name: str,
        project: str,
        properties: Mapping[str, Json],
        values: Mapping[str, Json],
        url: str = "",
        key: str = "",
    ) -> tuple[Response, Request]:
        """As `_send`, also returning the request. url: in place of that of the properties. key: of
        the operation."""
        if not self._settings.enabled:
            off = ". ".join(_OFF)
            raise ServiceError(off, public=off)
        definition = properties[name]
        try:
            request = build(name, properties, values, key)
            request = replace(request, url=url) if url else request
            if credential := properties.get("credential"):
                headers = self._credentials.headers(credential, project, request.url)
                request = replace(request, headers={**request.headers, **headers})
            request_sent()
            response = await self._web.send(request)
        except (PlaceholderError, CredentialDenied) as error:
            public = f"{name}: the request is not valid"
            raise ServiceError(f"{name}: {error}", public=public) from None
        except NoResponse as error:
            public = f"{name}: the service did not answer"
            raise ServiceError(f"{name}: {error}", retry=error.retry, public=public) from None
        check_status(name, response, definition.get("expect") or [])
        return response, request

    async def _run_guarded(
        self, call: Call, remote: RemoteObject, run: Awaitable[Outcome]
    ) -> Outcome:
        """Convert errors to Failed, with the data of the object."""
        try:
            return await run
        except ServiceError as error:
            reason, retry = self._mask_text(call, remote, str(error)), error.retry
            public = error.public
        except (InvalidPath, PlaceholderError) as error:  # values that validation did not know
            reason, retry, public = str(error), False, ""
        data = remote.data(unfinished=True)
        return Failed(reason, remote.id, data, retry=retry, public_reason=public)

    def _mask_text(self, call: Call, remote: RemoteObject, text: str) -> str:
        """A text from a service with the secrets of the requests masked."""
        sent = [call.properties.get(name) or {} for name in METHODS]
        bodies = _texts([one.get("body") for one in sent])
        secrets = [*self._secrets(call, remote), *self._credentials.secrets()]
        return mask_secrets(text, [*bodies, *secrets])

    def _secrets(self, call: Call, remote: RemoteObject) -> list[str]:
        """Values of hidden attributes, and credentials in requests that a service may repeat."""
        sent = [call.properties, *(call.properties.get(name) or {} for name in METHODS)]
        headers = _texts([one.get("headers") for one in sent])
        known = self._credentials.secrets() if call.properties.get("credential") else []
        long = [text for text in (*headers, *known) if len(text) >= MIN_SECRET_LENGTH]
        return [*_texts(remote.secrets), *long]

    def _is_over(self, call: Call, since: datetime) -> bool:
        return call.now >= since + timedelta(seconds=self._seconds(call))

    def _seconds(self, call: Call) -> float:
        timeout = float(call.properties.get("timeout") or DEFAULT_TIMEOUT)
        return min(timeout, self._settings.max_timeout.total_seconds())


def _cancellation(remote: RemoteObject) -> Failed:
    """The failure of a cancelled operation, with the object that may exist."""
    data = remote.data(unfinished=True)
    return Failed(CANCELLED, remote.id, data, public_reason=CANCELLED)


def _sends_nothing(call: Call, remote: RemoteObject) -> bool:
    """Whether only properties in LATER_PROPERTIES changed, and the last operation did not fail."""
    return bool(call.changed) and call.changed <= LATER_PROPERTIES and not remote.unfinished


def _texts(value: Json) -> list[str]:
    """All strings in a value, at any depth, without keys."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []


def _access(properties: Mapping[str, Json]) -> tuple[Json, Mapping[str, str]]:
    """What can make a service find another object at the URL of the delete request, such as the
    name of a tenant; it can also be another token for the same object.

    Values of placeholders do not count: they are of the object itself.
    """
    headers = header_templates(properties, properties["delete"])
    return properties.get("credential"), {name.lower(): text for name, text in headers.items()}
