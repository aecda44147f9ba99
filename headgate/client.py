"""The asyncio client of the HTTP API."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self, TypedDict, Unpack, cast

from headgate.connection import (
    PAGE_SIZE,
    PROJECT,
    TIMEOUT,
    URL,
    ApiConnection,
    ClientCredentials,
    StreamedEvent,
    url_path,
)
from headgate.errors import NotFoundError, RateLimitError, RequestError, WaitTimeoutError

if TYPE_CHECKING:
    from headgate import documents

Json = Any
#: Seconds between two reads of a wait: short at first, because small stacks end soon.
FIRST_POLL, MAX_POLL = 0.05, 1.0
#: Seconds between two attempts to reconnect an event stream: the first and the longest.
FIRST_RETRY, MAX_RETRY = 0.5, 10.0
#: Seconds for which an event stream tries to reconnect.
RECONNECT_TIMEOUT = 300.0
ENDED = ("COMPLETE", "FAILED", "STOPPED")

Decision = Literal[
    "continue", "reject", "step", "run", "patch", "progress", "adopt", "repair", "ignore"
]


class ChangeOptions(TypedDict, total=False):
    """The optional keys of a create or update.

    template, environment: text or an object. files: contents by the names that they refer to.
    hooks: breakpoints for this change, `{"add": [...], "clear": [...]}`. plan_digest: refuse the
    change unless its plan has this digest. strict: warnings are errors.
    """

    template: str | Mapping[str, Json]
    environment: str | Mapping[str, Json]
    environment_files: Sequence[str]
    files: Mapping[str, str]
    parameters: Mapping[str, Json]
    tags: Sequence[str]
    timeout_mins: int
    disable_rollback: bool
    hooks: Mapping[str, Json]
    plan_digest: str
    strict: bool


class UpdateOptions(ChangeOptions, total=False):
    """The optional keys of an update. only, except_: globs on resource names. moved: a list of
    `{"from": "a", "to": "b"}`."""

    only: Sequence[str]
    except_: Sequence[str]
    moved: Sequence[Mapping[str, Json]]
    keep_hidden: bool
    converge: bool | Mapping[str, Json]
    clear_parameters: Sequence[str]


class SubscriptionOptions(TypedDict, total=False):
    """Which events a subscription selects, and in which order and when it gets them."""

    events: Sequence[str]
    stacks: Sequence[str]
    resources: Sequence[str]
    types: Sequence[str]
    points: Sequence[str]
    tags: Sequence[str]
    nested: bool
    ordered: bool
    quiet_hours: Mapping[str, Json] | None
    digest: str | Mapping[str, Json] | None


class Client:
    """A client of one server and project; an async context manager.

    Without arguments, it uses the variables of the command line: `HEADGATE_URL`,
    `HEADGATE_PROJECT`, `HEADGATE_USER`, `HEADGATE_ROLES`, `HEADGATE_TOKEN` and
    `HEADGATE_PASSWORD`. timeout: seconds for each request. Requests raise `RequestError`.
    """

    def __init__(
        self,
        url: str | None = None,
        project: str | None = None,
        credentials: ClientCredentials | None = None,
        *,
        timeout: float = TIMEOUT,
    ) -> None:
        self.connection = ApiConnection(
            url or os.environ.get("HEADGATE_URL") or URL,
            project or os.environ.get("HEADGATE_PROJECT") or PROJECT,
            credentials or _credentials_from_environment(),
            timeout,
        )
        self.stacks = StackClient(self.connection)
        self.resources = ResourceClient(self.connection)
        self.hooks = HookClient(self.connection)
        self.events = EventClient(self.connection)
        self.subscriptions = SubscriptionClient(self.connection)

    async def __aenter__(self) -> Self:
        await self.connection.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.connection.__aexit__(*error)


def _credentials_from_environment() -> ClientCredentials:
    names = ("HEADGATE_USER", "HEADGATE_ROLES", "HEADGATE_TOKEN", "HEADGATE_PASSWORD")
    return ClientCredentials(*(os.environ.get(name, "") for name in names))


def _change_body(options: Mapping[str, Json]) -> dict[str, Json]:
    body = {("except" if name == "except_" else name): value for name, value in options.items()}
    if "tags" in body:
        body["tags"] = ",".join(body["tags"])
    return body


@dataclass(frozen=True, slots=True)
class StackPlan:
    """The plan of a create or update. `apply` requests exactly the change that was planned: the
    server refuses it with `ConflictError` (`PlanChanged`) if the plan has changed since.
    """

    document: "documents.Preview | documents.PreviewedStack"
    apply: Callable[[], Awaitable["documents.Stack"]]

    @property
    def digest(self) -> str:
        return self.document["plan_digest"]

    @property
    def changes(self) -> "documents.ResourceChanges":
        return self.document["resource_changes"]

    @property
    def hooks(self) -> "list[documents.ExpectedHook]":
        """The hooks that the change will open, in order."""
        return self.document["stops"]


class StackClient:
    """Requests about stacks. name: of a stack, or its ID."""

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection

    async def show(self, name: str, *, outputs: bool = True) -> "documents.Stack":
        """outputs: False: do not compute the outputs of the stack."""
        query = {} if outputs else {"resolve_outputs": "false"}
        document = await self._connection.call("GET", url_path("stacks", name), query=query)
        return cast("documents.Stack", document["stack"])

    async def list(
        self,
        *,
        tags: Sequence[str] = (),
        status: Sequence[str] = (),
        nested: bool = False,
    ) -> "AsyncGenerator[documents.StackSummary, None]":
        """Stacks, page by page. status: such as `COMPLETE`. nested: with nested stacks."""
        filters = [*(("status", one) for one in status)]
        if tags:
            filters.append(("tags", ",".join(tags)))
        if nested:
            filters.append(("show_nested", "true"))
        marker: list[tuple[str, str]] = []
        while True:
            query = [*filters, ("limit", str(PAGE_SIZE)), *marker]
            page = (await self._connection.call("GET", url_path("stacks"), query=query))["stacks"]
            for one in page:
                yield one
            if len(page) < PAGE_SIZE:
                return
            marker = [("marker", page[-1]["id"])]

    async def create(
        self,
        name: str,
        *,
        idempotency_key: str = "",
        **options: Unpack[ChangeOptions],
    ) -> "documents.Stack":
        """Start to create a stack. A repeated request with the same key creates one stack."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else {}
        body = {"stack_name": name, **_change_body(options)}
        created = await self._connection.call(
            "POST", url_path("stacks"), body=body, headers=headers
        )
        return await self.show(created["stack"]["id"], outputs=False)

    async def update(self, name: str, **options: Unpack[UpdateOptions]) -> "documents.Stack":
        """Start to update a stack. What `options` leaves out stays as it is."""
        stack = await self.show(name, outputs=False)
        await self._connection.call("PATCH", _path(stack), body=_change_body(options))
        return await self.show(stack["id"], outputs=False)

    async def plan_create(self, name: str, **options: Unpack[ChangeOptions]) -> StackPlan:
        body = {"stack_name": name, **_change_body(options)}
        preview = await self._connection.call("POST", url_path("stacks", "preview"), body=body)

        async def apply() -> "documents.Stack":
            planned: ChangeOptions = {**options, "plan_digest": plan.digest}
            return await self.create(name, **planned)

        plan = StackPlan(preview["stack"], apply)
        return plan

    async def plan_update(self, name: str, **options: Unpack[UpdateOptions]) -> StackPlan:
        stack = await self.show(name, outputs=False)
        path, body = _path(stack, "preview"), _change_body(options)
        preview = await self._connection.call(
            "PATCH", path, body=body, query={"show_nested": "true"}
        )

        async def apply() -> "documents.Stack":
            planned: UpdateOptions = {**options, "plan_digest": plan.digest}
            return await self.update(stack["id"], **planned)

        plan = StackPlan(preview, apply)
        return plan

    async def delete(self, name: str) -> None:
        """Start to delete a stack."""
        await self._request(name, "DELETE")

    async def act(
        self,
        name: str,
        action: Literal[
            "check",
            "suspend",
            "resume",
            "stop",
            "observe",
            "cancel_update",
            "cancel_without_rollback",
        ],
    ) -> None:
        """Start an action of a stack that needs no template."""
        await self._request(name, "POST", "actions", body={action: None})

    async def wait(
        self,
        name: str,
        *,
        timeout: float,  # noqa: ASYNC109  # of the action, not of a request
    ) -> "documents.Stack":
        """Wait until the action of a stack has ended; return the stack, also if the action failed.

        A rollback is a part of the action. A deleted stack has the status `DELETE_COMPLETE`, also
        if it is already purged. Raises WaitTimeoutError after `timeout` seconds.
        """
        stack = await self.show(name, outputs=False)
        try:
            async with asyncio.timeout(timeout):
                pause = FIRST_POLL
                while not _is_ended(stack):
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, MAX_POLL)
                    stack = await self._show_or_deleted(stack)
        except TimeoutError:
            status = f'the stack "{name}" still has the status {stack["stack_status"]}'
            raise WaitTimeoutError(
                f"{status} after {timeout:g} s. The action continues on the server; wait again."
            ) from None
        return stack if _is_deleted(stack) else await self.show(stack["id"])

    async def _show_or_deleted(self, stack: "documents.Stack") -> "documents.Stack":
        try:
            return await self.show(stack["id"], outputs=False)
        except NotFoundError:
            if stack["stack_status"].startswith("DELETE_"):
                return {**stack, "stack_status": "DELETE_COMPLETE"}
            raise

    async def graph(
        self, name: str, *, nested: bool = False
    ) -> "documents.Graph | documents.GraphWithNested":
        query = {"nested": "true"} if nested else {}
        document = await self._request(name, "GET", "graph", query=query)
        return cast("documents.Graph | documents.GraphWithNested", document)

    async def explain(self, name: str) -> "documents.Explanation":
        """What the stack is waiting for, for each unfinished node."""
        return cast("documents.Explanation", await self._request(name, "GET", "why"))

    async def decisions(self, name: str) -> "AsyncGenerator[documents.AuditEntry, None]":
        """The audit log of a stack, page by page."""
        path = _path(await self.show(name, outputs=False), "decisions")
        async for page in self._connection.pages(path, {}, marker="after"):
            for one in page["decisions"]:
                yield one

    async def _request(
        self,
        name: str,
        method: str,
        *parts: str,
        body: Json = None,
        query: Mapping[str, str] | None = None,
    ) -> Json:
        path = _path(await self.show(name, outputs=False), *parts)
        return await self._connection.call(method, path, body=body, query=query)


