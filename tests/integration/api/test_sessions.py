"""Sessions of browsers: what the cookie holds, and when it signs in no more."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from engine.errors import HeadgateError
from engine.store.database import Database
from hub.api.headgate.sessions import SignIn
from hub.auth import secrets
from hub.auth.credentials import RequestCredentials
from hub.auth.identity import Identity
from hub.auth.sessions import COOKIE, CSRF_HEADER, Sessions
from hub.program.wiring import ages
from hub.settings.settings import Settings
from tests.integration.api.test_access import PASSWORD, guarded, token
from tests.support.access import everything_in, given_directly
from tests.support.program import PATIENCE, Program, eventually, program
from tests.support.purging import purge_now

Access = tuple[Program, dict[str, str]]
Headers = dict[str, str]
LONG = {"auth.remembered": "1h"}


@pytest.fixture(autouse=True)
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_COST", 2**10)


@pytest.fixture
async def access(database_url: str) -> AsyncIterator[Access]:
    async with guarded(database_url, LONG) as made:
        await given_directly(made[0].database, "p", "ann", ["author"], password=PASSWORD)
        yield made


async def sign_in(run: Program, cookie: str = "", **body: str) -> Headers:
    """Headers of the browser's pages from now on."""
    said = body or {"user": "ann", "password": PASSWORD}
    before = {"Cookie": f"{COOKIE}={cookie}"} if cookie else {}
    url = f"{run.url}/v1/p/session"
    async with run.session.post(url, json=said, headers=before) as answer:
        assert answer.status == 201, await answer.text()
        csrf, cookie = (await answer.json())["csrf"], answer.cookies[COOKIE].value
    run.session.cookie_jar.clear()
    return {"Cookie": f"{COOKIE}={cookie}", CSRF_HEADER: csrf}


async def status_of(run: Program, headers: Headers) -> int:
    status, _ = await run.call("GET", "/stacks", headers=headers)
    return status


async def test_a_copy_of_the_cookie_is_refused_after_sign_out_on_every_process(
    access: Access, database_url: str
) -> None:
    one, _ = access
    async with guarded(database_url, LONG) as (two, _):
        mine, other = await sign_in(one), await sign_in(two)
        for run in (one, two):
            assert (await status_of(run, mine), await status_of(run, other)) == (200, 200)
        no_csrf = {"Cookie": mine["Cookie"]}
        assert (await one.call("DELETE", "/session", headers=no_csrf))[0] == 403
        assert (await one.call("DELETE", "/session", headers=mine))[0] == 204
        for run in (two, one):  # at once: nothing is waited for
            assert (await status_of(run, mine), await status_of(run, other)) == (401, 200)


async def test_cookie_and_database_hold_neither_password_nor_token(access: Access) -> None:
    run, admin = access
    mine = await token(run, admin, "ci", "author")
    for headers in (await sign_in(run), await sign_in(run, token=mine)):
        cookie = headers["Cookie"].removeprefix(f"{COOKIE}=")
        assert len(cookie) == 43  # 32 random bytes, and no room for more
        rows = await everything_in(run.database, "session")
        for secret in (PASSWORD, mine, cookie, headers[CSRF_HEADER]):
            assert secret not in rows and secret.encode().hex() not in rows


async def test_a_session_ends_with_its_password_or_token(access: Access) -> None:
    run, admin = access
    mine = await token(run, admin, "ci", "author")
    _, listed = await run.call("GET", "/tokens", headers=admin)
    ids = {one["name"]: one["id"] for one in listed["tokens"]}
    for name, headers in (
        ("ann", await sign_in(run)),
        ("ci", await sign_in(run, token=mine)),
    ):
        assert await status_of(run, headers) == 200
        assert (await run.call("DELETE", f"/tokens/{ids[name]}", headers=admin))[0] == 204
        assert await status_of(run, headers) == 401
    # Also when the name has a password again.
    old = {"name": "eve", "roles": ["reader"], "password": PASSWORD}
    _, made = await run.call("POST", "/tokens", old, headers=admin)
    headers = await sign_in(run, user="eve", password=PASSWORD)
    await run.call("DELETE", f"/tokens/{made['id']}", headers=admin)
    assert (await run.call("POST", "/tokens", old, headers=admin))[0] == 201
    assert await status_of(run, headers) == 401


