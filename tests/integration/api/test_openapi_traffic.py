"""Every route, driven as it is used and misused; every answer held against /openapi.json."""

import io
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from engine.types.contract import Failed
from hub.dashboard.files import all_files
from tests.integration.conftest import Away
from tests.support.agent import OUTPUTS, SERVER, asking
from tests.support.changes import ended_as, gone, put, thing
from tests.support.documented import Document, Watched
from tests.support.program import Json, eventually, program, template, who
from tests.support.receiver import Receiver, receiving, until
from tests.support.things import Thing, World

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
WHOLE = template(
    {"a": thing({"get_param": "size"}, metadata={"m": 1}), "b": thing(depends_on="a")},
    description="All of it",
    parameters=PARAMETERS,
    parameter_groups=[{"label": "g", "parameters": ["size"]}],
    outputs={"size": {"value": {"get_attr": ["a", "size"]}, "description": "its size"},
             "none": {"value": {"get_attr": ["a", "size", "deep"]}}},
)  # fmt: skip
HELD = {"hooks": [{"at": "a", "on": ["pre-create"], "ask": {"schema": {"type": "object"}},
                   "answer_by": ["user:ann"], "approvals": 1, "timeout": "2h"}]}  # fmt: skip
GATED = {"hooks": [{"on": ["pre-stack-create"]}]}


@pytest.fixture
async def run(database_url: str) -> AsyncIterator[tuple[Watched, World]]:
    world = World()
    said = {"channels.webhook.attempts": 1, "engine.first_retry": "1s"}
    async with program(database_url, said, types=[Thing(world)]) as made:
        yield Watched(made.session, made.url), world


async def ok(run: Watched, method: str, path: str, body: Json = None, **more: Json) -> Json:
    status, said = await run.call(method, path, body, **more)
    assert status < 400, said
    return said


async def path_of(run: Watched, name: str) -> str:
    return f"/stacks/{name}/{(await run.stack(name))['id']}"


