"""Physical IDs and names of members, which readers can see, contain no secret."""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from aiohttp import web

from engine.hot.schema.type_schema import Attribute, Kind, Property, TypeSchema
from engine.types.contract import Call, Done, Failed, Outcome, ResourceType, Stopped, Wait
from engine.work.nodes.secret_propagation import REFUSED_ID
from tests.support.program import Json, Program
from tests.support.secret_search import SecretSearch, rows_of

FORMS: Mapping[str, Callable[[str], str]] = {
    "whole": lambda text: text,
    "inside": lambda text: f"urn:{text}/1",
    "JSON": lambda text: json.dumps(text),
    "URL": lambda text: quote(text, safe=""),
    "form": quote_plus,
    "lower": lambda text: quote(text, safe="").lower(),
}
PUBLIC = "must not be computed from a secret"


class NamedType(ResourceType):
    """A type whose physical ID is a form of its property."""

    schema = TypeSchema(
        "Test::Named",
        properties={
            "secret": Property(Kind.STRING, update_allowed=True),
            "form": Property(Kind.STRING, update_allowed=True),
            "how": Property(Kind.STRING, default="done"),
        },
        attributes={"name": Attribute(Kind.STRING)},
    )
    replaces_tainted = False

    def create(self, call: Call) -> Outcome:
        if call.progress is None:
            return Wait(call.now, {"waited": True})
        form = FORMS.get(call.properties["form"])
        name = form(call.properties["secret"]) if form else "an-id"
        match call.properties["how"]:
            case "failed":
                return Failed("it failed", name, public_reason="it failed")
            case "stopped":
                return Stopped("it was stopped", name, public_reason="it was stopped")
            case _:
                return Done(name, {"name": name})

    def update(self, call: Call) -> Outcome:
        secret = (call.previous or {})["secret"]
        return Done(secret, {"name": secret})

    def delete(self, call: Call) -> Outcome:
        return Done(None)


@asynccontextmanager
async def echo_service() -> AsyncIterator[tuple[str, list[str]]]:
    """A service that repeats each request in its response, and the request bodies that
    it received.
    """
    received: list[str] = []

    async def repeat(request: web.Request) -> web.Response:
        received.append(await request.text())
        return web.json_response({"echo": json.loads(received[-1])["name"]})

    app = web.Application()
    app.router.add_post("/things", repeat)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", received
    finally:
        await runner.cleanup()


@pytest.fixture(scope="module")
def shared_settings() -> Mapping[str, Any]:
    return {
        "resource_types.http.enabled": True, "resource_types.http.allow": ["127.0.0.0/8"],
        "resource_types.command.enabled": True, "resource_types.command.run_as": "server",
        "resource_types.command.programs": [
            {"path": "/bin/sh", "projects": ["*"], "arguments": ["**"]}],
    }  # fmt: skip


@pytest.fixture(scope="module")
def shared_types() -> Sequence[ResourceType]:
    return [NamedType()]


@pytest.fixture
def run(in_own_project: Program) -> Program:
    return in_own_project


SECRET: Json = {"get_param": "p"}


def template(resources: Json) -> Json:
    return {
        "heat_template_version": "2021-04-16",
        "parameters": {"p": {"type": "string", "hidden": True}},
        "resources": resources,
    }


def named_resource(form: str, **more: Json) -> Json:
    return {"type": "Test::Named", "properties": {"secret": SECRET, "form": form, **more}}


async def search_outputs(run: Program, search: SecretSearch, name: str) -> None:
    for table, rows in (await rows_of(run.database)).items():
        search.search(f"table {table}", rows)
    for rest in ("/events", "/resources?with_detail=true", "/graph", "/versions"):
        search.search(rest, str(await run.stack_request("GET", name, rest)))
    for resource in await run.resources(name):
        search.search(
            "inspect", str(await run.stack_request("GET", name, f"/resources/{resource}/inspect"))
        )
    assert search.found == [], "\n".join(search.found)


async def create(run: Program, search: SecretSearch, resources: Json) -> dict[str, Json]:
    """Create stack s, which fails; return its resources."""
    await run.create(
        "s", {}, template=template(resources), parameters={"p": search.secrets["p"]},
        disable_rollback=True,
    )  # fmt: skip
    assert await run.until_ended("s") == "CREATE_FAILED"
    found: dict[str, Json] = await run.resources("s")
    return found


