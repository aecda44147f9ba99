"""Notifications of Nova, Neutron and Cinder reach the observer through the cloud's own broker."""

from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import aio_pika
import orjson
import pytest
import pytest_asyncio
from aio_pika.exceptions import DeliveryError

from engine.work.claim_loop import POLL
from tests.openstack.cloud import OpenStack, Project
from tests.openstack.headgate import connected_headgate, reader_settings
from tests.openstack.neutron_stacks import NETWORK, neutron, ref
from tests.openstack.stacks import SETTINGS, create, delete, server, volume
from tests.support.completions import WAITING
from tests.support.program import Program, eventually

Json = Any
#: The exchange of each service. Cinder has the default of oslo.messaging.
EXCHANGES = {"nova": "nova", "neutron": "neutron", "cinder": "openstack"}
#: Until operations and the observer read objects without a notification.
NEVER = 36_000.0


@pytest_asyncio.fixture
async def notified(
    database_url: str, openstack: OpenStack, project: Project, tmp_path: Path
) -> AsyncIterator[Program]:
    """A Headgate server with a reader, whose queue is bound to the exchanges of the services."""
    queue = f"headgate.{project.name}"
    with openstack.reader(f"reader-{project.name}") as reader:
        settings = {
            **SETTINGS,
            **reader_settings(reader, tmp_path),
            "observer.amqp.url": openstack.broker_url,
            "observer.amqp.queue": queue,
        }
        async with await aio_pika.connect(openstack.broker_url) as connection:
            try:
                async with connected_headgate(
                    database_url, openstack, project, settings=settings
                ) as run:
                    for exchange in EXCHANGES.values():
                        await until_bound(connection, exchange)
                    yield run
            finally:
                async with connection.channel() as channel:
                    await channel.queue_delete(queue)


async def until_bound(connection: aio_pika.abc.AbstractConnection, exchange: str) -> None:
    """Until a queue gets the messages of an exchange that no service sends."""
    body = orjson.dumps({"event_type": "testbed.unknown", "payload": {}})
    async with connection.channel(on_return_raises=True) as channel:
        found = await channel.get_exchange(exchange, ensure=False)

        async def is_routed() -> bool:
            for topic in ("notifications", "versioned_notifications"):
                try:
                    await found.publish(aio_pika.Message(body), f"{topic}.testbed", mandatory=True)
                except DeliveryError:
                    return False
            return True

        await eventually(is_routed)


RESOURCES: dict[str, Any] = {
    "server": lambda ready: server(metadata={"testbed.spawn_file": ready}),
    "volume": lambda ready: volume(metadata={"testbed.create_file": ready}),
}


@pytest.mark.parametrize("kind", RESOURCES)
async def test_a_notification_completes_a_create(
    notified: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """After the first list, nothing but a notification makes the observer send another one."""
    monkeypatch.setattr("engine.work.observer.completion_observer.FIRST", NEVER)
    monkeypatch.setattr("engine.work.claim_loop.POLL", 360 * POLL)
    monkeypatch.setattr("engine.types.openstack.cloud_operation.READ_PAUSE", NEVER)
    ready = tmp_path / "ready"
    await notified.create("s", {"a": RESOURCES[kind](str(ready))})

    async def is_listed() -> bool:
        return bool(
            await notified.database.pool.fetchval(
                "select sent > 0 and claimed_at is null and next_at > now() + interval '1h'"
                " from completion_request"
            )
        )

    await eventually(is_listed)
    assert await notified.database.pool.fetchval(WAITING) == 1
    ready.touch()
    assert await notified.until_ended("s") == "CREATE_COMPLETE"
    await delete(notified)


async def test_notifications_have_changed_objects_observed(
    notified: Program, project: Project
) -> None:
    """The stack has no interval of observations, and no observation is requested."""
    resources = {
        **NETWORK,
        "port": neutron("Port", network=ref("net"), name="p"),
        "off": server(),
        "named": server(name="s"),
        "gone": server(),
        "volume": volume(description="d"),
        "lost": volume(),
    }
    await create(notified, resources)
    ids = {
        name: one["physical_resource_id"] for name, one in (await notified.resources("s")).items()
    }
    compute: Any = project.cloud.compute
    storage: Any = project.cloud.block_storage
    project.cloud.network.update_port(ids["port"], name="other")
    compute.stop_server(ids["off"])
    compute.update_server(ids["named"], name="other")
    compute.delete_server(ids["gone"])
    storage.update_volume(ids["volume"], description="other")
    storage.delete_volume(ids["lost"])

    expected = {
        "port": "changed",
        "off": "degraded",
        "named": "changed",
        "gone": "missing",
        "volume": "changed",
        "lost": "missing",
    }

    async def states() -> dict[str, Json]:
        drift = await notified.stack_request("GET", "s", "/drift")
        return {one["resource_name"]: one["state"] for one in drift["resources"]}

    async def all_are_observed() -> bool:
        return await states() == expected

    with suppress(TimeoutError):
        await eventually(all_are_observed)
    assert await states() == expected
    await delete(notified)
