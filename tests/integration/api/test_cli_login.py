"""`headgate login --web` with a real OpenID provider: the browser is a client with cookies."""

import asyncio
import json
import re
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
import pytest_asyncio
from yarl import URL

from engine.store.access import tokens as store
from engine.store.database import Database
from hub.auth.cli_login import MAX_LOGINS
from hub.auth.cross_site import CSRF_HEADER
from hub.auth.login_secrets import LoginSecrets
from hub.auth.sessions import COOKIE
from hub.cli.connection.saved_contexts import SavedContext, SavedContexts, write_contexts
from tests.integration.api.test_access import bearer
from tests.integration.api.test_oidc import Browser
from tests.integration.api.test_openapi_traffic import LOGIN_ROUTES
from tests.support.access import insert_credential, table_text
from tests.support.login_command import started
from tests.support.oidc_provider import OidcProvider, log_in, running_oidc_provider
from tests.support.openapi_check import OpenApiDocument, RecordingClient
from tests.support.ports import free_port
from tests.support.postgres import TestServer
from tests.support.program import Json, Program, program
from tests.support.shared_program import SharedProgram, running_shared

LOGIN = LoginSecrets("v" * 43, "s" * 43, "BCDF-GHJK")
REDEEM = "/session/oidc/tokens"
PATIENCE = 60


@asynccontextmanager
async def signed_in_browser(run: Program, account: str) -> AsyncIterator[Browser]:
    async with Browser(run) as browser:
        await browser.sign_in(account)
        yield browser


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_program(
    postgres: TestServer, shared_provider: OidcProvider
) -> AsyncIterator[SharedProgram]:
    async with running_shared(postgres, shared_provider.settings_with_address()) as shared:
        yield shared


@pytest.fixture
def run(in_own_project: Program) -> Program:
    in_own_project.project = "p"  # the provider's groups have roles in it
    return in_own_project


async def confirm(browser: Browser, project: str = "p", **changed: str) -> tuple[int, Json]:
    """What the page does after the user has typed the code."""
    url = f"{browser.run.url}/v1/{project}/session"
    async with browser.session.get(url) as answer:
        session = await answer.json()
    body = {"user_code": LOGIN.user_code, "code_challenge": LOGIN.challenge} | changed
    headers = browser.headers(session)
    async with browser.session.post(f"{url}/oidc/codes", json=body, headers=headers) as answer:
        return answer.status, await answer.json()


def redemption(code: str) -> dict[str, str]:
    return {"code": code, "code_verifier": LOGIN.verifier, "user_code": LOGIN.user_code}


async def test_a_code_is_exchanged_once_by_the_command_that_began(run: Program) -> None:
    async with signed_in_browser(run, "id-of-ann") as browser:
        status, confirmed = await confirm(browser)
        assert status == 201, confirmed
        code = confirmed["code"]
        others: tuple[tuple[str, dict[str, str]], ...] = (
            (REDEEM, {"code_verifier": "w" * 43}),
            (REDEEM, {"user_code": "BCDF-GHJL"}),
            (REDEEM, {"code": "A" * 96}),
            (REDEEM, {"code": ""}),
            (f"//v1/q{REDEEM}", {}),
        )
        for path, changed in others:
            status, refusal = await run.call("POST", path, redemption(code) | changed)
            assert status == 401 and "belongs to another login" in str(refusal), (changed, refusal)
        recorder = RecordingClient(browser.session, run.url)
        status, created = await recorder.call("POST", REDEEM, redemption(code))
        assert status == 201 and created["name"] == "ann" and "author" in created["roles"]
        status, refusal = await recorder.call("POST", REDEEM, redemption(code))
        assert status == 401 and "already used" in str(refusal)
        async with browser.session.get(f"{run.url}/v1/p/session") as answer:
            session_of_browser = await answer.json()
        assert created["expires_at"] <= session_of_browser["expires_at"]
        # The login is the same user as the session, and outlasts it.
        mine = bearer(created["token"])
        _, session = await run.call("GET", "/session", headers=mine)
        assert session["name"] == "ann" and "ann@oidc" in session["aliases"]
        assert (await run.call("GET", "//v1/q/stacks", headers=mine))[0] == 403
        headers = browser.headers(session_of_browser)
        body = {"user_code": LOGIN.user_code, "code_challenge": LOGIN.challenge}
        await recorder.call("POST", "/session/oidc/codes", body, headers=headers)
        document = OpenApiDocument((await run.call("GET", "//openapi.json"))[1])
        assert [wrong for one in recorder.responses for wrong in document.differences(one)] == []
        assert document.exercised == LOGIN_ROUTES
        rows = await table_text(run.database, "token")
        assert created["token"] not in rows and created["token"][-43:] not in rows


