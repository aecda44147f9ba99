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
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from aiohttp import web

import headgate
from headgate import Continue, HookAnswer, HookNotification, Reject
from headgate.listener.webhook import web_application

POINTS = ("pre-stack-create", "pre-stack-update", "pre-stack-restore", "pre-stack-rollback")
ENDS = ("completed", "failed", "stopped")
app = headgate.Listener()


class Ledger:
    """The licenses in use: names of resources by stack ID, stored in a file."""

    def __init__(self, path: Path, types: list[str], max_licenses: int, url: str) -> None:
        self.path, self.types, self.max_licenses = path, types, max_licenses
        self.url = url
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

    async def count(self, project: str, stack_id: str) -> None:
        """Return the licenses of resources that do not exist.

        Does nothing while another action is in progress; its end leads to the next count.
        """
        async with self.lock, headgate.Client(self.url, project) as client:
            try:
                stack = await client.stacks.show(stack_id, outputs=False)
                if stack["stack_status"].endswith("_IN_PROGRESS"):
                    return
                resources = [one async for one in client.resources.list(stack_id)]
            except headgate.NotFoundError:
                resources = []
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


@app.hook(*POINTS, operator=True)
async def take_licenses(hook: HookNotification) -> HookAnswer:
    missing = await ledger.take(hook.stack["id"], hook.change["plan"])
    return Reject(missing) if missing else Continue("licenses are available")


@app.event(*(f"headgate.stack.*.{end}" for end in ENDS))
async def return_licenses(event: Mapping[str, Any]) -> None:
    stack = event["data"]["stack"]
    await ledger.count(stack["project"], stack["id"])


async def show_licenses(request: web.Request) -> web.Response:
    taken = sum(len(held) for held in ledger.held.values())
    return web.json_response({"max": ledger.max_licenses, "taken": taken, "held": ledger.held})


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Counts licenses.")
    parser.add_argument("--port", type=int, default=9002)
    parser.add_argument("--types", nargs="+", default=["Acme::Database"], help="globs")
    parser.add_argument("--max-licenses", type=int, default=10)
    parser.add_argument("--ledger", type=Path, default=Path("licenses.json"))
    parser.add_argument("--headgate", default="http://127.0.0.1:8004")
    options = parser.parse_args()
    ledger = Ledger(options.ledger, options.types, options.max_licenses, options.headgate)
    server = headgate.WebhookServer(f"127.0.0.1:{options.port}", secret=os.environ["SECRET"])
    site = web_application(app, server)
    site.router.add_get("/", show_licenses)
    web.run_app(site, host="127.0.0.1", port=options.port)
