"""The order of keys in a document. A jsonb column has its keys in an order of its own: by length,
then by bytes. The order that a client sent is stored beside it, where it differs.

An order is [names, {name or index: order}]. names: of a map, in order; null: as in jsonb. The map
has the parts of the document whose order is not that of jsonb.
"""

from collections.abc import Iterable

from engine.words import Json


def order_of(document: Json) -> Json:
    """Return the order of a document; None if it is that of jsonb."""
    return _order(document, {})


def _order(document: Json, known: dict[tuple[str, ...], list[str] | None]) -> Json:
    """known: the names by the keys of a map, because many maps have the same keys."""
    inside = {}
    for name, value in _items(document):
        if isinstance(value, dict | list) and (order := _order(value, known)) is not None:
            inside[name] = order
    names = None
    if isinstance(document, dict) and len(document) > 1:
        keys = tuple(document)
        if keys not in known:
            known[keys] = None if keys == tuple(sorted(keys, key=_place)) else [*keys]
        names = known[keys]
    return [names, inside] if names or inside else None


def in_order(document: Json, order: Json) -> Json:
    """Return the document with its keys in an order. Keys that the order does not have are last."""
    if order is None or not isinstance(document, dict | list):
        return document
    names, inside = order
    parts = {name: in_order(value, inside.get(name)) for name, value in _items(document)}
    if isinstance(document, list):
        return [*parts.values()]
    first = {name: parts[name] for name in names or () if name in parts}
    return {**first, **parts}


def _items(document: Json) -> Iterable[tuple[str, Json]]:
    if isinstance(document, dict):
        return document.items()
    if isinstance(document, list):
        return ((str(index), value) for index, value in enumerate(document))
    return ()


def _place(name: str) -> tuple[int, bytes]:
    text = name.encode("utf-8", "surrogatepass")
    return len(text), text
