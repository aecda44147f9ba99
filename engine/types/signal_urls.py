"""Where data for one resource is sent without a login, by right of a token of its own.

Nothing of it is stored: the token is made from the resource's id. It is void once the resource has
gone, and a resource that takes another's place has another.
"""

import hmac
import re
from dataclasses import dataclass, field
from uuid import UUID

from engine.hooks.tokens import TokenKeys, signal_token

#: Below the server's public URL; the hub serves it (hub/api/headgate/signals.py).
PATH = "/signals/{stack}/{resource}"
_OF_A_DOOR = re.compile(r"/signals/(?P<stack>[0-9a-f-]{36})/(?P<resource>[0-9a-f-]{36})(?:\?|\Z)")
#: In the query of a URL that is signed.
PARAMETER = "token"


@dataclass(frozen=True, slots=True)
class SignalUrl:
    """url: takes a POST or PUT of a JSON object, or of nothing, with ``Authorization: Bearer`` or
    ``X-Auth-Token``. Both empty for a type that takes no signals."""

    url: str = ""
    token: str = field(default="", repr=False)

    @property
    def signed_url(self) -> str:
        """The same, with the token in it: for whoever can send no header. It is a secret."""
        return f"{self.url}?{PARAMETER}={self.token}"


def resource_of(text: str, stack_id: UUID | None = None) -> UUID | None:
    """The resource that a URL of these leads to, or whose id this is; None: neither.

    stack_id: nor is it one, where the URL is of another stack.
    """
    path = _OF_A_DOOR.search(text)
    if path is not None and stack_id is not None and path["stack"] != str(stack_id):
        return None
    try:
        return UUID(path["resource"] if path else text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class SignalUrls:
    """base: the server's public URL, without a slash at its end."""

    keys: TokenKeys = field(repr=False)
    base: str

    def of(self, stack_id: UUID, resource_id: UUID) -> SignalUrl:
        path = PATH.format(stack=stack_id, resource=resource_id)
        token = signal_token(self.keys.newest, stack_id, resource_id)
        return SignalUrl(f"{self.base}{path}", token)

    def opens(self, token: str, stack_id: UUID, resource_id: UUID) -> bool:
        """Whether the token is of this resource and of an accepted version of the key."""
        rights = [signal_token(key, stack_id, resource_id) for key in self.keys.for_signals]
        return any(hmac.compare_digest(token.encode(), right.encode()) for right in rights)
