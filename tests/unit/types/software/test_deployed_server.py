"""OS::Heat::DeployedServer: the settings of its agent, and transports."""

from dataclasses import replace
from uuid import UUID

import pytest

from engine.hooks.derived_tokens import TokenKeys
from engine.types.contract import Done, Failed
from engine.types.software.deployed_server import (
    DeployedServer,
    ServerTransport,
    ServerUrls,
    access_key,
    owner_of,
)
from engine.words import Json
from tests.unit.types.calls import KEY, STACK, a_call, findings_of
from tests.unit.types.software.in_memory import InMemoryStore

URLS = ServerUrls(TokenKeys.single(b"k" * 32), "http://h", "http://keystone/v3")
RESOURCE = UUID(int=2)


def type_of(urls: ServerUrls = URLS) -> DeployedServer:
    return DeployedServer(ServerTransport(urls, InMemoryStore()))


async def create(properties: Json, **more: Json) -> Done:
    type_ = type_of()
    outcome = await type_.create(a_call(type_, properties, **more))
    assert isinstance(outcome, Done)
    return outcome


async def test_the_agent_authenticates_with_its_own_key() -> None:
    done = await create({})
    assert done.physical_id == str(KEY)
    assert done.attributes == {
        "name": "s-r-111111112222",
        "os_collect_config": {
            "collectors": ["cfn", "local"],
            "cfn": {
                "metadata_url": "http://h/cfn/v1/",
                "access_key_id": access_key(STACK, RESOURCE),
                "secret_access_key": URLS.secret_of(STACK, RESOURCE),
                "stack_name": "s",
                "path": "r.Metadata",
            },
        },
    }
    assert owner_of(access_key(STACK, RESOURCE)) == (STACK, RESOURCE)


@pytest.mark.parametrize("name", ["web.1", "web 1", "web\n1", "w\u00e9b[0].x", "."])
async def test_an_agent_can_divide_the_path_with_each_name_of_a_resource(name: str) -> None:
    settings = (await create({}, resource_name=name)).attributes["os_collect_config"]["cfn"]
    resource, field = settings["path"].split(".", 1)  # as os-collect-config does
    assert field == "Metadata"
    assert resource and resource.isascii() and resource.isprintable() and " " not in resource


def test_each_server_has_its_own_key() -> None:
    secrets = {
        urls.secret_of(stack, resource)
        for urls in (URLS, replace(URLS, keys=TokenKeys.single(b"l" * 32)))
        for stack in (UUID(int=1), UUID(int=3))
        for resource in (UUID(int=2), UUID(int=4))
    }
    assert len(secrets) == 8
    for key in ("", "x", "0" * 63, "0" * 65, f"{{{UUID(int=1).hex}}}{UUID(int=2).hex}"):
        assert owner_of(key) is None


async def test_the_keystone_transport_clears_the_settings_of_other_transports() -> None:
    before = await create({})
    type_ = type_of()
    call = a_call(
        type_,
        {"software_config_transport": "POLL_SERVER_HEAT", "name": "web"},
        physical_id=before.physical_id,
        attributes=before.attributes,
        data=before.data,
        operation_key=UUID(int=7),
    )
    after = await type_.update(call)
    assert isinstance(after, Done)
    assert after.physical_id == before.physical_id
    assert after.attributes["name"] == "web"
    asking = after.attributes["os_collect_config"]
    assert asking["collectors"] == ["heat", "local"]
    assert asking["heat"] == {
        "auth_url": "http://keystone/v3",
        "project_id": "p",
        "stack_id": f"s/{STACK}",
        "resource_name": "r",
    }
    assert set(asking["cfn"]) == set(before.attributes["os_collect_config"]["cfn"])
    assert set(asking["cfn"].values()) == {None}


async def test_a_server_without_a_name_keeps_its_generated_name() -> None:
    before = await create({})
    type_ = type_of()
    call = a_call(type_, {}, data=before.data, operation_key=UUID(int=7))
    after = await type_.update(call)
    assert isinstance(after, Done) and after.attributes["name"] == before.attributes["name"]


async def test_a_queue_that_headgate_cannot_delete_stays_known_and_the_delete_fails() -> None:
    """The operator has removed the setting too early."""
    queue = {"container": "", "name": "server-metadata", "owner": "o", "settings": {}}
    data = {"name": "web", "metadata_objects": [queue]}
    type_ = type_of()
    call = a_call(type_, {"software_config_transport": "POLL_SERVER_CFN"}, data=data)
    updated = await type_.update(replace(call, physical_id="1"))
    assert isinstance(updated, Done) and updated.data == data
    failed = await type_.delete(replace(call, physical_id="1", data=updated.data))
    assert isinstance(failed, Failed) and not failed.retry
    assert "[resource_types.openstack.stack_users]" in failed.public_reason
    assert isinstance(await type_.delete(replace(call, data={"name": "web"})), Done)


@pytest.mark.parametrize(
    ("transport", "keystone", "message"),
    [
        ("POLL_TEMP_URL", True, "needs a service"),
        ("ZAQAR_MESSAGE", True, "needs a service"),
        ("POLL_SERVER_HEAT", False, "needs Keystone"),
        ("POLL_SERVER_HEAT", True, ""),
        ("POLL_SERVER_CFN", False, ""),
    ],
)
def test_unsupported_transports_of_server_configs_are_refused(
    transport: str, keystone: bool, message: str
) -> None:
    type_ = type_of(URLS if keystone else replace(URLS, keystone=""))
    found = findings_of(type_, {"software_config_transport": transport})
    assert [one.place for one in found] == (
        ["resources.r.properties.software_config_transport"] if message else []
    )
    assert all(message in one.reason and "POLL_SERVER_CFN" in one.remedy for one in found)
