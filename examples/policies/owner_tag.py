"""A policy program: rejects a stack if one of its servers has no owner.

    SECRET=whsec_... python owner_tag.py --types 'OS::Nova::Server' --tag metadata.owner

Headgate notifies it twice, and each response contains the answer. Before the stack is created,
updated, restored or rolled back (`pre-stack-create`, `pre-stack-update`, `pre-stack-restore`,
`pre-stack-rollback`), the notification has the plan. Before each server is
created or updated (`pre-create`, `pre-update`), it has all properties with their final values,
which the plan may not know. See README.md.
"""

import argparse
import os
from fnmatch import fnmatchcase
from typing import Any

from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

#: In place of a hidden value, and of values that are computed from one.
MASK = "******"


def servers_without_owner(plan: list[dict[str, Any]], types: list[str], tag: str) -> list[str]:
    """Names of the servers in a plan that will have no owner, as far as the plan knows."""
    first = tag.partition(".")[0]
    return [
        resource["name"]
        for resource in plan
        if matches(resource["type"], types)
        and resource["change"] in ("added", "updated", "replaced")
        and first not in resource["unknown"]
        # For an existing resource, the plan has only the properties that change.
        and (resource["change"] == "added" or first in resource["properties"])
        and not value_at(resource["properties"], tag)
    ]


def matches(type_name: str, types: list[str]) -> bool:
    return any(fnmatchcase(type_name, pattern) for pattern in types)


def value_at(value: Any, path: str) -> Any:
    """The value at a path; None if there is none, or if it is masked and cannot be checked."""
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return None if MASK in str(value) else value


async def receive_notification(request: web.Request) -> web.Response:
    options, webhook = request.app["options"], request.app["webhook"]
    try:
        event = webhook.verify(await request.read(), dict(request.headers))
    except WebhookVerificationError as error:
        raise web.HTTPUnauthorized(text=str(error)) from None
    if event["type"] != "headgate.hook.waiting":
        return web.Response(status=204)
    data = event["data"]
    if not data["hook"]["by_operator"]:
        return web.Response(status=204)  # a rule of the project, which others answer
    resource = data["resource"]  # None at the points of the whole stack
    if resource is None:
        rejected = servers_without_owner(data["change"]["plan"], options.types, options.tag)
    else:
        missing = matches(resource["type"], options.types) and not value_at(
            resource["properties"], options.tag
        )
        rejected = [resource["name"]] if missing else []
    if rejected:
        reason = f"no {options.tag}: {', '.join(rejected)}"
        return web.json_response({"decision": "reject", "reason": reason})
    return web.json_response({"decision": "continue", "reason": "every server has an owner"})


def main() -> None:
    parser = argparse.ArgumentParser(description="Rejects stacks with servers that have no owner.")
    parser.add_argument("--port", type=int, default=9001)
    parser.add_argument("--types", nargs="+", default=["OS::Nova::Server"], help="globs")
    parser.add_argument(
        "--tag", default="metadata.owner", help="a property, or a path in a property"
    )
    app = web.Application()
    app["options"] = options = parser.parse_args()
    app["webhook"] = Webhook(os.environ["SECRET"])
    app.router.add_post("/", receive_notification)
    web.run_app(app, host="127.0.0.1", port=options.port)


if __name__ == "__main__":
    main()
