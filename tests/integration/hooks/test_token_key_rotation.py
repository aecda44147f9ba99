"""The key of tokens is rotated while two processes run: tokens made before honour their deadline,
or are revoked at once."""

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest

from engine.hooks.tokens import TokenKey, hook_token
from engine.store.token_keys import accepts_hook, read_token_keys, rotate_token_key
from tests.integration.hooks.test_answers import asks, held
from tests.integration.hooks.test_signal_doors import door_of, send
from tests.support.admin import admin
from tests.support.changes import thing
from tests.support.keys import A_SEALER, key_file
from tests.support.program import Json, Program, eventually, program, who
from tests.support.things import Thing, World


@pytest.fixture
async def other(database_url: str, world: World) -> AsyncIterator[Program]:
    async with program(database_url, types=[Thing(world)]) as made:
        yield made


async def rotate(url: str, *words: str) -> str:
    said = await admin("rotate-token-key", *words, url=url, CREDENTIALS__KEY_FILE=str(key_file()))
    assert said.code == 0, said
    return said.out


async def versions(run: Program) -> list[TokenKey]:
    async with run.database.connection() as conn:
        return await read_token_keys(conn, A_SEALER)


async def subscription(run: Program) -> UUID:
    body = {"target": "http://127.0.0.1:9/"}
    status, made = await run.call("POST", "/subscriptions", body, headers=who("sue"))
    assert status == 201, made
    return UUID(made["id"])


async def answered(run: Program, hook: Json, token: str) -> int:
    status, _ = await run.call(
        "POST", f"//hooks/{hook['id']}/signal", {"decision": "continue"},
        headers={"Authorization": f"Bearer {token}"},
    )  # fmt: skip
    return status


async def test_hook_tokens_of_before_last_as_long_as_their_hooks(
    run: Program, other: Program, database_url: str
) -> None:
    mine = await subscription(run)
    before = [await held(run, asks(), name) for name in ("a", "b")]
    (old,) = await versions(run)
    assert "version 2" in await rotate(database_url)
    new, retired = await versions(run)
    assert (new.version, retired.version, retired.key) == (2, 1, old.key)
    assert new.key != old.key and new.retired_at is None and retired.retired_at is not None
    # A hook that was opened before takes both, on each process.
    assert await answered(other, before[0], hook_token(old.key, UUID(before[0]["id"]), mine)) == 200
    assert await answered(run, before[1], hook_token(new.key, UUID(before[1]["id"]), mine)) == 200
    # One that was opened afterwards takes the new one alone; processes may notice late, a while.
    after = await held(run, asks(), "c")
    async with run.database.connection() as conn:
        await conn.execute(
            "update token_key set retired_at = retired_at - $1::interval where version = 1",
            timedelta(minutes=3),
        )
    for program_ in (run, other):
        token = hook_token(old.key, UUID(after["id"]), mine)
        assert await answered(program_, after, token) == 401
    assert await answered(other, after, hook_token(new.key, UUID(after["id"]), mine)) == 200


async def test_revoked_tokens_open_nothing_at_once_on_any_process(
    run: Program, other: Program, world: World, database_url: str
) -> None:
    mine = await subscription(run)
    hook = await held(run, asks(), "a")
    await run.create("s", {"x": thing()})
    await run.until_ended("s")
    door = door_of(world, "x")
    elsewhere = door.signed_url.replace(run.url, other.url)
    assert (await send(run, door.signed_url))[0] == 200
    (old,) = await versions(run)
    assert "revoked" in await rotate(database_url, "--revoke")
    (new,) = await versions(run)
    for one in (run, other):
        assert await answered(one, hook, hook_token(old.key, UUID(hook["id"]), mine)) == 401
    assert (await send(run, door.signed_url))[0] == 401
    assert (await send(other, elsewhere))[0] == 401
    await run.update("s", "PUT", template={
        "heat_template_version": "2018-08-31", "resources": {"x": thing(2)}
    })  # fmt: skip
    await run.until_ended("s")
    fresh = door_of(world, "x")
    assert fresh.token != door.token
    assert (await send(run, fresh.signed_url))[0] == 200
    assert await answered(other, hook, hook_token(new.key, UUID(hook["id"]), mine)) == 200


async def test_signal_tokens_of_before_last_as_long_as_asked(
    run: Program, other: Program, world: World, database_url: str
) -> None:
    await run.create("s", {"x": thing()})
    await run.until_ended("s")
    door = door_of(world, "x")
    assert "for 2d" in await rotate(database_url, "--keep-for", "2d")
    assert (await send(other, door.signed_url.replace(run.url, other.url)))[0] == 200
    async with run.database.connection() as conn:
        left = await conn.fetchval(
            "select expires_at - retired_at from token_key where version = 1"
        )
        assert left == timedelta(days=2)
        await conn.execute("update token_key set expires_at = now() where version = 1")
    for one in (run, other):
        assert (await send(one, door.signed_url.replace(run.url, one.url)))[0] == 401


async def test_processes_make_tokens_with_the_new_key_soon(
    run: Program, other: Program, world: World, database_url: str
) -> None:
    """Without anything that asks them to look."""
    await run.create("s", {"x": thing()})
    await run.until_ended("s")
    door = door_of(world, "x")
    await rotate(database_url)

    async def renewed() -> bool:
        await run.act("s", "check")
        await run.until_ended("s")
        return door_of(world, "x").token != door.token

    await eventually(renewed)


async def test_a_rotation_that_breaks_off_leaves_one_newest_version(run: Program) -> None:
    """As when its process is killed: all or nothing; and two at once come one after the other."""
    async with run.database.rehearsal() as conn:
        await rotate_token_key(conn, b"n" * 32, A_SEALER, keep=timedelta(1), revoke=True)
        assert len(await read_token_keys(conn, A_SEALER)) == 1
    (only,) = await versions(run)
    assert only.version == 1 and only.retired_at is None
    async with run.database.connection() as conn:
        for number in range(2, 4):
            fresh = bytes([number]) * 32
            assert number == await rotate_token_key(
                conn, fresh, A_SEALER, keep=timedelta(1), revoke=False
            )
        found = await read_token_keys(conn, A_SEALER)
        assert [one.version for one in found] == [3, 2, 1]
        assert [one.retired_at is None for one in found] == [True, False, False]
        assert await accepts_hook(conn, UUID(int=1), found[0])
        assert not await accepts_hook(conn, UUID(int=1), found[1])
