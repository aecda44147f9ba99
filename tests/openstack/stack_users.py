"""A domain of Keystone for the users of servers, and servers that use Zaqar as such users."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from keystoneauth1.exceptions.http import NotFound, Unauthorized
from keystoneauth1.identity.v3 import Password
from keystoneauth1.session import Session

from tests.openstack.cloud import OpenStack, Project, identity_of
from tests.openstack.headgate import connected_headgate
from tests.openstack.stacks import SETTINGS
from tests.support.program import Program

Json = Any
ROLE = "heat_stack_user"
HEADERS = {"Client-ID": "0f0b5d7c-36a3-4d31-9f2f-3a6a8c1d2e4b"}


class StackDomain:
    """A domain for the users of servers, with its administrator."""

    def __init__(self, openstack: OpenStack, directory: Path) -> None:
        api = identity_of(openstack.admin)
        self._api = api
        self.username, password = "stack-users-admin", secrets.token_hex(8)
        self.id: str = api.create_domain(name=f"stacks-{secrets.token_hex(4)}").id
        admin = api.create_user(name=self.username, password=password, domain_id=self.id)
        roles = {one.name: one for one in api.roles()}
        if ROLE not in roles:
            api.create_role(name=ROLE)
        api.assign_domain_role_to_user(self.id, admin, roles["admin"])
        (file := directory / "stack-users-password").write_text(password)
        section = "resource_types.openstack.stack_users"
        self.settings = {
            f"{section}.domain_id": self.id,
            f"{section}.username": self.username,
            f"{section}.password_file": str(file),
        }

    async def names(self) -> list[str]:
        """The names of its users and projects, without the administrator."""
        return await asyncio.to_thread(self._names)

    def _names(self) -> list[str]:
        found = [one.name for one in self._api.users(domain_id=self.id)]
        found += [one.name for one in self._api.projects(domain_id=self.id)]
        return [one for one in found if one != self.username]

    def close(self) -> None:
        left = self._names()
        self._api.update_domain(self.id, is_enabled=False)
        self._api.delete_domain(self.id)
        assert left == [], "something is left in the domain of stack users"


@pytest.fixture
def domain(openstack: OpenStack, tmp_path: Path) -> Iterator[StackDomain]:
    """A new domain. The test fails if Headgate leaves something behind in it."""
    made = StackDomain(openstack, tmp_path)
    yield made
    made.close()


@pytest_asyncio.fixture
async def run(
    database_url: str, openstack: OpenStack, project: Project, domain: StackDomain
) -> AsyncIterator[Program]:
    settings = {**SETTINGS, **domain.settings}
    async with connected_headgate(database_url, openstack, project, settings=settings) as program:
        yield program


class Agent:
    """A server, with nothing but the credentials that it was given."""

    def __init__(self, given: Mapping[str, Json]) -> None:
        self.given = given
        auth = Password(
            given["auth_url"], user_id=given["user_id"], password=given["password"],
            project_id=given["project_id"],
        )  # fmt: skip
        self._session = Session(auth)

    async def request(self, method: str, path: str, body: Json = None) -> Json:
        """The document of a response from Zaqar. Raises what keystoneauth raises."""
        return await asyncio.to_thread(self._request, method, path, body)

    def _request(self, method: str, path: str, body: Json) -> Json:
        region = self.given.get("region_name")
        root = self._session.get_endpoint(service_type="messaging", region_name=region)
        response = self._session.request(f"{root}/v2{path}", method, json=body, headers=HEADERS)
        return response.json() if response.content else None

    async def post(self, *bodies: Json, ttl: int = 600) -> None:
        """As heat-config-notify does, with version 2 of the API."""
        messages = [{"body": body, "ttl": ttl} for body in bodies]
        path = f"/queues/{self.given['queue_id']}/messages"
        await self.request("POST", path, {"messages": messages})

    async def is_refused(self) -> bool:
        """Whether Keystone accepts the credentials no more."""
        try:
            await asyncio.to_thread(self._session.invalidate)
            await asyncio.to_thread(self._session.get_token)
        except (Unauthorized, NotFound):
            return True
        return False

    async def queues(self) -> list[str]:
        return [one["name"] for one in (await self.request("GET", "/queues"))["queues"]]
