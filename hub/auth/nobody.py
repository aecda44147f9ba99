"""Mode ``none``: nobody is asked who they are."""

from hub.auth.identity import ANONYMOUS, Identity, writable
from hub.auth.presented import Presented
from hub.auth.roles import EVERYTHING


class Nobody:
    """Everybody may do everything in every project, and is believed their name and their roles
    (``X-Auth-User``, ``X-Roles: operator,dba``)."""

    challenge = ""

    def knows(self, presented: Presented, project: str) -> bool:
        return True

    async def lasting(self, who: Identity) -> Identity:
        return who

    def exchange(self, credential: str) -> str:
        return credential

    async def identify(self, presented: Presented, project: str) -> Identity:
        return Identity(
            writable(presented.user) or ANONYMOUS,
            project,
            tuple(map(writable, presented.said_roles)),
            EVERYTHING,
            everywhere=True,
            credential=presented.named or presented.token,
        )
