"""Mode ``none``: no authentication."""

from collections.abc import Sequence

from engine.principal import Principal, named
from hub.auth.credentials import RequestCredentials
from hub.auth.identity import ANONYMOUS, Identity, writable
from hub.auth.roles import EVERYTHING, Role


class Anonymous:
    """Everybody may do everything in every project, and is believed their name and their roles
    (``X-Auth-User``, ``X-Roles: operator,dba``)."""

    challenge = ""

    def knows(self, presented: RequestCredentials, project: str) -> bool:
        return True

    async def lasting(self, who: Identity) -> Identity:
        return who

    def exchange(self, credential: str) -> str:
        return credential

    async def identify(self, presented: RequestCredentials, project: str) -> Identity:
        name, roles = writable(presented.user) or ANONYMOUS, map(writable, presented.said_roles)
        who = named(name, tuple(roles))
        return Identity(
            name,
            project,
            who.roles,
            EVERYTHING,
            everywhere=True,
            credential=presented.named or presented.token,
            id=who.id,
            aliases=who.aliases,
        )

    async def roles_of(self, owner: Principal) -> Sequence[str]:
        """Whoever made a subscription may answer, as everybody may."""
        return (*owner.roles, Role.APPROVER)
