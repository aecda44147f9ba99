"""A private Keystone server, on SQLite in a temporary folder.

Its virtual environment is `.keystone`, which `make tests` creates from requirements/keystone.lock.
"""

import asyncio
import json
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
from cryptography.fernet import Fernet

from tests.support.ports import free_port
from tests.support.program import eventually

Json = Any
#: The longest time, in seconds, of a Keystone command: the first one can take more than a minute.
PATIENCE = 240.0
ENVIRONMENT = Path(__file__).parents[2] / ".keystone"
SERVER = Path(__file__).with_name("keystone_server.py")
PASSWORD = "a password of tests"
SETTINGS = """
[DEFAULT]
use_stderr = true
[database]
connection = sqlite:///{folder}/keystone.db
[fernet_tokens]
key_repository = {folder}/keys
[fernet_receipts]
key_repository = {folder}/keys
[identity]
password_hash_rounds = 4
[credential]
key_repository = {folder}/keys
[oslo_policy]
enforce_scope = false
"""


@dataclass(frozen=True, slots=True)
class Project:
    id: str
    name: str


class Keystone:
    """url: without ``/v3``. The admin creates all objects."""

    def __init__(self, folder: Path) -> None:
        if not (ENVIRONMENT / "bin/keystone-manage").exists():
            raise FileNotFoundError(f"{ENVIRONMENT} is not there: `make tests` sets it up")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._token = ""

    def prepare(self) -> None:
        """Blocks for some seconds: call it in a thread."""
        keys = self._folder / "keys"
        keys.mkdir(mode=0o700)
        for number in range(2):
            (keys / str(number)).write_bytes(Fernet.generate_key())
        (self._folder / "keystone.conf").write_text(SETTINGS.format(folder=self._folder))
        self._manage("db_sync")
        self._manage(
            "bootstrap", "--bootstrap-password", PASSWORD, "--bootstrap-region-id", "RegionOne",
            *(f"--bootstrap-{kind}-url={self.url}/v3" for kind in ("public", "internal", "admin")),
        )  # fmt: skip

    def _manage(self, *arguments: str) -> None:
        conf = str(self._folder / "keystone.conf")
        done = subprocess.run(
            [ENVIRONMENT / "bin/keystone-manage", "--config-file", conf, *arguments],
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]

    async def start(self) -> None:
        command = [
            str(ENVIRONMENT / "bin/python"),
            "-I",
            str(SERVER),
            str(self._folder),
            str(self.port),
        ]
        with (self._folder / "keystone.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        await eventually(self._is_ready)
        self._token = await self.token("admin", "admin")

    async def _is_ready(self) -> bool:
        assert self._process is not None and self._process.poll() is None, self.log()
        try:
            await self._request("GET", "", None, {})
        except aiohttp.ClientError:
            return False
        return True

    def log(self) -> str:
        return (self._folder / "keystone.log").read_text()[-3000:]

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    async def _request(
        self, method: str, path: str, body: Json, headers: Mapping[str, str]
    ) -> tuple[Json, Mapping[str, str]]:
        """Document and headers. Uses a session per request, because each test has its own event
        loop.
        """
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, f"{self.url}/v3{path}", json=body, headers=headers) as answer,
        ):
            text = await answer.text()
            assert answer.status < 300, text
            return json.loads(text) if text else None, answer.headers

    async def token(
        self,
        user: str,
        project: str,
        *,
        scoped: bool = True,
        domain: str = "Default",
        project_domain: str = "",
    ) -> str:
        """A token of a user, by password. project, domain, project_domain: names. domain: of the
        user, and of the project unless `project_domain` is given.
        """
        user_identity = {"name": user, "domain": {"name": domain}, "password": PASSWORD}
        auth: Json = {"identity": {"methods": ["password"], "password": {"user": user_identity}}}
        scope = {"project": {"name": project, "domain": {"name": project_domain or domain}}}
        auth["scope"] = scope if scoped else "unscoped"
        _, answer = await self._request("POST", "/auth/tokens", {"auth": auth}, {})
        return answer["X-Subject-Token"]

    async def admin(self, method: str, path: str, body: Json = None, **headers: str) -> Json:
        """A request by the admin. path: after ``/v3``."""
        sent_headers = {"X-Auth-Token": self._token, **headers}
        document, _ = await self._request(method, path, body, sent_headers)
        return document

    async def revoke(self, token: str) -> None:
        await self.admin("DELETE", "/auth/tokens", **{"X-Subject-Token": token})

    async def domain(self, name: str) -> str:
        """The ID of a new domain."""
        return str(
            (await self.admin("POST", "/domains", {"domain": {"name": name}}))["domain"]["id"]
        )

    async def project(self, name: str, domain: str = "default") -> Project:
        """domain: its ID."""
        body = {"project": {"name": name, "domain_id": domain}}
        response = await self.admin("POST", "/projects", body)
        return Project(response["project"]["id"], name)

    async def user(
        self, name: str, project: Project, roles: Sequence[str], domain: str = "default"
    ) -> str:
        """The ID of a new user with roles in a project; creates roles that do not exist. domain:
        its ID.
        """
        body = {"user": {"name": name, "password": PASSWORD, "domain_id": domain,
                         "default_project_id": project.id}}  # fmt: skip
        user = str((await self.admin("POST", "/users", body))["user"]["id"])
        roles_response = (await self.admin("GET", "/roles"))["roles"]
        known = {one["name"]: one["id"] for one in roles_response}
        for role in roles:
            if role not in known:
                response = await self.admin("POST", "/roles", {"role": {"name": role}})
                known[role] = response["role"]["id"]
            path = f"/projects/{project.id}/users/{user}/roles/{known[role]}"
            await self.admin("PUT", path)
        return user

    async def application_credential(
        self, user: str, project: Project, **fields: Json
    ) -> tuple[str, str]:
        """The ID and the secret of a new application credential. user: a name. fields: of the
        request, such as `roles`.
        """
        token = await self.token(user, project.name)
        headers = {"X-Auth-Token": token}
        found, _ = await self._request("GET", "/auth/tokens", None,
                                       headers | {"X-Subject-Token": token})  # fmt: skip
        path = f"/users/{found['token']['user']['id']}/application_credentials"
        body = {"application_credential": {"name": uuid4().hex, **fields}}
        made = (await self._request("POST", path, body, headers))[0]["application_credential"]
        return made["id"], made["secret"]

    async def delete_application_credential(self, user_id: str, credential_id: str) -> None:
        path = f"/users/{user_id}/application_credentials/{credential_id}"
        await self.admin("DELETE", path)

    async def register(self, url: str) -> None:
        """Register a Headgate at this URL as the only orchestration service in the catalog."""
        for one in (await self.admin("GET", "/services?type=orchestration"))["services"]:
            await self.admin("DELETE", f"/services/{one['id']}")
        service = {"service": {"type": "orchestration", "name": "heat"}}
        response = await self.admin("POST", "/services", service)
        endpoint = {"service_id": response["service"]["id"], "interface": "public",
                    "region_id": "RegionOne", "url": f"{url}/v1/%(tenant_id)s"}  # fmt: skip
        await self.admin("POST", "/endpoints", {"endpoint": endpoint})


@asynccontextmanager
async def running_keystone() -> AsyncIterator[Keystone]:
    with tempfile.TemporaryDirectory(prefix="headgate-keystone-") as name:
        keystone = Keystone(Path(name))
        try:
            await asyncio.to_thread(keystone.prepare)
            await keystone.start()
            yield keystone
        finally:
            keystone.stop()
