"""Checks that a change is of a root stack: nested stacks are changed through their root stack.

Reads, answers to hooks, signals and marks are allowed on nested stacks.
"""

from collections.abc import Mapping

from engine.errors import Finding, Invalid
from engine.store.stack_rows import Locked
from engine.words import Action

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
#: The most nested stacks that an error names.
MOST_NAMED = 5


def check_root_stack(locked: Locked, done: str) -> None:
    """Raise Invalid (NotSupported) for a nested stack. done: a key of `REMEDIES`."""
    if locked.root is None:
        return
    place = f"the resource {locked.path} of stack {locked.root}"
    reason = f"Stack {locked.name} is {place}, and cannot be {done} by itself."
    remedy = f"{REMEDIES[done].format(path=locked.path)} stack {locked.root}."
    raise Invalid([Finding("", reason, remedy, "NotSupported")])


def check_no_nested_stacks(stack: str, nested: list[str], what: str, remedy: str) -> None:
    """Raise Invalid (NotSupported) for a stack with nested stacks. nested: their paths. what: the
    request that would leave them out."""
    if nested:
        named = ", ".join(nested[:MOST_NAMED]) + (", ..." if len(nested) > MOST_NAMED else "")
        reason = f"{what} would skip the nested stacks of {stack}: {named}."
        raise Invalid([Finding("", reason, remedy, "NotSupported")])
