"""Secrets, orders and containers, on a real Barbican."""

import asyncio
from base64 import b64encode
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest

from tests.openstack.cloud import OpenStack, Project, stored_objects
from tests.openstack.crashes import die_after_each, is_dead, settings_file
from tests.openstack.neutron_stacks import delete as delete_stack
from tests.openstack.neutron_stacks import ended, physical_ids
from tests.openstack.observations import drift_of, observing
from tests.openstack.stacks import create, delete, reason, resource_of, run, update
from tests.support.program import Http, Program, ServerProcess, template

Json = Any
__all__ = ["observing", "run"]  # fixtures

PAYLOAD = "correct-horse-battery-staple"
BINARY = b64encode(bytes(range(128, 160))).decode()


@pytest.fixture(scope="session", autouse=True)
def barbican(openstack: OpenStack) -> None:
    """Barbican runs; it starts once per run."""
    openstack.start("barbican")


def secret(**properties: Json) -> Json:
    return {"type": "OS::Barbican::Secret", "properties": properties}


def container(kind: str, **properties: Json) -> Json:
    return {"type": f"OS::Barbican::{kind}Container", "properties": properties}


def ref(name: str) -> Json:
    return {"get_resource": name}


def key_order(**properties: Json) -> Json:
    usual = {"type": "key", "algorithm": "aes", "bit_length": 256, "mode": "cbc"}
    return {"type": "OS::Barbican::Order", "properties": {**usual, **properties}}


async def names(project: Project, kind: str) -> list[str]:
    found = await asyncio.to_thread(stored_objects, project.cloud, kind)
    return sorted(str(one.name) for one in found)


async def remove_generated(project: Project) -> None:
    """Delete what orders have generated, which stays."""
    for kind in ("container", "secret"):
        for one in await asyncio.to_thread(stored_objects, project.cloud, kind):
            await asyncio.to_thread(project.cloud.key_manager.delete, f"/{kind}s/{one.id}")


async def outputs(run: Program) -> dict[str, Json]:
    found = (await run.stack("s"))["outputs"]
    return {one["output_key"]: one["output_value"] for one in found}


async def test_secrets_and_containers_live(run: Program, project: Project) -> None:
    resources = {
        "a": secret(name="one", payload=f" {PAYLOAD} ", algorithm="aes", bit_length=256),
        "b": secret(
            payload=BINARY,
            payload_content_type="application/octet-stream",
            payload_content_encoding="base64",
            secret_type="private",
            expiration="2100-01-31T12:00:00Z",
        ),
        "empty": secret(),
        "bag": container("Generic", name="bag", secrets=[{"name": "x", "ref": ref("a")}]),
        "pair": container("RSA", private_key_ref=ref("b"), public_key_ref=ref("a")),
        "certificate": container("Certificate", name="c", certificate_ref=ref("a")),
    }
    attributes = {
        "text": ["a", "decrypted_payload"],
        "bytes": ["b", "decrypted_payload"],
        "nothing": ["empty", "decrypted_payload"],
        "in_bag": ["bag", "secret_refs"],
        "in_pair": ["pair", "secret_refs"],
        "consumers": ["bag", "consumers"],
    }
    body = template(
        resources, outputs={key: {"value": {"get_attr": one}} for key, one in attributes.items()}
    )
    status, answer = await run.call("POST", "/stacks", {"stack_name": "s", "template": body})
    assert status == 201, answer
    assert await run.until_ended("s") == "CREATE_COMPLETE", await run.stack("s")
    urls = {name: (await resource_of(run, "s", name))["physical_resource_id"] for name in resources}
    shown = await outputs(run)
    assert (shown["text"], shown["bytes"], shown["nothing"]) == (PAYLOAD, BINARY, None)
    assert shown["in_bag"] == {"x": urls["a"]}
    assert shown["in_pair"] == {"private_key": urls["b"], "public_key": urls["a"]}
    assert shown["consumers"] == []
    found = await resource_of(run, "s", "b")
    shown_attributes = {"status": "ACTIVE", "decrypted_payload": "******"}
    assert found["attributes"] == found["attributes"] | shown_attributes
    assert urls["b"].rpartition("/")[0].endswith("/v1/secrets")
    stored = await names(project, "secret")
    assert stored[0] == "one" and all(one.startswith("s-") for one in stored[1:])
    await delete(run)


