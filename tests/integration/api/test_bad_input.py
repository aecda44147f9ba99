"""Invalid requests: the status and the message of each."""

import io
import json
from uuid import UUID, uuid4

import pytest

from tests.support.changes import error_text
from tests.support.program import Http, Json, Program, resource, template

VALID_TEMPLATE = template({"a": resource()})


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


async def stacks(running: Program) -> int:
    count = "select count(*) from stack where project = $1"
    return int(await running.database.pool.fetchval(count, running.project))


async def refused(running: Program, body: Json, status: int = 400) -> str:
    """The error message, after a check that no stack is stored. The place and the remedy follow."""
    got, response = await running.call("POST", "/stacks", {"stack_name": "s", **body})
    assert got == status, response
    assert await stacks(running) == 0
    return error_text(response["error"])


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        ("heat_template_version: 2018-08-31\nresources: {a: [", "in line 2, column 17"),
        ("just text", "The template is not a JSON object or YAML mapping."),
        ({"resources": {}}, "Template version was not provided"),
        ({"heat_template_version": "2018-08-32"}, "2018-08-31"),
        ({**VALID_TEMPLATE, "resuorces": {}}, 'Did you mean "resources"?'),
        (template({"a": {"type": "OS::Heat::RandomStrin"}}), 'Did you mean "OS::Heat::RandomString"?'),
        (
            template({"a": {"type": "OS::Heat::RandomString", "properties": {"lenght": 3}}}),
            "Property error: : resources.a.properties: : Unknown Property lenght\n",
        ),
        (
            template({"a": {"type": "OS::Heat::RandomString", "properties": {"lenght": 3}}}),
            'resources.a.properties: Did you mean "length"?',
        ),
        (template({"a": {**resource(), "dependson": "b"}}), 'Did you mean "depends_on"?'),
        (template({"a": resource(depends_on="bb"), "b": resource()}), "resources.a.depends_on"),
        (
            template({"a": resource(depends_on="b"), "b": resource(depends_on="a")}),
            "Circular Dependency Found: ",
        ),
        (template({"a": resource(value={"get_param": "nope"})}), "nope"),
        (template({"a": resource(value={"get_attr": ["a2", "output"]})}), 'Did you mean "a"?'),
        (template({"a": {"type": "OS::Heat::Value"}}), "Property value not assigned"),
        (template({"a": resource(value={"yaql": {"expression": "1 +"}})}), "unexpected end"),
        (template({"c": {"type": "Headgate::Command", "properties": {"create": ["/bin/ls"]}}}),
         "[resource_types.command] enabled = true"),
    ],
)  # fmt: skip
async def test_an_invalid_template_is_refused_with_place_reason_and_remedy(
    running: Program, sent: Json, expected: str
) -> None:
    assert expected in await refused(running, {"template": sent})


async def test_all_errors_are_reported_together(running: Program) -> None:
    invalid = template({"a": {"type": "OS::Heat::Non"}, "b": {"type": "OS::Heat::Value"}})
    message = await refused(running, {"template": invalid})
    assert len(message.splitlines()) == 4


