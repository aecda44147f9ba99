"""Environments through the API: several files, the operator's, templates as types of resources."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from yarl import URL

from tests.support.program import Json, Program, program, resource, template
from tests.support.receiver import Receiver

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


@pytest.fixture
async def served(database_url: str, tmp_path: Path) -> AsyncIterator[Program]:
    """With an environment of the operator's."""
    folder = tmp_path / "environment.d"
    folder.mkdir()
    (folder / "1.yaml").write_text("resource_registry: {'Our::*': 'OS::Heat::*', 'Our::Db': X}")
    (folder / "2.yaml").write_text(
        "resource_registry: {'Our::Db': ../db.yaml, 'OS::Heat::RandomS*': null}"
    )
    size = {"size": {"type": "number", "default": 1}}
    (tmp_path / "db.yaml").write_text(
        json.dumps(template({"y": resource()}, outputs=OUTPUTS, parameters=size))
    )
    overrides = {
        "environment.directory": str(folder),
        "template_urls.allow": [LOOPBACK],
        "quotas.resources_per_stack": 30,
    }
    async with program(database_url, overrides) as made:
        yield made


async def validated(served: Program, query: str = "", **body: Json) -> Json:
    status, said = await served.call("POST", f"/validate{query}", body)
    assert status == 200, said
    return said


async def refused(served: Program, path: str, **body: Json) -> str:
    status, said = await served.call("POST", path, body)
    assert status == 400, said
    return str(said["error"]["message"])


def environments(*documents: Json) -> Json:
    files = {f"{number}.yaml": json.dumps(one) for number, one in enumerate(documents)}
    return {"environment_files": list(files), "files": files}


async def test_files_are_merged_as_each_of_them_says(served: Program) -> None:
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
    await served.create(
        "s", PLAIN["resources"], **{"template": PLAIN} | environments(first, second)
    )
    await served.until_ended("s")
    shown = await served.at("GET", "s", "/environment")
    assert shown["parameters"] == {
        "s": "ab", "n": 3, "j": {"x": {"p": "1", "q": "2"}}, "key": "******", "named": "******",
    }  # fmt: skip
    assert "encrypted_param_names" not in shown and "parameter_merge_strategies" not in shown
    stack = await served.stack("s")
    assert (stack["parameters"]["s"], stack["parameters"]["named"]) == ("ab", "******")
    files = await served.at("GET", "s", "/files")
    assert "planted" not in str(files) and '"named":"******"' in files["0.yaml"]
    rows = await stored(served)
    assert "planted" not in rows and "sown-too" not in rows
    # A PATCH adds to it, resource by resource.
    third = {
        "parameters": {"s": "c"},
        "resource_registry": {"resources": {"a": {"hooks": []}, "b": {"hooks": "pre-update"}}},
    }
    await served.update("s", environment=third)
    await served.until_ended("s")
    shown = await served.at("GET", "s", "/environment")
    assert shown["parameters"]["s"] == "c" and shown["parameters"]["n"] == 3
    assert shown["resource_registry"] == {
        "resources": {
            "a": {"restricted_actions": "replace", "hooks": []},
            "b": {"hooks": "pre-update"},
        }
    }


