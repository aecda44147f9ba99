"""Limits the number of resources of a type, in all stacks of all projects, with licenses.

    SECRET=whsec_... python licenses.py --types 'Acme::Database' --max-licenses 10

Before a stack is created, updated, restored or rolled back (see POINTS), it takes a license
for each new resource, for all of them or for none. When an action has ended, successfully or not,
it asks Headgate which resources exist, and returns the other licenses. See README.md.
"""

import argparse
import asyncio
import json
import os
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

POINTS = ("pre-stack-create", "pre-stack-update", "pre-stack-restore", "pre-stack-rollback")
ENDS = ("completed", "failed", "stopped")


class Ledger:
    """The licenses in use: names of resources by stack ID, stored in a file."""

    def __init__(self, path: Path, types: list[str], max_licenses: int, headgate: str) -> None:
        self.path, self.types, self.max_licenses, self.headgate = (
            path,
            types,
            max_licenses,
            headgate,
        )
        self.held: dict[str, list[str]] = json.loads(path.read_text()) if path.exists() else {}
        # A stack takes no licenses while it is counted.
        self.lock = asyncio.Lock()

    async def take(self, stack_id: str, plan: list[dict[str, Any]]) -> str | None:
        """None if the licenses were taken, otherwise the reason why not."""
        needed = {
            resource["name"]
            for resource in plan
            if resource["change"] == "added" and self.counts(resource["type"])
        }
        async with self.lock:
            # A union, because a notification can be delivered twice.
            own = needed | set(self.held.get(stack_id, ()))
            others = sum(len(held) for key, held in self.held.items() if key != stack_id)
            if others + len(own) > self.max_licenses:
                free = self.max_licenses - others
                return f"{len(own)} licenses are needed, and {free} of {self.max_licenses} are free"
            self.save(stack_id, own)
        return None

    async def count(self, stack_id: str, source: str) -> None:
        """Return the licenses of resources that do not exist.

        Does nothing while another action is in progress; its end leads to the next count.
        """
        url = f"{self.headgate}{source}"
        async with self.lock, aiohttp.ClientSession(raise_for_status=True) as session:
            try:
                async with session.get(url) as answer:
                    status = (await answer.json())["stack"]["stack_status"]
                async with session.get(f"{url}/resources") as answer:
                    resources = (await answer.json())["resources"]
            except aiohttp.ClientResponseError as error:
                if error.status != 404:
                    raise
                status, resources = "DELETE_COMPLETE", []
            if not status.endswith("_IN_PROGRESS"):
                existing = {
                    resource["resource_name"]
                    for resource in resources
                    if resource["physical_resource_id"] and self.counts(resource["resource_type"])
                }
                self.save(stack_id, existing)

    def counts(self, type_name: str) -> bool:
        return any(fnmatchcase(type_name, pattern) for pattern in self.types)

    def save(self, stack_id: str, names: set[str]) -> None:
        self.held.pop(stack_id, None)
        if names:
            self.held[stack_id] = sorted(names)
        new_file = self.path.with_suffix(".new")
        new_file.write_text(json.dumps(self.held))
        new_file.replace(self.path)


async def receive_notification(request: web.Request) -> web.Response:
    ledger, webhook = request.app["ledger"], request.app["webhook"]
    try:
        event = webhook.verify(await request.read(), dict(request.headers))
    except WebhookVerificationError as error:
        raise web.HTTPUnauthorized(text=str(error)) from None
    kind, data = event["type"], event["data"]
    if kind == "headgate.hook.waiting":
        if not data["hook"]["by_operator"] or data["hook"]["point"] not in POINTS:
            return web.Response(status=204)  # a rule of the project, which others answer
        missing = await ledger.take(data["stack"]["id"], data["change"]["plan"])
        if missing:
            return web.json_response({"decision": "reject", "reason": missing})
        return web.json_response({"decision": "continue", "reason": "licenses are available"})
    if kind.startswith("headgate.stack.") and kind.rpartition(".")[2] in ENDS:
        await ledger.count(data["stack"]["id"], event["source"])
    return web.Response(status=204)


async def show_licenses(request: web.Request) -> web.Response:
    ledger = request.app["ledger"]
    taken = sum(len(held) for held in ledger.held.values())
    return web.json_response({"max": ledger.max_licenses, "taken": taken, "held": ledger.held})


async def application(options: argparse.Namespace) -> web.Application:
    app = web.Application()
    app["ledger"] = Ledger(options.ledger, options.types, options.max_licenses, options.headgate)
    app["webhook"] = Webhook(os.environ["SECRET"])
    app.router.add_post("/", receive_notification)
    app.router.add_get("/", show_licenses)
    return app


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts licenses.")
    parser.add_argument("--port", type=int, default=9002)
    parser.add_argument("--types", nargs="+", default=["Acme::Database"], help="globs")
    parser.add_argument("--max-licenses", type=int, default=10)
    parser.add_argument("--ledger", type=Path, default=Path("licenses.json"))
    parser.add_argument("--headgate", default="http://127.0.0.1:8004")
    options = parser.parse_args()
    web.run_app(application(options), host="127.0.0.1", port=options.port)


if __name__ == "__main__":
    main()