async def test_every_request_reports_all_errors_and_stores_nothing(running: Program) -> None:
    """In syntax, environment, evaluation, breakpoints, nested templates and members."""
    member = {"type": "OS::Heat::TestResource", "properties": {"vaule": 1}}
    inside = template({"x": member, "y": {}}, parameters={"bad": {"type": "nummer"}})
    invalid = template(
        {
            "form": {"typ": "OS::Heat::None"},
            "meaning": member,
            "break": resource(hooks={"on": "pre-creat"}),
            "nested": {"type": "in.yaml"},
            "group": {"type": "OS::Heat::ResourceGroup", "properties": {"resource_def": member}},
        },
        parameters={"bad": {"type": "nummer"}},
        conditions={"bad": {"not": [1, 2]}},
        outputs={"o": {"value": {"get_attr": ["meaning", "outptu"]}}},
    )
    places = [
        "parameters.bad", "resources.form", "resource_registry.a", "conditions.bad",
        "resources.nested<in.yaml>.parameters.bad", "resources.nested<in.yaml>.resources.y",
        "resources.meaning.properties", "outputs.o.value.get_attr",
        "resources.nested<in.yaml>.resources.x.properties",
        "resources.group.properties.resource_def.properties", "resources.break.hooks.on",
    ]  # fmt: skip
    body = {
        "template": invalid,
        "files": {"in.yaml": json.dumps(inside)},
        "environment": {"resource_registry": {"a": 5}},
    }
    there = await running.create("there", {"a": resource()})
    stack = f"/stacks/there/{there}"
    before = await running.database.pool.fetchval("select count(*) from template")
    for method, path in (
        ("POST", "/stacks"),
        ("POST", "/stacks/preview"),
        ("POST", "/validate"),
        ("PUT", stack),
        ("PATCH", stack),
        ("PUT", f"{stack}/preview"),
        ("PATCH", f"{stack}/preview"),
    ):
        sent = body | ({"stack_name": "s"} if path.startswith("/stacks") else {})
        status, response = await running.call(method, path, sent)
        message = response["error"]["message"]
        missing = [place for place in places if place not in message]
        assert status == 400 and missing == [], (method, path, message)
    assert await stacks(running) == 1
    assert await running.database.pool.fetchval("select count(*) from template") == before


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, "The Parameter (size) was not provided."),
        ({"size": 999}, "Parameter 'size' is invalid: 999 is out of range (min: 4, max: 64)"),
        ({"size": "many"}, "Parameter 'size' is invalid"),
        ({"size": 5, "sise": 5}, "The Parameter (sise) was not defined in template."),
    ],
)
async def test_invalid_parameter_values(running: Program, parameters: Json, expected: str) -> None:
    size = {"type": "number", "constraints": [{"range": {"min": 4, "max": 64}}]}
    body = {"template": {**VALID_TEMPLATE, "parameters": {"size": size}}, "parameters": parameters}
    assert expected in await refused(running, body)


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"hooks": [{"at": "aa", "on": "pre-create"}]}, 'Did you mean "a"?'),
        ({"hooks": [{"at": "a", "on": "pre-crate"}]}, 'Did you mean "pre-create"?'),
        ({"hooks": [{"at": "a", "on": "pre-create", "timeout": "soon"}]}, "Write 90s, 30m, 2h or 1d."),
        ({"resource_registry": {"resources": {"a": {"hooks": "pre-crate"}}}}, "Invalid hook type"),
        ({"resource_registy": {}}, 'Did you mean "resource_registry"?'),
        ("parameters: [", "line"),
    ],
)  # fmt: skip
async def test_an_invalid_environment(running: Program, environment: Json, expected: str) -> None:
    assert expected in await refused(
        running, {"template": VALID_TEMPLATE, "environment": environment}
    )


async def test_an_alias_bomb_and_a_deep_document_are_refused(running: Program) -> None:
    lines = ["heat_template_version: 2018-08-31", 'a: &a ["x","x","x","x","x","x","x","x","x"]']
    lines += [
        f"{n}: &{n} [{','.join(['*' + p] * 9)}]"
        for p, n in zip("abcdefgh", "bcdefghi", strict=True)
    ]
    assert await refused(running, {"template": "\n".join(lines)})
    deep = "[" * 5000 + "]" * 5000
    assert await refused(running, {"template": f"heat_template_version: 2018-08-31\na: {deep}"})


async def test_a_body_that_is_too_large_is_413(running: Program) -> None:
    body = io.BytesIO(b'{"stack_name": "s", "template": "' + b"#" * 2_200_000 + b'"}')
    status, response = await running.call("POST", "/stacks", data=body)
    assert status == 413 and "[server] max_body" in response["error"]["message"]


