"""Headgate::HTTP: a resource that HTTP requests to a service create, update and delete.

A request that changes something has the operation key, and is not repeated once its response is
saved. After a crash before that, the operation first looks for the object of the lost request, if
the template defines `find`; otherwise it repeats the request with the same key.
"""

from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from engine.errors import Findings
from engine.types.contract import Call, Done, Failed, Outcome, Replace, ResourceType, Wait
from engine.types.credentials import CredentialDenied, Credentials
from engine.types.http.json_paths import InvalidPath, is_path
from engine.types.http.placeholders import PlaceholderError, names_in
from engine.types.http.remote_object import (
    RemoteObject,
    object_in_progress,
    object_of,
    poll_again,
    progress_of,
    since_of,
    then_read,
)
from engine.types.http.requests import build
from engine.types.http.responses import (
    ACCEPTED,
    Readiness,
    check_status,
    document,
    drifted,
    id_in,
    readiness,
    with_response,
)
from engine.types.http.schema import DEFAULT_TIMEOUT, METHODS, SCHEMA
from engine.types.http.validation import check, missing_property
from engine.types.http_client import GONE, HttpClient, NoResponse, Response, ServiceError
from engine.types.text_cleaning import mask_secrets
from engine.words import Json

__all__ = ["Http", "HttpSettings"]

#: A change of only these properties sends no request: they matter to later operations.
LATER = frozenset(
    {"attributes", "check", "compare", "credential", "delete", "find", "headers", "hidden", "id",
     "idempotency_header", "interval", "read", "ready", "timeout", "update"}
)  # fmt: skip
_OFF = (
    "Headgate::HTTP is off on this server",
    "The operator turns it on: [resource_types.http] enabled = true.",
)


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """max_timeout: the upper limit for the property `timeout`."""

    enabled: bool = False
    max_timeout: timedelta = timedelta(hours=1)


