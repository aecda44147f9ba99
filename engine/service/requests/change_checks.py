"""Checks of a requested change: the stack's name, that it is a root stack, its immutable
parameters, and which resources a partial update selects.

Nested stacks are changed through their root stack. Reads, answers to hooks, signals and marks are
allowed on nested stacks.
"""

import re
from collections.abc import Callable, Collection, Mapping
from uuid import UUID

from engine.errors import Conflict, Finding, Findings, Invalid, nearest
from engine.hot.schema.parameters import convert_parameters
from engine.hot.syntax.globs import NamePatterns, check_globs, matches_glob
from engine.hot.template.template import parse_template
from engine.service.requests.blueprint import Blueprint
from engine.service.requests.requests import StackRequest
from engine.store.connection import Connection
from engine.store.stacks.stack_locks import LockedStack
from engine.store.stacks.templates import read_template
from engine.words import Action

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{0,254}")


def check_name(name: str) -> None:
    """Raise Invalid unless the name is valid: 1 to 255 characters."""
    if not name:
        reason, remedy = "No stack name specified", "Send the name of the new stack."
        raise Invalid([Finding("stack_name", reason, remedy, "Invalid")])
    if not _NAME.fullmatch(name):
        reason = (
            f'Invalid stack name {name} must contain only alphanumeric or "_-." characters, '
            "must start with alpha and must be 255 characters or less."
        )
        raise Invalid([Finding("stack_name", reason, "Choose a name such as web-1.")])


def name_taken(name: str) -> Conflict:
    """The error for a name that another stack of the project has."""
    return Conflict(
        f"The Stack ({name}) already exists.",
        place="stack_name",
        remedy="Choose another name, or update that stack.",
        code="StackExists",
    )


#: For each change that nested stacks refuse, the start of the remedy; the root stack's name
#: follows.
REMEDIES: Mapping[str, str] = {
    "updated": "Update",
    "changed by a move": "Update",
    "deleted": "Remove {path} from its template, or delete",
    "cancelled": "Cancel",
    "stopped": "Stop",
    "checked": "Check",
    "suspended": "Suspend",
    "resumed": "Resume",
    "snapshotted": "Take a snapshot of",
    "restored": "Restore",
    "abandoned": "Abandon",
}
PARTICIPLES = {Action.CHECK: "checked", Action.SUSPEND: "suspended", Action.RESUME: "resumed"}
#: Maximum number of nested stacks that an error names.
MAX_NAMED = 5


def check_root_stack(locked: LockedStack, done: str) -> None:
    """Raise Invalid (NotSupported) for a nested stack. done: a key of `REMEDIES`."""
    if locked.root is None:
        return
    place = f"the resource {locked.path} of stack {locked.root}"
    reason = f"Stack {locked.name} is {place}, and cannot be {done} by itself."
    remedy = f"{REMEDIES[done].format(path=locked.path)} stack {locked.root}."
    raise Invalid([Finding("", reason, remedy, "NotSupported")])


async def check_immutable(
    conn: Connection, stack_id: UUID, version: int, blueprint: Blueprint
) -> None:
    """Raise Invalid (ImmutableParameterModified) if an update changes an immutable parameter.

    version: the stack's current template version.
    """
    definition = blueprint.definition
    names = {name for name, schema in definition.schemas.items() if schema.immutable}
    if not names:
        return
    stored = await read_template(conn, stack_id, version)
    schemas = parse_template(stored.template).parameters
    before = {**stored.environment.get("parameters", {}), **stored.parameters}
    values = convert_parameters(
        {name: schemas[name] for name in names & schemas.keys()},
        {name: value for name, value in before.items() if name in names & schemas.keys()},
        stored.environment.get("parameter_defaults", {}),
        Findings(),
    )
    changed = sorted(
        name for name, value in values.items() if value != definition.parameters.get(name)
    )
    if changed:
        reason = (
            f"The following parameters are immutable and may not be updated: {', '.join(changed)}"
        )
        remedy = "Leave their values as they are, or create a new stack."
        declared = f"parameters.{changed[0]}"
        raise Invalid(
            [Finding("", reason, remedy, "ImmutableParameterModified", inner_place=declared)]
        )


def partial_filter(request: StackRequest, names: Collection[str]) -> Callable[[str], bool] | None:
    """A function that returns whether a resource may change; None if the update is not partial.

    names: of all resources, existing and new. Raises Invalid for a pattern that matches none, and
    if no resource is left.
    """
    if not request.only and not request.except_:
        return None
    findings, names = Findings(), frozenset(names)
    for place, patterns in (("only", request.only), ("except", request.except_)):
        check_globs([(place, pattern) for pattern in patterns], "resources", place, findings)
        findings.raise_if_any()
        for pattern in dict.fromkeys(patterns):
            if pattern not in names and not any(matches_glob(name, pattern) for name in names):
                remedy = nearest(pattern, sorted(names))
                findings.add(place, f'"{pattern}" matches no resource', remedy)
    findings.raise_if_any()
    included, excluded = NamePatterns(request.only), NamePatterns(request.except_)
    selected = frozenset(
        name
        for name in names
        if (not included or included.matches(name)) and not excluded.matches(name)
    )
    if names and not selected:
        selects = "`only` selects" if request.only else "the stack has"
        reason = f"excludes each resource that {selects}, so nothing is left to change"
        raise Invalid([Finding("except", reason, "Remove a pattern.")])
    return selected.__contains__
