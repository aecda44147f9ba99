"""Sign-in with OpenID Connect, with a real provider."""

import asyncio
import signal
from collections.abc import AsyncIterator
from http.cookies import SimpleCookie
from typing import cast
from urllib.parse import quote

import aiohttp
import pytest
import pytest_asyncio
from yarl import URL

from engine.principal import Principal
from hub.api.headgate.oidc import PENDING_COOKIE
from hub.auth import oidc_client
from hub.auth.cross_site import CSRF_HEADER
from hub.auth.passwords import PasswordChecker
from hub.auth.sessions import COOKIE
from hub.auth.token_authenticator import Tokens
from tests.integration.api.test_access import PASSWORD, basic, bearer, create_waiting
from tests.integration.api.test_openapi_traffic import SIGN_IN_ROUTES
from tests.support.access import insert_credential, table_text
from tests.support.oidc_provider import OidcProvider, log_in, running_oidc_provider
from tests.support.openapi_check import OpenApiDocument, RecordingClient
from tests.support.ports import free_port
from tests.support.postgres import TestServer
from tests.support.program import Json, Program, program
from tests.support.scripted_type import Thing, World
from tests.support.shared_program import SharedProgram, running_shared

pytestmark = pytest.mark.usefixtures("cheap_hashes")
Headers = dict[str, str]
#: Seconds of a request to the provider.
TIMEOUT = 5
#: For roles only.
PASSWORDS = cast(PasswordChecker, None)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def shared_program(
    postgres: TestServer, shared_provider: OidcProvider
) -> AsyncIterator[SharedProgram]:
    settings = shared_provider.settings_with_address(timeout=f"{TIMEOUT}s")
    async with running_shared(postgres, settings, types=[Thing(World())]) as shared:
        yield shared


@pytest_asyncio.fixture(loop_scope="session")
async def browser(in_own_project: Program) -> AsyncIterator["Browser"]:
    in_own_project.project = "p"  # the provider's groups have roles in it
    async with Browser(in_own_project) as opened:
        yield opened


@pytest.fixture
async def provider() -> AsyncIterator[OidcProvider]:
    async with running_oidc_provider(f"http://127.0.0.1:{free_port()}") as started:
        yield started


@pytest.fixture
async def browser_alone(database_url: str, provider: OidcProvider) -> AsyncIterator["Browser"]:
    """With a program and a provider of its own."""
    settings = provider.settings_with_address(timeout=f"{TIMEOUT}s")
    async with (
        program(database_url, settings) as run,
        Browser(run) as opened,
    ):
        yield opened


class Browser:
    """A browser with its cookies."""

    def __init__(self, run: Program) -> None:
        self.run = run
        self.session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))

    async def __aenter__(self) -> "Browser":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    def start(self, project: str = "p", page: str = "#/p/inbox") -> str:
        query = {"page": page}
        return str(URL(f"{self.run.url}/v1/{project}/session/oidc").with_query(query))

    async def sign_in(self, account: str, project: str = "p") -> Json:
        """Sign in; return the session."""
        answer = await self.return_to(await log_in(self.session, self.start(project), account))
        assert answer.status == 303, await answer.text()
        async with self.session.get(f"{self.run.url}/v1/{project}/session") as response:
            return await response.json()

    async def return_to(self, url: str) -> aiohttp.ClientResponse:
        async with self.session.get(url, allow_redirects=False) as answer:
            await answer.read()
            return answer

    def headers(self, session: Json) -> Headers:
        cookies: SimpleCookie = self.session.cookie_jar.filter_cookies(URL(self.run.url))  # type: ignore[assignment]
        return {"Cookie": f"{COOKIE}={cookies[COOKIE].value}", CSRF_HEADER: session["csrf"]}


async def test_a_sign_in_begins_a_session_with_the_roles_of_the_groups(browser: Browser) -> None:
    answer = await browser.return_to(
        await log_in(browser.session, browser.start(page="#/p/stack/web/1"), "id-of-ann")
    )
    assert (answer.status, answer.headers["Location"]) == (
        303,
        f"{browser.run.url}/#/p/stack/web/1",
    )
    assert answer.cookies[COOKIE]["httponly"] and answer.cookies[COOKIE]["samesite"] == "Strict"
    assert answer.cookies[PENDING_COOKIE].value == ""
    async with browser.session.get(f"{browser.run.url}/v1/p/session") as response:
        session = await response.json()
    assert (session["name"], session["everywhere"]) == ("ann", False)
    assert "author" in session["roles"] and "approver" not in session["roles"]
    assert await _status_in(browser, "q", session) == 403


