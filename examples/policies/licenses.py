"""Licenses: at most so many resources of a type at a time, in all stacks of all projects.

    SECRET=whsec_... python licenses.py --types 'Acme::Database' --most 10

Before a stack's action (`pre-stack-create`, `pre-stack-update`) it takes a license for each
resource that is added, for all of them or for none. When an action has ended, however it ended, it
asks Headgate what is really there, and gives the rest back. See README.md beside this file.
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

POINTS = ("pre-stack-create", "pre-stack-update")
ENDS = ("completed", "failed", "stopped")


class Ledger:
    """Who holds how many: names of resources by stack, in a file."""

    def __init__(self, path: Path, types: list[str], most: int, headgate: str) -> None:
        self.path, self.types, self.most, self.headgate = path, types, most, headgate
        self.held: dict[str, list[str]] = json.loads(path.read_text()) if path.exists() else {}
        # A stack that is being counted takes nothing meanwhile.
        self.lock = asyncio.Lock()

    async def take(self, stack_id: str, plan: list[dict[str, Any]]) -> str | None:
        """Why there are not enough, or None: they are taken."""
        wanted = {
            one["name"] for one in plan if one["change"] == "added" and self.counts(one["type"])
        }
        async with self.lock:
            # A union: the same notice may come twice.
            mine = wanted | set(self.held.get(stack_id, ()))
            others = sum(len(held) for key, held in self.held.items() if key != stack_id)
            if others + len(mine) > self.most:
                free = self.most - others
                return f"{len(mine)} licenses are needed, and {free} of {self.most} are free"
            self.keep(stack_id, mine)
        return None

    async def count(self, stack_id: str, source: str) -> None:
        """Give back what is not there. While the next action runs, its end is waited for."""
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
                there = {
                    one["resource_name"]
                    for one in resources
                    if one["physical_resource_id"] and self.counts(one["resource_type"])
                }
                self.keep(stack_id, there)

    def counts(self, type_name: str) -> bool:
        return any(fnmatchcase(type_name, pattern) for pattern in self.types)

    def keep(self, stack_id: str, names: set[str]) -> None:
        self.held.pop(stack_id, None)
        if names:
            self.held[stack_id] = sorted(names)
        fresh = self.path.with_suffix(".new")
        fresh.write_text(json.dumps(self.held))
        fresh.replace(self.path)


async def notice(request: web.Request) -> web.Response:
    ledger, webhook = request.app["ledger"], request.app["webhook"]
    try:
        event = webhook.verify(await request.read(), dict(request.headers))
    except WebhookVerificationError as error:
        raise web.HTTPUnauthorized(text=str(error)) from None
    kind, data = event["type"], event["data"]
    if kind == "headgate.hook.waiting" and data["hook"]["point"] in POINTS:
        missing = await ledger.take(data["stack"]["id"], data["change"]["plan"])
        if missing:
            return web.json_response({"decision": "reject", "reason": missing})
        return web.json_response({"decision": "continue", "reason": "there are licenses"})
    if kind.startswith("headgate.stack.") and kind.rpartition(".")[2] in ENDS:
        await ledger.count(data["stack"]["id"], event["source"])
    return web.Response(status=204)


async def shown(request: web.Request) -> web.Response:
    ledger = request.app["ledger"]
    taken = sum(len(held) for held in ledger.held.values())
    return web.json_response({"most": ledger.most, "taken": taken, "held": ledger.held})


async def application(options: argparse.Namespace) -> web.Application:
    app = web.Application()
    app["ledger"] = Ledger(options.ledger, options.types, options.most, options.headgate)
    app["webhook"] = Webhook(os.environ["SECRET"])
    app.router.add_post("/", notice)
    app.router.add_get("/", shown)
    return app


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts licenses.")
    parser.add_argument("--port", type=int, default=9002)
    parser.add_argument("--types", nargs="+", default=["Acme::Database"], help="globs")
    parser.add_argument("--most", type=int, default=10)
    parser.add_argument("--ledger", type=Path, default=Path("licenses.json"))
    parser.add_argument("--headgate", default="http://127.0.0.1:8004")
    options = parser.parse_args()
    web.run_app(application(options), host="127.0.0.1", port=options.port)


if __name__ == "__main__":
    main()
