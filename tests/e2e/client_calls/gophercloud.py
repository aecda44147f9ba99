"""The calls of gophercloud's orchestration package, and its requirements for the responses.

Its types are strict: a number instead of a text, or null instead of a list, fails a whole call.
"""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.client_settings import ClientSettings
from tests.support.program import eventually, resource, template

Json = Any
#: RFC 3339, with or without Z.
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ?")
TEMPLATE = template(
    {"a": resource({"get_param": "size"}), "b": resource({"get_file": "f.txt"})},
    parameters={"size": {"type": "number", "default": 8}, "map": {"type": "json", "default": {}}},
    parameter_groups=[{"label": "g", "parameters": ["size"]}],
    outputs={"size": {"value": {"get_attr": ["a", "output"]}, "description": "its size"}},
)
BODY = {
    "stack_name": "go", "template": json.dumps(TEMPLATE), "environment": "parameters: {size: 5}",
    "files": {"f.txt": "text"}, "tags": "one,two", "disable_rollback": True,
}  # fmt: skip


class Gopher:
    def __init__(self, session: aiohttp.ClientSession, settings: ClientSettings) -> None:
        self._session, self._way = session, settings

    async def call(
        self, method: str, path: str, body: Json = None, ok: tuple[int, ...] = (200,)
    ) -> Json:
        """The document of a response with one of the statuses that the client accepts."""
        url = path if path.startswith("http") else self._way.endpoint + path
        async with self._session.request(method, url, json=body, headers=self._way.headers) as got:
            assert got.status in ok, (method, path, got.status, await got.text())
            return await got.json() if await got.read() else None

    async def pages(self, path: str, key: str) -> AsyncIterator[list[Json]]:
        """Requests pages until one is empty, as the client's pager does."""
        marker = ""
        while page := (await self.call("GET", path + marker))[key]:
            yield page
            marker = f"&marker={page[-1]['id']}"

    async def until(self, stack: str, status: str) -> Json:
        async def check() -> Json:
            response = (await self.call("GET", f"/stacks/{stack}"))["stack"]
            return response if response["stack_status"] == status else None

        return await eventually(check)


async def run_all(settings: ClientSettings, folder: Path) -> None:
    async with aiohttp.ClientSession() as session:
        gopher = Gopher(session, settings)
        stack = await stacks(gopher)
        await lists(gopher, stack)
        await resources(gopher, stack)
        await events(gopher, stack)
        await types_and_templates(gopher, stack)
        await delete_stack(gopher, stack)


async def stacks(gopher: Gopher) -> str:
    """Create a stack; return its canonical path."""
    planned = (await gopher.call("POST", "/stacks/preview", BODY))["stack"]
    assert isinstance(planned["resources"], list) and check_texts(planned["parameters"])
    created = (await gopher.call("POST", "/stacks", BODY, (201,)))["stack"]
    assert created["links"][0]["rel"] == "self"
    output = await gopher.until("go", "CREATE_COMPLETE")
    check_stack(output)
    assert output["parameters"]["size"] == "5" and output["tags"] == ["one", "two"]
    stack = f"/stacks/go/{created['id']}"
    for method, body in (("PUT", BODY), ("PATCH", {"parameters": {"size": 6}, "tags": "x"})):
        await gopher.call(method, stack, body, (202,))
        check_stack(await gopher.until(created["id"], "UPDATE_COMPLETE"))
    return stack


def check_stack(shown: Json) -> None:
    assert check_texts(shown["parameters"])
    assert all(isinstance(one, dict) for one in shown["outputs"])
    assert all(isinstance(one, str) for one in shown["tags"])
    assert isinstance(shown["timeout_mins"], int | None)
    assert isinstance(shown["disable_rollback"], bool)
    assert isinstance(shown["capabilities"], list) and isinstance(
        shown["notification_topics"], list
    )
    assert TIME.fullmatch(shown["creation_time"])


def check_texts(parameters: Json) -> bool:
    return all(isinstance(value, str) for value in parameters.values())


