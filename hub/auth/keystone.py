"""Mode ``keystone``: tokens that Keystone issued and verifies."""

from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Forbidden, Unavailable
from engine.principal import OF_KEYSTONE, Principal
from engine.store.access.trusts import HANDED_OVER_PREFIX, TRUST
from engine.ttl_cache import TtlCache
from engine.types.openstack.cloud import CloudAccess
from hub.auth.identity import LOOKS_LIKE_ID, Identity, sanitize_name
from hub.auth.keystone_catalog import KeystoneCatalog
from hub.auth.keystone_client import KeystoneClient, TokenScope
from hub.auth.keystone_cloud import KeystoneCloud
from hub.auth.observation_credentials import TOKEN_LIFETIME, ObservationCredentials
from hub.auth.request_credentials import RequestCredentials, cache_key
from hub.auth.roles import Right, Role, rights_of, with_implied
from hub.auth.shared_tasks import SharedTasks
from hub.auth.token_authenticator import unauthorized_error
from hub.auth.trusts import TRUST_LASTS, Trusts

log: FilteringBoundLogger = structlog.get_logger()

#: What to do without a token. The command line has its own words for it.
KEYSTONE_REMEDY = "Send a Keystone token as X-Auth-Token; `openstack token issue` prints one."
#: Seconds for which a token from a trust is reused; Keystone's default lifetime is an hour.
TOKEN_LASTS = 600.0


@dataclass(frozen=True, slots=True)
class KeystoneRules:
    """roles: Headgate roles by Keystone role. operator_project: ID, ``NAME@DOMAIN``, or a name in
    the default domain; empty: no user sees more than one project. default_domain: ID or name of the
    domain of names without one. trusts: whether changes act by a trust. remember: seconds for which
    a verified token is cached, and so the time after which a revocation takes effect."""

    roles: Mapping[str, Sequence[str]]
    operator_project: str
    default_domain: str
    trusts: bool
    remember: float


