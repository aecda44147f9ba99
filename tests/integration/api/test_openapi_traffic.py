"""Valid and invalid requests to every route; every response is validated with /openapi.json."""

import io
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from engine.types.contract import Failed
from engine.types.observation import Difference, Observation
from engine.words import ObservedState
from hub.api.dashboard import all_files
from tests.integration.conftest import DatabaseOutage
from tests.support.agent import OUTPUTS, SERVER, signed_metadata_url
from tests.support.changes import observed, put, thing, until_deleted, until_status
from tests.support.openapi_check import OpenApiDocument, RecordingClient
from tests.support.program import Json, eventually, identity_headers, program, template
from tests.support.receiver import Receiver, running_receiver, until
from tests.support.scripted_type import Thing, World

PARAMETERS: Json = {
    "size": {"type": "number", "default": 3, "constraints": [{"range": {"min": 1, "max": 9}}]},
    "name": {"type": "string", "default": "ab", "label": "A name", "tags": ["t"],
             "constraints": [{"length": {"min": 1}, "description": "short"},
                             {"allowed_pattern": "[a-z]+"}, {"allowed_values": ["ab", "cd"]}]},
    "list": {"type": "comma_delimited_list", "default": "a,b"},
    "map": {"type": "json", "default": {"a": 1}},
    "step": {"type": "number", "default": 4, "constraints": [{"modulo": {"step": 2, "offset": 0}}]},
    "key": {"type": "string", "hidden": True, "default": "k"},
    "on": {"type": "boolean", "default": True},
}  # fmt: skip
FULL_TEMPLATE = template(
    {"a": thing({"get_param": "size"}, metadata={"m": 1}), "b": thing(depends_on="a")},
    description="All of it",
    parameters=PARAMETERS,
    parameter_groups=[{"label": "g", "parameters": ["size"]}],
    outputs={"size": {"value": {"get_attr": ["a", "size"]}, "description": "its size"},
             "none": {"value": {"get_attr": ["a", "size", "deep"]}}},
)  # fmt: skip
HOOKS = {"hooks": [{"at": "a", "on": ["pre-create"], "ask": {"schema": {"type": "object"}},
                   "answer_by": ["user:ann"], "approvals": 1, "timeout": "2h"}]}  # fmt: skip
STACK_HOOKS = {"hooks": [{"on": ["pre-stack-create"]}]}


@pytest.fixture
async def run(database_url: str) -> AsyncIterator[tuple[RecordingClient, World]]:
    world = World()
    settings = {"channels.webhook.attempts": 1, "engine.first_retry": "1s"}
    async with program(database_url, settings, types=[Thing(world)]) as server:
        yield RecordingClient(server.session, server.url), world


#: tests/integration/api/test_oidc.py and test_cli_login.py have a server with these routes.
SIGN_IN_ROUTES = {("get", "/v1/{project}/session/oidc"), ("get", "/oidc/callback")}
LOGIN_ROUTES = {
    ("post", "/v1/{project}/session/oidc/codes"),
    ("post", "/v1/{project}/session/oidc/tokens"),
}
#: tests/integration/api/test_slack_answers.py has a server with this route.
SLACK_ROUTES = {("post", "/slack/interactions")}
#: tests/integration/keystone/test_observation_credentials.py has a server with these routes.
CREDENTIAL_ROUTES = {
    (method, "/v1/{project}/observation-credential") for method in ("get", "put", "delete")
}


async def ok(run: RecordingClient, method: str, path: str, body: Json = None, **more: Json) -> Json:
    status, response = await run.call(method, path, body, **more)
    assert status < 400, response
    return response


async def path_of(run: RecordingClient, name: str) -> str:
    return f"/stacks/{name}/{(await run.stack(name))['id']}"


