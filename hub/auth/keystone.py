"""Mode ``keystone``: tokens that a Keystone gave out, judged by it."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from time import monotonic

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Forbidden
from engine.principal import Principal
from engine.ttl_cache import TtlCache
from hub.auth.credentials import RequestCredentials, cache_key
from hub.auth.identity import Identity, writable
from hub.auth.keystone_client import KeystoneClient, Scoped
from hub.auth.roles import Right, Role, rights_of, with_implied
from hub.auth.tokens import unauthorized

log: FilteringBoundLogger = structlog.get_logger()

#: What a traversal keeps in place of a token that may end before it does.
TRUST = "keystone-trust:"
#: How ids of principals begin.
OF_USER = "keystone:"
#: Names that could be taken for an id.
ID = re.compile(r"[0-9a-fA-F-]{32,64}")
#: How long a trust lasts. One of a user is used for half as long, so a change has the other half.
TRUST_LASTS = timedelta(days=7)
#: Seconds that a token by trust is used: Keystone's own last an hour, if nobody changed that.
TOKEN_LASTS = 600.0


@dataclass(frozen=True, slots=True)
class KeystoneRules:
    """roles: ours, for each of Keystone's. operator_project: id, ``NAME@DOMAIN``, or a name in the
    default domain; empty: no user sees more than one project. default_domain: id or name of the
    domain of names that are written without one. trusts: changes act by a trust. remember: seconds
    that a token is not asked about again, so also the longest that a revoked one lets in."""

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
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._rules = rules
        self._now = now
        self._known: TtlCache[str, Scoped] = TtlCache()
        self._trusts: TtlCache[str, str] = TtlCache()
        self._tokens: TtlCache[str, str] = TtlCache()
        self.challenge = challenge

    def knows(self, presented: RequestCredentials, project: str) -> bool:
        return self._known.get(_key(presented), monotonic()) is not None

    async def identify(self, presented: RequestCredentials, project: str) -> Identity:
        token = _token_in(presented)
        if not token:
            raise unauthorized(
                "authentication required: no Keystone token given",
                "Send one as X-Auth-Token; `openstack token issue` prints one.",
            )
        if presented.named.startswith(TRUST):
            raise Forbidden(
                "requests cannot use a trust of this server",
                place="X-Headgate-Credential",
                remedy="Remove it: the change uses the token of the request.",
                code="Forbidden",
            )
        found = self._known.get(_key(presented), monotonic())
        if found is None:
            found = await self._client.judge(token)
            self._known.keep(_key(presented), found, monotonic() + self._rules.remember)
        return self._identity(found, project, presented.named or token)

    def _identity(self, found: Scoped, project: str, credential: str) -> Identity:
        """Raises Forbidden: Keystone's projects are as far apart here as there."""
        roles = given(found.roles, self._rules.roles)
        everywhere = self._is_operators(found) and Right.OPERATE in rights_of(roles)
        if project != found.project_id and not everywhere:
            raise Forbidden(
                "the token belongs to another project than the URL",
                remedy="Use the ID of the token's project in the URL.",
                code="InvalidTenant",
            )
        aliases = aliases_of(found, self._rules.default_domain)
        return Identity(
            writable(aliases[-1] if len(aliases) > 1 else f"{found.user_name}@{found.user_id}"),
            project,
            roles,
            rights_of(roles),
            everywhere=everywhere,
            key=found.user_id,
            credential=credential,
            id=f"{OF_USER}{found.user_id}@{found.user_domain.id}",
            aliases=aliases,
            token_id=found.audit_id,
        )

    def _is_operators(self, found: Scoped) -> bool:
        """Whether the token's project is that of the operators. A name alone is of the default
        domain: administrators of another domain can create a project of any name there."""
        said = self._rules.operator_project
        if not said or ID.fullmatch(said):
            return bool(said) and said == found.project_id
        name, at, domain = said.rpartition("@")
        if not at:
            name, domain = said, self._rules.default_domain
        return name == found.project_name and found.project_domain.is_called(domain)

    async def roles_of(self, owner: Principal) -> Sequence[str]:
        """Those that they had when they made it: Keystone tells the roles of a token alone."""
        return owner.roles if owner.id.startswith(OF_USER) else ()

    async def lasting(self, who: Identity) -> Identity:
        """By a trust, one a user, project and set of roles; where Keystone refuses one (to a token
        that came by a trust itself), by the token, for as long as it holds."""
        if not self._rules.trusts or not who.credential:
            return who
        of = self._known.get(_key(RequestCredentials(token=who.credential)), monotonic())
        if of is None:  # it was named in a header of its own, and never judged
            return who
        place = cache_key(
            RequestCredentials(token=who.key, user=",".join(sorted(of.roles))), of.project_id
        )
        trust = self._trusts.get(place, monotonic())
        if trust is None:
            until = (self._now() + TRUST_LASTS).astimezone(UTC)
            expires_at = until.isoformat(timespec="microseconds").replace("+00:00", "Z")
            trust = await self._client.make_trust(who.credential, of, expires_at)
            if trust is None:
                log.warning("keystone.no_trust", user=who.name, project=of.project_id)
                return who
            self._trusts.keep(place, trust, monotonic() + TRUST_LASTS.total_seconds() / 2)
        return replace(who, credential=TRUST + trust)

    def exchange(self, credential: str) -> str | Awaitable[str]:
        """What a change acts with: a token for a trust, anything else as it is."""
        return self._token(credential) if credential.startswith(TRUST) else credential

    async def _token(self, credential: str) -> str:
        """Raises Unavailable, Forbidden."""
        found = self._tokens.get(credential, monotonic())
        if found is None:
            found = await self._client.token_by_trust(credential.removeprefix(TRUST))
            self._tokens.keep(credential, found, monotonic() + TOKEN_LASTS)
        return found


def aliases_of(found: Scoped, default_domain: str) -> tuple[str, ...]:
    """What rules may call a user: ``ID``, ``NAME@DOMAIN``, and in the default domain ``NAME``. The
    last is for display. What could be read as another user's is left out."""
    name, domain = found.user_name, found.user_domain
    aliases = [found.user_id]
    if "@" not in domain.name:
        aliases.append(f"{name}@{domain.name}")
    if domain.is_called(default_domain) and "@" not in name and not ID.fullmatch(name):
        aliases.append(name)
    return tuple(aliases)


def given(names: Sequence[str], table: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Our roles for Keystone's, and Keystone's own names, which rules may use in `answer_by`.

    A name of Keystone's that happens to be one of ours gives nothing that the table does not.
    """
    ours = [role for name in names for role in table.get(name, ())]
    others = [name for name in names if name not in list(Role)]
    return with_implied([*ours, *others])


def _token_in(presented: RequestCredentials) -> str:
    return presented.token or presented.bearer


def _key(presented: RequestCredentials) -> str:
    return cache_key(RequestCredentials(token=_token_in(presented)))
