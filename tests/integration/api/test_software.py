"""Software configs and deployments."""

import asyncio
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from tests.support.access import table_text
from tests.support.program import Json, Program

CONFIGS, DEPLOYMENTS = "/software_configs", "/software_deployments"
IO: Json = {
    "inputs": [{"name": "token"}, {"name": "size", "type": "Number", "default": 3}],
    "outputs": [{"name": "done"}],
}


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


async def create_config(run: Program, **body: Json) -> Json:
    status, response = await run.call("POST", CONFIGS, {"name": "c", "config": "true", **body})
    assert status == 200, response
    return response["software_config"]


async def create_deployment(run: Program, **body: Json) -> Json:
    status, response = await run.call("POST", DEPLOYMENTS, {"server_id": "web-1", **body})
    assert status == 200, response
    return response["software_deployment"]


async def test_a_config_is_stored_with_default_types(running: Program) -> None:
    config = await create_config(running, group="script", options={"a": [1]}, **IO)
    assert config["inputs"] == [
        {"name": "token", "type": "String", "replace_on_change": False},
        {"name": "size", "type": "Number", "default": 3, "replace_on_change": False},
    ]
    assert config["outputs"] == [{"name": "done", "type": "String", "error_output": False}]
    _, response = await running.call("GET", f"{CONFIGS}/{config['id']}")
    assert response["software_config"] == config
    plain = await create_config(running, config={"a": {"b": 1}}, inputs=None)
    assert (plain["group"], plain["config"], plain["inputs"]) == (
        "Heat::Ungrouped", {"a": {"b": 1}}, [],
    )  # fmt: skip
    _, response = await running.call("GET", CONFIGS)
    assert [one["id"] for one in response["software_configs"]] == [plain["id"], config["id"]]
    assert response["software_configs"][0].keys() == {
        "id",
        "name",
        "group",
        "creation_time",
        "project",
    }


async def test_configs_are_listed_in_pages_and_for_all_projects(running: Program) -> None:
    ids = [(await create_config(running, name=f"c{number}"))["id"] for number in range(5)]
    seen: list[str] = []
    while True:
        marker = f"&marker={seen[-1]}" if seen else ""
        _, response = await running.call("GET", f"{CONFIGS}?limit=2{marker}")
        if not response["software_configs"]:
            break
        seen += [one["id"] for one in response["software_configs"]]
        assert len(seen) <= len(ids)
    assert seen == ids[::-1]
    await running.call("POST", f"//v1/q{CONFIGS}", {"name": "other"})
    _, response = await running.call("GET", f"{CONFIGS}?global_tenant=True")
    projects = [one["project"] for one in response["software_configs"]]
    assert projects == ["q", *[running.project] * 5]


INVALID_BODIES: list[tuple[str, Json, str]] = [
    (CONFIGS, {"inputs": {}}, "inputs"),
    (CONFIGS, {"inputs": [{"type": "String"}]}, "inputs.0.name"),
    (CONFIGS, {"inputs": [{"name": "a", "type": "Text"}]}, "inputs.0.type"),
    (CONFIGS, {"inputs": [{"name": "a", "size": 1}]}, "inputs.0.size"),
    (CONFIGS, {"outputs": [{"name": "a", "error_output": "perhaps"}]}, "outputs.0"),
    (CONFIGS, {"options": []}, "options"),
    (CONFIGS, {"config": 5}, "config"),
    (CONFIGS, {"name": 5}, "name"),
    (DEPLOYMENTS, {"server_id": "s"}, "config_id"),
    (DEPLOYMENTS, {"config_id": str(uuid4())}, "server_id"),
    (DEPLOYMENTS, {"config_id": "c", "server_id": 5}, "server_id"),
    (DEPLOYMENTS, {"config_id": "c", "server_id": "s", "status": "DONE"}, "status"),
    (DEPLOYMENTS, {"config_id": "c", "server_id": "s", "action": 5}, "action"),
    (DEPLOYMENTS, {"config_id": "c", "server_id": "s", "input_values": "s3cret"}, "input_val"),
]


async def test_invalid_bodies_are_refused_with_their_place(running: Program) -> None:
    for path, body, expected in INVALID_BODIES:
        status, response = await running.call("POST", path, body)
        assert status == 400 and expected in response["error"]["message"], response
        assert "s3cret" not in str(response)


async def test_a_deployment_is_created_updated_and_deleted(running: Program) -> None:
    config = await create_config(running, **IO)
    one = await create_deployment(
        running, config_id=config["id"], action="CREATE", status="IN_PROGRESS"
    )
    path = f"{DEPLOYMENTS}/{one['id']}"
    assert (one["input_values"], one["output_values"], one["status_reason"]) == ({}, None, "")
    assert "updated_time" not in one
    ended = {"status": "COMPLETE", "status_reason": "fine", "output_values": {"done": "yes"}}
    _, response = await running.call("PUT", path, ended)
    changed = response["software_deployment"]
    assert {key: changed[key] for key in ended} == ended and changed["updated_time"]
    assert (changed["action"], changed["config_id"]) == ("CREATE", config["id"])
    other = await create_config(running, name="other")
    await running.call("PUT", path, {"config_id": other["id"], "status": "IN_PROGRESS"})
    _, response = await running.call("GET", path)
    assert response["software_deployment"]["config_id"] == other["id"]
    assert response["software_deployment"]["output_values"] == {"done": "yes"}
    assert (await running.call("DELETE", path))[0] == 204
    for method in ("GET", "DELETE", "PUT"):
        status, response = await running.call(method, path, {} if method == "PUT" else None)
        assert (status, response["error"]["type"]) == (404, "NotFound")


