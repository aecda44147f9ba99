"""Queues, subscriptions and signed URLs, on a real Zaqar."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import aiohttp
import pytest

from engine.hot.expressions.masking import MASK
from engine.types.openstack.services import MESSAGING
from tests.openstack.cloud import OpenStack, Project
from tests.openstack.crashes import die_after_each, settings_file
from tests.openstack.headgate import connected_headgate
from tests.openstack.neutron_stacks import delete as delete_stack
from tests.openstack.neutron_stacks import physical_ids
from tests.openstack.observations import drift_of
from tests.openstack.stacks import SETTINGS, create, delete, reason, resource_of, run, update
from tests.support.program import Http, Program, ServerProcess, template

Json = Any
__all__ = ["run"]  # a fixture

HEADERS = dict(MESSAGING.headers)
MARKER = "headgate_operation"
JSON_PATCH = "application/openstack-messaging-v2.0-json-patch"


@pytest.fixture(scope="session", autouse=True)
def zaqar(openstack: OpenStack) -> None:
    """Zaqar runs; it starts once per run."""
    openstack.start("zaqar")


def queue(**properties: Json) -> Json:
    return {"type": "OS::Zaqar::Queue", "properties": properties}


def subscription(queue_name: str, subscriber: str, **properties: Json) -> Json:
    given = {"queue_name": {"get_resource": queue_name}, "subscriber": subscriber}
    return {"type": "OS::Zaqar::Subscription", "properties": {**given, **properties}}


async def request(project: Project, method: str, path: str, **more: Any) -> Any:
    """A request of the project's member to Zaqar. path: after the API version."""
    session = project.cloud.session
    root = session.get_endpoint(service_type="messaging", interface="public")
    headers = {**HEADERS, **more.pop("headers", {})}
    url = f"{root}/v2{path}"
    return await asyncio.to_thread(
        session.request, url, method, headers=headers, raise_exc=False, **more
    )


async def queues(project: Project) -> dict[str, Json]:
    """The metadata of the queues of the project, without those that Zaqar adds, by name."""
    found = (await request(project, "GET", "/queues?detailed=true")).json()["queues"]
    return {
        one["name"]: {key: value for key, value in one["metadata"].items() if key[0] != "_"}
        for one in found
    }


async def subscriptions(project: Project, name: str) -> dict[str, Json]:
    """The subscriptions of a queue, by subscriber."""
    found = (await request(project, "GET", f"/queues/{name}/subscriptions")).json()
    return {one["subscriber"]: one for one in found["subscriptions"]}


def own(metadata: Mapping[str, Json]) -> dict[str, Json]:
    return {key: one for key, one in metadata.items() if key != MARKER}


async def test_a_queue_with_metadata_lives_and_changes(run: Program, project: Project) -> None:
    """Heat fails to create a queue with metadata."""
    await create(run, {"a": queue(name="work", metadata={"team": "one", "a/b~c": 1})})
    assert own((await queues(project))["work"]) == {"team": "one", "a/b~c": 1}
    shown = await resource_of(run, "s")
    assert shown["physical_resource_id"] == "work"
    assert shown["attributes"]["href"].endswith("/v2/queues/work")
    assert shown["attributes"]["show"]["metadata"]["team"] == "one"
    assert MARKER not in shown["attributes"]["show"]["metadata"]
    marks = {one[MARKER] for one in (await queues(project)).values()}
    changed = {"a/b~c": 2, "new": {"deep": [1]}, "_default_message_ttl": 120}
    await update(run, {"a": queue(name="work", metadata=changed)})
    assert own((await queues(project))["work"]) == {"a/b~c": 2, "new": {"deep": [1]}}
    settings = (await request(project, "GET", "/queues/work")).json()
    assert settings["_default_message_ttl"] == 120
    await update(run, {"a": queue(name="work")})
    assert own((await queues(project))["work"]) == {}
    settings = (await request(project, "GET", "/queues/work")).json()
    assert settings["_default_message_ttl"] == 3600
    assert {one[MARKER] for one in (await queues(project)).values()} == marks
    await delete(run)
    assert await queues(project) == {}


