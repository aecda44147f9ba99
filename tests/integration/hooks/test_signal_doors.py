"""Data sent without a login: a token for each resource, in a header or in the URL."""

from collections.abc import Mapping
from uuid import uuid4

from yarl import URL

from engine.types.signal_urls import SignalUrl
from tests.support.access import given_directly
from tests.support.changes import FAR, begun, gone, put, thing
from tests.support.program import Json, Program, program
from tests.support.things import Thing, World


def door_of(world: World, name: str) -> SignalUrl:
    """As the last operation on the resource was told."""
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
    ) as got:
        return got.status, await got.json()


async def heard(run: Program) -> list[Json]:
    """Everything that is kept, oldest first."""
    async with run.database.connection() as conn:
        rows = await conn.fetch("select data from resource_signal order by at")
    return [row["data"] for row in rows]


async def test_a_token_of_its_own_opens_in_every_form(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    door = door_of(world, "a")
    ways: list[tuple[str, str, dict[str, str]]] = [
        ("POST", door.url, {"X-Auth-Token": door.token}),
        ("PUT", door.url, {"Authorization": f"Bearer {door.token}"}),
        ("PUT", door.signed_url, {"Content-Type": ""}),
        ("POST", door.signed_url, {}),
    ]
    for number, (method, url, headers) in enumerate(ways):
        assert await send(run, url, {"n": number}, method, headers) == (200, None)
    assert await send(run, door.signed_url) == (200, None)
    assert await heard(run) == [*({"n": number} for number in range(4)), {}]
    told = [one["resource_status_reason"] for one in await run.events("s")]
    assert told.count("token sent it a signal") == 5


async def test_no_other_token_opens(run: Program, world: World) -> None:
    stack_id = await run.create("s", {"a": thing(), "b": thing()})
    await run.until_ended("s")
    a, b = door_of(world, "a"), door_of(world, "b")
    nobody = f"{run.url}/signals/{stack_id}/{uuid4()}"
    for url, token in ((a.url, b.token), (a.url, ""), (a.url, "\u00e9"), (nobody, a.token),
                       (f"{run.url}/signals/x/y", a.token)):  # fmt: skip
        status, said = await send(run, url, {}, headers={"X-Auth-Token": token})
        assert (status, said["error"]["type"]) == (401, "Unauthorized")
        assert "Bearer TOKEN" in said["error"]["remedy"]
    assert await heard(run) == []


async def test_it_is_void_when_the_resource_goes(run: Program, world: World) -> None:
    await run.create("s", {"a": thing(), "b": thing()})
    await run.until_ended("s")
    a, b = door_of(world, "a"), door_of(world, "b")
    await put(run, "s", {"b": thing()})
    await run.until_ended("s")
    assert (await send(run, a.signed_url))[0] == 404
    assert (await send(run, b.signed_url))[0] == 200
    await run.at("DELETE", "s")
    await gone(run, "s")
    assert (await send(run, b.signed_url))[0] == 404


async def test_what_takes_anothers_place_has_a_door_of_its_own_at_once(
    run: Program, world: World
) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    old = door_of(world, "a")
    world.will("create", "a", FAR)
    await put(run, "s", {"a": thing(place="there")})
    await begun_again(world)
    new = door_of(world, "a")
    assert new.token != old.token and new.url != old.url
    assert (await send(run, old.signed_url, {"to": "old"}))[0] == 200
    assert (await send(run, new.signed_url, {"to": "new"}))[0] == 200
    assert await run.until_ended("s") == "UPDATE_COMPLETE"
    assert world.calls[-2].signals == [{"to": "new"}]
    assert await heard(run) == [{"to": "new"}]


async def begun_again(world: World) -> None:
    world.done.clear()
    await begun(world, "create", "a")


async def test_whoever_has_it_needs_no_login_and_can_do_nothing_else(
    database_url: str, world: World
) -> None:
    locked = {"auth.mode": "tokens", "auth.failures": 4, "quotas.signal_bytes": 20}
    async with program(database_url, locked, types=[Thing(world)]) as run:
        token = await given_directly(run.database, "p", "ann", ["author"])
        run.session.headers["X-Auth-Token"] = token
        await run.create("s", {"a": thing()})
        await run.until_ended("s")
        del run.session.headers["X-Auth-Token"]
        door = door_of(world, "a")
        assert (await send(run, door.signed_url, {"n": 1}))[0] == 200
        status, said = await send(run, door.signed_url, {"long": "x" * 30})
        assert status == 400 and "The most is 20" in said["error"]["remedy"]
        for path in (f"{run.url}/v1/p/stacks", f"{run.url}/v1/p/hooks"):
            status, _ = await send(run, path, None, "GET", {"X-Auth-Token": door.token})
            assert status == 401
        # Guesses are counted, whatever they are for.
        said = [(await send(run, door.url, {}, headers={"X-Auth-Token": "x"}))[0] for _ in "abc"]
        assert said == [401, 401, 429]
        assert await heard(run) == [{"n": 1}]


async def test_only_objects_are_taken(run: Program, world: World) -> None:
    await run.create("s", {"a": thing()})
    await run.until_ended("s")
    url = door_of(world, "a").signed_url
    assert [(await send(run, url, data))[0] for data in ([1], "text", 5)] == [400] * 3
    assert await heard(run) == []
