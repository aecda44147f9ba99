"""A policy program: rejects a stack if one of its servers has no owner.

    SECRET=whsec_... python owner_tag.py --types 'OS::Nova::Server' --tag metadata.owner

Headgate notifies it twice, and it answers in each response. Before the stack is created,
updated, restored or rolled back (`pre-stack-create`, `pre-stack-update`, `pre-stack-restore`,
`pre-stack-rollback`), the notification has the plan. Before each server is
created or updated (`pre-create`, `pre-update`), it has all properties with their final values,
which the plan may not know. See README.md.
"""

import argparse
import os
from fnmatch import fnmatchcase
from typing import Any

from headgate import Continue, HookAnswer, HookNotification, Listener, Reject, WebhookServer

app = Listener()

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


@app.hook("pre-stack-*", operator=True)
async def check_plan(hook: HookNotification) -> HookAnswer:
    return decide(servers_without_owner(hook.change["plan"], options.types, options.tag))


@app.hook(operator=True)
async def check_server(hook: HookNotification) -> HookAnswer:
    resource = hook.resource
    is_missing = matches(resource["type"] or "", options.types) and not value_at(
        resource["properties"], options.tag
    )
    return decide([resource["name"]] if is_missing else [])


def decide(rejected: list[str]) -> HookAnswer:
    if rejected:
        return Reject(f"no {options.tag}: {', '.join(rejected)}")
    return Continue("every server has an owner")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Rejects stacks with servers that have no owner.")
    parser.add_argument("--port", type=int, default=9001)
    parser.add_argument("--types", nargs="+", default=["OS::Nova::Server"], help="globs")
    parser.add_argument(
        "--tag", default="metadata.owner", help="a property, or a path in a property"
    )
    options = parser.parse_args()
    secret = os.environ["SECRET"]
    app.run(webhook=WebhookServer(f"127.0.0.1:{options.port}", secret=secret))
