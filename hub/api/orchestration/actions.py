"""Actions on a whole stack: check, suspend, resume, cancel, stop, observe."""

from collections.abc import Awaitable, Callable, Mapping
from types import NoneType
from uuid import UUID

from aiohttp import web

from engine.service import Engine
from engine.words import Action
from hub.api.app_context import context_of, identity_of, project_of
from hub.api.orchestration.stacks import S
from hub.api.request_validation import body_of, invalid, stack_of
from hub.api.routes import Route, json_response
from hub.auth.identity import Identity

Act = Callable[[Engine, str, UUID, Identity], Awaitable[None]]


def _start(action: Action) -> Act:
    return lambda engine, project, stack_id, who: engine.stacks.start_action(
        project, stack_id, action, who.principal, credential=who.credential
    )


def _cancel(*, rollback: bool) -> Act:
    return lambda engine, project, stack_id, who: engine.stacks.cancel(
        project, stack_id, who.principal, rollback=rollback
    )


#: `stop` and `observe` are Headgate's own actions.
ACTIONS: Mapping[str, Act] = {
    "suspend": _start(Action.SUSPEND),
    "resume": _start(Action.RESUME),
    "check": _start(Action.CHECK),
    "cancel_update": _cancel(rollback=True),
    "cancel_without_rollback": _cancel(rollback=False),
    "stop": lambda engine, project, stack_id, who: engine.stacks.stop(
        project, stack_id, who.principal
    ),
    "observe": lambda engine, project, stack_id, _: engine.observations.request(project, stack_id),
}


async def act(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    names = list(await body_of(request))
    known = f"One of {', '.join(ACTIONS)}."
    if not names:
        raise invalid("", "No action specified", known)
    if len(names) > 1:
        raise invalid("", "Multiple actions specified", "Send one at a time.")
    if names[0] not in ACTIONS:
        raise invalid("", f'there is no action "{names[0]}"', known)
    who = identity_of(request)
    await ACTIONS[names[0]](context_of(request).engine, project_of(request), stack.id, who)
    return json_response(None)


ROUTES = (
    Route("POST", f"{S}/actions", act,
          "Check, suspend, resume, cancel, stop or observe a stack", "stacks", takes_body=True,
          response=NoneType),
)  # fmt: skip