async def test_a_changed_secret_is_replaced(run: Program, project: Project) -> None:
    await create(run, {"a": secret(name="one", payload="first")})
    before = (await resource_of(run, "s"))["physical_resource_id"]
    await update(run, {"a": secret(name="one", payload="second")})
    after = (await resource_of(run, "s"))["physical_resource_id"]
    assert after != before
    payload = await asyncio.to_thread(
        project.cloud.key_manager.get,
        f"/secrets/{after.rpartition('/')[2]}/payload",
        headers={"Accept": "text/plain"},
    )
    assert payload.text == "second"
    assert await names(project, "secret") == ["one"]
    await delete(run)


async def test_orders_wait_for_what_they_generate(run: Program, project: Project) -> None:
    """A delete leaves it, because data may be encrypted with it."""
    resources = {
        "key": key_order(name="data-key"),
        "pair": {
            "type": "OS::Barbican::Order",
            "properties": {
                "type": "asymmetric",
                "algorithm": "rsa",
                "bit_length": 2048,
                "pass_phrase": PAYLOAD,
            },
        },
    }
    await create(run, resources)
    key = (await resource_of(run, "s", "key"))["attributes"]
    assert key["status"] == "ACTIVE" and "/v1/secrets/" in key["secret_ref"]
    assert key["container_ref"] is None and key["private_key"] is None
    assert key["order_ref"] == (await resource_of(run, "s", "key"))["physical_resource_id"]
    pair = (await resource_of(run, "s", "pair"))["attributes"]
    assert "/v1/containers/" in pair["container_ref"]
    assert PAYLOAD not in str(pair)
    await delete(run)
    assert await names(project, "order") == []
    assert "data-key" in await names(project, "secret")
    assert len(await names(project, "container")) == 1
    await remove_generated(project)


