"""Actions on a whole stack: check, suspend, resume, cancel, stop, observe, converge."""

from collections.abc import Awaitable, Callable, Mapping
from types import NoneType
from uuid import UUID

from aiohttp import web

from engine.errors import Findings, one_of
from engine.service import Engine
from engine.words import Action, Json
from hub.api.app_context import context_of, identity_of, project_of
from hub.api.orchestration.request_texts import locate_errors
from hub.api.orchestration.stack_requests import converge_request
from hub.api.orchestration.stacks import S
from hub.api.request_validation import body_of, invalid, stack_of
from hub.api.routes import Route, json_response
from hub.api.stack_changes import changes_stack
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


#: Headgate's own actions without options. Heat ignores the options of the others.
OWN = frozenset({"stop", "observe"})
#: An update that repairs drift.
CONVERGE = "converge"
#: Keys of the map of `converge`, as of an update.
CONVERGE_KEYS = ("only", "except", "plan_digest", "hooks", "rounds")


async def _converge(request: web.Request, stack_id: UUID, options: Json) -> None:
    """Observe the stack, then update it with the template that it has. options: null, or a map."""
    if options is not None and not isinstance(options, dict):
        raise invalid(CONVERGE, "must be a map or null", 'Send {"converge": null}.')
    for key in options or {}:
        if key not in CONVERGE_KEYS:
            remedy = one_of(key, CONVERGE_KEYS, "Known")
            raise invalid(f"{CONVERGE}.{key}", "is not a known key here", remedy)
    who, project = identity_of(request), project_of(request)
    new = converge_request(options or {}, who.principal, who.credential)
    engine = context_of(request).engine
    await engine.observations.complete(project, stack_id)
    warned = Findings()
    async with locate_errors(request, new, warned):
        await engine.stacks.update(project, stack_id, new, warned)


def _refuse_options(name: str, options: Json) -> None:
    remedy = f'Send {{"{name}": null}}.'
    if isinstance(options, dict):
        for key in options:
            raise invalid(f"{name}.{key}", "is not a known key here", remedy)
    elif options not in (None, ""):
        raise invalid(name, "must be null", remedy)


async def act(request: web.Request) -> web.Response:
    stack, body = await stack_of(request), await body_of(request)
    names = list(body)
    known = f"One of {', '.join((*ACTIONS, CONVERGE))}."
    if not names:
        raise invalid("", "No action specified", known)
    if len(names) > 1:
        raise invalid("", "Multiple actions specified", "Send one at a time.")
    if names[0] == CONVERGE:
        await _converge(request, stack.id, body[CONVERGE])
        return json_response(None)
    if names[0] not in ACTIONS:
        raise invalid("", f"Invalid action {names[0]} specified", known)
    if names[0] in OWN:
        _refuse_options(names[0], body[names[0]])
    who = identity_of(request)
    await ACTIONS[names[0]](context_of(request).engine, project_of(request), stack.id, who)
    return json_response(None)


ROUTES = (
    Route("POST", f"{S}/actions", changes_stack(act),
          "Check, suspend, resume, cancel, stop, observe or converge a stack", "stacks",
          takes_body=True, response=NoneType),
)  # fmt: skip
