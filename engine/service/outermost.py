"""A stack inside of another is changed through the outermost one, and not by itself.

To look at it, to answer its hooks, to send its resources signals and to mark them is open to all.
"""

from collections.abc import Mapping

from engine.errors import Finding, Invalid
from engine.store.accept import Locked
from engine.words import Action

#: What is not done to it, and what to do instead, up to the name of the outermost stack.
INSTEAD: Mapping[str, str] = {
    "updated": "Update",
    "changed by a move": "Update",
    "deleted": "Take {path} out of its template, or delete",
    "cancelled": "Cancel",
    "stopped": "Stop",
    "checked": "Check",
    "suspended": "Suspend",
    "resumed": "Resume",
    "snapshotted": "Make a snapshot of",
    "restored": "Restore",
    "abandoned": "Abandon",
}
VISITED = {Action.CHECK: "checked", Action.SUSPEND: "suspended", Action.RESUME: "resumed"}
#: Of the stacks inside, in an error.
MOST_NAMED = 5


def check_outermost(locked: Locked, done: str) -> None:
    """Invalid (NotSupported) for a stack inside of another. done: a key of `INSTEAD`."""
    if locked.root is None:
        return
    place = f"the resource {locked.path} of stack {locked.root}"
    reason = f"Stack {locked.name} is {place}, and cannot be {done} by itself."
    remedy = f"{INSTEAD[done].format(path=locked.path)} stack {locked.root}."
    raise Invalid([Finding("", reason, remedy, "NotSupported")])


def check_nothing_inside(stack: str, inside: list[str], what: str, remedy: str) -> None:
    """Invalid (NotSupported) for a stack that holds others. inside: their paths. what: would leave
    them out."""
    if inside:
        named = ", ".join(inside[:MOST_NAMED]) + (", ..." if len(inside) > MOST_NAMED else "")
        reason = f"{what} would leave out the stacks inside of {stack}: {named}."
        raise Invalid([Finding("", reason, remedy, "NotSupported")])
