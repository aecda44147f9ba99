"""Lookup of a path of keys and indices in a value."""

from engine.hot.expressions.masking import MASK
from engine.words import Json


def look_up_path(value: Json, path: list[Json], missing: Json, *, text_index: bool = True) -> Json:
    """Return the value at a path; `missing` if there is none.

    text_index: whether "0" is accepted as an index (yes for get_param, no for get_attr, as in
    Heat). A string is a list of characters. A null at the end of the path is returned as it is. The
    lookup stops at a mask, because every part of a secret value is secret.
    """
    kinds = int | str if text_index else int
    for step in path:
        if value == MASK:
            return value
        try:
            if isinstance(value, dict) and isinstance(step, str):
                value = value[step]
            elif isinstance(value, list | str) and isinstance(step, kinds):
                value = value[int(step)]
            else:
                return missing
        except (KeyError, IndexError, ValueError):
            return missing
    return value
