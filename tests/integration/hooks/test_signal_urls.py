"""Signals without authentication: a token for each resource, in a header or in the URL."""

from collections.abc import Mapping
from uuid import uuid4

import pytest
from yarl import URL

from engine.types.signal_urls import SignalUrl
from tests.support.access import insert_credential
from tests.support.changes import LONG_WAIT, put, thing, until_deleted, until_started
from tests.support.program import Json, Program, program
from tests.support.scripted_type import Thing, World


@pytest.fixture
def run(things_in_own_project: Program) -> Program:
    return things_in_own_project


def signal_url_of(world: World, name: str) -> SignalUrl:
    """The signal URL that the last operation on the resource received."""
    return next(call.signal_url for call in reversed(world.calls) if call.resource_name == name)


async def send(
    run: Program,
    url: str,
    data: Json = None,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
) -> tuple[int, Json]:
    sent = {} if data is None else {"json": data}
    async with run.session.request(
        method, URL(url, encoded=True), headers=dict(headers or {}), **sent
    ) as response:
        return response.status, await response.json()


async def stored_signals(run: Program) -> list[Json]:
    """The data of all stored signals, oldest first."""
    async with run.database.connection() as conn:
        rows = await conn.fetch("select data from resource_signal order by sent_at")
    return [row["data"] for row in rows]


async def test_the_resources_token_is_accepted_in_header_and_url(
    run: Program, world: World
) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    signal = signal_url_of(world, "a")
    requests: list[tuple[str, str, dict[str, str]]] = [
        ("POST", signal.url, {"X-Auth-Token": signal.token}),
        ("PUT", signal.url, {"Authorization": f"Bearer {signal.token}"}),
        ("PUT", signal.signed_url, {"Content-Type": ""}),
        ("POST", signal.signed_url, {}),
    ]
    for number, (method, url, headers) in enumerate(requests):
        assert await send(run, url, {"n": number}, method, headers) == (200, None)
    assert await send(run, signal.signed_url) == (200, None)
    assert await stored_signals(run) == [*({"n": number} for number in range(4)), {}]
    reasons = [one["resource_status_reason"] for one in await run.events("s")]
    assert reasons.count("token sent it a signal") == 5


async def test_other_tokens_are_refused(run: Program, world: World) -> None:
    stack_id = await run.create("s", {"a": thing(), "b": thing()})
    await run.until_ended("s")
    a, b = signal_url_of(world, "a"), signal_url_of(world, "b")
    unknown_url = f"{run.url}/signals/{stack_id}/{uuid4()}"
    for url, token in ((a.url, b.token), (a.url, ""), (a.url, "\u00e9"), (unknown_url, a.token),
                       (f"{run.url}/signals/x/y", a.token)):  # fmt: skip
        status, response = await send(run, url, {}, headers={"X-Auth-Token": token})
        assert (status, response["error"]["type"]) == (401, "Unauthorized")
        assert "Bearer TOKEN" in response["error"]["remedy"]
    assert await stored_signals(run) == []


async def test_the_signal_url_ends_with_the_resource(run: Program, world: World) -> None:
    await run.create("s", {"a": thing(), "b": thing()})
    await run.until_ended("s")
    a, b = signal_url_of(world, "a"), signal_url_of(world, "b")
    await put(run, "s", {"b": thing()})
    await run.until_ended("s")
    assert (await send(run, a.signed_url))[0] == 404
    assert (await send(run, b.signed_url))[0] == 200
    await run.stack_request("DELETE", "s")
    await until_deleted(run, "s")
    assert (await send(run, b.signed_url))[0] == 404


async def test_a_replacement_has_its_own_signal_url(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    old = signal_url_of(world, "a")
    world.script("create", "a", LONG_WAIT)
    await put(run, "s", {"a": thing(place="there")})
    await until_created_again(world)
    new = signal_url_of(world, "a")
    assert new.token != old.token and new.url != old.url
    assert (await send(run, old.signed_url, {"to": "old"}))[0] == 200
    assert (await send(run, new.signed_url, {"to": "new"}))[0] == 200
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert world.calls[-2].signals == [{"to": "new"}]
    assert await stored_signals(run) == [{"to": "new"}]


async def until_created_again(world: World) -> None:
    world.done.clear()
    await until_started(world, "create", "a")


async def test_a_signal_url_needs_no_login_and_allows_only_its_signal(
    database_url: str, world: World
) -> None:
    settings = {"auth.mode": "tokens", "auth.failures": 4, "quotas.signal_bytes": 20}
    async with program(database_url, settings, types=[Thing(world)]) as run:
        token = await insert_credential(run.database, "p", "ann", ["author"])
        run.session.headers["X-Auth-Token"] = token
        await run.create("s", {"a": thing()})
        await run.until_ended("s")
        del run.session.headers["X-Auth-Token"]
        signal = signal_url_of(world, "a")
        assert (await send(run, signal.signed_url, {"n": 1}))[0] == 200
        status, response = await send(run, signal.signed_url, {"long": "x" * 30})
        assert status == 400 and "The limit is 20" in response["error"]["remedy"]
        for path in (f"{run.url}/v1/p/stacks", f"{run.url}/v1/p/hooks"):
            status, _ = await send(run, path, None, "GET", {"X-Auth-Token": signal.token})
            assert status == 401
        # Failed attempts count for all URLs together.
        statuses = [
            (await send(run, signal.url, {}, headers={"X-Auth-Token": "x"}))[0] for _ in "abc"
        ]
        assert statuses == [401, 401, 429]
        assert await stored_signals(run) == [{"n": 1}]


async def test_a_signal_url_accepts_only_objects(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    url = signal_url_of(world, "a").signed_url
    assert [(await send(run, url, data))[0] for data in ([1], "text", 5)] == [400] * 3
    assert await stored_signals(run) == []
