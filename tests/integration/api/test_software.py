"""Software configs and deployments: what is taken, kept, shown, and refused."""

import asyncio
from uuid import uuid4

from structlog.testing import capture_logs

from tests.support.access import everything_in
from tests.support.program import Json, Program

CONFIGS, DEPLOYMENTS = "/software_configs", "/software_deployments"
IO: Json = {
    "inputs": [{"name": "token"}, {"name": "size", "type": "Number", "default": 3}],
    "outputs": [{"name": "done"}],
}


async def made(run: Program, **body: Json) -> Json:
    status, said = await run.call("POST", CONFIGS, {"name": "c", "config": "true", **body})
    assert status == 200, said
    return said["software_config"]


async def deployed(run: Program, **body: Json) -> Json:
    status, said = await run.call("POST", DEPLOYMENTS, {"server_id": "web-1", **body})
    assert status == 200, said
    return said["software_deployment"]


async def test_a_config_is_kept_as_sent_with_the_types_of_what_it_takes(running: Program) -> None:
    config = await made(running, group="script", options={"a": [1]}, **IO)
    assert config["inputs"] == [
        {"name": "token", "type": "String", "replace_on_change": False},
        {"name": "size", "type": "Number", "default": 3, "replace_on_change": False},
    ]
    assert config["outputs"] == [{"name": "done", "type": "String", "error_output": False}]
    _, said = await running.call("GET", f"{CONFIGS}/{config['id']}")
    assert said["software_config"] == config
    plain = await made(running, config={"a": {"b": 1}}, inputs=None)
    assert (plain["group"], plain["config"], plain["inputs"]) == (
        "Heat::Ungrouped", {"a": {"b": 1}}, [],
    )  # fmt: skip
    _, said = await running.call("GET", CONFIGS)
    assert [one["id"] for one in said["software_configs"]] == [plain["id"], config["id"]]
    assert said["software_configs"][0].keys() == {"id", "name", "group", "creation_time", "project"}


async def test_configs_are_listed_a_page_at_a_time_and_of_every_project(running: Program) -> None:
    ids = [(await made(running, name=f"c{number}"))["id"] for number in range(5)]
    seen: list[str] = []
    while True:
        marker = f"&marker={seen[-1]}" if seen else ""
        _, said = await running.call("GET", f"{CONFIGS}?limit=2{marker}")
        if not said["software_configs"]:
            break
        seen += [one["id"] for one in said["software_configs"]]
        assert len(seen) <= len(ids)
    assert seen == ids[::-1]
    await running.call("POST", f"//v1/q{CONFIGS}", {"name": "other"})
    _, said = await running.call("GET", f"{CONFIGS}?global_tenant=True")
    assert [one["project"] for one in said["software_configs"]] == ["q", *"ppppp"]


