"""A policy engine: a stack passes only when each of its servers says who owns it.

    SECRET=whsec_... python owner_tag.py --types 'OS::Nova::Server' --tag metadata.owner

Headgate asks before the whole stack (`pre-stack-create`, `pre-stack-update`) and sends the plan
along; the answer goes back in the response. See README.md beside this file.
"""

import argparse
import os
from fnmatch import fnmatchcase
from typing import Any

from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

POINTS = ("pre-stack-create", "pre-stack-update")


def without_owner(plan: list[dict[str, Any]], types: list[str], tag: str) -> list[str]:
    """The resources that may not be as they are planned: ``name (why)``."""
    wrong = []
    for one in plan:
        if not any(fnmatchcase(one["type"], pattern) for pattern in types):
            continue
        if one["change"] not in ("added", "updated", "replaced"):
            continue
        first, *rest = tag.split(".")
        if first in one["unknown"]:
            wrong.append(f"{one['name']} ({first} is not known before it is made)")
            continue
        if one["change"] != "added" and first not in one["properties"]:
            continue  # it stays as it passed here before
        if not found(one["properties"].get(first), rest):
            wrong.append(f"{one['name']} (no {tag})")
    return wrong


def found(value: Any, path: list[str]) -> Any:
    for part in path:
        value = value.get(part) if isinstance(value, dict) else None
    return value


async def notice(request: web.Request) -> web.Response:
    options, webhook = request.app["options"], request.app["webhook"]
    try:
        event = webhook.verify(await request.read(), dict(request.headers))
    except WebhookVerificationError as error:
        raise web.HTTPUnauthorized(text=str(error)) from None
    data = event["data"]
    if event["type"] != "headgate.hook.waiting" or data["hook"]["point"] not in POINTS:
        return web.Response(status=204)
    wrong = without_owner(data["change"]["plan"], options.types, options.tag)
    if wrong:
        return web.json_response({"decision": "reject", "reason": f"no owner: {', '.join(wrong)}"})
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
