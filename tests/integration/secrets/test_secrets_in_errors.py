"""Error messages of requests quote no secret: each kind of wrong value, from each source of a secret,
in a preview, and through the other routes that validate in turn."""

import json
from collections.abc import Callable, Iterator

import pytest

from engine.hot.definition.validators import ValidationRequest
from engine.service.requests.external_validation import refusal
from tests.support.program import Json, Program, eventually

SECRET = "Key'ed-\"7Q9z-part"
#: A part that does not depend on notation or case.
PART = "7q9z"
PARAMETERS: Json = {
    "text": {"type": "string", "hidden": True},
    "listed": {"type": "comma_delimited_list", "hidden": True},
    "mapped": {"type": "json", "hidden": True},
    "by_environment": {"type": "string"},
}
VALUES: Json = {
    "text": SECRET,
    "listed": [SECRET],
    "mapped": {"k": SECRET, SECRET: SECRET},
    "by_environment": SECRET,
}
ENVIRONMENT: Json = {"encrypted_param_names": ["by_environment"]}
TEXT: Json = {"get_param": "text"}
#: Expressions whose value is the secret or contains it.
SOURCES: Json = {
    "parameter": TEXT,
    "environment": {"get_param": "by_environment"},
    "list": {"get_param": "listed"},
    "map": {"get_param": "mapped"},
    "entry": {"get_param": ["mapped", "k"]},
    "joined": {"list_join": ["-", ["x", TEXT]]},
    "replaced": {"str_replace": {"template": "P-x", "params": {"P": TEXT}}},
    "yaql": {"yaql": {"expression": "$.data.p.toLower()", "data": {"p": TEXT}}},
    "inside a list": [TEXT],
    "inside a map": {"k": TEXT},
}
URL = "http://127.0.0.1:1/"


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


def resource_of(kind: str, **properties: Json) -> Json:
    return {"resources": {"r": {"type": kind, "properties": properties}}}


def random(**properties: Json) -> Json:
    return resource_of("OS::Heat::RandomString", **properties)


def value(one: Json, **more: Json) -> Json:
    return resource_of("OS::Heat::Value", value=one, **more)


def http(**properties: Json) -> Json:
    create = {"method": "POST", "url": URL}
    return resource_of(
        "Headgate::HTTP", **{"id": "x", "create": create, "delete": {"url": URL}, **properties}
    )


def member(one: Json) -> Json:
    return resource_of("OS::Heat::ResourceGroup", count=1, resource_def=one)


def scaling_group(one: Json) -> Json:
    return resource_of("OS::Heat::AutoScalingGroup", min_size=1, max_size=2, resource=one)


def condition(one: Json) -> Json:
    none = {"type": "OS::Heat::None", "condition": "c"}
    return {"conditions": {"c": one}, "resources": {"r": none}}