async def test_a_killed_create_finds_its_own_object(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> None:
    """A process dies after Barbican has created an object, before the result is stored."""
    server = ServerProcess(tmp_path, settings=settings_file(openstack), database_url=database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    await asyncio.to_thread(
        project.cloud.key_manager.post,
        "/secrets",
        json={"name": "db", "payload": PAYLOAD, "payload_content_type": "text/plain"},
    )
    resources = {
        "a": secret(name="db", payload=PAYLOAD),
        "b": secret(payload=BINARY),
        "c": container("Generic", name="bag", secrets=[{"name": "x", "ref": ref("a")}]),
        "d": container("Generic", secrets=[{"name": "x", "ref": ref("a")}]),
        "e": key_order(name="data-key"),
    }
    try:
        async with aiohttp.ClientSession(
            connector=connector, headers={"X-Auth-Token": project.token()}
        ) as session:
            http = Http(session, server.url, project.id)
            # The first call of a create with a name records which objects have the name.
            calls = {"a": 2, "c": 2}
            assert await die_after_each(server, http, resources, calls) == "CREATE_COMPLETE"
            assert len(await names(project, "secret")) == 4  # one of another client, one generated
            assert len(await names(project, "container")) == 2
            assert await names(project, "order") == ["None"]
            assert len(set((await physical_ids(http)).values())) == len(resources)
            await delete_stack(http)
            assert await names(project, "secret") == ["data-key", "db"]
            assert await names(project, "container") == await names(project, "order") == []
    finally:
        server.kill()
        await remove_generated(project)


async def test_killed_creates_of_equal_objects_share_none(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> None:
    """Several resources with the same name and content are created at once."""
    server = ServerProcess(tmp_path, settings=settings_file(openstack), database_url=database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    resources = {"shared": secret(name="shared", payload=PAYLOAD)} | {
        f"{kind}{number}": one
        for number in range(3)
        for kind, one in (
            ("secret", secret(name="db", payload=PAYLOAD)),
            (
                "bag",
                container("Generic", name="bag", secrets=[{"name": "x", "ref": ref("shared")}]),
            ),
        )
    }
    try:
        async with aiohttp.ClientSession(
            connector=connector, headers={"X-Auth-Token": project.token()}
        ) as session:
            http = Http(session, server.url, project.id)
            await asyncio.to_thread(server.start, fault="worker.judge@secret1:2:kill")
            await http.create("s", resources)
            assert await is_dead(server)
            await asyncio.to_thread(server.start, fault="worker.judge@bag1:2:kill")
            assert await is_dead(server)
            await asyncio.to_thread(server.start)
            assert await ended(http) == "CREATE_COMPLETE"
            assert len(set((await physical_ids(http)).values())) == len(resources)
            assert await names(project, "secret") == ["db"] * 3 + ["shared"]
            assert await names(project, "container") == ["bag"] * 3
            await delete_stack(http)
    finally:
        server.kill()


async def test_a_payload_is_in_no_row_and_no_log(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> None:
    server = ServerProcess(tmp_path, settings=settings_file(openstack), database_url=database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    body = {
        "stack_name": "s",
        "template": template(
            {
                "a": secret(name="db", payload={"get_param": "password"}),
                "b": secret(payload={"get_attr": ["a", "decrypted_payload"]}),
                "refused": {
                    **container("RSA", private_key_ref=ref("a")),
                    "depends_on": ["b"],
                },
            },
            parameters={"password": {"type": "string", "hidden": True}},
        ),
        "parameters": {"password": PAYLOAD},
    }
    try:
        await asyncio.to_thread(server.start)
        async with aiohttp.ClientSession(
            connector=connector, headers={"X-Auth-Token": project.token()}
        ) as session:
            http = Http(session, server.url, project.id)
            status, answer = await http.call("POST", "/stacks", body)
            assert status == 201, answer
            assert (await ended(http)).startswith("CREATE_FAILED")
            for path in ("", "/events", "/resources", "/resources/a", "/resources/b"):
                answer = await http.stack_request("GET", "s", path)
                assert PAYLOAD not in str(answer), path
            found = await http.stack_request("GET", "s", "/resources/refused")
            why = found["resource"]["resource_status_reason"]
            assert "'public_key'" in why and "Barbican refused to create the container" in why
            assert await tables_with(database_url, PAYLOAD) == []
            assert PAYLOAD not in server.log.read_text()
            await delete_stack(http)
    finally:
        server.kill()


async def tables_with(database_url: str, text: str) -> list[str]:
    """The tables that have a text in a row."""
    conn = await asyncpg.connect(database_url, timeout=10, command_timeout=60)
    try:
        tables = await conn.fetch("select tablename from pg_tables where schemaname = 'public'")
        return [
            name
            for (name,) in tables
            if await conn.fetchval(
                f'select exists (select from "{name}" one where position($1 in one::text) > 0)',
                text,
            )
        ]
    finally:
        await conn.close()


async def test_an_unknown_secret_is_refused_before_anything_is_created(
    run: Program, project: Project
) -> None:
    unknown = "http://127.0.0.1/v1/secrets/11111111-1111-4111-8111-111111111111"
    resources = {
        "a": secret(payload=PAYLOAD),
        "bag": container("Generic", secrets=[{"name": "x", "ref": unknown}]),
    }
    body = {"stack_name": "s", "template": template(resources)}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 400
    (finding,) = response["error"]["findings"]
    assert finding["place"] == "resources.bag.properties.secrets[0].ref"
    assert unknown in finding["reason"] and "openstack secret list" in str(finding)
    assert await names(project, "secret") == []


async def test_a_secret_that_another_client_deleted_is_missing_and_created_again(
    observing: Program, project: Project
) -> None:
    resources = {"a": secret(name="db", payload=PAYLOAD), "b": secret(payload=PAYLOAD)}
    await create(observing, resources)
    url = (await resource_of(observing, "s"))["physical_resource_id"]
    await asyncio.to_thread(project.cloud.key_manager.delete, f"/secrets/{url.rpartition('/')[2]}")
    assert await drift_of(observing) == {"a": ("missing", [])}
    await update(observing, resources, converge=True)
    assert await drift_of(observing) == {}
    await delete(observing)


async def test_an_order_of_a_certificate_fails_with_the_words_of_barbican(
    run: Program, project: Project
) -> None:
    order = {"type": "OS::Barbican::Order", "properties": {"type": "certificate", "name": "c"}}
    await run.create("s", {"a": order})
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert "'certificate' is not one of" in await reason(run, "s")
    await delete(run)
