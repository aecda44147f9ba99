"""Credentials that owners of projects hand over for observations, with a real Keystone server."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from engine.hot.schema.type_schema import TypeSchema
from engine.principal import principal_of_name
from engine.store.database import Database
from engine.store.encryption.secret_values import DecryptionFailed, Keyring
from engine.store.maintenance.reencryption import TABLES, reencrypt_table
from engine.store.maintenance.retention import purge
from engine.store.observer import observation_credentials as store
from engine.types.contract import Call, Done, Outcome, ResourceType
from engine.types.observation import PRESENT, Observation
from engine.types.openstack.cloud import Cloud, CloudAccess
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.services import IDENTITY
from engine.words import ObservedState, ResourceId
from hub.auth.keystone import Keystone as KeystoneAuthenticator
from hub.auth.keystone_client import KeystoneClient
from hub.auth.observation_credentials import ObservationCredentials
from hub.auth.passwords import PasswordHasher
from hub.http.outbound import ALL_NETWORKS, Outbound, OutboundSettings
from hub.program.authenticator import keystone_access, open_authenticator
from hub.settings.settings import load_settings
from tests.integration.api.test_openapi_traffic import CREDENTIAL_ROUTES
from tests.integration.keystone.test_keystone import (
    home,
    name_in,
    run_with_keystone,
    settings,
    token,
)
from tests.support.keys import KEY, KEYRING
from tests.support.keystone import Keystone, Project
from tests.support.openapi_check import OpenApiDocument, RecordingClient
from tests.support.program import Http, Json, Program, eventually, program, template

__all__ = ["home"]

PATH = "/observation-credential"
REFUSED = "ObservationCredentialRefused"


class ProjectOfKeystone(ResourceType):
    """Observes a project as the types of OpenStack do."""

    schema = TypeSchema("Test::Project")

    def __init__(self) -> None:
        self.cloud: Cloud | None = None
        self.observers: list[str] = []

    def create(self, call: Call) -> Outcome:
        return Done(call.project, {"show": {"project_id": call.project}})

    def delete(self, call: Call) -> Outcome:
        return Done(None)

    def observation_key(self, call: Call) -> str | None:
        assert self.cloud is not None
        return "projects" if self.cloud.can_observe(call) else None

    async def observe(self, calls: Sequence[Call]) -> Mapping[ResourceId, Observation]:
        assert self.cloud is not None
        self.observers.append(calls[0].observation_credential)
        session = self.cloud.observer_session(calls[0])
        try:
            found = await session.list(IDENTITY, "/auth/projects", "projects")
        except CloudError as error:
            return {one.resource_id: Observation.unknown(str(error), error.public) for one in calls}
        ids = {one["id"] for one in found}
        gone = Observation(ObservedState.MISSING)
        return {one.resource_id: PRESENT if one.project in ids else gone for one in calls}


@asynccontextmanager
async def observing(
    url: str, keystone: Keystone, home: Project, reader: tuple[str, str] = ("", "")
) -> AsyncIterator[tuple[Program, ProjectOfKeystone]]:
    """A server with a resource whose object is the project. reader: of the operator, if any."""
    type_ = ProjectOfKeystone()
    loaded = load_settings(None, settings(keystone, home), environment={})
    web = Outbound(OutboundSettings(allow=ALL_NETWORKS, remedy=""))
    async with run_with_keystone(url, keystone, home, types=[type_]) as run, web:
        hasher = PasswordHasher(at_once=1)
        async with open_authenticator(loaded.auth, run.database, hasher, KEYRING) as opened:
            assert isinstance(opened, KeystoneAuthenticator)
            type_.cloud = Cloud(web, opened.cloud(CloudAccess("", "public", *reader)))
            yield run, type_


async def put(
    run: Http, headers: Mapping[str, str], credential: tuple[str, str], **more: Json
) -> Json:
    """Set a credential; return the error, or the document without one. more: fields of the
    request."""
    body = dict(
        zip(("application_credential_id", "application_credential_secret"), credential, strict=True)
    )
    status, response = await run.call("PUT", PATH, {**body, **more}, headers=headers)
    assert status in (200, 400), response
    return response["error"]["findings"][0] if "error" in response else response


async def drift(run: Program, headers: Mapping[str, str]) -> Json:
    """The drift of stack `s` after an observation."""
    _, shown = await run.call("GET", "/stacks/s", headers=headers)
    path = f"/stacks/s/{shown['stack']['id']}"
    status, _ = await run.call("POST", f"{path}/actions", {"observe": None}, headers=headers)
    assert status < 300

    async def ended() -> Json:
        _, found = await run.call("GET", f"{path}/drift", headers=headers)
        return None if found["observing"] else found

    return await eventually(ended)


async def test_a_credential_is_verified_shown_without_its_secret_and_deleted(
    database_url: str, keystone: Keystone, home: Project
) -> None:
    openstack = {"resource_types.openstack.enabled": True}
    async with program(database_url, settings(keystone, home) | openstack) as server:
        run = RecordingClient(server.session, server.url, home.id)
        member, reader = [await token(keystone, home, user) for user in ("member", "reader")]
        assert (await run.call("GET", PATH, headers=reader))[0] == 404
        other = await keystone.project(f"other-{uuid4().hex[:6]}")
        await keystone.user(name_in(other, "eve"), other, ["member"])
        user = name_in(home, "member")
        fit = await keystone.application_credential(user, home)
        free = await keystone.application_credential(user, home, unrestricted=True)
        foreign = await keystone.application_credential(name_in(other, "eve"), other)
        for credential, place, reason in (
            ((fit[0], "wrong secret"), "application_credential_secret", "rejected the"),
            (free, "application_credential_id", "is unrestricted"),
            (foreign, "application_credential_id", "belongs to another project"),
        ):
            error = await put(run, member, credential)
            assert (error["type"], error["place"]) == (REFUSED, place), error
            assert reason in error["reason"] and error["remedy"]
            assert credential[1] not in str(error)
        assert (await run.call("GET", PATH, headers=reader))[0] == 404  # none was stored

        expires = (datetime.now(UTC) + timedelta(days=3)).replace(microsecond=0)
        rules = [{"service": "network", "method": "GET", "path": "/v2.0/**"}]
        limited = await keystone.application_credential(
            user, home, expires_at=f"{expires:%Y-%m-%dT%H:%M:%S}", access_rules=rules
        )
        await put(run, member, fit)
        shown = await put(run, member, limited)
        assert shown == (await run.call("GET", PATH, headers=reader))[1]
        assert shown["application_credential_id"] == limited[0]
        assert (shown["user_name"], shown["state"]) == (user, "valid")
        assert "member" in shown["roles"]
        assert shown["access_rules"] and shown["used_by_observer"]
        assert datetime.fromisoformat(shown["expires_at"]) == expires
        assert shown["failed_at"] is None and limited[1] not in str(shown)
        body = {"application_credential_id": "x", "application_credential_secret": "y"}
        assert (await run.call("PUT", PATH, body, headers=reader))[0] == 403
        assert (await run.call("DELETE", PATH, headers=reader))[0] == 403
        stored = await server.database.pool.fetchval("select c::text from observation_credential c")
        assert limited[0] in stored and limited[1] not in stored

        assert (await run.call("DELETE", PATH, headers=member))[0] == 204
        assert (await run.call("DELETE", PATH, headers=member))[0] == 404
        _, audited = await run.call("GET", "/decisions", headers=reader)
        changes = [
            (one["kind"], one["data"]["application_credential_id"], one["by"], one["number"])
            for one in audited["decisions"]
        ]
        # The two entries of a replacement have the same time.
        assert (changes[0], *sorted(changes[1:3]), *changes[3:]) == (
            (store.DELETED, limited[0], user, 2),
            (store.DELETED, fit[0], user, 2),
            (store.SET, limited[0], user, 1),
            (store.SET, fit[0], user, 1),
        )
        document = OpenApiDocument((await server.call("GET", "//openapi.json"))[1])
        assert [wrong for one in run.responses for wrong in document.differences(one)] == []
        assert document.exercised >= CREDENTIAL_ROUTES


async def test_a_server_without_keystone_has_no_observation_credentials(
    database_url: str,
) -> None:
    async with program(database_url) as run:
        error = await put(run, {}, ("id", "secret"))
    assert "do not authenticate with Keystone" in error["reason"] and error["remedy"]


async def test_the_observer_uses_the_credential_until_it_is_deleted(
    database_url: str, keystone: Keystone, home: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub.auth.observation_credentials.TOKEN_REUSED", 0.0)
    async with observing(database_url, keystone, home) as (run, type_):
        user = await keystone.user(name_in(home, "owner"), home, ["member"])
        headers = await token(keystone, home, "owner")
        body = {"stack_name": "s", "template": template({"a": {"type": "Test::Project"}})}
        assert (await run.call("POST", "/stacks", body, headers=headers))[0] == 201

        async def complete() -> bool:
            _, shown = await run.call("GET", "/stacks/s", headers=headers)
            return bool(shown["stack"]["stack_status"] == "CREATE_COMPLETE")

        await eventually(complete)
        found = await drift(run, headers)
        assert (found["observable_resources"], found["unobservable_resources"]) == (0, 1)

        first = await keystone.application_credential(name_in(home, "owner"), home)
        shown = await put(run, headers, first)
        found = await drift(run, headers)
        assert (found["observable_resources"], found["resources"]) == (1, [])
        assert type_.observers == [shown["id"]]

        # It is revoked in Keystone: the state is unknown, and never missing.
        await keystone.delete_application_credential(user, first[0])
        [one] = (await drift(run, headers))["resources"]
        assert one["state"] == "unknown"
        assert f"rejected the observation credential {first[0]}" in one["reason"]
        assert "headgate observation-credential set" in one["reason"]
        _, shown = await run.call("GET", PATH, headers=headers)
        assert shown["state"] == "refused" and first[0] in shown["reason"]
        async with run.database.connection() as conn:
            states = await store.count_states(conn)
        assert states == {"valid": 0, "refused": 1, "expired": 0}

        second = await keystone.application_credential(name_in(home, "owner"), home)
        await put(run, headers, second)
        found = await drift(run, headers)
        assert (found["observable_resources"], found["resources"]) == (1, [])

        await run.database.pool.execute(
            "update observation_credential set id = gen_random_uuid(), expires_at = now()"
        )
        [one] = (await drift(run, headers))["resources"]
        assert one["state"] == "unknown" and f"{second[0]} of this project expired" in one["reason"]
        _, shown = await run.call("GET", PATH, headers=headers)
        assert shown["state"] == "expired"

        assert (await run.call("DELETE", PATH, headers=headers))[0] == 204
        observed = len(type_.observers)
        assert (await drift(run, headers))["observable_resources"] == 0
        assert len(type_.observers) == observed


async def test_a_token_is_shared_replaced_when_a_service_refuses_it_and_survives_a_new_key(
    database: Database, keystone: Keystone, home: Project
) -> None:
    """An expired credential is purged; a key is replaced while a credential is stored."""
    loaded = load_settings(None, settings(keystone, home), environment={})
    made = await keystone.application_credential(name_in(home, "member"), home)
    new_key = Keyring(b"n" * 32, random_bytes=os.urandom, fallbacks=[KEY])
    async with KeystoneClient(keystone_access(loaded.auth)) as client:
        credentials = ObservationCredentials(client, database, KEYRING, uuid4)
        await credentials.accept(home.id, *made, principal_of_name("ann"))
        async with database.connection() as conn:
            id_ = str(await store.find_id(conn, home.id))
        first, same = await asyncio.gather(credentials.token(id_), credentials.token(id_))
        assert first.token == same.token
        other = await credentials.token(id_, refused=first.token)
        assert other.token != first.token

        async with database.connection() as conn:
            [table] = [one for one in TABLES if one.name == "observation_credential"]
            assert (await reencrypt_table(conn, new_key, table)).rows == 1
        rotated = ObservationCredentials(client, database, new_key, uuid4)
        assert (await rotated.token(id_)).token
        with pytest.raises(DecryptionFailed):
            await ObservationCredentials(client, database, KEYRING, uuid4).token(id_)
    age, expire = timedelta(days=1), "update observation_credential set expires_at = now() - $1"
    async with database.connection() as conn:
        for old, deleted in ((timedelta(hours=23), 0), (timedelta(hours=25), 1)):
            await conn.execute(f"{expire}::interval", old)
            page = await purge(conn, "observation_credentials", age, None, 10)
            assert page.deleted == deleted
