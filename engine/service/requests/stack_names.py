"""Names of stacks: their syntax, and that they are unique in a project."""

import re

from engine.errors import Conflict, Finding, Invalid

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
        raise Invalid([Finding("stack_name", reason)])


def name_taken(name: str) -> Conflict:
    """The error for a name that another stack of the project has."""
    return Conflict(
        f"The Stack ({name}) already exists.",
        remedy="Choose another name, or update that stack.",
        code="StackExists",
    )
