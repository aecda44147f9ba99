"""The rules of the types of Mistral, and how a repeated operation finds what it has started."""

from typing import Any

import orjson
import pytest

from engine.types.contract import Done, Failed, Outcome, Wait
from engine.types.openstack.mistral.workflow import definition_of
from engine.types.operation_outcomes import CANCELLED
from tests.unit.types.calls import KEY, a_call, findings_of, run
from tests.unit.types.openstack.clouds import Answers, answer, type_with

Json = Any
WORKFLOW, TRIGGER = "OS::Mistral::Workflow", "OS::Mistral::CronTrigger"
EXTERNAL, MESSAGES = "OS::Mistral::ExternalResource", "OS::Zaqar::MistralTrigger"
ID = "11111111-1111-4111-8111-111111111111"
TASK = {"name": "one", "action": "std.noop"}
MINE = {"type": "direct", "tasks": [TASK], "name": "w"}
NIGHTLY = {"name": "n", "pattern": "0 0 * * *", "workflow": {"name": ID}}
ACTIONS = {"actions": {"CREATE": {"workflow": "w"}, "DELETE": {"workflow": ID}}}


async def outcome(
    operation: str, web: Answers, name: str, properties: Json, **more: Json
) -> Outcome:
    type_ = type_with(web, name)
    return await run(type_, operation, a_call(type_, properties, credential="t", **more))


def sent(web: Answers) -> list[str]:
    return [f"{one.method} {one.url.partition('//')[2].partition('/')[2]}" for one in web.requests]


def body(web: Answers, number: int) -> Json:
    return orjson.loads(web.requests[number].body or b"")


def workflow(*tags: str) -> Json:
    return {"id": ID, "name": "w", "tags": list(tags), "definition": "{}"}


def execution(state: str, **output: Json) -> Json:
    return {"id": ID, "state": state, "state_info": "why", "output": orjson.dumps(output).decode()}


RAN = answer(200, {"executions": []})


@pytest.mark.parametrize(
    ("name", "properties", "places"),
    [
        (WORKFLOW, MINE, []),
        (WORKFLOW, {**MINE, "tasks": [{"name": "a"}]}, ["tasks[0]"]),
        (WORKFLOW, {**MINE, "tasks": [{**TASK, "workflow": "w"}]}, ["tasks[0]"]),
        (WORKFLOW, {**MINE, "tasks": [{**TASK, "requires": ["a"]}]}, ["tasks[0].requires"]),
        (WORKFLOW, {**MINE, "tasks": [{**TASK, "concurrency": 2}]}, ["tasks[0].concurrency"]),
        (WORKFLOW, {**MINE, "type": "reverse"}, ["params"]),
        (WORKFLOW, {**MINE, "type": "reverse", "params": {"task_name": "one"}}, []),
        (TRIGGER, {"workflow": {"name": "w"}}, [""]),
        (TRIGGER, NIGHTLY, []),
    ],
)
def test_what_mistral_refuses_is_found_before(
    name: str, properties: Json, places: list[str]
) -> None:
    found = findings_of(type_with(Answers(), name), properties)
    assert [one.place.rpartition("properties")[2].removeprefix(".") for one in found] == places


def test_a_definition_has_the_words_of_mistral() -> None:
    task = {**TASK, "on_success": ["two"], "with_items": "i in <% $.x %>", "timeout": None}
    given = {
        **MINE, "tasks": [task], "input": {"a": None, "b": 1}, "tags": ["t"],
        "task_defaults": {"wait_before": 1}, "params": {"x": 1}, "description": None,
    }  # fmt: skip
    assert definition_of(given) == {
        "type": "direct",
        "input": ["a", {"b": 1}],
        "tags": ["t"],
        "tasks": {
            "one": {
                "action": "std.noop", "on-success": ["two"], "with-items": "i in <% $.x %>",
            }
        },
        "task-defaults": {"wait-before": 1},
    }  # fmt: skip


async def test_a_workflow_is_marked_and_shown_without_the_mark() -> None:
    web = Answers(answer(201), answer(200, workflow("own", f"headgate:{KEY}")), RAN)
    done = await outcome("create", web, WORKFLOW, {**MINE, "tags": ["own"]})
    assert isinstance(done, Done) and done.physical_id == "w"
    assert body(web, 0)["w"]["tags"] == ["own", f"headgate:{KEY}"]
    headers = web.requests[0].headers
    assert (headers["Content-Type"], headers["Accept"]) == ("text/plain", "*/*")
    assert done.attributes["show"]["tags"] == ["own"]