@pytest.fixture
def search() -> SecretSearch:
    found = SecretSearch()
    found.new_secret("p")
    return found


async def test_an_operation_whose_physical_id_contains_a_secret_fails(
    run: Program, search: SecretSearch
) -> None:
    forms = {f"r{number}": named_resource(form) for number, form in enumerate(FORMS)}
    ways = {
        "a": named_resource("whole", how="failed"),
        "b": named_resource("inside", how="stopped"),
    }
    found = await create(run, search, {**forms, **ways})
    for name in (*forms, *ways):
        resource = found[name]
        assert REFUSED_ID in resource["resource_status_reason"], name
        assert resource["physical_resource_id"] in ("", None), name
    assert "it failed" in found["a"]["resource_status_reason"]
    await search_outputs(run, search, "s")


async def test_an_update_does_not_store_an_id_with_an_earlier_secret(
    run: Program, search: SecretSearch
) -> None:
    parameters = {"p": search.secrets["p"]}
    await run.create(
        "s", {}, template=template({"a": named_resource("none")}), parameters=parameters
    )
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    plain = {"type": "Test::Named", "properties": {"secret": "open", "form": "none"}}
    await run.update("s", "PUT", template=template({"a": plain}), parameters=parameters)
    assert await run.until_ended("s") == "UPDATE_FAILED"
    resource = (await run.resources("s"))["a"]
    assert REFUSED_ID in resource["resource_status_reason"]
    assert resource["physical_resource_id"] == "an-id"
    await search_outputs(run, search, "s")


async def test_an_id_from_a_response_or_an_output_contains_no_secret(
    run: Program, search: SecretSearch
) -> None:
    shell = """printf '{"id": "%s"}' "$(printf %s "$0" | cut -c 1-24)" """
    async with echo_service() as (service, received):
        found = await create(run, search, {
            "web": {"type": "Headgate::HTTP", "properties": {
                "base": service, "id": "$.echo",
                "create": {"url": "/things", "method": "POST", "body": {"name": SECRET}}}},
            "command": {"type": "Headgate::Command", "properties": {
                "create": ["/bin/sh", "-c", shell, {"str_split": ["-", SECRET, 0]}]}},
        })  # fmt: skip
        assert len(received) == 1
    for name in ("web", "command"):
        assert REFUSED_ID in found[name]["resource_status_reason"], found[name]
    await search_outputs(run, search, "s")


@pytest.mark.parametrize("kind", ["http", "group"])
async def test_values_that_readers_see_are_not_computed_from_a_secret(
    run: Program, search: SecretSearch, kind: str
) -> None:
    async with echo_service() as (service, received):

        def resource(secret: Json) -> Json:
            if kind == "http":
                request = {"url": "/things", "method": "POST", "body": {"name": "x"}}
                properties = {"base": service, "id": secret, "create": request}
                return {"type": "Headgate::HTTP", "properties": properties}
            return {"type": "OS::Heat::ResourceGroup", "properties": {
                "count": 1, "resource_def": {"type": "OS::Heat::None"},
                "removal_policies": [{"resource_list": [secret]}]}}  # fmt: skip

        place = "resources.it.properties." + ("id" if kind == "http" else "removal_policies")
        body = {"stack_name": "s", "template": template({"it": resource(SECRET)}),
                "parameters": {"p": search.secrets["p"]}}  # fmt: skip
        status, refused = await run.call("POST", "/stacks", body)
        assert (status, PUBLIC in str(refused), place in str(refused)) == (400, True, True)
        search.search("refused", json.dumps(refused))

        # The value becomes known, or known to be secret, only after another resource exists.
        value = {"type": "OS::Heat::Value", "properties": {"value": SECRET}}
        nested = template({"v": value}) | {
            "outputs": {"out": {"value": {"get_attr": ["v", "value"]}}}
        }
        nested["parameters"]["p"].pop("hidden")
        await run.create(
            "s", {}, disable_rollback=True, parameters={"p": search.secrets["p"]},
            files={"nested.yaml": json.dumps(nested)},
            template=template({
                "inner": {"type": "nested.yaml", "properties": {"p": SECRET}},
                "it": resource({"get_attr": ["inner", "out"]}),
            }),
        )  # fmt: skip
        assert await run.until_ended("s") == "CREATE_FAILED"
        assert PUBLIC in (await run.resources("s"))["it"]["resource_status_reason"]
        assert received == []
    await search_outputs(run, search, "s")