async def call_server_routes(run: RecordingClient) -> None:
    for path in ("//", "//versions", "//v1", "//v1/", "//v2", "//v2/p", "//healthz", "//healthcheck", "//readyz", "//metrics", "//openapi.json",
                 "//asyncapi.json", "//errors", "//errors/StackExists", "//schemas/headgate.hook.waiting", "//schemas/hot.json", f"//dashboard/{all_files().digest}/main.js", "//v1/p", "//v1/p/", "/services", "/build_info", "/webhook-key",
                 "/resource_types?with_description=true"):  # fmt: skip
        await ok(run, "GET", path)
    for name in (await ok(run, "GET", "/resource_types"))["resource_types"]:
        await ok(run, "GET", f"/resource_types/{name}")
    for one in (await ok(run, "GET", "/template_versions"))["template_versions"]:
        await ok(run, "GET", f"/template_versions/{one['version']}/functions")
    for form in ("", "?template_type=hot", "?template_type=cfn"):
        await ok(run, "GET", f"/resource_types/Test::Thing/template{form}")
    status, _ = await run.call("GET", "/resource_types/Test::Thing/template?template_type=x")
    assert status == 400
    await ok(run, "POST", "/validate", {"template": FULL_TEMPLATE, "parameters": {"key": "x"}})
    await ok(run, "POST", "/validate", {"template": template({}), "environment": HOOKS})


async def call_access_routes(run: RecordingClient) -> None:
    await ok(run, "GET", "/session")
    await ok(run, "GET", "/quotas")
    response = await ok(
        run, "POST", "/tokens", {"name": "ci", "roles": ["author"], "expires_in": "1d"}
    )
    await ok(run, "POST", "/tokens", {"name": "ann", "roles": ["reader"], "everywhere": True,
                                      "password": "long enough for it"})  # fmt: skip
    signed_in = await ok(run, "POST", "/session", {"token": response["token"]})
    assert signed_in["csrf"]
    await ok(run, "GET", "/tokens?everywhere=true")
    await ok(run, "DELETE", f"/tokens/{response['id']}")
    await ok(run, "GET", "/tokens?all=true")
    await ok(run, "DELETE", "/session")
    for path, body in (("/session", {}), ("/tokens", {"name": "", "roles": ["boss"]})):
        status, _ = await run.call("POST", path, body)
        assert status == 400
    status, _ = await run.call("DELETE", f"/tokens/{response['id']}")
    assert status == 404


async def call_routes_of_a_waiting_stack(run: RecordingClient) -> None:
    sent = {"stack_name": "s", "template": FULL_TEMPLATE, "environment": HOOKS, "files": {"f": "text"},
            "tags": ["one"], "timeout_mins": 5}  # fmt: skip
    await ok(run, "POST", "/stacks/preview", sent)
    await ok(run, "POST", "/stacks", sent)
    (hook,) = await run.waiting_hooks("s")
    at, one = await path_of(run, "s"), f"/hooks/{hook['id']}"
    for part in ("graph", "why", "events", "resources", "outputs", "breakpoints", "decisions"):
        await ok(run, "GET", f"{at}/{part}")
    added = await ok(
        run, "POST", f"{at}/breakpoints", {"breakpoints": ["b:pre-create", "a:pre-create"]}
    )
    assert added["too_late"]
    await ok(run, "GET", f"{at}/breakpoints")
    await ok(
        run,
        "POST",
        f"{one}/hand-over",
        {"to": "user:cy", "note": "yours"},
        headers=identity_headers("ann"),
    )
    later = {"decision": "progress", "extend": "1h"}
    await ok(run, "POST", f"{one}/signal", later, headers=identity_headers("cy"))
    for path in (one, f"/{one}", "/hooks?limit=1", f"{one}/decisions", "/decisions?limit=1"):
        await ok(run, "GET", path)
    for wrong in ({"decision": "maybe"}, {"decision": "continue", "digest": "0"}):
        assert (await run.call("POST", f"{one}/signal", wrong, headers=identity_headers("cy")))[
            0
        ] >= 400
    assert (await run.call("POST", f"{one}/signal", {"decision": "continue"}))[0] == 403
    answer: Json = {"decision": "continue", "data": {}}
    await ok(run, "POST", f"{one}/signal", answer, headers=identity_headers("cy"))
    status, error = await run.call(
        "POST", f"{one}/signal", {"decision": "reject"}, headers=identity_headers("ann")
    )
    assert status == 409 and error["error"]["decided_by"] == "cy"
    (second,) = await run.waiting_hooks("s")
    assert (second["resource_name"], second["point"]) == ("b", "pre-create")
    await ok(run, "POST", f"{at}/resources/b/signal", {"unset_hook": "pre-create"})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    for made in added["breakpoints"]:
        await ok(run, "DELETE", f"{at}/breakpoints/{made['id']}")


