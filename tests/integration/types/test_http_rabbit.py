"""Objects of a real service, RabbitMQ's management API, as resources."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any
from uuid import uuid4

import aiohttp
import pytest
from aiohttp import web
from yarl import URL

from tests.support.changes import observed
from tests.support.program import Json, Program, eventually, program
from tests.support.rabbit import Rabbit

GUEST = {"Authorization": aiohttp.encode_basic_auth("guest", "guest")}
PASSWORD = "a password nobody is shown"


class ManagementApi:
    """A direct client of RabbitMQ's API."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url

    async def request(self, method: str, path: str, body: Json = None) -> Any:
        """The document of the response; None if the object does not exist."""
        async with self._session.request(
            method, URL(f"{self._url}/api{path}", encoded=True), json=body, headers=GUEST
        ) as answer:
            assert answer.status < 300 or answer.status == 404, await answer.text()
            is_json = answer.content_type == "application/json" and answer.status == 200
            return await answer.json() if is_json else None


@pytest.fixture
async def management(rabbit: Rabbit) -> AsyncIterator[ManagementApi]:
    async with aiohttp.ClientSession() as session:
        yield ManagementApi(session, rabbit.management_url)


@pytest.fixture
async def running(rabbit: Rabbit, database_url: str) -> AsyncIterator[Program]:
    async with program(database_url, settings_of(rabbit)) as run:
        yield run


@pytest.fixture
async def impatient(rabbit: Rabbit, database_url: str) -> AsyncIterator[Program]:
    """A program that waits 3 s for a response."""
    limits = {"resource_types.http.timeout": "3s", "resource_types.http.connect_timeout": "3s"}
    async with program(database_url, settings_of(rabbit) | limits) as run:
        yield run


def settings_of(rabbit: Rabbit) -> dict[str, Any]:
    lent = {
        "kind": "basic", "username": "guest", "secret": "guest", "projects": ["p"],
        "origins": [rabbit.management_url],
    }  # fmt: skip
    return {
        "resource_types.http.enabled": True,
        "resource_types.http.allow": ["127.0.0.0/8"],
        "resource_types.http.credentials.rabbit": lent,
    }


@pytest.fixture
def name() -> str:
    return f"t-{uuid4().hex[:8]}"


def http_object(rabbit: Rabbit, path: str, body: Json, **more: Json) -> Json:
    """An object with its own path, which PUT creates and updates."""
    request = {"url": path, "method": "PUT", "body": body}
    return {
        "type": "Headgate::HTTP",
        "properties": {
            "base": f"{rabbit.management_url}/api",
            "credential": "rabbit",
            "create": request,
            "read": {"url": path},
            "delete": {"url": path},
            **more,
        },
    }


def object_of(resource: Json, *after: str) -> Json:
    return {**resource, "depends_on": list(after)}


def stack_resources(rabbit: Rabbit, name: str, tags: str = "monitoring", **queue: Json) -> Json:
    """A virtual host with a queue and a user."""
    user = {"tags": tags, "password": PASSWORD}
    return {
        "vhost": http_object(
            rabbit, f"/vhosts/{name}", {}, id=name,
            attributes={"name": "$.name", "tracing": "$.tracing"},
        ),
        "queue": object_of(
            http_object(
                rabbit, f"/queues/{name}/orders", {"durable": True, "arguments": queue},
                attributes={"durable": "$.durable", "state": "$.state"},
                ready={"path": "$.state", "values": ["running"], "failed": ["crashed"]},
                compare={"$.durable": True, "$.arguments": queue},
                id="orders", interval=1, timeout=20,
            ),
            "vhost",
        ),
        "user": object_of(
            http_object(
                rabbit, f"/users/{name}", user,
                update={"url": f"/users/{name}", "body": user},
                attributes={"tags": "$.tags", "hash": "$.password_hash"}, hidden=["hash"],
                id=name,
            ),
            "vhost",
        ),
    }  # fmt: skip