async def _status_in(browser: Browser, project: str, session: Json) -> int:
    url = f"{browser.run.url}/v1/{project}/stacks"
    async with browser.session.get(url, headers=browser.headers(session)) as answer:
        return answer.status


async def test_the_responses_match_the_openapi_document(
    browser: Browser,
) -> None:
    recorder = RecordingClient(browser.session, browser.run.url)
    url = await log_in(browser.session, browser.start(), "id-of-ann")
    for address in (browser.start(), url, url):  # the second return is refused
        async with browser.session.get(address, allow_redirects=False) as answer:
            recorder.record("GET", answer, await answer.text())
    assert [one.status for one in recorder.responses] == [302, 401, 401]
    url = await log_in(browser.session, browser.start(), "id-of-ann")
    async with browser.session.get(url, allow_redirects=False) as answer:
        recorder.record("GET", answer, await answer.text())
    assert recorder.responses[-1].status == 303
    _, openapi = await browser.run.call("GET", "//openapi.json")
    document = OpenApiDocument(openapi)
    assert [wrong for one in recorder.responses for wrong in document.differences(one)] == []
    assert document.exercised == SIGN_IN_ROUTES


async def test_a_group_of_every_project_signs_in_to_every_project(browser: Browser) -> None:
    session = await browser.sign_in("id-of-root", "q")
    assert session["everywhere"] and "admin" in session["roles"]
    assert await _status_in(browser, "p", session) == 200


async def test_a_user_without_a_role_gets_no_session_and_the_reason(
    browser: Browser,
) -> None:
    answer = await browser.return_to(await log_in(browser.session, browser.start(), "id-of-eve"))
    text = await answer.text()
    assert answer.status == 403 and COOKIE not in answer.cookies
    assert answer.content_type == "text/html"
    assert "eve has no role in the project p" in text and "grants" in text


async def answer_hook(browser: Browser, hook: str, headers: Headers) -> tuple[int, Json]:
    return await browser.run.call(
        "POST", f"/hooks/{hook}/signal", {"decision": "continue"}, headers=headers
    )


async def test_the_requester_stays_the_same_person_after_another_sign_in(browser: Browser) -> None:
    """Two sign-ins of one user are one principal, whom a rule can exclude."""
    rule = {"at": "a", "on": ["pre-create"], "exclude": "requester"}
    one = browser.headers(await browser.sign_in("id-of-root"))
    _, hook = await create_waiting(browser.run, one, rule)
    async with Browser(browser.run) as again:
        two = again.headers(await again.sign_in("id-of-root"))
    for headers in (one, two):
        status, response = await answer_hook(browser, hook, headers)
        assert status == 403 and "root requested this change" in str(response), response


async def test_rules_name_users_with_a_suffix(browser: Browser) -> None:
    """Accounts of this server with such a name are other users."""
    root = bearer(await insert_credential(browser.run.database, "*", "root", ["admin"]))
    for name in ("bob", "bob@oidc"):
        await insert_credential(browser.run.database, "p", name, ["approver"], password=PASSWORD)
    rule = {"at": "a", "on": ["pre-create"], "answer_by": ["user:bob@oidc"]}
    _, hook = await create_waiting(browser.run, root, rule)
    for other in (root, basic("bob", PASSWORD), basic("bob@oidc", PASSWORD)):
        assert (await answer_hook(browser, hook, other))[0] == 403
    bob = browser.headers(await browser.sign_in("id-of-bob"))
    assert (await answer_hook(browser, hook, bob))[0] == 200


async def test_an_admin_ends_a_session_by_its_token(browser: Browser) -> None:
    root = bearer(await insert_credential(browser.run.database, "*", "root", ["admin"]))
    session = await browser.sign_in("id-of-ann")
    _, listed = await browser.run.call("GET", "/tokens", headers=root)
    (token,) = [one for one in listed["tokens"] if one["name"] == "ann"]
    assert token["created_by"] == "OpenID Connect" and token["expires_at"]
    assert await _status_in(browser, "p", session) == 200
    status, _ = await browser.run.call("DELETE", f"/tokens/{token['id']}", headers=root)
    assert status in (200, 204)
    assert await _status_in(browser, "p", session) == 401


