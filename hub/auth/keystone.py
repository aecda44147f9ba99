"""Mode ``keystone``: tokens that a Keystone gave out, judged by it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from time import monotonic

import structlog
from structlog.typing import FilteringBoundLogger

from engine.errors import Forbidden
from hub.auth.identity import Identity, writable
from hub.auth.keystone_client import KeystoneClient, Scoped
from hub.auth.presented import Presented
from hub.auth.remembered import Remembered, key_of
from hub.auth.roles import Right, Role, rights_of, with_implied
from hub.auth.tokens import unauthorized

log: FilteringBoundLogger = structlog.get_logger()

#: What a traversal keeps in place of a token that may end before it does.
TRUST = "keystone-trust:"
#: How long a trust lasts. One of a user is used for half as long, so a change has the other half.
TRUST_LASTS = timedelta(days=7)
#: Seconds that a token by trust is used: Keystone's own last an hour, if nobody changed that.
TOKEN_LASTS = 600.0


@dataclass(frozen=True, slots=True)
class KeystoneRules:
    """roles: ours, for each of Keystone's. operator_project: id or name; empty: nobody sees more
    than one project. trusts: changes act by a trust. remember: seconds that a token is not asked
    about again, so also the longest that a revoked one lets in."""

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
        self._known: Remembered[Scoped] = Remembered()
        self._trusts: Remembered[str] = Remembered()
        self._tokens: Remembered[str] = Remembered()
        self.challenge = challenge

    def knows(self, presented: Presented, project: str) -> bool:
        return self._known.get(_key(presented), monotonic()) is not None

    async def identify(self, presented: Presented, project: str) -> Identity:
        token = _token_in(presented)
        if not token:
            raise unauthorized(
                "nobody is let in here without a token of Keystone",
                "Send one as X-Auth-Token; `openstack token issue` gives one.",
            )
        if presented.named.startswith(TRUST):
            raise Forbidden(
                "a trust of this server's is nothing that a request may name",
                place="X-Headgate-Credential",
                remedy="Leave it out: the request's own token is what the change acts with.",
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
        operators = self._rules.operator_project
        everywhere = (
            bool(operators)
            and operators in (found.project_id, found.project_name)
            and Right.OPERATE in rights_of(roles)
        )
        if project != found.project_id and not everywhere:
            raise Forbidden(
                "the token is of another project than the address",
                remedy="Ask for the project that the token is scoped to, by its id.",
                code="InvalidTenant",
            )
        at = "" if found.user_domain == self._rules.default_domain else f"@{found.user_domain}"
        return Identity(
            writable(found.user_name + at),
            project,
            roles,
            rights_of(roles),
            everywhere=everywhere,
            key=found.user_id,
            credential=credential,
        )

    async def lasting(self, who: Identity) -> Identity:
        """By a trust, one a user, project and set of roles; where Keystone refuses one (to a token
        that came by a trust itself), by the token, for as long as it holds."""
        if not self._rules.trusts or not who.credential:
            return who
        of = self._known.get(_key(Presented(token=who.credential)), monotonic())
        if of is None:  # it was named in a header of its own, and never judged
            return who
        place = key_of(Presented(token=who.key, user=",".join(sorted(of.roles))), of.project_id)
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


def given(names: Sequence[str], table: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Our roles for Keystone's, and Keystone's own names, which rules may use in `answer_by`.

    A name of Keystone's that happens to be one of ours gives nothing that the table does not.
    """
    ours = [role for name in names for role in table.get(name, ())]
    others = [name for name in names if name not in list(Role)]
    return with_implied([*ours, *others])


def _token_in(presented: Presented) -> str:
    return presented.token or presented.bearer


def _key(presented: Presented) -> str:
    return key_of(Presented(token=_token_in(presented)))