async def test_objects_are_created_updated_checked_and_deleted(
    running: Program, rabbit: Rabbit, management: ManagementApi, name: str
) -> None:
    resources = stack_resources(rabbit, name)
    outputs = {
        "state": {"value": {"get_attr": ["queue", "outputs", "state"]}},
        "vhost": {"value": {"get_resource": "vhost"}},
    }
    body: Json = {"heat_template_version": "2018-08-31", "outputs": outputs}
    sent = {"stack_name": name, "template": body | {"resources": resources}}
    assert (await running.call("POST", "/stacks", sent))[0] == 201
    assert await running.until_ended(name) == "CREATE_COMPLETE", await running.events(name)
    listed = (await running.stack(name))["outputs"]
    values = {one["output_key"]: one["output_value"] for one in listed}
    assert values == {"state": "running", "vhost": name}
    assert (await management.request("GET", f"/queues/{name}/orders"))["durable"]
    before = await management.request("GET", f"/users/{name}")
    assert before["tags"] == ["monitoring"]

    # The user is updated in place; the queue has no update, so it is replaced.
    changed = stack_resources(rabbit, name, tags="management")
    await running.update(name, "PUT", template=body | {"resources": changed})
    assert await running.until_ended(name) == "UPDATE_COMPLETE", await running.events(name)
    assert (await management.request("GET", f"/users/{name}"))["tags"] == ["management"]

    await running.act(name, "check")
    assert await running.until_ended(name) == "CHECK_COMPLETE"
    await management.request("DELETE", f"/queues/{name}/orders")
    await running.act(name, "check")
    assert await running.until_ended(name) == "CHECK_FAILED"
    queue = (await running.resources(name))["queue"]
    assert queue["resource_status_reason"] == "the object does not exist: the service answered 404"

    texts = str([await running.events(name), await running.resources(name)])
    assert PASSWORD not in texts and "guest" not in texts and before["password_hash"] not in texts
    await running.stack_request("DELETE", name)
    await until_deleted(running, name)
    assert await management.request("GET", f"/vhosts/{name}") is None
    assert await management.request("GET", f"/users/{name}") is None


async def until_deleted(running: Program, name: str) -> None:
    async with asyncio.timeout(30):
        while (await running.call("GET", f"/stacks/{name}"))[0] != 404:
            await asyncio.sleep(0.02)


def listed_queues(rabbit: Rabbit, vhost: str, *names: str) -> dict[str, Json]:
    """Durable queues without arguments, which one request observes."""
    return {
        queue: http_object(
            rabbit, f"/queues/{vhost}/{queue}", {"durable": True}, id=queue,
            compare={"$.durable": True, "$.arguments": {}},
            list={"url": f"/queues/{vhost}", "items": "$", "id": "$.name"},
        )
        for queue in names
    }  # fmt: skip


async def test_queues_changed_outside_are_observed_by_one_list_and_repaired(
    running: Program, rabbit: Rabbit, management: ManagementApi, name: str
) -> None:
    await management.request("PUT", f"/vhosts/{name}", {})
    await running.create(name, listed_queues(rabbit, name, "changed", "gone", "same"))
    assert await running.until_ended(name) == "CREATE_COMPLETE", await running.events(name)
    assert (await observed(running, name))["resources"] == []
    for queue in ("changed", "gone"):
        await management.request("DELETE", f"/queues/{name}/{queue}")
    redeclared = {"durable": True, "arguments": {"x-max-length": 9}}
    await management.request("PUT", f"/queues/{name}/changed", redeclared)
    await management.request("PUT", f"/queues/{name}/other", {"durable": True})
    drift = await observed(running, name)
    assert states(drift) == {"changed": "changed", "gone": "missing"}
    changed = next(one for one in drift["resources"] if one["resource_name"] == "changed")
    assert changed["differences"] == [
        {"path": "$.arguments", "desired": {}, "observed": {"x-max-length": 9}}
    ]
    # RabbitMQ changes no queue in place.
    await management.request("DELETE", f"/queues/{name}/changed")
    await running.update(name, converge=True)
    assert await running.until_ended(name) == "UPDATE_COMPLETE", await running.events(name)
    assert (await observed(running, name))["resources"] == []
    listed = await management.request("GET", f"/queues/{name}")
    assert {one["name"]: one["durable"] for one in listed} == dict.fromkeys(
        ("changed", "gone", "other", "same"), True
    )
    await running.stack_request("DELETE", name)
    await until_deleted(running, name)
    await management.request("DELETE", f"/vhosts/{name}")