def _path(stack: "documents.Stack", *parts: str) -> str:
    return url_path("stacks", stack["stack_name"], stack["id"], *parts)


def _is_ended(stack: "documents.Stack") -> bool:
    return stack["stack_status"].rpartition("_")[2] in ENDED


def _is_deleted(stack: "documents.Stack") -> bool:
    return stack["stack_status"] == "DELETE_COMPLETE"


async def find_stack(connection: ApiConnection, name: str) -> Json:
    """A stack by name or ID, without its outputs. Raises RequestError."""
    return await StackClient(connection).show(name, outputs=False)


class ResourceClient:
    """Requests about the resources of a stack."""

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection

    async def list(
        self, stack: str, *, nested_depth: int = 0
    ) -> "AsyncGenerator[documents.ResourceSummary, None]":
        """nested_depth: levels of nested stacks whose resources are listed, too."""
        query = {"nested_depth": str(nested_depth)} if nested_depth else {}
        for one in (await self._request(stack, "GET", query=query))["resources"]:
            yield one

    async def show(self, stack: str, name: str) -> "documents.Resource":
        document = await self._request(stack, "GET", name)
        return cast("documents.Resource", document["resource"])

    async def inspect(self, stack: str, name: str) -> "documents.InspectedResource":
        """A resource with its nodes, breakpoints and hooks."""
        document = await self._request(stack, "GET", name, "inspect")
        return cast("documents.InspectedResource", document)

    async def signal(self, stack: str, name: str, data: Json = None) -> None:
        await self._request(stack, "POST", name, "signal", body=data)

    async def mark_unhealthy(self, stack: str, name: str, reason: str = "") -> None:
        """The next update replaces the resource."""
        await self._mark(stack, name, True, reason)

    async def mark_healthy(self, stack: str, name: str, reason: str = "") -> None:
        await self._mark(stack, name, False, reason)

    async def _mark(self, stack: str, name: str, unhealthy: bool, reason: str) -> None:
        body = {"mark_unhealthy": unhealthy, "resource_status_reason": reason}
        await self._request(stack, "PATCH", name, body=body)

    async def _request(
        self,
        stack: str,
        method: str,
        *parts: str,
        body: Json = None,
        query: Mapping[str, str] | None = None,
    ) -> Json:
        path = _path(await find_stack(self._connection, stack), "resources", *parts)
        return await self._connection.call(method, path, body=body, query=query)