#: Wrong uses of a value, and what a message about them still contains.
WRONG_USES: dict[str, tuple[Callable[[Json], Json], str]] = {
    "integer": (lambda g: random(length=g), "length"),
    "length in a group": (
        lambda g: member({"type": "OS::Heat::RandomString", "properties": {"length": g}}),
        "",
    ),
    "length in a scaling group": (
        lambda g: scaling_group({"type": "OS::Heat::RandomString", "properties": {"length": g}}),
        "",
    ),
    "group": (lambda g: member([g]), "resource_def"),
    "type in a group": (lambda g: member({"type": {"list_join": ["", ["x", g]]}}), ""),
    "unknown property in a group": (
        lambda g: member({"type": "OS::Heat::RandomString", "properties": {"x": g, "length": g}}),
        "",
    ),
    "range": (lambda g: random(length={"str_replace": {"template": "77", "params": {"x": g}}}), ""),
    "enumeration": (lambda g: random(sequence=g), ""),
    "list": (lambda g: http(hidden={"pw": g}), ""),
    "map": (lambda g: random(character_classes={"a": g}), ""),
    "list of maps": (lambda g: random(character_classes=[g]), ""),
    "boolean": (lambda g: resource_of("OS::Heat::TestResource", fail=g), "fail"),
    "boolean from a list": (lambda g: resource_of("OS::Heat::TestResource", fail=[g]), "fail"),
    "number": (lambda g: resource_of("OS::Heat::TestResource", wait_secs=g), "wait_secs"),
    "method": (
        lambda g: http(create={"method": {"list_join": ["-", ["x", g]]}, "url": URL}), ""
    ),
    "url": (lambda g: http(create={"method": "POST", "url": g}), ""),
    "hidden attribute": (lambda g: http(hidden=[g], attributes={"y": "$.y"}), ""),
    "typed value": (lambda g: value(g, type="number"), "value"),
    "typed boolean": (lambda g: value(g, type="boolean"), "value"),
    "options": (
        lambda g: resource_of("OS::Heat::SoftwareConfig", inputs={"x": g}, options=[g]), "inputs"
    ),
    "inputs": (lambda g: resource_of("OS::Heat::SoftwareConfig", inputs=[{"name": "x", "type": g}]), ""),
    "unknown property": (lambda g: random(lengthx=[g]), "lengthx"),
    "properties": (
        lambda g: {"resources": {"r": {"type": "OS::Heat::RandomString", "properties": g}}}, ""
    ),
    "update policy": (
        lambda g: {
            "resources": {
                "r": {
                    "type": "OS::Heat::ResourceGroup",
                    "properties": {"count": 1, "resource_def": {"type": "OS::Heat::None"}},
                    "update_policy": {"rolling_update": {"max_batch_size": g, "pause_time": [g]}},
                }
            }
        },
        "",
    ),
    "deletion policy": (
        lambda g: {"resources": {"r": {"type": "OS::Heat::None", "deletion_policy": g}}},
        "Policies",
    ),
    "named resource": (
        lambda g: resource_of("OS::Heat::AccessPolicy", allowed_resources=[{"list_join": ["", ["x", g]]}]), ""
    ),
    "parameter name": (lambda g: value({"get_param": g}), "value.get_param"),
    "resource name": (lambda g: value({"get_resource": g}), "value.get_resource"),
    "attribute": (lambda g: value({"get_attr": [g, "x"]}), "value.get_attr"),
    "file": (lambda g: value({"get_file": g}), "value.get_file"),
    "join": (lambda g: value({"list_join": [",", g]}), "list_join"),
    "join of maps": (lambda g: value({"list_join": [",", {"x": g}]}), "list_join"),
    "digest": (lambda g: value({"digest": [g, "x"]}), "digest"),
    "repeat": (
        lambda g: value({"repeat": {"template": "%x%", "for_each": {"%x%": [{"x": g}]}}}), ""
    ),
    "map_merge": (lambda g: value({"map_merge": [[g]]}), "map_merge"),
    "map_replace": (
        lambda g: value({"map_replace": [{"a": 1, "b": 2}, {"keys": {"a": [g]}}]}), ""
    ),
    "colliding keys": (
        lambda g: value({"map_replace": [{"a": 1, "b": 2}, {"keys": {"a": g, "b": g}}]}), ""
    ),
    "concat": (lambda g: value({"list_concat": [{"x": g}]}), "list_concat"),
    "port": (
        lambda g: value({"make_url": {"scheme": "http", "host": "h", "port": g}}), "make_url"
    ),
    "str_replace": (
        lambda g: value({"str_replace_strict": {"template": "x", "params": {"y": "z", "q": g}}}), ""
    ),
    "missing key": (
        lambda g: value({"str_replace_strict": {"template": "x", "params": {"map_merge": [{"y": g}]}}}),
        "",
    ),
    "split": (lambda g: value({"str_split": [",", [g]]}), "str_split"),
    "yaql expression": (
        lambda g: value({"yaql": {"expression": {"list_join": ["", ["$.(", g]]}, "data": 1}}), "yaql"
    ),
    "yaql data": (
        lambda g: value({"yaql": {"expression": "int($.data)", "data": g}}), "yaql"
    ),
    "contains": (
        lambda g: value({"if": [{"contains": [{"x": g}, "text"]}, "1", "2"]}), ""
    ),
    "condition": (lambda g: condition({"contains": [{"x": g}, "text"]}), "conditions.c"),
    "condition of a parameter": (lambda g: condition({"equals": [{"get_param": g}, 1]}), ""),
    "condition with yaql": (
        lambda g: condition({"yaql": {"expression": "int($.data)", "data": g}}), "conditions.c"
    ),
    "output": (
        lambda g: {"outputs": {"o": {"value": {"list_join": [",", {"x": g}]}}}}, "outputs.o"
    ),
    "output attribute": (lambda g: {"outputs": {"o": {"value": {"get_attr": [g, "x"]}}}}, ""),
    "timeout": (lambda g: resource_of("OS::Heat::WaitCondition", handle="x", timeout=g), "timeout"),
    "scaling policy": (
        lambda g: resource_of(
            "OS::Heat::ScalingPolicy", adjustment_type=g, auto_scaling_group_id="x",
            scaling_adjustment=g,
        ),
        "",
    ),
    "sizes": (
        lambda g: resource_of("OS::Heat::AutoScalingGroup", min_size=g, max_size=g, resource={"type": g}), ""
    ),
}  # fmt: skip


