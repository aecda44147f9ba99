"""Where a server asks what is deployed to it, by right of a key and a secret of its own.

Nothing of it is stored: both are made from the ids of the resource and its stack. They are void
once the resource has gone.
"""

from dataclasses import dataclass, field
from uuid import UUID

from engine.hooks.tokens import TokenKeys, server_secret

#: Below the server's public URL; the hub serves it (hub/api/headgate/server_metadata.py).
PATH = "/cfn/v1/"
_ID = 32


@dataclass(frozen=True, slots=True)
class ServerUrls:
    """base: the public URL, without a slash at its end. keystone: URL of the
    Keystone that says who somebody is here; empty where none does."""

    keys: TokenKeys = field(repr=False)
    base: str
    keystone: str = ""

    @property
    def url(self) -> str:
        return f"{self.base}{PATH}"

    def secret_of(self, stack_id: UUID, resource_id: UUID) -> str:
        return server_secret(self.keys.newest, stack_id, resource_id)

    def accepted_secrets(self, stack_id: UUID, resource_id: UUID) -> list[str]:
        """Of each accepted version of the key."""
        return [server_secret(key, stack_id, resource_id) for key in self.keys.for_signals]


def access_key(stack_id: UUID, resource_id: UUID) -> str:
    """Says which server asks; no secret."""
    return f"{stack_id.hex}{resource_id.hex}"


def owner_of(key: str) -> tuple[UUID, UUID] | None:
    """The ids of the stack and the resource that an access key is of; None: it is none."""
    try:
        stack_id, resource_id = UUID(key[:_ID]), UUID(key[_ID:])
    except ValueError:
        return None
    return (stack_id, resource_id) if key == access_key(stack_id, resource_id) else None
