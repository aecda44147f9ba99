"""Values that a parent passes as secrets stay secret after the nested stack becomes a
root stack.
"""

import itertools
import json
import re

import pytest

from hub.api.application import all_routes
from hub.api.openapi import plain_path
from tests.support.program import Json, Program, template
from tests.support.secret_search import SecretSearch, rows_of

READ = {"get_param": "a"}
PARAMETER: Json = {"a": {"type": "string"}}


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


def value(of: Json) -> Json:
    return {"type": "OS::Heat::Value", "properties": {"value": of}}


INNER: Json = template(
    {"q": value(READ), "w": value({"get_attr": ["q", "value"]}), "b": value("public")},
    parameters=PARAMETER,
    outputs={
        "o": {"value": READ},
        "of_w": {"value": {"get_attr": ["w", "value"]}},
        "public": {"value": {"get_attr": ["b", "value"]}},
    },
)
MIDDLE: Json = template(
    {"deep": {"type": "in.yaml", "properties": {"a": READ}}},
    parameters=PARAMETER,
    outputs={"o": {"value": {"get_attr": ["deep", "o"]}}},
)
HIDDEN: Json = {"get_param": "hid"}
RETAINED: Json = {"deletion_policy": "Retain"}
#: Resources with a nested stack that gets the secret.
OWNERS: Json = {
    "nested": {"type": "in.yaml", "properties": {"a": HIDDEN}, **RETAINED},
    "nested in nested": {"type": "mid.yaml", "properties": {"a": HIDDEN}, **RETAINED},
    "group": {
        "type": "OS::Heat::ResourceGroup",
        "properties": {
            "count": 2,
            "resource_def": {"type": "in.yaml", "properties": {"a": HIDDEN}},
        },
        **RETAINED,
    },
    "scaling group": {
        "type": "OS::Heat::AutoScalingGroup",
        "properties": {
            "min_size": 1,
            "max_size": 3,
            "resource": {"type": "in.yaml", "properties": {"a": HIDDEN}},
        },
        **RETAINED,
    },
}
FILES = {"in.yaml": json.dumps(INNER), "mid.yaml": json.dumps(MIDDLE)}


class DetachedStack:
    """A nested stack that its parent no longer contains."""

    def __init__(self, run: Program, search: SecretSearch, name: str) -> None:
        self.run, self.findings, self.name = run, search, name

    async def patch(self, **body: Json) -> str:
        """Update it; returns the status at the end."""
        await self.run.update(self.name, **body)
        return await self.run.until_ended(self.name)

    async def search_secrets(self) -> None:
        """Search for the secret in each GET route of the stacks of its tree, and in all tables."""
        listed = (await self.run.call("GET", "/stacks?show_nested=true&limit=1000"))[1]["stacks"]
        count = 0
        for stack in listed:
            for path in await self._paths(stack):
                status, response = await self.run.call("GET", path)
                assert status < 500, (path, response)
                count += status == 200
                self.findings.search(path, json.dumps(response))
        assert count > 20
        for table, rows in (await rows_of(self.run.database)).items():
            self.findings.search(f"table {table}", rows)
        assert self.findings.found == [], "\n".join(self.findings.found[:20])

    async def _paths(self, stack: Json) -> list[str]:
        at = f"/stacks/{stack['stack_name']}/{stack['id']}"
        found = {
            "name": [stack["stack_name"]],
            "id": [stack["id"]],
            "version": ["1", "2", "3"],
            "resource": await self._names(f"{at}/resources", "resources", "resource_name"),
            "key": await self._names(f"{at}/outputs", "outputs", "output_key"),
            "event": (await self._names(f"{at}/events", "events", "id"))[:3],
            "snapshot": await self._names(f"{at}/snapshots", "snapshots", "id"),
        }
        paths: list[str] = []
        for route in all_routes():
            path = plain_path(route.path).removeprefix("/v1/{project}")
            names = re.findall(r"\{(\w+)\}", path)
            if route.method != "GET" or not path.startswith("/stacks/{name}/{id}"):
                continue
            if path.endswith("/export") or not set(names) <= set(found):
                continue  # an export shows the values to authors
            for chosen in itertools.product(*(found[name] for name in names)):
                paths.append(path.format(**dict(zip(names, chosen, strict=True))))
        return paths

    async def _names(self, path: str, key: str, field: str) -> list[str]:
        _, response = await self.run.call("GET", path)
        return [one[field] for one in response[key]]

    async def outputs(self) -> dict[str, Json]:
        stack = await self.run.stack(self.name)
        return {one["output_key"]: one["output_value"] for one in stack["outputs"]}


