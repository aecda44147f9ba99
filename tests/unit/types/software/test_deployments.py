"""Deployments: the config for the server, its actions, and the effect of its signals."""

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from engine.types.contract import Call, Done, Failed, Outcome, Replace, Wait
from engine.types.http_client import ServiceError
from engine.types.registry import TypeRegistry
from engine.types.signal_urls import SignalUrl
from engine.types.software.software_store import NewConfig
from engine.words import Json, Status
from tests.unit.types.calls import KEY, STACK, a_call, findings_of, registry, run
from tests.unit.types.software.in_memory import InMemoryStore

NAME, STRUCTURED = "OS::Heat::SoftwareDeployment", "OS::Heat::StructuredDeployment"
CONFIG = str(UUID(int=50))
SIGNAL_URL = SignalUrl("http://h/signals/1/2", "t0ken")
SOURCE = NewConfig(
    "source", "script", "echo $a",
    inputs=[{"name": "a", "type": "String", "default": "x"}, {"name": "b", "type": "String",
             "replace_on_change": True}],
    outputs=[{"name": "out", "type": "String"},
             {"name": "trouble", "type": "String", "error_output": True}],
    options={"o": 1},
)  # fmt: skip


@pytest.fixture
def software_store() -> InMemoryStore:
    return InMemoryStore({("p", CONFIG): SOURCE})


@pytest.fixture
def types(software_store: InMemoryStore) -> TypeRegistry:
    return registry(software_store=software_store)


def call_of(
    types: TypeRegistry, more_properties: Json = None, name: str = NAME, **more: Any
) -> Call:
    properties: Json = {"server": "web-1", "config": CONFIG} | (more_properties or {})
    return a_call(types.get(name), properties, **({"signal_url": SIGNAL_URL} | more))


async def run_operation(
    types: TypeRegistry, operation: str, call: Call, *signals: Json, name: str = NAME
) -> Outcome:
    """Start the operation; if it waits, call it again with the signals."""
    outcome = await run(types.get(name), operation, call)
    if not (isinstance(outcome, Wait) and signals):
        return outcome
    return await run(
        types.get(name), operation, replace(call, progress=outcome.progress, signals=signals)
    )


def values(config: NewConfig) -> dict[str, Json]:
    return {one["name"]: one["value"] for one in config.inputs}


# -- the config for the server --------------------------------------------------------------------


