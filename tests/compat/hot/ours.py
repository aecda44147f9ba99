"""What Headgate makes of the same requests, in the form in which Heat's answers are recorded."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
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
            asked = ASKED[case.get("asks", "stack")]
            answers[case["name"]] = await asked(http, case["request"])

    async with asyncio.TaskGroup() as tasks:
        for _ in range(TOGETHER):
            tasks.create_task(work())
    return answers


def refusal(status: int, said: Any) -> Any:
    error = said["error"]
    return {"refused": {"type": error["type"], "message": error["message"]}, "status": status}


async def create(http: Http, request: Any) -> Any:
    status, said = await http.call("POST", "/stacks", {"stack_name": NAME, **request})
    if status != 201:
        return refusal(status, said)
    await http.until_ended(NAME)
    return await outcome(http, request)


async def update(http: Http, request: Any) -> Any:
    status, said = await http.call("POST", "/stacks", {"stack_name": NAME, **request["create"]})
    if status != 201:
        return refusal(status, said)
    await http.until_ended(NAME)
    before = await physical_ids(http)
    path = f"/stacks/{NAME}/{said['stack']['id']}"
    status, said = await http.call("PATCH" if request["patch"] else "PUT", path, request["update"])
    if status != 202:
        return refusal(status, said)
    await http.until_ended(NAME)
    after = await physical_ids(http)
    kept = sorted(name for name in after if before.get(name) == after[name])
    return await outcome(http, request) | {"kept": kept}


async def physical_ids(http: Http) -> dict[str, Any]:
    return {name: one["physical_resource_id"] for name, one in (await http.resources(NAME)).items()}


async def validate(http: Http, request: Any) -> Any:
    query = {"show_nested": str(request.get("show_nested", False))}
    if "ignore_errors" in request:
        query["ignore_errors"] = request["ignore_errors"]
    status, said = await http.call("POST", "/validate", request["body"], params=query)
    return refusal(status, said) if status != 200 else {"said": said}


async def list_versions(http: Http, _: Any) -> Any:
    _, said = await http.call("GET", "/template_versions")
    return {"said": sorted(said["template_versions"], key=lambda one: str(one["version"]))}


async def list_functions(http: Http, request: Any) -> Any:
    query = {"with_condition_func": str(request["conditions"])}
    path = f"/template_versions/{request['version']}/functions"
    _, said = await http.call("GET", path, params=query)
    return {"said": sorted(one["functions"] for one in said["template_functions"])}


#: By what a case asks for, as in oracle.py.
ASKED: Mapping[str, Callable[[Http, Any], Awaitable[Any]]] = {
    "stack": create,
    "update": update,
    "validation": validate,
    "versions": list_versions,
    "functions": list_functions,
}


async def outcome(http: Http, request: Any) -> Any:
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
