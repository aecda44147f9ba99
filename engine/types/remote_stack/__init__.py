"""OS::Heat::Stack: a stack of another Headgate or Heat server, managed with the Orchestration API.

The remote name is derived from the operation key of the create, so that a repeated create finds the
stack. All other requests are idempotent. The API has no notifications: Headgate polls the stack
with increasing intervals, without holding a worker or connection meanwhile.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Self
from uuid import UUID

from yarl import URL

from engine.errors import Findings, HeadgateError
from engine.hot.schema.type_schema import (
    Attribute,
    Constraint,
    Kind,
    Property,
    TypeSchema,
    updatable,
)
from engine.types.contract import Call, Done, Failed, Outcome, Replace, ResourceType, Stopped, Wait
from engine.types.http_client import HttpClient, ServiceError
from engine.types.observation import Observation, request_sent
from engine.types.operation_outcomes import next_poll
from engine.types.operator_credentials import CONSTRAINT as CREDENTIAL
from engine.types.operator_credentials import CredentialDenied, Credentials
from engine.types.remote_stack.api import CONSTRAINT as REGION
from engine.types.remote_stack.api import (
    DEFAULT,
    Api,
    Catalog,
    Endpoints,
    RemoteEndpoint,
    RemoteStackId,
    RemoteStackView,
)
from engine.types.remote_stack.observation import GONE, observe_stack
from engine.types.text_cleaning import mask_secrets
from engine.words import Json, ResourceId

#: Maximum number of hooks in a reason.
MAX_HOOKS = 5
#: Maximum number of notified targets of a hook in a reason.
MAX_TARGETS = 3


@dataclass(frozen=True, slots=True)
class PollState:
    """The progress of an operation. seen: when the action was last seen in progress. tries: number
    of polls. hooks: whether the endpoint lists waiting hooks. snapshot: the ID of the snapshot in
    progress, or ""."""

    place: RemoteStackId
    seen: datetime
    tries: int = 0
    hooks: bool = True
    snapshot: str = ""

    @classmethod
    def read(cls, progress: Mapping[str, Json]) -> Self:
        return cls(
            RemoteStackId(progress["name"], progress["id"]),
            datetime.fromisoformat(progress["seen"]),
            progress["tries"],
            progress["hooks"],
            progress["snapshot"],
        )

    def to_progress(self) -> dict[str, Json]:
        return {
            "name": self.place.name,
            "id": self.place.id,
            "seen": self.seen.isoformat(),
            "tries": self.tries,
            "hooks": self.hooks,
            "snapshot": self.snapshot,
        }

    def wait(
        self,
        now: datetime,
        endpoint: RemoteEndpoint,
        reason: str,
        public: str = "the remote stack is not ready",
    ) -> Wait:
        progress = replace(self, tries=self.tries + 1).to_progress()
        wake = next_poll(now, self.tries, endpoint.interval)
        return Wait(wake, progress, reason, public_reason=public)

    def is_lost(self, now: datetime, endpoint: RemoteEndpoint) -> bool:
        """Whether the action was not seen for longer than the endpoint's patience."""
        return now - self.seen > timedelta(seconds=endpoint.patience)


def data_of(place: RemoteStackId) -> dict[str, Json]:
    return {"name": place.name}


def is_action(shown: RemoteStackView, action: str) -> bool:
    """Whether the last action of a stack is the requested one. A create also counts as done if
    another client has since changed the stack."""
    return shown.action == action or (action == "CREATE" and shown.action != "DELETE")


def outcome_of(call: Call, shown: RemoteStackView, endpoint: RemoteEndpoint) -> Outcome:
    """The outcome of a remote action that has ended."""
    place, data = shown.place, data_of(shown.place)
    match shown.status:
        case "COMPLETE" if shown.action == "DELETE":
            return Done(None)
        case "COMPLETE":
            return Done(place.id, shown.attributes, data)
        case "STOPPED":
            public = "the remote stack was stopped"
            return Stopped(_failure_reason(shown, endpoint), place.id, data, public_reason=public)
        case _:
            public = "the remote stack failed"
            return Failed(_failure_reason(shown, endpoint), place.id, data, public_reason=public)


