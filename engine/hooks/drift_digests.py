"""Keyed digests of drift. They tell whether drift has changed whose values are not shown, because
they are secret, too long or too many. Pure.

A plain hash of a secret could be found by trying values, so the key is one of the installation,
which the database has only encrypted.
"""

import hmac
from collections.abc import Iterable
from uuid import UUID

import orjson

#: Hexadecimal digits of the ID of a key.
_ID_DIGITS = 16
#: Between the ID of the key and the digest. SQL compares them, too (`digests_differ_in_sql`).
SEPARATOR = ":"


class DriftDigests:
    """Makes digests. key: of the installation; others derive from it, too."""

    def __init__(self, key: bytes) -> None:
        self._key = hmac.digest(key, b"headgate drift digests", "sha256")
        self._id = hmac.digest(self._key, b"id of the key", "sha256").hex()[:_ID_DIGITS]

    def make(
        self, stack_id: UUID, resource_id: UUID, differences: Iterable[tuple[str, bytes]]
    ) -> str:
        """Return the digest of the differences of a resource, in any order. differences: paths and
        hashes of the two values. The same differences of another resource have another digest."""
        found = sorted((path, values.hex()) for path, values in differences)
        message = stack_id.bytes + resource_id.bytes + orjson.dumps(found)
        return f"{self._id}{SEPARATOR}{hmac.digest(self._key, message, 'sha256').hex()}"


def are_comparable(one: str | None, other: str | None) -> bool:
    """Return whether two digests were made with the same key. None: the drift has none, because it
    was recorded by a process of an earlier release."""
    if one is None or other is None:
        return False
    return one.partition(SEPARATOR)[0] == other.partition(SEPARATOR)[0]


def digests_differ(one: str | None, other: str | None) -> bool:
    """Return whether two digests show that drift has changed. Digests that are not comparable do
    not."""
    return are_comparable(one, other) and one != other


def compare_keys_in_sql(one: str, other: str) -> str:
    """`are_comparable` as an expression of SQL. one, other: expressions of the digests."""
    keys = [f"split_part({each}, '{SEPARATOR}', 1)" for each in (one, other)]
    return f"coalesce({keys[0]} = {keys[1]}, false)"


def digests_differ_in_sql(one: str, other: str) -> str:
    """`digests_differ` as an expression of SQL. one, other: expressions of the digests."""
    return f"({compare_keys_in_sql(one, other)} and {one} <> {other})"