async def what_the_server_is(run: Watched) -> None:
    for path in ("//", "//versions", "//v1", "//v1/", "//v2", "//v2/p", "//healthz", "//healthcheck", "//readyz", "//metrics", "//openapi.json",
                 "//asyncapi.json", "//schemas/headgate.hook.waiting", f"//dashboard/{all_files().digest}/main.js", "//v1/p", "//v1/p/", "/services", "/build_info", "/webhook-key",
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
    await ok(run, "POST", "/validate", {"template": WHOLE, "parameters": {"key": "x"}})
    await ok(run, "POST", "/validate", {"template": template({}), "environment": HELD})


async def who_may_do_what(run: Watched) -> None:
    await ok(run, "GET", "/session")
    await ok(run, "GET", "/quotas")
    made = await ok(run, "POST", "/tokens", {"name": "ci", "roles": ["author"], "expires_in": "1d"})
    await ok(run, "POST", "/tokens", {"name": "ann", "roles": ["reader"], "everywhere": True,
                                      "password": "long enough for it"})  # fmt: skip
    signed_in = await ok(run, "POST", "/session", {"token": made["token"]})
    assert signed_in["csrf"]
    await ok(run, "GET", "/tokens?everywhere=true")
    await ok(run, "DELETE", f"/tokens/{made['id']}")
    await ok(run, "GET", "/tokens?gone=true")
    await ok(run, "DELETE", "/session")
    for path, body in (("/session", {}), ("/tokens", {"name": "", "roles": ["boss"]})):
        status, _ = await run.call("POST", path, body)
        assert status == 400
    status, _ = await run.call("DELETE", f"/tokens/{made['id']}")
    assert status == 404


async def a_held_stack(run: Watched) -> None:
    sent = {"stack_name": "s", "template": WHOLE, "environment": HELD, "files": {"f": "text"},
            "tags": ["one"], "timeout_mins": 5}  # fmt: skip
    await ok(run, "POST", "/stacks/preview", sent)
    await ok(run, "POST", "/stacks", sent)
    (hook,) = await run.waiting("s")
    at, one = await path_of(run, "s"), f"/hooks/{hook['id']}"
    for part in ("graph", "why", "events", "resources", "outputs", "breakpoints", "decisions"):
        await ok(run, "GET", f"{at}/{part}")
    added = await ok(
        run, "POST", f"{at}/breakpoints", {"breakpoints": ["b:pre-create", "a:pre-create"]}
    )
    assert added["too_late"]
    await ok(run, "GET", f"{at}/breakpoints")
    await ok(
        run, "POST", f"{one}/hand-over", {"to": "user:cy", "note": "yours"}, headers=who("ann")
    )
    later = {"decision": "progress", "extend": "1h"}
    await ok(run, "POST", f"{one}/signal", later, headers=who("cy"))
    for path in (one, f"/{one}", "/hooks?limit=1", f"{one}/decisions", "/decisions?limit=1"):
        await ok(run, "GET", path)
    for wrong in ({"decision": "maybe"}, {"decision": "continue", "digest": "0"}):
        assert (await run.call("POST", f"{one}/signal", wrong, headers=who("cy")))[0] >= 400
    assert (await run.call("POST", f"{one}/signal", {"decision": "continue"}))[0] == 403
    answer: Json = {"decision": "continue", "data": {}}
    await ok(run, "POST", f"{one}/signal", answer, headers=who("cy"))
    status, error = await run.call(
        "POST", f"{one}/signal", {"decision": "reject"}, headers=who("ann")
    )
    assert status == 409 and error["error"]["decided_by"] == "cy"
    (second,) = await run.waiting("s")
    assert (second["resource_name"], second["point"]) == ("b", "pre-create")
    await ok(run, "POST", f"{at}/resources/b/signal", {"unset_hook": "pre-create"})
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    for made in added["breakpoints"]:
        await ok(run, "DELETE", f"{at}/breakpoints/{made['id']}")


def told(receiver: Receiver, hook: Json) -> dict[str, str]:
    """The right to answer, once the notice has come."""
    for event in receiver.events:
        if event["type"] == "headgate.hook.waiting" and event["data"]["hook"]["id"] == hook["id"]:
            return {"Authorization": f"Bearer {event['data']['token']}"}
    return {}


async def more_hooks(run: Watched, receiver: Receiver) -> None:
    """Of a whole stack; left to their deadlines; superseded; run on to."""
    await ok(
        run, "POST", "/stacks", {"stack_name": "gate", "template": WHOLE, "environment": GATED}
    )
    (gate,) = await run.waiting("gate")
    assert gate["resource"] is None and gate["change"]["plan"]
    await until(lambda: told(receiver, gate))
    said = {"decision": "reject", "reason": "no"}
    await ok(run, "POST", f"//hooks/{gate['id']}/signal", said, headers=told(receiver, gate))
    await run.until_ended("gate")
    late = {"hooks": [{"at": "a", "on": ["pre-create"], "timeout": "1s"}]}
    await run.create("late", {"a": thing()}, environment=late)
    await run.until_ended("late")
    await ok(run, "GET", f"{await path_of(run, 'late')}/why")
    rules = {"hooks": [{"at": "a", "on": ["pre-create"]}]}
    await run.create("r", {"a": thing(), "b": thing(depends_on="a")}, environment=rules)
    await run.waiting("r")
    assert await run.at("POST", "r", "/run-to", {"resource": "b"})
    await eventually(lambda: waits_at(run, "b"))
    await put(run, "r", {"a": thing()}, hooks={"clear": ["*"]})
    await run.until_ended("r")
    states = {one["state"] for one in (await ok(run, "GET", "/hooks"))["hooks"]}
    assert states == {"answered", "expired", "superseded"}


async def waits_at(run: Watched, name: str) -> bool:
    return bool((await run.waiting("r"))[0]["resource_name"] == name)


async def a_life(run: Watched, world: World) -> None:
    at = await path_of(run, "s")
    changed = {**WHOLE, "resources": {"a": thing(2, place="there"), "c": thing()}}
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
        await ended_as(run, "s", f"{action.upper()}_COMPLETE")
    for body in ({"mark_unhealthy": True}, {"protect": True}, {"protect": False}):
        await ok(run, "PATCH", f"{at}/resources/a", body)
    await ok(run, "POST", f"{at}/resources/a/signal", {"ready": True})
    door = next(call.signal_url for call in reversed(world.calls) if call.resource_name == "a")
    for method in ("POST", "PUT"):
        await ok(run, method, f"/{door.signed_url.removeprefix(run.url)}", {"ready": True})
    assert (await run.call("POST", f"/{door.url.removeprefix(run.url)}", {}))[0] == 401
    made = await ok(run, "POST", f"{at}/snapshots", {"name": "kept"})
    await ok(run, "GET", f"{at}/snapshots")
    await ok(run, "PUT", f"{at}/pin", {"reason": "an audit"})
    await ok(run, "GET", at)
    await ok(run, "DELETE", f"{at}/pin")
    await ended_as(run, "s", "SNAPSHOT_COMPLETE")
    one = f"{at}/snapshots/{made['id']}"
    await ok(run, "GET", one)
    await ok(run, "POST", f"{one}/restore", {})
    await run.until_ended("s")
    await ok(run, "DELETE", one)
    world.will("update", "c", Failed("no"))
    await put(run, "s", {"a": thing(deletion_policy="Snapshot"), "c": thing(5)})
    assert await run.until_ended("s") == "UPDATE_FAILED"
    await put(run, "s", {"c": thing(5)})
    await run.until_ended("s")


async def all_that_is_shown(run: Watched) -> None:
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
    for part in ("resources", "events", "template", "environment", "files"):
        await ok(run, "GET", f"/stacks/s/{part}")
    async with run.session.get(f"{run.url}/v1/p/events/stream") as stream:
        run.keep("GET", stream, None)


async def by_their_names(run: Watched) -> None:
    """The short paths lead on; what is there may refuse."""
    for method, path in (("POST", ""), ("PUT", ""), ("PATCH", ""), ("GET", "/actions"),
                         ("POST", "/resources"), ("POST", "/events"), ("POST", "/template"),
                         ("POST", "/actions")):  # fmt: skip
        await run.call(method, f"/stacks/s{path}", {})


async def who_is_told(run: Watched, receiver: Receiver) -> None:
    made = await ok(run, "POST", "/subscriptions", {"target": receiver.url, "tags": ["one"]})
    one = f"/subscriptions/{made['id']}"
    await ok(run, "PATCH", one, {"events": ["headgate.stack.*"], "ordered": False, "tags": []})
    for path in ("/subscriptions", "/subscriptions?limit=1", one):
        await ok(run, "GET", path)
    assert (await ok(run, "POST", f"{one}/test"))["delivered"]
    receiver.answers(500)
    assert not (await ok(run, "POST", f"{one}/test"))["delivered"]
    await run.create("t", {"a": thing()}, tags=["one"])
    await run.until_ended("t")
    await eventually(lambda: given_up(run, one))
    receiver.answers(200)
    await ok(run, "POST", f"{one}/redeliver", {"state": "dead"})
    await ok(run, "POST", f"{one}/redeliver", {"since": "2026-01-01T00:00:00Z"})
    for query in ("", "?limit=1", "?state=dead"):
        await ok(run, "GET", f"{one}/deliveries{query}")
    await ok(run, "POST", f"{one}/rotate")
    for wrong in ({}, {"delivery": str(uuid4())}, {"since": "soon"}):
        assert (await run.call("POST", f"{one}/redeliver", wrong))[0] >= 400
    await ok(run, "DELETE", one)


async def given_up(run: Watched, one: str) -> bool:
    return bool((await ok(run, "GET", f"{one}/deliveries?state=dead"))["deliveries"])


async def software(run: Watched) -> None:
    configs, deployments = "/software_configs", "/software_deployments"
    sent = {"name": "c", "config": "true", "inputs": [{"name": "a"}], "outputs": [{"name": "o"}]}
    made = (await ok(run, "POST", configs, sent))["software_config"]
    await ok(run, "POST", configs, {"config": {"a": 1}})
    for path in (configs, f"{configs}/{made['id']}", f"{configs}?limit=1&global_tenant=true"):
        await ok(run, "GET", path)
    wanted = {"config_id": made["id"], "server_id": "s", "input_values": {"a": 1}}
    one = (await ok(run, "POST", deployments, wanted))["software_deployment"]
    path = f"{deployments}/{one['id']}"
    await ok(run, "PUT", path, {"status": "COMPLETE", "output_values": {"o": 1}})
    for shown in (deployments, path, f"{deployments}?server_id=s", f"{deployments}/metadata/s"):
        await ok(run, "GET", shown)
    assert (await run.call("DELETE", f"{configs}/{made['id']}"))[0] == 400
    await ok(run, "DELETE", path)
    await ok(run, "DELETE", f"{configs}/{made['id']}")
    sent = {"stack_name": "servers", "template": template({"server": SERVER}, outputs=OUTPUTS)}
    await ok(run, "POST", "/stacks", sent)
    await ended_as(run, "servers", "CREATE_COMPLETE")
    at = await path_of(run, "servers")
    agent = (await ok(run, "GET", f"{at}/outputs/agent"))["output"]["output_value"]
    await ok(run, "GET", f"/{asking(agent).removeprefix(run.url)}")
    for changed in ({"Signature": "x"}, {"StackName": "other"}):
        wrong = f"/{asking(agent, **changed).removeprefix(run.url)}"
        assert (await run.call("GET", wrong))[0] == 401
    await ok(run, "GET", f"{at}/resources/server/metadata")


async def what_is_refused(run: Watched) -> None:
    at, nobody = await path_of(run, "s"), f"/stacks/nope/{uuid4()}"
    for method, path, body in (
        ("GET", "/stacks/nope", None), ("GET", nobody, None), ("DELETE", nobody, None),
        ("GET", "/hooks?state=wating", None), ("GET", f"/hooks/{uuid4()}", None),
        ("GET", "/stacks?sort_keys=colour", None), ("PUT", "/hooks", {}), ("PUT", at + "/graph", {}),
        ("POST", "/stacks", {"stack_name": "1x", "template": WHOLE}),
        ("POST", "/stacks", {"stack_name": "s", "template": WHOLE}),
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
    for data in (b"{", b"[]", io.BytesIO(b"#" * 1_100_000)):
        assert (await run.call("POST", "/stacks", data=data))[0] >= 400


async def ends(run: Watched, away: Away) -> None:
    at = await path_of(run, "t")
    await ok(run, "DELETE", f"{at}/abandon")
    await ok(run, "DELETE", await path_of(run, "s"))
    await gone(run, "s")
    await run.call("DELETE", "/stacks/late")
    await gone(run, "late")
    await ok(run, "GET", "/stacks?show_deleted=true")
    async with away():
        for path in ("//readyz", "//healthcheck"):
            assert (await run.call("GET", path))[0] == 503
        assert (await run.call("GET", "/services"))[0] == 503
        assert (await run.call("GET", "/hooks"))[0] == 503


async def test_every_answer_is_what_the_document_says(
    run: tuple[Watched, World], away: Away
) -> None:
    watched, world = run
    document = Document(await ok(watched, "GET", "//openapi.json"))
    assert document.without_schema() == [] and document.loose_ends() == set()
    async with receiving() as receiver, receiving() as other:
        await ok(watched, "POST", "/subscriptions", {"target": receiver.url})
        await what_the_server_is(watched)
        await who_may_do_what(watched)
        await a_held_stack(watched)
        await more_hooks(watched, receiver)
        await a_life(watched, world)
        await all_that_is_shown(watched)
        await by_their_names(watched)
        await who_is_told(watched, other)
        await software(watched)
        await what_is_refused(watched)
        await ends(watched, away)
    wrong = [wrong for one in watched.seen for wrong in document.wrong(one)]
    assert not wrong, "\n".join(wrong)
    assert document.routes() - document.exercised == set()
    refused = sum(one.status >= 400 for one in watched.seen)
    print(f"{len(watched.seen)} responses over {len(document.exercised)} routes, {refused} refused")
