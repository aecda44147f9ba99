"""The types of all errors: the one list that the reference, the pages of the server and the tests
read."""

from collections.abc import Mapping

from hub.error_types import (
    access_errors,
    hook_errors,
    missing_object_errors,
    request_errors,
    stack_errors,
    startup_errors,
    template_errors,
)
from hub.error_types.error_type import ErrorType, ErrorTypeGroup

GROUPS = (
    ErrorTypeGroup("Requests", request_errors.TYPES),
    ErrorTypeGroup("Access", access_errors.TYPES),
    ErrorTypeGroup("Templates and environments", template_errors.TYPES),
    ErrorTypeGroup("Stacks and changes", stack_errors.TYPES),
    ErrorTypeGroup("Hooks", hook_errors.HOOKS),
    ErrorTypeGroup("Events", hook_errors.EVENTS),
    ErrorTypeGroup(
        "Objects that do not exist",
        missing_object_errors.TYPES,
        "An object of another project does not exist for you. You can read deleted stacks by their"
        " ID for a time ([Retention](retention.md)).",
    ),
    ErrorTypeGroup(
        "Start of a server",
        startup_errors.TYPES,
        "These errors end a process or a command with a message on standard error, before it does"
        " anything.",
        at_start=True,
    ),
)
ERROR_TYPES: Mapping[str, ErrorType] = {one.name: one for group in GROUPS for one in group.types}
