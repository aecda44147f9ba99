"""The commands that continue an action that was stopped or has failed. Pure."""

from collections.abc import Mapping
from shlex import quote

from engine.continuation import continuing_request
from engine.words import Action

_RESUME = "stack resume {}"
_COMMANDS: Mapping[str, str] = {
    Action.DELETE: "stack delete {}",
    Action.CHECK: "stack check {}",
    Action.SUSPEND: "stack suspend {}",
    Action.SNAPSHOT: "stack snapshot create {}",
}
#: What else is possible, by status: what it does, and its command.
_OTHERS: Mapping[str, tuple[str, str]] = {
    "CHECK_FAILED": ("To replace what failed the check", "stack update {} --existing"),
    "SUSPEND_FAILED": ("To resume what is suspended", _RESUME),
    "SUSPEND_STOPPED": ("To resume what is suspended", _RESUME),
}
#: A sentence of the API -> that of the command line, for the stack STACK.
REMEDIES = {
    f"To continue this one, {continuing_request(action)}.": "To continue this one: `headgate "
    f"{_COMMANDS.get(action, _RESUME).format('STACK')}`."
    for action in Action
}


def continuing_hints(status: str, name: str) -> list[str]:
    """The commands, a line each, for a root stack with this status, such as DELETE_STOPPED."""
    action, _, progress = status.partition("_")
    if progress not in ("STOPPED", "FAILED"):
        return []
    hints = [("To continue", _COMMANDS.get(action, _RESUME))]
    hints += [_OTHERS[status]] if status in _OTHERS else []
    return [f"{what}: headgate {command.format(quote(name))}" for what, command in hints]