async def test_a_server_gets_the_config_with_values_and_signal_url(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    outcome = await run_operation(
        types, "create", call_of(types, {"input_values": {"b": 1, "c": [2]}})
    )
    assert isinstance(outcome, Wait)
    assert outcome.until is not None  # else the stack's timeout would not count
    (published,) = software_store.published
    assert (published.deployment_id, published.key, published.server_id) == (str(KEY), KEY, "web-1")
    assert (published.action, published.status, published.reason) == (
        "CREATE", "IN_PROGRESS", "Deploy data available",
    )  # fmt: skip
    config = published.config
    assert (config.name, config.group, config.config, config.options) == (
        "source", "script", "echo $a", {"o": 1},
    )  # fmt: skip
    assert config.outputs == SOURCE.outputs
    assert values(config) == {
        "a": "x",
        "b": 1,
        "c": [2],
        "deploy_server_id": "web-1",
        "deploy_action": "CREATE",
        "deploy_stack_id": f"s/{STACK}",
        "deploy_resource_name": "r",
        "deploy_signal_transport": "CFN_SIGNAL",
        "deploy_signal_id": "http://h/signals/1/2?token=t0ken",
        "deploy_signal_verb": "POST",
    }
    assert {one["type"] for one in config.inputs} == {"String"}


async def test_a_deployment_without_signals_completes_at_once(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    properties = {"signal_transport": "NO_SIGNAL", "name": "10-first"}
    outcome = await run_operation(types, "create", call_of(types, properties))
    assert isinstance(outcome, Done)
    assert outcome.attributes == dict.fromkeys(
        ("deploy_stdout", "deploy_stderr", "deploy_status_code", "out", "trouble")
    )
    (published,) = software_store.published
    assert (published.status, published.reason) == ("COMPLETE", "Not waiting for outputs signal")
    assert published.config.name == "10-first"
    assert not [name for name in values(published.config) if name.startswith("deploy_signal_i")]


async def test_without_a_config_the_server_gets_only_the_values(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    await run_operation(types, "create", call_of(types, {"config": None, "input_values": {"a": 1}}))
    config = software_store.published[0].config
    assert (config.group, config.config, config.name) == ("Heat::Ungrouped", "", "s-r-111111112222")
    assert values(config)["a"] == 1


async def test_a_missing_config_fails_the_deployment_except_at_its_deletion(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    call = call_of(types, {"config": str(UUID(int=51)), "actions": ["CREATE", "DELETE"]})
    outcome = await run_operation(types, "create", call)
    assert isinstance(outcome, Failed)
    assert outcome.reason == f"Software config with id {UUID(int=51)} not found"
    assert await run_operation(types, "delete", call) == Done(None)


@pytest.mark.parametrize("operation", ["create", "update", "delete", "suspend", "resume"])
async def test_a_server_gets_the_listed_actions_only(
    types: TypeRegistry, software_store: InMemoryStore, operation: str
) -> None:
    action = operation.upper()
    others = [one for one in ("CREATE", "UPDATE", "DELETE", "SUSPEND", "RESUME") if one != action]
    quiet = await run_operation(types, operation, call_of(types, {"actions": others}))
    assert isinstance(quiet, Done) and software_store.published == []
    assert isinstance(
        await run_operation(types, operation, call_of(types, {"actions": [action]})), Wait
    )
    assert values(software_store.published[0].config)["deploy_action"] == action


async def test_a_component_has_the_actions_of_its_configs(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    configs = [{"tool": "script", "actions": ["DELETE"]}, {"tool": "script", "actions": ["MINE"]}]
    software_store.configs["p", CONFIG] = NewConfig("c", "component", {"configs": configs})
    assert isinstance(await run_operation(types, "create", call_of(types)), Done)
    assert isinstance(await run_operation(types, "delete", call_of(types)), Wait)


# -- signals --------------------------------------------------------------------------------------


async def test_a_signal_completes_the_deployment_with_outputs(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    signal = {"out": "42", "other": 1, "deploy_stdout": "hello", "deploy_status_code": 0}
    outcome = await run_operation(types, "create", call_of(types), signal)
    assert outcome == Done(str(KEY), {
        "deploy_stdout": "hello", "deploy_stderr": None, "deploy_status_code": 0,
        "out": "42", "trouble": None,
    })  # fmt: skip
    kept = software_store.deployments["p", str(KEY)]
    assert (kept.status, kept.reason) == ("COMPLETE", "Outputs received")
    assert kept.output_values == {
        "out": "42", "deploy_stdout": "hello", "deploy_stderr": None, "deploy_status_code": 0,
    }  # fmt: skip


FAILURES: list[tuple[Json, str]] = [
    (
        {"deploy_status_code": 3},
        "deploy_status_code : Deployment exited with non-zero status code: 3",
    ),
    (
        {"deploy_status_code": "7"},
        "deploy_status_code : Deployment exited with non-zero status code: 7",
    ),
    ({"trouble": "no disk", "deploy_status_code": 0}, "trouble : no disk"),
    (
        {"trouble": "no disk", "deploy_status_code": "1"},
        "deploy_status_code : Deployment exited with non-zero status code: 1, trouble : no disk",
    ),
]


@pytest.mark.parametrize(("signal", "reason"), FAILURES)
async def test_a_failure_signal_fails_the_deployment(
    types: TypeRegistry, software_store: InMemoryStore, signal: Json, reason: str
) -> None:
    call = call_of(types)
    outcome = await run_operation(types, "create", call, signal)
    data = {"properties": call.properties}
    public = "Deployment to server failed"
    assert outcome == Failed(f"{public}: {reason}", str(KEY), data, public_reason=public)
    kept = software_store.deployments["p", str(KEY)]
    assert (kept.status, kept.reason) == ("FAILED", reason)


@pytest.mark.parametrize(
    "signal", [{}, {"deploy_status_code": "0"}, {"deploy_status_code": None}, {"trouble": ""}]
)
async def test_a_signal_without_a_failure_is_a_success(types: TypeRegistry, signal: Json) -> None:
    assert isinstance(await run_operation(types, "create", call_of(types), signal), Done)


async def test_the_first_final_signal_counts(types: TypeRegistry) -> None:
    outcome = await run_operation(
        types, "create", call_of(types), {"out": 1}, {"deploy_status_code": 1}, {"out": 2}
    )
    assert isinstance(outcome, Done)
    assert outcome.attributes["out"] == 1


async def test_a_progress_signal_is_recorded_once_and_does_not_complete_the_deployment(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    began = {"deploy_status": "IN_PROGRESS"}
    further = {"deploy_status": "IN_PROGRESS", "deploy_status_reason": "half"}
    call = call_of(types)
    outcome = await run_operation(types, "create", call, began)
    assert isinstance(outcome, Wait)
    again = replace(call, progress=outcome.progress)
    for signals in ((began,), (began, further), (began, further)):
        called = replace(again, signals=signals)
        assert isinstance(await run(types.get(NAME), "create", called), Wait)
    assert software_store.reasons == ["Deployment started", "half"]
    done = replace(again, signals=(began, further, {"out": 5}))
    assert isinstance(await run(types.get(NAME), "create", done), Done)


async def test_a_status_from_the_api_counts(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    call = call_of(types)
    waiting = await run_operation(types, "create", call)
    assert isinstance(waiting, Wait)
    again = replace(call, progress=waiting.progress)
    at = "p", str(KEY)
    software_store.deployments[at] = replace(
        software_store.deployments[at],
        status=Status.FAILED,
        reason="by hand",
        output_values={"out": 1},
    )
    failed = await run(types.get(NAME), "create", again)
    assert isinstance(failed, Failed)
    assert failed.reason == "Deployment to server failed: by hand"
    software_store.deployments[at] = replace(software_store.deployments[at], status=Status.COMPLETE)
    done = await run(types.get(NAME), "create", again)
    assert isinstance(done, Done) and done.attributes["out"] == 1
    software_store.deployments.clear()
    assert await run(types.get(NAME), "create", again) == Failed(
        f"Deployment with id {KEY} not found", public_reason="Deployment not found"
    )


async def test_the_deployment_fails_when_its_change_ends_early(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    call = call_of(types, superseded=True)
    waiting = await run_operation(types, "create", call)
    assert isinstance(waiting, Wait) and waiting.until == call.now
    again = replace(call, progress=waiting.progress)
    signalled = replace(again, signals=({"out": 1},))
    assert isinstance(await run(types.get(NAME), "create", signalled), Done)
    await run_operation(types, "create", call)
    outcome = await run(types.get(NAME), "create", again)
    assert isinstance(outcome, Failed)
    assert outcome.reason == "Deployment to server failed: Deployment cancelled."
    assert software_store.deployments["p", str(KEY)].status == "FAILED"


async def test_a_deleted_deployment_is_removed_after_the_signal_of_the_server(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    properties = {"actions": ["CREATE", "DELETE"]}
    await run_operation(types, "create", call_of(types, properties), {})
    call = call_of(types, properties, physical_id=str(KEY), operation_key=UUID(int=77))
    assert isinstance(await run_operation(types, "delete", call), Wait)
    assert software_store.deployments
    assert await run_operation(types, "delete", call, {}) == Done(None)
    assert software_store.deployments == {}


async def test_a_deployment_removed_by_another_client_can_be_deleted(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    call = call_of(types, {"actions": ["DELETE"]}, physical_id=str(KEY))
    waiting = await run_operation(types, "delete", call)
    assert isinstance(waiting, Wait)
    software_store.deployments.clear()
    again = replace(call, progress=waiting.progress)
    assert await run(types.get(NAME), "delete", again) == Done(None)


@pytest.mark.parametrize("key", ["properties", "said"])  # the second one is of earlier releases
async def test_a_failed_create_is_deleted_with_its_properties(
    types: TypeRegistry, software_store: InMemoryStore, key: str
) -> None:
    failed = await run_operation(types, "create", call_of(types, {"actions": ["CREATE", "DELETE"]}),
                         {"deploy_status_code": 1})  # fmt: skip
    assert isinstance(failed, Failed)
    data = {key: failed.data["properties"]}
    call = call_of(types, physical_id=failed.physical_id, data=data, operation_key=UUID(int=7))
    call = replace(call, properties={})
    assert isinstance(await run_operation(types, "delete", call), Wait)
    assert values(software_store.published[1].config)["deploy_action"] == "DELETE"
    assert await run_operation(types, "delete", replace(call, data={})) == Done(None)
    assert software_store.deployments == {}


# -- updates --------------------------------------------------------------------------------------


async def test_an_update_publishes_again_and_keeps_outputs_without_new_values(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    await run_operation(types, "create", call_of(types), {"out": "old", "deploy_stdout": "one"})
    later = call_of(
        types, {"input_values": {"a": 2}}, physical_id=str(KEY), operation_key=UUID(int=7)
    )
    outcome = await run_operation(types, "update", later, {"deploy_stdout": "two"})
    assert isinstance(outcome, Done)
    assert (outcome.attributes["out"], outcome.attributes["deploy_stdout"]) == ("old", "two")
    assert [one.deployment_id for one in software_store.published] == [str(KEY)] * 2
    assert [one.key for one in software_store.published] == [KEY, UUID(int=7)]


@pytest.mark.parametrize(("inputs", "replaces"), [({"b": 2}, True), ({"b": 1, "a": 9}, False)])
async def test_a_changed_input_can_require_a_replacement(
    types: TypeRegistry, software_store: InMemoryStore, inputs: Json, replaces: bool
) -> None:
    await run_operation(types, "create", call_of(types, {"input_values": {"b": 1}}), {})
    later = call_of(
        types, {"input_values": inputs}, physical_id=str(KEY), operation_key=UUID(int=7)
    )
    outcome = await run_operation(types, "update", later)
    assert isinstance(outcome, Replace) == replaces
    assert len(software_store.published) == (1 if replaces else 2)


# -- structured -----------------------------------------------------------------------------------


async def test_structured_inputs_are_filled_in(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    config: Json = {
        "x": {"get_input": "a"},
        "y": [{"get_input": "b"}, {"get_input": "b", "z": 1}],
        "w": {"other": "a"},
        "v": {"get_input": ["a"]},
        "u": {"get_input": "none"},
    }
    software_store.configs["p", CONFIG] = replace(SOURCE, config=config)
    call = call_of(types, {"input_values": {"b": [1, 2]}}, STRUCTURED)
    await run_operation(types, "create", call, name=STRUCTURED)
    assert software_store.published[0].config.config == {
        "x": "x", "y": [[1, 2], {"get_input": "b", "z": 1}], "w": {"other": "a"},
        "v": {"get_input": ["a"]}, "u": None,
    }  # fmt: skip
    mine = call_of(types, {"input_key": "other"}, STRUCTURED)
    await run_operation(types, "create", mine, name=STRUCTURED)
    assert software_store.published[1].config.config == {**config, "w": "x"}


@pytest.mark.parametrize(("input_values", "missing"), [({}, "b"), ({"b": 1}, None)])
async def test_a_strict_config_needs_every_value(
    types: TypeRegistry, software_store: InMemoryStore, input_values: Json, missing: str | None
) -> None:
    software_store.configs["p", CONFIG] = replace(SOURCE, config={"x": [{"get_input": "b"}]})
    properties = {"input_values_validate": "STRICT", "input_values": input_values}
    outcome = await run_operation(
        types, "create", call_of(types, properties, STRUCTURED), name=STRUCTURED
    )
    if missing:
        public = "A parameter was not provided."
        reason = f"The Parameter ({missing}) was not provided."
        assert outcome == Failed(reason, public_reason=public)
    assert bool(software_store.published) == (missing is None)


# -- validation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", ["TEMP_URL_SIGNAL", "ZAQAR_SIGNAL"])
def test_unsupported_signal_transports_are_refused_with_a_remedy(
    types: TypeRegistry, transport: str
) -> None:
    properties = {"server": "s", "signal_transport": transport}
    (found,) = findings_of(types.get(NAME), properties)
    assert found.place == "resources.r.properties.signal_transport"
    assert transport in found.reason and "CFN_SIGNAL" in found.remedy


def test_unknown_actions_are_refused(types: TypeRegistry) -> None:
    assert findings_of(types.get(NAME), {"server": "s", "actions": ["CREATE", "CHECK"]}) != []
    assert findings_of(types.get(NAME), {}) != []


async def test_each_change_is_pushed_to_the_server(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    """A delete pushes what is left."""
    type_ = types.get(NAME)
    call = call_of(types, {"signal_transport": "NO_SIGNAL"})
    created = await run(type_, "create", call)
    assert isinstance(created, Done) and software_store.pushed == [("web-1", 1)]
    gone = call_of(types, {"signal_transport": "NO_SIGNAL"}, physical_id=created.physical_id)
    assert isinstance(await run(type_, "delete", gone), Done)
    assert software_store.pushed == [("web-1", 1), ("web-1", 0)]


async def test_a_push_that_fails_is_tried_again_and_an_invalid_url_is_a_failure(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    type_ = types.get(NAME)
    call = call_of(types, {"signal_transport": "NO_SIGNAL"})
    software_store.answers = [ServiceError("Swift is away", retry=True, public="away"), False]
    failed = await run(type_, "create", call)
    assert isinstance(failed, Failed) and failed.retry and failed.public_reason == "away"
    failed = await run(type_, "create", call)
    assert isinstance(failed, Failed) and not failed.retry
    assert "temporary URL" in failed.reason


async def test_a_delete_ends_its_deployment_once_and_waits_for_the_push(
    types: TypeRegistry, software_store: InMemoryStore
) -> None:
    type_ = types.get(NAME)
    properties = {"signal_transport": "NO_SIGNAL", "actions": ["DELETE"]}
    software_store.answers = [True, ServiceError("Swift is away", retry=True), False]
    call = call_of(types, properties)
    waits = await run(type_, "delete", call)
    assert isinstance(waits, Wait) and waits.reason == "Swift is away"
    assert isinstance(await run(type_, "delete", replace(call, progress=waits.progress)), Done)
    assert [one.action for one in software_store.published] == ["DELETE"]
    software_store.answers = [ServiceError("Swift is away", retry=True)]
    stopped = replace(call, progress=waits.progress, superseded=True)
    assert isinstance(await run(type_, "delete", stopped), Done)