async def test_a_stream_ends_when_its_session_does(access: Access, database_url: str) -> None:
    """The processes remember for an hour whom they let in, and are notified."""
    run, _ = access
    async with guarded(database_url, LONG) as (two, _):
        mine = await sign_in(run)
        url = f"{two.url}/v1/p/events/stream"
        async with two.session.get(url, headers=mine) as stream:
            assert await stream.content.readline() == b": connected\n"
            assert (await run.call("DELETE", "/session", headers=mine))[0] == 204
            async with asyncio.timeout(PATIENCE):
                while not stream.content.at_eof():
                    await stream.content.readany()


async def test_signing_in_anew_ends_the_session_before(access: Access) -> None:
    run, _ = access
    first = await sign_in(run)
    second = await sign_in(run, first["Cookie"].removeprefix(f"{COOKIE}="))
    assert (await status_of(run, first), await status_of(run, second)) == (401, 200)
    assert first[CSRF_HEADER] != second[CSRF_HEADER]


async def test_a_session_is_over_after_its_time_and_is_purged(database_url: str) -> None:
    async with guarded(database_url, {"auth.session": "2s"}) as (run, _):
        await given_directly(run.database, "p", "ann", ["author"], password=PASSWORD)
        mine = await sign_in(run)
        assert await status_of(run, mine) == 200

        async def over() -> bool:
            return await status_of(run, mine) == 401

        await eventually(over)
        gone = await purge_now(run.database, ages(Settings().retention))
        assert gone["sessions"] == 1
        assert await everything_in(run.database, "session") == ""


async def test_an_owner_has_no_more_than_a_hundred(access: Access) -> None:
    run, _ = access
    first = await sign_in(run)
    last = first
    for _ in range(100):
        last = await sign_in(run)
    assert len((await everything_in(run.database, "session")).splitlines()) == 100
    assert (await status_of(run, first), await status_of(run, last)) == (401, 200)


async def test_a_session_of_another_mode_signs_nobody_in(access: Access, database_url: str) -> None:
    run, _ = access
    mine = await sign_in(run)
    async with program(database_url) as free:
        status, said = await free.call("GET", "/session", headers=mine)
        assert (status, said["name"]) == (200, "anonymous")
        theirs = await sign_in(free, user="root", password="x")
        _, said = await free.call("GET", "/session", headers=theirs)
        assert said["name"] == "root"
    assert await status_of(run, theirs) == 401
    assert await status_of(run, mine) == 200


async def test_a_token_of_keystone_is_decrypted_with_the_cookie_alone(database: Database) -> None:
    sessions = Sessions(
        database, mode="keystone", lasts=timedelta(hours=1), random_bytes=os.urandom
    )
    who = Identity("ann", "p", key="user-id")
    cookie, begun = await sessions.begin(RequestCredentials(bearer="gAAAA-of-ann"), who)
    read = await sessions.read(cookie, "203.0.113.7")
    assert (read.presented.bearer, read.csrf) == ("gAAAA-of-ann", begun.csrf)
    rows = await everything_in(database, "session")
    assert b"gAAAA-of-ann".hex() not in rows and cookie not in rows
    async with database.connection() as conn:  # another session's row does not do
        await sessions.begin(RequestCredentials(bearer="gAAAA-of-bob"), who)
        swap = "update session set encrypted = o.encrypted from session o where o.id <> session.id"
        await conn.execute(swap)
    with pytest.raises(HeadgateError, match="the session is over"):
        await sessions.read(cookie, "")


@pytest.mark.parametrize(
    ("fields", "character"),
    [(["token"], "a"), (["user", "password"], "a"), (["user", "password"], "\U0001f511")],
    ids=["token", "password", "12 bytes each"],
)
async def test_the_longest_sign_in_is_judged_however_it_is_written(
    access: Access, fields: list[str], character: str
) -> None:
    run, _ = access
    schema = SignIn.model_json_schema()["properties"]
    for extra, wanted in ((0, 401), (1, 400)):
        said = {name: character * (schema[name]["maxLength"] + extra) for name in fields}
        status, answer = await run.call("POST", "/session", data=json.dumps(said).encode())
        assert status == wanted, answer
