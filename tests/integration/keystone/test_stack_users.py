"""Users of Keystone for servers, in a domain of their own, with a real Keystone server."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import uuid4

import aiohttp
import pytest

from engine.types.http_client import ServiceError
from engine.types.openstack.cloud import Cloud, CloudAccess, StackDomain
from engine.types.openstack.keystone.stack_users import StackUser, StackUsers, project_name
from engine.types.openstack.services import IDENTITY
from hub.auth.keystone_client import KeystoneAccess, KeystoneClient
from hub.auth.keystone_cloud import KeystoneCloud
from hub.http.outbound import ALL_NETWORKS, Outbound, OutboundSettings
from tests.support.keystone import PASSWORD, Json, Keystone

ROLE = "heat_stack_user"


class NoUsers:
    """Tokens of users, of which these tests have none."""

    def exchange(self, credential: str) -> str:
        raise AssertionError("a user's token was used")

    async def renew(self, token: str) -> str | None:
        return None


async def new_domain(keystone: Keystone, password: str = PASSWORD) -> StackDomain:
    """A domain with an administrator, whom Keystone knows with the usual password."""
    domain = await keystone.domain(f"stacks-{uuid4().hex[:6]}")
    user = {"name": "stack-admin", "password": PASSWORD, "domain_id": domain}
    made = await keystone.admin("POST", "/users", {"user": user})
    roles = {one["name"]: one["id"] for one in (await keystone.admin("GET", "/roles"))["roles"]}
    if ROLE not in roles:
        await keystone.admin("POST", "/roles", {"role": {"name": ROLE}})
    path = f"/domains/{domain}/users/{made['user']['id']}/roles/{roles['admin']}"
    await keystone.admin("PUT", path)
    return StackDomain(domain, "stack-admin", password, ROLE)


@asynccontextmanager
async def connected(keystone: Keystone, domain: StackDomain) -> AsyncIterator[Cloud]:
    access = KeystoneAccess(keystone.url, "admin", PASSWORD, "admin", "Default", "Default", "", 30)
    web = Outbound(OutboundSettings(allow=ALL_NETWORKS, remedy=""))
    async with KeystoneClient(access) as client, web:
        yield Cloud(web, KeystoneCloud(client, NoUsers(), CloudAccess(stack_domain=domain)))


async def log_in(keystone: Keystone, user: StackUser) -> tuple[int, Json]:
    """As a server does, with the ID of the user, the password and the ID of the project."""
    password = {"user": {"id": user.id, "password": user.password}}
    scope = {"project": {"id": user.project_id}}
    body = {"auth": {"identity": {"methods": ["password"], "password": password}, "scope": scope}}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{keystone.url}/v3/auth/tokens", json=body) as response,
    ):
        return response.status, await response.json()


async def names(keystone: Keystone, domain: StackDomain) -> list[str]:
    """The names of the users and projects of the domain, without the administrator."""
    found = [
        one["name"]
        for what in ("users", "projects")
        for one in (await keystone.admin("GET", f"/{what}?domain_id={domain.id}"))[what]
    ]
    return [one for one in found if one != domain.username]


async def test_a_user_can_use_its_own_project_only_until_it_ends(keystone: Keystone) -> None:
    domain = await new_domain(keystone)
    async with connected(keystone, domain) as cloud:
        users, name = StackUsers(cloud, domain), project_name(uuid4(), uuid4())
        user = await users.create(name, "Hg-first", "a server")
        status, document = await log_in(keystone, user)
        assert status == 201, document
        assert [one["name"] for one in document["token"]["roles"]] == [ROLE]
        assert document["token"]["project"]["name"] == name
        assert await names(keystone, domain) == [name, name]
        again = await users.create(name, "Hg-second", "a server", suffix="2")
        assert again.id != user.id and again.project_id == user.project_id
        # A token that Keystone gives at once is valid: no password has changed.
        status, document = await log_in(keystone, again)
        assert status == 201
        await users.remove_users(name, keep=again.name)
        assert (await log_in(keystone, user))[0] == 401
        assert await users.has_project(name)
        await users.remove_users(name)
        assert (await log_in(keystone, again))[0] == 401
        assert await users.has_project(name), "a repeated call finds the project"
        await users.remove_project(name)
        assert await names(keystone, domain) == []
        assert not await users.has_project(name)


async def test_a_repeated_create_sets_the_password(keystone: Keystone) -> None:
    domain = await new_domain(keystone)
    async with connected(keystone, domain) as cloud:
        users, name = StackUsers(cloud, domain), project_name(uuid4(), uuid4())
        user = await users.create(name, "Hg-first", "a server")
        again = await users.create(name, "Hg-second", "a server")
        assert (again.id, again.project_id) == (user.id, user.project_id)
        assert (await log_in(keystone, user))[0] == 401
        assert (await log_in(keystone, again))[0] == 201


async def test_a_create_enables_a_user_that_was_disabled(keystone: Keystone) -> None:
    domain = await new_domain(keystone)
    async with connected(keystone, domain) as cloud:
        users, name = StackUsers(cloud, domain), project_name(uuid4(), uuid4())
        user = await users.create(name, "Hg-first", "a server")
        await keystone.admin("PATCH", f"/users/{user.id}", {"user": {"enabled": False}})
        assert (await log_in(keystone, user))[0] == 401
        again = await users.create(name, "Hg-second", "a server")
        assert (again.id, (await log_in(keystone, again))[0]) == (user.id, 201)


async def test_a_project_of_the_same_name_gets_a_token_of_its_own(keystone: Keystone) -> None:
    domain = await new_domain(keystone)
    async with connected(keystone, domain) as cloud, connected(keystone, domain) as other:
        users, name = StackUsers(cloud, domain), project_name(uuid4(), uuid4())
        for deletes in (cloud, other):  # this process, and another one
            await users.create(name, "Hg-first", "a server")
            before = await cloud.identity.stack_admin(name)
            elsewhere = StackUsers(deletes, domain)
            await elsewhere.remove_users(name)
            await elsewhere.remove_project(name)
            user = await users.create(name, "Hg-second", "a server")
            token = (await cloud.identity.stack_admin(name)).token
            assert token != before.token
            found = await keystone.admin("GET", "/auth/tokens", **{"X-Subject-Token": token})
            assert found["token"]["project"]["id"] == user.project_id


async def test_a_project_that_is_gone_is_named(keystone: Keystone) -> None:
    """Its administrator is as before, so the settings are correct."""
    domain = await new_domain(keystone)
    async with connected(keystone, domain) as cloud:
        users, name = StackUsers(cloud, domain), project_name(uuid4(), uuid4())
        await users.create(name, "Hg-first", "a server")
        await users.remove_users(name)
        await users.remove_project(name)
        session = cloud.stack_users_session("", name)
        with pytest.raises(ServiceError, match=f"no project {name}") as error:
            await session.request(IDENTITY, "GET", "/users", "read the users")
        assert not error.value.retry and "no project" in error.value.public
        assert "Keystone rejected" not in str(error.value)


async def test_the_administrator_acts_in_the_project_of_a_user(keystone: Keystone) -> None:
    """Its token is kept, and replaced when a service has refused it."""
    domain = await new_domain(keystone)
    async with connected(keystone, domain) as cloud:
        users, name = StackUsers(cloud, domain), project_name(uuid4(), uuid4())
        user = await users.create(name, "Hg-first", "a server")
        first = await cloud.identity.stack_admin(name)
        found = await keystone.admin("GET", "/auth/tokens", **{"X-Subject-Token": first.token})
        assert found["token"]["project"]["id"] == user.project_id
        assert await cloud.identity.stack_admin(name) == first
        await keystone.revoke(first.token)
        session = cloud.stack_users_session("", name)
        read = await session.request(IDENTITY, "GET", f"/users/{first.user_id}", "read the user")
        assert read["user"]["name"] == domain.username
        assert await cloud.identity.stack_admin(name) != first


async def test_an_interrupted_create_is_removed(keystone: Keystone) -> None:
    """A project without a user, in which the administrator has no role yet."""
    domain = await new_domain(keystone)
    async with connected(keystone, domain) as cloud:
        name = project_name(uuid4(), uuid4())
        await keystone.project(name, domain.id)
        users = StackUsers(cloud, domain)
        await users.remove_users(name)
        assert await users.has_project(name)
        assert (await cloud.identity.stack_admin(name)).token
        await users.remove_project(name)
        assert await names(keystone, domain) == []


async def test_settings_that_keystone_refuses_are_named(keystone: Keystone) -> None:
    domain = await new_domain(keystone, password="wrong")
    async with connected(keystone, domain) as cloud:
        with pytest.raises(ServiceError, match="rejected the administrator of the domain") as error:
            await StackUsers(cloud, domain).create("name", "Hg-first", "a server")
        assert error.value.retry and "wrong" not in str(error.value)
    domain = await new_domain(keystone)
    domain = StackDomain(domain.id, domain.username, domain.password, "no-such-role")
    async with connected(keystone, domain) as cloud:
        with pytest.raises(ServiceError, match="no role no-such-role"):
            await StackUsers(cloud, domain).create("name", "Hg-first", "a server")
        assert await names(keystone, domain) == []
