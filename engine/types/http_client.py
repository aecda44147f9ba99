"""The port by which resource types reach services over HTTP.

The program fills it with a client that follows no redirect, and bounds sizes and times. What types
of templates may reach is judged by its policy, as it is written and again at each connection.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

#: Statuses that say: not now, but later.
BUSY = frozenset({429, 502, 503, 504})
#: Statuses that say: it is not there.
GONE = frozenset({404, 410})


@dataclass(frozen=True, slots=True)
class Request:
    """ca_pem: an authority to trust, in place of those that the client knows, as PEM text.
    insecure: whoever answers is believed to be who they should be."""

    method: str
    url: str = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    body: bytes | None = field(default=None, repr=False)
    ca_pem: str = field(default="", repr=False)
    insecure: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    """headers: by name in small letters. body: whole."""

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)


class Unanswered(Exception):
    """There was no whole answer. The text says why, without the path, which may hold a secret.

    retry: trying again may help.
    """

    def __init__(self, reason: str, *, retry: bool) -> None:
        super().__init__(reason)
        self.retry = retry


class Trouble(Exception):
    """A service was asked, and did not do it. retry: trying again may help. status: None without an
    answer."""

    def __init__(self, reason: str, *, retry: bool = False, status: int | None = None) -> None:
        super().__init__(reason)
        self.retry = retry
        self.status = status


class Web(Protocol):
    def refusal(self, url: str) -> tuple[str, str] | None:
        """(reason, remedy) when a URL may not be reached, as far as it shows before it is asked."""
        ...

    async def ask(self, request: Request) -> Answer:
        """Ask once, for a bounded time. Raises Unanswered."""
        ...