async def test_a_subscription_gets_messages_and_changes(run: Program, project: Project) -> None:
    resources = {
        "a": queue(),
        "b": subscription("a", "http://127.0.0.1:1/one", options={"post_headers": {"X-A": "b"}}),
    }
    await create(run, resources)
    (name,) = await queues(project)
    found = (await subscriptions(project, name))["http://127.0.0.1:1/one"]
    before = await physical_ids(run)
    assert found["id"] == before["b"] and found["options"]["post_headers"] == {"X-A": "b"}
    shown = (await resource_of(run, "s", "b"))["attributes"]["show"]
    assert shown["options"] == {"post_headers": {"X-A": "b"}}
    changed = {"a": queue(), "b": subscription("a", "http://127.0.0.1:1/two", ttl=3600)}
    await update(run, changed)
    assert await physical_ids(run) == before
    found = await subscriptions(project, name)
    assert found.keys() == {"http://127.0.0.1:1/two"}
    (one,) = found.values()
    assert one["ttl"] == 3600 and own(one["options"]) == {}
    await delete(run)
    assert await subscriptions(project, name) == {} and await queues(project) == {}


async def test_a_signed_url_gives_access_without_a_token(run: Program, project: Project) -> None:
    resources = {
        "a": queue(),
        "b": {
            "type": "OS::Zaqar::SignedQueueURL",
            "properties": {
                "queue": {"get_resource": "a"}, "methods": ["GET", "POST"], "ttl": 600,
            },
        },
    }  # fmt: skip
    outputs = {"query": {"value": {"get_attr": ["b", "query_str"]}}}
    document = {**template(resources), "outputs": outputs}
    await run.call("POST", "/stacks", {"stack_name": "s", "template": document})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    assert (await resource_of(run, "s", "b"))["attributes"]["signature"] == MASK
    (shown,) = (await run.stack("s"))["outputs"]  # outputs of a root stack show secrets
    query = {name: values[0] for name, values in parse_qs(shown["output_value"]).items()}
    signed = {
        **HEADERS, "URL-Signature": query["signature"], "URL-Expires": query["expires"],
        "URL-Methods": query["methods"], "URL-Paths": query["paths"],
        "X-Project-Id": query["project_id"],
    }  # fmt: skip
    root = project.cloud.session.get_endpoint(service_type="messaging", interface="public")
    url = f"{root}/v2/queues/{query['queue_name']}/messages"
    async with aiohttp.ClientSession(headers=signed) as client:
        body = {"messages": [{"ttl": 60, "body": "by signature"}]}
        async with client.post(url, json=body) as response:
            assert response.status == 201, await response.text()
    listed = await request(project, "GET", f"/queues/{query['queue_name']}/messages?echo=true")
    assert [one["body"] for one in listed.json()["messages"]] == ["by signature"]
    await delete(run)


