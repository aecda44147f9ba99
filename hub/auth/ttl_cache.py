"""Who was let in lately, so that not every request asks again. Pure: time is handed in.

What is kept stands under a hash of what was presented: no token is in memory for it.
"""

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from hub.auth.credentials import RequestCredentials

Known = TypeVar("Known")
#: More than so many are not kept; the one that was let in first goes.
MOST = 10_000


def key_of(presented: RequestCredentials, project: str = "") -> str:
    """A password is remembered for the sender's address block alone: elsewhere it is a guess."""
    block = presented.block if presented.password else ""
    said = "\0".join(
        (presented.token, presented.bearer, presented.user, presented.password, project, block)
    )
    return hashlib.sha256(said.encode(errors="surrogateescape")).hexdigest()


@dataclass(slots=True)
class Remembered(Generic[Known]):
    """Times in seconds, of any clock."""

    _known: OrderedDict[str, tuple[Known, float]] = field(default_factory=OrderedDict)

    def get(self, key: str, now: float) -> Known | None:
        found = self._known.get(key)
        if found is None:
            return None
        known, until = found
        if now < until:
            return known
        del self._known[key]
        return None

    def keep(self, key: str, known: Known, until: float) -> None:
        self._known[key] = known, until
        self._known.move_to_end(key)
        if len(self._known) > MOST:
            self._known.popitem(last=False)

    def forget(self) -> None:
        self._known.clear()

    def __len__(self) -> int:
        return len(self._known)