async def detached(run: Program, owner: Json) -> DetachedStack:
    """A parent passes a hidden value to a nested stack, and is updated without it."""
    search = SecretSearch()
    parameters = {"hid": {"type": "string", "hidden": True}}
    sent = {
        "stack_name": "parent",
        "template": template({"inner": owner}, parameters=parameters),
        "files": FILES,
        "parameters": {"hid": search.new_secret("hidden")},
    }
    status, response = await run.call("POST", "/stacks", sent)
    assert status == 201, response
    assert await run.until_ended("parent") == "CREATE_COMPLETE"
    await run.update("parent", "PUT", template=template({"z": value("1")}))
    assert await run.until_ended("parent") == "UPDATE_COMPLETE"
    _, listed = await run.call("GET", "/stacks")
    [name] = [one["stack_name"] for one in listed["stacks"] if one["stack_name"] != "parent"]
    detached_stack = DetachedStack(run, search, name)
    await detached_stack.search_secrets()
    return detached_stack


@pytest.mark.parametrize("owner", OWNERS)
async def test_a_detached_stack_and_its_later_versions_show_no_secret(
    running: Program, owner: str
) -> None:
    detached_stack = await detached(running, OWNERS[owner])
    assert await detached_stack.patch(tags="x") == "UPDATE_COMPLETE"
    await detached_stack.search_secrets()
    await running.act(detached_stack.name, "check")
    assert await running.until_ended(detached_stack.name) == "CHECK_COMPLETE"
    await detached_stack.search_secrets()


async def test_outputs_of_a_detached_stack_are_masked_as_before(running: Program) -> None:
    detached_stack = await detached(running, OWNERS["nested"])
    masked = {"o": "******", "of_w": "******", "public": "public"}
    assert await detached_stack.outputs() == masked
    assert await detached_stack.patch(tags="x") == "UPDATE_COMPLETE"
    assert await detached_stack.outputs() == masked
    more = {
        **INNER,
        "outputs": {"other": {"value": READ}, "q": {"value": {"get_attr": ["q", "value"]}}},
    }
    assert await detached_stack.patch(template=more) == "UPDATE_COMPLETE"
    assert await detached_stack.outputs() == {"other": "******", "q": "******"}
    await detached_stack.search_secrets()


async def test_a_new_template_with_the_stored_values_shows_no_secret(running: Program) -> None:
    detached_stack = await detached(running, OWNERS["nested"])
    other = template(
        {"new": value({"str_replace": {"template": "P-x", "params": {"P": READ}}})},
        parameters={"a": {"type": "string"}, "c": {"type": "string", "default": "1"}},
    )
    assert await detached_stack.patch(template=other, parameters={"c": "2"}) == "UPDATE_COMPLETE"
    await detached_stack.search_secrets()


async def test_a_rollback_and_a_restore_show_no_secret(running: Program) -> None:
    detached_stack = await detached(running, OWNERS["nested"])
    await running.stack_request("POST", detached_stack.name, "/snapshots", {"name": "kept"})
    assert await running.until_ended(detached_stack.name) == "SNAPSHOT_COMPLETE"
    fails = {"type": "OS::Heat::TestResource", "properties": {"fail": True, "value": READ}}
    failing = {**INNER, "resources": {"fails": fails}, "outputs": {}}
    assert (
        await detached_stack.patch(template=failing, disable_rollback=False) == "ROLLBACK_COMPLETE"
    )
    await detached_stack.search_secrets()
    [snapshot] = (await running.stack_request("GET", detached_stack.name, "/snapshots"))[
        "snapshots"
    ]
    await running.stack_request("POST", detached_stack.name, f"/snapshots/{snapshot['id']}/restore")
    assert await running.until_ended(detached_stack.name) == "RESTORE_COMPLETE"
    await detached_stack.search_secrets()


async def test_an_update_that_keeps_masked_values_shows_no_secret(running: Program) -> None:
    detached_stack = await detached(running, OWNERS["nested"])
    body = {"template": INNER, "parameters": {"a": "******"}, "keep_hidden": True}
    await running.update(detached_stack.name, "PUT", **body)
    assert await running.until_ended(detached_stack.name) == "UPDATE_COMPLETE"
    await detached_stack.search_secrets()
    assert (await detached_stack.outputs())["o"] == "******"


async def test_an_adopted_export_of_a_detached_stack_shows_no_secret(running: Program) -> None:
    detached_stack = await detached(running, OWNERS["nested"])
    exported = await running.stack_request("GET", detached_stack.name, "/export")
    assert detached_stack.findings.secrets["hidden"] == exported["environment"]["parameters"]["a"]
    assert await running.stack_request("DELETE", detached_stack.name, "/abandon") == {
        **exported,
        "tags": exported["tags"],
    }
    detached_stack.name = "adopted"
    sent = {"stack_name": detached_stack.name, "adopt_stack_data": json.dumps(exported)}
    status, response = await running.call("POST", "/stacks", sent)
    assert status == 201, response
    assert await running.until_ended(detached_stack.name) == "ADOPT_COMPLETE"
    await detached_stack.search_secrets()
    assert await detached_stack.outputs() == {"o": "******", "of_w": "******", "public": "public"}
    assert await detached_stack.patch(tags="x") == "UPDATE_COMPLETE"
    await detached_stack.search_secrets()


