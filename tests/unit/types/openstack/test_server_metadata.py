"""Metadata of servers in Swift: the requests of OS::Nova::Server and of the object store."""

import base64
from email import message_from_string
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest

from engine.types.contract import Wait
from engine.types.http_client import NoResponse
from engine.types.openstack.cloud import Cloud
from engine.types.openstack.service_errors import CloudError
from engine.types.openstack.swift.server_objects import SwiftServerObjects
from engine.types.software.metadata_objects import OBJECTS, MetadataObject, default_name
from engine.words import Json
from tests.unit.types.calls import a_call, findings_of, run
from tests.unit.types.openstack.clouds import Answers, Renewing, answer, type_with

SERVER = "OS::Nova::Server"
POLL: Json = {
    "flavor": "f", "image": "i", "user_data_format": "SOFTWARE_CONFIG",
    "software_config_transport": "POLL_TEMP_URL", "networks": [{"allocate_network": "none"}],
}  # fmt: skip
TARGET = MetadataObject("c", "o", "own", "http://s/c/o?read", "http://s/c/o?write")


def objects(*answers: Any) -> tuple[Answers, SwiftServerObjects]:
    web = Answers(*answers)
    return web, SwiftServerObjects(Cloud(web, Renewing()), lambda *names: f"key of {names}")


def initial_metadata(user_data: str) -> Json:
    """The data of the agent in the user data of a server."""
    parts = message_from_string(base64.b64decode(user_data).decode()).walk()
    texts = [bytes(one.get_payload(decode=True) or b"").decode() for one in parts]
    (line,) = [one for text in texts for one in text.splitlines() if "cfn-init-data ]" in one]
    encoded = line.partition("echo ")[2].partition(" |")[0]
    return orjson.loads(base64.b64decode(encoded))


async def test_a_server_begins_with_the_url_of_its_metadata() -> None:
    """The container and the object exist before the server does."""
    web = Answers(
        answer(404), answer(201), answer(201),
        answer(200, {"flavors": [{"id": "f", "name": "f"}]}),
        answer(200, {"flavor": {"id": "f", "name": "f"}}),
        answer(200, {"images": [{"id": "i", "name": "i"}]}),
        answer(202, {"server": {"id": "new"}}),
    )  # fmt: skip
    type_ = type_with(web, SERVER)
    call = a_call(type_, POLL, credential="t", metadata={"role": "web"})
    outcome = await run(type_, "create", call)
    assert isinstance(outcome, Wait), outcome
    name = default_name(call)
    sent = [(one.method, urlsplit(one.url).path) for one in web.requests]
    assert sent[:3] == [("HEAD", f"/{name}"), ("PUT", f"/{name}"), ("PUT", f"/{name}/{name}")]
    assert sent[-1] == ("POST", "/servers")
    assert web.requests[1].headers["X-Container-Meta-Temp-URL-Key"]
    (kept,) = outcome.progress[OBJECTS]
    request = orjson.loads(web.requests[-1].body or b"")["server"]
    found = initial_metadata(request["user_data"])
    assert found["role"] == "web"
    assert found["os-collect-config"]["request"] == {"metadata_url": kept["read_url"]}
    written = orjson.loads(web.requests[2].body or b"")
    assert written == found and "X-Auth-Token" not in web.requests[2].headers
    assert web.requests[2].url == kept["write_url"]


async def test_a_container_with_a_key_keeps_it_and_gets_no_mark() -> None:
    web, store = objects(answer(204, x_container_meta_temp_url_key="theirs"))
    call = a_call(type_with(web, SERVER), POLL, credential="t")
    found = await store.create(call, "c", "o")
    assert len(web.requests) == 1 and found.owner == call.resource_id.hex
    web, store = objects(answer(204), answer(202))
    await store.create(call, "c", "o")
    headers = {one.lower() for one in web.requests[1].headers}
    assert "x-container-meta-temp-url-key" in headers
    assert "x-container-meta-headgate-servers" not in headers


@pytest.mark.parametrize(("status", "written"), [(201, True), (401, False), (404, False)])
async def test_a_write_says_whether_the_url_is_valid(status: int, written: bool) -> None:
    web, store = objects(answer(status))
    assert await store.write(TARGET, b"{}") is written
    assert web.requests[0].headers["X-Object-Meta-Headgate-Server"] == "own"


@pytest.mark.parametrize(
    "fault", [answer(503), NoResponse("reset", retry=True)], ids=["busy", "away"]
)
async def test_a_write_to_a_swift_that_is_away_is_tried_again(fault: Any) -> None:
    _, store = objects(fault)
    with pytest.raises(CloudError) as caught:
        await store.write(TARGET, b"{}")
    assert caught.value.retry and "http://s" not in str(caught.value)


async def test_the_object_of_another_server_stays() -> None:
    """A replacement has written the same object before the old server is deleted."""
    web, store = objects(
        answer(200, []), answer(200, []), answer(200, x_object_meta_headgate_server="other"),
        answer(204, x_container_meta_headgate_servers="created"), answer(409),
    )  # fmt: skip
    call = a_call(type_with(web, SERVER), POLL, credential="t")
    await store.remove(call, [("c", "o")], "p")
    sent = [(one.method, urlsplit(one.url).path) for one in web.requests]
    assert sent[-1] == ("DELETE", "/c") and ("DELETE", "/c/o") not in sent


def test_the_transport_is_accepted_on_a_cloud() -> None:
    type_ = type_with(Answers(), SERVER)
    assert not findings_of(type_, POLL)
    assert findings_of(type_, POLL | {"software_config_transport": "ZAQAR_MESSAGE"})
