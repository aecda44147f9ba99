"""The way of a path through a value."""

from engine.words import Json


def select(value: Json, path: list[Json], nothing: Json, *, text_index: bool = True) -> Json:
    """Follow a path of keys and indices; ``nothing`` when it leads nowhere.

    text_index: whether "0" is an index too (it is for get_param, and is not for get_attr). A text
    is a list of letters. Null at the end of a path is what is there.
    """
    kinds = int | str if text_index else int
    for step in path:
        try:
            if isinstance(value, dict) and isinstance(step, str):
                value = value[step]
            elif isinstance(value, list | str) and isinstance(step, kinds):
                value = value[int(step)]
            else:
                return nothing
        except (KeyError, IndexError, ValueError):
            return nothing
    return value