def token_header(receiver: Receiver, hook: Json) -> dict[str, str]:
    """The header with the hook token, once the notification is delivered; before, {}."""
    for event in receiver.events:
        if event["type"] == "headgate.hook.waiting" and event["data"]["hook"]["id"] == hook["id"]:
            return {"Authorization": f"Bearer {event['data']['token']}"}
    return {}


async def more_hooks(run: RecordingClient, receiver: Receiver) -> None:
    """Hooks of whole stacks, and expired, superseded and run-to hooks."""
    await ok(
        run,
        "POST",
        "/stacks",
        {"stack_name": "gate", "template": FULL_TEMPLATE, "environment": STACK_HOOKS},
    )
    (gate,) = await run.waiting_hooks("gate")
    assert gate["resource"] is None and gate["change"]["plan"]
    await until(lambda: token_header(receiver, gate))
    decision = {"decision": "reject", "reason": "no"}
    await ok(
        run, "POST", f"//hooks/{gate['id']}/signal", decision, headers=token_header(receiver, gate)
    )
    await run.until_ended("gate")
    late = {"hooks": [{"at": "a", "on": ["pre-create"], "timeout": "1s"}]}
    await run.create("late", {"a": thing()}, environment=late)
    await run.until_ended("late")
    await ok(run, "GET", f"{await path_of(run, 'late')}/why")
    rules = {"hooks": [{"at": "a", "on": ["pre-create"]}]}
    await run.create("r", {"a": thing(), "b": thing(depends_on="a")}, environment=rules)
    await run.waiting_hooks("r")
    assert await run.stack_request("POST", "r", "/run-to", {"resource": "b"})
    await eventually(lambda: waits_at(run, "b"))
    await put(run, "r", {"a": thing()}, hooks={"clear": ["*"]})
    await run.until_ended("r")
    states = {one["state"] for one in (await ok(run, "GET", "/hooks"))["hooks"]}
    assert states == {"answered", "expired", "superseded"}


async def waits_at(run: RecordingClient, name: str) -> bool:
    return bool((await run.waiting_hooks("r"))[0]["resource_name"] == name)


async def run_stack(run: RecordingClient, world: World) -> None:
    at = await path_of(run, "s")
    changed = {**FULL_TEMPLATE, "resources": {"a": thing(2, place="there"), "c": thing()}}
    rules = {
        "hooks": [{"at": "c", "on": ["pre-create"], "mode": "notify"}, {"on": ["pre-stack-update"]}]
    }
    sent = {"template": changed, "environment": rules}
    for method in ("PUT", "PATCH"):
        assert (await ok(run, method, f"{at}/preview", sent))["stops"]
    await ok(run, "PUT", at, {"template": changed})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    await ok(run, "PATCH", at, {"parameters": {"size": 4}})
    await run.until_ended("s")
    for action in ("check", "suspend", "resume"):
        await ok(run, "POST", f"{at}/actions", {action: None})
        await until_status(run, "s", f"{action.upper()}_COMPLETE")
    for body in ({"mark_unhealthy": True}, {"protect": True}, {"protect": False}):
        await ok(run, "PATCH", f"{at}/resources/a", body)
    await ok(run, "POST", f"{at}/resources/a/signal", {"ready": True})
    signal = next(call.signal_url for call in reversed(world.calls) if call.resource_name == "a")
    for method in ("POST", "PUT"):
        await ok(run, method, f"/{signal.signed_url.removeprefix(run.url)}", {"ready": True})
    assert (await run.call("POST", f"/{signal.url.removeprefix(run.url)}", {}))[0] == 401
    response = await ok(run, "POST", f"{at}/snapshots", {"name": "kept"})
    await ok(run, "GET", f"{at}/snapshots")
    await ok(run, "PUT", f"{at}/pin", {"reason": "an audit"})
    await ok(run, "GET", at)
    await ok(run, "DELETE", f"{at}/pin")
    await until_status(run, "s", "SNAPSHOT_COMPLETE")
    one = f"{at}/snapshots/{response['id']}"
    await ok(run, "GET", one)
    await ok(run, "POST", f"{one}/restore", {})
    await run.until_ended("s")
    await ok(run, "DELETE", one)
    world.script("update", "c", Failed("no"))
    await put(run, "s", {"a": thing(deletion_policy="Snapshot"), "c": thing(5)})
    assert await run.until_ended("s") == "UPDATE_FAILED"
    await put(run, "s", {"c": thing(5)})
    await run.until_ended("s")