WRONG: list[tuple[str, Json, str]] = [
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


async def test_what_is_wrong_is_refused_by_name(running: Program) -> None:
    for path, body, told in WRONG:
        status, said = await running.call("POST", path, body)
        assert status == 400 and told in said["error"]["message"], said
        assert "s3cret" not in str(said)


async def test_a_deployment_goes_from_its_beginning_to_its_end(running: Program) -> None:
    config = await made(running, **IO)
    one = await deployed(running, config_id=config["id"], action="CREATE", status="IN_PROGRESS")
    path = f"{DEPLOYMENTS}/{one['id']}"
    assert (one["input_values"], one["output_values"], one["status_reason"]) == ({}, None, "")
    assert "updated_time" not in one
    ended = {"status": "COMPLETE", "status_reason": "fine", "output_values": {"done": "yes"}}
    _, said = await running.call("PUT", path, ended)
    changed = said["software_deployment"]
    assert {key: changed[key] for key in ended} == ended and changed["updated_time"]
    assert (changed["action"], changed["config_id"]) == ("CREATE", config["id"])
    other = await made(running, name="other")
    await running.call("PUT", path, {"config_id": other["id"], "status": "IN_PROGRESS"})
    _, said = await running.call("GET", path)
    assert said["software_deployment"]["config_id"] == other["id"]
    assert said["software_deployment"]["output_values"] == {"done": "yes"}
    assert (await running.call("DELETE", path))[0] == 204
    for method in ("GET", "DELETE", "PUT"):
        status, said = await running.call(method, path, {} if method == "PUT" else None)
        assert (status, said["error"]["type"]) == (404, "NotFound")


async def test_a_server_gets_its_configs_with_the_values_of_each_deployment(
    running: Program,
) -> None:
    second = await made(running, name="b", **IO)
    first = await made(running, name="a", inputs=[{"name": "x", "value": "own"}])
    values = {"token": "s3cret", "more": 1}
    await deployed(running, config_id=second["id"], input_values=values)
    await deployed(running, config_id=second["id"], input_values={"size": 9})
    await deployed(running, config_id=first["id"])
    await deployed(running, config_id=first["id"], server_id="web-2")
    _, said = await running.call("GET", f"{DEPLOYMENTS}/metadata/web-1")
    told = [
        (one["name"], {given["name"]: given.get("value") for given in one["inputs"]})
        for one in said["metadata"]
    ]
    assert told == [
        ("a", {"x": "own"}), ("b", {"token": "s3cret", "size": None}),
        ("b", {"token": None, "size": 9}),
    ]  # fmt: skip
    _, said = await running.call("GET", f"{CONFIGS}/{second['id']}")
    assert said["software_config"] == second
    _, said = await running.call("GET", f"{DEPLOYMENTS}?server_id=web-2")
    assert [one["config_id"] for one in said["software_deployments"]] == [first["id"]]
    _, said = await running.call("GET", f"{DEPLOYMENTS}/metadata/none")
    assert said == {"metadata": []}


async def test_a_config_in_use_stays(running: Program) -> None:
    config = await made(running)
    one = await deployed(running, config_id=config["id"])
    path = f"{CONFIGS}/{config['id']}"
    status, said = await running.call("DELETE", path)
    assert (status, said["error"]["type"]) == (400, "InvalidRestrictedAction")
    assert (await running.call("DELETE", f"{DEPLOYMENTS}/{one['id']}"))[0] == 204
    assert (await running.call("DELETE", path))[0] == 204
    assert (await running.call("DELETE", path))[0] == 404


async def test_a_config_is_used_or_deleted_at_the_same_time(running: Program) -> None:
    """One of the two is refused, in words; never a deployment without its config."""
    for _ in range(20):
        config = await made(running)
        body = {"config_id": config["id"], "server_id": "s"}
        (used, _), (deleted, _) = await asyncio.gather(
            running.call("POST", DEPLOYMENTS, body),
            running.call("DELETE", f"{CONFIGS}/{config['id']}"),
        )
        assert (used, deleted) in {(200, 400), (404, 204)}


async def test_another_projects_software_is_not_there(running: Program) -> None:
    config = await made(running)
    one = await deployed(running, config_id=config["id"])
    for method, path, body in (
        ("GET", f"{CONFIGS}/{config['id']}", None), ("DELETE", f"{CONFIGS}/{config['id']}", None),
        ("GET", f"{DEPLOYMENTS}/{one['id']}", None), ("DELETE", f"{DEPLOYMENTS}/{one['id']}", None),
        ("PUT", f"{DEPLOYMENTS}/{one['id']}", {"status": "FAILED"}),
        ("POST", DEPLOYMENTS, {"config_id": config["id"], "server_id": "s"}),
        ("GET", f"{CONFIGS}/no-id", None), ("GET", f"{DEPLOYMENTS}/no-id", None),
    ):  # fmt: skip
        status, said = await running.call(method, f"//v1/q{path}", body)
        assert (status, said["error"]["type"]) == (404, "NotFound")
    for path in (CONFIGS, DEPLOYMENTS, f"{DEPLOYMENTS}/metadata/web-1"):
        _, said = await running.call("GET", f"//v1/q{path}")
        assert list(said.values()) == [[]]
    theirs = await running.call("POST", f"//v1/q{CONFIGS}", {"name": "theirs"})
    path = f"{DEPLOYMENTS}/{one['id']}"
    taken = {"config_id": theirs[1]["software_config"]["id"]}
    assert (await running.call("PUT", path, taken))[0] == 404


async def test_values_are_never_in_the_log(running: Program) -> None:
    config = await made(running, inputs=[{"name": "token"}])
    with capture_logs() as logs:
        one = await deployed(running, config_id=config["id"], input_values={"token": "s3cret"})
        path = f"{DEPLOYMENTS}/{one['id']}"
        await running.call("PUT", path, {"output_values": {"key": "s3cret"}, "status": "s3cret"})
        await running.call("PUT", path, {"output_values": {"key": "s3cret"}})
        await running.call("GET", f"{DEPLOYMENTS}/metadata/web-1")
    assert len(logs) >= 4 and "s3cret" not in str(logs)


async def test_scripts_and_values_are_sealed_at_rest(running: Program) -> None:
    inputs = [{"name": "token", "default": "s3cret"}]
    config = await made(running, config="echo s3cret", inputs=inputs)
    one = await deployed(running, config_id=config["id"], input_values={"token": "s3cret"})
    await running.call("PUT", f"{DEPLOYMENTS}/{one['id']}", {"output_values": {"token": "s3cret"}})
    for table in ("software_config", "software_deployment"):
        kept = await everything_in(running.database, table)
        assert kept and "s3cret" not in kept
    _, said = await running.call("GET", f"{DEPLOYMENTS}/metadata/web-1")
    assert str(said).count("s3cret") == 3