async def test_a_new_value_is_shown_unless_the_template_hides_it(running: Program) -> None:
    detached_stack = await detached(running, OWNERS["nested"])
    assert await detached_stack.patch(parameters={"a": "plain"}) == "UPDATE_COMPLETE"
    assert await detached_stack.outputs() == {"o": "plain", "of_w": "plain", "public": "public"}
    assert (await running.stack_request("GET", detached_stack.name, "/environment"))[
        "parameters"
    ] == {"a": "plain"}
    await detached_stack.search_secrets()
    hides = {**INNER, "parameters": {"a": {"type": "string", "hidden": True}}}
    assert (
        await detached_stack.patch(template=hides, parameters={"a": "again"}) == "UPDATE_COMPLETE"
    )
    assert await detached_stack.patch(template=INNER) == "UPDATE_COMPLETE"
    assert (await running.stack_request("GET", detached_stack.name, "/environment"))[
        "parameters"
    ] == {"a": "******"}
    assert (await detached_stack.outputs())["o"] == "******"


async def test_a_stored_hidden_value_stays_hidden_without_hidden_in_the_template(
    running: Program,
) -> None:
    """Also in a stack that was never nested."""
    search = SecretSearch()
    secret = search.new_secret("hidden")
    hides = {**INNER, "parameters": {"a": {"type": "string", "hidden": True}}, "outputs": {}}
    sent = {"stack_name": "s", "template": hides, "parameters": {"a": secret}}
    assert (await running.call("POST", "/stacks", sent))[0] == 201
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    detached_stack = DetachedStack(running, search, "s")
    assert await detached_stack.patch(template={**INNER, "outputs": {}}) == "UPDATE_COMPLETE"
    await detached_stack.search_secrets()


async def test_scaling_inside_a_nested_stack_shows_no_secret(running: Program) -> None:
    search = SecretSearch()
    member = {"type": "OS::Heat::Value", "properties": {"value": READ}}
    inner = template(
        {
            "group": {
                "type": "OS::Heat::AutoScalingGroup",
                "properties": {"min_size": 1, "max_size": 3, "resource": member},
            },
            "policy": {
                "type": "OS::Heat::ScalingPolicy",
                "properties": {
                    "adjustment_type": "change_in_capacity",
                    "auto_scaling_group_id": {"get_resource": "group"},
                    "scaling_adjustment": 1,
                },
            },
        },
        parameters=PARAMETER,
    )
    sent = {
        "stack_name": "s",
        "template": template(
            {"inner": {"type": "in.yaml", "properties": {"a": HIDDEN}}},
            parameters={"hid": {"type": "string", "hidden": True}},
        ),
        "files": {"in.yaml": json.dumps(inner)},
        "parameters": {"hid": search.new_secret("hidden")},
    }
    assert (await running.call("POST", "/stacks", sent))[0] == 201
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    _, listed = await running.call("GET", "/stacks?show_nested=true")
    [name] = [
        one["stack_name"]
        for one in listed["stacks"]
        if re.fullmatch(r"s-inner-\w{12}", one["stack_name"])
    ]
    await running.stack_request("POST", name, "/resources/policy/signal", {})
    assert await running.until_ended(name) == "UPDATE_COMPLETE"
    await DetachedStack(running, search, name).search_secrets()


@pytest.mark.parametrize("hides", ["parent", "nested stack", "sibling"])
@pytest.mark.parametrize("owner", ["nested in nested", "group"])
async def test_hidden_defaults_are_masked_in_every_stack_of_the_tree(
    running: Program, hides: str, owner: str
) -> None:
    """All stacks share `parameter_defaults`."""
    search = SecretSearch()
    hidden, plain = {"type": "string", "hidden": True}, {"type": "string"}
    uses = {
        "in.yaml": hidden if hides == "nested stack" else plain,
        "other.yaml": hidden if hides == "sibling" else plain,
    }
    files = {
        name: json.dumps(template({"q": value({"get_param": "a"})}, parameters={"a": one}))
        for name, one in uses.items()
    }
    files["mid.yaml"] = json.dumps(template({"deep": {"type": "in.yaml"}}))
    owners = {
        "nested in nested": {"type": "mid.yaml"},
        "group": {
            "type": "OS::Heat::ResourceGroup",
            "properties": {"count": 1, "resource_def": {"type": "in.yaml"}},
        },
    }
    declared = {"a": hidden} if hides == "parent" else {}
    resources = {"owner": owners[owner], "other": {"type": "other.yaml"}}
    sent = {
        "stack_name": "s",
        "template": template(resources, parameters=declared),
        "files": files,
        "environment": {"parameter_defaults": {"a": search.new_secret("hidden")}},
    }
    assert (await running.call("POST", "/stacks", sent))[0] == 201
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    detached_stack = DetachedStack(running, search, "s")
    await detached_stack.search_secrets()
    assert await detached_stack.patch(template=template(resources)) == "UPDATE_COMPLETE"
    await detached_stack.search_secrets()
