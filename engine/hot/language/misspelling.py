"""Recognizes misspelt functions, and functions of later versions: Heat takes both as data."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Final

from engine.errors import Finding
from engine.hot.functions.function import Function, FunctionError
from engine.hot.language.dialect import HOT
from engine.hot.language.versions import VERSIONS, StackFunction, Version
from engine.words import Json

#: Keys that are longer are not compared: no function has a name as long.
MAX_LENGTH: Final = 24
#: Shorter words are ordinary keys: they are not compared with functions such as `if`.
MIN_WORD: Final = 4
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
        reason = f"{_is_data(name)}this version does not have the function."
        return reason, f"Use heat_template_version {since} or later."
    near = _nearest(name, version.date)
    if near is None and version.extended and len(name) >= MIN_WORD:
        near = _nearest_word(name, version.date)
        near = near if near is not None and _fits(near, args) else None
    if near is None:
        return None
    return f"{_is_data(name)}there is no such function.", f'Did you mean "{near}"?'


def is_about_map(warning: Finding, place: str) -> bool:
    """Return whether a warning is about the only key of the map at this place. A key may have
    dots."""
    key = warning.place.removeprefix(f"{place}.")
    return warning.code == UNKNOWN_FUNCTION and warning.reason.startswith(_is_data(key))


def _is_data(name: str) -> str:
    return f'"{name}" is data here: '


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
def _spellings(date: str, *, words: bool) -> Mapping[str, str]:
    """The functions by all texts that lack one letter of their name, and by the names. words: those
    without an underscore in place of the others."""
    names = [name for name in VERSIONS[date].callable_functions() if ("_" in name) != words]
    names = [name for name in names if len(name) >= MIN_WORD]
    found = {less: name for name in names for less in _less_one(name)}
    return found | {name: name for name in names}


@lru_cache(maxsize=1024)
def _nearest_word(name: str, date: str) -> str | None:
    """As `_nearest`, of the functions without an underscore."""
    return _find_spelling(name.lower(), _spellings(date, words=True))


@lru_cache(maxsize=1024)
def _nearest(name: str, date: str) -> str | None:
    """The function whose name differs by one letter: more, less, another, or two exchanged."""
    return _find_spelling(name.lower().replace("-", "_"), _spellings(date, words=False))


def _find_spelling(plain: str, spellings: Mapping[str, str]) -> str | None:
    if (near := spellings.get(plain)) is not None:
        return near
    return next((spellings[one] for one in _less_one(plain) if one in spellings), None)


def _less_one(name: str) -> Iterator[str]:
    return (name[:at] + name[at + 1 :] for at in range(len(name)))
