"""OS::Heat::Stack: requests to an endpoint, and reasons."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from engine.types.contract import Call, Done, Failed, Outcome, Replace, Stopped, Wait
from engine.types.credentials import Credential, Credentials
from engine.types.custom_constraints import ValidationContext
from engine.types.http_client import NoResponse
from engine.types.poll_interval import next_poll
from engine.types.remote_stack import Endpoint, Endpoints, RemoteStack
from engine.words import Json
from tests.support.elsewhere import URL, Elsewhere, answer
from tests.unit.types.calls import KEY, NOW, a_call, ended, findings_of, run

SECRET = "hunter2-secret"
LENT = Credential("X-Auth-Token", SECRET, SECRET, ["https://heat.example.org"], ["p"])
KNOWN = {
    "west": Endpoint("west", URL, ["p", "q"]),
    "lent": Endpoint("lent", URL, ["*"], credential="ours"),
}
AWAY = NoResponse("no connection to heat.example.org:443: Connection refused", retry=True)


@pytest.fixture
def elsewhere() -> Elsewhere:
    return Elsewhere()


@pytest.fixture
def stack(elsewhere: Elsewhere) -> RemoteStack:
    return RemoteStack(Endpoints(KNOWN), elsewhere, Credentials({"ours": LENT}))


def properties(region: str = "west", **more: Json) -> dict[str, Json]:
    context = {"region_name": region, **more.pop("context", {})}
    return {"context": context, "template": "resources: {}", "parameters": {"a": 1}, **more}


async def made(stack: RemoteStack) -> Done:
    outcome = await ended(stack, "create", a_call(stack, properties()))
    assert isinstance(outcome, Done), outcome
    return outcome


def later(stack: RemoteStack, done: Done, **more: Any) -> Call:
    return a_call(stack, properties(), physical_id=done.physical_id, data=done.data, **more)


def why(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed), outcome
    return outcome.reason


async def test_it_is_created_and_polled_until_complete(
    stack: RemoteStack, elsewhere: Elsewhere
) -> None:
    done = await made(stack)
    assert done.attributes == {"stack_name": f"s-r-{KEY.hex[:12]}", "outputs": {"a": 1}}
    assert elsewhere.calls() == [
        "GET stacks",
        "POST stacks",
        "GET stacks",
        "GET hooks",
        "GET stacks",
    ]
    post = elsewhere.asked[1]
    assert post.headers["Idempotency-Key"] == str(KEY)
    assert b'"disable_rollback":true' in (post.body or b"")


async def test_a_server_without_hooks_is_asked_for_them_once(
    stack: RemoteStack, elsewhere: Elsewhere
) -> None:
    call = a_call(stack, properties())
    outcome = await run(stack, "create", call)
    for _ in range(3):
        assert isinstance(outcome, Wait)
        (there,) = elsewhere.stacks.values()
        there["stack_status"] = "CREATE_IN_PROGRESS"
        outcome = await run(stack, "create", replace(call, progress=outcome.progress))
    assert elsewhere.calls().count("GET hooks") == 1


def test_pauses_grow_up_to_the_longest() -> None:
    pauses = [(next_poll(NOW, tries, 5) - NOW).total_seconds() for tries in (0, 1, 9, 100_000)]
    assert pauses == pytest.approx([0.2, 0.3, 5, 5])


async def test_a_lost_create_finds_what_it_made(stack: RemoteStack, elsewhere: Elsewhere) -> None:
    for _ in range(2):
        await run(stack, "create", a_call(stack, properties()))
    assert elsewhere.calls().count("POST stacks") == 1 and len(elsewhere.stacks) == 1


async def test_a_concurrent_create_is_found(stack: RemoteStack, elsewhere: Elsewhere) -> None:
    await run(stack, "create", a_call(stack, properties()))
    elsewhere.will("GET", "", answer(404))
    assert isinstance(await ended(stack, "create", a_call(stack, properties())), Done)
    assert elsewhere.calls().count("POST stacks") == 2 and len(elsewhere.stacks) == 1


def test_its_name_is_one_that_heat_takes(stack: RemoteStack, elsewhere: Elsewhere) -> None:
    from engine.types.remote_stack import name_of

    call = replace(a_call(stack, properties()), stack_name="s" * 255, resource_name="ä / b" * 90)
    name = name_of(call)
    assert len(name) < 255 and name.isascii() and name.replace("-", "").isalnum()


async def test_a_lost_create_is_deleted_by_its_name(
    stack: RemoteStack, elsewhere: Elsewhere
) -> None:
    await run(stack, "create", a_call(stack, properties()))
    elsewhere.will("GET", "", AWAY)
    failed = await run(stack, "create", a_call(stack, properties()))
    assert isinstance(failed, Failed) and failed.retry and failed.physical_id is None
    gone = a_call(stack, properties(), data=failed.data, operation_key=KEY.__class__(int=9))
    assert isinstance(await ended(stack, "delete", gone), Done)
    assert elsewhere.stacks == {}


async def test_delete_without_a_create_request_sends_nothing(
    stack: RemoteStack, elsewhere: Elsewhere
) -> None:
    assert isinstance(await ended(stack, "delete", a_call(stack, properties())), Done)
    assert elsewhere.asked == []


@pytest.mark.parametrize("operation", ["update", "check", "suspend", "resume", "delete"])
async def test_a_started_action_is_polled(
    stack: RemoteStack, elsewhere: Elsewhere, operation: str
) -> None:
    done = await made(stack)
    assert isinstance(await ended(stack, operation, later(stack, done)), Done)
    assert (elsewhere.stacks == {}) is (operation == "delete")


@pytest.mark.parametrize(
    ("status", "kind"), [("FAILED", Failed), ("STOPPED", Stopped)], ids=["failed", "stopped"]
)
async def test_the_remote_result_is_the_local_result(
    stack: RemoteStack, elsewhere: Elsewhere, status: str, kind: type[Failed | Stopped]
) -> None:
    done = await made(stack)
    wait = await run(stack, "update", later(stack, done))
    assert isinstance(wait, Wait) and done.physical_id is not None
    said = {"stack_status": f"UPDATE_{status}", "stack_status_reason": "it had to"}
    elsewhere.stacks[done.physical_id] |= said
    outcome = await run(stack, "update", later(stack, done, progress=wait.progress))
    assert isinstance(outcome, kind) and outcome.physical_id == done.physical_id
    assert outcome.reason == f"the stack s-r-{KEY.hex[:12]} at west is UPDATE_{status}: it had to"


async def test_a_missing_stack_is_reported(stack: RemoteStack, elsewhere: Elsewhere) -> None:
    done = await made(stack)
    elsewhere.stacks.clear()
    assert "answered 404 to POST /stacks/" in why(await ended(stack, "check", later(stack, done)))
    call = later(stack, done)
    wait = await run(stack, "delete", call)
    assert isinstance(wait, Wait)
    assert isinstance(await ended(stack, "delete", replace(call, progress=wait.progress)), Done)


async def test_an_endpoint_that_is_away_is_waited_for_so_long(
    stack: RemoteStack, elsewhere: Elsewhere
) -> None:
    call = a_call(stack, properties())
    wait = await run(stack, "create", call)
    assert isinstance(wait, Wait)
    elsewhere.will("GET", "", AWAY, answer(503), AWAY, answer(503))
    for _ in range(4):
        wait = await run(stack, "create", replace(call, progress=wait.progress))
        assert isinstance(wait, Wait) and "west" in wait.reason
    assert isinstance(await ended(stack, "create", replace(call, progress=wait.progress)), Done)
    elsewhere.will("GET", "", AWAY)
    late = replace(call, progress=wait.progress, now=NOW + timedelta(hours=1, seconds=1))
    failed = await run(stack, "create", late)
    assert why(failed) == f"west: {AWAY}"
    assert isinstance(failed, Failed) and failed.physical_id


async def test_the_wait_for_an_action_of_another_client_ends(
    stack: RemoteStack, elsewhere: Elsewhere
) -> None:
    done = await made(stack)
    wait = await run(stack, "update", later(stack, done))
    assert isinstance(wait, Wait)
    elsewhere.stacks[str(done.physical_id)]["stack_status"] = "SUSPEND_COMPLETE"
    call = later(stack, done, progress=wait.progress)
    assert isinstance(await run(stack, "update", call), Wait)
    late = replace(call, now=NOW + timedelta(hours=1, seconds=1))
    assert "does not reach UPDATE" in why(await run(stack, "update", late))


async def test_it_stops_waiting_when_a_newer_change_starts(
    stack: RemoteStack, elsewhere: Elsewhere
) -> None:
    call = a_call(stack, properties())
    wait = await run(stack, "create", call)
    assert isinstance(wait, Wait)
    outcome = await run(stack, "create", replace(call, progress=wait.progress, superseded=True))
    assert why(outcome) == "superseded" and isinstance(outcome, Failed) and outcome.physical_id


async def test_the_wait_reason_lists_hooks_with_their_notified_targets(
    stack: RemoteStack, elsewhere: Elsewhere
) -> None:
    hook = {
        "id": "h", "point": "pre-create", "path": "web", "deadline": "2030-01-01T00:00:00Z",
        "asked": [{"target": "https://a.example.org/x", "state": "delivered"}],
    }  # fmt: skip
    elsewhere.will("GET", "/hooks", answer(200, {"hooks": [hook] * 7}))
    call = a_call(stack, properties())
    wait = await run(stack, "create", call)
    assert isinstance(wait, Wait)
    wait = await run(stack, "create", replace(call, progress=wait.progress))
    assert (
        isinstance(wait, Wait) and wait.reason.count("its hook h waits at pre-create of web") == 5
    )
    assert "notified: https://a.example.org/x" in wait.reason and "and 2 more" in wait.reason


async def test_it_uses_the_token_of_the_request_or_a_configured_credential(
    stack: RemoteStack, elsewhere: Elsewhere
) -> None:
    await run(stack, "create", a_call(stack, properties(), credential="their-token"))
    assert elsewhere.asked[-1].headers["X-Auth-Token"] == "their-token"
    await run(stack, "create", a_call(stack, properties("lent"), credential="their-token"))
    assert elsewhere.asked[-1].headers["X-Auth-Token"] == SECRET
    named = properties(context={"credential_secret_id": "ours"})
    await run(stack, "create", a_call(stack, named))
    assert elsewhere.asked[-1].headers["X-Auth-Token"] == SECRET
    elsewhere.asked.clear()
    outcome = await run(stack, "create", a_call(stack, named, project="q"))
    assert "lends no credential" in why(outcome) and elsewhere.asked == []


async def test_a_configured_credential_needs_a_verified_certificate(
    stack: RemoteStack, elsewhere: Elsewhere
) -> None:
    for more in ({"insecure": True}, {"ca_cert": "x"}):
        said = properties("lent", context=more)
        (wrong,) = findings_of(stack, said)
        assert wrong.place == f"resources.r.properties.context.{next(iter(more))}"
        assert "could expose a credential of the operator" in wrong.reason
        outcome = await run(stack, "create", a_call(stack, said))
        assert "ca_cert or insecure is only allowed" in why(outcome) and elsewhere.asked == []
        own = properties(context=more)
        assert findings_of(stack, own) == []
        await run(stack, "create", a_call(stack, own))
        sent = elsewhere.asked[-1]
        assert (sent.insecure, sent.ca_pem) == (
            more.get("insecure", False),
            more.get("ca_cert", ""),
        )
        elsewhere.asked.clear()


@pytest.mark.parametrize("said", ["x", {}, {"stack": []}, {"stack": {"id": 1}}, [1]])
async def test_a_response_of_another_api_is_reported(
    stack: RemoteStack, elsewhere: Elsewhere, said: Json
) -> None:
    elsewhere.will("GET", "", answer(200, said))
    outcome = await run(stack, "create", a_call(stack, properties()))
    assert "is it an Orchestration API?" in why(outcome)


async def test_reasons_contain_no_secrets(stack: RemoteStack, elsewhere: Elsewhere) -> None:
    elsewhere.will("POST", "", answer(400, {"error": {"message": f"bad {SECRET} their-token"}}))
    call = a_call(stack, properties("lent"), credential="their-token")
    assert "bad ****** ******" in why(await run(stack, "create", call))


def test_another_region_is_another_stack(stack: RemoteStack) -> None:
    call = a_call(stack, properties(), previous=properties("lent"), changed=frozenset({"context"}))
    assert stack.needs_replace(call)
    assert not stack.needs_replace(replace(call, previous=properties()))


async def test_an_update_without_an_id_replaces(stack: RemoteStack) -> None:
    assert isinstance(await run(stack, "update", a_call(stack, properties())), Replace)


def test_projects_are_kept_apart() -> None:
    endpoints = Endpoints(KNOWN)
    assert endpoints.validate("west", ValidationContext("p", NOW)) is None
    assert "no endpoint" in str(endpoints.validate("west", ValidationContext("z", NOW)))
    assert "no endpoint" in str(endpoints.validate("east", ValidationContext("p", NOW)))