def states(drift: Json) -> dict[str, str]:
    return {one["resource_name"]: one["state"] for one in drift["resources"]}


async def test_a_binding_made_again_under_another_id_is_missing_and_the_other_is_left_alone(
    running: Program, rabbit: Rabbit, management: ManagementApi, name: str
) -> None:
    await management.request("PUT", f"/vhosts/{name}", {})
    await management.request("PUT", f"/queues/{name}/q", {"durable": True})
    path = f"/bindings/{name}/e/amq.direct/q/q"
    binding = {
        "type": "Headgate::HTTP",
        "properties": {
            "base": f"{rabbit.management_url}/api",
            "credential": "rabbit",
            "create": {"url": path, "body": {"arguments": {"of": "${key}"}}},
            "find": {"url": path},
            "id": "$[?@.arguments.of=='${key}'].properties_key",
            "list": {"url": path, "items": "$", "id": "$.properties_key"},
            "read": {"url": f"{path}/${{id}}"},
            "delete": {"url": f"{path}/${{id}}"},
        },
    }
    await running.create(name, {"binding": binding})
    assert await running.until_ended(name) == "CREATE_COMPLETE", await running.events(name)
    assert states(await observed(running, name)) == {}
    before = (await running.resources(name))["binding"]["physical_resource_id"]
    await management.request("DELETE", f"{path}/{before}")
    await management.request("POST", path, {"arguments": {"of": "another client"}})
    assert states(await observed(running, name)) == {"binding": "missing"}
    await running.update(name, converge=True)
    assert await running.until_ended(name) == "UPDATE_COMPLETE", await running.events(name)
    assert states(await observed(running, name)) == {}
    after = (await running.resources(name))["binding"]["physical_resource_id"]
    found = {
        one["properties_key"]: one["arguments"] for one in await management.request("GET", path)
    }
    assert len(found) == 2 and after in found and before not in found
    assert {"of": "another client"} in found.values()
    await running.stack_request("DELETE", name)
    await until_deleted(running, name)
    await management.request("DELETE", f"/vhosts/{name}")


async def test_queues_that_flap_are_reported_each_time_and_those_of_a_hanging_broker_are_unknown(
    impatient: Program, rabbit: Rabbit, management: ManagementApi, name: str
) -> None:
    run = impatient
    await management.request("PUT", f"/vhosts/{name}", {})
    policy = {"convergence": {"observe": {"every": "1h"}, "on_drift": "notify"}}
    await run.create(name, listed_queues(rabbit, name, "a", "b"), environment=policy)
    assert await run.until_ended(name) == "CREATE_COMPLETE", await run.events(name)
    await management.request("DELETE", f"/queues/{name}/a")
    assert states(await observed(run, name)) == {"a": "missing"}
    rabbit.send_signal(signal.SIGSTOP)
    try:
        hanging = await observed(run, name)
        assert states(hanging) == dict.fromkeys("ab", "unknown")
        assert "no complete response within 3 s" in hanging["resources"][0]["reason"]
    finally:
        rabbit.send_signal(signal.SIGCONT)
    for _ in range(2):
        await management.request("PUT", f"/queues/{name}/a", {"durable": True})
        assert states(await observed(run, name)) == {}
        await management.request("DELETE", f"/queues/{name}/a")
        assert states(await observed(run, name)) == {"a": "missing"}
    history = await run.stack_request("GET", name, "/history")
    reports = [one["type"] for one in history["events"] if ".drift." in one["type"]]
    moments = [one.rpartition(".")[2] for one in reports]
    assert moments == ["detected", "resolved", "detected", "resolved", "detected"]
    await run.stack_request("DELETE", name)
    await until_deleted(run, name)
    await management.request("DELETE", f"/vhosts/{name}")


