"""Versions of the API, resource types, services and rights."""

from dataclasses import replace

import pytest

from hub.auth.identity import Anonymous, Identity
from hub.auth.request_credentials import RequestCredentials
from hub.auth.roles import Right
from tests.unit.hub.api.orchestration_support import (
    STACK_ID,
    Client,
    StubEngine,
    client_of,
)

V = "/v1/demo"
S = f"{V}/stacks/web/{STACK_ID}"


class Guest(Anonymous):
    async def identify(self, credentials: RequestCredentials, project: str) -> Identity:
        return replace(
            await super().identify(credentials, project), rights=frozenset({Right.NOTHING})
        )


async def test_rights_apply_to_the_alias_of_the_version_and_to_head() -> None:
    engine = StubEngine()
    async with client_of(engine, Guest()) as client:
        for prefix in ("/v1", "/v1.0"):
            for method in ("GET", "HEAD", "POST"):
                assert (await client.call(method, f"{prefix}/demo/stacks"))[0] == 403
            for method in ("GET", "HEAD"):
                assert (await client.call(method, f"{prefix}/demo"))[0] == 200
    assert engine.calls == []


async def test_an_unknown_template_type_is_refused(client: Client) -> None:
    path = f"{V}/resource_types/Test::Secret/template?template_type=xml"
    status, response, _ = await client.call("GET", path)
    assert (status, response["error"]["type"]) == (400, "HTTPBadRequest")
    assert response["error"]["message"] == (
        'Template type is not supported: Invalid template type "xml", valid types are: cfn, hot.'
    )


@pytest.mark.parametrize(
    ("path", "status", "key"),
    [
        ("/", 300, "versions"),
        ("/versions", 300, "versions"),
        ("/v1", 300, "versions"),
        ("/v1/", 300, "versions"),
        ("/v2", 300, "versions"),
        ("/v2.1/demo/stacks", 300, "versions"),
        ("/v1/demo", 200, "version"),
        ("/v1/demo/", 200, "version"),
    ],
)
async def test_versions_link_to_the_root_of_the_api(
    client: Client, path: str, status: int, key: str
) -> None:
    got, response, _ = await client.call("GET", path)
    found = response[key][0] if key == "versions" else response[key]
    assert (got, found["links"][0]["href"]) == (status, f"{client.url}/v1/")


async def test_redirects_keep_the_alias_of_the_version(client: Client) -> None:
    _, response, _ = await client.call("GET", "/v1.0/demo")
    assert response["version"]["links"][0]["href"] == f"{client.url}/v1.0/"
    _, _, headers = await client.call("PUT", "/v1.0/demo/stacks/web")
    assert headers["Location"] == f"{client.url}/v1.0/demo/stacks/web/{STACK_ID}"
    status, response, _ = await client.call("GET", f"/v1.0/demo/stacks/web/{STACK_ID}")
    assert (status, response["stack"]["links"][0]["href"]) == (200, headers["Location"])
    for path, form in (
        ("hooks/x/nothing", {"error"}),
        ("nothing", {"code", "title", "explanation", "error"}),
    ):
        status, response, _ = await client.call("GET", f"/v1.0/demo/{path}")
        assert (status, response.keys()) == (404, form)


async def test_head_is_get_without_a_body(client: Client) -> None:
    for path, status in (("/healthz", 200), (f"{V}/stacks", 200), (f"{V}/stacks/web", 302),
                         (f"{S}/nothing", 404), ("/", 300), ("/healthcheck", 200)):  # fmt: skip
        got = await client.call("HEAD", path)
        assert got[:2] == (status, None)
    _, _, headers = await client.call("OPTIONS", f"{V}/events/stream")
    assert headers["Allow"] == "GET"  # a stream


async def test_services_are_the_roles_of_processes(client: Client) -> None:
    _, response, _ = await client.call("GET", f"{V}/services")
    shown = [(one["host"], one["binary"], one["status"]) for one in response["services"]]
    assert shown == [
        ("h1", "headgate-api", "up"), ("h1", "headgate-engine", "up"),
        ("h2", "headgate-engine", "down"),
    ]  # fmt: skip
    assert len({one["id"] for one in response["services"]}) == 3
    assert response["services"][0]["updated_at"] == "2026-11-20T20:16:36.987654"


async def test_template_versions_and_their_functions(client: Client) -> None:
    _, response, _ = await client.call("GET", f"{V}/template_versions")
    aliases = {one["version"]: one["aliases"] for one in response["template_versions"]}
    assert aliases["heat_template_version.2018-08-31"] == ["heat_template_version.rocky"]
    kinds = {one["version"]: one["type"] for one in response["template_versions"]}
    assert [name for name, kind in kinds.items() if kind == "cfn"] == [
        "AWSTemplateFormatVersion.2010-09-09", "HeatTemplateFormatVersion.2012-12-12",
    ]  # fmt: skip
    for name in aliases:
        path = f"{V}/template_versions/{name}/functions?with_condition_func=True"
        _, response, _ = await client.call("GET", path)
        undescribed = [one for one in response["template_functions"] if not one["description"]]
        assert undescribed == []
    path = f"{V}/template_versions/AWSTemplateFormatVersion.2010-09-09/functions"
    _, response, _ = await client.call("GET", path)
    names = {one["functions"] for one in response["template_functions"]}
    assert {"Ref", "Fn::If"} <= names and "Fn::And" not in names
    path = f"{V}/template_versions/heat_template_version.rocky/functions"
    _, response, _ = await client.call("GET", path)
    names = {one["functions"] for one in response["template_functions"]}
    assert "get_attr" in names and "equals" not in names
    status, response, _ = await client.call("GET", f"{V}/template_versions/2018-08-32/functions")
    assert status == 404 and response["error"]["remedy"] == 'Did you mean "2018-08-31"?'


async def test_editors_read_the_schema_of_templates_without_rights() -> None:
    async with client_of(StubEngine(), Guest()) as client:
        status, schema, headers = await client.call("GET", "/schemas/hot.json")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert schema["title"] == "Heat Orchestration Template"
    assert "Test::Secret.properties" in schema["$defs"]


async def test_resource_types_are_filtered_by_a_prefix_pattern(client: Client) -> None:
    for query, found in {
        "": True, "name=Test": True, "name=ecret": False, "name=.*%3A%3AS": True, "name=(": False,
        "support_status=SUPPORTED": True, "support_status=deprecated": False, "version=5": False,
        "name=(.*.*.*.*)*%23": False,
    }.items():  # fmt: skip
        _, response, _ = await client.call("GET", f"{V}/resource_types?{query}")
        assert response["resource_types"] == ["Test::Secret"] * found, query
    status, response, _ = await client.call("GET", f"{V}/resource_types?support_status=fine")
    assert status == 400 and "support_status" in response["error"]["message"]
