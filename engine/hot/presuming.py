"""Something harmless in place of what is not known yet, so that a function finds what is wrong with
the rest of its arguments before anything is stored.

Each takes arguments of the right shape, calls among them, and returns arguments without, which the
function refuses only if it would refuse whatever the calls give; or None when nothing can be told.
"""

from typing import Any

from engine.hot.expression import Call
from engine.words import Json

#: For what becomes text, and is not to be empty.
WORD = "x"


def known(value: Json, instead: Json = None) -> Json:
    """A value without calls: each gives way to null, the value itself to ``instead``."""
    if isinstance(value, Call):
        return instead
    if isinstance(value, dict):
        return {key: known(item) for key, item in value.items()}
    if isinstance(value, list):
        return [known(item) for item in value]
    return value


def each(args: Any) -> Json:
    """For functions that pass over null."""
    return [known(one) for one in args]


def parts(args: Any) -> Json:
    return {key: known(value) for key, value in args.items()}


def texts(value: Json) -> Json:
    """A list whose items become text; null when it is unknown itself."""
    return [known(item, WORD) for item in value] if isinstance(value, list) else known(value)


def joining(args: Any) -> Json:
    delimiter, *lists = args
    return [known(delimiter, WORD), *map(texts, lists)]


def replacing(args: Any) -> Json:
    """Whether a word is in the template is known as soon as the template is."""
    template, params = args["template"], args["params"]
    if isinstance(template, Call) or isinstance(params, Call):
        return None
    if isinstance(params, dict):
        params = {word: known(value, WORD) for word, value in params.items()}
    return {"template": known(template), "params": known(params)}


def splitting(args: Any) -> Json:
    """Which index there is depends on the text, and of null there are no parts at all."""
    delimiter, text, *_ = args
    return None if isinstance(text, Call) else [known(delimiter, WORD), known(text)]


def digesting(args: Any) -> Json:
    algorithm, text = args
    return [known(algorithm, "sha256"), known(text, "")]


def repeating(args: Any) -> Json:
    """Lists that are walked side by side are of one length only when all are known."""
    for_each, permutations = args["for_each"], args.get("permutations", True)
    if isinstance(for_each, Call) or isinstance(permutations, Call):
        return None
    lists = for_each.values() if isinstance(for_each, dict) else ()
    if permutations is False and any(isinstance(one, Call) for one in lists):
        return None
    rows = {word: texts(items) for word, items in for_each.items()} if lists else known(for_each)
    return {**known(args), "template": None, "for_each": rows}


def looking(args: Any) -> Json:
    """A text may be looked for in a text only, and everything in a list."""
    value, where = args
    return None if isinstance(where, Call) else [known(value, WORD), known(where)]


def renaming(args: Any) -> Json:
    """New names that are unknown are no new names: two of them may be the same."""
    given, rules = args
    return [known(given, {}), known(rules, {})]
