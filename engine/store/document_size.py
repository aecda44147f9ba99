"""The size of documents that are written to the database."""

import orjson

from engine.store.encryption import Encrypted, Hidden, SealedDocument
from engine.words import Json


def size_of(document: Json) -> int:
    """Bytes as JSON, secrets unencrypted. Raises the same errors as writing it."""
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
