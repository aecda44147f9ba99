"""Signal URLs: where clients send data to one resource, authenticated by a token of the resource.

Neither is stored: the token is derived from the resource's ID. It is invalid once the resource is
deleted, and a replacement has another one.
"""

import hmac
import re
from dataclasses import dataclass, field
from urllib.parse import quote
from uuid import UUID

from engine.hooks.derived_tokens import TokenKeys, signal_token

#: Below the server's public URL; the hub serves it (hub/api/headgate/resource_signals.py).
PATH = "/signals/{stack}/{resource}"
#: Below the server's public URL: the request of the orchestration API that signals a resource. It
#: has the ID of the resource, which stays the same when the resource gets another name.
API_PATH = "/v1/{project}/stacks/{stack_name}/{stack}/resources/{resource}/signal"
_SIGNAL_PATH = re.compile(r"/signals/(?P<stack>[0-9a-f-]{36})/(?P<resource>[0-9a-f-]{36})(?:\?|\Z)")
#: The query parameter of a signed URL.
PARAMETER = "token"


@dataclass(frozen=True, slots=True)
class SignalUrl:
    """url: accepts POST and PUT with a JSON object or an empty body, and the token in
    ``Authorization: Bearer`` or ``X-Auth-Token``. api_url: accepts POST with the same body, as the
    orchestration API with the authentication of a user. All are empty for a type without signals.
    """

    url: str = ""
    token: str = field(default="", repr=False)
    api_url: str = ""

    @property
    def signed_url(self) -> str:
        """The URL with the token in it, for clients that cannot send headers. It is a secret."""
        return f"{self.url}?{PARAMETER}={self.token}"


def resource_of(text: str, stack_id: UUID | None = None) -> UUID | None:
    """The ID of the resource in a signal URL, or in a text that is an ID; None for other texts.

    stack_id: None is also returned for a URL of another stack.
    """
    path = _SIGNAL_PATH.search(text)
    if path is not None and stack_id is not None and path["stack"] != str(stack_id):
        return None
    try:
        return UUID(path["resource"] if path else text)
    except ValueError:
        return None


@dataclass(frozen=True, slots=True)
class SignalUrls:
    """base: the server's public URL, without a trailing slash."""

    keys: TokenKeys = field(repr=False)
    base: str

    def make_url(self, project: str, stack: tuple[str, UUID], resource_id: UUID) -> SignalUrl:
        """stack: name and ID."""
        stack_name, stack_id = stack
        path = PATH.format(stack=stack_id, resource=resource_id)
        token = signal_token(self.keys.newest, stack_id, resource_id)
        api_path = API_PATH.format(
            project=quote(project, safe=""),
            stack_name=quote(stack_name, safe=""),
            stack=stack_id,
            resource=resource_id,
        )
        return SignalUrl(f"{self.base}{path}", token, f"{self.base}{api_path}")

    def opens(self, token: str, stack_id: UUID, resource_id: UUID) -> bool:
        """Whether the token belongs to this resource and to an accepted version of the key."""
        rights = [signal_token(key, stack_id, resource_id) for key in self.keys.for_signals]
        return any(hmac.compare_digest(token.encode(), right.encode()) for right in rights)