async def test_a_template_that_is_too_large_is_refused(running: Program) -> None:
    assert await refused(running, {"template": "#" * 600_000})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"stack_name": "1x", "template": VALID_TEMPLATE}, "Invalid stack name 1x"),
        ({"stack_name": 5, "template": VALID_TEMPLATE}, "Invalid stack name 5, must be a string"),
        ({"stack_name": "s"}, "No template specified"),
        ({"stack_name": "s", "template": VALID_TEMPLATE, "timeout_mins": "soon"}, "timeout_mins"),
        (
            {"stack_name": "s", "template": VALID_TEMPLATE, "parameters": []},
            "parameters: must be a map",
        ),
        (
            {"stack_name": "s", "template": VALID_TEMPLATE, "files": {"f": 1}},
            "files.f: must be a string",
        ),
        ({"stack_name": "s", "template": VALID_TEMPLATE, "hooks": {"clean": []}}, "hooks.clean"),
        (
            {"stack_name": "s", "template": VALID_TEMPLATE, "environment_files": ["e"]},
            '"e" is not among',
        ),
    ],
)
async def test_an_invalid_body_is_refused_with_its_place(
    running: Program, body: Json, expected: str
) -> None:
    status, response = await running.call("POST", "/stacks", body)
    assert status == 400 and expected in response["error"]["message"]


async def test_a_body_that_is_not_a_json_object_is_refused(running: Program) -> None:
    for data in (b"{", b"[]", b'"x"', b"\xff"):
        status, response = await running.call("POST", "/stacks", data=data)
        assert status == 400 and "Send a JSON object." in response["error"]["message"]


async def test_stack_names_are_unique(running: Program) -> None:
    await running.create("s", {"a": resource()})
    status, response = await running.call(
        "POST", "/stacks", {"stack_name": "s", "template": VALID_TEMPLATE}
    )
    assert status == 409 and response["error"]["type"] == "StackExists"
    other = await running.call(
        "POST",
        f"//v1/{running.project}-other/stacks",
        {"stack_name": "s", "template": VALID_TEMPLATE},
    )
    assert other[0] == 201


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/stacks/nope", 404),
        ("GET", f"/stacks/nope/{UUID(int=9)}", 404),
        ("GET", "/stacks/nope/no-id", 404),
        ("DELETE", f"/stacks/nope/{UUID(int=9)}", 404),
        ("GET", "/hooks/no-id", 404),
        ("GET", f"/hooks/{UUID(int=9)}", 404),
        ("GET", "/hooks?state=wating", 400),
        ("GET", "/hooks?limit=-1", 400),
        ("GET", "/hooks?marker=x", 400),
        ("GET", f"/subscriptions/{UUID(int=9)}", 404),
        ("GET", "/stacks?sort_keys=colour", 400),
        ("GET", "/stacks?show_deleted=maybe", 400),
        ("GET", "/events/stream?last_event_id=x", 400),
        ("PUT", "/hooks", 405),
        ("GET", "//nothing/here", 404),
        ("GET", "/resource_types/OS::Heat::Nope", 404),
    ],
)
async def test_invalid_paths_and_queries(
    running: Program, method: str, path: str, status: int
) -> None:
    got, response = await running.call(method, path)
    assert got == status, response
    assert response["error"]["message"]


async def test_stacks_and_hooks_of_another_project_are_not_found(running: Program) -> None:
    breakpoints = {"resource_registry": {"resources": {"a": {"hooks": "pre-create"}}}}
    stack = await running.create("s", {"a": resource()}, environment=breakpoints)
    (hook,) = await running.waiting_hooks("s")
    other = Http(running.session, running.url, f"{running.project}-other")
    for path in (f"/stacks/s/{stack}", "/stacks/s", f"/hooks/{hook['id']}"):
        assert (await other.call("GET", path))[0] == 404
    path = f"/hooks/{hook['id']}/signal"
    assert (await other.call("POST", path, {"decision": "continue"}))[0] == 404
    await other.create("s", {"a": resource()}, environment=breakpoints)
    await other.waiting_hooks("s")
    # Also as a marker, where the ID is as unknown as any other.
    for known in (hook["id"], str(uuid4())):
        _, page = await other.call("GET", f"/hooks?marker={known}")
        assert page["hooks"] == []