async def test_what_a_get_shows_may_be_sent_back(served: Program) -> None:
    """Hidden values stay; without a word of that, what is sent is what is meant."""
    parameters = {"key": {"type": "string", "hidden": True}, "named": {"type": "string"},
                  "first": {"type": "string", "hidden": True}}  # fmt: skip
    outputs = {name: {"value": {"get_param": name}} for name in parameters}
    made = template({"a": resource({"get_param": "key"})}, parameters=parameters, outputs=outputs)
    environment = {
        "parameters": {"key": "k", "named": "n"}, "encrypted_param_names": ["named"],
        "parameter_defaults": {"first": "f"},
    }  # fmt: skip
    await served.create("s", {}, template=made, environment=environment, parameters={"key": "K"})
    assert await served.until_ended("s") == "CREATE_COMPLETE"

    async def told() -> dict[str, Json]:
        found = (await served.stack("s"))["outputs"]
        return {one["output_key"]: one["output_value"] for one in found}

    assert await told() == {"key": "K", "named": "n", "first": "f"}
    shown = await served.at("GET", "s", "/environment")
    assert shown["parameters"] == {"key": "******", "named": "******"}
    assert shown["parameter_defaults"] == {"first": "******"}
    body: Json = {"template": made, "environment": json.dumps(shown), "keep_hidden": True}
    seen = await served.at("PUT", "s", "/preview", body)
    assert [one["resource_name"] for one in seen["resource_changes"]["unchanged"]] == ["a"]
    await served.at("PUT", "s", "", body | {"plan_digest": seen["plan_digest"]})
    assert await served.until_ended("s") == "UPDATE_COMPLETE"
    assert await told() == {"key": "K", "named": "n", "first": "f"}
    assert await served.at("GET", "s", "/environment") == shown

    # One is changed, the others stay; what the environment hid stays hidden.
    shown["parameters"]["named"] = "m"
    await served.at("PUT", "s", "", body | {"environment": shown, "parameters": {"key": "******"}})
    assert await served.until_ended("s") == "UPDATE_COMPLETE"
    assert await told() == {"key": "K", "named": "m", "first": "f"}
    assert (await served.at("GET", "s", "/environment"))["parameters"]["named"] == "******"
    await served.at("PATCH", "s", "", {"parameters": {"key": "******"}, "keep_hidden": True})
    assert await served.until_ended("s") == "UPDATE_COMPLETE"
    assert (await told())["key"] == "K"

    del shown["parameters"]["named"]
    path = f"/stacks/s/{(await served.stack('s'))['id']}"
    status, said = await served.call("PUT", path, body | {"environment": shown})
    assert status == 400 and "The Parameter (named) was not provided." in str(said)
    await served.at("PUT", "s", "", body | {"environment": {
        "parameters": {"key": "******", "named": "n", "first": "f"}}, "keep_hidden": None})  # fmt: skip
    assert await served.until_ended("s") == "UPDATE_COMPLETE"
    assert (await told())["key"] == "******"


async def stored(served: Program) -> str:
    """All that is kept of templates, as the database has it."""
    async with served.database.connection() as conn:
        return str(await conn.fetch("select template::text from template"))


async def test_all_that_is_wrong_with_files_is_told_at_once(served: Program) -> None:
    said = await refused(
        served,
        "/stacks",
        stack_name="s",
        template=PLAIN,
        **environments({"paramters": {}}, {"parameter_merge_strategies": {"s": "mrge"}}),
    )
    assert said.splitlines() == [
        '0.yaml: paramters: environment has wrong section "paramters". Did you mean "parameters"?',
        '1.yaml: parameter_merge_strategies.s: Unknown merge strategy "mrge". '
        'Did you mean "merge"?',
    ]
    strategies = [{"parameters": {"s": "a"}, "parameter_merge_strategies": {"s": one}}
                  for one in ("merge", "overwrite")]  # fmt: skip
    said = await refused(served, "/validate", template=PLAIN, **environments(*strategies))
    assert "Conflicting merge strategy 'overwrite' for parameter 's' in file '1.yaml'" in said


async def test_the_operators_environment_is_beneath_everyones(served: Program) -> None:
    ours = {"a": {"type": "Our::TestResource"}}
    await served.create("ours", ours)
    assert await served.until_ended("ours") == "CREATE_COMPLETE"
    assert (await served.resources("ours"))["a"]["resource_type"] == "OS::Heat::TestResource"
    own = {"resource_registry": {"Our::TestResource": "OS::Heat::None"}}
    await served.create("own", ours, environment=own)
    await served.until_ended("own")
    assert (await served.resources("own"))["a"]["resource_type"] == "OS::Heat::None"
    nothing = {"resource_registry": {"Our::*": None}}
    body = {"stack_name": "no", "template": template(ours), "environment": nothing}
    assert "(Our::TestResource) could not be found" in await refused(served, "/stacks", **body)
    # A template that the operator names is nobody's to replace.
    db = template({"db": {"type": "Our::Db"}})
    shown = await validated(
        served, "?show_nested=true", template=db, files={"../db.yaml": "no template"}
    )
    assert shown["NestedParameters"]["db"]["Type"] == "Our::Db"