@pytest.mark.parametrize(("tag", "is_own"), [(f"headgate:{KEY}", True), ("headgate:x", False)])
async def test_a_workflow_that_exists_is_taken_only_with_the_mark(tag: str, is_own: bool) -> None:
    there = answer(200, workflow(tag))
    web = Answers(answer(409, {"faultstring": "Duplicate entry"}), there, RAN)
    found = await outcome("create", web, WORKFLOW, MINE)
    assert isinstance(found, Done) is is_own
    if isinstance(found, Failed):
        assert found.physical_id is None and "already: w" in found.reason


async def test_a_repeated_create_finds_its_workflow() -> None:
    web = Answers(answer(200, workflow(f"headgate:{KEY}")), RAN)
    found = await outcome("create", web, WORKFLOW, MINE, repeated=True)
    assert isinstance(found, Done) and sent(web)[0] == "GET workflows/w"


async def test_an_update_keeps_the_mark() -> None:
    there = answer(200, workflow("headgate:before"))
    web = Answers(there, answer(200), there, RAN)
    known = {"physical_id": "w", "previous": MINE, "changed": frozenset({"description"})}
    done = await outcome("update", web, WORKFLOW, {**MINE, "description": "d"}, **known)
    assert isinstance(done, Done)
    assert body(web, 1)["w"] == {
        **definition_of(MINE),
        "description": "d",
        "tags": ["headgate:before"],
    }


async def test_a_trigger_that_exists_is_not_taken() -> None:
    web = Answers(answer(200, {"id": ID, "name": "n"}))
    found = await outcome("create", web, TRIGGER, NIGHTLY)
    assert isinstance(found, Failed) and found.physical_id is None and "already: n" in found.reason


async def test_a_trigger_names_its_workflow_by_id_or_name() -> None:
    created = answer(201, {"id": ID, "name": "n"})
    for workflow_name, field in ((ID, "workflow_id"), ("w", "workflow_name")):
        web = Answers(created)
        properties = {**NIGHTLY, "workflow": {"name": workflow_name}, "count": 2}
        progress = {"absent": True}
        done = await outcome("create", web, TRIGGER, properties, progress=progress)
        assert isinstance(done, Done) and done.physical_id == "n"
        assert body(web, 0) == {
            "name": "n", "pattern": "0 0 * * *", "remaining_executions": 2,
            field: workflow_name, "workflow_input": {},
        }  # fmt: skip


@pytest.mark.parametrize(("count", "is_done"), [(2, True), (None, False)])
async def test_a_trigger_with_a_count_may_have_ended(count: Json, is_done: bool) -> None:
    web = Answers(answer(404, {}), answer(404, {}))
    properties = {**NIGHTLY, "count": count}
    known = {"physical_id": "n", "previous": properties}
    assert isinstance(await outcome("check", web, TRIGGER, properties, **known), Done) is is_done


async def test_an_operation_runs_its_workflow_once() -> None:
    """Mistral starts one execution of an ID."""
    ids: set[str] = set()
    started = ""
    calls: list[dict[str, Json]] = [{}, {"repeated": True}, {"repeated": True, "attempts": 1}]
    for more in calls:
        web = Answers(answer(201, execution("RUNNING")))
        waits = await outcome("create", web, EXTERNAL, ACTIONS, **more)
        started = body(web, 0)["id"]
        assert isinstance(waits, Wait) and waits.progress is not None
        assert waits.progress["execution"] == started
        ids.add(started)
    assert len(ids) == 1
    progress = {"execution": started}
    web = Answers(answer(200, execution("SUCCESS", resource_id="mine", a=1)))
    done = await outcome("create", web, EXTERNAL, ACTIONS, progress=progress)
    assert isinstance(done, Done) and done.physical_id == "mine"
    assert done.attributes["output"] == {"resource_id": "mine", "a": 1}
    assert sent(web) == [f"GET executions/{started}"]


async def test_a_workflow_that_fails_fails_the_operation() -> None:
    web = Answers(answer(201, execution("ERROR")))
    failed = await outcome("create", web, EXTERNAL, ACTIONS)
    assert isinstance(failed, Failed) and failed.physical_id == body(web, 0)["id"]
    assert failed.reason == "the workflow has ended with ERROR: why"


