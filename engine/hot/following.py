"""The way of a path through a value."""

from engine.words import Json


def select(value: Json, path: list[Json], nothing: Json, *, text_index: bool = True) -> Json:
    """Follow a path of keys and indices; ``nothing`` when it leads nowhere.

    text_index: whether "0" is an index too (it is for get_param, and is not for get_attr). A text
    is a list of letters.
    """
    for step in path:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list | str) and (text_index or isinstance(step, int)):
            value = _item(value, step)
        else:
            return nothing
        if value is None:
            return nothing
    return value


def _item(items: list[Json] | str, step: Json) -> Json:
    try:
        return items[int(step)]
    except (IndexError, TypeError, ValueError):
        return None