async def test_types_are_listed_as_the_operators_environment_has_them(served: Program) -> None:
    _, listed = await served.call("GET", "/resource_types")
    names = listed["resource_types"]
    assert "Our::Db" in names and "OS::Heat::None" in names
    assert "OS::Heat::RandomString" not in names
    _, shown = await served.call("GET", "/resource_types/Our::Db")
    assert shown["resource_type"] == "Our::Db"
    assert list(shown["properties"]) == ["size"] and "output" in shown["attributes"]
    _, written = await served.call("GET", "/resource_types/Our::Db/template?template_type=hot")
    assert list(written["parameters"]) == ["size"]
    status, _ = await served.call("GET", "/resource_types/OS::Heat::RandomString")
    assert status == 404
    random = template({"r": {"type": "OS::Heat::RandomString"}})
    said = await refused(served, "/stacks", stack_name="r", template=random)
    assert "The Resource Type (OS::Heat::RandomString) could not be found." in said


async def test_nested_templates_are_validated_and_shown(
    served: Program, receiver: Receiver
) -> None:
    receiver.says(template({}, parameters={"far": {"type": "string", "default": "d"}}))
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
    assert "NestedParameters" not in await validated(served, **body)
    shown = await validated(served, "?show_nested=true&ignore_errors=99001", **body)
    nested = shown["NestedParameters"]
    assert list(nested) == ["web", "far"]
    assert nested["web"] == {
        "Type": "server.yaml",
        "Description": "A server",
        "Parameters": {
            "size": {"Type": "Number", "Description": "", "NoEcho": "false", "Label": "size"}
        },
    }
    assert (nested["far"]["Type"], list(nested["far"]["Parameters"])) == ("My::Far", ["far"])
    receiver.answers(404)
    said = await refused(served, "/validate", **body)
    assert said.startswith(f'files: Could not fetch remote template "{address}": it answered 404')
    many = {f"r{number}": {"type": f"{address}/{number}.yaml"} for number in range(21)}
    asked = len(receiver.received)
    said = await refused(served, "/validate", template=template(many))
    assert "More than 20 templates would have to be fetched" in said
    assert len(receiver.received) == asked


async def test_what_is_wrong_inside_is_told_with_the_way_there(served: Program) -> None:
    resources = {"web": {"type": "server.yaml", "properties": {"size": "x"}}}
    said = await refused(served, "/validate", template=template(resources),
                         files={"server.yaml": SERVER})  # fmt: skip
    assert "resources.web.properties.size: : could not convert string" in said
    inner = template({"x": resource() | {"properties": {"valeu": 1}}})
    said = await refused(served, "/validate", template=template({"web": {"type": "server.yaml"}}),
                         files={"server.yaml": json.dumps(inner)})  # fmt: skip
    assert "resources.web<server.yaml>.resources.x.properties: : Unknown Property valeu" in said


async def test_stacks_are_made_of_them_the_operators_too(served: Program) -> None:
    resources = {"web": {"type": "server.yaml", "properties": {"size": 1}},
                 "db": {"type": "Our::Db"}}  # fmt: skip
    # A file of the user's is not taken for the operator's of that name.
    files = {"server.yaml": SERVER, "../db.yaml": "no template"}
    await served.create("s", resources, files=files)
    assert await served.until_ended("s") == "CREATE_COMPLETE"
    made = await served.resources("s")
    inside = await served.resources(made["db"]["physical_resource_id"])
    assert list(inside) == ["y"]


async def test_resources_are_counted_in_all(served: Program) -> None:
    files = {"server.yaml": json.dumps(template({f"r{n}": resource() for n in range(9)}))}
    resources: Json = {f"r{number}": {"type": "server.yaml"} for number in range(3)}
    said = await refused(served, "/validate", template=template(resources | {"x": resource()}),
                         files=files)  # fmt: skip
    assert "the template has 31 resources, including those of nested templates" in said
    await validated(served, template=template(resources), files=files)
