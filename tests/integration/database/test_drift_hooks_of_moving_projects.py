"""Drift hooks of a project that moves between cells: each can be answered, and is answered once."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from contextvars import ContextVar
from typing import Any

import pytest

from engine.store.connection import Connection, connect
from engine.store.fault_points import MOVE_POINTS, InjectedFault, inject_fault
from hub.cli.commands import project_move
from hub.program.cells.project_moves import MoveStates, ProjectMoves
from tests.integration.database.test_project_moves import ARRIVED, IN_A, TwoCells
from tests.support.cells import api_of, cell, engine_of, of_project
from tests.support.http_things import HTTP_SETTINGS, Things, serve_things, thing
from tests.support.postgres import TestServer
from tests.support.program import Http, eventually
from tests.support.receiver import Receiver, running_receiver, until

Json = Any
HOLD: Json = {"convergence": {"observe": {"every": "10m"}, "on_drift": "hold"}}
WANTED, DRIFTED = 1, 7


@pytest.fixture
async def things() -> AsyncIterator[Things]:
    async with serve_things() as service:
        yield service


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with running_receiver() as one:
        yield one


@pytest.fixture
async def cells(postgres: TestServer, receiver: Receiver) -> AsyncIterator[TwoCells]:
    async with AsyncExitStack() as stack:
        urls = [await stack.enter_async_context(postgres.new_database()) for _ in range(2)]
        databases = [cell(name, url) for name, url in zip("ab", urls, strict=True)]
        http = await stack.enter_async_context(api_of(databases, HTTP_SETTINGS))
        for url in urls:
            await stack.enter_async_context(engine_of(url, http.url, **HTTP_SETTINGS))
        yield TwoCells(urls, of_project(http, IN_A), receiver)


@pytest.fixture
def short_notice(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All processes read the moves for each response, so that none has to be waited for."""
    monkeypatch.setattr(project_move, "NOTICE_TIME", 0.0)
    monkeypatch.setattr("hub.program.cells.project_moves.MAX_AGE", 0.0)
    yield


@pytest.fixture
def unread_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """No process reads the moves but for a request."""
    for_request = ContextVar("for_request", default=False)
    refresh, read_moves = ProjectMoves.refresh, ProjectMoves.read_moves

    async def refresh_for_request(
        self: ProjectMoves, name: str, *, always: bool = False
    ) -> MoveStates:
        for_request.set(True)
        return await refresh(self, name, always=always)

    async def read_for_request(self: ProjectMoves, name: str, conn: Connection) -> None:
        if for_request.get():
            await read_moves(self, name, conn)

    monkeypatch.setattr(ProjectMoves, "refresh", refresh_for_request)
    monkeypatch.setattr(ProjectMoves, "read_moves", read_for_request)


async def drifted(http: Http, things: Things, names: list[str]) -> dict[str, Json]:
    """Create stacks with one resource each, whose objects then change; the waiting hook of each."""
    for name in names:
        await http.create(name, {"a": thing(things, WANTED)}, environment=HOLD)
    for name in names:
        assert await http.until_ended(name) == "CREATE_COMPLETE", await http.events(name)
    for one in things.objects.values():
        one["size"] = DRIFTED
    things.requests.clear()
    for name in names:
        await observed(http, name)
    return {name: (await http.waiting_hooks(name))[0] for name in names}


async def observed(http: Http, name: str) -> Json:
    """Observe a stack; return its drift."""
    await eventually(lambda: _is_observed(http, name))

    async def ended() -> Json:
        drift = await http.stack_request("GET", name, "/drift")
        return None if drift["observing"] else drift

    return await eventually(ended)


async def _is_observed(http: Http, name: str) -> bool:
    path = f"/stacks/{name}/{(await http.stack(name))['id']}/actions"
    return bool((await http.call("POST", path, {"observe": None}))[0] < 300)


async def answer(http: Http, hook: Json, decision: str = "repair") -> tuple[int, Json]:
    body: Json = {"decision": decision}
    if decision == "ignore":
        body["data"] = {"for": "1h"}
    return await http.call("POST", f"/hooks/{hook['id']}/signal", body)


async def changes_of(http: Http, name: str) -> int:
    return len((await http.stack_request("GET", name, "/versions"))["traversals"])


async def until_repaired(http: Http, name: str) -> None:
    async def repaired() -> bool:
        return str((await http.stack(name))["stack_status"]) == "UPDATE_COMPLETE"

    await eventually(repaired)
    assert await changes_of(http, name) == 2
    drift = await observed(http, name)
    assert drift["resources"] == []


async def state_of(http: Http, hook: Json) -> tuple[str, Json]:
    """(state, decision) of a hook."""
    status, found = await http.call("GET", f"/hooks/{hook['id']}")
    assert status == 200, found
    return found["state"], found.get("decision")


