"""Errors about objects that do not exist."""

from engine.errors import NotFound
from hub.error_types.error_type import ErrorType

TYPES = (
    ErrorType(
        "EntityNotFound", NotFound,
        "There is no such stack, resource type or scaling group.",
        "Check the name and the project. The remedy suggests a similar name of a stack, if any.",
        "stack", "The Stack (web) could not be found.",
        "GET .../stacks lists the stacks of the project.", as_heat=True,
    ),
    ErrorType(
        "ResourceNotFound", NotFound,
        "The stack has no resource with this name.",
        "Check the name. The remedy suggests a similar one.",
        "resource", "The Resource (bd) could not be found in Stack web.", 'Did you mean "db"?',
        as_heat=True,
    ),
    ErrorType(
        "HookNotFound", NotFound,
        "There is no such hook, or it was deleted together with its stack.",
        "List the hooks with `headgate hook list`.",
        "hook", "there is no hook 0d4f6a52-1f6e-4a0b-8a55-6f1d2f1a9f0e",
        "GET .../hooks lists the hooks of the project.",
    ),
    ErrorType(
        "BreakpointNotFound", NotFound,
        "The stack has no such live breakpoint.",
        "List them with `headgate stack breakpoints list`.",
        "breakpoint", "there is no breakpoint 0d4f6a52-1f6e-4a0b-8a55-6f1d2f1a9f0e",
        "GET .../breakpoints lists the breakpoints of the stack.",
    ),
    ErrorType(
        "NodeNotFound", NotFound,
        "No operation on the resource is pending in the current change.",
        "Name a resource with a pending operation. The remedy lists some.",
        "resource", '"db" has no pending node in this traversal', "Pending are: web, dns.",
    ),
    ErrorType(
        "TraversalNotFound", NotFound,
        "The stack has no such traversal.",
        "List the retained versions and their traversals: `GET .../versions`.",
        "traversal", "there is no traversal 12",
        "GET .../versions lists the retained versions.",
    ),
    ErrorType(
        "VersionNotFound", NotFound,
        "The version of the stack is not retained.",
        "List the retained versions: `GET .../versions`.",
        "version", "there is no version 12", "GET .../versions lists the retained versions.",
    ),
    ErrorType(
        "SnapshotNotFound", NotFound,
        "The stack has no such snapshot.",
        "List the snapshots with `headgate stack snapshot list`.",
        "snapshot", "Snapshot with id 0d4f6a52-1f6e-4a0b-8a55-6f1d2f1a9f0e not found",
        "GET .../snapshots lists the snapshots of the stack.", as_heat=True,
    ),
    ErrorType(
        "SubscriptionNotFound", NotFound,
        "The project has no such subscription.",
        "List the subscriptions with `headgate subscription list`.",
        "subscription", "there is no subscription 0d4f6a52-1f6e-4a0b-8a55-6f1d2f1a9f0e",
        "GET .../subscriptions lists the subscriptions of the project.",
    ),
    ErrorType(
        "DeliveryNotFound", NotFound,
        "The subscription has no such delivery, or the delivery was [purged](retention.md).",
        "List the deliveries with `headgate subscription deliveries`.",
        "delivery", "there is no delivery 0d4f6a52-1f6e-4a0b-8a55-6f1d2f1a9f0e",
        "GET .../deliveries lists the deliveries of the subscription.",
    ),
    ErrorType(
        "TokenNotFound", NotFound,
        "The project has no such token.",
        "List the tokens with `headgate token list`.",
        "token", "there is no token 5d0c9f2a to revoke",
        "GET .../tokens lists the tokens of the project.",
    ),
    ErrorType(
        "HTTPNotFound", NotFound,
        "There is no such event.",
        "List the events with `headgate stack history`.",
        "event", "No event 0d4f6a52-1f6e-4a0b-8a55-6f1d2f1a9f0e found",
        "GET .../events lists the retained events of the stack.", as_heat=True,
    ),
    ErrorType(
        "NotFound", NotFound,
        "There is no such route, software config, software deployment, output or key.",
        "Check the address. `GET /openapi.json` describes all routes.",
        "path", "no resource at /v2/default/stacks", "See /openapi.json for all routes.",
    ),
    ErrorType(
        "FileNotFound", NotFound,
        "The dashboard has no such file.",
        "Reload the page, because the server may have been upgraded.",
        "path", 'the dashboard has no file "style/old.css"',
        "Reload the page: the server may have been upgraded.",
    ),
)  # fmt: skip
