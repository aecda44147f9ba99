"""Metadata of servers that are objects: several writers, and an object store that fails."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

import orjson
import pytest

from engine.errors import Unavailable
from engine.service.software import configs
from engine.service.software.configs import Software
from engine.store.connection import Connection
from engine.store.database import Database
from engine.store.software.server_resources import ServerResource
from engine.store.software.software_configs import DeploymentChange
from engine.types.contract import Call
from engine.types.http_client import ServiceError
from engine.types.software.metadata_objects import OBJECTS, MetadataObject, MetadataServices
from engine.types.software.software_store import NewConfig
from engine.words import Json, Status
from tests.support.program import Json as AnyJson

TARGET = MetadataObject("c", "o", "own", "http://s/read", "http://s/write")
AGENT = {"request": {"metadata_url": "http://s/read"}}


@dataclass
class Objects:
    """An object store with one object. before: what happens before a write is complete."""

    documents: list[Json] = field(default_factory=list)
    before: list[Callable[[], AnyJson]] = field(default_factory=list)

    async def create(self, call: Call, container: str, name: str) -> MetadataObject:
        return TARGET

    async def write(self, target: MetadataObject, document: bytes) -> bool:
        if self.before:
            await self.before.pop(0)()
        self.documents.append(orjson.loads(document))
        return True

    async def remove(self, call: Call, objects: Sequence[tuple[str, str]], prefix: str) -> None:
        raise AssertionError(prefix)


@pytest.fixture
def objects(monkeypatch: pytest.MonkeyPatch) -> Objects:
    """The server `web` has an object."""

    async def find(conn: Connection, project: str, server_id: str) -> list[ServerResource]:
        attributes = {"os_collect_config": AGENT}
        data = {OBJECTS: [TARGET.as_json()]}
        found = ServerResource(uuid4(), uuid4(), attributes, {"role": "web"}, data)
        return [found] if (project, server_id) == ("p", "web") else []

    monkeypatch.setattr(configs, "find_server_resources", find)
    return Objects()


async def a_change(software: Software, name: str) -> DeploymentChange:
    config = await software.create_config("p", NewConfig(name, "script", "true"))
    return DeploymentChange(config.id, {}, None, "CREATE", Status.COMPLETE, "")


def names(document: Json) -> list[str]:
    return [one["name"] for one in document["deployments"]]


async def test_what_changes_during_a_write_is_written_after_it(
    database: Database, objects: Objects
) -> None:
    """The other writer ends first, so that this one would leave an older document."""
    software = Software(database, new_id=uuid4, services=MetadataServices(objects))
    first, second = await a_change(software, "first"), await a_change(software, "second")
    objects.before = [lambda: software.deploy("p", "web", second)]
    await software.deploy("p", "web", first)
    assert [names(one) for one in objects.documents] == [
        ["first", "second"],
        ["first"],
        ["first", "second"],
    ]
    last = objects.documents[-1]
    assert last["role"] == "web" and last["os-collect-config"] == AGENT


async def test_a_request_that_cannot_be_written_is_refused_and_may_be_repeated(
    database: Database, objects: Objects
) -> None:
    software = Software(database, new_id=uuid4, services=MetadataServices(objects))

    async def fail() -> None:
        raise ServiceError("http://s/write: away", retry=True, public="Swift did not answer")

    change = await a_change(software, "one")
    objects.before = [fail]
    with pytest.raises(Unavailable, match="Swift did not answer") as caught:
        await software.deploy("p", "web", change)
    assert "http://s" not in str(caught.value)
    assert await software.deployments("p", "web") == []
    made = await software.deploy("p", "web", change)
    objects.before = [fail]
    values = DeploymentChange(None, {"a": 1}, None, None, None, None)
    with pytest.raises(Unavailable):
        await software.change_deployment("p", made.id, values)
    await software.change_deployment("p", made.id, values)
    objects.before = [fail]
    await software.delete_deployment("p", made.id)
    assert names(objects.documents[-1]) == ["one"]
    await software.deploy("p", "web", await a_change(software, "two"))
    assert names(objects.documents[-1]) == ["two"]


async def test_a_status_and_other_servers_write_nothing(
    database: Database, objects: Objects
) -> None:
    software = Software(database, new_id=uuid4, services=MetadataServices(objects))
    made = await software.deploy("p", "web", await a_change(software, "one"))
    await software.deploy("p", "other", await a_change(software, "two"))
    status = DeploymentChange(None, None, {"out": 1}, None, Status.FAILED, "r")
    await software.change_deployment("p", made.id, status)
    assert len(objects.documents) == 1