async def call_drift(run: RecordingClient, world: World) -> None:
    at = await path_of(run, "s")
    assert (await ok(run, "GET", f"{at}/drift"))["observed_at"] is None
    difference = Difference("size", 5, {"observed": None})
    world.observed["c"] = Observation(ObservedState.CHANGED, [difference])
    drift = await observed(run, "s")
    assert [one["resource_name"] for one in drift["resources"]] == ["c"]
    assert await ok(run, "GET", f"{at}/drift") == drift
    plan = await ok(run, "GET", f"{at}/drift/plan?only=c")
    assert [one["resource_name"] for one in plan["resource_changes"]["replaced"]] == ["c"]
    assert (await run.call("GET", f"{at}/drift/plan?only=missing"))[0] == 400
    existing = {"type": "Test::Thing", "id": next(iter(world.things)), "properties": {"size": 5}}
    missing = {"type": "Test::Thing", "id": "missing"}
    read = await ok(run, "POST", "/import", {"resources": [existing, missing]})
    assert read["resources"][0]["differences"] and len(read["findings"]) == 1
    assert (await ok(run, "GET", "/usage"))["usage"]
    assert (await ok(run, "GET", "/usage.csv")).startswith("day,")
    reported = {"physical_resource_id": "nothing", "type": "Test::Thing"}
    response = await ok(run, "POST", "/observations", {"observations": [reported]})
    assert response == {"resources": 0, "stacks": 0, "unknown": 1}


async def call_dependencies(run: RecordingClient) -> None:
    """A stack that reads outputs of another one."""
    version = {"heat_template_version": "headgate"}
    net = version | {"outputs": {"one": {"value": 1}}}
    app = version | {"outputs": {"two": {"value": {"stack_output": ["net", "one"]}}}}
    for name, body in (("net", net), ("app", app)):
        await ok(run, "POST", "/stacks", {"stack_name": name, "template": body})
        await run.until_ended(name)
    (read,) = (await ok(run, "GET", f"{await path_of(run, 'app')}/dependencies"))["reads"]
    assert (read["stack_name"], read["output"], read["changed"]) == ("net", "one", False)
    found = await ok(run, "GET", f"{await path_of(run, 'net')}/dependencies")
    assert [one["stack_name"] for one in found["read_by"]] == ["app"]


async def call_read_routes(run: RecordingClient) -> None:
    at = await path_of(run, "s")
    for part in ("", "?resolve_outputs=false", "/template", "/environment", "/files", "/outputs",
                 "/resources", "/events", "/events?limit=1&sort_dir=desc&nested_depth=1", "/graph",
                 "/why", "/breakpoints", "/decisions?limit=1", "/history", "/history?traversal=1&nested=true&limit=3", "/versions", "/versions/1",
                 "/resource_snapshots", "/snapshots", "/export", "/resources/c",
                 "/resources/c/metadata", "/resources/c/inspect"):  # fmt: skip
        await ok(run, "GET", f"{at}{part}")
    assert (await ok(run, "GET", f"{at}/resource_snapshots"))["resource_snapshots"]
    gate = await path_of(run, "gate")
    for key in ("size", "none"):
        await ok(run, "GET", f"{gate}/outputs/{key}")
    for one in (await ok(run, "GET", f"{at}/resources/c/events"))["events"]:
        await ok(run, "GET", f"{at}/resources/c/events/{one['id']}")
    for query in ("", "/detail", "?limit=1&with_count=true", "?tags=one", "?show_deleted=true"):
        await ok(run, "GET", f"/stacks{query}")
    for query in ("", "?counts=true&limit=1"):
        await ok(run, "GET", f"/overview{query}")
    (hook, *_) = (await ok(run, "GET", "/hooks"))["hooks"]
    for query in ("", "&kind=hook"):
        assert (await ok(run, "GET", f"/ids?prefix={hook['id'][:8]}{query}"))["ids"]
    for part in ("resources", "events", "template", "environment", "files"):
        await ok(run, "GET", f"/stacks/s/{part}")
    async with run.session.get(f"{run.url}/v1/p/events/stream") as stream:
        run.record("GET", stream, None)


