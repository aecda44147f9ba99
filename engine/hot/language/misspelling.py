"""Recognizes misspelt functions, and functions of later versions: Heat takes both as data."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from engine.hot.functions.function import Function, FunctionError
from engine.hot.language.dialect import HOT
from engine.hot.language.versions import VERSIONS, StackFunction, Version
from engine.words import Json

#: Keys that are longer are not compared: no function has a name as long.
MAX_LENGTH: Final = 24
#: The code of the warning about such data.
UNKNOWN_FUNCTION: Final = "UnknownFunction"


def explain_unknown_function(name: str, args: Json, version: Version) -> tuple[str, str] | None:
    """Return the reason and the remedy if a map with this only key was probably meant as a call.

    name: not a function of the version. A name without an underscore is an ordinary word: it must
    have the arguments of the function.
    """
    if len(name) > MAX_LENGTH or version.dialect is not HOT:
        return None
    if (since := _first_versions().get(name)) is not None and since > version.date:
        if "_" not in name and (VERSIONS[since].extended or not _fits(name, args)):
            return None  # "length" and other words are keys of ordinary data
        reason = f'"{name}" is data here: this version does not have the function.'
        return reason, f"Use heat_template_version {since} or later."
    near = _nearest(name, version.date)
    if near is None:
        return None
    return f'"{name}" is data here: there is no such function.', f'Did you mean "{near}"?'


@lru_cache(maxsize=1)
def _first_versions() -> Mapping[str, str]:
    """The first version of each function that can be called."""
    first: dict[str, str] = {}
    for date, version in VERSIONS.items():
        if version.dialect is HOT:
            for name in version.callable_functions():
                first.setdefault(name, date)
    return first


def _fits(name: str, args: Json) -> bool:
    function = VERSIONS[max(VERSIONS)].functions[name]
    if isinstance(function, Function):
        try:
            function.shape(args)
        except FunctionError:
            return False
        return True
    if function is StackFunction.YAQL:
        return isinstance(args, dict) and "expression" in args
    return isinstance(args, list) and len(args) == 3  # if


@lru_cache(maxsize=64)
def _spellings(date: str) -> Mapping[str, str]:
    """The functions by all texts that lack one letter of their name, and by the names."""
    names = [name for name in VERSIONS[date].callable_functions() if "_" in name]
    found = {less: name for name in names for less in _less_one(name)}
    return found | {name: name for name in names}


@lru_cache(maxsize=1024)
def _nearest(name: str, date: str) -> str | None:
    """The function whose name differs by one letter: more, less, another, or two exchanged."""
    spellings, plain = _spellings(date), name.lower().replace("-", "_")
    if (near := spellings.get(plain)) is not None:
        return near
    return next((spellings[one] for one in _less_one(plain) if one in spellings), None)


def _less_one(name: str) -> Iterator[str]:
    return (name[:at] + name[at + 1 :] for at in range(len(name)))
