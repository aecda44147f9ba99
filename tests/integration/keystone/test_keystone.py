"""Tokens of a real Keystone: who gets in, as what, and for how long after they are revoked."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from hub.auth.roles import Right
from tests.support.keystone import PASSWORD, Keystone, Project
from tests.support.program import Program, eventually, program, resource, template


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def home(keystone: Keystone) -> Project:
    """A project with a user of each kind, named as its roles."""
    project = await keystone.project(f"home-{uuid4().hex[:6]}")
    for user, roles in USERS.items():
        await keystone.user(name_in(project, user), project, roles)
    service = await keystone.project(f"service-{project.name}")
    await keystone.user(name_in(project, "headgate"), service, ["admin"])
    return project


USERS = {"reader": ["reader"], "member": ["member"], "admin": ["admin"], "dba": ["member", "dba"],
         "odd": ["operator"]}  # fmt: skip


def name_in(project: Project, user: str) -> str:
    return f"{user}-{project.name}"


def settings(keystone: Keystone, home: Project, **more: Any) -> dict[str, Any]:
    return {
        "auth.mode": "keystone",
        "auth.keystone.url": keystone.url,
        "auth.keystone.username": name_in(home, "headgate"),
        "auth.keystone.password": PASSWORD,
        "auth.keystone.project": f"service-{home.name}",
        **{f"auth.{name}": value for name, value in more.items()},
    }


@asynccontextmanager
async def guarded(
    url: str, keystone: Keystone, home: Project, **more: Any
) -> AsyncIterator[Program]:
    async with program(url, settings(keystone, home, **more)) as run:
        run.project = home.id
        yield run


@pytest.fixture
async def run(database_url: str, keystone: Keystone, home: Project) -> AsyncIterator[Program]:
    async with guarded(database_url, keystone, home) as made:
        yield made


async def token(keystone: Keystone, home: Project, user: str) -> dict[str, str]:
    return {"X-Auth-Token": await keystone.token(name_in(home, user), home.name)}


MAY = {
    "reader": {Right.READ},
    "member": {Right.READ, Right.WRITE, Right.ANSWER},
    "admin": set(Right) - {Right.NOTHING},
    "odd": set(),
}


async def test_roles_of_keystone_give_ours(run: Program, keystone: Keystone, home: Project) -> None:
    for user, may in MAY.items():
        headers = await token(keystone, home, user)
        status, said = await run.call("GET", "/session", headers=headers)
        if not may:  # a role that only sounds like one of ours gives nothing
            assert (status, said["error"]["type"]) == (403, "Forbidden")
            continue
        assert (status, said["name"]) == (200, name_in(home, user))
        assert set(said["rights"]) == {right.value for right in may}
        assert not said["everywhere"]
    _, said = await run.call("GET", "/session", headers=await token(keystone, home, "dba"))
    assert "dba" in said["roles"]


async def test_a_token_is_of_its_project_alone(
    run: Program, keystone: Keystone, home: Project
) -> None:
    member = await token(keystone, home, "member")
    status, _ = await run.call(
        "POST", "/stacks", {"stack_name": "s", "template": template({"a": resource()})},
        headers=member,
    )  # fmt: skip
    assert status == 201
    other = await keystone.project(f"other-{uuid4().hex[:6]}")
    await keystone.user(name_in(other, "eve"), other, ["admin", "member"])
    eve = await token(keystone, other, "eve")
    status, said = await run.call("GET", "/stacks/s", headers=eve)
    assert (status, said["error"]["type"]) == (403, "InvalidTenant")
    unscoped = {"X-Auth-Token": await keystone.token(name_in(home, "member"), "", scoped=False)}
    status, said = await run.call("GET", "/stacks", headers=unscoped)
    assert (status, said["error"]["type"]) == (403, "InvalidTenant")
    assert "of no project" in said["error"]["message"]
    run.project = other.id
    status, said = await run.call("GET", "/stacks/s", headers=eve)
    assert (status, said["error"]["type"]) == (404, "EntityNotFound")


async def test_who_brings_no_token_of_keystone(run: Program) -> None:
    for headers in ({}, {"X-Auth-Token": "x"}, {"X-Auth-Token": "gAAAAA" + "b" * 200},
                    {"Authorization": "Basic YTpi"}):  # fmt: skip
        async with run.session.get(f"{run.url}/v1/{run.project}/stacks", headers=headers) as said:
            assert said.status == 401, headers
            assert said.headers["WWW-Authenticate"].startswith("Keystone uri=")
            assert "openstack token issue" in (await said.json())["error"]["message"]


async def test_a_revoked_token_is_out_after_a_bounded_time(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    async with guarded(database_url, keystone, home, remembered="1s") as run:
        headers = await token(keystone, home, "member")
        assert (await run.call("GET", "/stacks", headers=headers))[0] == 200
        await keystone.revoke(headers["X-Auth-Token"])

        async def out() -> bool:
            return (await run.call("GET", "/stacks", headers=headers))[0] == 401

        await eventually(out)


async def test_operators_of_the_named_project_see_every_project(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    named = {"keystone.operator_project": home.name}
    async with guarded(database_url, keystone, home, **named) as run:
        run.project = uuid4().hex
        admin, member = [await token(keystone, home, user) for user in ("admin", "member")]
        _, said = await run.call("GET", "/session", headers=admin)
        assert said["everywhere"]
        assert (await run.call("GET", "/session", headers=member))[0] == 403


async def test_while_keystone_is_away_nobody_new_gets_in_and_it_is_said(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    async with guarded(database_url, keystone, home, remembered="1h") as run:
        known, new = [await token(keystone, home, user) for user in ("member", "reader")]
        assert (await run.call("GET", "/stacks", headers=known))[0] == 200
        keystone.stop()
        try:
            assert (await run.call("GET", "/stacks", headers=known))[0] == 200
            status, said = await run.call("GET", "/stacks", headers=new)
            assert (status, said["error"]["type"]) == (503, "KeystoneUnavailable")
        finally:
            await keystone.start()
        assert (await run.call("GET", "/stacks", headers=new))[0] == 200


async def test_our_own_token_is_renewed_when_it_holds_no_longer(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    async with guarded(database_url, keystone, home) as run:
        first, second = [await token(keystone, home, user) for user in ("member", "reader")]
        assert (await run.call("GET", "/stacks", headers=first))[0] == 200
        users = await keystone.admin("GET", f"/users?name={name_in(home, 'headgate')}")
        [user] = users["users"]
        # A changed password revokes all of the user's tokens; it may be changed to what it was.
        for password in ("another password", PASSWORD):
            await keystone.admin("PATCH", f"/users/{user['id']}", {"user": {"password": password}})
        assert (await run.call("GET", "/stacks", headers=second))[0] == 200


async def test_a_wrong_password_of_our_own_is_told_without_it(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    wrong = {"keystone.password": "not the password"}
    async with guarded(database_url, keystone, home, **wrong) as run:
        status, said = await run.call(
            "GET", "/stacks", headers=await token(keystone, home, "member")
        )
        assert status == 503
        assert "refused our own name and password with 401" in said["error"]["message"]
        assert "not the password" not in str(said)
