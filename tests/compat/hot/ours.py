"""What Headgate makes of the same requests, in the form in which Heat's answers are recorded."""

import asyncio
import json
from collections.abc import Iterable
from typing import Any

from tests.compat.hot.cases import Case
from tests.support.program import Http, Program

#: Requests that are under way at once.
TOGETHER = 16
NAME, PROJECT = "asked", "acme"


async def ask_all(program: Program, cases: Iterable[Case]) -> dict[str, Any]:
    """Answers by the names of the cases. Each has a project for itself, as all have one name."""
    answers: dict[str, Any] = {}
    waiting = list(enumerate(cases))

    async def work() -> None:
        while waiting:
            number, case = waiting.pop()
            http = Http(program.session, program.url, f"{PROJECT}{number}")
            answers[case["name"]] = await ask(http, case["request"])

    async with asyncio.TaskGroup() as tasks:
        for _ in range(TOGETHER):
            tasks.create_task(work())
    return answers


async def ask(http: Http, request: Any) -> Any:
    status, said = await http.call("POST", "/stacks", {"stack_name": NAME, **request})
    if status != 201:
        error = said["error"]
        return {"refused": {"type": error["type"], "message": error["message"]}, "status": status}
    await http.until_ended(NAME)
    stack = await http.stack(NAME)
    resources = await http.resources(NAME)
    told = {
        "status": stack["stack_status"],
        "reason": stack["stack_status_reason"],
        "resources": {
            name: {"type": one["resource_type"], "metadata": await metadata(http, name, request)}
            for name, one in resources.items()
        },
        "outputs": {
            one["output_key"]: one["output_value"]
            for one in stack["outputs"]
            if not one.get("output_error")
        },
        "errors": {
            one["output_key"]: one["output_error"]
            for one in stack["outputs"]
            if one.get("output_error")
        },
    }
    named = {stack["id"]: "<id of the stack>", http.project: PROJECT}
    for name, one in resources.items():
        if one["physical_resource_id"]:
            named[one["physical_resource_id"]] = f"<id of {name}>"
    text = json.dumps(told)
    for old, new in named.items():
        text = text.replace(json.dumps(old)[1:-1], new)
    return json.loads(text)


async def metadata(http: Http, name: str, request: Any) -> Any:
    """Asked for only where a template has any."""
    if "metadata" not in json.dumps(request).lower():
        return {}
    return (await http.at("GET", NAME, f"/resources/{name}/metadata"))["metadata"]
