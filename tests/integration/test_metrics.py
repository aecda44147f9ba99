"""/metrics: what is documented is there and the other way round; it counts what happens."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.integration.conftest import Away
from tests.support.access import given_directly
from tests.support.changes import thing
from tests.support.program import Program, ServerProcess, eventually, free_port, program
from tests.support.receiver import Receiver, until
from tests.support.things import Thing, World

DOC = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
#: Name with labels, as Prometheus writes it -> value.
Values = dict[str, float]
LABELS = re.compile(r"^\| `(headgate_\w+)` \| ([^|]*)\|", re.MULTILINE)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits here for what was read a while ago to be old."""
    monkeypatch.setattr("hub.metrics.FRESH", 0.2)


@pytest.fixture
async def run(database_url: str) -> AsyncIterator[Program]:
    said = {"engine.poll": "1s", "channels.webhook.attempts": 2}
    async with program(database_url, said, types=[Thing(World())]) as made:
        yield made


async def text(run: Program) -> str:
    status, said = await run.call("GET", "//metrics")
    assert status == 200
    return str(said)


async def values(run: Program) -> Values:
    return {
        sample.name + "".join(sorted(f" {name}={value}" for name, value in sample.labels.items())):
        sample.value
        for family in text_string_to_metric_families(await text(run))
        for sample in family.samples
    }  # fmt: skip


async def lived(run: Program, receiver: Receiver) -> None:
    """Hooks that are answered, expire and wait; deliveries that arrive, are retried and die."""
    for path in ("", "/refused"):
        said = {"channel": "webhook", "target": receiver.url + path, "stacks": ["s"]}
        await run.call("POST", "/subscriptions", said | {"events": ["headgate.stack.*"]})
    receiver.answers(200)
    hooks = [
        {"at": "a", "on": "pre-create"},
        {"at": "b", "on": "pre-create", "timeout": "1s", "on_timeout": "continue"},
    ]
    await run.create("s", {"a": thing(), "b": thing()}, environment={"hooks": hooks})

    async def waits() -> object:
        return [one for one in await run.waiting("s") if one["resource_name"] == "a"]

    (hook,) = await eventually(waits)
    await run.signal(hook)
    assert await run.until_ended("s") == "CREATE_COMPLETE"
    await until(lambda: len(receiver.received) == 4)
    receiver.answers(500)
    await run.create("held", {"a": thing()}, environment={"hooks": hooks[:1]})
    await run.waiting("held")
    await run.at("DELETE", "s")
    await run.call("PROPFIND", "/stacks")
    await run.call("GET", "/stacks/nobody")
    await run.call("GET", "//nowhere/at/all")


async def test_it_counts_what_happens_and_what_waits(run: Program, receiver: Receiver) -> None:
    await lived(run, receiver)

    async def all_told() -> Values | None:
        found = await values(run)
        died = found.get("headgate_deliveries_total channel=webhook outcome=dead", 0)
        return found if died == 2 else None

    found = await eventually(all_told)
    expected = {
        "headgate_answers_total decision=continue door=api": 1,
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
    await eventually(lambda: _is(run, "headgate_hooks_waiting", 1))


async def _is(run: Program, name: str, value: float) -> bool:
    return (await values(run)).get(name) == value


async def test_what_is_documented_is_there_and_nothing_else(
    run: Program, receiver: Receiver
) -> None:
    await lived(run, receiver)
    named = dict(LABELS.findall(DOC.read_text()))
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(await text(run)):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        found[name] = labels
    assert set(found) == set(named)
    said = {name: set(re.findall(r"`(\w+)`", labels)) for name, labels in named.items()}
    assert {name: labels for name, labels in found.items() if labels - said[name]} == {}


async def test_no_name_of_a_user_is_a_label(run: Program, receiver: Receiver) -> None:
    await lived(run, receiver)
    await run.call("GET", "/stacks/planted-71/planted-72/planted-73")
    assert "planted" not in await text(run)
    labels = re.findall(r'="([^"]*)"', await text(run))
    assert {"p", "s", "held"} & set(labels) == set()


async def test_what_is_kept_for_a_disabled_subscription_is_told_apart(
    run: Program, receiver: Receiver
) -> None:
    go = receiver.holds()
    said = {"channel": "webhook", "target": receiver.url, "events": ["headgate.stack.*"]}
    _, made = await run.call("POST", "/subscriptions", said)
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    pending, held = (f"headgate_deliveries_{one} channel=webhook" for one in ("pending", "held"))
    await eventually(lambda: _is(run, pending, 2))
    await run.call("PATCH", f"/subscriptions/{made['id']}", {"state": "disabled"})
    await eventually(lambda: _is(run, held, 2))
    assert (await values(run))[pending] == 0
    go.set()


async def test_the_database_is_asked_seldom(run: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hub.metrics.FRESH", 1e9)
    assert (await values(run))["headgate_hooks_waiting"] == 0
    hooks = {"hooks": [{"at": "a", "on": "pre-create"}]}
    await run.create("s", {"a": thing()}, environment=hooks)
    await run.waiting("s")
    assert (await values(run))["headgate_hooks_waiting"] == 0


async def test_readers_of_streams_are_counted_while_they_read(run: Program) -> None:
    async with run.session.get(f"{run.url}/v1/p/events/stream") as stream:
        assert stream.status == 200
        await eventually(lambda: _is(run, "headgate_streams", 1))
    # Who has gone is found out when something is to be told.
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    await run.at("DELETE", "s")
    await eventually(lambda: _is(run, "headgate_streams", 0))


async def test_without_a_database_it_says_so_at_once(run: Program, away: Away) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    async with away():
        found = await values(run)
    assert found["headgate_database_up"] == 0
    assert found["headgate_hooks_waiting"] != found["headgate_hooks_waiting"]  # no number
    assert found["headgate_operations_total operation=create outcome=done type=Test::Thing"] == 1


async def test_it_is_closed_in_authenticated_modes_unless_a_setting_opens_it(
    database_url: str,
) -> None:
    expected = {
        "": (401, 403, 403, 200, 200),
        "nothing": (200, 200, 200, 200, 200),
        "monitor": (401, 403, 403, 200, 200),
        "operate": (401, 403, 403, 403, 200),
    }
    for needs, statuses in expected.items():
        said = {"auth.mode": "tokens", **({"metrics.needs": needs} if needs else {})}
        async with program(database_url, said) as run:
            found = [(await run.call("GET", "//metrics"))[0]]
            for project, role in (
                ("p", "admin"), ("*", "approver"), ("*", "monitor"), ("*", "operator")
            ):  # fmt: skip
                token = await given_directly(run.database, project, role, [role])
                headers = {"Authorization": f"Bearer {token}"}
                found.append((await run.call("GET", "//metrics", headers=headers))[0])
                if role == "monitor":  # it opens nothing else
                    for path in ("/stacks", "/services", "/tokens", "/hooks"):
                        assert (await run.call("GET", path, headers=headers))[0] == 403
        assert tuple(found) == statuses, needs
    async with program(database_url) as run:
        assert (await run.call("GET", "//metrics"))[0] == 200


async def test_a_process_without_the_api_has_an_address_for_it(
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
