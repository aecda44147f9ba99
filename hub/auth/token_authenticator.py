"""Mode ``tokens``: tokens and passwords that this server issued."""

from collections.abc import Sequence
from time import monotonic
from urllib.parse import quote, unquote
from uuid import UUID

from engine.errors import Forbidden, HeadgateError
from engine.principal import Principal
from engine.store.access import tokens as store
from engine.store.access.tokens import EVERYWHERE, TokenRecord
from engine.store.database import Database
from engine.ttl_cache import TtlCache
from hub.auth import secrets
from hub.auth.identity import (
    AT_EVERYWHERE,
    AT_OIDC,
    LOOKS_LIKE_ID,
    Identity,
    LocalAuthenticator,
)
from hub.auth.passwords import PasswordChecker
from hub.auth.request_credentials import RequestCredentials, cache_key
from hub.auth.roles import rights_of, with_implied

#: Prefixes of the IDs of principals.
OF_TOKEN, OF_ACCOUNT, OF_SUBJECT = "token:", "account:", "oidc:"


#: What to do without a valid credential. The command line has its own words for them.
CREDENTIAL_REMEDY = (
    "Send a token as X-Auth-Token or `Authorization: Bearer`, or a name and a password by HTTP"
    " basic; an admin creates them with `headgate token create`."
)
NEW_CREDENTIAL_REMEDY = "Ask an admin for a new one: `headgate token create`."


def unauthorized_error(reason: str, remedy: str) -> HeadgateError:
    return HeadgateError(reason, remedy=remedy, code="Unauthorized")


class Tokens(LocalAuthenticator):
    """remember: seconds for which a valid token is cached. The database notifies of a revocation
    (`forget`), which therefore usually takes effect at once. issuer: of OpenID Connect; sign-ins by
    another one have ended."""

    challenge = 'Basic realm="headgate", Bearer'
    catalog = None

    def __init__(
        self,
        database: Database,
        passwords: PasswordChecker,
        *,
        remember: float,
        issuer: str = "",
    ) -> None:
        self._database = database
        self._issuer = issuer
        self._passwords = passwords
        self._remember = remember
        self._known: TtlCache[str, TokenRecord] = TtlCache()

    def forget(self) -> None:
        self._known.clear()
        self._passwords.forget()

    async def roles_of(self, owner: Principal) -> Sequence[str]:
        """The current roles of the token, account or user of OpenID Connect."""
        async with self._database.connection() as conn:
            if owner.id.startswith(OF_TOKEN):
                found = await store.roles_of_token(conn, UUID(owner.id.removeprefix(OF_TOKEN)))
            elif owner.id.startswith(OF_ACCOUNT):
                project, _, name = owner.id.removeprefix(OF_ACCOUNT).partition("/")
                found = await store.roles_of_account(conn, unquote(project), unquote(name))
            elif owner.id.startswith(OF_SUBJECT):
                project, _, subject = owner.id.removeprefix(OF_SUBJECT).partition("/")
                found = ()
                if self._is_of_issuer(unquote(subject)):
                    found = await store.roles_of_subject(conn, unquote(project), unquote(subject))
            else:
                found = ()
        return with_implied(found)

    async def identify(self, credentials: RequestCredentials, project: str) -> Identity:
        if credentials.is_empty:
            raise unauthorized_error(
                "authentication required",
                CREDENTIAL_REMEDY,
            )
        found = await self._find(credentials, project)
        if found is None:
            raise unauthorized_error(
                "the credentials are invalid, revoked or expired",
                NEW_CREDENTIAL_REMEDY,
            )
        return _identity(found, credentials, project)

    async def _find(self, credentials: RequestCredentials, project: str) -> TokenRecord | None:
        """Raises TooManyRequests."""
        found = await self._find_record(credentials, project)
        if found is None or found.subject is None or self._is_of_issuer(found.subject):
            return found
        return None

    async def _find_record(
        self, credentials: RequestCredentials, project: str
    ) -> TokenRecord | None:
        """Also of a sign-in at another OpenID provider. Raises TooManyRequests."""
        if credentials.session_token is not None:
            async with self._database.connection() as conn:
                return await store.use(conn, credentials.session_token, by_session=True)
        token = _token_in(credentials)
        token_id = secrets.id_in(token)
        if token_id is not None:
            return await self._by_token(token, token_id, cache_key(credentials, project))
        if credentials.password and len(credentials.password) <= secrets.MAX_PASSWORD_LENGTH:
            return await self._passwords.check(credentials, project)
        return None

    def _is_of_issuer(self, subject: str) -> bool:
        """Whether the subject of a sign-in belongs to the OpenID provider of the settings."""
        return bool(self._issuer) and subject.startswith(f"{self._issuer} ")

    async def _by_token(self, token: str, token_id: UUID, key: str) -> TokenRecord | None:
        found = self._known.get(key, monotonic())
        if found is not None:
            return found
        clears = self._known.clears
        async with self._database.connection() as conn:
            found = await store.use(conn, token_id)
        if found is None or not secrets.is_token(token, found.hash):
            return None
        if clears == self._known.clears:  # otherwise, it can have been revoked after it was read
            left = self._remember if found.seconds_left is None else found.seconds_left
            self._known.keep(key, found, monotonic() + min(left, self._remember))
        return found


def _token_in(credentials: RequestCredentials) -> str:
    """A token can also be sent as a password."""
    return credentials.password or credentials.bearer or credentials.token


def _identity(token: TokenRecord, credentials: RequestCredentials, project: str) -> Identity:
    """Raises Forbidden."""
    everywhere = token.project == EVERYWHERE
    if not everywhere and token.project != project:
        raise Forbidden(
            f"{token.name} belongs to another project",
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
        credential=credentials.cloud_credential or _cloud_token(credentials),
        id=principal_id(token, project),
        aliases=aliases_of(token),
        token_id=str(token.id),
    )


def principal_id(token: TokenRecord, project: str) -> str:
    """Each token is a principal. All passwords of one name and project are one account, and all
    sign-ins of one subject to one project are one user. project: of the request."""
    if token.subject is not None:
        return f"{OF_SUBJECT}{quote(project, safe='')}/{quote(token.subject, safe='')}"
    if token.kind == "token":
        return f"{OF_TOKEN}{token.id}"
    return f"{OF_ACCOUNT}{quote(token.project, safe='*')}/{quote(token.name, safe='')}"


def aliases_of(token: TokenRecord) -> tuple[str, ...]:
    """The names for `answer_by` of rules: the ID, and for an account also its name. Names of tokens
    are not aliases, because they are not unique."""
    by_id = str(token.id)
    if token.subject is not None:
        return (token.name + AT_OIDC, by_id)
    if token.kind == "token":
        return (by_id,)
    if token.project == EVERYWHERE:
        return (token.name + AT_EVERYWHERE, by_id)
    # A name that looks like the alias of another principal is not an alias.
    suffixes = (AT_EVERYWHERE, AT_OIDC)
    unique = not (token.name.endswith(suffixes) or LOOKS_LIKE_ID.fullmatch(token.name))
    return (token.name, by_id) if unique else (by_id,)


def _cloud_token(credentials: RequestCredentials) -> str:
    """``X-Auth-Token``, if the request was authenticated by something else."""
    return credentials.token if credentials.password or credentials.bearer else ""
