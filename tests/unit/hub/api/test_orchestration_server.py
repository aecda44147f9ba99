"""What the server is to clients: versions and their names, types, services, and who may."""

from dataclasses import replace

import pytest

from hub.auth.anonymous import Anonymous
from hub.auth.credentials import RequestCredentials
from hub.auth.identity import Identity
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
    async def identify(self, presented: RequestCredentials, project: str) -> Identity:
        return replace(
            await super().identify(presented, project), rights=frozenset({Right.NOTHING})
        )


async def test_who_may_not_may_not_by_another_name_or_by_head_either() -> None:
    engine = StubEngine()
    async with client_of(engine, Guest()) as client:
        for prefix in ("/v1", "/v1.0"):
            for method in ("GET", "HEAD", "POST"):
                assert (await client.call(method, f"{prefix}/demo/stacks"))[0] == 403
            for method in ("GET", "HEAD"):
                assert (await client.call(method, f"{prefix}/demo"))[0] == 200
    assert engine.asked == []


async def test_a_template_of_a_type_in_a_form_that_is_not_known(client: Client) -> None:
    path = f"{V}/resource_types/Test::Secret/template?template_type=xml"
    status, said, _ = await client.call("GET", path)
    assert (status, said["error"]["type"]) == (400, "HTTPBadRequest")
    assert '"xml" is not known. Known: cfn, hot.' in said["error"]["message"]


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
    got, said, _ = await client.call("GET", path)
    found = said[key][0] if key == "versions" else said[key]
    assert (got, found["links"][0]["href"]) == (status, f"{client.url}/v1/")


async def test_the_other_name_of_the_version_leads_on_under_that_name(client: Client) -> None:
    _, said, _ = await client.call("GET", "/v1.0/demo")
    assert said["version"]["links"][0]["href"] == f"{client.url}/v1.0/"
    _, _, headers = await client.call("PUT", "/v1.0/demo/stacks/web")
    assert headers["Location"] == f"{client.url}/v1.0/demo/stacks/web/{STACK_ID}"
    status, said, _ = await client.call("GET", f"/v1.0/demo/stacks/web/{STACK_ID}")
    assert (status, said["stack"]["links"][0]["href"]) == (200, headers["Location"])
    for path, form in (
        ("hooks/x/nothing", {"error"}),
        ("nothing", {"code", "title", "explanation", "error"}),
    ):
        status, said, _ = await client.call("GET", f"/v1.0/demo/{path}")
        assert (status, said.keys()) == (404, form)


async def test_a_head_is_answered_as_a_get_without_its_body(client: Client) -> None:
    for path, status in (("/healthz", 200), (f"{V}/stacks", 200), (f"{V}/stacks/web", 302),
                         (f"{S}/nothing", 404), ("/", 300), ("/healthcheck", 200)):  # fmt: skip
        got = await client.call("HEAD", path)
        assert got[:2] == (status, None)
    _, _, headers = await client.call("OPTIONS", f"{V}/events/stream")
    assert headers["Allow"] == "GET"  # which has no end


async def test_services_are_the_roles_of_processes(client: Client) -> None:
    _, said, _ = await client.call("GET", f"{V}/services")
    shown = [(one["host"], one["binary"], one["status"]) for one in said["services"]]
    assert shown == [
        ("h1", "headgate-api", "up"), ("h1", "headgate-engine", "up"),
        ("h2", "headgate-engine", "down"),
    ]  # fmt: skip
    assert len({one["id"] for one in said["services"]}) == 3
    assert said["services"][0]["updated_at"] == "2026-11-20T20:16:36.987654"


async def test_template_versions_and_their_functions(client: Client) -> None:
    _, said, _ = await client.call("GET", f"{V}/template_versions")
    aliases = {one["version"]: one["aliases"] for one in said["template_versions"]}
    assert aliases["heat_template_version.2018-08-31"] == ["heat_template_version.rocky"]
    kinds = {one["version"]: one["type"] for one in said["template_versions"]}
    assert [name for name, kind in kinds.items() if kind == "cfn"] == [
        "AWSTemplateFormatVersion.2010-09-09", "HeatTemplateFormatVersion.2012-12-12",
    ]  # fmt: skip
    for name in aliases:
        path = f"{V}/template_versions/{name}/functions?with_condition_func=True"
        _, said, _ = await client.call("GET", path)
        undescribed = [one for one in said["template_functions"] if not one["description"]]
        assert undescribed == []
    path = f"{V}/template_versions/AWSTemplateFormatVersion.2010-09-09/functions"
    _, said, _ = await client.call("GET", path)
    names = {one["functions"] for one in said["template_functions"]}
    assert {"Ref", "Fn::If"} <= names and "Fn::And" not in names
    path = f"{V}/template_versions/heat_template_version.rocky/functions"
    _, said, _ = await client.call("GET", path)
    names = {one["functions"] for one in said["template_functions"]}
    assert "get_attr" in names and "equals" not in names
    status, said, _ = await client.call("GET", f"{V}/template_versions/2018-08-32/functions")
    assert status == 404 and 'Did you mean "2018-08-31"?' in said["error"]["message"]


async def test_resource_types_are_found_by_the_beginnings_of_their_names(client: Client) -> None:
    for query, found in {
        "": True, "name=Test": True, "name=ecret": False, "name=.*%3A%3AS": True, "name=(": False,
        "support_status=SUPPORTED": True, "support_status=deprecated": False, "version=5": False,
        "name=(.*.*.*.*)*%23": False,
    }.items():  # fmt: skip
        _, said, _ = await client.call("GET", f"{V}/resource_types?{query}")
        assert said["resource_types"] == ["Test::Secret"] * found, query
    status, said, _ = await client.call("GET", f"{V}/resource_types?support_status=fine")
    assert status == 400 and "support_status" in said["error"]["message"]