def document(body: Json, parameters: Json) -> Json:
    resources = {"none": {"type": "OS::Heat::None"}} | body.get("resources", {})
    return {
        "heat_template_version": "2021-04-16",
        **body,
        "parameters": parameters,
        "resources": resources,
    }


def nested(body: Json) -> tuple[Json, dict[str, str]]:
    """A template that passes the secrets to a nested one, whose parameters do not hide them."""
    plain = {name: {"type": one["type"]} for name, one in PARAMETERS.items()}
    passed = {name: {"get_param": name} for name in PARAMETERS}
    outer = {"resources": {"n": {"type": "in.yaml", "properties": passed}}}
    return document(outer, PARAMETERS), {"in.yaml": json.dumps(document(body, plain))}


class Requests:
    def __init__(self, run: Program, at: str) -> None:
        self.run, self.at = run, at
        self.refused, self.leaks = 0, list[str]()

    async def send(self, name: str, template: Json, files: Json, turn: int) -> None:
        """Send a template in a preview and on another route."""
        body = {"template": template, "files": files}
        new = {**body, "parameters": VALUES, "environment": ENVIRONMENT, "stack_name": "other"}
        others = (
            ("POST", "/validate", new),
            ("POST", "/stacks", new),
            ("PATCH", self.at, body),
            ("PATCH", f"{self.at}/preview", body),
        )
        for method, path, sent in (("POST", "/stacks/preview", new), others[turn % len(others)]):
            status, response = await self.run.call(method, path, sent)
            assert status < 500, (name, path, response)
            if status == 400:
                self.refused += 1
                text = json.dumps(response)
                if PART in text.lower():
                    self.leaks.append(f"{name} {method} {path}: {text[:600]}")
            elif path == "/stacks":
                other = response["stack"]["id"]
                await self.run.until_ended("other")
                for suffix in ("", "/events"):
                    _, document = await self.run.call("GET", f"/stacks/other/{other}{suffix}")
                    if "stack" in document:
                        document["stack"]["outputs"] = None
                    if PART in json.dumps(document).lower():
                        self.leaks.append(f"{name} GET {suffix}: {json.dumps(document)[:900]}")
                await self.run.call("DELETE", f"/stacks/other/{other}")
                await eventually(lambda: self._until_deleted("other"))
            elif method == "PATCH" and path == self.at:
                await self.run.until_ended("stored")

    async def _until_deleted(self, name: str) -> bool:
        return (await self.run.call("GET", f"/stacks/{name}"))[0] == 404


async def requests_of(run: Program) -> Requests:
    sent = {
        "stack_name": "stored",
        "template": document({}, PARAMETERS),
        "parameters": VALUES,
        "environment": ENVIRONMENT,
    }
    status, response = await run.call("POST", "/stacks", sent)
    assert status == 201, response
    await run.until_ended("stored")
    return Requests(run, f"/stacks/stored/{response['stack']['id']}")


