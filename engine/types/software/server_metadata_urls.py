"""Metadata URLs: where a server polls for its deployments, with its own access key and secret.

Neither is stored: both are derived from the IDs of the resource and its stack. They are invalid
once the resource is deleted.
"""

from dataclasses import dataclass, field
from uuid import UUID

from engine.hooks.tokens import TokenKeys, server_secret

#: Below the server's public URL; the hub serves it (hub/api/headgate/server_metadata.py).
PATH = "/cfn/v1/"
_ID = 32


@dataclass(frozen=True, slots=True)
class ServerUrls:
    """base: the public URL, without a trailing slash. keystone: the URL of Keystone; empty if the
    server does not use it."""

    keys: TokenKeys = field(repr=False)
    base: str
    keystone: str = ""

    @property
    def url(self) -> str:
        return f"{self.base}{PATH}"

    def secret_of(self, stack_id: UUID, resource_id: UUID) -> str:
        return server_secret(self.keys.newest, stack_id, resource_id)

    def accepted_secrets(self, stack_id: UUID, resource_id: UUID) -> list[str]:
        """The secrets from all accepted versions of the key."""
        return [server_secret(key, stack_id, resource_id) for key in self.keys.for_signals]


def access_key(stack_id: UUID, resource_id: UUID) -> str:
    """The access key, which identifies the server; not secret."""
    return f"{stack_id.hex}{resource_id.hex}"


def owner_of(key: str) -> tuple[UUID, UUID] | None:
    """The IDs of the stack and the resource in an access key; None if it is invalid."""
    try:
        stack_id, resource_id = UUID(key[:_ID]), UUID(key[_ID:])
    except ValueError:
        return None
    return (stack_id, resource_id) if key == access_key(stack_id, resource_id) else None