class Keystone:
    def __init__(
        self,
        client: KeystoneClient,
        rules: KeystoneRules,
        *,
        challenge: str,
        trusts: Trusts | None,
        ca_pem: str = "",
        observation_credentials: ObservationCredentials | None = None,
    ) -> None:
        """trusts: None: they cannot be stored, and changes act by the tokens of requests. ca_pem:
        the CA certificate of the services in the catalog. observation_credentials: None: they
        cannot be stored."""
        self.observation_credentials = observation_credentials
        self._client = client
        self._rules = rules
        self._trusts = trusts
        self._known: TtlCache[str, TokenScope] = TtlCache()
        self._tokens: TtlCache[str, str] = TtlCache()
        #: Concurrent operations with a trust share a token.
        self._exchanges: SharedTasks[str] = SharedTasks()
        self._credential_of: TtlCache[str, str] = TtlCache()
        self._ca_pem = ca_pem
        self.challenge = challenge
        self.catalog = KeystoneCatalog(client, self.exchange, ca_pem)

    def knows(self, credentials: RequestCredentials, project: str) -> bool:
        return self._known.get(_key(credentials), monotonic()) is not None

    async def identify(self, credentials: RequestCredentials, project: str) -> Identity:
        token = _token_in(credentials)
        if not token:
            raise unauthorized_error(
                "authentication required",
                KEYSTONE_REMEDY,
            )
        if credentials.cloud_credential.startswith((TRUST, HANDED_OVER_PREFIX)):
            raise Forbidden(
                "requests cannot use a credential that this server keeps",
                place="X-Headgate-Credential",
                remedy="Remove it: the change uses the token of the request.",
                code="Forbidden",
            )
        found = self._known.get(_key(credentials), monotonic())
        if found is None:
            found = await self._client.verify(token)
            self._known.keep(_key(credentials), found, monotonic() + self._rules.remember)
        return self._identity(found, project, credentials.cloud_credential or token)

    def _identity(self, found: TokenScope, project: str, credential: str) -> Identity:
        """Raises Forbidden if the token belongs to another project."""
        roles = map_roles(found.roles, self._rules.roles)
        everywhere = self._is_operators(found) and Right.OPERATE in rights_of(roles)
        if project != found.project_id and not everywhere:
            raise Forbidden(
                "the token belongs to another project than the URL",
                remedy="Use the ID of the token's project in the URL.",
                code="InvalidTenant",
            )
        aliases = aliases_of(found, self._rules.default_domain)
        return Identity(
            sanitize_name(
                aliases[-1] if len(aliases) > 1 else f"{found.user_name}@{found.user_id}"
            ),
            project,
            roles,
            rights_of(roles),
            everywhere=everywhere,
            key=found.user_id,
            credential=credential,
            id=f"{OF_KEYSTONE}{found.user_id}@{found.user_domain.id}",
            aliases=aliases,
            token_id=found.audit_id,
        )

    def _is_operators(self, found: TokenScope) -> bool:
        """Whether the token's project is that of the operators. A name without a domain belongs to
        the default domain, because administrators of other domains can use any name there."""
        project = self._rules.operator_project
        if not project or LOOKS_LIKE_ID.fullmatch(project):
            return bool(project) and project == found.project_id
        name, at, domain = project.rpartition("@")
        if not at:
            name, domain = project, self._rules.default_domain
        return name == found.project_name and found.project_domain.is_called(domain)

    async def roles_of(self, owner: Principal) -> Sequence[str]:
        """The roles at the time of creation, because Keystone reports only the roles of a token."""
        return owner.roles if owner.id.startswith(OF_KEYSTONE) else ()

    def forget(self) -> None:
        """This server has none: those of Keystone are not revoked here."""

    async def lasting(self, who: Identity) -> Identity:
        """With a trust: one for each user, project and set of roles. If Keystone refuses it because
        the token itself is from a trust, with the token."""
        if self._trusts is None or not self._rules.trusts or not who.credential:
            return who
        of = self._known.get(_key(RequestCredentials(token=who.credential)), monotonic())
        if of is None:  # from the header X-Headgate-Credential, and never verified
            return who
        trust = await self._trusts.get(who.credential, of)
        if trust is None:
            log.warning("keystone.trust_failed", user=who.name, project=of.project_id)
            return who
        return replace(who, credential=trust)

    async def delete_unused(self) -> int:
        return await self._trusts.delete_unused() if self._trusts is not None else 0

    def exchange(self, credential: str) -> str | Awaitable[str]:
        """A token for a trust, or for a credential that its project has handed over; other
        credentials unchanged."""
        if credential.startswith(HANDED_OVER_PREFIX):
            return self._repair_token(credential)
        return self._token(credential) if credential.startswith(TRUST) else credential

    async def _repair_token(self, credential: str, refused: str = "") -> str:
        """Raises Unavailable, Forbidden, DecryptionFailed."""
        if self.observation_credentials is None:
            raise Unavailable("this server stores no credentials of projects")
        found = await self.observation_credentials.repair_token(credential, refused)
        place = cache_key(RequestCredentials(token=found))
        self._credential_of.keep(place, credential, monotonic() + TOKEN_LIFETIME)
        return found

    async def _token(self, credential: str) -> str:
        """Raises Unavailable, Forbidden."""
        found = self._tokens.get(credential, monotonic())
        if found is None:
            found = await self._exchanges.run(credential, lambda: self._exchange_trust(credential))
        return found

    async def _exchange_trust(self, credential: str) -> str:
        try:
            found = await self._client.token_by_trust(credential.removeprefix(TRUST))
        except Forbidden:
            if self._trusts is not None:
                self._trusts.drop(credential)
            raise
        self._tokens.keep(credential, found, monotonic() + TOKEN_LASTS)
        place = cache_key(RequestCredentials(token=found))
        self._credential_of.keep(place, credential, monotonic() + TRUST_LASTS.total_seconds())
        return found

    async def renew(self, token: str) -> str | None:
        """A new token of the trust or handed-over credential that a refused token came from; None
        if it came from none.

        Raises Unavailable, Forbidden.
        """
        place = cache_key(RequestCredentials(token=token))
        trust = self._credential_of.get(place, monotonic())
        if trust is None:
            return None
        if trust.startswith(HANDED_OVER_PREFIX):
            return await self._repair_token(trust, refused=token)
        if self._tokens.get(trust, monotonic()) == token:
            self._tokens.drop(trust)
        return await self._token(trust)

    def cloud(self, access: CloudAccess) -> KeystoneCloud:
        return KeystoneCloud(self._client, self, access, self._ca_pem, self.observation_credentials)


def aliases_of(found: TokenScope, default_domain: str) -> tuple[str, ...]:
    """The names for `answer_by` of rules: ``ID``, ``NAME@DOMAIN``, and in the default domain
    ``NAME``; the last one is for display. Without names that look like those of other users."""
    name, domain = found.user_name, found.user_domain
    aliases = [found.user_id]
    if "@" not in domain.name:
        aliases.append(f"{name}@{domain.name}")
    if domain.is_called(default_domain) and "@" not in name and not LOOKS_LIKE_ID.fullmatch(name):
        aliases.append(name)
    return tuple(aliases)


def map_roles(names: Sequence[str], table: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """The Headgate roles for Keystone roles, and the other Keystone roles for `answer_by` of rules.

    A Keystone role with the name of a Headgate role grants only what the table maps it to.
    """
    mapped = [role for name in names for role in table.get(name, ())]
    others = [name for name in names if name not in list(Role)]
    return with_implied([*mapped, *others])


def _token_in(credentials: RequestCredentials) -> str:
    return credentials.token or credentials.bearer


def _key(credentials: RequestCredentials) -> str:
    return cache_key(RequestCredentials(token=_token_in(credentials)))
