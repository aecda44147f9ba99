"""Environments: several files, the operator's environment, and templates as resource types."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
import pytest_asyncio
from yarl import URL

from tests.support.program import Json, Program, resource, template
from tests.support.receiver import Receiver, running_receiver

LOOPBACK = "127.0.0.0/8"
OUTPUTS = {"output": {"value": "x"}}
PARAMETERS = {
    "s": {"type": "string", "default": ""},
    "n": {"type": "number", "default": 0},
    "j": {"type": "json", "default": {}},
    "named": {"type": "string", "default": ""},
    "key": {"type": "string", "default": "", "hidden": True},
}
PLAIN = template({"a": resource()}, parameters=PARAMETERS)
SERVER = json.dumps(
    template(
        {"x": resource({"get_param": "size"})},
        parameters={"size": {"type": "number"}},
        description="A server",
    )
)


@pytest.fixture(scope="module")
def shared_settings(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """Those of a server with an operator environment."""
    path = tmp_path_factory.mktemp("operator")
    folder = path / "environment.d"
    folder.mkdir()
    (folder / "1.yaml").write_text("resource_registry: {'Our::*': 'OS::Heat::*', 'Our::Db': X}")
    (folder / "2.yaml").write_text(
        "resource_registry: {'Our::Db': ../db.yaml, 'OS::Heat::RandomS*': null}"
    )
    size = {"size": {"type": "number", "default": 1}}
    (path / "db.yaml").write_text(
        json.dumps(template({"y": resource()}, outputs=OUTPUTS, parameters=size))
    )
    return {
        "environment.directory": str(folder),
        "template_urls.allow": [LOOPBACK],
        "quotas.resources_per_stack": 30,
    }


@pytest.fixture
def run(in_own_project: Program) -> Program:
    return in_own_project


@pytest_asyncio.fixture(loop_scope="session")
async def receiver() -> AsyncIterator[Receiver]:
    async with running_receiver() as one:
        yield one


async def validated(run: Program, query: str = "", **body: Json) -> Json:
    status, response = await run.call("POST", f"/validate{query}", body)
    assert status == 200, response
    return response


async def refused(run: Program, path: str, **body: Json) -> str:
    status, response = await run.call("POST", path, body)
    assert status == 400, response
    return str(response["error"]["message"])


def environments(*documents: Json) -> Json:
    files = {f"{number}.yaml": json.dumps(one) for number, one in enumerate(documents)}
    return {"environment_files": list(files), "files": files}


async def test_environment_files_are_merged_by_their_strategies(run: Program) -> None:
    first = {
        "parameters": {
            "s": "a",
            "n": 1,
            "j": {"x": {"p": "1"}},
            "key": "planted",
            "named": "sown-too",
        },
        "parameter_merge_strategies": {"default": "merge", "j": "deep_merge"},
        "encrypted_param_names": ["named"],
    }
    second = {
        "parameters": {"s": "b", "n": 2, "j": {"x": {"q": "2"}}, "unheard": 1},
        "resource_registry": {"resources": {"a": {"restricted_actions": "replace"}}},
    }
    await run.create("s", PLAIN["resources"], **{"template": PLAIN} | environments(first, second))
    await run.until_ended("s")
    response = await run.stack_request("GET", "s", "/environment")
    assert response["parameters"] == {
        "s": "ab", "n": 3, "j": {"x": {"p": "1", "q": "2"}}, "key": "******", "named": "******",
    }  # fmt: skip
    assert "encrypted_param_names" not in response and "parameter_merge_strategies" not in response
    stack = await run.stack("s")
    assert (stack["parameters"]["s"], stack["parameters"]["named"]) == ("ab", "******")
    files = await run.stack_request("GET", "s", "/files")
    assert "planted" not in str(files) and '"named":"******"' in files["0.yaml"]
    rows = await stored(run)
    assert "planted" not in rows and "sown-too" not in rows
    # PATCH merges with it, resource by resource.
    third = {
        "parameters": {"s": "c"},
        "resource_registry": {"resources": {"a": {"hooks": []}, "b": {"hooks": "pre-update"}}},
    }
    await run.update("s", environment=third)
    await run.until_ended("s")
    response = await run.stack_request("GET", "s", "/environment")
    assert response["parameters"]["s"] == "c" and response["parameters"]["n"] == 3
    assert response["resource_registry"] == {
        "resources": {
            "a": {"restricted_actions": "replace", "hooks": []},
            "b": {"hooks": "pre-update"},
        }
    }


async def test_a_shown_environment_can_be_sent_back(run: Program) -> None:
    """With keep_hidden, masked values keep their current values; without it, they are literal."""
    parameters = {"key": {"type": "string", "hidden": True}, "named": {"type": "string"},
                  "first": {"type": "string", "hidden": True}}  # fmt: skip
    outputs = {name: {"value": {"get_param": name}} for name in parameters}
    document = template(
        {"a": resource({"get_param": "key"})}, parameters=parameters, outputs=outputs
    )
    environment = {
        "parameters": {"key": "k", "named": "n"}, "encrypted_param_names": ["named"],
        "parameter_defaults": {"first": "f"},
    }  # fmt: skip
    await run.create("s", {}, template=document, environment=environment, parameters={"key": "K"})
    assert await run.until_ended("s") == "CREATE_COMPLETE"

    async def shown_parameters() -> dict[str, Json]:
        found = (await run.stack("s"))["outputs"]
        return {one["output_key"]: one["output_value"] for one in found}

    assert await shown_parameters() == {"key": "K", "named": "n", "first": "f"}
    result = await run.stack_request("GET", "s", "/environment")
    assert result["parameters"] == {"key": "******", "named": "******"}
    assert result["parameter_defaults"] == {"first": "******"}
    body: Json = {"template": document, "environment": json.dumps(result), "keep_hidden": True}
    preview = await run.stack_request("PUT", "s", "/preview", body)
    assert [one["resource_name"] for one in preview["resource_changes"]["unchanged"]] == ["a"]
    await run.stack_request("PUT", "s", "", body | {"plan_digest": preview["plan_digest"]})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert await shown_parameters() == {"key": "K", "named": "n", "first": "f"}
    assert await run.stack_request("GET", "s", "/environment") == result

    # One value changes; the parameters that the environment hides stay hidden.
    result["parameters"]["named"] = "m"
    await run.stack_request(
        "PUT", "s", "", body | {"environment": result, "parameters": {"key": "******"}}
    )
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert await shown_parameters() == {"key": "K", "named": "m", "first": "f"}
    assert (await run.stack_request("GET", "s", "/environment"))["parameters"]["named"] == "******"
    await run.stack_request(
        "PATCH", "s", "", {"parameters": {"key": "******"}, "keep_hidden": True}
    )
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert (await shown_parameters())["key"] == "K"

    del result["parameters"]["named"]
    path = f"/stacks/s/{(await run.stack('s'))['id']}"
    status, response = await run.call("PUT", path, body | {"environment": result})
    assert status == 400 and "The Parameter (named) was not provided." in str(response)
    await run.stack_request("PUT", "s", "", body | {"environment": {
        "parameters": {"key": "******", "named": "n", "first": "f"}}, "keep_hidden": None})  # fmt: skip
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert (await shown_parameters())["key"] == "******"


async def stored(run: Program) -> str:
    """The stored template versions as text."""
    async with run.database.connection() as conn:
        return str(await conn.fetch("select template::text from template"))


async def test_all_errors_of_files_are_reported_together(run: Program) -> None:
    message = await refused(
        run,
        "/stacks",
        stack_name="s",
        template=PLAIN,
        **environments({"paramters": {}}, {"resource_registry": {"s": 5}}),
    )
    assert message.splitlines() == [
        '0.yaml: paramters: environment has wrong section "paramters". Did you mean "parameters"?',
        "1.yaml: resource_registry.s: This must be the name of a resource type."
        " Write the name of a type, or the path of a template that ends in .yaml.",
    ]
    strategies = [{"parameters": {"s": "a"}, "parameter_merge_strategies": {"s": one}}
                  for one in ("merge", "overwrite")]  # fmt: skip
    message = await refused(run, "/validate", template=PLAIN, **environments(*strategies))
    assert "Conflicting merge strategy 'overwrite' for parameter 's' in file '1.yaml'" in message


def resolved(resources: Json) -> Json:
    assert {one["resource_type"] for one in resources.values()} == {"Our::TestResource"}
    return {name: one["headgate_resolved_type"] for name, one in resources.items()}


async def test_user_environments_override_the_operators(run: Program) -> None:
    ours = {"a": {"type": "Our::TestResource"}}
    await run.create("ours", ours)
    assert await run.until_ended("ours") == "CREATE_COMPLETE"
    assert resolved(await run.resources("ours")) == {"a": "OS::Heat::TestResource"}
    own = {"resource_registry": {"Our::TestResource": "OS::Heat::None"}}
    await run.create("own", ours, environment=own)
    await run.until_ended("own")
    assert resolved(await run.resources("own")) == {"a": "OS::Heat::None"}
    nothing = {"resource_registry": {"Our::*": None}}
    body = {"stack_name": "no", "template": template(ours), "environment": nothing}
    assert "(Our::TestResource) could not be found" in await refused(run, "/stacks", **body)
    # User files do not replace templates of the operator.
    db = template({"db": {"type": "Our::Db"}})
    result = await validated(
        run, "?show_nested=true", template=db, files={"../db.yaml": "no template"}
    )
    assert result["NestedParameters"]["db"]["Type"] == "Our::Db"


async def test_the_operators_environment_changes_the_list_of_types(run: Program) -> None:
    _, listed = await run.call("GET", "/resource_types")
    names = listed["resource_types"]
    assert "Our::Db" in names and "OS::Heat::None" in names
    assert "OS::Heat::RandomString" not in names
    _, response = await run.call("GET", "/resource_types/Our::Db")
    assert response["resource_type"] == "Our::Db"
    assert list(response["properties"]) == ["size"] and "output" in response["attributes"]
    _, written = await run.call("GET", "/resource_types/Our::Db/template?template_type=hot")
    assert list(written["parameters"]) == ["size"]
    status, _ = await run.call("GET", "/resource_types/OS::Heat::RandomString")
    assert status == 404
    random = template({"r": {"type": "OS::Heat::RandomString"}})
    message = await refused(run, "/stacks", stack_name="r", template=random)
    assert "The Resource Type (OS::Heat::RandomString) could not be found." in message


async def test_nested_templates_are_validated_and_shown(run: Program, receiver: Receiver) -> None:
    receiver.respond_with(template({}, parameters={"far": {"type": "string", "default": "d"}}))
    address = str(URL(receiver.url) / "far.yaml")
    resources = {
        "web": {"type": "server.yaml", "properties": {"size": {"get_param": "n"}}},
        "far": {"type": "My::Far"},
        "plain": resource(),
    }
    body: Json = {
        "template": template(resources, parameters={"n": {"type": "number"}}),
        "environment": {"resource_registry": {"My::Far": address}},
        "files": {"server.yaml": SERVER},
    }
    assert "NestedParameters" not in await validated(run, **body)
    result = await validated(run, "?show_nested=true&ignore_errors=99001", **body)
    nested = result["NestedParameters"]
    assert list(nested) == ["web", "far"]
    assert nested["web"] == {
        "Type": "server.yaml",
        "Description": "A server",
        "Parameters": {
            "size": {"Type": "Number", "Description": "", "NoEcho": "false", "Label": "size"}
        },
    }
    assert (nested["far"]["Type"], list(nested["far"]["Parameters"])) == ("My::Far", ["far"])
    receiver.respond_with_statuses(404)
    message = await refused(run, "/validate", **body)
    assert message.startswith(
        f'resources.far.type: Could not fetch remote template "{address}": it answered 404'
    )
    many = {f"r{number}": {"type": f"{address}/{number}.yaml"} for number in range(21)}
    fetched = len(receiver.received)
    message = await refused(run, "/validate", template=template(many))
    assert "More than 20 templates would have to be fetched" in message
    assert len(receiver.received) == fetched


async def test_errors_in_nested_templates_have_their_path(run: Program) -> None:
    resources = {"web": {"type": "server.yaml", "properties": {"size": "x"}}}
    message = await refused(run, "/validate", template=template(resources),
                         files={"server.yaml": SERVER})  # fmt: skip
    assert "resources.web.properties.size: could not convert string to float: 'x'" in message
    inner = template({"x": resource() | {"properties": {"valeu": 1}}})
    message = await refused(run, "/validate", template=template({"web": {"type": "server.yaml"}}),
                         files={"server.yaml": json.dumps(inner)})  # fmt: skip
    assert "resources.web<server.yaml>.resources.x.properties: Unknown Property valeu" in message


async def test_stacks_use_templates_as_types_of_users_and_operators(run: Program) -> None:
    resources = {"web": {"type": "server.yaml", "properties": {"size": 1}},
                 "db": {"type": "Our::Db"}}  # fmt: skip
    # A user file does not replace the operator's file of the same name.
    files = {"server.yaml": SERVER, "../db.yaml": "no template"}
    await run.create("s", resources, files=files)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    made = await run.resources("s")
    inside = await run.resources(made["db"]["physical_resource_id"])
    assert list(inside) == ["y"]


async def test_the_limit_counts_resources_of_nested_templates(run: Program) -> None:
    files = {"server.yaml": json.dumps(template({f"r{n}": resource() for n in range(9)}))}
    resources: Json = {f"r{number}": {"type": "server.yaml"} for number in range(3)}
    message = await refused(run, "/validate", template=template(resources | {"x": resource()}),
                         files=files)  # fmt: skip
    assert "the template has 31 resources, including those of nested templates" in message
    await validated(run, template=template(resources), files=files)


async def test_a_server_without_types_of_openstack_has_no_regions(run: Program) -> None:
    context = {"context": {"region_name": "RegionTwo"}}
    error = await refused(
        run, "/stacks", stack_name="s", template=template({}), environment=context
    )
    assert "context.region_name" in error and "no resource types of OpenStack" in error
    assert "[resource_types.openstack] enabled = true" in error