async def cancel(
    status: int, state: str, output: str = "{}", **known: Any
) -> tuple[Outcome, Answers]:
    """The outcome of a cancelled create, if Mistral responds to the cancellation with `status`."""
    web = Answers(answer(201, execution("RUNNING")))
    waits = await outcome("create", web, EXTERNAL, ACTIONS)
    assert isinstance(waits, Wait)
    read = {**execution(state), "output": output}
    web = Answers(answer(status, {}), answer(200, read))
    found = await outcome(
        "create", web, EXTERNAL, ACTIONS, progress=waits.progress, cancelled=True, **known
    )
    return found, web


@pytest.mark.parametrize("status", [200, 404])
async def test_a_cancelled_operation_cancels_its_workflow(status: int) -> None:
    """Else it would run beside the workflow of the delete, which gets the output."""
    failed, web = await cancel(status, "CANCELLED", '{"resource_id": "mine", "a": 1}')
    assert isinstance(failed, Failed) and not failed.retry
    assert failed.public_reason == CANCELLED
    requests = sent(web)
    execution_id = requests[0].removeprefix("PUT executions/")
    assert body(web, 0) == {"state": "CANCELLED"}
    if status == 404:
        assert (failed.physical_id, failed.data, len(requests)) == (execution_id, {}, 1)
    else:
        assert requests[1:] == [f"GET executions/{execution_id}"]
        assert failed.physical_id == "mine"
        assert failed.data == {"outputs": {"resource_id": "mine", "a": 1}}


@pytest.mark.parametrize("status", [200, 400, 409])
async def test_a_workflow_that_has_succeeded_keeps_its_result(status: int) -> None:
    """A delete must know what to delete."""
    done, _ = await cancel(status, "SUCCESS", '{"resource_id": "mine"}')
    assert isinstance(done, Done) and done.physical_id == "mine"
    assert done.data == {"outputs": {"resource_id": "mine"}}


@pytest.mark.parametrize("status", [401, 403, 429, 500])
async def test_a_refused_cancellation_is_no_success(status: int) -> None:
    failed, web = await cancel(status, "RUNNING")
    assert isinstance(failed, Failed) and failed.public_reason != CANCELLED
    assert {one.partition(" ")[0] for one in sent(web)} == {"PUT"}


async def test_an_action_without_a_workflow_ends_when_it_is_cancelled() -> None:
    web = Answers()
    known = {"physical_id": "mine", "previous": ACTIONS}
    done = await outcome("suspend", web, EXTERNAL, ACTIONS, cancelled=True, **known)
    assert isinstance(done, Done) and not web.requests


async def test_later_executions_get_the_output_of_earlier_ones() -> None:
    web = Answers(answer(201, execution("SUCCESS")))
    known = {"physical_id": "mine", "previous": ACTIONS, "data": {"outputs": {"a": 1}}}
    done = await outcome("delete", web, EXTERNAL, ACTIONS, **known)
    assert isinstance(done, Done) and done.physical_id is None
    assert orjson.loads(body(web, 0)["params"]) == {"env": {"heat_extresource_data": {"a": 1}}}
    assert body(web, 0)["workflow_id"] == ID


@pytest.mark.parametrize(("names", "replaces"), [(["a"], True), (["b"], False), ([], False)])
def test_chosen_inputs_replace_the_resource(names: list[str], replaces: bool) -> None:
    type_ = type_with(Answers(), EXTERNAL)
    now = {**ACTIONS, "replace_on_change_inputs": names, "input": {"a": 2, "b": 1}}
    was = {**now, "input": {"a": 1, "b": 1}}
    assert type_.needs_replace(a_call(type_, now, previous=was, physical_id="m")) is replaces


async def test_a_message_starts_a_workflow_with_a_trust() -> None:
    options = {"headgate_operation": str(KEY)}
    made = {"id": ID, "subscriber": "s", "ttl": 60, "options": options}
    none = answer(200, {"subscriptions": [], "links": []})
    web = Answers(none, answer(201, {"subscription_id": ID}), answer(200, made))
    properties = {"queue_name": "q", "workflow_id": ID, "params": {"env": {"a": 1}}, "ttl": 60}
    done = await outcome("create", web, MESSAGES, properties)
    assert isinstance(done, Done)
    assert body(web, 1)["subscriber"] == "trust+http://workflow/executions"
    assert orjson.loads(body(web, 1)["options"]["post_data"]) == {
        "workflow_id": ID,
        "params": {"env": {"a": 1, "notification": "$zaqar_message$"}},
        "input": {},
    }
