"""The responses of Headgate to the same requests, in the format of the recorded ones of Heat."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from tests.compat.hot.cases import Case
from tests.support.program import Http, Program

#: The number of concurrent requests.
CONCURRENCY = 16
NAME, PROJECT = "asked", "acme"


async def ask_all(program: Program, cases: Iterable[Case]) -> dict[str, Any]:
    """Responses by the names of the cases. Each case has its own project, because all stacks have
    the same name.
    """
    answers: dict[str, Any] = {}
    waiting = list(enumerate(cases))

    async def work() -> None:
        while waiting:
            number, case = waiting.pop()
            http = Http(program.session, program.url, f"{PROJECT}{number}")
            ask_case = OPERATIONS[case.get("asks", "stack")]
            answers[case["name"]] = await ask_case(http, case["request"])

    async with asyncio.TaskGroup() as tasks:
        for _ in range(CONCURRENCY):
            tasks.create_task(work())
    return answers


def refusal(status: int, response: Any) -> Any:
    error = response["error"]
    refused = {"type": error["type"], "message": error["message"]}
    return {"refused": refused, "status": status, "findings": error["findings"]}


async def create(http: Http, request: Any) -> Any:
    status, response = await http.call("POST", "/stacks", {"stack_name": NAME, **request})
    if status != 201:
        return refusal(status, response)
    await http.until_ended(NAME)
    return await outcome(http, request)


async def update(http: Http, request: Any) -> Any:
    status, response = await http.call("POST", "/stacks", {"stack_name": NAME, **request["create"]})
    if status != 201:
        return refusal(status, response)
    await http.until_ended(NAME)
    before = await physical_ids(http)
    path = f"/stacks/{NAME}/{response['stack']['id']}"
    status, response = await http.call(
        "PATCH" if request["patch"] else "PUT", path, request["update"]
    )
    if status != 202:
        return refusal(status, response)
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
    status, response = await http.call("POST", "/validate", request["body"], params=query)
    return (
        refusal(status, response)
        if status != 200
        else {"response": {key: one for key, one in response.items() if key != "warnings"}}
    )


async def list_versions(http: Http, _: Any) -> Any:
    _, response = await http.call("GET", "/template_versions")
    return {"response": sorted(response["template_versions"], key=lambda one: str(one["version"]))}


async def list_functions(http: Http, request: Any) -> Any:
    query = {"with_condition_func": str(request["conditions"])}
    path = f"/template_versions/{request['version']}/functions"
    _, response = await http.call("GET", path, params=query)
    return {"response": sorted(one["functions"] for one in response["template_functions"])}


#: Operations by their names in `ask`, as in heat_responses.py.
OPERATIONS: Mapping[str, Callable[[Http, Any], Awaitable[Any]]] = {
    "stack": create,
    "update": update,
    "validation": validate,
    "versions": list_versions,
    "functions": list_functions,
}


async def outcome(http: Http, request: Any) -> Any:
    stack = await http.stack(NAME)
    resources = await http.resources(NAME)
    result = {
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
    text = json.dumps(result)
    for old, new in named.items():
        text = text.replace(json.dumps(old)[1:-1], new)
    return json.loads(text)


async def metadata(http: Http, name: str, request: Any) -> Any:
    """Requested only for templates that have metadata."""
    if "metadata" not in json.dumps(request).lower():
        return {}
    return (await http.stack_request("GET", NAME, f"/resources/{name}/metadata"))["metadata"]
