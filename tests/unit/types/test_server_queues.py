"""Metadata of servers that are messages of Zaqar, without one."""

from collections.abc import Mapping
from dataclasses import replace

import orjson

from engine.types.contract import Call, Done, Failed, Wait
from engine.types.http_client import Response
from engine.types.openstack import openstack_types
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.zaqar.server_queues import QUEUE, TTL, ZaqarServerQueues
from engine.types.software.deployed_server import DeployedServer, ServerTransport
from engine.types.software.metadata_objects import (
    OBJECTS,
    MetadataObject,
    MetadataServices,
    objects_of,
)
from engine.words import Json
from tests.unit.types.calls import SERVERS, a_call, findings_of, run
from tests.unit.types.openstack.clouds import Answers, answer
from tests.unit.types.openstack.test_server_metadata import initial_metadata
from tests.unit.types.software.in_memory import InMemoryStore
from tests.unit.types.test_signal_queues import DOMAIN, StackIdentity

MESSAGES: Mapping[str, Json] = {"software_config_transport": "ZAQAR_MESSAGE"}
SETTINGS: Mapping[str, Json] = {"user_id": "1", "password": "secret", "queue_id": QUEUE}


class InMemoryQueues:
    """A Zaqar with one queue. documents: what was posted."""

    def __init__(self) -> None:
        self.documents: list[Json] = []
        self.secrets: list[str] = []
        self.exists = False

    async def create(self, call: Call, secret: str) -> MetadataObject:
        self.secrets.append(secret)
        self.exists = True
        return MetadataObject("", QUEUE, "user", settings=SETTINGS)

    async def write(self, target: MetadataObject, document: bytes) -> bool:
        assert self.exists and target.is_queue
        self.documents.append(orjson.loads(document))
        return True

    async def remove(self, call: Call) -> None:
        self.exists = False


def server_with(queues: InMemoryQueues) -> DeployedServer:
    return DeployedServer(ServerTransport(SERVERS, InMemoryStore(), MetadataServices(zaqar=queues)))


async def test_a_server_begins_with_the_credentials_of_its_queue() -> None:
    queues = InMemoryQueues()
    type_ = server_with(queues)
    assert findings_of(type_, MESSAGES) == []
    call = a_call(type_, MESSAGES)
    assert not type_.needs_credential(call)
    made = await run(type_, "create", call)
    assert isinstance(made, Done)
    assert made.attributes["os_collect_config"] == {
        "collectors": ["zaqar", "local"], "zaqar": SETTINGS
    }  # fmt: skip
    (posted,) = queues.documents
    assert posted["os-collect-config"]["zaqar"] == SETTINGS
    (kept,) = objects_of(made.data)
    assert kept.is_queue and kept.settings == SETTINGS


async def test_a_queue_keeps_its_credentials_and_says_which_transport_comes_next() -> None:
    queues = InMemoryQueues()
    type_ = server_with(queues)
    made = await run(type_, "create", a_call(type_, MESSAGES))
    assert isinstance(made, Done)
    again = a_call(
        type_, {**MESSAGES, "name": "n"}, data=made.data, attributes=made.attributes,
        physical_id=made.physical_id,
    )  # fmt: skip
    updated = await run(type_, "update", again)
    assert isinstance(updated, Done) and len(queues.secrets) == 1 and len(queues.documents) == 2
    other = replace(again, properties={"software_config_transport": "POLL_SERVER_CFN"})
    changed = await run(type_, "update", other)
    assert isinstance(changed, Done) and changed.data[OBJECTS] == made.data[OBJECTS]
    settings = queues.documents[-1]["os-collect-config"]
    assert settings["collectors"] == ["cfn", "local"]
    assert settings["zaqar"] == dict.fromkeys(SETTINGS)
    gone = a_call(
        type_, {"software_config_transport": "POLL_SERVER_CFN"}, data=changed.data,
        physical_id=made.physical_id,
    )  # fmt: skip
    assert isinstance(await run(type_, "delete", gone), Done) and not queues.exists


