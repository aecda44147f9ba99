"""How large a document is that is written to the database."""

import orjson

from engine.store.encryption import Encrypted, Hidden, SealedDocument
from engine.words import Json


def size_of(document: Json) -> int:
    """Bytes as JSON; a secret counts as what it is. Raises what writing it would raise."""
    return len(orjson.dumps(document, default=_plain))


def _plain(value: object) -> Json:
    match value:
        case Hidden():
            return value.value
        case SealedDocument():
            return value.document
        case Encrypted():
            return value.text
        case _:
            return str(value)
