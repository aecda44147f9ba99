"""Whether a value says what nobody is to see, where only the values tell."""

from collections.abc import Iterator, Mapping

from engine.words import Json

#: Letters of a hidden value from which on it is no chance that another has them, too.
TELLING = 6


def texts(value: Json) -> Iterator[str]:
    """All that are in there, numbers among them; not what says nothing."""
    if isinstance(value, Mapping):
        for below in value.values():
            yield from texts(below)
    elif isinstance(value, list):
        for below in value:
            yield from texts(below)
    elif value not in (None, "", True, False):
        yield str(value)


def repeats(value: Json, hidden: set[str]) -> bool:
    """Whether a text in there is one of the hidden ones, or has one in it."""
    if not hidden:
        return False
    if isinstance(value, Mapping):
        return any(repeats(below, hidden) for below in value.values())
    if isinstance(value, list):
        return any(repeats(below, hidden) for below in value)
    text = str(value)
    return text in hidden or any(len(one) >= TELLING and one in text for one in hidden)