async def test_a_response_is_valid_once_and_in_the_browser_that_began(browser: Browser) -> None:
    url = await log_in(browser.session, browser.start(), "id-of-ann")
    pending = {PENDING_COOKIE: cookie_of(browser, PENDING_COOKIE)}
    async with Browser(browser.run) as other:
        answer = await other.return_to(url)
        assert answer.status == 401 and COOKIE not in answer.cookies
        assert "no sign-in under way" in await answer.text()
    assert (await browser.return_to(url)).status == 303
    async with Browser(browser.run) as thief:  # with a copy of everything that was sent
        thief.session.cookie_jar.update_cookies(pending, URL(browser.run.url))
        answer = await thief.return_to(url)
        assert answer.status == 401 and "rejected the authorization code" in await answer.text()


def cookie_of(browser: Browser, name: str) -> str:
    return browser.session.cookie_jar.filter_cookies(URL(browser.run.url))[name].value


async def test_a_code_of_another_sign_in_is_refused(browser: Browser) -> None:
    """A code that an attacker obtained for the own account, in the browser of a victim."""
    async with Browser(browser.run) as attacker:
        code = URL(await log_in(attacker.session, attacker.start(), "id-of-bob")).query["code"]
    mine = URL(await log_in(browser.session, browser.start(), "id-of-ann"))
    answer = await browser.return_to(str(mine.update_query(code=code)))
    assert answer.status == 401 and COOKIE not in answer.cookies
    assert "rejected the authorization code" in await answer.text()


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"state": "x"}, "another sign-in"),
        ({"iss": "https://evil.example.org"}, "another provider"),
        ({"code": ""}, "has no code"),
        ({"error": "<script>alert(1)</script>"}, "&lt;script&gt;alert(1)&lt;/script&gt;"),
    ],
)
async def test_a_response_with_another_parameter_is_refused(
    browser: Browser, changed: dict[str, str], reason: str
) -> None:
    url = URL(await log_in(browser.session, browser.start(), "id-of-ann"))
    answer = await browser.return_to(str(url.update_query(changed)))
    text = await answer.text()
    assert answer.status == 401 and COOKIE not in answer.cookies
    assert reason in text and "<script>alert" not in text


async def test_names_and_groups_of_the_userinfo_endpoint(
    browser_alone: Browser, provider: OidcProvider
) -> None:
    await provider.stop()
    await provider.start(claims_by_userinfo=True)
    session = await browser_alone.sign_in("id-of-ann")
    assert session["name"] == "ann" and "author" in session["roles"]


