"""Existing objects of a real HTTP service are read, and a stack takes them over without a change."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest
import yaml

from tests.support import forks
from tests.support.http_things import HTTP_SETTINGS, Things, lend_credential, serve_things, thing
from tests.support.program import Json, Program, program


@pytest.fixture
async def things() -> AsyncIterator[Things]:
    async with serve_things() as service:
        service.objects = {
            "t1": {"id": "t1", "state": "ready", "size": 7},
            "t2": {"id": "t2", "state": "ready", "size": 1},
            "bad": {"id": "bad", "state": "broken", "size": 1},
        }
        yield service


@pytest.fixture
async def run(database_url: str, things: Things) -> AsyncIterator[Program]:
    async with program(database_url, HTTP_SETTINGS | lend_credential(things)) as running:
        yield running


def given(things: Things, **more: Json) -> Json:
    return thing(things, listed=False, **more)["properties"]


async def headgate(run: Program, *arguments: str) -> tuple[int, str, str]:
    command = (*arguments, "--url", run.url, "--project", run.project)
    done = await asyncio.to_thread(forks.run, command, {**os.environ, "HEADGATE_ROLES": ""})
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


async def read(run: Program, *resources: Json) -> Json:
    status, document = await run.call("POST", "/import", {"resources": list(resources)})
    assert status == 200, document
    return document


async def test_errors_name_place_reason_and_remedy_and_leave_the_others_alone(
    run: Program, things: Things
) -> None:
    http = {"type": "Headgate::HTTP", "properties": given(things)}
    found = await read(
        run,
        http | {"id": "t1"},
        http | {"id": "missing"},
        http | {"id": "bad"},
        {"type": "Headgate::HTTP", "id": "t2"},
        {"type": "Headgate::HTPP", "id": "t2"},
        {"type": "OS::Heat::Value", "id": "v"},
        http | {"id": "t1"},
        http | {"id": "t3", "properties": given(things, timeout="long")},
    )
    assert [(one["place"], one["code"]) for one in found["findings"]] == [
        ("resources[1].id", "EntityNotFound"),
        ("resources[2].id", "ImportNotSupported"),
        ("resources[3].properties", "Invalid"),
        ("resources[4].type", "EntityNotFound"),
        ("resources[5].type", "ImportNotSupported"),
        ("resources[6].id", "StackValidationFailed"),
        ("resources[7].properties.timeout", "StackValidationFailed"),
    ]
    assert all(one["reason"] and one["remedy"] for one in found["findings"])
    template = yaml.safe_load(found["template"])
    assert list(template["resources"]) == ["http"]
    assert template["resources"]["http"]["properties"]["compare"] == {"$.size": 7}
    assert template["resources"]["http"]["properties"]["update"]["body"] == {"size": 7}
    status, _ = await run.call("POST", "/validate", {"template": found["template"]})
    assert status == 200
    things.faults = [403]
    (error,) = (await read(run, http | {"id": "t1"}))["findings"]
    assert error["code"] == "Forbidden"


async def test_an_object_is_imported_by_the_id_that_the_service_returns(
    run: Program, things: Things
) -> None:
    things.objects["first"] = things.objects["t1"]  # the service knows it by a second name
    (wrong,) = (
        await read(run, {"type": "Headgate::HTTP", "id": "first", "properties": given(things)})
    )["findings"]
    assert (wrong["place"], wrong["code"]) == ("resources[0].id", "Invalid")
    assert 'it has the ID "t1" at $.id' in wrong["reason"]
    assert wrong["remedy"] == "Import the object by the ID that the response has."


async def test_a_stack_takes_over_what_exists_without_changing_it(
    run: Program, things: Things, tmp_path: Path
) -> None:
    file = tmp_path / "thing.yaml"
    file.write_text(yaml.safe_dump(given(things)))
    which = ["Headgate::HTTP", "t1", "Headgate::HTTP", "t2"]
    options = ["--properties", f"t1={file}", "--properties", f"t2={file}"]
    before = orjson.dumps(things.objects)

    code, template, _ = await headgate(run, "import", *which, *options)
    assert code == 0
    assert [one["id"] for one in yaml.safe_load(template)["import"]] == ["t1", "t2"]
    code, plan, _ = await headgate(
        run, "stack", "from-resources", "s", *which, *options, "--dry-run"
    )
    assert code == 0 and "imported: t1" in plan
    code, _, asked = await headgate(run, "stack", "from-resources", "s", *which, *options)
    assert code == 1 and "--yes" in asked  # without a terminal
    assert (await run.call("GET", "/stacks"))[1]["stacks"] == []

    done = await headgate(
        run, "stack", "from-resources", "s", *which, *options, "--yes", "--wait", "-o", "json"
    )
    assert done[0] == 0, done
    resources = await run.resources("s")
    assert {one["physical_resource_id"] for one in resources.values()} == {"t1", "t2"}
    assert things.requests.keys() == {"read"} and orjson.dumps(things.objects) == before
    # The template is what exists: an update with it changes nothing, and a delete deletes it.
    code, _, _ = await headgate(run, "stack", "update", "s", "--existing", "--wait")
    assert code == 0 and things.requests.keys() == {"read"}
    code, _, _ = await headgate(run, "stack", "delete", "s", "--yes", "--wait")
    assert code == 0
    assert things.objects.keys() == {"bad"}


async def test_an_imported_text_is_no_placeholder(run: Program, things: Things) -> None:
    things.objects["t1"]["size"] = text = "${id} and $${key}"
    properties = given(things)
    found = await read(run, {"type": "Headgate::HTTP", "id": "t1", "properties": properties})
    template = yaml.safe_load(found["template"])
    (resource,) = template["resources"].values()
    assert resource["properties"]["compare"] == {"$.size": "$${id} and $$${key}"}
    body = {"stack_name": "s", "template": found["template"]}
    status, stack = await run.call("POST", "/stacks", body)
    assert status == 201, stack
    assert await run.until_ended("s") == "CREATE_COMPLETE", await run.events("s")
    for request in ("create", "update"):
        resource["properties"][request]["body"]["color"] = "red"
    await run.stack_request("PUT", "s", "", {"template": yaml.safe_dump(template)})
    assert await run.until_ended("s") == "UPDATE_COMPLETE", await run.events("s")
    assert (things.objects["t1"]["size"], things.objects["t1"]["color"]) == (text, "red")


async def test_a_plan_that_would_change_something_is_refused_with_the_property(
    run: Program, things: Things, tmp_path: Path
) -> None:
    # `update` may send the size elsewhere, so the template cannot have the size of the object.
    properties = given(things, update={"url": "/things/${id}?size=1", "body": {"size": 1}})
    file = tmp_path / "thing.yaml"
    file.write_text(yaml.safe_dump(properties))
    which = ["Headgate::HTTP", "t1", "--properties", f"t1={file}", "--yes"]
    code, _, message = await headgate(run, "stack", "from-resources", "s", *which)
    assert code == 1
    assert "nothing was changed" in message and "$.size" in message and "7" in message
    assert (await run.call("GET", "/stacks"))[1]["stacks"] == []
    assert things.requests.keys() == {"read"}


async def test_an_import_refuses_each_request_that_can_change_something(
    run: Program, things: Things
) -> None:
    url = "/things/${id}"
    requests: list[tuple[str, Json]] = [
        *(("method", {"url": url, "method": one}) for one in ("POST", "PUT", "PATCH", "DELETE")),
        ("body", {"url": url, "body": {"force": True}}),
        ("headers.X-HTTP-Method-Override",
         {"url": url, "headers": {"X-HTTP-Method-Override": "DELETE"}}),
    ]  # fmt: skip
    for place, request in requests:
        properties = given(things, credential="lent", read=request)
        (wrong,) = (
            await read(run, {"type": "Headgate::HTTP", "id": "t1", "properties": properties})
        )["findings"]
        assert wrong["place"] == f"resources[0].properties.read.{place}"
        assert wrong["reason"].startswith("an import sends") and wrong["remedy"]
    assert things.requests.total() == 0 and "t1" in things.objects


async def test_headers_of_the_file_are_hidden_parameters_of_the_stack(
    run: Program, things: Things, tmp_path: Path
) -> None:
    url, secret = "/things/${id}", "Bearer s3cr3t-of-the-file"
    headers = {"Authorization": secret, "Accept": "application/json"}
    properties = given(things, credential="lent", read={"url": url, "headers": headers})
    file = tmp_path / "thing.yaml"
    file.write_text(yaml.safe_dump(properties))
    which = ["Headgate::HTTP", "t1", "--properties", f"t1={file}"]

    code, template, message = await headgate(run, "import", *which)
    assert code == 0 and secret not in template + message
    name = "http_read_headers_Authorization"
    assert yaml.safe_load(template)["parameters"] == {name: {"type": "string", "hidden": True}}
    assert f"-P {name}=VALUE" in message

    options = [*which, "-P", f"{name}={secret}", "--yes", "--wait"]
    code, shown, message = await headgate(run, "stack", "from-resources", "s", *options)
    assert code == 0, message
    assert secret not in shown + message
    _, stored = await run.call("GET", "/stacks/s/template")
    assert secret not in orjson.dumps(stored).decode()
    assert things.requests.keys() == {"read"}
