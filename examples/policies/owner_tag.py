"""A policy engine: a stack passes only when each of its servers says who owns it.

    SECRET=whsec_... python owner_tag.py --types 'OS::Nova::Server' --tag metadata.owner

Headgate asks twice, and the answer goes back in the response. Before the whole stack
(`pre-stack-create`, `pre-stack-update`) the notice has the plan: what is wrong there is refused
before anything is done. Before each server (`pre-create`, `pre-update`) it has all properties with
their final values: what nobody could know before is refused there. See README.md beside this file.
"""

import argparse
import os
from fnmatch import fnmatchcase
from typing import Any

from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError


def in_plan(plan: list[dict[str, Any]], types: list[str], tag: str) -> list[str]:
    """Servers of a plan that will have no owner, as far as that can be known."""
    first = tag.partition(".")[0]
    return [
        one["name"]
        for one in plan
        if matches(one["type"], types)
        and one["change"] in ("added", "updated", "replaced")
        and first not in one["unknown"]
        # Of what exists already, the plan shows the properties that change.
        and (one["change"] == "added" or first in one["properties"])
        and not found(one["properties"], tag)
    ]


def matches(type_name: str, types: list[str]) -> bool:
    return any(fnmatchcase(type_name, pattern) for pattern in types)


def found(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


async def notice(request: web.Request) -> web.Response:
    options, webhook = request.app["options"], request.app["webhook"]
    try:
        event = webhook.verify(await request.read(), dict(request.headers))
    except WebhookVerificationError as error:
        raise web.HTTPUnauthorized(text=str(error)) from None
    if event["type"] != "headgate.hook.waiting":
        return web.Response(status=204)
    data = event["data"]
    resource = data["resource"]  # None: it is about the stack
    if resource is None:
        wrong = in_plan(data["change"]["plan"], options.types, options.tag)
    else:
        lacks = matches(resource["type"], options.types) and not found(
            resource["properties"], options.tag
        )
        wrong = [resource["name"]] if lacks else []
    if wrong:
        reason = f"no {options.tag}: {', '.join(wrong)}"
        return web.json_response({"decision": "reject", "reason": reason})
    return web.json_response({"decision": "continue", "reason": "every server has an owner"})


def main() -> None:
    parser = argparse.ArgumentParser(description="Refuses stacks with servers that nobody owns.")
    parser.add_argument("--port", type=int, default=9001)
    parser.add_argument("--types", nargs="+", default=["OS::Nova::Server"], help="globs")
    parser.add_argument("--tag", default="metadata.owner", help="a property, or a path into one")
    app = web.Application()
    app["options"] = options = parser.parse_args()
    app["webhook"] = Webhook(os.environ["SECRET"])
    app.router.add_post("/", notice)
    web.run_app(app, host="127.0.0.1", port=options.port)


if __name__ == "__main__":
    main()