class Gateway:
    """A proxy to the service. throttles: it answers 429 itself; requests: that it received; gone: a
    queue to delete after the next first page of a list."""

    def __init__(self, management: ManagementApi) -> None:
        self._management = management
        self._runner: web.AppRunner | None = None
        self._port = 0
        self.throttles = False
        self.gone: str | None = None
        self.requests = list[str]()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        """Listen on the same port as before, if any."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._forward)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self._port).start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Refuse connections."""
        assert self._runner is not None
        await self._runner.cleanup()

    async def _forward(self, request: web.Request) -> web.Response:
        path = request.rel_url.raw_path_qs
        self.requests.append(f"{request.method} {path}")
        if self.throttles:
            return web.Response(status=429, headers={"Retry-After": "7200"})
        body = await request.json() if request.can_read_body else None
        found = await self._management.request(request.method, path, body)
        if isinstance(found, dict) and found.get("page", 0) < found.get("page_count", 0):
            # RabbitMQ has no links.
            found["next"] = f"{self.url}{request.path}?{pages(found['page'] + 1)}"
        if isinstance(found, dict) and found.get("page") == 1 and self.gone is not None:
            gone, self.gone = self.gone, None
            await self._management.request("DELETE", f"{request.path}/{gone}")
            await eventually(partial(self._has_moved, request.path, gone))
        if request.method != "GET":
            return web.Response(status=204)
        return web.json_response(found, status=404 if found is None else 200)

    async def _has_moved(self, path: str, gone: str) -> bool:
        """Whether lists no longer have the queue."""
        shown = await self._management.request("GET", f"{path}?{pages(1)}")
        return gone not in [one["name"] for one in shown["items"]]


def pages(number: int) -> str:
    return f"page={number}&page_size=2&sort=name"


@pytest.fixture
async def gateway(management: ManagementApi) -> AsyncIterator[Gateway]:
    running = Gateway(management)
    await running.start()
    try:
        yield running
    finally:
        await running.stop()


def paged_queues(gateway: Gateway, vhost: str, *names: str) -> dict[str, Json]:
    """Queues that a list with pages of two observes."""
    path = f"/queues/{vhost}"
    return {
        queue: {
            "type": "Headgate::HTTP",
            "properties": {
                "base": gateway.url,
                "create": {"url": f"{path}/{queue}", "method": "PUT", "body": {"durable": True}},
                "read": {"url": f"{path}/{queue}"},
                "delete": {"url": f"{path}/{queue}"},
                "id": queue,
                "list": {
                    "url": f"{path}?{pages(1)}", "items": "$.items", "id": "$.name",
                    "next": "$.next",
                },
            },
        }
        for queue in names
    }  # fmt: skip


async def test_queues_behind_a_refused_connection_are_unknown(
    running: Program, management: ManagementApi, gateway: Gateway, name: str
) -> None:
    await management.request("PUT", f"/vhosts/{name}", {})
    await running.create(name, paged_queues(gateway, name, "a", "b"))
    assert await running.until_ended(name) == "CREATE_COMPLETE", await running.events(name)
    await management.request("DELETE", f"/queues/{name}/a")
    await gateway.stop()
    first = await observed(running, name)
    assert states(first) == dict.fromkeys("ab", "unknown")
    assert all("connect" in one["reason"].lower() for one in first["resources"]), first
    again = await observed(running, name)
    assert states(again) == dict.fromkeys("ab", "unknown")
    since = [[one["since"] for one in found["resources"]] for found in (first, again)]
    assert since[0] == since[1] and all(since[0])
    await gateway.start()
    assert states(await observed(running, name)) == {"a": "missing"}
    await management.request("DELETE", f"/vhosts/{name}")


