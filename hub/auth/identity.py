"""Who is asking. One authenticator a mode; handlers see only the `Identity`."""

from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from engine.principal import Principal
from hub.auth.credentials import RequestCredentials
from hub.auth.roles import Right

#: What a nameless requester is called in records.
ANONYMOUS = "anonymous"
#: Characters of a name that are kept.
LONGEST = 255


@dataclass(frozen=True, slots=True)
class Identity:
    """name: who it is, for the record. project: the one in the path, which they may see; empty
    where the path names none.

    roles: what they are, as in a rule's `answer_by`. everywhere: their roles hold in every
    project. key: stands for what they presented, where requests are counted. credential: what they
    brought for the change to act with in the cloud (``X-Auth-Token``). id, aliases, token_id: see
    `Principal`.
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


class Authenticator(Protocol):
    """challenge: for ``WWW-Authenticate``; empty: there is nothing one could send."""

    challenge: str

    def knows(self, presented: RequestCredentials, project: str) -> bool:
        """Whether this is judged here, without another service being asked."""
        ...

    async def lasting(self, who: Identity) -> Identity:
        """Them, with a credential that holds for as long as a change may take."""
        ...

    def exchange(self, credential: str) -> str | Awaitable[str]:
        """What a change acts with, for the credential that its traversal keeps.

        Raises Unavailable, and Forbidden where it holds no longer.
        """
        ...

    async def roles_of(self, owner: Principal) -> Sequence[str]:
        """The current roles of a principal who owns an automation; none if the principal has lost
        access. owner.roles: the roles at that time. Raises Unavailable."""
        ...

    async def identify(self, presented: RequestCredentials, project: str) -> Identity:
        """project: empty where the path names none.

        Raises HeadgateError with the code Unauthorized (nobody we know), Forbidden (somebody, but
        of another project), Unavailable (who would know does not answer).
        """
        ...


def writable(name: str) -> str:
    """A name as it may be stored and shown: no control characters, no half ones, not endless."""
    return "".join(one if one.isprintable() else "?" for one in name.strip())[:LONGEST]
