"""OS::Heat::Stack: a stack of another Headgate or Heat server, managed with the Orchestration API.

The remote name is derived from the operation key of the create, so that a repeated create finds the
stack. All other requests are idempotent. The API has no notifications: Headgate polls the stack
with increasing intervals, without holding a worker or connection meanwhile.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from engine.errors import Findings
from engine.types.contract import Call, Done, Failed, Outcome, Replace, ResourceType, Wait
from engine.types.credentials import CredentialDenied, Credentials
from engine.types.http_client import HttpClient, ServiceError
from engine.types.remote_stack.api import Api, RemoteStackId
from engine.types.remote_stack.endpoints import DEFAULT, Endpoint, Endpoints, unknown
from engine.types.remote_stack.polling import (
    PollState,
    data_of,
    ended,
    hooks_under_way,
    is_about,
    under_way,
)
from engine.types.remote_stack.schema import SCHEMA
from engine.types.text_cleaning import mask_secrets
from engine.words import Json

__all__ = ["Endpoint", "Endpoints", "RemoteStack"]

#: Characters of each part of a remote stack's name.
LONGEST = 100
_INVALID = re.compile(r"[^A-Za-z0-9_.-]")
_OWN_TOKEN_ONLY = (
    "is only allowed with the token of the request: it could expose a credential of the operator",
    "Remove it; the operator sets the CA in [resource_types.remote_stack] ca_file.",
)

#: Starts an action at an endpoint. Returns the stack, or None if it does not exist.
Begin = Callable[[Api, Call], Awaitable[RemoteStackId | None]]


class RemoteStack(ResourceType):
    replaces_tainted = False
    repairs = True
    cancellable = True
    schema = SCHEMA

    def __init__(self, endpoints: Endpoints, web: HttpClient, credentials: Credentials) -> None:
        """web: the client for URLs that the operator configures."""
        self._endpoints = endpoints
        self._web = web
        self._credentials = credentials
        self.constraints = (endpoints,)

    async def create(self, call: Call) -> Outcome:
        return await self._run_action(call, "CREATE", _create)

    async def update(self, call: Call) -> Outcome:
        if call.kept:
            return await self._run_action(call, "RESTORE", _restore)
        if call.progress is None and call.physical_id is None:
            return Replace()
        return await self._run_action(call, "UPDATE", _update)

    async def delete(self, call: Call) -> Outcome:
        return await self._run_action(call, "DELETE", _delete)

    async def check(self, call: Call) -> Outcome:
        return await self._run_action(call, "CHECK", _act("check"))

    async def suspend(self, call: Call) -> Outcome:
        return await self._run_action(call, "SUSPEND", _act("suspend"))

    async def resume(self, call: Call) -> Outcome:
        return await self._run_action(call, "RESUME", _act("resume"))

    async def snapshot(self, call: Call) -> Outcome:
        return await self._guarded(call, self._snapshot)

    async def adopt(self, call: Call) -> Outcome:
        return await self._guarded(call, self._adopt)

    def needs_replace(self, call: Call) -> bool:
        before = ((call.previous or {}).get("context") or {}).get("region_name")
        return _region(call.properties) != (before or DEFAULT)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        context = properties.get("context") or {}
        endpoint = self._endpoints.named(_region(properties))
        lent = context.get("credential_secret_id") or (endpoint and endpoint.credential)
        for name in ("ca_cert", "insecure"):
            if context.get(name) and lent:
                findings.add(f"{place}.context.{name}", *_OWN_TOKEN_ONLY)

    async def _run_action(self, call: Call, action: str, begin: Begin) -> Outcome:
        """Start the action at the first call; poll its state at further calls."""

        async def carry(api: Api, call: Call) -> Outcome:
            if call.progress is None:
                place = await begin(api, call)
                if place is None:
                    return Done(None)
                return Wait(call.now, PollState(place, call.now).to_progress())
            return await self._poll(api, call, action)

        return await self._guarded(call, carry)

    async def _poll(self, api: Api, call: Call, action: str) -> Outcome:
        waiting, endpoint = PollState.read(call.progress or {}), api.endpoint
        if call.superseded:
            data = data_of(waiting.place)
            return Failed("superseded", waiting.place.id, data, public_reason="superseded")
        try:
            shown = await api.show(waiting.place)
        except ServiceError as error:
            if not error.retry or waiting.lost(call.now, endpoint):
                raise
            return waiting.again(call.now, endpoint, str(error))
        if shown is None and action == "DELETE":
            return Done(None)
        if shown is None:
            raise ServiceError(
                f"the stack {waiting.place.name} does not exist any more",
                public="the remote stack does not exist any more",
            )
        if not is_about(shown, action):  # not started yet, or another client started an action
            if waiting.lost(call.now, endpoint):
                raise ServiceError(
                    f"the stack {shown.place.name} does not reach {action}",
                    public=f"the remote stack does not reach {action}",
                )
            return waiting.again(call.now, endpoint, under_way(shown, endpoint, None))
        if shown.status != "IN_PROGRESS":
            return ended(call, shown, endpoint)
        waiting = replace(waiting, seen=call.now)
        hooks = await _hooks(api, waiting)
        waiting = replace(waiting, hooks=hooks is not None)
        public = hooks_under_way(endpoint, hooks)
        return waiting.again(call.now, endpoint, under_way(shown, endpoint, hooks), public)

    async def _snapshot(self, api: Api, call: Call) -> Outcome:
        if call.progress is None:
            place = _place(call)
            made = await api.create_snapshot(place, str(call.operation_key))
            return Wait(call.now, PollState(place, call.now, snapshot=made).to_progress())
        waiting = PollState.read(call.progress)
        status, reason = await api.snapshot_status(waiting.place, waiting.snapshot)
        match status:
            case "COMPLETE":
                return Done(call.physical_id, call.attributes, {"snapshot": waiting.snapshot})
            case "IN_PROGRESS" if not call.superseded:
                reason = f"the snapshot of {waiting.place.name} is in progress"
                return waiting.again(call.now, api.endpoint, reason)
            case _:
                raise ServiceError(
                    f"the snapshot of {waiting.place.name} is {status}: {reason}",
                    public="the snapshot failed",
                )

    async def _adopt(self, api: Api, call: Call) -> Outcome:
        place = await api.find(call.physical_id or "")
        shown = await api.show(place) if place is not None else None
        if shown is None:
            reason = f"there is no stack {call.physical_id}"
            raise ServiceError(reason, public="the remote stack does not exist")
        return Done(shown.place.id, shown.attributes, data_of(shown.place))

    async def _guarded(self, call: Call, run: Callable[[Api, Call], Awaitable[Outcome]]) -> Outcome:
        """Convert errors to Failed, with the ID and name of the remote stack."""
        place = PollState.read(call.progress).place if call.progress else None
        name = place.name if place else call.data.get("name") or name_of(call)
        try:
            return await run(self._api(call), call)
        except ServiceError as error:
            secrets = [*self._credentials.secrets(), call.credential]
            reason = mask_secrets(str(error), secrets)
            left = place.id if place else call.physical_id
            data, public = {"name": name}, error.public
            return Failed(reason, left, data, retry=error.retry, public_reason=public)

    def _api(self, call: Call) -> Api:
        """Raises ServiceError."""
        context = call.properties.get("context") or {}
        region = _region(call.properties)
        endpoint = self._endpoints.find(region, call.project)
        if endpoint is None:
            raise ServiceError(unknown(region, call.project), public="the endpoint is unknown")
        lent = context.get("credential_secret_id") or endpoint.credential
        if lent and (context.get("ca_cert") or context.get("insecure")):
            reason = "ca_cert or insecure {}. {}".format(*_OWN_TOKEN_ONLY)
            raise ServiceError(reason, public=reason)
        headers = {"X-Auth-Token": call.credential} if call.credential else {}
        try:
            if lent:
                headers = self._credentials.headers(lent, call.project, endpoint.url)
        except CredentialDenied as error:
            raise ServiceError(str(error), public="the credential may not be used") from None
        return Api(
            self._web,
            endpoint,
            headers,
            str(call.operation_key),
            context.get("ca_cert") or "",
            bool(context.get("insecure")),
        )


def _region(properties: Mapping[str, Json]) -> str:
    return (properties.get("context") or {}).get("region_name") or DEFAULT


def name_of(call: Call) -> str:
    """The name of the remote stack, the same in all calls of an operation."""
    ours = f"{call.stack_name[:LONGEST]}-{call.resource_name[:LONGEST]}"
    return f"{_INVALID.sub('-', ours)}-{call.operation_key.hex[:12]}"


def _body(call: Call) -> dict[str, Json]:
    given = call.properties
    body = {"template": given["template"], "parameters": given.get("parameters") or {}}
    return body | ({"timeout_mins": given["timeout"]} if given.get("timeout") else {})


def _place(call: Call) -> RemoteStackId:
    return RemoteStackId(call.data["name"], call.physical_id or "")


async def _create(api: Api, call: Call) -> RemoteStackId:
    return await api.create(name_of(call), _body(call))


async def _update(api: Api, call: Call) -> RemoteStackId:
    await api.update(_place(call), _body(call))
    return _place(call)


async def _restore(api: Api, call: Call) -> RemoteStackId:
    await api.restore(_place(call), (call.kept or {})["snapshot"])
    return _place(call)


async def _delete(api: Api, call: Call) -> RemoteStackId | None:
    """Delete by ID, or by name: a create without a saved response may have succeeded."""
    if "name" not in call.data:
        return None
    place = _place(call) if call.physical_id else await api.find(call.data["name"])
    if place is not None:
        await api.delete(place)
    return place


def _act(action: str) -> Begin:
    async def begin(api: Api, call: Call) -> RemoteStackId:
        await api.act(_place(call), action)
        return _place(call)

    return begin


async def _hooks(api: Api, waiting: PollState) -> Sequence[Mapping[str, Json]] | None:
    """The waiting hooks of the remote stack, for the status reason; () if they cannot be read."""
    try:
        return await api.hooks(waiting.place) if waiting.hooks else None
    except ServiceError:
        return ()
