"""Repairs of drift act with the credential that the owner of the project has handed over for them,
with a real Keystone server."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest

from engine.hot.schema.type_schema import Kind, TypeSchema, updatable
from engine.store.traversals import traversal_credentials
from engine.types.contract import Call, Done, Outcome, ResourceType
from engine.types.observation import PRESENT, Observation
from engine.types.openstack.cloud import Cloud, CloudAccess, is_of_project
from engine.types.openstack.services import IDENTITY
from engine.words import ObservedState, ResourceId
from hub.auth.keystone import Keystone as KeystoneAuthenticator
from hub.auth.passwords import PasswordHasher
from hub.http.outbound import ALL_NETWORKS, Outbound, OutboundSettings
from hub.program.authenticator import open_authenticator
from hub.settings.settings import load_settings
from tests.integration.keystone.test_keystone import (
    home,
    name_in,
    run_with_keystone,
    settings,
    token,
)
from tests.integration.keystone.test_observation_credentials import PATH, drift, put
from tests.support.keys import KEYRING
from tests.support.keystone import Keystone, Project
from tests.support.program import Json, Program, eventually, template

__all__ = ["home"]

REPAIR = {"on_drift": "repair"}
HOLD = {"on_drift": "hold"}


class Region(ResourceType):
    """A region of Keystone, which its administrators create; of the project of its stack."""

    schema = TypeSchema(
        "Test::Region", properties={"description": updatable(Kind.STRING, "A description.")}
    )

    def __init__(self) -> None:
        self.cloud: Cloud | None = None

    def _session(self, call: Call) -> Any:
        assert self.cloud is not None
        return self.cloud.session(call)

    async def create(self, call: Call) -> Outcome:
        region = {"id": f"r{call.operation_key.hex}", **call.properties}
        found = await self._session(call).create(
            IDENTITY, "/regions", "region", "create the region", {"region": region}
        )
        return Done(found["id"], {"show": {"project_id": call.project}})

    async def update(self, call: Call) -> Outcome:
        path, body = f"/regions/{call.physical_id}", {"region": dict(call.properties)}
        await self._session(call).request(IDENTITY, "PATCH", path, "update the region", body)
        return Done(call.physical_id, call.attributes)

    async def delete(self, call: Call) -> Outcome:
        if call.physical_id:
            path = f"/regions/{call.physical_id}"
            await self._session(call).delete(IDENTITY, path, "delete the region")
        return Done(None)

    def observation_key(self, call: Call) -> str | None:
        assert self.cloud is not None
        return "regions" if self.cloud.has_observer(call) and is_of_project(call) else None

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        assert self.cloud is not None
        session = self.cloud.observer_session(calls[0])
        found = {one["id"]: one for one in await session.list(IDENTITY, "/regions", "regions")}
        gone = Observation(ObservedState.MISSING)
        return {one.resource_id: PRESENT if one.physical_id in found else gone for one in calls}


class Local(ResourceType):
    """Acts in no cloud. Each object in `lost` is missing."""

    schema = TypeSchema("Test::Local", properties={"after": updatable(Kind.STRING, "Any text.")})
    uses_credential = False

    def __init__(self) -> None:
        self.lost: set[str | None] = set()

    def create(self, call: Call) -> Outcome:
        return Done(call.operation_key.hex)

    def update(self, call: Call) -> Outcome:
        return Done(call.physical_id)

    def delete(self, call: Call) -> Outcome:
        return Done(None)

    def observation_key(self, call: Call) -> str | None:
        return "local"

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        gone = Observation(ObservedState.MISSING)
        return {one.resource_id: gone if one.physical_id in self.lost else PRESENT for one in calls}


@asynccontextmanager
async def repairing(
    url: str, keystone: Keystone, home: Project, reader: tuple[str, str], local: Local
) -> AsyncIterator[Program]:
    """A server with the types of this module. reader: of the operator."""
    type_ = Region()
    loaded = load_settings(None, settings(keystone, home), environment={})
    web = Outbound(OutboundSettings(allow=ALL_NETWORKS, remedy=""))
    async with run_with_keystone(url, keystone, home, types=[type_, local]) as run, web:
        hasher = PasswordHasher(at_once=1)
        async with open_authenticator(loaded.auth, run.database, hasher, KEYRING) as opened:
            assert isinstance(opened, KeystoneAuthenticator)
            type_.cloud = Cloud(web, opened.cloud(CloudAccess("", "public", *reader)))
            yield run


class Owner:
    """Requests of the owner of the project, who has a stack `s` with the region `a`."""

    def __init__(
        self, run: Program, headers: Mapping[str, str], keystone: Keystone, local: Local
    ) -> None:
        self.run = run
        self.local = local
        self.headers = headers
        self._keystone = keystone

    async def create(self, policy: Json, resources: Json, hooks: Json = ()) -> None:
        convergence = {"observe": {"every": "1h"}, **policy}
        environment = {"convergence": convergence, "hooks": [*hooks]}
        body = {
            "stack_name": "s",
            "template": template(resources),
            "environment": environment,
            "disable_rollback": False,
        }
        status, made = await self.run.call("POST", "/stacks", body, headers=self.headers)
        assert status == 201, made

    async def until(self, wanted: str) -> None:
        async def ended() -> bool:
            return await self.status() == wanted

        await eventually(ended)

    async def status(self) -> str:
        _, shown = await self.run.call("GET", "/stacks/s", headers=self.headers)
        return str(shown["stack"]["stack_status"])

    async def region(self, name: str = "a") -> str:
        """The physical ID of a resource."""
        path = f"/stacks/s/{await self._id()}/resources/{name}"
        _, found = await self.run.call("GET", path, headers=self.headers)
        return str(found["resource"]["physical_resource_id"])

    async def remove(self) -> str:
        """Delete the region of `a` behind the back of the server; return its ID."""
        gone = await self.region()
        await self._keystone.admin("DELETE", f"/regions/{gone}")
        return gone

    async def drifted(self) -> Json:
        """The drift of `a` after an observation, if any."""
        found = (await drift(self.run, self.headers))["resources"]
        return found[0] if found else None

    async def unrepaired(self) -> str:
        """Why the drift is not repaired."""

        async def reason() -> Json:
            path = f"/stacks/s/{await self._id()}/drift"
            _, found = await self.run.call("GET", path, headers=self.headers)
            return found["resources"][0]["unrepaired"]

        return str(await eventually(reason))

    async def until_unrepaired(self, part: str) -> None:
        """Wait until the drift is not repaired for a reason with this part."""

        async def names_it() -> bool:
            return part in await self.unrepaired()

        await eventually(names_it)

    async def answer(self, point: str, headers: Mapping[str, str]) -> None:
        """Continue the waiting hook at a point."""

        async def waiting() -> Json:
            path = f"/hooks?state=waiting&point={point}"
            _, found = await self.run.call("GET", path, headers=self.headers)
            return found["hooks"]

        [hook] = await eventually(waiting)
        path = f"/hooks/{hook['id']}/signal"
        status, found = await self.run.call("POST", path, {"decision": "continue"}, headers=headers)
        assert status < 300, found

    async def _id(self) -> str:
        _, shown = await self.run.call("GET", "/stacks/s", headers=self.headers)
        return str(shown["stack"]["id"])

    async def hand_over(self, credential: tuple[str, str], *, repairs: bool) -> Json:
        return await put(self.run, self.headers, credential, repairs=repairs)

    async def count(self, query: str) -> int:
        return int(await self.run.database.pool.fetchval(f"select count(*) from {query}"))

    async def stored_credentials(self) -> int:
        return await self.count("credential")

    async def copy_credential(self) -> None:
        """As for a rollback of the traversal under way."""
        async with self.run.database.connection() as conn:
            row = await conn.fetchrow("select stack_id, traversal from credential")
            assert row is not None
            stack_id, number = row["stack_id"], row["traversal"]
            await traversal_credentials.copy(conn, stack_id, number, number + 1)

    async def unrepaired_events(self) -> int:
        return await self.count("event where type = 'headgate.resource.drift.unrepaired'")


@asynccontextmanager
async def owning(
    url: str, keystone: Keystone, home: Project
) -> AsyncIterator[tuple[Owner, tuple[str, str]]]:
    """An owner, and an application credential of the owner that can create regions."""
    user = name_in(home, "admin")
    reader = await keystone.application_credential(user, home)
    local = Local()
    async with repairing(url, keystone, home, reader, local) as run:
        owner = Owner(run, await token(keystone, home, "admin"), keystone, local)
        yield owner, await keystone.application_credential(user, home)


A_REGION = {"a": {"type": "Test::Region"}}


async def test_without_a_credential_the_drift_stays_and_a_credential_repairs_it(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    async with owning(database_url, keystone, home) as (owner, credential):
        await owner.create(REPAIR, A_REGION)
        await owner.until("CREATE_COMPLETE")
        gone = await owner.remove()
        for _ in range(2):
            assert (await owner.drifted())["state"] == "missing"
            reason = await owner.unrepaired()
            assert reason.startswith("observation-credential: the project has handed over no")
            assert "headgate observation-credential set ID --for-repairs" in reason
        assert await owner.status() == "CREATE_COMPLETE"
        assert await owner.unrepaired_events() == 1

        # A credential that is for observations only is not used.
        assert not (await owner.hand_over(credential, repairs=False))["repairs"]
        await owner.drifted()
        await owner.until_unrepaired("was handed over for observations only")
        assert await owner.status() == "CREATE_COMPLETE"

        assert (await owner.hand_over(credential, repairs=True))["repairs"]
        await drift(owner.run, owner.headers)
        await owner.until("UPDATE_COMPLETE")
        assert await owner.region() != gone
        assert await owner.drifted() is None
        assert await owner.stored_credentials() == 0
        _, audited = await owner.run.call("GET", "/decisions", headers=owner.headers)
        kinds = [(one["kind"], one["data"].get("repairs")) for one in audited["decisions"]]
        assert ("observation-credential-set", True) in kinds


async def test_an_approved_repair_acts_with_the_credential_of_the_owner_only(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    """The approver cannot create regions. Neither the answer to the drift hook nor the one to a hook
    of the repair brings a credential in place of the owner's; without that, the repair fails. It has
    no rollback, which could act with the credential on resources without drift."""
    async with owning(database_url, keystone, home) as (owner, credential):
        approver = await token(keystone, home, "member")
        await owner.create(HOLD, A_REGION, [{"at": "a", "on": ["pre-create"]}])
        await owner.answer("pre-create", owner.headers)
        await owner.until("CREATE_COMPLETE")
        await owner.hand_over(credential, repairs=True)
        gone = await owner.remove()
        await owner.drifted()
        await owner.answer("drift", approver)
        await owner.until("UPDATE_IN_PROGRESS")
        await owner.answer("pre-create", approver)
        await owner.until("UPDATE_COMPLETE")
        assert await owner.region() != gone
        assert await owner.stored_credentials() == 0

        # It is deleted while a hook of the repair waits. Nothing repeats the failed repair.
        await owner.remove()
        await owner.drifted()
        await owner.answer("drift", approver)
        await owner.until("UPDATE_IN_PROGRESS")
        assert await owner.stored_credentials() == 1
        await owner.copy_credential()
        assert await owner.stored_credentials() == 1
        assert (await owner.run.call("DELETE", PATH, headers=owner.headers))[0] == 204
        await owner.answer("pre-create", approver)
        await owner.until("UPDATE_FAILED")
        assert await owner.count("event where reason like '%with which this repair acts was del%'")
        assert await owner.stored_credentials() == 0
        repairs = await owner.count("traversal where action = 'UPDATE'")
        await owner.drifted()
        assert await owner.count("traversal where action = 'UPDATE'") == repairs
        assert await owner.count("traversal where action = 'ROLLBACK'") == 0


async def test_a_refused_or_expired_credential_starts_no_repair(
    database_url: str, keystone: Keystone, home: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub.auth.observation_credentials.TOKEN_REUSED", 0.0)
    async with owning(database_url, keystone, home) as (owner, _):
        user = await keystone.user(name_in(home, "leaver"), home, ["admin"])
        credential = await keystone.application_credential(name_in(home, "leaver"), home)
        await owner.create(REPAIR, A_REGION)
        await owner.until("CREATE_COMPLETE")
        await owner.hand_over(credential, repairs=True)
        await keystone.delete_application_credential(user, credential[0])
        await owner.remove()
        await owner.drifted()
        await owner.until_unrepaired(f"rejected the observation credential {credential[0]}")
        expire = "update observation_credential set expires_at = now()"
        await owner.run.database.pool.execute(expire)
        await owner.drifted()
        await owner.until_unrepaired(f"{credential[0]} of this project expired at")
        assert await owner.status() == "CREATE_COMPLETE"
        forged = {**owner.headers, "X-Headgate-Credential": "handed-over-credential:" + "0" * 32}
        status, found = await owner.run.call("GET", "/stacks", headers=forged)
        assert (status, found["error"]["type"]) == (403, "Forbidden")


async def test_only_repairs_that_act_in_a_cloud_need_a_credential(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    """`b` acts in no cloud, and `d`, which depends on `c`, does."""
    resources = {
        "b": {"type": "Test::Local"},
        "c": {"type": "Test::Local"},
        "d": {"type": "Test::Region", "properties": {"description": {"get_resource": "c"}}},
    }
    async with owning(database_url, keystone, home) as (owner, _):
        await owner.create(REPAIR, resources)
        await owner.until("CREATE_COMPLETE")
        owner.local.lost.add(await owner.region("b"))
        await drift(owner.run, owner.headers)
        await owner.until("UPDATE_COMPLETE")
        owner.local.lost.add(await owner.region("c"))
        assert (await owner.drifted())["resource_name"] == "c"
        assert "has handed over no credential" in await owner.unrepaired()
        assert await owner.count("traversal where action = 'UPDATE'") == 1