async def test_a_server_gets_its_configs_with_the_values_of_each_deployment(
    running: Program,
) -> None:
    second = await create_config(running, name="b", **IO)
    first = await create_config(running, name="a", inputs=[{"name": "x", "value": "own"}])
    values = {"token": "s3cret", "more": 1}
    await create_deployment(running, config_id=second["id"], input_values=values)
    await create_deployment(running, config_id=second["id"], input_values={"size": 9})
    await create_deployment(running, config_id=first["id"])
    await create_deployment(running, config_id=first["id"], server_id="web-2")
    _, response = await running.call("GET", f"{DEPLOYMENTS}/metadata/web-1")
    listed = [
        (one["name"], {given["name"]: given.get("value") for given in one["inputs"]})
        for one in response["metadata"]
    ]
    assert listed == [
        ("a", {"x": "own"}), ("b", {"token": "s3cret", "size": None}),
        ("b", {"token": None, "size": 9}),
    ]  # fmt: skip
    _, response = await running.call("GET", f"{CONFIGS}/{second['id']}")
    assert response["software_config"] == second
    _, response = await running.call("GET", f"{DEPLOYMENTS}?server_id=web-2")
    assert [one["config_id"] for one in response["software_deployments"]] == [first["id"]]
    _, response = await running.call("GET", f"{DEPLOYMENTS}/metadata/none")
    assert response == {"metadata": []}


async def test_a_config_in_use_cannot_be_deleted(running: Program) -> None:
    config = await create_config(running)
    one = await create_deployment(running, config_id=config["id"])
    path = f"{CONFIGS}/{config['id']}"
    status, response = await running.call("DELETE", path)
    assert (status, response["error"]["type"]) == (400, "InvalidRestrictedAction")
    assert (await running.call("DELETE", f"{DEPLOYMENTS}/{one['id']}"))[0] == 204
    assert (await running.call("DELETE", path))[0] == 204
    assert (await running.call("DELETE", path))[0] == 404


async def test_concurrent_use_and_deletion_of_a_config(running: Program) -> None:
    """One of the two is refused; a deployment without its config is never stored."""
    for _ in range(20):
        config = await create_config(running)
        body = {"config_id": config["id"], "server_id": "s"}
        (used, _), (deleted, _) = await asyncio.gather(
            running.call("POST", DEPLOYMENTS, body),
            running.call("DELETE", f"{CONFIGS}/{config['id']}"),
        )
        assert (used, deleted) in {(200, 400), (404, 204)}


async def test_software_of_another_project_is_not_found(running: Program) -> None:
    config = await create_config(running)
    one = await create_deployment(running, config_id=config["id"])
    for method, path, body in (
        ("GET", f"{CONFIGS}/{config['id']}", None), ("DELETE", f"{CONFIGS}/{config['id']}", None),
        ("GET", f"{DEPLOYMENTS}/{one['id']}", None), ("DELETE", f"{DEPLOYMENTS}/{one['id']}", None),
        ("PUT", f"{DEPLOYMENTS}/{one['id']}", {"status": "FAILED"}),
        ("POST", DEPLOYMENTS, {"config_id": config["id"], "server_id": "s"}),
        ("GET", f"{CONFIGS}/no-id", None), ("GET", f"{DEPLOYMENTS}/no-id", None),
    ):  # fmt: skip
        status, response = await running.call(method, f"//v1/q{path}", body)
        assert (status, response["error"]["type"]) == (404, "NotFound")
    for path in (CONFIGS, DEPLOYMENTS, f"{DEPLOYMENTS}/metadata/web-1"):
        _, response = await running.call("GET", f"//v1/q{path}")
        assert list(response.values()) == [[]]
    theirs = await running.call("POST", f"//v1/q{CONFIGS}", {"name": "theirs"})
    path = f"{DEPLOYMENTS}/{one['id']}"
    body = {"config_id": theirs[1]["software_config"]["id"]}
    assert (await running.call("PUT", path, body))[0] == 404


async def test_values_are_never_in_the_log(running: Program) -> None:
    config = await create_config(running, inputs=[{"name": "token"}])
    with capture_logs() as logs:
        one = await create_deployment(
            running, config_id=config["id"], input_values={"token": "s3cret"}
        )
        path = f"{DEPLOYMENTS}/{one['id']}"
        await running.call("PUT", path, {"output_values": {"key": "s3cret"}, "status": "s3cret"})
        await running.call("PUT", path, {"output_values": {"key": "s3cret"}})
        await running.call("GET", f"{DEPLOYMENTS}/metadata/web-1")
    assert len(logs) >= 4 and "s3cret" not in str(logs)


async def test_scripts_and_values_are_encrypted_at_rest(running: Program) -> None:
    inputs = [{"name": "token", "default": "s3cret"}]
    config = await create_config(running, config="echo s3cret", inputs=inputs)
    one = await create_deployment(running, config_id=config["id"], input_values={"token": "s3cret"})
    await running.call("PUT", f"{DEPLOYMENTS}/{one['id']}", {"output_values": {"token": "s3cret"}})
    for table in ("software_config", "software_deployment"):
        kept = await table_text(running.database, table)
        assert kept and "s3cret" not in kept
    _, response = await running.call("GET", f"{DEPLOYMENTS}/metadata/web-1")
    assert str(response).count("s3cret") == 3
