"""Routes of the Orchestration API: redirects, refusals, and what the engine is asked."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from engine.errors import Unavailable
from engine.store.events import EventFilter
from hub.auth.identity import Identity
from hub.auth.nobody import Nobody
from hub.auth.presented import Presented
from hub.auth.roles import Right
from tests.unit.hub.api.orchestration_support import (
    EVENT_ID,
    MAX_BODY,
    OTHER_EVENT,
    STACK_ID,
    Client,
    StubEngine,
    client_of,
    stack,
)

V = "/v1/demo"
S = f"{V}/stacks/web/{STACK_ID}"


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
    _, _, headers = await client.call("GET", f"{V}/stacks/web", headers={"Host": "gate.example:9"})
    assert headers["Location"] == f"http://gate.example:9{S}"


async def test_an_arn_is_a_name(client: Client) -> None:
    for slash in ("%2F", "/"):
        arn = f"arn:openstack:heat::demo:stacks{slash}web{slash}{STACK_ID}"
        for method in ("GET", "DELETE"):
            status, _, headers = await client.call(method, f"{V}/stacks/{arn}?a=b")
            assert (status, headers["Location"]) == (302, f"{client.url}{S}?a=b")
        other = f"arn:openstack:heat::other:stacks{slash}web{slash}{STACK_ID}"
        assert (await client.call("GET", f"{V}/stacks/{other}"))[0] == 404


async def test_an_odd_project_does_not_break_the_redirect(client: Client) -> None:
    client.engine.stacks = [stack(project="a\r\nX: y/")]
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
    assert (what, request.idempotency_key, request.requested_by) == ("create", "k1", "ann")
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
    assert client.engine.asked == [("delete", ("demo", STACK_ID, "anonymous"))]


async def test_a_full_page_of_stacks_links_to_the_next(client: Client) -> None:
    _, said, _ = await client.call("GET", f"{V}/stacks?limit=1&tags=a,b&with_count=True")
    following = f"{client.url}{V}/stacks?limit=1&tags=a,b&with_count=True&marker={STACK_ID}"
    assert said["links"] == [{"href": following, "rel": "next"}]
    assert said["count"] == 1
    ((_, wanted),) = client.engine.asked
    assert (wanted.limit, wanted.tags) == (1, ["a", "b"])
    _, said, _ = await client.call("GET", f"{V}/stacks?limit=2")
    assert "links" not in said


class OfOneProject(Nobody):
    async def identify(self, presented: Presented, project: str) -> Identity:
        return replace(await super().identify(presented, project), everywhere=False)


async def test_stacks_of_every_project_are_not_for_somebody_of_one() -> None:
    engine = StubEngine()
    async with client_of(engine, OfOneProject()) as client:
        status, said, _ = await client.call("GET", f"{V}/stacks?global_tenant=True")
        assert (status, said["error"]["type"]) == (403, "Forbidden")
        assert engine.asked == []
        assert (await client.call("GET", f"{V}/stacks?global_tenant=False"))[0] == 200


class Guest(Nobody):
    async def identify(self, presented: Presented, project: str) -> Identity:
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


async def test_an_id_that_is_none_finds_no_stack(client: Client) -> None:
    status, _, _ = await client.call("GET", f"{V}/stacks?id=zz")
    assert status == 200
    assert client.engine.asked[0][1].ids == []


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("show_deleted=maybe", 400, "HTTPBadRequest"),
        ("limit=-1", 400, "HTTPBadRequest"),
        ("marker=x", 400, "HTTPBadRequest"),
        ("sort_keys=colour", 400, "HTTPBadRequest"),
        ("sort_dir=up", 400, "HTTPBadRequest"),
        ("name=%00", 400, "HTTPBadRequest"),
    ],
)
async def test_wrong_queries_are_refused(
    client: Client, query: str, status: int, code: str
) -> None:
    got, said, _ = await client.call("GET", f"{V}/stacks?{query}")
    assert (got, said["error"]["type"]) == (status, code)
    assert client.engine.asked == []


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


async def test_a_template_of_a_type_in_a_form_that_is_not_known(client: Client) -> None:
    path = f"{V}/resource_types/Test::Secret/template?template_type=xml"
    status, said, _ = await client.call("GET", path)
    assert (status, said["error"]["type"]) == (400, "HTTPBadRequest")
    assert '"xml" is not known. Known: cfn, hot.' in said["error"]["message"]


@pytest.mark.parametrize(
    ("action", "asked"),
    [
        ("check", ("visit", (STACK_ID, "CHECK", "anonymous"))),
        ("suspend", ("visit", (STACK_ID, "SUSPEND", "anonymous"))),
        ("resume", ("visit", (STACK_ID, "RESUME", "anonymous"))),
        ("cancel_update", ("cancel", (STACK_ID, True, "anonymous"))),
        ("cancel_without_rollback", ("cancel", (STACK_ID, False, "anonymous"))),
        ("stop", ("stop", (STACK_ID, "anonymous"))),
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
    assert (given.by, given.door, given.decision) == ("anonymous", "unset_hook", "continue")


async def test_a_signal_that_is_no_answer_is_data_for_the_resource(client: Client) -> None:
    status, said, _ = await client.call("POST", f"{S}/resources/pw/signal", json={"x": 1})
    assert (status, said) == (200, None)
    assert client.engine.asked == [("signal", ("pw", {"x": 1}, "anonymous"))]


async def test_secret_attributes_are_masked(client: Client) -> None:
    _, said, _ = await client.call("GET", f"{S}/resources/pw")
    assert said["resource"]["attributes"] == {"value": "******", "size": 4}
    assert said["resource"]["required_by"] == ["app"]


async def test_resources_are_filtered_and_unknown_filters_refused(client: Client) -> None:
    _, said, _ = await client.call("GET", f"{S}/resources?name=app&name=none&nested_depth=2")
    assert [one["resource_name"] for one in said["resources"]] == ["app"]
    for query in ("colour=red", "limit=1"):
        status, said, _ = await client.call("GET", f"{S}/resources?{query}")
        assert status == 400
        assert "Invalid filter parameters" in said["error"]["message"]


async def test_resources_are_listed_in_detail(client: Client) -> None:
    _, said, _ = await client.call("GET", f"{S}/resources?with_detail=True")
    attributes = {"value": "******", "size": 4}
    assert {one["resource_name"]: one["description"] for one in said["resources"]} == {
        "pw": "A word", "app": "",
    }  # fmt: skip
    assert [one["attributes"] for one in said["resources"]] == [attributes, attributes]
    _, said, _ = await client.call("GET", f"{S}/resources/pw?with_attr=size&with_attr=colour")
    assert said["resource"]["attributes"] == attributes | {"colour": None}
    assert said["resource"]["description"] == "A word"


async def test_an_unknown_resource_is_named_with_the_nearest(client: Client) -> None:
    status, said, _ = await client.call("GET", f"{S}/resources/ap")
    assert (status, said["error"]["type"]) == (404, "ResourceNotFound")
    assert 'Did you mean "app"?' in said["error"]["message"]


async def test_a_page_after_the_last_event_is_empty(client: Client) -> None:
    for path in (f"{S}/events", f"{S}/resources/pw/events"):
        status, said, _ = await client.call("GET", f"{path}?marker={OTHER_EVENT}")
        assert (status, said) == (200, {"events": []})
    status, _, _ = await client.call("GET", f"{S}/resources/nope/events")
    assert status == 404


async def test_events_are_asked_for_as_the_query_says(client: Client) -> None:
    await client.call("GET", f"{S}/events?marker={EVENT_ID}&limit=5&sort_dir=desc")
    wanted = EventFilter(marker=EVENT_ID, limit=5, descending=True)
    assert client.engine.asked == [("events", wanted)]


async def test_events_below_a_stack_lead_to_its_root(client: Client) -> None:
    _, said, _ = await client.call("GET", f"{S}/events?resource_name=pw&limit=1&nested_depth=1")
    (only,) = said["events"]
    assert only["resource_name"] == "pw"
    assert only["links"][-1]["rel"] == "root_stack"


async def test_an_event_is_found_under_its_own_resource_only(client: Client) -> None:
    status, said, _ = await client.call("GET", f"{S}/resources/pw/events/{OTHER_EVENT}")
    assert (status, said["event"]["resource_type"]) == (200, "Test::Secret")
    assert said["event"]["resource_properties"] == {"length": 4}
    status, _, _ = await client.call("GET", f"{S}/resources/app/events/{OTHER_EVENT}")
    assert status == 404


async def test_outputs_have_values_one_at_a_time(client: Client) -> None:
    _, said, _ = await client.call("GET", f"{S}/outputs")
    assert said["outputs"][0] == {"output_key": "good", "description": "a"}
    _, said, _ = await client.call("GET", f"{S}/outputs/bad")
    assert said["output"]["output_error"] == "not there yet"


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
    for name in aliases:
        path = f"{V}/template_versions/{name}/functions?with_condition_func=True"
        _, said, _ = await client.call("GET", path)
        undescribed = [one for one in said["template_functions"] if not one["description"]]
        assert undescribed == []
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
