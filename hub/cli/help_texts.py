"""The style of help texts: as `typer` writes them, without its colors, braces and names of Python
types, and with the whole first sentence of each command."""

from functools import partial
from typing import Any

#: The widest help text, in characters.
MAX_WIDTH = 120
#: Python's name of a type in `typer` -> what its value is called.
METAVARS = {"str": "TEXT", "int": "N", "int range": "N", "float": "N", "path": "FILE"}


def use_plain_help(command: Any) -> None:
    """Style a command. Without `rich`, which takes twice as long to load as the
    rest, for their help and usage errors."""
    _keep_words_whole()
    command.rich_markup_mode = None
    command.short_help = summary(command.help or "")
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            parameter.make_metavar = partial(_argument_metavar, parameter)
        elif not (parameter.metavar or parameter.is_flag or parameter.count):
            parameter.metavar = METAVARS.get(parameter.type.name)


def _keep_words_whole() -> None:
    """Break no line at a hyphen, such as that of ``mon-thu`` and of ``--quiet-hours``."""
    from typer._click._textwrap import TextWrapper

    TextWrapper.wordsep_re = TextWrapper.wordsep_simple_re


def summary(text: str) -> str:
    """The first sentence, without its line breaks. `typer` would truncate it. Pure."""
    first, stop, more = " ".join(text.partition("\n\n")[0].split()).partition(". ")
    return first + stop.rstrip() if more else first


def _argument_metavar(argument: Any, ctx: Any, *, usage: bool = False) -> str:
    """``NAME``, or in the first line ``[NAME]`` if it is optional."""
    name = argument.metavar or str(argument.name).upper()
    optional = usage and not argument.required and not name.startswith("[")
    return f"[{name}]" if optional else name
