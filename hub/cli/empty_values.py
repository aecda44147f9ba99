"""Refuses empty arguments and options.

A script with a variable that is not set, such as `--plan "$DIGEST"` or `--stack "$STACK"`, would
otherwise apply a change without the check, or to more than it names.
"""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from typer._click import Command, Context, Parameter

#: Options whose text may be empty.
FREE_TEXT = ("reason", "note")


def refuse_empty_values(command: "Command") -> None:
    """In this command."""
    for one in command.params:
        if one.type.name != "path" and one.name not in FREE_TEXT:
            one.callback = partial(_refuse_empty, one.callback)


def _refuse_empty(
    check: Callable[..., Any] | None, context: "Context", parameter: "Parameter", value: Any
) -> Any:
    """An empty environment variable is the same as none. check: of the parameter itself."""
    source = context.get_parameter_source(parameter.name or "")
    given = source is not None and source.name == "COMMANDLINE"
    if given and (value == "" or (isinstance(value, list | tuple) and "" in value)):
        raise typer.BadParameter(
            "must not be empty; is a variable of the shell not set?", ctx=context, param=parameter
        )
    return value if check is None else check(context, parameter, value)
