"""The order of keys in a document. A jsonb column has its keys in an order of its own: by length,
then by bytes. The order that a client sent is stored beside it, where it differs.

An order is [names, {name or index: order}]. names: of a map, in order; null: as in jsonb. The map
has the parts of the document whose order is not that of jsonb.
"""

from collections.abc import Iterable

from engine.words import Json

NESTED = (dict, list)


class _Names(dict[tuple[str, ...], list[str] | None]):
    """The names of a map by its keys, because many maps have the same keys."""

    def __missing__(self, keys: tuple[str, ...]) -> list[str] | None:
        names = None if keys == tuple(sorted(keys, key=_place)) else [*keys]
        self[keys] = names
        return names


def order_of(document: Json) -> Json:
    """Return the order of a document; None if it is that of jsonb."""
    return _order(document, _Names()) if isinstance(document, NESTED) else None


def _order(document: dict[str, Json] | list[Json], known: _Names) -> Json:
    # A template of 10,000 resources has 20,000 maps: this is a part of what its update costs.
    names = known[tuple(document)] if isinstance(document, dict) else None
    inside = {}
    for name, value in _items(document):
        if isinstance(value, NESTED) and (order := _order(value, known)) is not None:
            inside[str(name)] = order
    return [names, inside] if names or inside else None


def in_order(document: Json, order: Json) -> Json:
    """Return the document with its keys in an order. Keys that the order does not have are last."""
    if order is None or not isinstance(document, NESTED):
        return document
    names, inside = order
    parts = {name: in_order(value, inside.get(str(name))) for name, value in _items(document)}
    if isinstance(document, list):
        return [*parts.values()]
    first = {name: parts[name] for name in names or () if name in parts}
    return {**first, **parts}


def _items(document: dict[str, Json] | list[Json]) -> Iterable[tuple[str | int, Json]]:
    return document.items() if isinstance(document, dict) else enumerate(document)


def _place(name: str) -> tuple[int, bytes]:
    text = name.encode("utf-8", "surrogatepass")
    return len(text), text
