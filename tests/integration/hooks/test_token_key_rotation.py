"""The token key is rotated while two processes run: tokens of the previous key stay valid until
their deadline, or are revoked at once.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest

from engine.hooks.derived_tokens import TokenKey, hook_token
from engine.store.access.token_keys import accepts_hook, read_token_keys, rotate_token_key
from tests.integration.hooks.test_answers import create_waiting, hook_rule
from tests.integration.hooks.test_signal_urls import send, signal_url_of
from tests.support.admin_command import run_admin
from tests.support.changes import thing
from tests.support.keys import KEYRING, key_file
from tests.support.program import Json, Program, eventually, identity_headers, program
from tests.support.scripted_type import Thing, World


@pytest.fixture
async def other(database_url: str, world: World) -> AsyncIterator[Program]:
    async with program(database_url, types=[Thing(world)]) as run:
        yield run


async def rotate(url: str, *words: str) -> str:
    output = await run_admin(
        "rotate-token-key", *words, url=url, CREDENTIALS__KEY_FILE=str(key_file())
    )
    assert output.code == 0, output
    return output.out


async def versions(run: Program) -> list[TokenKey]:
    async with run.database.connection() as conn:
        return await read_token_keys(conn, KEYRING)


async def subscription(run: Program) -> UUID:
    body = {"target": "http://127.0.0.1:9/"}
    status, response = await run.call(
        "POST", "/subscriptions", body, headers=identity_headers("sue")
    )
    assert status == 201, response
    return UUID(response["id"])


async def answered(run: Program, hook: Json, token: str) -> int:
    status, _ = await run.call(
        "POST", f"//hooks/{hook['id']}/signal", {"decision": "continue"},
        headers={"Authorization": f"Bearer {token}"},
    )  # fmt: skip
    return status


async def test_hook_tokens_of_the_previous_key_are_valid_until_their_hooks_end(
    run: Program, other: Program, database_url: str
) -> None:
    mine = await subscription(run)
    before = [await create_waiting(run, hook_rule(), name) for name in ("a", "b")]
    (old,) = await versions(run)
    assert "version 2" in await rotate(database_url)
    new, retired = await versions(run)
    assert (new.version, retired.version, retired.key) == (2, 1, old.key)
    assert new.key != old.key and new.retired_at is None and retired.retired_at is not None
    # Both tokens of an older hook are valid, on each process.
    assert await answered(other, before[0], hook_token(old.key, UUID(before[0]["id"]), mine)) == 200
    assert await answered(run, before[1], hook_token(new.key, UUID(before[1]["id"]), mine)) == 200
    # For a newer hook only the new token is valid; a process may notice the rotation later.
    after = await create_waiting(run, hook_rule(), "c")
    async with run.database.connection() as conn:
        await conn.execute(
            "update token_key set retired_at = retired_at - $1::interval where version = 1",
            timedelta(minutes=3),
        )
    for program_ in (run, other):
        token = hook_token(old.key, UUID(after["id"]), mine)
        assert await answered(program_, after, token) == 401
    assert await answered(other, after, hook_token(new.key, UUID(after["id"]), mine)) == 200


async def test_revoked_tokens_are_refused_at_once_on_every_process(
    run: Program, other: Program, world: World, database_url: str
) -> None:
    mine = await subscription(run)
    hook = await create_waiting(run, hook_rule(), "a")
    await run.create("s", {"x": thing()})
    await run.until_ended("s")
    signal = signal_url_of(world, "x")
    url_of_other = signal.signed_url.replace(run.url, other.url)
    assert (await send(run, signal.signed_url))[0] == 200
    (old,) = await versions(run)
    assert "revoked" in await rotate(database_url, "--revoke", "--yes")
    (new,) = await versions(run)
    for one in (run, other):
        assert await answered(one, hook, hook_token(old.key, UUID(hook["id"]), mine)) == 401
    assert (await send(run, signal.signed_url))[0] == 401
    assert (await send(other, url_of_other))[0] == 401
    await run.update("s", "PUT", template={
        "heat_template_version": "2018-08-31", "resources": {"x": thing(2)}
    })  # fmt: skip
    await run.until_ended("s")
    fresh = signal_url_of(world, "x")
    assert fresh.token != signal.token
    assert (await send(run, fresh.signed_url))[0] == 200
    assert await answered(other, hook, hook_token(new.key, UUID(hook["id"]), mine)) == 200


async def test_signal_tokens_of_the_previous_key_are_valid_for_the_requested_time(
    run: Program, other: Program, world: World, database_url: str
) -> None:
    await run.create("s", {"x": thing()})
    await run.until_ended("s")
    signal = signal_url_of(world, "x")
    assert "for 2d" in await rotate(database_url, "--keep-for", "2d")
    assert (await send(other, signal.signed_url.replace(run.url, other.url)))[0] == 200
    async with run.database.connection() as conn:
        left = await conn.fetchval(
            "select expires_at - retired_at from token_key where version = 1"
        )
        assert left == timedelta(days=2)
        await conn.execute("update token_key set expires_at = now() where version = 1")
    for one in (run, other):
        assert (await send(one, signal.signed_url.replace(run.url, one.url)))[0] == 401


async def test_processes_soon_create_tokens_with_the_new_key(
    run: Program, other: Program, world: World, database_url: str
) -> None:
    """Without a request that makes them read the key."""
    await run.create("s", {"x": thing()})
    await run.until_ended("s")
    signal = signal_url_of(world, "x")
    await rotate(database_url)

    async def renewed() -> bool:
        await run.act("s", "check")
        await run.until_ended("s")
        return signal_url_of(world, "x").token != signal.token

    await eventually(renewed)


async def test_an_interrupted_rotation_leaves_one_current_key(run: Program) -> None:
    """A killed rotation changes all or nothing; two concurrent ones run one after the other."""
    async with run.database.rollback_only() as conn:
        await rotate_token_key(conn, b"n" * 32, KEYRING, keep=timedelta(1), revoke=True)
        assert len(await read_token_keys(conn, KEYRING)) == 1
    (only,) = await versions(run)
    assert only.version == 1 and only.retired_at is None
    async with run.database.connection() as conn:
        for number in range(2, 4):
            fresh = bytes([number]) * 32
            assert number == await rotate_token_key(
                conn, fresh, KEYRING, keep=timedelta(1), revoke=False
            )
        found = await read_token_keys(conn, KEYRING)
        assert [one.version for one in found] == [3, 2, 1]
        assert [one.retired_at is None for one in found] == [True, False, False]
        assert await accepts_hook(conn, UUID(int=1), found[0])
        assert not await accepts_hook(conn, UUID(int=1), found[1])
