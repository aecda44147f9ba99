"""A Keystone of our own: the real one, on SQLite, in a folder that goes.

Its environment is `.keystone`, which `make tests` sets up from requirements/keystone.lock.
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

import aiohttp
from cryptography.fernet import Fernet

from tests.support.program import eventually, free_port

Json = Any
#: Seconds for one command of Keystone's: on a busy machine the first one takes more than a minute.
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
    """url: without ``/v3``. What is made is made by its admin."""

    def __init__(self, folder: Path) -> None:
        if not (ENVIRONMENT / "bin/keystone-manage").exists():
            raise FileNotFoundError(f"{ENVIRONMENT} is not there: `make tests` sets it up")
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._token = ""

    def prepare(self) -> None:
        """Takes some seconds: call it in a thread."""
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

    def _manage(self, *words: str) -> None:
        conf = str(self._folder / "keystone.conf")
        done = subprocess.run(
            [ENVIRONMENT / "bin/keystone-manage", "--config-file", conf, *words],
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
        await eventually(self._answers)
        self._token = await self.token("admin", "admin")

    async def _answers(self) -> bool:
        assert self._process is not None and self._process.poll() is None, self.log()
        try:
            await self._ask("GET", "", None, {})
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

    async def _ask(
        self, method: str, path: str, body: Json, headers: Mapping[str, str]
    ) -> tuple[Json, Mapping[str, str]]:
        """Document and headers. A session for each: tests have loops of their own."""
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
        """A token of a user, by password; project: its name. domain: of both, by name;
        project_domain: of the project, where that is another."""
        who = {"name": user, "domain": {"name": domain}, "password": PASSWORD}
        auth: Json = {"identity": {"methods": ["password"], "password": {"user": who}}}
        scope = {"project": {"name": project, "domain": {"name": project_domain or domain}}}
        auth["scope"] = scope if scoped else "unscoped"
        _, given = await self._ask("POST", "/auth/tokens", {"auth": auth}, {})
        return given["X-Subject-Token"]

    async def admin(self, method: str, path: str, body: Json = None, **headers: str) -> Json:
        """A request by the admin; path: behind ``/v3``."""
        said = {"X-Auth-Token": self._token, **headers}
        document, _ = await self._ask(method, path, body, said)
        return document

    async def revoke(self, token: str) -> None:
        await self.admin("DELETE", "/auth/tokens", **{"X-Subject-Token": token})

    async def domain(self, name: str) -> str:
        """The id of a new domain."""
        return str(
            (await self.admin("POST", "/domains", {"domain": {"name": name}}))["domain"]["id"]
        )

    async def project(self, name: str, domain: str = "default") -> Project:
        """domain: its id."""
        body = {"project": {"name": name, "domain_id": domain}}
        made = await self.admin("POST", "/projects", body)
        return Project(made["project"]["id"], name)

    async def user(
        self, name: str, project: Project, roles: Sequence[str], domain: str = "default"
    ) -> str:
        """The id of a user with roles in a project, by name; a role that is not there is made.
        domain: its id."""
        body = {"user": {"name": name, "password": PASSWORD, "domain_id": domain,
                         "default_project_id": project.id}}  # fmt: skip
        user = str((await self.admin("POST", "/users", body))["user"]["id"])
        there = (await self.admin("GET", "/roles"))["roles"]
        known = {one["name"]: one["id"] for one in there}
        for role in roles:
            if role not in known:
                made = await self.admin("POST", "/roles", {"role": {"name": role}})
                known[role] = made["role"]["id"]
            path = f"/projects/{project.id}/users/{user}/roles/{known[role]}"
            await self.admin("PUT", path)
        return user

    async def offer(self, url: str) -> None:
        """Put a Headgate at this URL into the catalogue, in the place of any other."""
        for one in (await self.admin("GET", "/services?type=orchestration"))["services"]:
            await self.admin("DELETE", f"/services/{one['id']}")
        service = {"service": {"type": "orchestration", "name": "heat"}}
        made = await self.admin("POST", "/services", service)
        endpoint = {"service_id": made["service"]["id"], "interface": "public",
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