async def _is_noticed(http: Http) -> bool:
    """Whether the API refuses changes: until it has read of the move, it accepts them."""
    return (await http.call("POST", "/software_configs", {"name": "c"}))[0] == 503


async def test_each_drift_hook_is_answered_once_in_every_step_of_the_move(
    cells: TwoCells, things: Things, short_notice: None
) -> None:
    """Before the project has arrived, the answer is refused, and changes nothing. Then it is
    accepted, in the other cell, although the command has not ended yet."""
    http = cells.http
    names = [point.partition(".")[2] for point in MOVE_POINTS]
    hooks = await drifted(http, things, names)
    refused = []
    for point, name in zip(MOVE_POINTS, names, strict=True):
        with inject_fault(f"{point}:1:raise"), pytest.raises(InjectedFault):
            await cells.move()
        if point in ARRIVED:
            status, response = await answer(http, hooks[name])
            assert status == 200, (point, response)
            status, response = await answer(http, hooks[name], "ignore")
            assert status == 409 and response["error"]["type"] == "HookAlreadyAnswered"
        else:
            await eventually(lambda: _is_noticed(http))
            refused.append(name)
            status, response = await answer(http, hooks[name])
            assert status == 503, (point, response)
            assert response["error"]["type"] == "ProjectMoving", point
            assert (await state_of(http, hooks[name]))[0] == "waiting"
    assert len(refused) == len(names) - len(ARRIVED)
    for name in refused:
        status, response = await answer(http, hooks[name])
        assert status == 200, (name, response)
        assert (await answer(http, hooks[name], "ignore"))[0] == 409
    for name in names:
        await until_repaired(http, name)
        assert await state_of(http, hooks[name]) == ("answered", "repair")
    assert things.requests["update"] == len(names)
    assert {one["size"] for one in things.objects.values()} == {WANTED}


