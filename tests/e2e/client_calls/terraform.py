"""The calls of Terraform's OpenStack provider for ``openstack_orchestration_stack_v1``.

Its waits fail at the first status that is not expected, so every status on the way matters. The
provider pauses for seconds between polls; these calls do not.
"""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import aiohttp

from tests.support.client_settings import ClientSettings
from tests.support.program import eventually, resource, template

Json = Any
PSEUDO = {"OS::project_id", "OS::stack_id", "OS::stack_name"}


class Terraform:
    def __init__(self, session: aiohttp.ClientSession, settings: ClientSettings) -> None:
        self._session, self._way = session, settings

    async def call(self, method: str, path: str, body: Json = None) -> tuple[int, Json]:
        url = self._way.endpoint + path
        async with self._session.request(method, url, json=body, headers=self._way.headers) as got:
            return got.status, await got.json() if await got.read() else None

    async def read(self, stack: str) -> Json:
        """None if it does not exist."""
        status, response = await self.call("GET", f"/stacks/{stack}")
        assert status in (200, 404), response
        return response["stack"] if status == 200 else None

    async def until(self, stack: str, pending: Collection[str], target: Collection[str]) -> None:
        async def poll() -> bool:
            shown = await self.read(stack)
            status = shown["stack_status"] if shown else "DELETE_COMPLETE"
            assert status in {*pending, *target}, f"unexpected state '{status}'"
            return status in target

        await eventually(poll)


def options(size: int, tags: list[str]) -> Json:
    """As the provider sends them: with as many empty tags in front as there are tags."""
    wanted = template({"a": resource({"get_param": "size"})},
                      parameters={"size": {"type": "number"}},
                      outputs={"size": {"value": {"get_attr": ["a", "output"]}}})  # fmt: skip
    return {
        "stack_name": "tf", "template": json.dumps(wanted), "disable_rollback": False,
        "environment": json.dumps({"parameters": {}}), "parameters": {"size": str(size)},
        "tags": ",".join([""] * len(tags) + tags), "timeout_mins": 30,
    }  # fmt: skip


async def run_all(settings: ClientSettings, folder: Path) -> None:
    async with aiohttp.ClientSession() as session:
        terraform = Terraform(session, settings)
        status, answer = await terraform.call("POST", "/stacks", options(5, ["a", "b"]))
        assert status == 201, answer
        stack = answer["stack"]["id"]
        await terraform.until(
            stack,
            ("CREATE_IN_PROGRESS", "INIT_COMPLETE"),
            ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_IN_PROGRESS"),
        )
        output = await terraform.read(stack)
        assert {key: value for key, value in output["parameters"].items() if key not in PSEUDO} == {
            "size": "5",
        }  # fmt: skip
        assert output["tags"] == ["", "", "a", "b"]
        assert [one["output_key"] for one in output["outputs"]] == ["size"]
        status, response = await terraform.call("PUT", f"/stacks/tf/{stack}", options(6, []))
        assert status == 202, response
        await terraform.until(stack, ("UPDATE_IN_PROGRESS",), ("UPDATE_COMPLETE",))
        output = await terraform.read(stack)
        assert (output["parameters"]["size"], output["tags"]) == ("6", [""])
        await delete(terraform, stack)


async def delete(terraform: Terraform, stack: str) -> None:
    output = await terraform.read(stack)
    assert output["stack_status"] != "DELETE_IN_PROGRESS"
    status, _ = await terraform.call("DELETE", f"/stacks/tf/{stack}")
    assert status == 204
    await terraform.until(stack, ("DELETE_IN_PROGRESS",), ("DELETE_COMPLETE",))