async def test_a_killed_create_finds_its_own_object(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> None:
    """A process dies after Zaqar has created an object, before the result is stored."""
    server = ServerProcess(tmp_path, settings=settings_file(openstack), database_url=database_url)
    connector = aiohttp.TCPConnector(force_close=True)
    resources = {
        "a": queue(name="named"),
        "b": queue(metadata={"x": 1}),
        "c": subscription("a", "http://127.0.0.1:1/"),
    }
    try:
        async with aiohttp.ClientSession(
            connector=connector, headers={"X-Auth-Token": project.token()}
        ) as session:
            http = Http(session, server.url, project.id)
            assert await die_after_each(server, http, resources) == "CREATE_COMPLETE"
            known = await physical_ids(http)
            assert set(await queues(project)) == {"named", known["b"]}
            (one,) = (await subscriptions(project, "named")).values()
            assert one["id"] == known["c"]
            await delete_stack(http)
            assert await queues(project) == {}
            assert await subscriptions(project, "named") == {}
    finally:
        server.kill()


async def test_objects_of_other_clients_are_not_taken(run: Program, project: Project) -> None:
    """Zaqar answers the create of an object that exists as if it had created it."""
    assert (await request(project, "PUT", "/queues/theirs", json={"a": 1})).status_code == 201
    body = {"subscriber": "http://127.0.0.1:1/", "ttl": 3600, "options": {}}
    made = await request(project, "POST", "/queues/theirs/subscriptions", json=body)
    assert made.status_code == 201
    theirs = {"type": "OS::Zaqar::Subscription", "properties": {
        "queue_name": "theirs", "subscriber": "http://127.0.0.1:1/",
    }}  # fmt: skip
    await run.create("s", {"a": queue(name="theirs"), "b": theirs})
    assert await run.until_ended("s") == "CREATE_FAILED"
    failed = [one for one in ("a", "b") if "already" in await reason(run, "s", one)]
    assert failed
    await delete(run)
    assert await queues(project) == {"theirs": {"a": 1}}
    assert (await subscriptions(project, "theirs")).keys() == {"http://127.0.0.1:1/"}
    await asyncio.to_thread(project.delete_leftovers)
    known = made.json()["subscription_id"]
    await request(project, "DELETE", f"/queues/theirs/subscriptions/{known}")


@pytest.mark.parametrize(
    ("resource", "place"),
    [
        (queue(name="a b"), "name"),
        (queue(metadata={MARKER: "x"}), f"metadata.{MARKER}"),
        (
            {
                "type": "OS::Zaqar::Subscription",
                "properties": {"queue_name": "a", "subscriber": "ftp://a"},
            },
            "subscriber",
        ),
        (
            {
                "type": "OS::Zaqar::Subscription",
                "properties": {"queue_name": "a b", "subscriber": "http://a"},
            },
            "queue_name",
        ),
    ],
    ids=["name", "mark", "scheme", "queue"],
)
async def test_a_wrong_property_is_refused_before_anything_is_created(
    run: Program, project: Project, resource: Json, place: str
) -> None:
    body = {"stack_name": "s", "template": template({"a": resource})}
    status, response = await run.call("POST", "/stacks", body)
    assert status == 400
    assert f"resources.a.properties.{place}" in str(response["error"]["findings"])


async def test_a_failure_has_the_words_of_zaqar(run: Program, project: Project) -> None:
    await run.create("s", {"a": queue(metadata={"_default_message_ttl": 1})})
    assert await run.until_ended("s") == "CREATE_FAILED"
    assert "must be at least 60 seconds long" in await reason(run, "s")
    await delete(run)


async def test_changes_of_other_clients_are_found_and_repaired(
    database_url: str, openstack: OpenStack, project: Project
) -> None:
    """With the credential of the project's owner: Zaqar shows objects to their project only."""
    resources = {
        "a": queue(name="work", metadata={"team": "one"}),
        "b": subscription("a", "http://127.0.0.1:1/", ttl=3600),
        "c": queue(name="other"),
    }
    async with connected_headgate(database_url, openstack, project, settings=SETTINGS) as run:
        await create(run, resources)
        with project.application_credential(roles=[{"name": "member"}]) as created:
            body = {
                "application_credential_id": created.id,
                "application_credential_secret": created.secret,
            }
            status, shown = await run.call("PUT", "/observation-credential", body)
            assert status == 200, shown
            assert await drift_of(run) == {}
            changes = [{"op": "replace", "path": "/metadata/team", "value": "two"}]
            headers = {"Content-Type": JSON_PATCH}
            await request(project, "PATCH", "/queues/work", json=changes, headers=headers)
            before = await physical_ids(run)
            path = f"/queues/work/subscriptions/{before['b']}"
            await request(project, "PATCH", path, json={"ttl": 7200})
            await request(project, "DELETE", "/queues/other")
            assert await drift_of(run) == {
                "a": ("changed", ["metadata"]),
                "b": ("changed", ["ttl"]),
                "c": ("missing", []),
            }
            await update(run, resources, converge=True)
            assert await physical_ids(run) == before
            assert own_of(await queues(project)) == {"work": {"team": "one"}, "other": {}}
            assert (await subscriptions(project, "work"))["http://127.0.0.1:1/"]["ttl"] == 3600
            assert await drift_of(run) == {}
            await delete(run)
            await run.call("DELETE", "/observation-credential")


def own_of(found: Mapping[str, Json]) -> dict[str, Json]:
    return {name: own(metadata) for name, metadata in found.items()}
