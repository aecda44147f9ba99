"""Actions on a whole stack: check, suspend, resume, cancel, stop."""

from collections.abc import Awaitable, Callable, Mapping
from types import NoneType
from uuid import UUID

from aiohttp import web

from engine.service import Engine
from engine.words import Action
from hub.api.orchestration.stacks import S
from hub.api.parts import (
    Route,
    answer,
    body_of,
    identity_of,
    invalid,
    parts_of,
    project_of,
    stack_of,
)
from hub.auth.identity import Identity

Act = Callable[[Engine, str, UUID, Identity], Awaitable[None]]


def _visit(action: Action) -> Act:
    return lambda engine, project, stack_id, who: engine.stacks.start_action(
        project, stack_id, action, who.principal, credential=who.credential
    )


def _cancel(*, rollback: bool) -> Act:
    return lambda engine, project, stack_id, who: engine.stacks.cancel(
        project, stack_id, who.principal, rollback=rollback
    )


#: `stop` is Headgate's own: what is under way ends as STOPPED, and an update goes on.
ACTIONS: Mapping[str, Act] = {
    "suspend": _visit(Action.SUSPEND),
    "resume": _visit(Action.RESUME),
    "check": _visit(Action.CHECK),
    "cancel_update": _cancel(rollback=True),
    "cancel_without_rollback": _cancel(rollback=False),
    "stop": lambda engine, project, stack_id, who: engine.stacks.stop(
        project, stack_id, who.principal
    ),
}


async def act(request: web.Request) -> web.Response:
    stack = await stack_of(request)
    asked = list(await body_of(request))
    known = f"One of {', '.join(ACTIONS)}."
    if not asked:
        raise invalid("", "No action specified", known)
    if len(asked) > 1:
        raise invalid("", "Multiple actions specified", "Send one at a time.")
    if asked[0] not in ACTIONS:
        raise invalid("", f'there is no action "{asked[0]}"', known)
    who = identity_of(request)
    await ACTIONS[asked[0]](parts_of(request).engine, project_of(request), stack.id, who)
    return answer(None)


ROUTES = (
    Route("POST", f"{S}/actions", act,
          "Check, suspend, resume, cancel or stop a stack", "stacks", takes_body=True,
          response=NoneType),
)  # fmt: skip