class HookClient:
    """Requests about hooks. An answer to a hook that you have as a document is for what the
    document shows: the server refuses it if the hook has changed since (`DigestChanged`)."""

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection

    async def list(
        self,
        *,
        state: Literal["waiting", "answered", "expired", "superseded"] | None = None,
        stack: str | None = None,
        path: str | None = None,
        point: str | None = None,
        older: str | None = None,
        mine: bool = False,
        dry: bool | None = None,
    ) -> "AsyncGenerator[documents.Hook, None]":
        """Hooks, oldest first, page by page. path, point: globs. older: a duration, such as 30m.
        mine: only hooks that you may answer and have not answered."""
        filters = {
            "limit": str(PAGE_SIZE),
            "state": state,
            "stack": stack,
            "path": path,
            "point": point,
            "older": older,
            "mine": "true" if mine else None,
            "dry": None if dry is None else str(dry).lower(),
        }
        query = {name: value for name, value in filters.items() if value is not None}
        async for page in self._connection.pages(url_path("hooks"), query):
            for one in page["hooks"]:
                yield one

    async def pages_of_all_projects(
        self,
        *,
        state: Literal["waiting", "answered", "expired", "superseded"] | None = None,
        path: str | None = None,
        point: str | None = None,
        older: str | None = None,
        mine: bool = False,
        dry: bool | None = None,
    ) -> "AsyncGenerator[documents.Hooks, None]":
        """The pages of the hooks of all projects, oldest first, if you have a role in every
        project. Each hook has its `project`, whose client answers it. A page has `warnings` if it
        lacks hooks, because a cell of the server is not available. Parameters: as of `list`."""
        filters = {
            "global_tenant": "true",
            "limit": str(PAGE_SIZE),
            "state": state,
            "path": path,
            "point": point,
            "older": older,
            "mine": "true" if mine else None,
            "dry": None if dry is None else str(dry).lower(),
        }
        query = {name: value for name, value in filters.items() if value is not None}
        async for page in self._connection.pages(url_path("hooks"), query):
            yield page

    async def show(self, hook: str) -> "documents.Hook":
        return cast("documents.Hook", await self._connection.call("GET", url_path("hooks", hook)))

    async def wait(
        self,
        *,
        stack: str | None = None,
        path: str | None = None,
        point: str | None = None,
        mine: bool = False,
        timeout: float,  # noqa: ASYNC109  # for the hook, not for a request
    ) -> "documents.Hook":
        """Wait until a hook is waiting, and return the oldest one. Raises WaitTimeoutError after
        `timeout` seconds."""
        try:
            async with asyncio.timeout(timeout):
                pause = FIRST_POLL
                while True:
                    waiting = self.list(
                        state="waiting", stack=stack, path=path, point=point, mine=mine
                    )
                    async with aclosing(waiting) as hooks:
                        async for hook in hooks:
                            return hook
                    await asyncio.sleep(pause)
                    pause = min(2 * pause, MAX_POLL)
        except TimeoutError:
            raise WaitTimeoutError(
                f"no hook has been waiting within {timeout:g} s. Wait longer, or check that a"
                " breakpoint matches the change."
            ) from None

    async def continue_(
        self, hook: "str | documents.Hook", *, reason: str = "", data: Json = None
    ) -> "documents.Hook":
        """Approve. data: must match `ask` of the hook."""
        return await self.answer(hook, "continue", reason=reason, data=data)

    async def reject(
        self, hook: "str | documents.Hook", *, reason: str = "", data: Json = None
    ) -> "documents.Hook":
        return await self.answer(hook, "reject", reason=reason, data=data)

    async def patch(
        self,
        hook: "str | documents.Hook",
        properties: Mapping[str, Json],
        *,
        reason: str = "",
        data: Json = None,
    ) -> "documents.Hook":
        """Continue with changed properties, if the rule allows it."""
        return await self.answer(hook, "patch", reason=reason, data=data, properties=properties)

    async def progress(
        self, hook: "str | documents.Hook", *, reason: str = "", extend: str = ""
    ) -> "documents.Hook":
        """Extend the deadline. extend: a duration, such as 30m; by default that of the rule."""
        more = {"extend": extend} if extend else {}
        return await self.answer(hook, "progress", reason=reason, **more)

    async def answer(
        self,
        hook: "str | documents.Hook",
        decision: Decision,
        *,
        reason: str = "",
        data: Json = None,
        **more: Json,
    ) -> "documents.Hook":
        """Answer a hook. more: further keys of this decision, such as `how` of `step`."""
        body = {"decision": decision, "reason": reason, **more}
        if data is not None:
            body["data"] = data
        if not isinstance(hook, str):
            body.setdefault("digest", hook["digest"])
        return cast("documents.Hook", await self._request(hook, "POST", "signal", body))

    async def hand_over(
        self, hook: "str | documents.Hook", to: str, *, note: str = ""
    ) -> "documents.Hook":
        """Let a further user or role answer. to: `user:NAME` or `role:NAME`."""
        document = await self._request(hook, "POST", "hand-over", {"to": to, "note": note})
        return cast("documents.Hook", document)

    async def decisions(self, hook: "str | documents.Hook") -> "Sequence[documents.AuditEntry]":
        """The entries of the audit log about a hook, in order."""
        document = await self._request(hook, "GET", "decisions")
        return cast("Sequence[documents.AuditEntry]", document["decisions"])

    async def _request(
        self, hook: "str | documents.Hook", method: str, path: str, body: Json = None
    ) -> Json:
        hook_id = hook if isinstance(hook, str) else hook["id"]
        return await self._connection.call(method, url_path("hooks", hook_id, path), body=body)


class EventClient:
    """Requests about events."""

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection

    async def history(
        self, stack: str, *, nested: bool = False, after: int = 0
    ) -> "AsyncGenerator[documents.CloudEvent, None]":
        """The recorded events of a stack, in order, page by page. after: the number of an event."""
        path = _path(await find_stack(self._connection, stack), "history")
        query = {"after": str(after), "nested": str(nested).lower()}
        async for page in self._connection.pages(path, query, marker="after"):
            for one in page["events"]:
                yield one

    async def stream(
        self,
        *,
        stack: str | None = None,
        types: Sequence[str] = (),
        stacks: Sequence[str] = (),
        resources: Sequence[str] = (),
        resource_types: Sequence[str] = (),
        points: Sequence[str] = (),
        tags: Sequence[str] = (),
        nested: bool = True,
        last_event_id: str = "",
        reconnect_timeout: float = RECONNECT_TIMEOUT,
        on_connect: Callable[[], Awaitable[None]] | None = None,
    ) -> AsyncGenerator[StreamedEvent, None]:
        """The events of the project from now on, or after `last_event_id`, without end.

        Reconnects after the last event. Raises UnreachableError if this fails for
        `reconnect_timeout` seconds, and EventsGoneError if the events in between were purged.
        on_connect: called after each connection, before its first event: read the current state
        there, because a server of version 0.2.0 sends no position before the first event, after
        which the stream could resume. The other arguments are
        globs that select events; see `GET /v1/{project}/events/stream`.
        """
        globs = {
            "types": types,
            "stacks": stacks,
            "resources": resources,
            "resource_types": resource_types,
            "points": points,
            "tags": tags,
        }
        query = {name: ",".join(values) for name, values in globs.items() if values}
        query |= {"stack": stack} if stack else {}
        query |= {} if nested else {"nested": "false"}
        loop, last = asyncio.get_running_loop(), last_event_id
        lost_at, pause = loop.time(), FIRST_RETRY
        while True:
            connected = False
            try:
                async with self._connection.stream(query=query, last=last) as events:
                    if on_connect is not None:
                        await on_connect()
                    connected, pause = True, FIRST_RETRY
                    try:
                        async for event in events:
                            yield event
                    finally:
                        last = events.last
                lost_at = loop.time()
            except RequestError as error:
                lasting = error.status and error.status < 500
                if lasting and not isinstance(error, RateLimitError):
                    raise
                now = loop.time()
                if connected:
                    lost_at = now
                if now - lost_at > reconnect_timeout:
                    raise
            await asyncio.sleep(pause)
            pause = min(2 * pause, MAX_RETRY)


class SubscriptionClient:
    """Requests about subscriptions. subscription: its ID."""

    def __init__(self, connection: ApiConnection) -> None:
        self._connection = connection

    async def create(
        self, target: str, *, channel: str = "webhook", **options: Unpack[SubscriptionOptions]
    ) -> "documents.NewSubscription":
        """The `secret` of a webhook is only in this response."""
        body = {"channel": channel, "target": target, **options}
        document = await self._connection.call("POST", url_path("subscriptions"), body=body)
        return cast("documents.NewSubscription", document)

    async def list(self) -> "AsyncGenerator[documents.Subscription, None]":
        """All subscriptions, page by page."""
        async for page in self._connection.pages(
            url_path("subscriptions"), {"limit": str(PAGE_SIZE)}
        ):
            for one in page["subscriptions"]:
                yield one

    async def show(self, subscription: str) -> "documents.Subscription":
        return cast("documents.Subscription", await self._request("GET", subscription))

    async def update(
        self,
        subscription: str,
        *,
        target: str | None = None,
        state: Literal["enabled", "disabled"] | None = None,
        **options: Unpack[SubscriptionOptions],
    ) -> "documents.Subscription":
        body: dict[str, Json] = {**options}
        body |= {} if target is None else {"target": target}
        body |= {} if state is None else {"state": state}
        return cast("documents.Subscription", await self._request("PATCH", subscription, body=body))

    async def delete(self, subscription: str) -> None:
        await self._request("DELETE", subscription)

    async def test(self, subscription: str) -> "documents.TestDelivered | documents.TestFailed":
        """Deliver a test event now."""
        document = await self._request("POST", subscription, "test")
        return cast("documents.TestDelivered | documents.TestFailed", document)

    async def rotate(self, subscription: str) -> "documents.RotatedSecret":
        """Replace the signing secret of a webhook."""
        document = await self._request("POST", subscription, "rotate")
        return cast("documents.RotatedSecret", document)

    async def deliveries(
        self, subscription: str, *, state: Literal["pending", "delivered", "dead"] | None = None
    ) -> "AsyncIterator[documents.Delivery]":
        """The delivery history, page by page."""
        query = {"limit": str(PAGE_SIZE)} | ({"state": state} if state else {})
        path = url_path("subscriptions", subscription, "deliveries")
        async for page in self._connection.pages(path, query):
            for one in page["deliveries"]:
                yield one

    async def _request(
        self, method: str, subscription: str, *parts: str, body: Json = None
    ) -> Json:
        path = url_path("subscriptions", subscription, *parts)
        return await self._connection.call(method, path, body=body)
