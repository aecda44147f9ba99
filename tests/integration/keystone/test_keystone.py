"""Tokens of a real Keystone server: authentication, roles, and revocation."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from engine.errors import Forbidden, Unavailable
from engine.store.access.trusts import NO_TRUST, TRUST
from engine.store.database import Database
from engine.store.encryption.secret_values import Keyring
from engine.types.contract import Call, Outcome, ResourceType, Wait
from hub.auth.keystone_client import KeystoneClient, unavailable
from hub.auth.passwords import PasswordHasher
from hub.auth.roles import Right
from hub.auth.trusts import Trusts
from hub.program.authenticator import keystone_access, open_authenticator
from hub.program.wiring import make_keyring
from hub.settings.settings import load_settings
from tests.support.agent import OUTPUTS, SERVER, collect_metadata
from tests.support.changes import thing
from tests.support.keys import KEYRING, key_file
from tests.support.keystone import PASSWORD, Keystone, Project
from tests.support.program import Json, Program, eventually, program, resource, template
from tests.support.scripted_type import Thing, World


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
async def run_with_keystone(
    url: str,
    keystone: Keystone,
    home: Project,
    *,
    types: Sequence[ResourceType] = (),
    more: Mapping[str, Any] | None = None,
) -> AsyncIterator[Program]:
    async with program(url, settings(keystone, home, **(more or {})), types=types) as run:
        run.project = home.id
        yield run


@pytest.fixture
async def run(database_url: str, keystone: Keystone, home: Project) -> AsyncIterator[Program]:
    async with run_with_keystone(database_url, keystone, home) as opened:
        yield opened


async def token(keystone: Keystone, home: Project, user: str) -> dict[str, str]:
    return {"X-Auth-Token": await keystone.token(name_in(home, user), home.name)}


RIGHTS = {
    "reader": {Right.READ},
    "member": {Right.READ, Right.WRITE, Right.REPORT, Right.ANSWER},
    "admin": set(Right) - {Right.NOTHING},
    "odd": set(),
}


async def test_roles_of_keystone_give_rights(
    run: Program, keystone: Keystone, home: Project
) -> None:
    for user, may in RIGHTS.items():
        headers = await token(keystone, home, user)
        status, response = await run.call("GET", "/session", headers=headers)
        if not may:  # a role with a similar name gives no rights
            assert (status, response["error"]["type"]) == (403, "Forbidden")
            continue
        assert (status, response["name"]) == (200, name_in(home, user))
        assert set(response["rights"]) == {right.value for right in may}
        assert not response["everywhere"]
    _, response = await run.call("GET", "/session", headers=await token(keystone, home, "dba"))
    assert "dba" in response["roles"]


async def test_a_token_is_valid_for_its_project_only(
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
    status, response = await run.call("GET", "/stacks/s", headers=eve)
    assert (status, response["error"]["type"]) == (403, "InvalidTenant")
    unscoped = {"X-Auth-Token": await keystone.token(name_in(home, "member"), "", scoped=False)}
    status, response = await run.call("GET", "/stacks", headers=unscoped)
    assert (status, response["error"]["type"]) == (403, "InvalidTenant")
    assert "not scoped to a project" in response["error"]["message"]
    run.project = other.id
    status, response = await run.call("GET", "/stacks/s", headers=eve)
    assert (status, response["error"]["type"]) == (404, "EntityNotFound")


async def test_requests_without_a_keystone_token_are_refused(run: Program) -> None:
    for headers in ({}, {"X-Auth-Token": "x"}, {"X-Auth-Token": "gAAAAA" + "b" * 200},
                    {"Authorization": "Basic YTpi"}):  # fmt: skip
        async with run.session.get(
            f"{run.url}/v1/{run.project}/stacks", headers=headers
        ) as response:
            assert response.status == 401, headers
            assert response.headers["WWW-Authenticate"].startswith("Keystone uri=")
            assert "openstack token issue" in (await response.json())["error"]["message"]


async def test_a_revoked_token_is_refused_after_a_bounded_time(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    async with run_with_keystone(database_url, keystone, home, more={"cache_ttl": "1s"}) as run:
        headers = await token(keystone, home, "member")
        assert (await run.call("GET", "/stacks", headers=headers))[0] == 200
        await keystone.revoke(headers["X-Auth-Token"])

        async def is_refused() -> bool:
            return (await run.call("GET", "/stacks", headers=headers))[0] == 401

        await eventually(is_refused)


async def test_operators_of_the_configured_project_see_every_project(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    named = {"keystone.operator_project": home.name}
    async with run_with_keystone(database_url, keystone, home, more=named) as run:
        run.project = uuid4().hex
        admin, member = [await token(keystone, home, user) for user in ("admin", "member")]
        _, response = await run.call("GET", "/session", headers=admin)
        assert response["everywhere"]
        assert (await run.call("GET", "/session", headers=member))[0] == 403


async def test_during_an_outage_of_keystone_new_tokens_get_503(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    async with run_with_keystone(database_url, keystone, home, more={"cache_ttl": "1h"}) as run:
        known, new = [await token(keystone, home, user) for user in ("member", "reader")]
        assert (await run.call("GET", "/stacks", headers=known))[0] == 200
        keystone.stop()
        try:
            assert (await run.call("GET", "/stacks", headers=known))[0] == 200
            status, response = await run.call("GET", "/stacks", headers=new)
            assert (status, response["error"]["type"]) == (503, "KeystoneUnavailable")
        finally:
            await keystone.start()
        assert (await run.call("GET", "/stacks", headers=new))[0] == 200


async def test_the_servers_own_token_is_renewed_when_it_is_revoked(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    async with run_with_keystone(database_url, keystone, home) as run:
        first, second = [await token(keystone, home, user) for user in ("member", "reader")]
        assert (await run.call("GET", "/stacks", headers=first))[0] == 200
        users = await keystone.admin("GET", f"/users?name={name_in(home, 'headgate')}")
        [user] = users["users"]
        # A changed password revokes all tokens of the user. Changing it back restores the
        # configuration.
        for password in ("another password", PASSWORD):
            await keystone.admin("PATCH", f"/users/{user['id']}", {"user": {"password": password}})

        async def is_accepted() -> (
            bool
        ):  # Keystone also revokes the tokens that it issued in the same second
            return (await run.call("GET", "/stacks", headers=second))[0] == 200

        await eventually(is_accepted)


async def test_a_wrong_password_of_the_server_is_reported_without_the_password(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    invalid = {"keystone.password": "not the password"}
    async with run_with_keystone(database_url, keystone, home, more=invalid) as run:
        status, response = await run.call(
            "GET", "/stacks", headers=await token(keystone, home, "member")
        )
        assert status == 503
        assert "rejected the service user's credentials with 401" in response["error"]["message"]
        assert "not the password" not in str(response)


async def test_a_change_uses_a_trust_after_the_token_is_revoked(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    world, trusts = World(), {"keystone.trusts": True}
    async with run_with_keystone(
        database_url, keystone, home, types=[Thing(world)], more=trusts
    ) as run:
        member = await token(keystone, home, "member")
        breakpoints = {"hooks": [{"at": "b", "on": ["pre-create"]}]}
        sent = {"stack_name": "s", "environment": breakpoints,
                "template": template({"a": thing(1), "b": thing(2, depends_on="a")})}  # fmt: skip
        status, response = await run.call("POST", "/stacks", sent, headers=member)
        assert status == 201, response
        admin = await token(keystone, home, "admin")
        [hook] = await eventually(lambda: waiting(run, admin))
        # Another user answers; the requester's token is revoked by then.
        await keystone.revoke(member["X-Auth-Token"])
        path = f"/hooks/{hook['id']}/signal"
        assert (await run.call("POST", path, {"decision": "continue"}, headers=admin))[0] == 200
        await eventually(lambda: complete(run, admin))
        users = []
        for call in world.calls:
            assert (
                not call.credential.startswith(TRUST) and call.credential != member["X-Auth-Token"]
            )
            judged = await keystone.admin(
                "GET", "/auth/tokens", **{"X-Subject-Token": call.credential}
            )
            assert judged["token"]["project"]["id"] == home.id
            assert "OS-TRUST:trust" in judged["token"]
            users.append(judged["token"]["user"]["name"])
        assert users == [name_in(home, "member"), name_in(home, "admin")]


async def test_the_changes_of_a_user_share_one_trust(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    world, trusts = World(), {"keystone.trusts": True}
    async with run_with_keystone(
        database_url, keystone, home, types=[Thing(world)], more=trusts
    ) as run:
        user = await keystone.user(name_in(home, "busy"), home, ["member"])
        headers: dict[str, str] = {}
        for number in range(3):
            headers = await token(keystone, home, "busy")
            sent = {"stack_name": f"s{number}", "template": template({"a": thing(1)})}
            assert (await run.call("POST", "/stacks", sent, headers=headers))[0] == 201
        await eventually(lambda: until_called(world, 3))
        found = await keystone.admin("GET", f"/OS-TRUST/trusts?trustor_user_id={user}")
        assert len(found["trusts"]) == 1
        forged = headers | {"X-Headgate-Credential": TRUST + found["trusts"][0]["id"]}
        status, response = await run.call("GET", "/session", headers=forged)
        assert (status, response["error"]["place"]) == (403, "X-Headgate-Credential")


async def test_a_trust_is_deleted_when_no_change_uses_it(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    busy = Busy(World())
    async with run_with_keystone(
        database_url, keystone, home, types=[busy], more={"keystone.trusts": True}
    ) as run:
        user = await keystone.user(name_in(home, "leaving"), home, ["member"])
        headers = await token(keystone, home, "leaving")
        sent = {"stack_name": "s", "template": template({"a": thing(1)})}
        assert (await run.call("POST", "/stacks", sent, headers=headers))[0] == 201
        assert await delete_unused(run, keystone, home) == 0  # its time has not come
        [trust] = await trusts_of(keystone, user)
        async with run.database.connection() as conn:
            assert trust["id"] not in str(await conn.fetch("select t::text from trust t"))
            await conn.execute("update trust set due_at = statement_timestamp()")
        assert await delete_unused(run, keystone, home) == 0  # the change may need it
        assert await trusts_of(keystone, user) == [trust]
        busy.ready = True
        await eventually(lambda: without_credentials(run))
        assert await delete_unused(run, keystone, home) == 1
        assert await trusts_of(keystone, user) == []
        assert await delete_unused(run, keystone, home) == 0


async def test_a_trust_of_a_disabled_user_is_deleted(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    async with run_with_keystone(
        database_url, keystone, home, types=[Thing(World())], more={"keystone.trusts": True}
    ) as run:
        user = await keystone.user(name_in(home, "disabled"), home, ["member"])
        headers = await token(keystone, home, "disabled")
        sent = {"stack_name": "s", "template": template({"a": thing(1)})}
        assert (await run.call("POST", "/stacks", sent, headers=headers))[0] == 201
        await eventually(lambda: without_credentials(run))
        async with run.database.connection() as conn:
            await conn.execute("update trust set due_at = statement_timestamp()")
        await keystone.admin("PATCH", f"/users/{user}", {"user": {"enabled": False}})
        assert await delete_unused(run, keystone, home) == 1
        assert await trusts_of(keystone, user) == []


async def test_no_trust_is_deleted_that_a_credential_of_an_earlier_release_may_use(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    """Releases before 0.2.0 stored credentials without the ID of their trust."""
    async with run_with_keystone(
        database_url, keystone, home, types=[Thing(World())], more={"keystone.trusts": True}
    ) as run:
        user = await keystone.user(name_in(home, "upgraded"), home, ["member"])
        headers = await token(keystone, home, "upgraded")
        sent = {"stack_name": "s", "template": template({"a": thing(1)})}
        assert (await run.call("POST", "/stacks", sent, headers=headers))[0] == 201
        await eventually(lambda: without_credentials(run))
        async with run.database.connection() as conn:
            await conn.execute("update trust set due_at = statement_timestamp()")
            await conn.execute(PREVIOUS_CREDENTIAL)
            assert await delete_unused(run, keystone, home) == 0
            assert len(await trusts_of(keystone, user)) == 1
            await conn.execute("update credential set trust = $1", NO_TRUST)
        assert await delete_unused(run, keystone, home) == 1
        assert await trusts_of(keystone, user) == []


PREVIOUS_CREDENTIAL = """
insert into credential (stack_id, traversal, encrypted) select stack_id, number, '' from traversal
"""


async def test_a_trust_that_cannot_be_deleted_is_kept_and_others_are_deleted(
    database: Database, keystone: Keystone, home: Project
) -> None:
    loaded = load_settings(None, settings(keystone, home), environment={})
    async with FailingClient(keystone_access(loaded.auth)) as client:
        trusts, other = (
            Trusts(client, database, one, lambda: datetime.now(UTC))
            for one in (KEYRING, Keyring(b"o" * 32, random_bytes=os.urandom))
        )
        users = {}
        for name, by in (("failing", trusts), ("unreadable", other), ("deletable", trusts)):
            users[name] = await keystone.user(name_in(home, name), home, ["member"])
            one = (await token(keystone, home, name))["X-Auth-Token"]
            credential = await by.get(one, await client.verify(one))
            assert credential is not None
            client.fails = client.fails or credential.removeprefix(TRUST)
            await database.pool.execute("update trust set due_at = now() where due_at > now()")
        assert await trusts.delete_unused() == 1
        left = {name for name, user in users.items() if await trusts_of(keystone, user)}
        assert left == {"failing", "unreadable"}
        assert await database.pool.fetchval("select count(*) from trust") == 2
        await database.pool.execute("update trust set due_at = now()")
        with pytest.raises(Unavailable, match="503"):
            await trusts.delete_unused()
        client.fails = ""
        await database.pool.execute("update trust set due_at = now()")
        assert await trusts.delete_unused() == 1
        assert await other.delete_unused() == 0  # it is taken again later
        await database.pool.execute("update trust set due_at = now()")
        assert await other.delete_unused() == 1


class FailingClient(KeystoneClient):
    """The request to delete the trust `fails` has an error of Keystone."""

    fails = ""

    async def delete_trust(self, trust: str, token: str | None) -> None:
        if trust == self.fails:
            raise unavailable("it responded with 503")
        await super().delete_trust(trust, token)


async def test_concurrent_requests_of_a_user_share_one_trust(
    database: Database, keystone: Keystone, home: Project
) -> None:
    loaded = load_settings(None, settings(keystone, home), environment={})
    user = await keystone.user(name_in(home, "parallel"), home, ["member"])
    one = (await token(keystone, home, "parallel"))["X-Auth-Token"]
    async with KeystoneClient(keystone_access(loaded.auth)) as client:
        trusts = Trusts(client, database, KEYRING, lambda: datetime.now(UTC))
        of = await client.verify(one)
        cancelled, *others = [asyncio.ensure_future(trusts.get(one, of)) for _ in range(4)]
        await asyncio.sleep(0)
        cancelled.cancel()
        assert len(set(await asyncio.gather(*others))) == 1
        assert cancelled.cancelled()
    assert len(await trusts_of(keystone, user)) == 1
    assert await database.pool.fetchval("select count(*) from trust") == 1


async def test_a_trust_that_keystone_refuses_is_replaced_at_the_next_request(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    async with run_with_keystone(
        database_url, keystone, home, types=[Thing(World())], more={"keystone.trusts": True}
    ) as run:
        user = await keystone.user(name_in(home, "tidy"), home, ["member"])
        headers = await token(keystone, home, "tidy")
        breakpoints = {"hooks": [{"at": "a", "on": ["pre-create"]}]}
        sent = {"stack_name": "s", "environment": breakpoints,
                "template": template({"a": thing(1)})}  # fmt: skip
        assert (await run.call("POST", "/stacks", sent, headers=headers))[0] == 201
        [hook] = await eventually(lambda: waiting(run, headers))
        [trust] = await trusts_of(keystone, user)
        await keystone.admin("DELETE", f"/OS-TRUST/trusts/{trust['id']}")
        path = f"/hooks/{hook['id']}/signal"
        assert (await run.call("POST", path, {"decision": "continue"}, headers=headers))[0] == 200
        await eventually(lambda: has_status(run, headers, "CREATE_FAILED"))
        update = {"template": template({"a": thing(2)})}
        path = await stack_path(run, headers)
        assert (await run.call("PUT", path, update, headers=headers))[0] == 202
        await eventually(lambda: has_status(run, headers, "UPDATE_COMPLETE"))
        assert len(await trusts_of(keystone, user)) == 1


class Busy(Thing):
    """Its creates are complete when `ready` is set."""

    ready = False

    def create(self, call: Call) -> Outcome:
        if not self.ready:
            return Wait(call.now + timedelta(seconds=0.1), {}, "busy")
        return super().create(call)


async def delete_unused(run: Program, keystone: Keystone, home: Project) -> int:
    """Delete unused trusts, as another process of the installation does."""
    values = {
        **settings(keystone, home, **{"keystone.trusts": True}),
        "credentials.key_file": str(key_file()),
    }
    loaded = load_settings(None, values, environment={})
    hasher = PasswordHasher(at_once=1)
    async with open_authenticator(
        loaded.auth, run.database, hasher, make_keyring(loaded)
    ) as authenticator:
        return await authenticator.delete_unused()


async def trusts_of(keystone: Keystone, user: str) -> list[Json]:
    found = await keystone.admin("GET", f"/OS-TRUST/trusts?trustor_user_id={user}")
    return list(found["trusts"])


async def stack_path(run: Program, headers: Mapping[str, str]) -> str:
    _, found = await run.call("GET", "/stacks/s", headers=headers)
    return f"/stacks/s/{found['stack']['id']}"


async def without_credentials(run: Program) -> bool:
    async with run.database.connection() as conn:
        return not await conn.fetchval("select exists (select from credential)")


async def has_status(run: Program, headers: Mapping[str, str], status: str) -> bool:
    _, response = await run.call("GET", "/stacks/s", headers=headers)
    return bool(response["stack"]["stack_status"] == status)


async def test_a_deleted_trust_fails_the_change_with_a_remedy(
    keystone: Keystone, home: Project
) -> None:
    loaded = load_settings(None, settings(keystone, home), environment={})
    async with KeystoneClient(keystone_access(loaded.auth)) as client:
        with pytest.raises(Forbidden, match="with a token of your own") as refused:
            await client.token_by_trust(uuid4().hex)
        assert refused.value.code == "TrustRefused"


async def waiting(run: Program, headers: Mapping[str, str]) -> Json:
    _, response = await run.call("GET", "/hooks?state=waiting", headers=headers)
    return response["hooks"]


async def complete(run: Program, headers: Mapping[str, str]) -> bool:
    _, response = await run.call("GET", "/stacks/s", headers=headers)
    return bool(response["stack"]["stack_status"] == "CREATE_COMPLETE")


async def until_called(world: World, times: int) -> bool:
    return len(world.calls) == times


async def test_the_agent_authenticates_at_keystone_first(
    run: Program, keystone: Keystone, home: Project, tmp_path: Path
) -> None:
    """The real os-collect-config, with POLL_SERVER_HEAT and an account from the user."""
    await keystone.register(run.url)
    headers = await token(keystone, home, "member")
    agent = await keystone.user(f"agent-{uuid4().hex[:6]}", home, ["member"])
    server = {**SERVER, "properties": {"software_config_transport": "POLL_SERVER_HEAT"}}
    sent = {
        "stack_name": "s",
        "template": template({"server": server}, outputs=OUTPUTS),
    }
    status, answer = await run.call("POST", "/stacks", sent, headers=headers)
    assert status == 201, answer
    path = f"/stacks/s/{answer['stack']['id']}/outputs/agent"

    async def agent_metadata() -> Json:
        _, response = await run.call("GET", path, headers=headers)
        return response["output"]["output_value"]

    settings = (await eventually(agent_metadata))["heat"] | {"user_id": agent, "password": PASSWORD}
    collected = await collect_metadata("heat", settings, tmp_path)
    assert collected["heat"]["role"] == "web"
    assert collected["heat"]["deployments"] == []