async def test_only_a_session_of_the_provider_confirms(run: Program) -> None:
    root = await insert_credential(run.database, "p", "root", ["admin"])
    path, body = (
        "/session/oidc/codes",
        {"user_code": LOGIN.user_code, "code_challenge": LOGIN.challenge},
    )
    assert (await run.call("POST", path, body))[0] == 401
    status, refusal = await run.call("POST", path, body, headers=bearer(root))
    assert status == 403 and "root is not signed in with OpenID Connect" in str(refusal)
    async with Browser(run) as browser:  # signed in with a token
        await (await browser.session.post(f"{run.url}/v1/p/session", json={"token": root})).read()
        status, refusal = await confirm(browser)
        assert status == 403 and "not signed in with OpenID Connect" in str(refusal)
    async with signed_in_browser(run, "id-of-ann") as browser:
        cookies = browser.session.cookie_jar.filter_cookies(URL(run.url))
        cookie = {"Cookie": f"{COOKIE}={cookies[COOKIE].value}"}
        for headers in (cookie, {**cookie, CSRF_HEADER: "x"}):  # a page of another site
            status, refusal = await run.call("POST", path, body, headers=headers)
            assert status == 403 and refusal["error"]["type"] == "CrossSiteRequest"
        status, refusal = await confirm(browser, user_code="BCDF-GHJ")
        assert status == 400 and refusal["error"]["findings"][0]["place"] == "user_code"
        status, refusal = await confirm(browser, code_challenge=LOGIN.verifier + "=")
        assert status == 400 and refusal["error"]["findings"][0]["place"] == "code_challenge"
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    status, refusal = await run.call("POST", REDEEM, redemption("x"), headers=elsewhere)
    assert status == 403 and refusal["error"]["type"] == "CrossSiteRequest"


async def test_a_sign_out_in_the_browser_ends_a_login_that_is_not_complete(run: Program) -> None:
    async with signed_in_browser(run, "id-of-bob") as browser:
        codes = [(await confirm(browser))[1]["code"] for _ in range(2)]
        assert (await run.call("POST", REDEEM, redemption(codes[0])))[0] == 201
        async with browser.session.get(f"{run.url}/v1/p/session") as answer:
            headers = browser.headers(await answer.json())
        assert (await run.call("DELETE", "/session", headers=headers))[0] == 204
        status, refusal = await run.call("POST", REDEEM, redemption(codes[1]))
        assert status == 401 and "sign-in in the browser has ended" in str(refusal)


async def test_a_sign_in_has_a_limited_number_of_logins(run: Program) -> None:
    """Also of concurrent ones. An ended login makes room for another; another sign-in has its own."""
    async with signed_in_browser(run, "id-of-bob") as browser:
        codes = [(await confirm(browser))[1]["code"] for _ in range(MAX_LOGINS + 2)]
        answers = await asyncio.gather(
            *(run.call("POST", REDEEM, redemption(one)) for one in codes)
        )
        statuses = [status for status, _ in answers]
        assert statuses.count(201) == MAX_LOGINS
        refused = [body for status, body in answers if status == 400]
        assert len(refused) == 2
        assert refused[0]["error"]["type"] == "LimitReached"
        assert f"has {MAX_LOGINS} logins of the command line" in refused[0]["error"]["message"]
        assert "headgate logout" in refused[0]["error"]["remedy"]
        status, refusal = await confirm(browser)
        assert (status, refusal["error"]["type"]) == (400, "LimitReached")
        async with run.database.connection() as conn:
            login = next(body for status, body in answers if status == 201)
            await store.revoke(conn, "p", UUID(login["id"]), "bob")
        status, answer = await confirm(browser)
        assert status == 201
        assert (await run.call("POST", REDEEM, redemption(answer["code"])))[0] == 201
    async with signed_in_browser(run, "id-of-bob") as browser:
        assert (await confirm(browser))[0] == 201