async def test_a_server_of_nova_gets_the_credentials_in_its_user_data() -> None:
    queues = InMemoryQueues()
    web = Answers(
        answer(200, {"flavors": [{"id": "f", "name": "f"}]}),
        answer(200, {"flavor": {"id": "f", "name": "f"}}),
        answer(200, {"images": [{"id": "i", "name": "i"}]}),
        answer(202, {"server": {"id": "new"}}),
    )  # fmt: skip
    services = MetadataServices(zaqar=queues)
    types = openstack_types(Cloud(web, StackIdentity()), InMemoryStore(), SERVERS, services)
    (type_,) = [one for one in types if one.schema.name == "OS::Nova::Server"]
    properties = {
        "flavor": "f", "image": "i", "user_data_format": "SOFTWARE_CONFIG", **MESSAGES,
        "networks": [{"allocate_network": "none"}],
    }  # fmt: skip
    assert findings_of(type_, properties) == []
    outcome = await run(type_, "create", a_call(type_, properties, credential="t"))
    assert isinstance(outcome, Wait)
    request = orjson.loads(web.requests[-1].body or b"")["server"]
    found = initial_metadata(request["user_data"])
    assert found["os-collect-config"]["zaqar"] == SETTINGS
    assert queues.documents[0]["os-collect-config"] == found["os-collect-config"]
    (kept,) = objects_of(outcome.progress)
    assert kept.is_queue


def queues_with(*answers: Response) -> tuple[ZaqarServerQueues, Answers]:
    web = Answers(*answers)
    return ZaqarServerQueues(Cloud(web, StackIdentity()), DOMAIN, "http://keystone"), web


def the_call() -> Call:
    return a_call(server_with(InMemoryQueues()), MESSAGES)


async def test_the_settings_are_those_that_agents_read() -> None:
    queues, web = queues_with(
        answer(200, {"roles": [{"id": "r"}]}), answer(201, {"project": {"id": "p1"}}),
        answer(204), answer(201, {"user": {"id": "u1"}}), answer(204), answer(201),
    )  # fmt: skip
    made = await queues.create(the_call(), "secret of the server")
    password = orjson.loads(web.requests[3].body or b"")["user"]["password"]
    assert made.settings == {
        "user_id": "u1", "password": password, "auth_url": "http://keystone/v3",
        "project_id": "p1", "queue_id": QUEUE, "region_name": "north",
    }  # fmt: skip
    assert password not in repr(made)
    assert objects_of({OBJECTS: [made.as_json()]}) == [made]


async def test_a_message_lives_as_long_as_zaqar_allows() -> None:
    target = MetadataObject("", QUEUE, "user", settings=SETTINGS)
    queues, web = queues_with(answer(201))
    assert await queues.write(target, b'{"a": 1}')
    (sent,) = [orjson.loads(one.body or b"") for one in web.requests]
    assert sent == {"messages": [{"body": {"a": 1}, "ttl": TTL}]}
    queues, web = queues_with(answer(400, {"title": "Bad request"}), answer(201))
    assert await queues.write(target, b'{"a": 1}')
    assert orjson.loads(web.requests[1].body or b"") == {"messages": [{"body": {"a": 1}}]}


async def test_a_cloud_without_zaqar_fails_the_server_with_the_reason() -> None:
    class NoZaqar(StackIdentity):
        async def endpoint(self, service: Json, token: str, region: str) -> str | None:
            return None

    queues = ZaqarServerQueues(Cloud(Answers(), NoZaqar()), DOMAIN, "http://keystone")
    services = MetadataServices(zaqar=queues)
    type_ = DeployedServer(ServerTransport(SERVERS, InMemoryStore(), services))
    failed = await run(type_, "create", a_call(type_, MESSAGES))
    assert isinstance(failed, Failed) and "the service catalog does not have" in failed.reason
