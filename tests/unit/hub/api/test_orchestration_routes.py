"""Routes of the Orchestration API: redirects, refusals, and what the engine is asked."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from engine.errors import Unavailable
from engine.principal import named
from tests.unit.hub.api.orchestration_support import (
    MAX_BODY,
    STACK_ID,
    Client,
    stack,
)

V = "/v1/demo"
S = f"{V}/stacks/web/{STACK_ID}"

ANONYMOUS = named("anonymous")


@pytest.mark.parametrize("method", ["GET", "PUT", "PATCH", "DELETE", "POST"])
@pytest.mark.parametrize("name", ["web", str(STACK_ID)])
async def test_a_short_path_leads_to_the_canonical_one(
    client: Client, method: str, name: str
) -> None:
    status, said, headers = await client.call(method, f"{V}/stacks/{name}?a=b%20c&a=d")
    assert status == 302
    assert headers["Location"] == f"{client.url}{S}?a=b%20c&a=d"
    assert (said["code"], said["title"]) == ("302 Found", "Found")


@pytest.mark.parametrize(
    ("method", "rest"),
    [("GET", one) for one in ("resources", "events", "template", "environment", "files")]
    + [("POST", "actions")],
)
async def test_short_paths_of_parts_lead_there_too(client: Client, method: str, rest: str) -> None:
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
        other = f"arn:openstack:heat::other:stacks{slash}web{slash}{STACK_ID}"
        assert (await client.call("GET", f"{V}/stacks/{other}"))[0] == 404


async def test_an_odd_project_does_not_break_the_redirect(client: Client) -> None:
    client.engine.records = [stack(project="a\r\nX: y/")]
    status, _, headers = await client.call("GET", "/v1/a%0D%0AX:%20y%2F/stacks/web")
    assert status == 302
    assert headers["Location"] == f"{client.url}/v1/a%0D%0AX:%20y%2F/stacks/web/{STACK_ID}"


async def test_name_and_id_must_belong_together(client: Client) -> None:
    status, said, _ = await client.call("GET", f"{V}/stacks/other/{STACK_ID}")
    assert (status, said["error"]["type"]) == (404, "EntityNotFound")


async def test_creating_answers_with_where_the_stack_is(client: Client) -> None:
    status, said, headers = await client.call(
        "POST",
        f"{V}/stacks",
        json={"stack_name": "web", "template": {}, "hooks": {"add": ["db:pre-create"]}},
        headers={"Idempotency-Key": "k1", "X-Auth-User": "ann"},
    )
    assert status == 201
    assert headers["Location"] == said["stack"]["links"][0]["href"] == f"{client.url}{S}"
    ((what, request),) = client.engine.asked
    assert (what, request.idempotency_key, request.requested_by) == ("create", "k1", named("ann"))
    assert request.hooks_add == ["db:pre-create"]


@pytest.mark.parametrize(("method", "existing"), [("PUT", False), ("PATCH", True)])
async def test_put_replaces_and_patch_builds_on_what_there_is(
    client: Client, method: str, existing: bool
) -> None:
    body = {"hooks": {"clear": ["*"]}}
    status, _, _ = await client.call(method, S, json=body)
    ((what, request),) = client.engine.asked
    assert (status, what, request.existing, request.hooks_clear) == (
        202,
        "update",
        existing,
        ["*"],
    )


async def test_deleting_answers_with_nothing(client: Client) -> None:
    status, said, _ = await client.call("DELETE", S)
    assert (status, said) == (204, None)
    assert client.engine.asked == [("delete", ("demo", STACK_ID, ANONYMOUS))]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"a":', "HTTPBadRequest"),
        (b"[1]", "HTTPBadRequest"),
        (b'{"stack_name": "a\\u0000"}', "HTTPBadRequest"),
        (b"\xff", "HTTPBadRequest"),
    ],
)
async def test_a_body_that_is_no_json_object_is_refused(
    client: Client, body: bytes, code: str
) -> None:
    status, said, _ = await client.call("POST", f"{V}/stacks", data=body)
    assert (status, said["error"]["type"]) == (400, code)
    assert client.engine.asked == []


async def test_text_that_only_looks_like_a_nul_is_taken(client: Client) -> None:
    status, _, _ = await client.call("POST", f"{V}/stacks", data=b'{"stack_name": "a\\\\u0000"}')
    assert status == 201


async def test_too_large_a_body_is_refused(client: Client) -> None:
    status, said, _ = await client.call("POST", f"{V}/stacks", data=b"x" * (MAX_BODY + 1))
    assert (status, said["error"]["type"]) == (413, "RequestTooLarge")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({}, "No action specified"),
        ({"suspend": None, "check": None}, "Multiple actions specified"),
        ({"dance": None}, 'there is no action "dance"'),
    ],
)
async def test_an_action_that_is_none_is_refused(
    client: Client, body: dict[str, Any], told: str
) -> None:
    status, said, _ = await client.call("POST", f"{S}/actions", json=body)
    assert status == 400
    assert told in said["error"]["message"]


@pytest.mark.parametrize(
    ("action", "asked"),
    [
        ("check", ("visit", (STACK_ID, "CHECK", ANONYMOUS))),
        ("suspend", ("visit", (STACK_ID, "SUSPEND", ANONYMOUS))),
        ("resume", ("visit", (STACK_ID, "RESUME", ANONYMOUS))),
        ("cancel_update", ("cancel", (STACK_ID, True, ANONYMOUS))),
        ("cancel_without_rollback", ("cancel", (STACK_ID, False, ANONYMOUS))),
        ("stop", ("stop", (STACK_ID, ANONYMOUS))),
    ],
)
async def test_an_action_is_asked_of_the_engine(client: Client, action: str, asked: Any) -> None:
    status, said, _ = await client.call("POST", f"{S}/actions", json={action: None})
    assert (status, said) == (200, None)
    assert client.engine.asked == [asked]


@pytest.mark.parametrize(
    "body", [{}, {"mark_unhealthy": 1}, {"protect": "yes"}, {"mark_unhealthy": True, "x": 1}]
)
async def test_a_mark_that_is_none_is_refused(client: Client, body: Any) -> None:
    status, said, _ = await client.call("PATCH", f"{S}/resources/pw", json=body)
    assert (status, said["code"]) == (400, 400)


async def test_a_hook_is_cleared_by_a_signal(client: Client) -> None:
    path = f"{S}/resources/pw/signal"
    status, said, _ = await client.call("POST", path, json={"unset_hook": "pre-create"})
    assert (status, said) == (200, None)
    ((asked, (name, point, given)),) = client.engine.asked
    assert (asked, name, point) == ("unset_hook", "pw", "pre-create")
    assert (given.by, given.door, given.decision) == (ANONYMOUS, "unset_hook", "continue")


async def test_a_signal_that_is_no_answer_is_data_for_the_resource(client: Client) -> None:
    status, said, _ = await client.call("POST", f"{S}/resources/pw/signal", json={"x": 1})
    assert (status, said) == (200, None)
    assert client.engine.asked == [("signal", ("pw", {"x": 1}, ANONYMOUS))]


async def test_secret_attributes_are_masked(client: Client) -> None:
    _, said, _ = await client.call("GET", f"{S}/resources/pw")
    assert said["resource"]["attributes"] == {"value": "******", "size": 4}
    assert said["resource"]["required_by"] == ["app"]


async def test_an_unknown_resource_is_named_with_the_nearest(client: Client) -> None:
    status, said, _ = await client.call("GET", f"{S}/resources/ap")
    assert (status, said["error"]["type"]) == (404, "ResourceNotFound")
    assert 'Did you mean "app"?' in said["error"]["message"]


async def test_outputs_have_values_one_at_a_time(client: Client) -> None:
    _, said, _ = await client.call("GET", f"{S}/outputs")
    assert said["outputs"][0] == {"output_key": "good", "description": "a"}
    _, said, _ = await client.call("GET", f"{S}/outputs/bad")
    assert said["output"]["output_error"] == "not there yet"


async def test_a_wrong_method_is_told_the_right_ones(client: Client) -> None:
    status, said, headers = await client.call("DELETE", f"{V}/stacks")
    assert (status, headers["Allow"], said["code"]) == (405, "GET, HEAD, POST", 405)
    status, said, headers = await client.call("OPTIONS", f"{V}/stacks")
    assert (status, headers["Allow"], said) == (204, "GET, HEAD, POST", None)


async def test_each_path_has_its_form_of_error(client: Client) -> None:
    for path in (f"{V}/nothing", f"{V}/stacks/why", f"{V}/stacks/graph", f"{S}/resources/graph"):
        status, said, _ = await client.call("GET", path)
        assert (status, said["code"]) == (404, 404)
    for path in (f"{V}/stacks/x/{STACK_ID}/graph", f"{V}/hooks/x/nothing", "/nothing"):
        status, said, _ = await client.call("GET", path)
        assert (status, list(said)) == (404, ["error"])
        assert {"type", "message", "place", "remedy"} <= said["error"].keys()


async def test_every_answer_has_an_id_of_its_own(client: Client) -> None:
    ids = [
        (await client.call("GET", path))[2]["x-openstack-request-id"]
        for path in ("/", f"{V}/stacks", "/nothing", f"{V}/stacks/web")
    ]
    assert len(set(ids)) == 4


async def test_a_bug_is_logged_and_not_shown(client: Client) -> None:
    client.engine.fails = RuntimeError("s3cret detail")
    with capture_logs() as logs:
        status, said, headers = await client.call("GET", S)
    assert (status, said["error"]["type"]) == (500, "InternalError")
    assert headers["x-openstack-request-id"] in said["error"]["message"]
    assert "s3cret" not in str(said)
    assert said["error"]["traceback"] is None
    (bug,) = [line for line in logs if line["event"] == "request.bug"]
    assert bug["exc_info"] is client.engine.fails


async def test_a_time_out_that_is_not_the_requests_is_a_bug(client: Client) -> None:
    client.engine.fails = TimeoutError()
    with capture_logs():
        status, _, _ = await client.call("GET", S)
    assert status == 500


async def test_what_is_not_there_for_now_is_503(client: Client) -> None:
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