async def call_short_paths(run: RecordingClient) -> None:
    """Short paths redirect to routes that can refuse the request."""
    for method, path in (("POST", ""), ("PUT", ""), ("PATCH", ""), ("GET", "/actions"),
                         ("POST", "/resources"), ("POST", "/events"), ("POST", "/template"),
                         ("POST", "/actions")):  # fmt: skip
        await run.call(method, f"/stacks/s{path}", {})


async def call_subscription_routes(run: RecordingClient, receiver: Receiver) -> None:
    response = await ok(run, "POST", "/subscriptions", {"target": receiver.url, "tags": ["one"]})
    one = f"/subscriptions/{response['id']}"
    await ok(run, "PATCH", one, {"events": ["headgate.stack.*"], "ordered": False, "tags": []})
    for path in ("/subscriptions", "/subscriptions?limit=1", one):
        await ok(run, "GET", path)
    assert (await ok(run, "POST", f"{one}/test"))["delivered"]
    receiver.respond_with_statuses(500)
    assert not (await ok(run, "POST", f"{one}/test"))["delivered"]
    await run.create("t", {"a": thing()}, tags=["one"])
    await run.until_ended("t")
    await eventually(lambda: until_dead(run, one))
    receiver.respond_with_statuses(200)
    await ok(run, "POST", f"{one}/redeliver", {"state": "dead"})
    await ok(run, "POST", f"{one}/redeliver", {"since": "2026-01-01T00:00:00Z"})
    for query in ("", "?limit=1", "?state=dead"):
        await ok(run, "GET", f"{one}/deliveries{query}")
    await ok(run, "POST", f"{one}/rotate")
    for wrong in ({}, {"delivery": str(uuid4())}, {"since": "soon"}):
        assert (await run.call("POST", f"{one}/redeliver", wrong))[0] >= 400
    await ok(run, "DELETE", one)


async def until_dead(run: RecordingClient, one: str) -> bool:
    return bool((await ok(run, "GET", f"{one}/deliveries?state=dead"))["deliveries"])


async def call_software_routes(run: RecordingClient) -> None:
    configs, deployments = "/software_configs", "/software_deployments"
    sent = {"name": "c", "config": "true", "inputs": [{"name": "a"}], "outputs": [{"name": "o"}]}
    response = (await ok(run, "POST", configs, sent))["software_config"]
    await ok(run, "POST", configs, {"config": {"a": 1}})
    for path in (configs, f"{configs}/{response['id']}", f"{configs}?limit=1&global_tenant=true"):
        await ok(run, "GET", path)
    wanted = {"config_id": response["id"], "server_id": "s", "input_values": {"a": 1}}
    one = (await ok(run, "POST", deployments, wanted))["software_deployment"]
    path = f"{deployments}/{one['id']}"
    await ok(run, "PUT", path, {"status": "COMPLETE", "output_values": {"o": 1}})
    for shown in (deployments, path, f"{deployments}?server_id=s", f"{deployments}/metadata/s"):
        await ok(run, "GET", shown)
    assert (await run.call("DELETE", f"{configs}/{response['id']}"))[0] == 400
    await ok(run, "DELETE", path)
    await ok(run, "DELETE", f"{configs}/{response['id']}")
    sent = {"stack_name": "servers", "template": template({"server": SERVER}, outputs=OUTPUTS)}
    await ok(run, "POST", "/stacks", sent)
    await until_status(run, "servers", "CREATE_COMPLETE")
    at = await path_of(run, "servers")
    agent = (await ok(run, "GET", f"{at}/outputs/agent"))["output"]["output_value"]
    await ok(run, "GET", f"/{signed_metadata_url(agent).removeprefix(run.url)}")
    for changed in ({"Signature": "x"}, {"StackName": "other"}):
        wrong = f"/{signed_metadata_url(agent, **changed).removeprefix(run.url)}"
        assert (await run.call("GET", wrong))[0] == 401
    await ok(run, "GET", f"{at}/resources/server/metadata")