class Http(ResourceType):
    replaces_tainted = False
    uses_credential = False
    schema = SCHEMA

    def __init__(self, settings: HttpSettings, web: HttpClient, credentials: Credentials) -> None:
        self._settings = settings
        self._web = web
        self._credentials = credentials
        self.constraints = (credentials,)

    async def create(self, call: Call) -> Outcome:
        begun = RemoteObject.begun(call)
        if call.progress is not None:
            return await self._guarded(call, object_in_progress(call), self._wait_until_ready(call))
        return await self._guarded(call, begun, self._create(call, begun))

    async def update(self, call: Call) -> Outcome:
        made = object_of(call)
        if call.progress is not None:
            return await self._guarded(call, object_in_progress(call), self._wait_until_ready(call))
        if _sends_nothing(call, made):
            return await self._guarded(call, made, self._wait_until_ready(call, made))
        if not call.properties.get("update"):
            return Replace()
        return await self._guarded(call, made, self._change(call, made))

    async def delete(self, call: Call) -> Outcome:
        if not call.properties.get("delete"):
            return Done(None)
        made = object_of(call)
        return await self._guarded(call, made, self._delete(call, made))

    async def check(self, call: Call) -> Outcome:
        if not (call.properties.get("check") or call.properties.get("read")):
            reason = "CHECK not supported: no read"
            return Done(call.physical_id, call.attributes, call.data, reason, public_reason=reason)
        made = object_of(call)
        return await self._guarded(call, made, self._compare(call, made))

    async def adopt(self, call: Call) -> Outcome:
        made = object_of(call)
        if not call.properties.get("read"):
            return made.done()
        return await self._guarded(call, made, self._compare(call, made))

    def needs_replace(self, call: Call) -> bool:
        return not _sends_nothing(call, object_of(call)) and not call.properties.get("update")

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        if not self._settings.enabled:
            findings.add(place, *_OFF)
            return
        check(properties, self._web.refusal, place, findings)
        most = self._settings.max_timeout.total_seconds()
        if (properties.get("timeout") or 0) > most:
            findings.add(
                f"{place}.timeout",
                f"is longer than the {most:g} seconds allowed here",
                "The operator sets the longest: [resource_types.http] max_timeout.",
            )

    async def _create(self, call: Call, made: RemoteObject) -> Outcome:
        if reason := missing_property(call.properties):
            raise ServiceError(reason, public="create: the properties are not valid")
        found = await self._find(call, made) if call.properties.get("find") else None
        if found is not None:
            return Wait(call.now, progress_of(replace(made, id=found)))
        response = await self._send(call, "create", made)
        reads = is_path(call.properties.get("id")) or call.properties.get("attributes")
        answered = document("create", response) if reads else None
        made_id = id_in(call.properties.get("id"), made.key, answered)
        if made_id is None and call.properties.get("find"):
            made_id = await self._find(call, made)
        if made_id is None:
            raise ServiceError(
                f"create: the response has no id at {call.properties['id']}",
                public="create: the response has no id",
            )
        return then_read(call, with_response(replace(made, id=made_id), call.properties, answered))

    async def _change(self, call: Call, made: RemoteObject) -> Outcome:
        response = await self._send(call, "update", made)
        reads = call.properties.get("attributes") and not call.properties.get("read")
        answered = document("update", response) if reads else None
        return then_read(call, with_response(made, call.properties, answered))

    async def _find(self, call: Call, made: RemoteObject) -> str | None:
        """The ID of the object that a lost request created; None if there is none."""
        try:
            response = await self._send(call, "find", made)
        except ServiceError as error:
            if error.status in GONE:
                return None
            raise
        return id_in(call.properties.get("id"), made.key, document("find", response))

    async def _wait_until_ready(self, call: Call, made: RemoteObject | None = None) -> Outcome:
        """Read until the object is ready. made: at the first call, before there is progress."""
        made = made or object_in_progress(call)
        if not call.properties.get("read"):
            return with_response(made, call.properties, None).done()
        since = since_of(call)
        try:
            answered = document("read", await self._send(call, "read", made))
            made = with_response(made, call.properties, answered)
            how, state = readiness(call.properties.get("ready"), answered)
        except ServiceError as error:
            early = call.properties.get("ready") and error.status in GONE
            if not (error.retry or early):
                raise
            how, state = Readiness.NOT_YET, str(error)
        if how is Readiness.READY:
            return made.done()
        if how is Readiness.FAILED:
            raise ServiceError(f"the object has failed: {state}", public="the object has failed")
        if self._is_over(call, since):
            late = f"the object was not ready within {self._seconds(call):g} s"
            raise ServiceError(f"{late}: {state}", public=late)
        public = "the object is not ready"
        reason = f"{public}: {self._masked(call, made, state)}"
        return poll_again(call, made, since, reason, public=public)

    async def _delete(self, call: Call, made: RemoteObject) -> Outcome:
        made = await self._with_id(call, made)
        if made.id is None and "id" in names_in(call.properties["delete"]):
            reason = "unknown whether the lost request created an object"
            return Done(None, reason=reason, public_reason=reason)
        if call.progress is not None:
            return await self._wait_until_deleted(call, made)
        try:
            response = await self._send(call, "delete", made)
        except ServiceError as error:
            if error.status in GONE:
                return Done(None)
            raise
        if response.status == ACCEPTED and call.properties.get("read"):
            reason = "the service accepted the delete request"
            return poll_again(call, made, call.now, reason, public=reason)
        return Done(None)

    async def _with_id(self, call: Call, made: RemoteObject) -> RemoteObject:
        if made.id is not None or not call.properties.get("find") or call.progress is not None:
            return made
        return replace(made, id=await self._find(call, made))

    async def _wait_until_deleted(self, call: Call, made: RemoteObject) -> Outcome:
        since = since_of(call)
        try:
            await self._send(call, "read", made)
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
        return poll_again(call, made, since, reason, public=reason)

    async def _compare(self, call: Call, made: RemoteObject) -> Outcome:
        name = "check" if call.properties.get("check") else "read"
        try:
            answered = document(name, await self._send(call, name, made))
        except ServiceError as error:
            if error.status in GONE:
                gone = f"the object does not exist: the service answered {error.status}"
                raise ServiceError(gone, public=gone) from None
            raise
        wrong = drifted(call.properties.get("compare"), answered)
        if wrong:
            raise ServiceError(
                f"the object differs from `compare` at {', '.join(wrong)}",
                public="the object differs from `compare`",
            )
        how, state = readiness(call.properties.get("ready"), answered)
        if how is not Readiness.READY:
            raise ServiceError(
                f"the object is not ready: {state}", public="the object is not ready"
            )
        return with_response(made, call.properties, answered if name == "read" else None).done()

    async def _send(self, call: Call, name: str, made: RemoteObject) -> Response:
        """Send one request. Raises ServiceError unless its response is a success."""
        if not self._settings.enabled:
            off = ". ".join(_OFF)
            raise ServiceError(off, public=off)
        definition = call.properties[name]
        try:
            request = build(name, call.properties, made.values(), str(call.operation_key))
            if lent := call.properties.get("credential"):
                headers = self._credentials.headers(lent, call.project, request.url)
                request = replace(request, headers={**request.headers, **headers})
            response = await self._web.ask(request)
        except (PlaceholderError, CredentialDenied) as error:
            public = f"{name}: the request is not valid"
            raise ServiceError(f"{name}: {error}", public=public) from None
        except NoResponse as error:
            public = f"{name}: the service did not answer"
            raise ServiceError(f"{name}: {error}", retry=error.retry, public=public) from None
        check_status(name, response, definition.get("expect") or [])
        return response

    async def _guarded(self, call: Call, made: RemoteObject, run: Awaitable[Outcome]) -> Outcome:
        """Convert errors to Failed, with the data of the object."""
        try:
            return await run
        except ServiceError as error:
            reason, retry = self._masked(call, made, str(error)), error.retry
            public = error.public
        except (InvalidPath, PlaceholderError) as error:  # values that validation did not know
            reason, retry, public = str(error), False, ""
        data = made.data(unfinished=True)
        return Failed(reason, made.id, data, retry=retry, public_reason=public)

    def _masked(self, call: Call, made: RemoteObject, text: str) -> str:
        """A text from a service with the secrets of the requests masked."""
        sent = [call.properties.get(name) or {} for name in METHODS]
        given = [one.get(part) for one in sent for part in ("headers", "body")]
        secrets = _texts([call.properties.get("headers"), *given, made.secrets])
        return mask_secrets(text, [*secrets, *self._credentials.secrets()])

    def _is_over(self, call: Call, since: datetime) -> bool:
        return call.now >= since + timedelta(seconds=self._seconds(call))

    def _seconds(self, call: Call) -> float:
        asked = float(call.properties.get("timeout") or DEFAULT_TIMEOUT)
        return min(asked, self._settings.max_timeout.total_seconds())


def _sends_nothing(call: Call, made: RemoteObject) -> bool:
    """Whether only properties in LATER changed, and the last operation did not fail."""
    return bool(call.changed) and call.changed <= LATER and not made.unfinished


def _texts(value: Json) -> list[str]:
    """All strings in a value, at any depth, without keys."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []
