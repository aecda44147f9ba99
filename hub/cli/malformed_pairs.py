"""Refuses values of options without the form that their metavariable shows, such as KEY=VALUE."""

import re
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from typer._click import Command, Context, Parameter

#: A metavariable of such an option, and the second words that may not be empty.
_PAIR, FILES = re.compile(r"[A-Z]+=([A-Z]+)"), ("FILE", "PATH")


def refuse_malformed_pairs(command: "Command") -> None:
    """In this command."""
    for one in command.params:
        if isinstance(one.metavar, str) and (form := _PAIR.fullmatch(one.metavar)):
            one.callback = partial(_refuse_malformed, one.callback, form[0], form[1] in FILES)


def _refuse_malformed(
    check: Callable[..., Any] | None,
    form: str,
    is_file: bool,
    context: "Context",
    parameter: "Parameter",
    value: Any,
) -> Any:
    """check: of the parameter itself. is_file: whether the text after the sign is required."""
    for text in value or ():
        key, equals, _ = text.partition("=")
        if not (key and equals) or (is_file and text.endswith("=")):
            message = f'"{text}": write it as {form}'
            raise typer.BadParameter(message, ctx=context, param=parameter)
    return value if check is None else check(context, parameter, value)