async def lists(gopher: Gopher, stack: str) -> None:
    untagged = {key: value for key, value in BODY.items() if key != "tags"}
    await gopher.call("POST", "/stacks", untagged | {"stack_name": "other"}, (201,))
    check_stack(await gopher.until("other", "CREATE_COMPLETE"))
    seen = [
        one["stack_name"]
        async for page in gopher.pages("/stacks?limit=1&sort_keys=name&sort_dir=asc", "stacks")
        for one in page
    ]
    assert seen == ["go", "other"]
    stack_id = stack.rpartition("/")[2]
    for query, names in {
        "tenant_id=x&status=COMPLETE&sort_keys=created_at&sort_dir=desc": ["other", "go"],
        f"id={stack_id}": ["go"], "name=other": ["other"], "tags=x": ["go"],
        "tags_any=x,y&sort_keys=updated_at": ["go"], "not_tags=y": ["go", "other"],
        "not_tags_any=x,y": ["other"], "show_deleted=true&show_nested=true&name=go": ["go"],
        "global_tenant=false&show_hidden=true&sort_keys=status&sort_dir=asc": ["other", "go"],
    }.items():  # fmt: skip
        response = (await gopher.call("GET", f"/stacks?{query}"))["stacks"]
        assert sorted(one["stack_name"] for one in response) == sorted(names), query
        for one in response:
            assert one["tags"] is None or isinstance(one["tags"], list)
            assert TIME.fullmatch(one["creation_time"])
            assert one["updated_time"] is None or TIME.fullmatch(one["updated_time"])
    await gopher.call("DELETE", "/stacks/other", ok=(202, 204))


async def resources(gopher: Gopher, stack: str) -> None:
    listed = (await gopher.call("GET", "/stacks/go/resources"))["resources"]
    deep = (await gopher.call("GET", f"{stack}/resources?nested_depth=2"))["resources"]
    assert listed == deep and {one["resource_name"] for one in deep} == {"a", "b"}
    response = (await gopher.call("GET", f"{stack}/resources/a"))["resource"]
    assert isinstance(response["attributes"], dict) and isinstance(response["required_by"], list)
    assert TIME.fullmatch(response["creation_time"]) and isinstance(response["description"], str)
    assert (await gopher.call("GET", f"{stack}/resources/a/metadata"))["metadata"] == {}
    for body in (
        {"mark_unhealthy": True, "resource_status_reason": "why"}, {"mark_unhealthy": False},
    ):  # fmt: skip
        await gopher.call("PATCH", f"{stack}/resources/a", body, (200, 202, 204))


async def events(gopher: Gopher, stack: str) -> None:
    unpaged = (await gopher.call("GET", "/stacks/go/events"))["events"]
    for query in ("limit=3", "limit=3&sort_dir=desc&sort_keys=created_at"):
        seen = [
            one["id"]
            async for page in gopher.pages(f"{stack}/events?{query}", "events")
            for one in page
        ]
        ids = [one["id"] for one in unpaged]
        assert seen == (ids[::-1] if "desc" in query else ids)
    query = "resource_action=CREATE&resource_action=UPDATE&resource_status=COMPLETE&resource_name=a"
    response = (
        await gopher.call("GET", f"{stack}/events?{query}&resource_type=OS::Heat::TestResource")
    )["events"]
    assert {one["resource_status"] for one in response} == {"CREATE_COMPLETE", "UPDATE_COMPLETE"}
    of_one = (await gopher.call("GET", f"{stack}/resources/a/events"))["events"]
    assert all(TIME.fullmatch(one["event_time"]) for one in of_one)
    one = (await gopher.call("GET", f"{stack}/resources/a/events/{of_one[0]['id']}"))["event"]
    assert isinstance(one["resource_properties"], dict)


async def types_and_templates(gopher: Gopher, stack: str) -> None:
    names = (await gopher.call("GET", "/resource_types"))["resource_types"]
    assert all(isinstance(name, str) for name in names)
    kind = await gopher.call("GET", "/resource_types/OS::Heat::Value")
    assert {"resource_type", "properties", "attributes", "support_status"} <= kind.keys()
    assert (await gopher.call("GET", "/resource_types/OS::Heat::Value/template"))["Parameters"]
    assert (await gopher.call("GET", f"{stack}/template")) == TEMPLATE
    plain = json.dumps(TEMPLATE | {"resources": {}, "outputs": {}})
    valid = await gopher.call("POST", "/validate", {"template": plain})
    assert isinstance(valid["Parameters"], dict) and isinstance(valid["ParameterGroups"], list)
    assert isinstance(valid["Description"], str)
    assert (await gopher.call("GET", "/build_info"))["engine"]["revision"]


async def delete_stack(gopher: Gopher, stack: str) -> None:
    left = await gopher.call("DELETE", f"{stack}/abandon")
    assert {
        "status", "name", "template", "action", "id", "resources", "files",
        "stack_user_project_id", "project_id", "environment",
    } <= left.keys()  # fmt: skip
    adopted = {"stack_name": "go", "template": json.dumps(TEMPLATE),
               "adopt_stack_data": json.dumps(left)}  # fmt: skip
    created = (await gopher.call("POST", "/stacks", adopted, (201,)))["stack"]
    await gopher.until("go", "ADOPT_COMPLETE")
    await gopher.call("DELETE", f"/stacks/go/{created['id']}", ok=(202, 204))
