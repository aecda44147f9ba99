"""Placeholders for arguments that are not known yet, so that a function can check the rest of its
arguments when the stack is defined.

Each function here takes arguments of the right shape with calls in them, and returns arguments
without calls which the function refuses only if it would refuse any values of the calls; or None if
nothing can be checked.
"""

from typing import Any

from engine.hot.expressions.expression import FunctionCall
from engine.words import Json

#: Replaces calls whose result becomes text and must not be empty.
PLACEHOLDER_TEXT = "x"


def replace_calls(value: Json, instead: Json = None) -> Json:
    """Return the value with each inner call replaced by null, or the value itself by `instead`."""
    if isinstance(value, FunctionCall):
        return instead
    if isinstance(value, dict):
        return {key: replace_calls(item) for key, item in value.items()}
    if isinstance(value, list):
        return [replace_calls(item) for item in value]
    return value


def list_arguments(args: Any) -> Json:
    """Placeholders for functions that ignore null items."""
    return [replace_calls(one) for one in args]


def map_arguments(args: Any) -> Json:
    """Placeholders for the values of a map of arguments."""
    return {key: replace_calls(value) for key, value in args.items()}


def text_items(value: Json) -> Json:
    """Return a list with placeholder text for its unknown items; null if the list is unknown."""
    return (
        [replace_calls(item, PLACEHOLDER_TEXT) for item in value]
        if isinstance(value, list)
        else replace_calls(value)
    )


def join_arguments(args: Any) -> Json:
    """Placeholders for list_join."""
    delimiter, *lists = args
    return [replace_calls(delimiter, PLACEHOLDER_TEXT), *map(text_items, lists)]


def replace_arguments(args: Any) -> Json:
    """Placeholders for str_replace. Whether a key occurs in the template can be checked only if the
    template is known.
    """
    template, params = args["template"], args["params"]
    if isinstance(template, FunctionCall) or isinstance(params, FunctionCall):
        return None
    if isinstance(params, dict):
        params = {word: replace_calls(value, PLACEHOLDER_TEXT) for word, value in params.items()}
    return {"template": replace_calls(template), "params": replace_calls(params)}


def split_arguments(args: Any) -> Json:
    """Placeholders for str_split. The valid indices depend on the text, so nothing is checked if it
    is unknown.
    """
    delimiter, text, *_ = args
    return (
        None
        if isinstance(text, FunctionCall)
        else [replace_calls(delimiter, PLACEHOLDER_TEXT), replace_calls(text)]
    )


def digest_arguments(args: Any) -> Json:
    """Placeholders for digest."""
    algorithm, text = args
    return [replace_calls(algorithm, "sha256"), replace_calls(text, "")]


def repeat_arguments(args: Any) -> Json:
    """Placeholders for repeat. Without permutations the lists must have equal lengths, so all of
    them must be known.
    """
    for_each, permutations = args["for_each"], args.get("permutations", True)
    if isinstance(for_each, FunctionCall) or isinstance(permutations, FunctionCall):
        return None
    lists = for_each.values() if isinstance(for_each, dict) else ()
    if permutations is False and any(isinstance(one, FunctionCall) for one in lists):
        return None
    rows = (
        {word: text_items(items) for word, items in for_each.items()}
        if lists
        else replace_calls(for_each)
    )
    return {**replace_calls(args), "template": None, "for_each": rows}


def contains_arguments(args: Any) -> Json:
    """Placeholders for contains: a string can only be searched for a string, a list for any
    value.
    """
    value, where = args
    return (
        None
        if isinstance(where, FunctionCall)
        else [replace_calls(value, PLACEHOLDER_TEXT), replace_calls(where)]
    )


def map_replace_arguments(args: Any) -> Json:
    """Placeholders for map_replace. Unknown new names count as none, because two of them may be
    equal.
    """
    given, rules = args
    return [replace_calls(given, {}), replace_calls(rules, {})]