def _failure_reason(shown: RemoteStackView, endpoint: RemoteEndpoint) -> str:
    what = f"the stack {shown.place.name} at {endpoint.name} is {shown.action}_{shown.status}"
    return f"{what}: {shown.reason}" if shown.reason else what


def progress_reason(
    shown: RemoteStackView, endpoint: RemoteEndpoint, hooks: Sequence[Mapping[str, Json]] | None
) -> str:
    """The reason of a wait. hooks: the waiting hooks of the remote stack."""
    what = f"the stack {shown.place.name} at {endpoint.name} is {shown.action}_{shown.status}"
    named = [_hook(one, endpoint) for one in (hooks or [])[:MAX_HOOKS]]
    more = len(hooks or []) - len(named)
    return "; ".join([what, *named, *([f"and {more} more"] if more > 0 else [])])


def public_progress_reason(
    endpoint: RemoteEndpoint, hooks: Sequence[Mapping[str, Json]] | None
) -> str:
    """The reason of a wait without text of the remote stack: the URLs of its waiting hooks."""
    known = [one.get("id") for one in (hooks or [])[:MAX_HOOKS]]
    urls = [f"{endpoint.url}/hooks/{one}" for one in known if _is_uuid(one)]
    waiting = f"; waiting hooks: {', '.join(urls)}" if urls else ""
    return f"the remote stack is not ready{waiting}"


def _is_uuid(value: Json) -> bool:
    try:
        return str(UUID(value)) == value if isinstance(value, str) else False
    except ValueError:
        return False


def _hook(hook: Mapping[str, Json], endpoint: RemoteEndpoint) -> str:
    where = hook.get("path") or hook.get("resource_name") or "the stack"
    targets = [str(one.get("target")) for one in (hook.get("asked") or [])[:MAX_TARGETS]]
    notified = f"notified: {', '.join(targets)}" if targets else "no subscription was notified"
    return (
        f"its hook {hook.get('id')} waits at {hook.get('point')} of {where}"
        f" until {hook.get('deadline')}, {notified}:"
        f" {endpoint.url}/hooks/{hook.get('id')}"
    )


SCHEMA = TypeSchema(
    "OS::Heat::Stack",
    description="A stack of another Headgate or Heat server.",
    properties={
        "context": updatable(
            Kind.MAP,
            "Endpoint and credential.",
            fields={
                "region_name": Property(
                    Kind.STRING,
                    "Name of a configured endpoint, or a region of the user's service catalog; a"
                    " change replaces the resource.",
                    constraints=(Constraint("custom_constraint", name=REGION),),
                ),
                "credential_secret_id": updatable(
                    Kind.STRING,
                    "Name of a credential that the operator configures.",
                    constraints=(Constraint("custom_constraint", name=CREDENTIAL),),
                ),
                "ca_cert": updatable(Kind.STRING, "CA certificate in PEM form."),
                "insecure": updatable(
                    Kind.BOOLEAN, "Skip the verification of the TLS certificate.", default=False
                ),
            },
        ),
        "template": updatable(Kind.STRING, "The template, as text.", required=True),
        "timeout": updatable(
            Kind.INTEGER,
            "Timeout of the remote stack in minutes.",
            constraints=(Constraint("range", min=1, max=525_600),),
        ),
        "parameters": updatable(Kind.MAP, "Its parameters.", default={}),
    },
    attributes={
        "stack_name": Attribute(Kind.STRING, "Name of the remote stack."),
        "outputs": Attribute(Kind.MAP, "Outputs of the remote stack, by name."),
    },
    snapshots=True,
)


__all__ = ["Catalog", "Endpoints", "RemoteEndpoint", "RemoteStack"]

