"""Mode ``tokens``: API tokens and passwords that this server itself gave out."""

from collections.abc import Sequence
from time import monotonic
from urllib.parse import quote, unquote
from uuid import UUID

from engine.errors import Forbidden, HeadgateError
from engine.principal import Principal
from engine.store import tokens as store
from engine.store.database import Database
from engine.store.tokens import EVERYWHERE, TokenRecord
from engine.ttl_cache import TtlCache
from hub.auth import secrets
from hub.auth.account_names import AT_EVERYWHERE, ID
from hub.auth.credentials import RequestCredentials, cache_key
from hub.auth.identity import Identity
from hub.auth.passwords import PasswordChecker
from hub.auth.roles import rights_of, with_implied

#: How ids of principals begin.
OF_TOKEN, OF_ACCOUNT = "token:", "account:"


def unauthorized(reason: str, remedy: str) -> HeadgateError:
    return HeadgateError(reason, remedy=remedy, code="Unauthorized")


class Tokens:
    """remember: seconds that a token that was right is not looked up again. A revoked one is
    forgotten as soon as the database notifies (`forget`), and after these seconds at the latest."""

    challenge = 'Basic realm="headgate", Bearer'

    def __init__(self, database: Database, passwords: PasswordChecker, *, remember: float) -> None:
        self._database = database
        self._passwords = passwords
        self._remember = remember
        self._known: TtlCache[str, TokenRecord] = TtlCache()

    def forget(self) -> None:
        self._known.clear()
        self._passwords.forget()

    def knows(self, presented: RequestCredentials, project: str) -> bool:
        return True

    async def lasting(self, who: Identity) -> Identity:
        return who

    def exchange(self, credential: str) -> str:
        return credential

    async def roles_of(self, owner: Principal) -> Sequence[str]:
        """As the token or account has them now."""
        async with self._database.connection() as conn:
            if owner.id.startswith(OF_TOKEN):
                found = await store.roles_of_token(conn, UUID(owner.id.removeprefix(OF_TOKEN)))
            elif owner.id.startswith(OF_ACCOUNT):
                project, _, name = owner.id.removeprefix(OF_ACCOUNT).partition("/")
                found = await store.roles_of_account(conn, unquote(project), unquote(name))
            else:
                found = ()
        return with_implied(found)

    async def identify(self, presented: RequestCredentials, project: str) -> Identity:
        if presented.nothing:
            raise unauthorized(
                "authentication required: no token given",
                "Send one as X-Auth-Token or `Authorization: Bearer`, or a name and a password by"
                " HTTP basic; an admin makes them with `headgate token create`.",
            )
        found = await self._found(presented, project)
        if found is None:
            raise unauthorized(
                "the credentials are invalid, revoked or expired",
                "Ask an admin for a new one: `headgate token create`.",
            )
        return _identity(found, presented, project)

    async def _found(self, presented: RequestCredentials, project: str) -> TokenRecord | None:
        """Raises TooMany."""
        if presented.session_token is not None:
            async with self._database.connection() as conn:
                return await store.use(conn, presented.session_token, by_session=True)
        token = _token_in(presented)
        token_id = secrets.id_in(token)
        if token_id is not None:
            return await self._by_token(token, token_id, cache_key(presented, project))
        if presented.password and len(presented.password) <= secrets.LONGEST_PASSWORD:
            return await self._passwords.check(presented, project)
        return None

    async def _by_token(self, token: str, token_id: UUID, key: str) -> TokenRecord | None:
        found = self._known.get(key, monotonic())
        if found is not None:
            return found
        async with self._database.connection() as conn:
            found = await store.use(conn, token_id)
        if found is None or not secrets.is_token(token, found.hash):
            return None
        left = self._remember if found.seconds_left is None else found.seconds_left
        self._known.keep(key, found, monotonic() + min(left, self._remember))
        return found


def _token_in(presented: RequestCredentials) -> str:
    """A token may be sent as a password, too, by clients that know only those."""
    return presented.password or presented.bearer or presented.token


def _identity(token: TokenRecord, presented: RequestCredentials, project: str) -> Identity:
    """Raises Forbidden."""
    everywhere = token.project == EVERYWHERE
    if not everywhere and token.project != project:
        raise Forbidden(
            f"{token.name} is of another project",
            remedy="Use the project of the token in the URL.",
            code="InvalidTenant",
        )
    roles = with_implied(token.roles)
    return Identity(
        token.name,
        project,
        roles,
        rights_of(roles),
        everywhere=everywhere,
        key=str(token.id),
        credential=presented.named or _for_the_cloud(presented),
        id=principal_id(token),
        aliases=aliases_of(token),
        token_id=str(token.id),
    )


def principal_id(token: TokenRecord) -> str:
    """A token is a principal of its own. Passwords of one name and project are one account, also
    when the password is another."""
    if token.kind == "token":
        return f"{OF_TOKEN}{token.id}"
    return f"{OF_ACCOUNT}{quote(token.project, safe='*')}/{quote(token.name, safe='')}"


def aliases_of(token: TokenRecord) -> tuple[str, ...]:
    """What rules may call it: by its ID, and an account also by its name. Names of tokens are not
    unique, so they are no aliases."""
    by_id = str(token.id)
    if token.kind == "token":
        return (by_id,)
    if token.project == EVERYWHERE:
        return (token.name + AT_EVERYWHERE, by_id)
    # A name that reads like another principal's alias is no alias.
    clear = not (token.name.endswith(AT_EVERYWHERE) or ID.fullmatch(token.name))
    return (token.name, by_id) if clear else (by_id,)


def _for_the_cloud(presented: RequestCredentials) -> str:
    """``X-Auth-Token``, where something else let them in: what lets in here opens no cloud."""
    return presented.token if presented.password or presented.bearer else ""