async def test_queues_of_a_service_that_throttles_are_unknown(
    running: Program, management: ManagementApi, gateway: Gateway, name: str
) -> None:
    await management.request("PUT", f"/vhosts/{name}", {})
    await running.create(name, paged_queues(gateway, name, "a", "b"))
    assert await running.until_ended(name) == "CREATE_COMPLETE", await running.events(name)
    await management.request("DELETE", f"/queues/{name}/a")
    gateway.throttles = True
    gateway.requests.clear()
    for _ in range(2):
        drift = await observed(running, name)
        assert states(drift) == dict.fromkeys("ab", "unknown")
        assert all("429" in one["reason"] and one["since"] for one in drift["resources"]), drift
    # The second observation waits for the time that the service has named.
    assert len(gateway.requests) == 1
    gateway.throttles = False
    await running.database.pool.execute(
        "with requests as (update failed_request set until = now())"
        " update provider_failure set until = now()"
    )
    assert states(await observed(running, name)) == {"a": "missing"}
    await management.request("DELETE", f"/vhosts/{name}")


async def test_a_queue_that_moves_between_two_pages_is_not_missing(
    running: Program, management: ManagementApi, gateway: Gateway, name: str
) -> None:
    await management.request("PUT", f"/vhosts/{name}", {})
    await management.request("PUT", f"/queues/{name}/another", {"durable": True})
    await running.create(name, paged_queues(gateway, name, "b", "c", "d"))
    assert await running.until_ended(name) == "CREATE_COMPLETE", await running.events(name)
    gateway.gone = "another"
    gateway.requests.clear()
    # `c` is on the second page when the first one is read, and the other way round.
    assert states(await observed(running, name)) == {}
    assert gateway.gone is None
    assert len([one for one in gateway.requests if "page=1&" in one]) == 2
    await management.request("DELETE", f"/queues/{name}/c")
    assert states(await observed(running, name)) == {"c": "missing"}
    await management.request("DELETE", f"/vhosts/{name}")


@asynccontextmanager
async def lossy_proxy(management: ManagementApi, posts: list[str]) -> AsyncIterator[str]:
    """The URL of a proxy to the service that drops the responses to POST."""

    async def forward(request: web.Request) -> web.Response:
        body = await request.json() if request.can_read_body else None
        found = await management.request(request.method, request.rel_url.raw_path_qs, body)
        if request.method == "POST" and request.transport is not None:
            posts.append(request.path)
            request.transport.close()
        return web.json_response(found, status=404 if found is None else 200)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", forward)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_an_object_whose_response_was_lost_is_not_created_again(
    running: Program, management: ManagementApi, name: str
) -> None:
    """Each POST of a binding creates another one, with an ID from the service."""
    await management.request("PUT", f"/vhosts/{name}", {})
    await management.request("PUT", f"/queues/{name}/q", {"durable": True})
    bindings, posts = f"/bindings/{name}/e/amq.direct/q/q", list[str]()
    async with lossy_proxy(management, posts) as url:
        binding = {
            "type": "Headgate::HTTP",
            "properties": {
                "base": url,
                "create": {"url": bindings, "body": {"arguments": {"of": "${key}"}}},
                "find": {"url": bindings},
                "id": "$[?@.arguments.of=='${key}'].properties_key",
                "read": {"url": f"{bindings}/${{id}}"},
                "delete": {"url": f"{bindings}/${{id}}"},
            },
        }
        await running.create(name, {"binding": binding})
        assert await running.until_ended(name) == "CREATE_COMPLETE", await running.events(name)
        physical_id = (await running.resources(name))["binding"]["physical_resource_id"]
        (there,) = await management.request("GET", bindings)
        assert there["properties_key"] == physical_id and len(posts) == 1
        await running.stack_request("DELETE", name)
        await until_deleted(running, name)
        assert await management.request("GET", bindings) == []
    await management.request("DELETE", f"/vhosts/{name}")