#: Characters of each part of a remote stack's name.
MAX_NAME_PART_LENGTH = 100
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
    supersedable = True
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
        if call.progress is None and (call.physical_id is None or await self._is_gone(call)):
            return Replace()
        return await self._run_action(call, "UPDATE", _update)

    async def _is_gone(self, call: Call) -> bool:
        """Whether the stack that an update repairs does not exist. What fails here fails again."""
        if not call.failed or "name" not in call.data:
            return False
        try:
            return await (await self._api(call)).observe(_place(call)) is None
        except ServiceError:
            return False

    async def delete(self, call: Call) -> Outcome:
        return await self._run_action(call, "DELETE", _delete)

    async def check(self, call: Call) -> Outcome:
        return await self._run_action(call, "CHECK", _act("check"))

    async def suspend(self, call: Call) -> Outcome:
        return await self._run_action(call, "SUSPEND", _act("suspend"))

    async def resume(self, call: Call) -> Outcome:
        return await self._run_action(call, "RESUME", _act("resume"))

    async def snapshot(self, call: Call) -> Outcome:
        return await self._run_guarded(call, self._snapshot)

    async def adopt(self, call: Call) -> Outcome:
        return await self._run_guarded(call, self._adopt)

    def observation_key(self, call: Call) -> str | None:
        """Only with a credential of the operator: an observation has no user."""
        endpoint = self._endpoints.find(_region(call.properties), call.project)
        readable = endpoint is not None and _credential(call, endpoint)
        return str(call.resource_id) if readable and "name" in call.data else None

    def observation_endpoint(self, call: Call) -> str:
        endpoint = self._endpoints.find(_region(call.properties), call.project)
        return str(URL(endpoint.url).origin()) if endpoint else ""

    def observed_paths(self, properties: Mapping[str, Json]) -> Sequence[str] | None:
        parameters = properties.get("parameters", {})
        return None if parameters is None else [f"parameters.{name}" for name in parameters]

    def adopted_places(
        self, properties: Mapping[str, Json], path: str
    ) -> Sequence[tuple[str, ...]]:
        return (("parameters", path.removeprefix("parameters.")),)

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        return {call.resource_id: await self._observe(call) for call in calls}

    async def _observe(self, call: Call) -> Observation:
        try:
            api = await self._api(call)
            request_sent()
            shown = await api.observe(_place(call))
        except ServiceError as error:
            reason = mask_secrets(str(error), self._credentials.secrets())
            return Observation.unknown(reason, error.public, error.throttled, error.scope)
        return GONE if shown is None else observe_stack(call.properties, shown)

    def needs_replace(self, call: Call) -> bool:
        before = ((call.previous or {}).get("context") or {}).get("region_name")
        return _region(call.properties) != (before or DEFAULT)

    def check_properties(
        self, properties: Mapping[str, Json], place: str, findings: Findings
    ) -> None:
        context = properties.get("context") or {}
        endpoint = self._endpoints.find_any(_region(properties))
        credential = context.get("credential_secret_id") or (endpoint and endpoint.credential)
        for name in ("ca_cert", "insecure"):
            if context.get(name) and credential:
                findings.add(f"{place}.context.{name}", *_OWN_TOKEN_ONLY)

    async def _run_action(self, call: Call, action: str, begin: Begin) -> Outcome:
        """Start the action at the first call; poll its state at further calls."""

        async def start_or_poll(api: Api, call: Call) -> Outcome:
            if call.progress is None:
                place = await begin(api, call)
                if place is None:
                    return Done(None)
                return Wait(call.now, PollState(place, call.now).to_progress())
            return await self._poll(api, call, action)

        return await self._run_guarded(call, start_or_poll)

    async def _poll(self, api: Api, call: Call, action: str) -> Outcome:
        state, endpoint = PollState.read(call.progress or {}), api.endpoint
        if call.superseded:
            data = data_of(state.place)
            return Failed("superseded", state.place.id, data, public_reason="superseded")
        try:
            shown = await api.show(state.place)
        except ServiceError as error:
            if not error.retry or state.is_lost(call.now, endpoint):
                raise
            return state.wait(call.now, endpoint, str(error))
        if shown is None and action == "DELETE":
            return Done(None)
        if shown is None:
            raise ServiceError(
                f"the stack {state.place.name} no longer exists",
                public="the remote stack no longer exists",
            )
        if not is_action(shown, action):  # not started yet, or another client started an action
            if state.is_lost(call.now, endpoint):
                raise ServiceError(
                    f"the stack {shown.place.name} did not start {action}",
                    public=f"the remote stack did not start {action}",
                )
            return state.wait(call.now, endpoint, progress_reason(shown, endpoint, None))
        if shown.status != "IN_PROGRESS":
            return outcome_of(call, shown, endpoint)
        state = replace(state, seen=call.now)
        hooks = await _hooks(api, state)
        state = replace(state, hooks=hooks is not None)
        public = public_progress_reason(endpoint, hooks)
        return state.wait(call.now, endpoint, progress_reason(shown, endpoint, hooks), public)

    async def _snapshot(self, api: Api, call: Call) -> Outcome:
        if call.progress is None:
            place = _place(call)
            snapshot = await api.create_snapshot(place, str(call.operation_key))
            return Wait(call.now, PollState(place, call.now, snapshot=snapshot).to_progress())
        state = PollState.read(call.progress)
        status, reason = await api.snapshot_status(state.place, state.snapshot)
        match status:
            case "COMPLETE":
                return Done(call.physical_id, call.attributes, {"snapshot": state.snapshot})
            case "IN_PROGRESS" if not call.superseded:
                reason = f"the snapshot of {state.place.name} is in progress"
                return state.wait(call.now, api.endpoint, reason)
            case _:
                raise ServiceError(
                    f"the snapshot of {state.place.name} is {status}: {reason}",
                    public="the snapshot failed",
                )

    async def _adopt(self, api: Api, call: Call) -> Outcome:
        place = await api.find(call.physical_id or "")
        shown = await api.show(place) if place is not None else None
        if shown is None:
            reason = f"there is no stack {call.physical_id}"
            raise ServiceError(reason, public="the remote stack does not exist")
        return Done(shown.place.id, shown.attributes, data_of(shown.place))

    async def _run_guarded(
        self, call: Call, run: Callable[[Api, Call], Awaitable[Outcome]]
    ) -> Outcome:
        """Convert errors to Failed, with the ID and name of the remote stack."""
        place = PollState.read(call.progress).place if call.progress else None
        name = place.name if place else call.data.get("name") or name_of(call)
        try:
            return await run(await self._api(call), call)
        except ServiceError as error:
            secrets = [*self._credentials.secrets(), call.credential]
            reason = mask_secrets(str(error), secrets)
            left = place.id if place else call.physical_id
            data, public = {"name": name}, error.public
            return Failed(reason, left, data, retry=error.retry, public_reason=public)

    async def _endpoint(self, call: Call) -> RemoteEndpoint:
        """Raises ServiceError."""
        region = _region(call.properties)
        try:
            found = await self._endpoints.find_for(region, call.project, call.credential)
        except HeadgateError as error:
            public = "the service catalog cannot be read"
            raise ServiceError(f"{public}: {error}", retry=True, public=public) from None
        if found is None:
            reason = self._endpoints.unknown(region, call.project)
            raise ServiceError(reason, public="the endpoint is unknown")
        return found

    async def _api(self, call: Call) -> Api:
        """Raises ServiceError."""
        context = call.properties.get("context") or {}
        endpoint = await self._endpoint(call)
        credential = _credential(call, endpoint)
        if credential and (context.get("ca_cert") or context.get("insecure")):
            reason = "ca_cert or insecure {}. {}".format(*_OWN_TOKEN_ONLY)
            raise ServiceError(reason, public=reason)
        headers = {"X-Auth-Token": call.credential} if call.credential else {}
        try:
            if credential:
                headers = self._credentials.headers(credential, call.project, endpoint.url)
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


def _credential(call: Call, endpoint: RemoteEndpoint) -> str:
    """The name of the operator's credential; "": the requester's own token."""
    context = call.properties.get("context") or {}
    return context.get("credential_secret_id") or endpoint.credential


def name_of(call: Call) -> str:
    """The name of the remote stack, the same in all calls of an operation."""
    own_name = (
        f"{call.stack_name[:MAX_NAME_PART_LENGTH]}-{call.resource_name[:MAX_NAME_PART_LENGTH]}"
    )
    return f"{_INVALID.sub('-', own_name)}-{call.operation_key.hex[:12]}"


def _body(call: Call) -> dict[str, Json]:
    properties = call.properties
    body = {"template": properties["template"], "parameters": properties.get("parameters") or {}}
    return body | ({"timeout_mins": properties["timeout"]} if properties.get("timeout") else {})


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


async def _hooks(api: Api, state: PollState) -> Sequence[Mapping[str, Json]] | None:
    """The waiting hooks of the remote stack, for the status reason; () if they cannot be read."""
    try:
        return await api.hooks(state.place) if state.hooks else None
    except ServiceError:
        return ()
