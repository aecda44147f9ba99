"""Browser sessions: their cookies, and when they end."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from engine.errors import HeadgateError
from engine.store.database import Database
from hub.api.headgate.sessions import SignIn
from hub.auth import secrets
from hub.auth.cross_site import CSRF_HEADER
from hub.auth.identity import Identity
from hub.auth.request_credentials import RequestCredentials
from hub.auth.sessions import COOKIE, Sessions
from hub.program.wiring import ages
from hub.settings.settings import Settings
from tests.integration.api.test_access import PASSWORD, bearer, run_with_tokens, token
from tests.support.access import insert_credential, table_text
from tests.support.program import PATIENCE, Program, eventually, program
from tests.support.purging import purge_now

Access = tuple[Program, dict[str, str]]
Headers = dict[str, str]
LONG = {"auth.cache_ttl": "1h"}


@pytest.fixture(autouse=True)
def cheapest_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "_COST", 2**10)


@pytest.fixture(scope="module")
def shared_settings() -> Mapping[str, Any]:
    return LONG | {"auth.mode": "tokens"}


@pytest_asyncio.fixture(loop_scope="session")
async def shared_access(in_own_project: Program) -> Access:
    run = in_own_project
    admin = await insert_credential(run.database, "*", "root", ["admin"])
    await insert_credential(run.database, run.project, "ann", ["author"], password=PASSWORD)
    return run, bearer(admin)


@pytest.fixture
async def access(database_url: str) -> AsyncIterator[Access]:
    """For tests with further servers of the same database."""
    async with run_with_tokens(database_url, LONG) as run:
        await insert_credential(run[0].database, "p", "ann", ["author"], password=PASSWORD)
        yield run


async def sign_in(run: Program, cookie: str = "", **body: str) -> Headers:
    """The headers of later requests of the browser."""
    credentials = body or {"user": "ann", "password": PASSWORD}
    before = {"Cookie": f"{COOKIE}={cookie}"} if cookie else {}
    url = f"{run.url}/v1/{run.project}/session"
    async with run.session.post(url, json=credentials, headers=before) as answer:
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
    async with run_with_tokens(database_url, LONG) as (two, _):
        mine, other = await sign_in(one), await sign_in(two)
        for run in (one, two):
            assert (await status_of(run, mine), await status_of(run, other)) == (200, 200)
        no_csrf = {"Cookie": mine["Cookie"]}
        assert (await one.call("DELETE", "/session", headers=no_csrf))[0] == 403
        assert (await one.call("DELETE", "/session", headers=mine))[0] == 204
        for run in (two, one):  # at once, without waiting
            assert (await status_of(run, mine), await status_of(run, other)) == (401, 200)


async def test_cookie_and_database_hold_neither_password_nor_token(shared_access: Access) -> None:
    run, admin = shared_access
    ci_token = await token(run, admin, "ci", "author")
    for headers in (await sign_in(run), await sign_in(run, token=ci_token)):
        cookie = headers["Cookie"].removeprefix(f"{COOKIE}=")
        assert len(cookie) == 43  # 32 random bytes
        rows = await table_text(run.database, "session")
        for secret in (PASSWORD, ci_token, cookie, headers[CSRF_HEADER]):
            assert secret not in rows and secret.encode().hex() not in rows


async def test_a_session_ends_with_its_password_or_token(shared_access: Access) -> None:
    run, admin = shared_access
    ci_token = await token(run, admin, "ci", "author")
    _, listed = await run.call("GET", "/tokens", headers=admin)
    ids = {one["name"]: one["id"] for one in listed["tokens"]}
    for name, headers in (
        ("ann", await sign_in(run)),
        ("ci", await sign_in(run, token=ci_token)),
    ):
        assert await status_of(run, headers) == 200
        assert (await run.call("DELETE", f"/tokens/{ids[name]}", headers=admin))[0] == 204
        assert await status_of(run, headers) == 401
    # Also if the name has a new password.
    old = {"name": "eve", "roles": ["reader"], "password": PASSWORD}
    _, response = await run.call("POST", "/tokens", old, headers=admin)
    headers = await sign_in(run, user="eve", password=PASSWORD)
    await run.call("DELETE", f"/tokens/{response['id']}", headers=admin)
    assert (await run.call("POST", "/tokens", old, headers=admin))[0] == 201
    assert await status_of(run, headers) == 401


async def test_a_stream_ends_when_its_session_does(access: Access, database_url: str) -> None:
    """The processes cache identities for an hour, and are notified."""
    run, _ = access
    async with run_with_tokens(database_url, LONG) as (two, _):
        mine = await sign_in(run)
        url = f"{two.url}/v1/p/events/stream"
        async with two.session.get(url, headers=mine) as stream:
            assert await stream.content.readline() == b": connected\n"
            assert (await run.call("DELETE", "/session", headers=mine))[0] == 204
            async with asyncio.timeout(PATIENCE):
                while not stream.content.at_eof():
                    await stream.content.readany()


async def test_a_new_sign_in_ends_the_previous_session(shared_access: Access) -> None:
    run, _ = shared_access
    first = await sign_in(run)
    second = await sign_in(run, first["Cookie"].removeprefix(f"{COOKIE}="))
    assert (await status_of(run, first), await status_of(run, second)) == (401, 200)
    assert first[CSRF_HEADER] != second[CSRF_HEADER]


async def test_an_expired_session_is_refused_and_purged(database_url: str) -> None:
    async with run_with_tokens(database_url, {"auth.session": "2s"}) as (run, _):
        await insert_credential(run.database, "p", "ann", ["author"], password=PASSWORD)
        mine = await sign_in(run)
        assert await status_of(run, mine) == 200

        async def is_expired() -> bool:
            return await status_of(run, mine) == 401

        await eventually(is_expired)
        gone = await purge_now(run.database, ages(Settings().retention))
        assert gone["sessions"] == 1
        assert await table_text(run.database, "session") == ""


async def test_a_user_has_at_most_a_hundred_sessions(shared_access: Access) -> None:
    run, _ = shared_access
    first = await sign_in(run)
    last = first
    for _ in range(100):
        last = await sign_in(run)
    assert len((await table_text(run.database, "session")).splitlines()) == 100
    assert (await status_of(run, first), await status_of(run, last)) == (401, 200)


async def test_a_session_of_another_mode_is_ignored(access: Access, database_url: str) -> None:
    run, _ = access
    mine = await sign_in(run)
    async with program(database_url) as free:
        status, response = await free.call("GET", "/session", headers=mine)
        assert (status, response["name"]) == (200, "anonymous")
        theirs = await sign_in(free, user="root", password="x")
        _, response = await free.call("GET", "/session", headers=theirs)
        assert response["name"] == "root"
    assert await status_of(run, theirs) == 401
    assert await status_of(run, mine) == 200


async def test_a_token_of_keystone_is_decrypted_with_the_cookie_alone(database: Database) -> None:
    sessions = Sessions(
        database, mode="keystone", lasts=timedelta(hours=1), random_bytes=os.urandom
    )
    who = Identity("ann", "p", key="user-id")
    cookie, stored = await sessions.begin(RequestCredentials(bearer="gAAAA-of-ann"), who)
    read = await sessions.read(cookie, "203.0.113.7")
    assert (read.credentials.bearer, read.csrf) == ("gAAAA-of-ann", stored.csrf)
    rows = await table_text(database, "session")
    assert b"gAAAA-of-ann".hex() not in rows and cookie not in rows
    async with database.connection() as conn:  # the row of another session does not match
        await sessions.begin(RequestCredentials(bearer="gAAAA-of-bob"), who)
        swap = "update session set encrypted = o.encrypted from session o where o.id <> session.id"
        await conn.execute(swap)
    with pytest.raises(HeadgateError, match="the session has ended"):
        await sessions.read(cookie, "")


@pytest.mark.parametrize(
    ("fields", "character"),
    [(["token"], "a"), (["user", "password"], "a"), (["user", "password"], "\U0001f511")],
    ids=["token", "password", "4 bytes each"],
)
async def test_the_longest_sign_in_fits_as_utf_8(
    shared_access: Access, fields: list[str], character: str
) -> None:
    run, _ = shared_access
    schema = SignIn.model_json_schema()["properties"]
    for extra, wanted in ((0, 401), (1, 400)):
        credentials = {name: character * (schema[name]["maxLength"] + extra) for name in fields}
        body = json.dumps(credentials, ensure_ascii=False).encode()
        status, answer = await run.call("POST", "/session", data=body)
        assert status == wanted, answer
