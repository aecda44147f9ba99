"""Names of stacks: what they may be, and that each stands for one."""

import re

from engine.errors import Conflict, Finding, Invalid

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9_.-]{0,254}")


def check_name(name: str) -> None:
    """Raises Invalid."""
    if not name:
        reason, remedy = "No stack name specified", "Send the name of the stack to be."
        raise Invalid([Finding("stack_name", reason, remedy, "Invalid")])
    if not _NAME.fullmatch(name):
        reason = (
            f'Invalid stack name {name} must contain only alphanumeric or "_-." characters, '
            "must start with alpha and must be 255 characters or less."
        )
        raise Invalid([Finding("stack_name", reason)])


def taken(name: str) -> Conflict:
    """Another stack of the project has the name."""
    return Conflict(
        f"The Stack ({name}) already exists.",
        remedy="Choose another name, or update that stack.",
        code="StackExists",
    )