async def test_a_login_through_an_earlier_sign_in_gives_its_user_no_rights_back(
    database: Database,
) -> None:
    """Subscriptions of the user have the rights of the newest sign-in."""

    async def sign_in(*roles: str) -> UUID:
        async with database.connection() as conn:
            new = store.NewToken(uuid4(), "p", "ann", roles, "token", "hash", "ann",
                                 timedelta(hours=1), subject="https://id ann")  # fmt: skip
            return (await store.create(conn, new)).id

    async def log_in_through(one: UUID) -> store.TokenRecord | None:
        async with database.connection() as conn:
            return await store.copy_sign_in(
                conn, one, uuid4(), "hash", "headgate login", limit=MAX_LOGINS
            )

    earlier, demoted = await sign_in("admin"), await sign_in("reader")
    login = await log_in_through(earlier)
    assert login is not None and login.roles == ["admin"]
    async with database.connection() as conn:
        assert await store.roles_of_subject(conn, "p", "https://id ann") == ["reader"]
        await store.end_sign_in(conn, demoted)
        assert await store.roles_of_subject(conn, "p", "https://id ann") == ["admin"]


async def test_logins_end_with_the_provider_of_the_settings(database_url: str) -> None:
    async with (
        running_oidc_provider(f"http://127.0.0.1:{free_port()}") as provider,
        program(database_url, provider.settings_with_address()) as run,
    ):
        async with signed_in_browser(run, "id-of-ann") as browser:
            code = (await confirm(browser))[1]["code"]
        _, created = await run.call("POST", REDEEM, redemption(code))
        mine = bearer(created["token"])
        assert (await run.call("GET", "/stacks", headers=mine))[0] == 200
        async with program(database_url, {"auth.mode": "tokens"}) as other:
            assert (await other.call("GET", "/stacks", headers=mine))[0] == 401
            status, refusal = await other.call("POST", REDEEM, redemption(code))
            assert status == 404 and "no OpenID provider" in str(refusal)


def page_query(address: URL) -> dict[str, str]:
    """The parameters of the page that the browser opens after the sign-in."""
    page = address.query["page"]
    assert page.startswith("#/p/cli-login?"), page
    return dict(URL(f"/?{page.partition('?')[2]}").query)


async def test_a_login_with_a_redirect_to_loopback_and_a_logout(
    run: Program, tmp_path: Path
) -> None:
    file = tmp_path / "contexts.json"
    words = ("login", "--web", "--url", run.url, "--project", "p")
    async with started(file, *words) as login, Browser(run) as browser:
        address, user_code = await login.until_code()
        page = page_query(address)
        assert user_code not in str(address)
        returned = await log_in(browser.session, str(address), "id-of-ann")
        answer = await browser.return_to(returned)
        assert answer.headers["Location"] == f"{run.url}/{address.query['page']}"
        status, confirmed = await confirm(
            browser, user_code=user_code.lower(), code_challenge=page["challenge"]
        )
        assert status == 201
        callback = URL(f"http://127.0.0.1:{page['port']}/callback")
        # What a page of another site can send to the port changes nothing.
        for other in (
            callback.with_query(code="x"),
            callback.with_query(code="x", state="x"),
            callback.with_query(error="access_denied", state="x"),
        ):
            assert (await browser.return_to(str(other))).status == 400
        assert (await browser.return_to(str(callback.with_path("/")))).status == 404
        final = callback.with_query(code=confirmed["code"], state=page["state"])
        async with browser.session.get(final) as done:
            assert done.status == 200 and "Return to the terminal" in await done.text()
            assert done.headers["Cache-Control"] == "no-store"
        status, printed = await login.end()
    assert status == 0, printed
    assert f"Signed in to {run.url}, project p, as ann." in printed
    assert re.search(r"The login ends at \S+ \(.+ left\)", printed), printed
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    saved = json.loads(file.read_text())["contexts"]["default"]
    assert saved["token"] not in printed and confirmed["code"] not in printed
    mine = bearer(saved["token"])
    assert (await run.call("GET", "/stacks", headers=mine))[0] == 200

    async with started(file, "logout") as logout:
        status, printed = await logout.end()
    assert status == 0 and f"Signed out of {run.url}, project p." in printed, printed
    assert (await run.call("GET", "/stacks", headers=mine))[0] == 401
    without = json.loads(file.read_text())["contexts"]["default"]
    assert (without["token"], without["url"]) == ("", run.url)