async def test_the_provider_replaces_its_keys(
    browser_alone: Browser, provider: OidcProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert (await browser_alone.sign_in("id-of-ann"))["name"] == "ann"
    await provider.stop()
    await provider.start(kid="second")
    browser_alone.session.cookie_jar.clear()
    url = await log_in(browser_alone.session, browser_alone.start(), "id-of-ann")
    answer = await browser_alone.return_to(
        url
    )  # the keys were read less than MIN_REFRESH seconds ago
    assert answer.status == 401 and "does not publish" in await answer.text()
    monkeypatch.setattr(oidc_client, "MIN_REFRESH", 0.0)
    assert (await browser_alone.sign_in("id-of-ann"))["name"] == "ann"


async def test_a_provider_that_is_down_ends_no_session(
    browser_alone: Browser, provider: OidcProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    await provider.stop()
    answer = await browser_alone.return_to(browser_alone.start())
    assert answer.status == 503 and answer.content_type == "text/html"
    assert "connection refused" in await answer.text()
    monkeypatch.setattr(oidc_client, "RETRY_AFTER", 0.0)
    await provider.start()
    session = await browser_alone.sign_in("id-of-ann")
    async with Browser(browser_alone.run) as other:
        url = await log_in(other.session, other.start(), "id-of-ann")
        await provider.stop()
        answer = await other.return_to(url)
    assert answer.status == 503 and "connection refused" in await answer.text()
    assert await _status_in(browser_alone, "p", session) == 200


async def test_wrong_codes_lock_out_no_valid_response(
    database_url: str, provider: OidcProvider
) -> None:
    """Only codes that the provider rejects count: a foreign page can cause all other responses."""
    settings = provider.settings_with_address() | {"auth.failures": 3}
    async with program(database_url, settings) as run, Browser(run) as browser:
        for _ in range(5):
            answer = await browser.return_to(f"{run.url}/oidc/callback?code=x&state=y")
            assert answer.status == 401
        answers = []
        for _ in range(4):
            url = URL(await log_in(browser.session, browser.start(), "id-of-ann"))
            answers.append(await browser.return_to(str(url.update_query(code="wrong"))))
        assert [answer.status for answer in answers] == [401, 401, 401, 429]
        assert answers[-1].headers["Retry-After"] in await answers[-1].text()
        assert (await browser.sign_in("id-of-ann"))["name"] == "ann"


async def test_requests_at_the_same_time_share_one_read_of_a_provider_that_hangs(
    browser_alone: Browser, provider: OidcProvider
) -> None:
    provider.send_signal(signal.SIGSTOP)
    try:
        loop = asyncio.get_running_loop()
        began = loop.time()
        answers = await asyncio.gather(
            *(browser_alone.return_to(browser_alone.start()) for _ in range(8))
        )
        waited = loop.time() - began
    finally:
        provider.send_signal(signal.SIGCONT)
    assert {answer.status for answer in answers} == {503}
    assert waited < 3 * TIMEOUT  # not eight times
    assert "timeout" in await answers[0].text()


async def test_another_sign_in_ends_the_session_before_it(browser: Browser) -> None:
    session = await browser.sign_in("id-of-ann")
    before = browser.headers(session)
    assert (await browser.sign_in("id-of-ann"))["name"] == "ann"
    assert (await browser.run.call("GET", "/stacks", headers=before))[0] == 401


async def test_a_sign_out_ends_the_sign_in(browser: Browser) -> None:
    session = await browser.sign_in("id-of-bob")
    headers = browser.headers(session)
    [owner] = await subjects(browser)
    roles = Tokens(browser.run.database, PASSWORDS, remember=0, issuer=owner.split(" ")[0])
    principal = Principal(f"oidc:p/{quote(owner, safe='')}", "bob")
    assert "approver" in await roles.roles_of(principal)
    # Nor do subscriptions answer for users of another provider.
    elsewhere = Tokens(browser.run.database, PASSWORDS, remember=0, issuer="https://other")
    assert await elsewhere.roles_of(principal) == ()
    assert (await browser.run.call("DELETE", "/session", headers=headers))[0] == 204
    assert await roles.roles_of(principal) == ()


async def subjects(browser: Browser) -> list[str]:
    async with browser.run.database.connection() as conn:
        rows = await conn.fetch("select subject from token where subject is not null")
    return [row["subject"] for row in rows]


async def test_sign_ins_end_with_the_provider_of_the_settings(
    database_url: str, provider: OidcProvider
) -> None:
    settings = provider.settings_with_address()
    async with program(database_url, settings) as run, Browser(run) as browser:
        headers = browser.headers(await browser.sign_in("id-of-ann"))
    without = {key: settings[key] for key in ("server.listen", "auth.mode")}
    async with program(database_url, without) as run:
        assert (await run.call("GET", "/stacks", headers=headers))[0] == 401
        async with Browser(run) as other:
            answer = await other.return_to(f"{run.url}/v1/p/session/oidc")
        assert answer.status == 404 and "no OpenID provider" in await answer.text()


async def test_the_database_holds_no_code_and_no_secret(
    browser: Browser, shared_provider: OidcProvider
) -> None:
    url = await log_in(browser.session, browser.start(), "id-of-ann")
    code = URL(url).query["code"]
    assert (await browser.return_to(url)).status == 303
    cookie = cookie_of(browser, COOKIE)
    for table in ("token", "session"):
        rows = await table_text(browser.run.database, table)
        for secret in (code, cookie, shared_provider.client_secret):
            assert secret not in rows
    assert f"{shared_provider.issuer} id-of-ann" in await table_text(browser.run.database, "token")
