"""Mode ``keystone``: tokens that a Keystone gave out, judged by it (Identity API v3)."""

import asyncio
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from types import TracebackType
from typing import Any, Self

import aiohttp

from engine.errors import Forbidden, Unavailable
from hub.auth.identity import Identity, writable
from hub.auth.presented import Presented
from hub.auth.remembered import Remembered, key_of
from hub.auth.roles import Right, Role, rights_of, with_implied
from hub.auth.tokens import unauthorized

Json = Any
_BROKEN = (aiohttp.ClientError, TimeoutError, OSError, ValueError, KeyError, TypeError)


@dataclass(frozen=True, slots=True)
class KeystoneSettings:
    """url: with or without ``/v3``. username, password, project: whom we ask as. roles: ours, for
    each of Keystone's. operator_project: id or name; empty: nobody sees more than one project.
    timeout: seconds of one request."""

    url: str
    username: str
    password: str = field(repr=False)
    project: str
    user_domain: str
    project_domain: str
    ca_file: str
    timeout: float
    roles: Mapping[str, Sequence[str]]
    operator_project: str


@dataclass(frozen=True, slots=True)
class Scoped:
    """Whom a token is of, and in which project (id and name)."""

    user_id: str
    name: str
    project_id: str
    project_name: str
    roles: Sequence[str]


class Keystone:
    """An async context manager. remember: seconds that a token is not asked about again, so also
    the longest that a revoked one lets in."""

    def __init__(self, settings: KeystoneSettings, *, remember: float) -> None:
        self._settings = settings
        self._url = settings.url.removesuffix("/v3")
        self._remember = remember
        self._known: Remembered[Scoped] = Remembered()
        self._own = ""
        self._renewing = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None
        self.challenge = f'Keystone uri="{self._url}"'

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=self._settings.timeout)
        connector = aiohttp.TCPConnector(ssl=_tls(self._settings.ca_file))
        self._session = aiohttp.ClientSession(timeout=timeout, connector=connector)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._session is not None:
            await self._session.close()

    def knows(self, presented: Presented, project: str) -> bool:
        return self._known.get(_key(presented), monotonic()) is not None

    async def identify(self, presented: Presented, project: str) -> Identity:
        token = _token_in(presented)
        if not token:
            raise unauthorized(
                "nobody is let in here without a token of Keystone",
                "Send one as X-Auth-Token; `openstack token issue` gives one.",
            )
        found = self._known.get(_key(presented), monotonic())
        if found is None:
            found = await self._judged(token)
            self._known.keep(_key(presented), found, monotonic() + self._remember)
        return self._identity(found, project, presented.named or token)

    def _identity(self, found: Scoped, project: str, credential: str) -> Identity:
        """Raises Forbidden: Keystone's projects are as far apart here as there."""
        roles = given(found.roles, self._settings.roles)
        operators = self._settings.operator_project
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
        return Identity(
            found.name,
            project,
            roles,
            rights_of(roles),
            everywhere=everywhere,
            key=found.user_id,
            credential=credential,
        )

    async def _judged(self, token: str) -> Scoped:
        try:
            status, document = await self._ask(token, await self._own_token())
            if status == 401:  # ours has ended, or was revoked
                status, document = await self._ask(token, await self._own_token(self._own))
            if status == 200:
                return self._scoped(document["token"])
        except _BROKEN as error:
            raise self._away(type(error).__name__) from error
        if status != 404:
            raise self._away(f"it answered {status}")
        raise unauthorized(
            "Keystone does not know this token: it is wrong, revoked or expired",
            "Get a new one: `openstack token issue`.",
        )

    async def _ask(self, token: str, own: str) -> tuple[int, Json]:
        headers = {"X-Auth-Token": own, "X-Subject-Token": token}
        async with self._open().get(f"{self._url}/v3/auth/tokens", headers=headers) as answer:
            return answer.status, await answer.json() if answer.status == 200 else None

    async def _own_token(self, ended: str | None = None) -> str:
        """The token that we ask with; ended: one that holds no longer. Raises Unavailable."""
        async with self._renewing:
            if not self._own or self._own == ended:
                self._own = await self._log_in()
            return self._own

    async def _log_in(self) -> str:
        said = self._settings
        user = {
            "name": said.username,
            "domain": {"name": said.user_domain},
            "password": said.password,
        }
        scope = {"name": said.project, "domain": {"name": said.project_domain}}
        body = {
            "auth": {
                "identity": {"methods": ["password"], "password": {"user": user}},
                "scope": {"project": scope},
            }
        }
        async with self._open().post(f"{self._url}/v3/auth/tokens", json=body) as answer:
            if answer.status != 201:
                raise self._away(f"it refused our own name and password with {answer.status}")
            return answer.headers["X-Subject-Token"]

    def _scoped(self, token: Mapping[str, Json]) -> Scoped:
        """Raises Forbidden."""
        project, user = token.get("project"), token["user"]
        if project is None:
            raise Forbidden(
                "the token is of no project",
                remedy="Get one that is scoped to a project: name it in OS_PROJECT_NAME.",
                code="InvalidTenant",
            )
        domain = user["domain"]["name"]
        at = "" if domain == self._settings.user_domain else f"@{domain}"
        return Scoped(
            user["id"],
            writable(user["name"] + at),
            project["id"],
            project["name"],
            [role["name"] for role in token.get("roles", [])],
        )

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("Keystone is asked outside of its context")
        return self._session

    def _away(self, why: str) -> Unavailable:
        return Unavailable(
            f"Keystone cannot be asked: {why}",
            place="[auth.keystone] url",
            remedy="Try again soon; what is under way goes on meanwhile.",
            code="KeystoneUnavailable",
        )


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


def _tls(ca_file: str) -> ssl.SSLContext | bool:
    """Raises Unavailable."""
    if not ca_file:
        return True
    try:
        return ssl.create_default_context(cafile=ca_file)
    except OSError as error:
        raise Unavailable(
            f"cannot use the authority {ca_file}: {error.strerror or error}",
            place="[auth.keystone] ca_file",
            remedy="Name a file in PEM form that the server may read.",
        ) from error