def templates(source: str, kind: str) -> Iterator[tuple[str, Json, Json]]:
    """The wrong use of a source in a root stack, or in a nested one."""
    for name, (wrong, _) in WRONG_USES.items():
        body = wrong(SOURCES[source])
        found = (document(body, PARAMETERS), {}) if kind == "root" else nested(body)
        yield name, *found


@pytest.mark.parametrize("kind", ["root", "nested"])
@pytest.mark.parametrize("source", SOURCES)
async def test_no_message_about_a_wrong_value_contains_a_secret(
    running: Program, source: str, kind: str
) -> None:
    requests = await requests_of(running)
    first = [*SOURCES].index(source)  # each wrong use has each route with some of the sources
    for turn, (name, template, files) in enumerate(templates(source, kind), first):
        await requests.send(name, template, files, turn)
    assert requests.leaks == [], "\n".join(requests.leaks[:10])
    assert requests.refused > 90, "most templates are refused"


@pytest.mark.parametrize("name", [name for name, (_, says) in WRONG_USES.items() if says])
async def test_a_message_without_the_value_names_the_place(running: Program, name: str) -> None:
    wrong, says = WRONG_USES[name]
    sent = {
        "stack_name": "other",
        "template": document(wrong(SOURCES["parameter"]), PARAMETERS),
        "parameters": VALUES,
        "environment": ENVIRONMENT,
    }
    status, response = await running.call("POST", "/stacks/preview", sent | {"strict": True})
    assert status == 400, response
    assert says in json.dumps(response["error"]["findings"])
    _, lenient = await running.call("POST", "/stacks/preview", sent)
    assert says in json.dumps(lenient)


@pytest.mark.parametrize("kind", ["root", "nested"])
async def test_an_output_error_contains_no_secret(running: Program, kind: str) -> None:
    resources = {
        "v": {"type": "OS::Heat::Value", "properties": {"value": TEXT}},
        "open": {"type": "OS::Heat::Value", "properties": {"value": "shown"}},
    }
    outputs = {
        name: {"value": {"list_join": [",", {"get_attr": [name, "value"]}]}} for name in resources
    }
    body = {"resources": resources, "outputs": outputs}
    template, files = (document(body, PARAMETERS), {}) if kind == "root" else nested(body)
    sent = {
        "stack_name": "s",
        "template": template,
        "files": files,
        "parameters": VALUES,
        "environment": ENVIRONMENT,
    }
    assert (await running.call("POST", "/stacks", sent))[0] == 201
    assert await running.until_ended("s") == "CREATE_COMPLETE"
    _, listed = await running.call("GET", "/stacks?show_nested=true")
    names = {one["stack_name"] for one in listed["stacks"]}
    [name] = names if kind == "root" else names - {"s"}
    response = {
        key: (await running.stack_request("GET", name, f"/outputs/{key}"))["output"]["output_error"]
        for key in outputs
    }
    assert PART not in json.dumps([response, await running.stack(name)]).lower()
    assert all("must operate on a list" in response[key] for key in ("v", "open"))


async def test_an_environment_merge_error_contains_no_secret(running: Program) -> None:
    merges = {"parameter_merge_strategies": {"n": "merge"}}
    first = {"encrypted_param_names": ["n"], "parameters": {"n": 1}, **merges}
    second = {"parameters": {"n": SECRET}, **merges}
    sent = {
        "stack_name": "s",
        "template": document({}, {"n": {"type": "number"}}),
        "files": {"a.json": json.dumps(first), "b.json": json.dumps(second)},
        "environment_files": ["a.json", "b.json"],
    }
    status, response = await running.call("POST", "/stacks/preview", sent)
    assert status == 400 and "Value is not a number" in json.dumps(response)
    assert PART not in json.dumps(response).lower()


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("there is no such flavor", "there is no such flavor"),
        ("no flavor 7q9Z", "it is not a valid f"),
    ],
)
def test_the_reason_of_a_plugin_is_masked_if_it_contains_a_part_of_a_secret(
    reason: str, expected: str
) -> None:
    request = ValidationRequest("f", {"k": [SECRET]}, "", hidden=True)
    assert refusal(request, reason) == f"its hidden value: {expected}"
