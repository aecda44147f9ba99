"""Refusals of every group of routes name the place, the reason and the remedy."""

import pytest_asyncio

from tests.support.program import Json, Program

EMPTY: Json = {"heat_template_version": "2021-04-16"}
WRONG_TYPE: Json = EMPTY | {"resources": {"a": {"type": "Nope"}}}


def new(**body: Json) -> Json:
    return {"stack_name": "new", "template": EMPTY, **body}


#: Method, path below the project, body, and the place. S: the path of a stack.
REFUSALS: list[tuple[str, str, Json, str]] = [
    ("POST", "/stacks", {}, "stack_name"),
    ("POST", "/stacks", new(stack_name="1x"), "stack_name"),
    ("POST", "/stacks", new(timeout_mins="x"), "timeout_mins"),
    ("POST", "/stacks", new(tags=5), "tags"),
    ("POST", "/stacks", new(files=[]), "files"),
    ("POST", "/stacks", new(template=WRONG_TYPE), "resources.a.type"),
    (
        "POST",
        "/stacks",
        {"stack_name": "new", "template_url": "file:///etc/passwd"},
        "template_url",
    ),
    ("POST", "/stacks/preview", new(template={**EMPTY, "resuorces": {}}), "resuorces"),
    ("GET", "/stacks?limit=x", None, "limit"),
    ("GET", "/stacks?sort_keys=nope", None, "sort_keys"),
    ("GET", "/stacks?sort_dir=up", None, "sort_dir"),
    ("GET", "/stacks?marker=nope", None, "marker"),
    ("PUT", "S", {}, "template"),
    ("PUT", "S", {"template": WRONG_TYPE}, "resources.a.type"),
    ("GET", "S/resources?nested_depth=x", None, "nested_depth"),
    ("POST", "S/resources/handle/signal", {"status": "nope"}, "status"),
    ("PATCH", "S/resources/handle", {"mark_unhealthy": "x"}, "mark_unhealthy"),
    ("GET", "S/events?sort_keys=x", None, "sort_keys"),
    ("GET", "S/events?limit=-1", None, "limit"),
    ("POST", "S/snapshots", {"name": 5}, "name"),
    ("POST", "/validate", {}, "template"),
    ("POST", "/validate", {"template": {**EMPTY, "nope": {}}}, "nope"),
    ("POST", "/validate?ignore_errors=1", {"template": EMPTY}, "ignore_errors"),
    ("GET", "/resource_types/OS::Heat::Value/template?template_type=x", None, "template_type"),
    ("POST", "/software_configs", {"inputs": 5}, "inputs"),
    ("POST", "/software_deployments", {}, "config_id"),
    ("GET", "/hooks?state=nope", None, "state"),
    ("GET", "/hooks?point=nope", None, "point"),
    ("GET", "/hooks?older=nope", None, "older"),
    ("POST", "/subscriptions", {}, "target"),
    ("POST", "S/breakpoints", {}, "breakpoints"),
    ("POST", "S/breakpoints", {"breakpoints": ["handle:pre-create"], "x": 1}, "x"),
    ("POST", "S/run-to", {}, "resource"),
    ("GET", "/usage?from=x", None, "from"),
    ("GET", "/decisions?limit=x", None, "limit"),
    ("POST", "/observations", {}, "observations"),
    ("POST", "/tokens", {}, "name"),
    ("GET", "/overview?limit=x", None, "limit"),
    ("GET", "S/history?limit=x", None, "limit"),
    ("POST", "/software_configs", {"outputs": 5}, "outputs"),
]


@pytest_asyncio.fixture
async def path(running: Program) -> str:
    handle = {"handle": {"type": "OS::Heat::WaitConditionHandle"}}
    stack = await running.create("s", handle)
    await running.until_ended("s")
    return f"/stacks/s/{stack}"


def findings_of(error: Json) -> list[Json]:
    found = error.get("findings") or [{**error, "reason": error["message"]}]
    return list(found)


async def test_forty_refusals_of_all_groups_of_routes(running: Program, path: str) -> None:
    assert len(REFUSALS) == 40
    wrong: list[Json] = []
    for method, route, body, place in REFUSALS:
        called = path + route[1:] if route.startswith("S") else route
        status, response = await running.call(method, called, body)
        if status != 400:
            wrong.append((method, route, status, response))
            continue
        for one in findings_of(response["error"]):
            if not (one["place"] and one["reason"] and one["remedy"]):
                wrong.append((method, route, one))
        if place not in [one["place"] for one in findings_of(response["error"])]:
            wrong.append((method, route, place, response["error"]))
    assert not wrong, "\n".join(map(str, wrong))
