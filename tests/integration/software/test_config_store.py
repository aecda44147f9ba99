"""The store of configs and deployments on a real database: idempotency and projects."""

import asyncio
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from engine.service.software.configs import ConfigStore, Software
from engine.store.database import Database
from engine.types.software.software_store import DeploymentResult, NewConfig, Publication
from engine.words import ResourceId, StackId, Status
from tests.support.engine_rows import INSERT_STACK, LOCK_STACK
from tests.support.program import PATIENCE
from tests.support.receiver import until

CONFIG = NewConfig("c", "script", "true", [{"name": "a", "value": 1}], [{"name": "o"}])
SIGNAL = """
insert into resource_signal (stack_id, resource_id, number, data, sent_by)
values ($1, $2, (select count(*) + 1 from resource_signal), '{}', 'me')
"""
BLOCKED = """
select exists (select from pg_stat_activity
                where datname = current_database() and wait_event_type = 'Lock')
"""


@pytest.fixture
def software_store(database: Database) -> ConfigStore:
    return ConfigStore(database, Software(database, new_id=uuid4))


async def make_publication(database: Database) -> Publication:
    stack_id = uuid4()
    async with database.connection() as conn:
        await conn.execute(INSERT_STACK, stack_id, "p", "s")
    return Publication(
        deployment_id=str(uuid4()),
        key=uuid4(),
        stack_id=StackId(stack_id),
        resource_id=ResourceId(uuid4()),
        server_id="web-1",
        config=CONFIG,
        input_values={"a": 1},
        action="CREATE",
        status=Status.IN_PROGRESS,
        reason="Deploy data available",
    )


async def send_signal(database: Database, of: Publication) -> int:
    """Send a signal; returns the number of signals."""
    async with database.connection() as conn:
        await conn.execute(SIGNAL, of.stack_id, of.resource_id)
    return await signals(database)


async def signals(database: Database) -> int:
    async with database.connection() as conn:
        return int(await conn.fetchval("select count(*) from resource_signal"))


async def configs(database: Database) -> set[UUID]:
    async with database.connection() as conn:
        return {row["id"] for row in await conn.fetch("select id from software_config")}


async def is_blocked(database: Database) -> bool:
    """Whether a session waits for a lock."""
    async with database.connection() as conn:
        return bool(await conn.fetchval(BLOCKED))


async def test_publishing_is_idempotent_for_one_operation(
    database: Database, software_store: ConfigStore
) -> None:
    """After a crash, signals of the server are kept."""
    published = await make_publication(database)
    await software_store.publish("p", published)
    await send_signal(database, published)
    ended = DeploymentResult(Status.COMPLETE, "Outputs received", {"o": 1})
    await software_store.complete("p", published.deployment_id, ended)
    await software_store.publish("p", published)
    assert await signals(database) == 1
    found = await software_store.deployment("p", published.deployment_id)
    assert found is not None
    assert (found.status, found.output_values, found.config) == ("COMPLETE", {"o": 1}, CONFIG)


async def test_another_operation_deletes_the_earlier_signals_and_config(
    database: Database, software_store: ConfigStore
) -> None:
    first = await make_publication(database)
    await software_store.publish("p", first)
    await send_signal(database, replace(first, resource_id=ResourceId(uuid4())))
    assert await send_signal(database, first) == 2
    second = replace(first, key=uuid4(), action="UPDATE", config=replace(CONFIG, config="false"))
    await software_store.publish("p", second)
    assert await signals(database) == 1
    assert await configs(database) == {second.key}
    found = await software_store.deployment("p", first.deployment_id)
    assert found is not None and found.config.config == "false"
    await software_store.unpublish("p", first.deployment_id)
    await software_store.unpublish("p", first.deployment_id)
    assert await configs(database) == set()


async def test_no_signal_arrives_while_signals_are_deleted(
    database: Database, software_store: ConfigStore
) -> None:
    """Signals are numbered by count, so both take the lock on the stack's row."""
    published = await make_publication(database)
    async with database.transaction() as conn:
        await conn.execute(LOCK_STACK, published.stack_id)
        publishing = asyncio.create_task(software_store.publish("p", published))
        await until(lambda: is_blocked(database))
        assert not publishing.done()
    async with asyncio.timeout(PATIENCE):
        await publishing
    assert await software_store.deployment("p", published.deployment_id) is not None


async def test_a_config_of_another_owner_is_not_overwritten(
    database: Database, software_store: ConfigStore
) -> None:
    published = await make_publication(database)
    await software_store.publish("p", published)
    theirs = uuid4()
    await software_store.store_config("p", theirs, CONFIG)
    async with database.connection() as conn:
        await conn.execute("update software_deployment set config_id = $1", theirs)
    await software_store.unpublish("p", published.deployment_id)
    assert await configs(database) == {theirs}


async def test_objects_of_another_project_are_not_found(
    database: Database, software_store: ConfigStore
) -> None:
    published = await make_publication(database)
    await software_store.publish("p", published)
    assert await software_store.deployment("q", published.deployment_id) is None
    assert await software_store.config("q", str(published.key)) is None
    await software_store.unpublish("q", published.deployment_id)
    await software_store.delete_config("q", str(published.key))
    assert await software_store.deployment("p", published.deployment_id) is not None
    for nothing in ("", "web-1", str(uuid4())):
        assert await software_store.deployment("p", nothing) is None
        assert await software_store.config("p", nothing) is None
        await software_store.delete_config("p", nothing)


async def test_equal_configs_are_stored_once(
    database: Database, software_store: ConfigStore
) -> None:
    config_id = uuid4()
    await software_store.store_config("p", config_id, CONFIG)
    await software_store.store_config("p", config_id, replace(CONFIG, config="other"))
    assert await software_store.config("p", str(config_id)) == CONFIG