@pytest.mark.parametrize(
    ("body", "status", "expected"),
    [
        ({}, 400, "Answer one of continue, reject, step"),
        ({"decision": "contineu"}, 400, 'Did you mean "continue"?'),
        ({"decision": "patch", "properties": {"value": "x"}}, 400, "Allowed: continue"),
        ({"decision": "continue", "properties": {}}, 400, "with the decision patch"),
        ({"decision": "continue", "extend": "1h"}, 400, "progress only"),
        ({"decision": "progress", "extend": "soon"}, 400, "Send a duration such as 30m"),
        ({"decision": "patch", "properties": 5}, 400, "must be a map"),
        ({"decision": "continue", "reson": "x"}, 400, 'Did you mean "reason"?'),
        ({"decision": "continue", "reason": 5}, 400, "Send a text."),
        ({"decision": "continue", "digest": "0"}, 409, "Read the hook again"),
    ],
)
async def test_an_invalid_answer_changes_nothing(
    running: Program, body: Json, status: int, expected: str
) -> None:
    breakpoints = {"resource_registry": {"resources": {"a": {"hooks": "pre-create"}}}}
    await running.create("s", {"a": resource()}, environment=breakpoints)
    (hook,) = await running.waiting_hooks("s")
    got, response = await running.call("POST", f"/hooks/{hook['id']}/signal", body)
    assert got == status and expected in json.dumps(response, ensure_ascii=False).replace(
        '\\"', '"'
    )
    assert len(await running.waiting_hooks("s")) == 1


async def test_the_response_to_a_wrong_token_reveals_nothing(running: Program) -> None:
    breakpoints = {"resource_registry": {"resources": {"a": {"hooks": "pre-create"}}}}
    await running.create("s", {"a": resource()}, environment=breakpoints)
    (hook,) = await running.waiting_hooks("s")
    answers = []
    for hook_id in (hook["id"], str(uuid4()), "no-id"):
        for headers in ({}, {"Authorization": "Bearer x"}, {"Authorization": "Basic eDp4"}):
            path = f"//hooks/{hook_id}/signal"
            answers.append(
                await running.call("POST", path, {"decision": "continue"}, headers=headers)
            )
    assert {status for status, _ in answers} == {401}
    assert len({json.dumps(response) for _, response in answers}) == 1


async def test_the_same_answer_is_accepted_twice_and_another_conflicts(running: Program) -> None:
    breakpoints = {"resource_registry": {"resources": {"a": {"hooks": "pre-create"}}}}
    await running.create("s", {"a": resource()}, environment=breakpoints)
    (hook,) = await running.waiting_hooks("s")
    assert (await running.signal(hook))[0] == 200
    assert (await running.signal(hook))[0] == 200
    status, response = await running.signal(hook, "reject")
    error = response["error"]
    assert status == 409 and error["type"] == "HookAlreadyAnswered"
    assert (error["decision"], error["decided_by"]) == ("continue", "anonymous")
    assert error["decided_at"].endswith("Z") and error["remedy"]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, "target"),
        ({"target": "ftp://example.org/"}, "target"),
        ({"target": "http://10.0.0.1/"}, "target"),
        ({"target": "http://example.org/", "event": ["x"]}, 'Did you mean "events"?'),
        ({"target": "http://example.org/", "events": "x"}, "events"),
        ({"channel": "amqp", "target": "headgate"}, "is not set up on this server"),
        ({"channel": "post", "target": "headgate"}, "channel"),
    ],
)
async def test_an_invalid_subscription(running: Program, body: Json, expected: str) -> None:
    status, response = await running.call("POST", "/subscriptions", body)
    assert status == 400
    assert expected in json.dumps(response, ensure_ascii=False).replace('\\"', '"')


async def test_every_route_is_in_the_openapi_document_and_the_document_is_valid(
    running: Program,
) -> None:
    from openapi_spec_validator import validate

    from hub.api.application import all_routes
    from hub.api.openapi import plain_path

    status, document = await running.call("GET", "//openapi.json")
    assert status == 200
    validate(document)
    routes = {(route.method.lower(), plain_path(route.path)) for route in all_routes()}
    documented = {
        (method, path) for path, methods in document["paths"].items() for method in methods
    }
    assert documented == routes
