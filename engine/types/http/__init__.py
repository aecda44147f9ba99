"""Headgate::HTTP: a resource made, changed and cleared away by requests to a service.

A request that changes something carries the key of its operation, and is not sent again once its
answer was saved. An operation that is called again before that looks for what the lost one made,
where the template says how (`find`), and else sends it again with the same key.
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
    look_again,
    made_of,
    progress_of,
    saved,
    since_of,
    then_read,
)
from engine.types.http.requests import build
from engine.types.http.responses import (
    ACCEPTED,
    Readiness,
    document,
    drifted,
    id_in,
    judge,
    readiness,
    with_response,
)
from engine.types.http.schema import DEFAULT_TIMEOUT, METHODS, SCHEMA
from engine.types.http.validation import check, lacking
from engine.types.http_client import GONE, HttpClient, NoResponse, Response, ServiceError
from engine.types.text_cleaning import mask_secrets
from engine.words import Json

__all__ = ["Http", "HttpSettings"]

#: A change of these alone sends nothing: they say what to do later, and how to read.
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
    """max_timeout: the longest that a template may wait for something to be ready."""

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
            return await self._guarded(call, saved(call), self._settled(call))
        return await self._guarded(call, begun, self._make(call, begun))

    async def update(self, call: Call) -> Outcome:
        made = made_of(call)
        if call.progress is not None:
            return await self._guarded(call, saved(call), self._settled(call))
        if _sends_nothing(call, made):
            return await self._guarded(call, made, self._settled(call, made))
        if not call.properties.get("update"):
            return Replace()
        return await self._guarded(call, made, self._change(call, made))

    async def delete(self, call: Call) -> Outcome:
        if not call.properties.get("delete"):
            return Done(None)
        made = made_of(call)
        return await self._guarded(call, made, self._clear(call, made))

    async def check(self, call: Call) -> Outcome:
        if not (call.properties.get("check") or call.properties.get("read")):
            reason = "CHECK not supported: no read"
            return Done(call.physical_id, call.attributes, call.data, reason)
        made = made_of(call)
        return await self._guarded(call, made, self._compare(call, made))

    async def adopt(self, call: Call) -> Outcome:
        made = made_of(call)
        if not call.properties.get("read"):
            return made.done()
        return await self._guarded(call, made, self._compare(call, made))

    def needs_replace(self, call: Call) -> bool:
        return not _sends_nothing(call, made_of(call)) and not call.properties.get("update")

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

    async def _make(self, call: Call, made: RemoteObject) -> Outcome:
        if lacks := lacking(call.properties):
            raise ServiceError(lacks)
        found = await self._found(call, made) if call.properties.get("find") else None
        if found is not None:
            return Wait(call.now, progress_of(replace(made, id=found)))
        answer = await self._send(call, "create", made)
        reads = is_path(call.properties.get("id")) or call.properties.get("attributes")
        answered = document("create", answer) if reads else None
        made_id = id_in(call.properties.get("id"), made.key, answered)
        if made_id is None and call.properties.get("find"):
            made_id = await self._found(call, made)
        if made_id is None:
            raise ServiceError(f"create: the answer has no id at {call.properties['id']}")
        return then_read(call, with_response(replace(made, id=made_id), call.properties, answered))

    async def _change(self, call: Call, made: RemoteObject) -> Outcome:
        answer = await self._send(call, "update", made)
        reads = call.properties.get("attributes") and not call.properties.get("read")
        answered = document("update", answer) if reads else None
        return then_read(call, with_response(made, call.properties, answered))

    async def _found(self, call: Call, made: RemoteObject) -> str | None:
        """The id of what an operation that was lost has made; None: nothing."""
        try:
            answer = await self._send(call, "find", made)
        except ServiceError as trouble:
            if trouble.status in GONE:
                return None
            raise
        return id_in(call.properties.get("id"), made.key, document("find", answer))

    async def _settled(self, call: Call, made: RemoteObject | None = None) -> Outcome:
        """Read until it is ready. made: there is no progress yet."""
        made = made or saved(call)
        if not call.properties.get("read"):
            return with_response(made, call.properties, None).done()
        since = since_of(call)
        try:
            answered = document("read", await self._send(call, "read", made))
            made = with_response(made, call.properties, answered)
            how, state = readiness(call.properties.get("ready"), answered)
        except ServiceError as trouble:
            early = call.properties.get("ready") and trouble.status in GONE
            if not (trouble.retry or early):
                raise
            how, state = Readiness.NOT_YET, str(trouble)
        if how is Readiness.READY:
            return made.done()
        if how is Readiness.FAILED:
            raise ServiceError(f"it has failed: {state}")
        if self._is_over(call, since):
            raise ServiceError(f"it was not ready within {self._seconds(call):g} s: {state}")
        return look_again(call, made, since, f"it is not ready: {self._masked(call, made, state)}")

    async def _clear(self, call: Call, made: RemoteObject) -> Outcome:
        made = await self._located(call, made)
        if made.id is None and "id" in names_in(call.properties["delete"]):
            return Done(None, reason="it is unknown what it may have created")
        if call.progress is not None:
            return await self._gone(call, made)
        try:
            answer = await self._send(call, "delete", made)
        except ServiceError as trouble:
            if trouble.status in GONE:
                return Done(None)
            raise
        if answer.status == ACCEPTED and call.properties.get("read"):
            return look_again(call, made, call.now, "its deletion was accepted")
        return Done(None)

    async def _located(self, call: Call, made: RemoteObject) -> RemoteObject:
        if made.id is not None or not call.properties.get("find") or call.progress is not None:
            return made
        return replace(made, id=await self._found(call, made))

    async def _gone(self, call: Call, made: RemoteObject) -> Outcome:
        since = since_of(call)
        try:
            await self._send(call, "read", made)
        except ServiceError as trouble:
            if trouble.status in GONE:
                return Done(None)
            if not trouble.retry:
                raise
        if self._is_over(call, since):
            seconds = self._seconds(call)
            raise ServiceError(f"delete was accepted, and it was still there {seconds:g} s later")
        return look_again(call, made, since, "its deletion was accepted, and it is still there")

    async def _compare(self, call: Call, made: RemoteObject) -> Outcome:
        name = "check" if call.properties.get("check") else "read"
        try:
            answered = document(name, await self._send(call, name, made))
        except ServiceError as trouble:
            if trouble.status in GONE:
                raise ServiceError(f"it is gone: the service answered {trouble.status}") from None
            raise
        wrong = drifted(call.properties.get("compare"), answered)
        if wrong:
            raise ServiceError(f"it differs from the request at {', '.join(wrong)}")
        how, state = readiness(call.properties.get("ready"), answered)
        if how is not Readiness.READY:
            raise ServiceError(f"it is not ready: {state}")
        return with_response(made, call.properties, answered if name == "read" else None).done()

    async def _send(self, call: Call, name: str, made: RemoteObject) -> Response:
        """Raises ServiceError unless it went well."""
        if not self._settings.enabled:
            raise ServiceError(". ".join(_OFF))
        said = call.properties[name]
        try:
            request = build(name, call.properties, made.values(), str(call.operation_key))
            if lent := call.properties.get("credential"):
                headers = self._credentials.headers(lent, call.project, request.url)
                request = replace(request, headers={**request.headers, **headers})
            answer = await self._web.ask(request)
        except (PlaceholderError, CredentialDenied) as error:
            raise ServiceError(f"{name}: {error}") from None
        except NoResponse as error:
            raise ServiceError(f"{name}: {error}", retry=error.retry) from None
        judge(name, answer, said.get("expect") or [])
        return answer

    async def _guarded(self, call: Call, made: RemoteObject, run: Awaitable[Outcome]) -> Outcome:
        """The one place where trouble becomes a failure; what was made is kept with it."""
        try:
            return await run
        except ServiceError as trouble:
            reason, retry = self._masked(call, made, str(trouble)), trouble.retry
        except (InvalidPath, PlaceholderError) as error:  # what was not known before is read now
            reason, retry = str(error), False
        return Failed(reason, made.id, made.data(unfinished=True), retry=retry)

    def _masked(self, call: Call, made: RemoteObject, said: str) -> str:
        """What a service said, without what it was told in confidence."""
        sent = [call.properties.get(name) or {} for name in METHODS]
        given = [one.get(part) for one in sent for part in ("headers", "body")]
        secrets = _texts([call.properties.get("headers"), *given, made.secrets])
        return mask_secrets(said, [*secrets, *self._credentials.secrets()])

    def _is_over(self, call: Call, since: datetime) -> bool:
        return call.now >= since + timedelta(seconds=self._seconds(call))

    def _seconds(self, call: Call) -> float:
        asked = float(call.properties.get("timeout") or DEFAULT_TIMEOUT)
        return min(asked, self._settings.max_timeout.total_seconds())


def _sends_nothing(call: Call, made: RemoteObject) -> bool:
    """Only what to do later has changed. Without any change, or after a failure, there is work."""
    return bool(call.changed) and call.changed <= LATER and not made.unfinished


def _texts(value: Json) -> list[str]:
    """All texts in a value, at any depth; not the names of what it holds."""
    if isinstance(value, dict):
        return [text for item in value.values() for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []
