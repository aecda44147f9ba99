"""Tests of listeners without a server: notifications, and a client that calls handlers.

async with ListenerClient(app) as client:
    result = await client.notify(notification("pre-delete", resource="db_1"))
    assert result.decision == "reject"
"""

import asyncio
from collections.abc import Mapping
from contextlib import AsyncExitStack
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Self
from uuid import uuid4

from headgate.listener.app import Listener
from headgate.listener.hook_run import HookRun
from headgate.listener.notification import WAITING, HookClosed, HookNotification

Json = Any
ALLOWED = ("continue", "reject", "step", "run", "progress")
#: Seconds to wait for a handler.
TIMEOUT = 60.0


def notification(
    point: str = "pre-create",
    *,
    resource: str = "web",
    type: str = "OS::Heat::TestResource",  # as in templates
    properties: Mapping[str, Json] | None = None,
    changes: Mapping[str, Json] | None = None,
    change: Mapping[str, Json] | None = None,
    stack: str = "demo",
    project: str = "default",
    path: str | None = None,
    timeout: timedelta = timedelta(hours=24),
    **hook: Json,
) -> dict[str, Json]:
    """The event of a hook that has just opened, as Headgate sends it.

    path: from the root stack; by default the resource is in the root stack. At a point of the whole
    stack (`pre-stack-...`), there is no resource; change: keys of the change. hook: further keys of
    the hook, such as `by_operator`, `dry`, `patch` or `ask`.
    """
    now, stack_id = datetime.now(UTC), str(uuid4())
    of_stack = point.startswith(("pre-stack-", "post-stack-"))
    place = "" if of_stack else path or resource
    nested = place.rpartition("/")[0]
    rule = {"patch": hook.get("patch", [])}
    data: dict[str, Json] = {
        "hook": {
            "id": str(uuid4()),
            "stack_id": stack_id,
            "stack_name": stack,
            "root_stack_id": stack_id,
            "root_stack_name": stack,
            "traversal": 1,
            "node": 1,
            "resource_name": None if of_stack else place.rpartition("/")[2],
            "path": place,
            "point": point,
            "mode": "wait",
            "state": "waiting",
            "opened_at": _rfc3339(now),
            "deadline": _rfc3339(now + timeout),
            "on_timeout": "stop",
            "allowed": [*ALLOWED, *(["patch"] if rule["patch"] else [])],
            "digest": uuid4().hex + uuid4().hex,
            "approvals": {"needed": 1, "given": 0, "by": []},
            "answer_by": [],
            "exclude": "",
            "ask": None,
            "patch": [],
            "dry": False,
            "by_operator": False,
            "requested_by": "ada",
            "assigned": None,
            "reminders": 0,
            "escalated_at": None,
            "answers": {},
            "asked": [],
            "told": [],
            **hook,
        },
        "stack": {
            "id": stack_id,
            "name": stack,
            "project": project,
            "path": nested,
            "root": {"id": stack_id, "name": stack},
        },
        "traversal": 1,
        "node": 1,
        "resource": None,
        "signal_url": "http://127.0.0.1:8004/hooks/test/signal",
        "token": "test",
    }
    if of_stack:
        data["change"] = {
            "action": point.rpartition("-")[2].upper(),
            "version": 1,
            "requested_by": "ada",
            "parameters": {},
            "tags": [],
            "plan": [],
            "only": None,
            **(change or {}),
        }
    else:
        data["resource"] = {
            "name": place.rpartition("/")[2],
            "type": type,
            "physical_id": None,
            "operation": point.partition("-")[2],
            "properties": dict(properties or {}),
            "changes": dict(changes or {}),
            "dependents": [],
            "seen": {},
            "drift": None,
            "renewed": None,
        }
    event = {
        "specversion": "1.0",
        "id": str(uuid4()),
        "source": f"/v1/{project}/stacks/{stack}/{stack_id}",
        "type": WAITING,
        "time": _rfc3339(now),
        "datacontenttype": "application/json",
        "dataschema": f"urn:headgate:schema:{WAITING}:1",
        "sequence": 2,
        "rootstack": stack_id,
        "data": data,
    }
    if nested:
        event["stackpath"] = nested
    return event if of_stack else {**event, "subject": place}


def _rfc3339(time: datetime) -> str:
    return time.isoformat(timespec="microseconds").replace("+00:00", "Z")


@dataclass(slots=True)
class ListenerResult:
    """answer: the body that Headgate would get; None: no answer. progress: the reasons of reports
    before it."""

    answer: dict[str, Json] | None = None
    progress: list[str] = field(default_factory=list)

    @property
    def decision(self) -> str | None:
        return None if self.answer is None else str(self.answer["decision"])

    @property
    def reason(self) -> str:
        return "" if self.answer is None else str(self.answer["reason"])


class _MemorySender:
    """Takes answers in place of Headgate."""

    def __init__(self) -> None:
        self.results: dict[str, ListenerResult] = {}
        self.closed: set[str] = set()

    async def send(self, notification: HookNotification, body: Mapping[str, Json]) -> str | None:
        if notification.id in self.closed:
            raise HookClosed("the hook is closed")
        result = self.results.setdefault(notification.id, ListenerResult())
        if body["decision"] != "progress":
            result.answer = dict(body)
            return None
        result.progress.append(str(body["reason"]))
        timeout = timedelta(hours=24)
        return _rfc3339(datetime.now(UTC) + timeout)


class ListenerClient:
    """Gives events to a listener, as its channels do; an async context manager."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._sender = _MemorySender()
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        await self._open.enter_async_context(self._listener.working())
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._open.aclose()

    async def notify(self, event: Mapping[str, Json]) -> ListenerResult:
        """Give a notification to the listener, and wait for its handler. Raises TimeoutError."""
        run = self.start(event)
        if run is not None:
            async with asyncio.timeout(TIMEOUT):
                await asyncio.shield(run.answered)
        return self.result(event)

    def start(self, event: Mapping[str, Json]) -> HookRun | None:
        """Give a notification to the listener, and do not wait. None: no handler runs."""
        return self._listener.accept(deepcopy(dict(event)), self._sender)

    def result(self, event: Mapping[str, Json]) -> ListenerResult:
        """The answer and the reports of progress so far."""
        return self._sender.results.setdefault(event["data"]["hook"]["id"], ListenerResult())

    async def close(self, event: Mapping[str, Json], state: str = "superseded") -> None:
        """Close the hook of a notification: `answered`, `expired` or `superseded`."""
        hook = event["data"]["hook"]
        self._sender.closed.add(hook["id"])
        data = {**event["data"], "hook": {**hook, "state": state}}
        await self.send({**event, "type": f"headgate.hook.{state}", "data": data})

    async def send(self, event: Mapping[str, Json]) -> None:
        """Give any other event to the listener. Raises what its handlers raise."""
        await self._listener.handle_event(event)
