"""/metrics: documented metrics exist and reverse, and their values follow what happens."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from engine.types.observation import Observation
from engine.words import ObservedState
from tests.integration.conftest import DatabaseOutage
from tests.support.access import insert_credential
from tests.support.changes import observed, put, thing, until_deleted
from tests.support.ports import free_port
from tests.support.program import Program, ServerProcess, eventually, program
from tests.support.receiver import Receiver, until
from tests.support.scripted_type import Thing, World

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
#: Name with labels, as Prometheus writes it -> value.
Values = dict[str, float]
LABELS = re.compile(r"^\| `(headgate_\w+)` \| ([^|]*)\|", re.MULTILINE)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables the cache, so that a test need not wait for it to expire."""
    monkeypatch.setattr("hub.metrics.FRESH", 0.2)


@pytest.fixture
async def run(database_url: str, world: World) -> AsyncIterator[Program]:
    settings = {"engine.poll": "1s", "channels.webhook.attempts": 2}
    async with program(database_url, settings, types=[Thing(world)]) as run:
        yield run


async def text(run: Program) -> str:
    status, response = await run.call("GET", "//metrics")
    assert status == 200
    return str(response)


async def values(run: Program) -> Values:
    return {
        sample.name + "".join(sorted(f" {name}={value}" for name, value in sample.labels.items())):
        sample.value
        for family in text_string_to_metric_families(await text(run))
        for sample in family.samples
    }  # fmt: skip


async def run_stacks(run: Program, receiver: Receiver) -> None:
    """Hooks that are answered, expire and wait; deliveries that succeed, are retried and die."""
    for path in ("", "/refused"):
        body = {"channel": "webhook", "target": receiver.url + path, "stacks": ["s"]}
        await run.call("POST", "/subscriptions", body | {"events": ["headgate.stack.*"]})
    receiver.respond_with_statuses(200)
    hooks = [
        {"at": "a", "on": "pre-create"},
        {"at": "b", "on": "pre-create", "timeout": "1s", "on_timeout": "continue"},
    ]
    await run.create("s", {"a": thing(), "b": thing()}, environment={"hooks": hooks})

    async def waits() -> object:
        return [one for one in await run.waiting_hooks("s") if one["resource_name"] == "a"]

    (hook,) = await eventually(waits)
    await run.signal(hook)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await until(lambda: len(receiver.received) == 4)
    receiver.respond_with_statuses(500)
    await run.create("held", {"a": thing()}, environment={"hooks": hooks[:1]})
    await run.waiting_hooks("held")
    await run.stack_request("DELETE", "s")
    await run.call("PROPFIND", "/stacks")
    await run.call("GET", "/stacks/nobody")
    await run.call("GET", "//nowhere/at/all")


async def test_metrics_count_events_and_waiting_hooks(run: Program, receiver: Receiver) -> None:
    await run_stacks(run, receiver)

    async def settled_values() -> Values | None:
        found = await values(run)
        died = found.get("headgate_deliveries_total channel=webhook outcome=dead", 0)
        return found if died == 2 else None

    found = await eventually(settled_values)
    expected = {
        "headgate_answers_total channel=api decision=continue": 1,
        "headgate_hooks_expired_total": 1,
        "headgate_hooks_opened_total mode=wait point=pre-create": 3,
        "headgate_operations_total operation=create outcome=done type=Test::Thing": 2,
        "headgate_nodes_total operation=create state=done": 2,
        "headgate_operation_seconds_count operation=create type=Test::Thing": 2,
        "headgate_requests_total method=POST route=/v1/{project}/stacks status=201": 2,
        "headgate_requests_total method=GET route=none status=404": 1,
        "headgate_requests_total method=other route=none status=405": 1,
        "headgate_database_up": 1,
        "headgate_stuck what=unclaimed": 0,
    }
    assert {name: found.get(name) for name in expected} == expected
    assert found["headgate_deliveries_total channel=webhook outcome=delivered"] >= 4
    assert found["headgate_deliveries_total channel=webhook outcome=retried"] >= 1
    assert found["headgate_pool_connections"] >= 1
    await eventually(lambda: _until_value(run, "headgate_hooks_waiting", 1))


async def _until_value(run: Program, name: str, value: float) -> bool:
    return (await values(run)).get(name) == value


async def test_exported_metrics_are_the_documented_ones(run: Program, receiver: Receiver) -> None:
    await run_stacks(run, receiver)
    named = dict(LABELS.findall(PAGE.read_text()))
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(await text(run)):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        found[name] = labels
    # tests/fault/test_server_processes.py tests the metric of servers with several processes.
    assert set(found) == set(named) - {
        "headgate_process_up",
        "headgate_cell_up",
        "headgate_projects_moving",
        "headgate_projects_in_two_cells",
    }
    documented = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in named.items()}
    assert {name: labels for name, labels in found.items() if labels - documented[name]} == {}


async def test_purged_rows_are_counted(database_url: str, world: World) -> None:
    settings = {"retention.every": "1s", "retention.events": "1s"}
    async with program(database_url, settings, types=[Thing(world)]) as run:
        await run.create("s", {"a": thing()})
        assert await run.until_ended("s") == "CREATE_COMPLETE"

        async def are_counted() -> bool:
            return (await values(run)).get("headgate_purged_total kind=events", 0) > 0

        await eventually(are_counted)