def save_context(file: Path, name: str, url: str, token: str, expires_at: str) -> None:
    one = SavedContext(url, "p", token=token, expires_at=expires_at)
    write_contexts(file, SavedContexts(name, {name: one}))


async def test_a_login_with_a_pasted_code(run: Program, tmp_path: Path) -> None:
    file = tmp_path / "contexts.json"
    words = ("login", "--no-browser", "--context", "far", "--url", run.url, "--project", "p")
    async with signed_in_browser(run, "id-of-bob") as browser:
        code = (await confirm(browser))[1]["code"]
        _, before = await run.call("POST", REDEEM, redemption(code))
        save_context(file, "far", run.url, before["token"], before["expires_at"])
        async with started(file, *words) as login:
            address, user_code = await login.until_code()
            assert set(page_query(address)) == {"challenge"}
            challenge = page_query(address)["challenge"]
            _, wrong = await confirm(browser, user_code="BCDF-GHJK", code_challenge=challenge)
            _, right = await confirm(browser, user_code=user_code, code_challenge=challenge)
            status, printed = await login.end(f" {right['code']} \n")
            assert status == 0 and ", as bob." in printed, printed
        saved = file.read_text()
        # The login that the context had before is ended.
        assert (await run.call("GET", "/stacks", headers=bearer(before["token"])))[0] == 401
        # A code for which another user code was typed, as by a person who was sent the address.
        for typed, reason in (
            (wrong["code"], "another code was typed in the browser"),
            ("", "no code was entered"),
        ):
            async with started(file, *words) as login:
                await login.until_code()
                status, printed = await login.end(f"{typed}\n")
                assert status in (1, 2) and reason in printed, printed
    assert file.read_text() == saved
    mine = bearer(json.loads(saved)["contexts"]["far"]["token"])
    assert (await run.call("GET", "/stacks", headers=mine))[0] == 200


async def test_a_login_that_is_cancelled_or_impossible_saves_nothing(
    run: Program, postgres: TestServer, tmp_path: Path
) -> None:
    file = tmp_path / "contexts.json"
    async with started(file, "login", "--web", "--url", run.url, "--project", "p") as login:
        page = page_query((await login.until_code())[0])
        query = {"error": "access_denied", "state": page["state"]}
        async with Browser(run) as browser:
            url = URL(f"http://127.0.0.1:{page['port']}/callback").with_query(query)
            assert (await browser.return_to(str(url))).status == 200
        status, printed = await login.end()
        assert status == 1 and "cancelled in the browser; nothing was saved" in printed
    async with (
        postgres.new_database() as database_url,
        program(database_url, {"auth.mode": "tokens"}) as other,
        started(file, "login", "--web", "--url", other.url) as login,
    ):
        status, printed = await login.end()
        assert status == 1 and "this server has no OpenID provider" in printed, printed
    async with started(file, "logout") as logout:
        status, printed = await logout.end()
        assert status == 1 and "there is no current context" in printed
    assert not file.exists()


async def test_a_logout_keeps_other_tokens_valid(run: Program, tmp_path: Path) -> None:
    file = tmp_path / "contexts.json"
    token = await insert_credential(run.database, "p", "ci", ["author"])
    save_context(file, "default", f"http://127.0.0.1:{free_port()}", "x", "2099-01-01T00:00:00Z")
    async with started(file, "login", "--url", run.url, "--project", "p") as login:
        status, printed = await login.end(f"{token}\n")
    assert status == 0 and "stays valid until 2099-01-01T00:00:00Z" in printed, printed
    async with started(file, "logout") as logout:
        status, printed = await logout.end()
        assert status == 0 and "It stays valid until it is revoked." in printed, printed
    assert token not in file.read_text()
    assert (await run.call("DELETE", "/session", headers=bearer(token)))[0] == 204
    assert (await run.call("GET", "/stacks", headers=bearer(token)))[0] == 200
