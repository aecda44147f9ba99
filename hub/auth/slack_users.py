"""The users of Headgate for whom users of Slack answer hooks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from uuid import UUID

from engine.principal import OF_KEYSTONE, Principal, principal_of_name
from engine.store.access import tokens as store
from engine.store.access.tokens import EVERYWHERE, TokenRecord
from engine.store.database import Database
from hub.auth.identity import AT_EVERYWHERE, AT_OIDC, Identity
from hub.auth.roles import rights_of, with_implied
from hub.auth.token_authenticator import aliases_of, principal_id


@dataclass(frozen=True, slots=True)
class SlackUser:
    """name: of the user of Headgate: in mode tokens, as after `user:` in rules; in mode keystone,
    the ID. domain: the ID of the user's domain, in mode keystone. roles: in mode tokens, those of
    the user apply instead. projects: globs."""

    name: str
    roles: Sequence[str]
    projects: Sequence[str]
    domain: str = ""


class SlackUsers:
    """mode: of [auth]. users: by the ID in Slack. issuer: of OpenID Connect."""

    def __init__(
        self, database: Database, users: Mapping[str, SlackUser], *, mode: str, issuer: str = ""
    ) -> None:
        self._database = database
        self._users = users
        self._mode = mode
        self._issuer = issuer

    async def identify(self, slack_id: str, project: str) -> Identity | None:
        """The identity in a project, with the roles that the user has there now. None: the user of
        Slack has none there. Raises Unavailable."""
        user = self._users.get(slack_id)
        if user is None or not any(fnmatchcase(project, glob) for glob in user.projects):
            return None
        if self._mode == "tokens":
            return await self._of_tokens(user.name, project)
        roles = with_implied(user.roles)
        who = principal_of_name(user.name, roles)
        if self._mode == "keystone":
            who = Principal(
                f"{OF_KEYSTONE}{user.name}@{user.domain}", user.name, (user.name,), roles
            )
        return _identity(who, project)

    async def _of_tokens(self, name: str, project: str) -> Identity | None:
        found = await self._token(name, project)
        if found is None or found.project not in (EVERYWHERE, project):
            return None
        if found.subject is not None and not found.subject.startswith(f"{self._issuer} "):
            return None
        roles = with_implied(found.roles)
        who = Principal(
            principal_id(found, project), found.name, aliases_of(found), roles, str(found.id)
        )
        return _identity(who, project)

    async def _token(self, name: str, project: str) -> TokenRecord | None:
        """An accepted token or password, or the last sign-in of a user of OpenID Connect."""
        async with self._database.connection() as conn:
            if name.endswith(AT_EVERYWHERE):
                accounts = await store.passwords(conn, name.removesuffix(AT_EVERYWHERE), EVERYWHERE)
                return accounts[0] if accounts else None
            if not name.endswith(AT_OIDC):
                return await store.use(conn, UUID(name), by_session=True)
            user = name.removesuffix(AT_OIDC)
            return await store.sign_in(conn, user, self._issuer, project) if self._issuer else None


def _identity(who: Principal, project: str) -> Identity:
    return Identity(
        who.name,
        project,
        who.roles,
        rights_of(who.roles),
        id=who.id,
        aliases=who.aliases,
        token_id=who.token_id,
    )
