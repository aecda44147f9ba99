"""Routes of the Orchestration API: redirects, errors and calls of the engine."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from engine.errors import Unavailable
from engine.principal import principal_of_name
from tests.unit.hub.api.orchestration_support import (
    MAX_BODY,
    STACK_ID,
    Client,
    stack,
)

V = "/v1/demo"
S = f"{V}/stacks/web/{STACK_ID}"

ANONYMOUS = principal_of_name("anonymous")


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "POST"])
@pytest.mark.parametrize("name", ["web", str(STACK_ID)])
async def test_a_short_path_redirects_to_the_canonical_one(
    client: Client, method: str, name: str
) -> None:
    status, response, headers = await client.call(method, f"{V}/stacks/{name}?a=b%20c&a=d")
    assert status == 302
    assert headers["Location"] == f"{client.url}{S}?a=b%20c&a=d"
    assert (response["code"], response["title"]) == ("302 Found", "Found")


@pytest.mark.parametrize(
    ("method", "rest"),
    [("GET", one) for one in ("resources", "events", "template", "environment", "files")]
    + [("POST", "actions")],
)
async def test_short_paths_of_parts_redirect(client: Client, method: str, rest: str) -> None:
    status, _, headers = await client.call(method, f"{V}/stacks/web/{rest}")
    assert (status, headers["Location"]) == (302, f"{client.url}{S}/{rest}")


async def test_the_redirect_names_the_host_that_the_client_used(client: Client) -> None:
    _, _, headers = await client.call("GET", f"{V}/stacks/web", headers={"Host": "localhost:9"})
    assert headers["Location"] == f"http://localhost:9{S}"


async def test_an_arn_is_a_name(client: Client) -> None:
    for slash in ("%2F", "/"):
        arn = f"arn:openstack:heat::demo:stacks{slash}web{slash}{STACK_ID}"
        for method in ("GET", "DELETE"):
            status, _, headers = await client.call(method, f"{V}/stacks/{arn}?a=b")
            assert (status, headers["Location"]) == (302, f"{client.url}{S}?a=b")
        for method, rest in (("GET", "resources/a%20b/metadata"), ("POST", "actions")):
            status, _, headers = await client.call(method, f"{V}/stacks/{arn}/{rest}")
            assert (status, headers["Location"]) == (302, f"{client.url}{S}/{rest}")
        assert (await client.call("GET", f"{V}/stacks/{arn}/resources/a%0D%0AX:%20y"))[0] == 404
        other = f"arn:openstack:heat::other:stacks{slash}web{slash}{STACK_ID}"
        assert (await client.call("GET", f"{V}/stacks/{other}"))[0] == 404


async def test_the_redirect_quotes_the_project(client: Client) -> None:
    client.engine.records = [stack(project="a\r\nX: y/")]
    status, _, headers = await client.call("GET", "/v1/a%0D%0AX:%20y%2F/stacks/web")
    assert status == 302
    assert headers["Location"] == f"{client.url}/v1/a%0D%0AX:%20y%2F/stacks/web/{STACK_ID}"


async def test_name_and_id_must_belong_together(client: Client) -> None:
    status, response, _ = await client.call("GET", f"{V}/stacks/other/{STACK_ID}")
    assert (status, response["error"]["type"]) == (404, "EntityNotFound")


async def test_create_returns_the_location_of_the_stack(client: Client) -> None:
    status, response, headers = await client.call(
        "POST",
        f"{V}/stacks",
        json={"stack_name": "web", "template": {}, "hooks": {"add": ["db:pre-create"]}},
        headers={"Idempotency-Key": "k1", "X-Auth-User": "ann"},
    )
    assert status == 201
    assert headers["Location"] == response["stack"]["links"][0]["href"] == f"{client.url}{S}"
    ((what, request),) = client.engine.calls
    assert (what, request.idempotency_key, request.requested_by) == (
        "create",
        "k1",
        principal_of_name("ann"),
    )
    assert request.hooks_add == ["db:pre-create"]


@pytest.mark.parametrize(("method", "existing"), [("PUT", False), ("PATCH", True)])
async def test_put_replaces_and_patch_extends_the_template(
    client: Client, method: str, existing: bool
) -> None:
    body = {"hooks": {"clear": ["*"]}}
    status, _, _ = await client.call(method, S, json=body)
    ((what, request),) = client.engine.calls
    assert (status, what, request.existing, request.hooks_clear) == (
        202,
        "update",
        existing,
        ["*"],
    )


async def test_delete_has_an_empty_response(client: Client) -> None:
    status, response, _ = await client.call("DELETE", S)
    assert (status, response) == (204, None)
    assert client.engine.calls == [("delete", ("demo", STACK_ID, ANONYMOUS))]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"a":', "HTTPBadRequest"),
        (b"[1]", "HTTPBadRequest"),
        (b'{"stack_name": "a\\u0000"}', "HTTPBadRequest"),
        (b"\xff", "HTTPBadRequest"),
    ],
)
async def test_a_body_must_be_a_json_object(client: Client, body: bytes, code: str) -> None:
    status, response, _ = await client.call("POST", f"{V}/stacks", data=body)
    assert (status, response["error"]["type"]) == (400, code)
    assert client.engine.calls == []


async def test_an_escaped_backslash_before_u0000_is_accepted(client: Client) -> None:
    status, _, _ = await client.call("POST", f"{V}/stacks", data=b'{"stack_name": "a\\\\u0000"}')
    assert status == 201


async def test_a_body_above_the_limit_is_refused(client: Client) -> None:
    status, response, _ = await client.call("POST", f"{V}/stacks", data=b"x" * (MAX_BODY + 1))
    assert (status, response["error"]["type"]) == (413, "RequestTooLarge")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({}, "No action specified"),
        ({"suspend": None, "check": None}, "Multiple actions specified"),
        ({"dance": None}, "Invalid action dance specified"),
    ],
)
async def test_an_unknown_action_is_refused(
    client: Client, body: dict[str, Any], expected: str
) -> None:
    status, response, _ = await client.call("POST", f"{S}/actions", json=body)
    assert status == 400
    assert response["error"]["message"] == expected


@pytest.mark.parametrize(
    ("action", "call"),
    [
        ("check", ("visit", (STACK_ID, "CHECK", ANONYMOUS))),
        ("suspend", ("visit", (STACK_ID, "SUSPEND", ANONYMOUS))),
        ("resume", ("visit", (STACK_ID, "RESUME", ANONYMOUS))),
        ("cancel_update", ("cancel", (STACK_ID, True, ANONYMOUS))),
        ("cancel_without_rollback", ("cancel", (STACK_ID, False, ANONYMOUS))),
        ("stop", ("stop", (STACK_ID, ANONYMOUS))),
    ],
)
async def test_an_action_calls_the_engine(client: Client, action: str, call: Any) -> None:
    status, response, _ = await client.call("POST", f"{S}/actions", json={action: None})
    assert (status, response) == (200, None)
    assert client.engine.calls == [call]


@pytest.mark.parametrize(
    "body", [{}, {"mark_unhealthy": 1}, {"protect": "yes"}, {"mark_unhealthy": True, "x": 1}]
)
async def test_an_invalid_mark_is_refused(client: Client, body: Any) -> None:
    status, response, _ = await client.call("PATCH", f"{S}/resources/pw", json=body)
    assert (status, response["code"]) == (400, 400)


async def test_a_hook_is_cleared_by_a_signal(client: Client) -> None:
    path = f"{S}/resources/pw/signal"
    status, response, _ = await client.call("POST", path, json={"unset_hook": "pre-create"})
    assert (status, response) == (200, None)
    ((method, (name, point, answer)),) = client.engine.calls
    assert (method, name, point) == ("unset_hook", "pw", "pre-create")
    assert (answer.by, answer.channel, answer.decision) == (ANONYMOUS, "unset_hook", "continue")


async def test_a_signal_without_unset_hook_is_data_for_the_resource(client: Client) -> None:
    status, response, _ = await client.call("POST", f"{S}/resources/pw/signal", json={"x": 1})
    assert (status, response) == (200, None)
    assert client.engine.calls == [("signal", ("pw", {"x": 1}, ANONYMOUS))]


async def test_secret_attributes_are_masked(client: Client) -> None:
    _, response, _ = await client.call("GET", f"{S}/resources/pw")
    assert response["resource"]["attributes"] == {"value": "******", "size": 4}
    assert response["resource"]["required_by"] == ["app"]


async def test_an_unknown_resource_suggests_the_nearest_name(client: Client) -> None:
    status, response, _ = await client.call("GET", f"{S}/resources/ap")
    assert (status, response["error"]["type"]) == (404, "ResourceNotFound")
    error = response["error"]
    assert error["message"] == "The Resource (ap) could not be found in Stack web."
    assert error["remedy"] == 'Did you mean "app"?'


async def test_a_single_output_has_its_value(client: Client) -> None:
    _, response, _ = await client.call("GET", f"{S}/outputs")
    assert response["outputs"][0] == {"output_key": "good", "description": "a"}
    _, response, _ = await client.call("GET", f"{S}/outputs/bad")
    assert response["output"]["output_error"] == "not there yet"


async def test_a_wrong_method_gets_the_allowed_ones(client: Client) -> None:
    status, response, headers = await client.call("DELETE", f"{V}/stacks")
    assert (status, headers["Allow"], response["code"]) == (405, "GET, HEAD, POST", 405)
    status, response, headers = await client.call("OPTIONS", f"{V}/stacks")
    assert (status, headers["Allow"], response) == (204, "GET, HEAD, POST", None)


async def test_each_path_has_its_error_format(client: Client) -> None:
    for path in (f"{V}/nothing", f"{V}/stacks/why", f"{V}/stacks/graph", f"{S}/resources/graph"):
        status, response, _ = await client.call("GET", path)
        assert (status, response["code"]) == (404, 404)
    for path in (f"{V}/stacks/x/{STACK_ID}/graph", f"{V}/hooks/x/nothing", "/nothing"):
        status, response, _ = await client.call("GET", path)
        assert (status, list(response)) == (404, ["error"])
        assert {"type", "message", "place", "remedy"} <= response["error"].keys()


async def test_every_response_has_a_request_id(client: Client) -> None:
    ids = [
        (await client.call("GET", path))[2]["x-openstack-request-id"]
        for path in ("/", f"{V}/stacks", "/nothing", f"{V}/stacks/web")
    ]
    assert len(set(ids)) == 4


async def test_an_unexpected_error_is_logged_and_not_shown(client: Client) -> None:
    client.engine.fails = RuntimeError("s3cret detail")
    with capture_logs() as logs:
        status, response, headers = await client.call("GET", S)
    assert (status, response["error"]["type"]) == (500, "InternalError")
    assert headers["x-openstack-request-id"] in response["error"]["message"]
    assert "s3cret" not in str(response)
    assert response["error"]["traceback"] is None
    (bug,) = [line for line in logs if line["event"] == "request.failed"]
    assert bug["exc_info"] is client.engine.fails


async def test_a_timeout_inside_a_handler_is_an_unexpected_error(client: Client) -> None:
    client.engine.fails = TimeoutError()
    with capture_logs():
        status, _, _ = await client.call("GET", S)
    assert status == 500


async def test_an_unavailable_dependency_is_503(client: Client) -> None:
    client.engine.fails = Unavailable("the database does not answer")
    assert (await client.call("GET", S))[0] == 503


async def test_the_log_has_no_query(client: Client) -> None:
    with capture_logs() as logs:
        await client.call("GET", f"{V}/stacks?name=s3cret")
    (line,) = [one for one in logs if one["event"] == "request"]
    assert (line["path"], line["status"]) == (f"{V}/stacks", 200)
    assert "s3cret" not in str(logs)


async def test_requests_do_not_wait_for_each_other(client: Client) -> None:
    answers = await asyncio.gather(*(client.call("GET", S) for _ in range(20)))
    assert {status for status, _, _ in answers} == {200}
