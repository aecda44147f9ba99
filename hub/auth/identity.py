"""The identity of the sender of a request. Each mode has an authenticator; handlers receive only
the `Identity`."""

import re
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Protocol
from uuid import UUID

from engine.principal import Principal, principal_of_name
from engine.types.openstack.cloud import CloudAccess, CloudIdentity
from engine.types.remote_stack import Catalog
from hub.auth.request_credentials import RequestCredentials
from hub.auth.roles import EVERYTHING, Right, Role

#: Suffixes of the names of accounts of every project, and of users of OpenID Connect.
AT_EVERYWHERE, AT_OIDC = "@*", "@oidc"
#: Names that could be mistaken for an ID.
LOOKS_LIKE_ID = re.compile(r"[0-9a-fA-F-]{32,64}")


def is_reissuable(name: str) -> bool:
    """Whether an admin of a project can revoke the name and issue it to another person.

    That is impossible for an account of every project, for the ID of a token or password, and for
    a user of OpenID Connect.
    """
    return not (name.endswith((AT_EVERYWHERE, AT_OIDC)) or _is_id(name))


def _is_id(name: str) -> bool:
    try:
        return str(UUID(name)) == name
    except ValueError:
        return False


#: The name of requests without a name.
ANONYMOUS = "anonymous"
#: Maximum characters of a name.
MAX_NAME_LENGTH = 255


@dataclass(frozen=True, slots=True)
class Identity:
    """name: for records. project: of the path; empty if the path has none.

    roles: as in `answer_by` of rules. everywhere: whether the roles apply in every project. key: by
    which requests are counted. credential: with which a change acts in the cloud
    (``X-Auth-Token``). id, aliases, token_id: see `Principal`.
    """

    name: str
    project: str
    roles: tuple[str, ...] = ()
    rights: frozenset[Right] = frozenset({Right.NOTHING})
    everywhere: bool = False
    key: str = field(default="", repr=False)
    credential: str = field(default="", repr=False)
    id: str = ""
    aliases: tuple[str, ...] = ()
    token_id: str = ""

    @property
    def principal(self) -> Principal:
        return Principal(self.id, self.name, self.aliases, self.roles, self.token_id)

    def may(self, right: Right) -> bool:
        return right in self.rights


class HandedOverCredentials(Protocol):
    """Credentials of projects, with which the observer reads their objects and repairs act."""

    async def accept(
        self, project: str, credential_id: str, secret: str, by: Principal, *, repairs: bool = False
    ) -> None:
        """Store an application credential of a project in place of an earlier one, after the
        identity service has confirmed it. repairs: repairs of drift may act with it. Raises
        Invalid, Unavailable."""
        ...

    async def find_for_repairs(self, project: str) -> str:
        """What a repair of drift in a project stores with its traversal, for
        `Authenticator.exchange`. Raises Forbidden if no repair can act in the project,
        Unavailable."""
        ...


class Authenticator(Protocol):
    """challenge: for ``WWW-Authenticate``; empty: the mode needs no credentials."""

    challenge: str

    @property
    def catalog(self) -> Catalog | None:
        """The service catalog of the users, if the mode has one."""
        ...

    @property
    def observation_credentials(self) -> HandedOverCredentials | None:
        """The credentials for observations that owners of projects hand over, if the mode has
        them."""
        ...

    def cloud(self, access: CloudAccess) -> CloudIdentity | None:
        """The identity service of the users' cloud, if the mode has one."""
        ...

    def knows(self, credentials: RequestCredentials, project: str) -> bool:
        """Whether these credentials can be checked without a request to another service."""
        ...

    def forget(self) -> None:
        """Check tokens of this server again that were valid before: they may have been revoked."""
        ...

    async def lasting(self, who: Identity) -> Identity:
        """The identity with a credential that stays valid during a change."""
        ...

    async def delete_unused(self) -> int:
        """Delete some of the credentials of `lasting` that no change uses, and return their number.

        Raises Unavailable.
        """
        ...

    def exchange(self, credential: str) -> str | Awaitable[str]:
        """The credential with which a change acts, for the one stored with its traversal.

        Raises Unavailable, and Forbidden if it is no longer valid.
        """
        ...

    async def roles_of(self, owner: Principal) -> Sequence[str]:
        """The current roles of a principal who owns an automation; none if the principal has lost
        access. owner.roles: the roles at that time. Raises Unavailable."""
        ...

    async def identify(self, credentials: RequestCredentials, project: str) -> Identity:
        """project: empty if the path has none.

        Raises HeadgateError with the code Unauthorized (unknown credentials), Forbidden (of another
        project) or Unavailable (the identity service does not respond).
        """
        ...


class LocalAuthenticator:
    """The part of an authenticator that needs no other service."""

    observation_credentials = None

    def cloud(self, access: CloudAccess) -> None:
        return None

    def knows(self, credentials: RequestCredentials, project: str) -> bool:
        return True

    def forget(self) -> None:
        """There are none."""

    async def lasting(self, who: Identity) -> Identity:
        return who

    async def delete_unused(self) -> int:
        return 0

    def exchange(self, credential: str) -> str:
        return credential


def sanitize_name(name: str) -> str:
    """Replace control characters in a name, and truncate it."""
    return "".join(one if one.isprintable() else "?" for one in name.strip())[:MAX_NAME_LENGTH]


class Anonymous(LocalAuthenticator):
    """Every request has all rights in every project, with the name and roles in its headers
    (``X-Auth-User``, ``X-Roles: operator,dba``)."""

    challenge = ""
    catalog = None

    async def identify(self, credentials: RequestCredentials, project: str) -> Identity:
        name = sanitize_name(credentials.user) or ANONYMOUS
        roles = map(sanitize_name, credentials.claimed_roles)
        who = principal_of_name(name, tuple(roles))
        return Identity(
            name,
            project,
            who.roles,
            EVERYTHING,
            everywhere=True,
            credential=credentials.cloud_credential or credentials.token,
            id=who.id,
            aliases=who.aliases,
        )

    async def roles_of(self, owner: Principal) -> Sequence[str]:
        """Every owner may answer."""
        return (*owner.roles, Role.APPROVER)
