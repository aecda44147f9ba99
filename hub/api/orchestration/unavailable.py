"""What the Orchestration API has and this release has not: refused by name, never half done."""

from collections.abc import Mapping

from aiohttp import web

from hub.api.parts import Handler, Route, body_of, invalid, stack_of

S = "/v1/{project}/stacks/{name}/{id}"
#: Action -> what to do instead.
ACTIONS: Mapping[str, str] = {
    "suspend": "",
    "resume": "A stopped stack goes on with an update (PATCH).",
    "check": "",
    "cancel_update": "Update the stack again: the newer update takes over.",
    "cancel_without_rollback": "Update the stack again: the newer update takes over.",
}


def not_yet(what: str, remedy: str = "") -> Handler:
    """A handler that says that `what` is not there."""

    async def refuse(_: web.Request) -> web.Response:
        raise invalid("", f"{what} is not available in this release", remedy, "NotSupported")

    return refuse


async def act(request: web.Request) -> web.Response:
    await stack_of(request)
    asked = list(await body_of(request))
    if not asked:
        known = f"One of {', '.join(ACTIONS)}."
        raise invalid("", "No action specified", known)
    if len(asked) > 1:
        raise invalid("", "Multiple actions specified", "Send one at a time.")
    action = asked[0]
    if action not in ACTIONS:
        reason = f'there is no action "{action}"'
        raise invalid("", reason, f"One of {', '.join(ACTIONS)}.")
    reason = f'the action "{action}" is not available in this release'
    raise invalid("", reason, ACTIONS[action], "NotSupported")


#: (method, path, what it would be)
MISSING = (
    ("PUT", f"{S}/preview", "previewing an update"),
    ("PATCH", f"{S}/preview", "previewing an update"),
    ("POST", f"{S}/snapshots", "a snapshot of a stack"),
    ("GET", f"{S}/snapshots", "a snapshot of a stack"),
    ("GET", f"{S}/snapshots/{{snapshot}}", "a snapshot of a stack"),
    ("DELETE", f"{S}/snapshots/{{snapshot}}", "a snapshot of a stack"),
    ("POST", f"{S}/snapshots/{{snapshot}}/restore", "restoring a snapshot"),
    ("DELETE", f"{S}/abandon", "abandoning a stack"),
    ("GET", f"{S}/export", "exporting a stack"),
    ("GET", "/v1/{project}/resource_types/{type}/template", "a template of a resource type"),
)

ROUTES = (
    Route("POST", f"{S}/actions", act, "Not available in this release", "stacks",
          takes_body=True, status=400),
    *(Route(method, path, not_yet(what), "Not available in this release", "stacks", status=400)
      for method, path, what in MISSING),
)  # fmt: skip