async def call_with_errors(run: RecordingClient) -> None:
    at, unknown_stack = await path_of(run, "s"), f"/stacks/nope/{uuid4()}"
    for method, path, body in (
        ("GET", "/stacks/nope", None), ("GET", unknown_stack, None), ("DELETE", unknown_stack, None),
        ("GET", "/hooks?state=wating", None), ("GET", f"/hooks/{uuid4()}", None),
        ("GET", "/stacks?sort_keys=colour", None), ("PUT", "/hooks", {}), ("PUT", at + "/graph", {}),
        ("POST", "/stacks", {"stack_name": "1x", "template": FULL_TEMPLATE}),
        ("POST", "/stacks", {"stack_name": "s", "template": FULL_TEMPLATE}),
        ("POST", "/stacks", {"stack_name": "w", "template": template({"a": {"type": "No"}})}),
        ("POST", "/validate", {}), ("POST", "/subscriptions", {"target": "ftp://x", "evnts": []}),
        ("POST", f"{at}/actions", {"dance": None}), ("GET", f"{at}/versions/99", None),
        ("GET", f"{at}/snapshots/none", None), ("GET", f"{at}/resources/none", None),
        ("GET", f"{at}/outputs/none", None), ("POST", f"{at}/breakpoints", {"breakpoints": 1}),
        ("POST", f"{at}/run-to", {}), ("PATCH", f"{at}/resources/c", {}),
        ("POST", f"//hooks/{uuid4()}/signal", {"decision": "continue"}),
        ("GET", f"/software_configs/{uuid4()}", None), ("POST", "/software_deployments", {}),
        ("GET", "//nothing/here", None), ("GET", "/stacks/%00", None),
        ("GET", "/events/stream?last_event_id=x", None), ("PUT", at, {"plan_digest": "0"}),
    ):  # fmt: skip
        assert (await run.call(method, path, body))[0] >= 400, path
    for data in (b"{", b"[]", io.BytesIO(b"#" * 2_200_000)):
        assert (await run.call("POST", "/stacks", data=data))[0] >= 400


async def call_during_outage(run: RecordingClient, database_outage: DatabaseOutage) -> None:
    at = await path_of(run, "t")
    await ok(run, "DELETE", f"{at}/abandon")
    await ok(run, "DELETE", await path_of(run, "s"))
    await until_deleted(run, "s")
    await run.call("DELETE", "/stacks/late")
    await until_deleted(run, "late")
    await ok(run, "GET", "/stacks?show_deleted=true")
    async with database_outage():
        for path in ("//readyz", "//healthcheck"):
            assert (await run.call("GET", path))[0] == 503
        assert (await run.call("GET", "/services"))[0] == 503
        assert (await run.call("GET", "/hooks"))[0] == 503


async def test_every_response_matches_the_openapi_document(
    run: tuple[RecordingClient, World], database_outage: DatabaseOutage
) -> None:
    watched, world = run
    document = OpenApiDocument(await ok(watched, "GET", "//openapi.json"))
    assert document.without_schema() == [] and document.dangling_references() == set()
    async with running_receiver() as receiver, running_receiver() as other:
        await ok(watched, "POST", "/subscriptions", {"target": receiver.url})
        await call_server_routes(watched)
        await call_access_routes(watched)
        await call_routes_of_a_waiting_stack(watched)
        await more_hooks(watched, receiver)
        await run_stack(watched, world)
        await call_drift(watched, world)
        await call_dependencies(watched)
        await call_read_routes(watched)
        await call_short_paths(watched)
        await call_subscription_routes(watched, other)
        await call_software_routes(watched)
        await call_with_errors(watched)
        await call_during_outage(watched, database_outage)
    wrong = [wrong for one in watched.responses for wrong in document.differences(one)]
    assert not wrong, "\n".join(wrong)
    unreached = SIGN_IN_ROUTES | LOGIN_ROUTES | CREDENTIAL_ROUTES | SLACK_ROUTES
    assert document.routes() - document.exercised == unreached
    refused = sum(one.status >= 400 for one in watched.responses)
    print(
        f"{len(watched.responses)} responses over {len(document.exercised)} routes, {refused} refused"
    )