async def test_answers_that_race_with_each_other_and_a_move_have_one_winner(
    cells: TwoCells, things: Things, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two persons answer each hook, and send a refused answer again; meanwhile the project moves
    to the other cell and back."""
    monkeypatch.setattr(project_move, "NOTICE_TIME", 1.5)
    monkeypatch.setattr("hub.program.cells.project_moves.MAX_AGE", 0.1)
    http, names = cells.http, [f"s{number}" for number in range(8)]
    hooks = await drifted(http, things, names)
    moved = asyncio.Event()

    async def send(name: str, decision: str) -> tuple[int, Json]:
        async def settled() -> tuple[int, Json] | None:
            status, response = await answer(http, hooks[name], decision)
            if status == 503:
                assert response["error"]["type"] == "ProjectMoving", response
                return None
            return status, response

        # The first ones before the move, the others at any time during it.
        if names.index(name) >= len(names) // 2:
            await until(moved.is_set)
        return await eventually(settled)  # type: ignore[no-any-return]

    async def move() -> None:
        moved.set()
        await cells.move("b", wait=30)
        await cells.move("a", wait=30)

    async with asyncio.TaskGroup() as group:
        sent = {
            (name, decision): group.create_task(send(name, decision))
            for name in names
            for decision in ("repair", "ignore")
        }
        group.create_task(move())
    for name in names:
        results = {one: sent[name, one].result() for one in ("repair", "ignore")}
        assert sorted(status for status, _ in results.values()) == [200, 409], results
        (winner,) = [one for one, (status, _) in results.items() if status == 200]
        assert await state_of(http, hooks[name]) == ("answered", winner)
        if winner == "repair":
            await until_repaired(http, name)
        else:
            assert await changes_of(http, name) == 1
    assert things.requests["update"] == sum(
        sent[name, "repair"].result()[0] == 200 for name in names
    )


async def test_an_approved_repair_is_done_once_although_the_project_moves(
    cells: TwoCells, things: Things, short_notice: None
) -> None:
    http = cells.http
    hooks = await drifted(http, things, ["s"])
    assert (await answer(http, hooks["s"]))[0] == 200
    await cells.move(wait=30)
    await until_repaired(http, "s")
    assert things.requests["update"] == 1
    assert await cells.counts(0) == {}


async def test_the_notification_of_a_drift_hook_is_answered_after_a_move_and_an_undone_one(
    cells: TwoCells, things: Things, short_notice: None, unread_moves: None
) -> None:
    """With the token that was sent before."""
    http = cells.http
    body = {"target": cells.receiver.url, "channel": "webhook", "events": ["headgate.hook.waiting"]}
    assert (await http.call("POST", "/subscriptions", body))[0] == 201
    hooks = await drifted(http, things, ["s", "t"])
    sent = await until(lambda: len(cells.receiver.events) == 2 and cells.receiver.events)
    notified = {one["data"]["hook"]["id"]: one["data"] for one in sent}

    async def send(name: str, decision: str = "repair") -> int:
        data = notified[hooks[name]["id"]]
        headers = {"Authorization": f"Bearer {data['token']}"}
        async with http.session.post(
            data["signal_url"], json={"decision": decision}, headers=headers
        ) as response:
            return response.status

    with inject_fault("move.copied:1:raise"), pytest.raises(InjectedFault):
        await cells.move()
    # Although the process has read of no move before: else the sender would take the token for
    # invalid, and give up.
    assert await send("s") == 503
    await cells.move(undo=True)
    assert await send("s") == 200
    await until_repaired(http, "s")
    await cells.move()
    assert await send("t") == 200
    assert await send("t", "adopt") == 409
    await until_repaired(http, "t")
    assert await send("s", "adopt") == 409
    assert things.requests["update"] == 2


async def test_drift_is_asked_once_and_observed_further_in_the_new_cell(
    cells: TwoCells, things: Things, short_notice: None
) -> None:
    """Of three hooks, one waits, one was rejected and one ignored for a time."""
    http = cells.http
    body = {"target": cells.receiver.url, "channel": "webhook", "events": ["headgate.hook.waiting"]}
    assert (await http.call("POST", "/subscriptions", body))[0] == 201
    names = ["waiting", "rejected", "ignored"]
    hooks = await drifted(http, things, names)
    assert (await answer(http, hooks["rejected"], "reject"))[0] == 200
    assert (await answer(http, hooks["ignored"], "ignore"))[0] == 200
    for name in ("rejected", "ignored"):
        await observed(http, name)  # as an answer requests it
    await until(lambda: len(cells.receiver.events) == 3)
    before = {name: await drift_of(http, name) for name in names}
    scheduled = {name: await next_at(http, name) for name in names}
    await cells.move(wait=30)
    assert await cells.counts(0) == {}
    things.requests.clear()

    # The drift, its hooks and the times of the next observations have moved.
    assert {name: await drift_of(http, name) for name in names} == before
    assert {name: await next_at(http, name) for name in names} == scheduled
    assert None not in scheduled.values()
    # The schedule of the new cell observes the same drift: there is no other hook.
    await observe_by_schedule(cells, names)
    assert things.requests["list"] >= 1
    for name in names:
        after = await drift_of(http, name)
        assert after["observed_at"] > before[name]["observed_at"]
        assert [after[key] for key in ("since", "differences")] == [
            before[name][key] for key in ("since", "differences")
        ]
    assert await waiting_ids(http) == [hooks["waiting"]["id"]]
    assert len(cells.receiver.events) == 3

    # Other drift is: in place of the first hook, and again after the rejection, but not yet after
    # `ignore`.
    for one in things.objects.values():
        one["size"] = DRIFTED + 1
    await observe_by_schedule(cells, names)
    asked = {one["id"] for one in hooks.values()}

    async def asked_again() -> list[str] | None:
        """Hooks open after the observation has ended."""
        found = await waiting_ids(http)
        return found if len(found) == 2 and not asked.intersection(found) else None

    found = await eventually(asked_again)
    assert await state_of(http, hooks["waiting"]) == ("superseded", None)
    sent = await until(lambda: len(cells.receiver.events) == 5 and cells.receiver.events)
    assert {one["data"]["hook"]["id"] for one in sent[3:]} == set(found)
    for name in ("waiting", "rejected"):
        (hook,) = await http.waiting_hooks(name)
        assert (await answer(http, hook))[0] == 200
        await until_repaired(http, name)
    assert things.requests["update"] == 2


async def drift_of(http: Http, name: str) -> Json:
    """The drift of the only resource of a stack."""
    (found,) = (await http.stack_request("GET", name, "/drift"))["resources"]
    return found


async def next_at(http: Http, name: str) -> Json:
    return (await http.stack_request("GET", name, "/drift"))["next_observation_at"]


async def waiting_ids(http: Http) -> list[str]:
    path = "/hooks?state=waiting&point=drift"
    return [one["id"] for one in (await http.call("GET", path))[1]["hooks"]]


async def observe_by_schedule(cells: TwoCells, names: list[str]) -> None:
    """Let the engine of the cell b observe stacks whose time has come; wait until it has."""
    conn = await connect(cells.urls[1])
    try:
        changed = await conn.execute(
            "update observation_schedule set next_at = now() where next_at is not null"
        )
        assert changed == f"UPDATE {len(names)}"
        since = await conn.fetchval("select now()")

        async def ended() -> bool:
            return bool(
                await conn.fetchval(
                    "select bool_and(next_at > now() and observed_at >= $1)"
                    "  from observation_schedule",
                    since,
                )
            )

        await eventually(ended)
    finally:
        await conn.close()