async def test_resources_are_counted_by_their_observed_state(
    run: Program, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub.metrics.FRESH", 0)

    async def states() -> dict[str, float]:
        found = await values(run)
        return {
            name.partition("state=")[2]: value
            for name, value in found.items()
            if name.startswith("headgate_resource_states ") and value
        }

    for name in ("s", "t"):
        await run.create(name, {one: thing() for one in "abc"})
        assert await run.until_ended(name) == "CREATE_COMPLETE"
    assert await states() == {}
    await observed(run, "t")
    world.observed["a"] = Observation(ObservedState.DEGRADED, reason="it is slow")
    del world.things[(await run.resources("s"))["b"]["physical_resource_id"]]
    await observed(run, "s")
    assert await states() == {"present": 4, "degraded": 1, "missing": 1}
    # An observation of an earlier record says nothing about the resource.
    await put(run, "s", {"a": thing(2), "b": thing(), "c": thing()})
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert await states() == {"present": 5, "missing": 1}
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")
    assert await states() == {"present": 3}


async def test_no_label_contains_a_name_from_a_user(run: Program, receiver: Receiver) -> None:
    await run_stacks(run, receiver)
    await run.call("GET", "/stacks/planted-71/planted-72/planted-73")
    assert "planted" not in await text(run)
    labels = re.findall(r'="([^"]*)"', await text(run))
    assert {"p", "s", "held"} & set(labels) == set()


async def test_deliveries_of_disabled_subscriptions_have_their_own_label(
    run: Program, receiver: Receiver
) -> None:
    go = receiver.respond_when_set()
    body = {"channel": "webhook", "target": receiver.url, "events": ["headgate.stack.*"]}
    _, response = await run.call("POST", "/subscriptions", body)
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    pending, held = (f"headgate_deliveries_{one} channel=webhook" for one in ("pending", "held"))
    await eventually(lambda: _until_value(run, pending, 2))
    await run.call("PATCH", f"/subscriptions/{response['id']}", {"state": "disabled"})
    await eventually(lambda: _until_value(run, held, 2))
    assert (await values(run))[pending] == 0
    go.set()


async def test_values_from_the_database_are_cached(
    run: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hub.metrics.FRESH", 1e9)
    assert (await values(run))["headgate_hooks_waiting"] == 0
    hooks = {"hooks": [{"at": "a", "on": "pre-create"}]}
    await run.create("s", {"a": thing()}, environment=hooks)
    await run.waiting_hooks("s")
    assert (await values(run))["headgate_hooks_waiting"] == 0


async def test_connected_stream_readers_are_counted(run: Program) -> None:
    async with run.session.get(f"{run.url}/v1/p/events/stream") as stream:
        assert stream.status == 200
        await eventually(lambda: _until_value(run, "headgate_streams", 1))
    # A disconnected reader is noticed when there is something to send.
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await run.stack_request("DELETE", "s")
    await eventually(lambda: _until_value(run, "headgate_streams", 0))


async def test_an_outage_of_the_database_is_reported_at_once(
    run: Program, database_outage: DatabaseOutage
) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    async with database_outage():
        found = await values(run)
    assert found["headgate_database_up"] == 0
    assert found["headgate_hooks_waiting"] != found["headgate_hooks_waiting"]  # without a number
    assert found["headgate_operations_total operation=create outcome=done type=Test::Thing"] == 1


async def test_metrics_need_authentication_unless_a_setting_makes_them_public(
    database_url: str,
) -> None:
    expected = {
        "": (401, 403, 403, 200, 200),
        "nothing": (200, 200, 200, 200, 200),
        "monitor": (401, 403, 403, 200, 200),
        "operate": (401, 403, 403, 403, 200),
    }
    for needs, statuses in expected.items():
        settings = {"auth.mode": "tokens", **({"metrics.needs": needs} if needs else {})}
        async with program(database_url, settings) as run:
            results = [(await run.call("GET", "//metrics"))[0]]
            for project, role in (
                ("p", "admin"), ("*", "approver"), ("*", "monitor"), ("*", "operator")
            ):  # fmt: skip
                token = await insert_credential(run.database, project, role, [role])
                headers = {"Authorization": f"Bearer {token}"}
                results.append((await run.call("GET", "//metrics", headers=headers))[0])
                if role == "monitor":  # it gives access to nothing else
                    for path in ("/stacks", "/services", "/tokens", "/hooks"):
                        assert (await run.call("GET", path, headers=headers))[0] == 403
        assert tuple(results) == statuses, needs
    async with program(database_url) as run:
        assert (await run.call("GET", "//metrics"))[0] == 200


async def test_a_process_without_the_api_has_its_own_metrics_address(
    database_url: str, tmp_path: Path
) -> None:
    port = free_port()
    settings = f'[metrics]\naddress = "127.0.0.1:{port}"\n'
    server = ServerProcess(tmp_path, settings=settings, roles=["engine"], database_url=database_url)
    await asyncio.to_thread(server.start)
    try:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/metrics") as answer:
                assert answer.status == 200 and "headgate_claim_seconds" in await answer.text()
            async with session.get(f"http://127.0.0.1:{port}/v1/p/stacks") as answer:
                assert answer.status == 404
    finally:
        await asyncio.to_thread(server.stop)
