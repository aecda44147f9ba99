"""OS::Heat::Stack: requests to an endpoint, and reasons."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from engine.types.contract import Call, Done, Failed, Outcome, Replace, Stopped, Wait
from engine.types.custom_constraints import ValidationContext
from engine.types.http_client import NoResponse
from engine.types.operation_outcomes import next_poll
from engine.types.operator_credentials import Credential, Credentials
from engine.types.remote_stack import Endpoints, RemoteEndpoint, RemoteStack
from engine.words import Json
from tests.support.in_memory_heat import URL, InMemoryHeat, answer
from tests.unit.types.calls import KEY, NOW, a_call, ended, findings_of, run

SECRET = "hunter2-secret"
CREDENTIAL = Credential("X-Auth-Token", SECRET, SECRET, ["https://heat.example.org"], ["p"])
KNOWN = {
    "west": RemoteEndpoint("west", URL, ["p", "q"]),
    "lent": RemoteEndpoint("lent", URL, ["*"], credential="ours"),
}
UNAVAILABLE = NoResponse("no connection to heat.example.org:443: Connection refused", retry=True)


@pytest.fixture
def remote_heat() -> InMemoryHeat:
    return InMemoryHeat()


@pytest.fixture
def stack(remote_heat: InMemoryHeat) -> RemoteStack:
    return RemoteStack(Endpoints(KNOWN), remote_heat, Credentials({"ours": CREDENTIAL}))


def properties(region: str = "west", **more: Json) -> dict[str, Json]:
    context = {"region_name": region, **more.pop("context", {})}
    return {"context": context, "template": "resources: {}", "parameters": {"a": 1}, **more}


async def created_stack(stack: RemoteStack) -> Done:
    outcome = await ended(stack, "create", a_call(stack, properties()))
    assert isinstance(outcome, Done), outcome
    return outcome


def run_again(stack: RemoteStack, done: Done, **more: Any) -> Call:
    return a_call(stack, properties(), physical_id=done.physical_id, data=done.data, **more)


def reason_of(outcome: Outcome) -> str:
    assert isinstance(outcome, Failed), outcome
    return outcome.reason


async def test_a_remote_stack_is_created_and_polled_until_complete(
    stack: RemoteStack, remote_heat: InMemoryHeat
) -> None:
    done = await created_stack(stack)
    assert done.attributes == {"stack_name": f"s-r-{KEY.hex[:12]}", "outputs": {"a": 1}}
    assert remote_heat.calls() == [
        "GET stacks",
        "POST stacks",
        "GET stacks",
        "GET hooks",
        "GET stacks",
    ]
    post = remote_heat.requests[1]
    assert post.headers["Idempotency-Key"] == str(KEY)
    assert b'"disable_rollback":true' in (post.body or b"")


async def test_hooks_are_requested_once_from_a_server_without_them(
    stack: RemoteStack, remote_heat: InMemoryHeat
) -> None:
    call = a_call(stack, properties())
    outcome = await run(stack, "create", call)
    for _ in range(3):
        assert isinstance(outcome, Wait)
        (there,) = remote_heat.stacks.values()
        there["stack_status"] = "CREATE_IN_PROGRESS"
        outcome = await run(stack, "create", replace(call, progress=outcome.progress))
    assert remote_heat.calls().count("GET hooks") == 1


def test_polling_intervals_grow_up_to_the_maximum() -> None:
    pauses = [(next_poll(NOW, tries, 5) - NOW).total_seconds() for tries in (0, 1, 9, 100_000)]
    assert pauses == pytest.approx([0.2, 0.3, 5, 5])


async def test_a_repeated_create_finds_the_stack_of_the_lost_one(
    stack: RemoteStack, remote_heat: InMemoryHeat
) -> None:
    for _ in range(2):
        await run(stack, "create", a_call(stack, properties()))
    assert remote_heat.calls().count("POST stacks") == 1 and len(remote_heat.stacks) == 1


async def test_a_concurrent_create_is_found(stack: RemoteStack, remote_heat: InMemoryHeat) -> None:
    await run(stack, "create", a_call(stack, properties()))
    remote_heat.script("GET", "", answer(404))
    assert isinstance(await ended(stack, "create", a_call(stack, properties())), Done)
    assert remote_heat.calls().count("POST stacks") == 2 and len(remote_heat.stacks) == 1


def test_the_name_is_valid_in_heat(stack: RemoteStack, remote_heat: InMemoryHeat) -> None:
    from engine.types.remote_stack import name_of

    call = replace(a_call(stack, properties()), stack_name="s" * 255, resource_name="ä / b" * 90)
    name = name_of(call)
    assert len(name) < 255 and name.isascii() and name.replace("-", "").isalnum()


async def test_a_lost_create_is_deleted_by_its_name(
    stack: RemoteStack, remote_heat: InMemoryHeat
) -> None:
    await run(stack, "create", a_call(stack, properties()))
    remote_heat.script("GET", "", UNAVAILABLE)
    failed = await run(stack, "create", a_call(stack, properties()))
    assert isinstance(failed, Failed) and failed.retry and failed.physical_id is None
    gone = a_call(stack, properties(), data=failed.data, operation_key=KEY.__class__(int=9))
    assert isinstance(await ended(stack, "delete", gone), Done)
    assert remote_heat.stacks == {}


async def test_delete_without_a_create_request_sends_nothing(
    stack: RemoteStack, remote_heat: InMemoryHeat
) -> None:
    assert isinstance(await ended(stack, "delete", a_call(stack, properties())), Done)
    assert remote_heat.requests == []


@pytest.mark.parametrize("operation", ["update", "check", "suspend", "resume", "delete"])
async def test_a_started_action_is_polled(
    stack: RemoteStack, remote_heat: InMemoryHeat, operation: str
) -> None:
    done = await created_stack(stack)
    assert isinstance(await ended(stack, operation, run_again(stack, done)), Done)
    assert (remote_heat.stacks == {}) is (operation == "delete")


@pytest.mark.parametrize(
    ("status", "kind"), [("FAILED", Failed), ("STOPPED", Stopped)], ids=["failed", "stopped"]
)
async def test_the_remote_result_is_the_local_result(
    stack: RemoteStack, remote_heat: InMemoryHeat, status: str, kind: type[Failed | Stopped]
) -> None:
    done = await created_stack(stack)
    wait = await run(stack, "update", run_again(stack, done))
    assert isinstance(wait, Wait) and done.physical_id is not None
    stack_fields = {"stack_status": f"UPDATE_{status}", "stack_status_reason": "it had to"}
    remote_heat.stacks[done.physical_id] |= stack_fields
    outcome = await run(stack, "update", run_again(stack, done, progress=wait.progress))
    assert isinstance(outcome, kind) and outcome.physical_id == done.physical_id
    assert outcome.reason == f"the stack s-r-{KEY.hex[:12]} at west is UPDATE_{status}: it had to"


async def test_a_missing_stack_is_reported(stack: RemoteStack, remote_heat: InMemoryHeat) -> None:
    done = await created_stack(stack)
    remote_heat.stacks.clear()
    assert "answered 404 to POST /stacks/" in reason_of(
        await ended(stack, "check", run_again(stack, done))
    )
    call = run_again(stack, done)
    wait = await run(stack, "delete", call)
    assert isinstance(wait, Wait)
    assert isinstance(await ended(stack, "delete", replace(call, progress=wait.progress)), Done)


async def test_an_unavailable_endpoint_is_retried_for_a_limited_time(
    stack: RemoteStack, remote_heat: InMemoryHeat
) -> None:
    call = a_call(stack, properties())
    wait = await run(stack, "create", call)
    assert isinstance(wait, Wait)
    remote_heat.script("GET", "", UNAVAILABLE, answer(503), UNAVAILABLE, answer(503))
    for _ in range(4):
        wait = await run(stack, "create", replace(call, progress=wait.progress))
        assert isinstance(wait, Wait) and "west" in wait.reason
    assert isinstance(await ended(stack, "create", replace(call, progress=wait.progress)), Done)
    remote_heat.script("GET", "", UNAVAILABLE)
    late = replace(call, progress=wait.progress, now=NOW + timedelta(hours=1, seconds=1))
    failed = await run(stack, "create", late)
    assert reason_of(failed) == f"west: {UNAVAILABLE}"
    assert isinstance(failed, Failed) and failed.physical_id


async def test_the_wait_for_an_action_of_another_client_ends(
    stack: RemoteStack, remote_heat: InMemoryHeat
) -> None:
    done = await created_stack(stack)
    wait = await run(stack, "update", run_again(stack, done))
    assert isinstance(wait, Wait)
    remote_heat.stacks[str(done.physical_id)]["stack_status"] = "SUSPEND_COMPLETE"
    call = run_again(stack, done, progress=wait.progress)
    assert isinstance(await run(stack, "update", call), Wait)
    late = replace(call, now=NOW + timedelta(hours=1, seconds=1))
    assert "did not start UPDATE" in reason_of(await run(stack, "update", late))


async def test_a_newer_change_ends_the_wait(stack: RemoteStack, remote_heat: InMemoryHeat) -> None:
    call = a_call(stack, properties())
    wait = await run(stack, "create", call)
    assert isinstance(wait, Wait)
    outcome = await run(stack, "create", replace(call, progress=wait.progress, superseded=True))
    assert (
        reason_of(outcome) == "superseded" and isinstance(outcome, Failed) and outcome.physical_id
    )


async def test_the_wait_reason_lists_hooks_with_their_notified_targets(
    stack: RemoteStack, remote_heat: InMemoryHeat
) -> None:
    hook = {
        "id": "h", "point": "pre-create", "path": "web", "deadline": "2030-01-01T00:00:00Z",
        "asked": [{"target": "https://a.example.org/x", "state": "delivered"}],
    }  # fmt: skip
    remote_heat.script("GET", "/hooks", answer(200, {"hooks": [hook] * 7}))
    call = a_call(stack, properties())
    wait = await run(stack, "create", call)
    assert isinstance(wait, Wait)
    wait = await run(stack, "create", replace(call, progress=wait.progress))
    assert (
        isinstance(wait, Wait) and wait.reason.count("its hook h waits at pre-create of web") == 5
    )
    assert "notified: https://a.example.org/x" in wait.reason and "and 2 more" in wait.reason


async def test_it_uses_the_token_of_the_request_or_a_configured_credential(
    stack: RemoteStack, remote_heat: InMemoryHeat
) -> None:
    await run(stack, "create", a_call(stack, properties(), credential="their-token"))
    assert remote_heat.requests[-1].headers["X-Auth-Token"] == "their-token"
    await run(stack, "create", a_call(stack, properties("lent"), credential="their-token"))
    assert remote_heat.requests[-1].headers["X-Auth-Token"] == SECRET
    named = properties(context={"credential_secret_id": "ours"})
    await run(stack, "create", a_call(stack, named))
    assert remote_heat.requests[-1].headers["X-Auth-Token"] == SECRET
    remote_heat.requests.clear()
    outcome = await run(stack, "create", a_call(stack, named, project="q"))
    assert "provides no credential" in reason_of(outcome) and remote_heat.requests == []


async def test_a_configured_credential_needs_a_verified_certificate(
    stack: RemoteStack, remote_heat: InMemoryHeat
) -> None:
    for more in ({"insecure": True}, {"ca_cert": "x"}):
        stack_properties = properties("lent", context=more)
        (wrong,) = findings_of(stack, stack_properties)
        assert wrong.place == f"resources.r.properties.context.{next(iter(more))}"
        assert "could expose a credential of the operator" in wrong.reason
        outcome = await run(stack, "create", a_call(stack, stack_properties))
        assert (
            "ca_cert or insecure is only allowed" in reason_of(outcome)
            and remote_heat.requests == []
        )
        own = properties(context=more)
        assert findings_of(stack, own) == []
        await run(stack, "create", a_call(stack, own))
        sent = remote_heat.requests[-1]
        assert (sent.insecure, sent.ca_pem) == (
            more.get("insecure", False),
            more.get("ca_cert", ""),
        )
        remote_heat.requests.clear()


@pytest.mark.parametrize("response", ["x", {}, {"stack": []}, {"stack": {"id": 1}}, [1]])
async def test_a_response_of_another_api_is_reported(
    stack: RemoteStack, remote_heat: InMemoryHeat, response: Json
) -> None:
    remote_heat.script("GET", "", answer(200, response))
    outcome = await run(stack, "create", a_call(stack, properties()))
    assert "is it an Orchestration API?" in reason_of(outcome)


async def test_reasons_contain_no_secrets(stack: RemoteStack, remote_heat: InMemoryHeat) -> None:
    remote_heat.script("POST", "", answer(400, {"error": {"message": f"bad {SECRET} their-token"}}))
    call = a_call(stack, properties("lent"), credential="their-token")
    assert "bad ****** ******" in reason_of(await run(stack, "create", call))


def test_a_change_of_region_is_a_replacement(stack: RemoteStack) -> None:
    call = a_call(stack, properties(), previous=properties("lent"), changed=frozenset({"context"}))
    assert stack.needs_replace(call)
    assert not stack.needs_replace(replace(call, previous=properties()))


async def test_an_update_without_an_id_is_a_replacement(stack: RemoteStack) -> None:
    assert isinstance(await run(stack, "update", a_call(stack, properties())), Replace)


def test_projects_are_isolated() -> None:
    endpoints = Endpoints(KNOWN)
    assert endpoints.validate("west", ValidationContext("p", NOW)) is None
    assert "no endpoint" in str(endpoints.validate("west", ValidationContext("z", NOW)))
    assert "no endpoint" in str(endpoints.validate("east", ValidationContext("p", NOW)))
