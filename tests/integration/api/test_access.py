"""Mode tokens: authentication, rights, expiry and lockout."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from types import ModuleType
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from engine.errors import HeadgateError
from engine.store.access import tokens
from engine.store.access.password_lockout import AttemptLimits
from engine.types.contract import ResourceType
from hub.api.application import all_routes
from hub.api.openapi import plain_path
from hub.auth import passwords
from hub.auth.cross_site import CSRF_HEADER
from hub.auth.password_attempts import PasswordAttempts
from hub.auth.passwords import PasswordChecker, PasswordHasher
from hub.auth.request_credentials import RequestCredentials
from hub.auth.roles import Right
from hub.auth.sessions import COOKIE
from hub.auth.token_authenticator import Tokens
from tests.support.access import insert_credential, table_text
from tests.support.changes import thing
from tests.support.program import PATIENCE, Json, Program, eventually, program, resource, template
from tests.support.scripted_type import Thing, World

pytestmark = pytest.mark.usefixtures("cheap_hashes")
PASSWORD = "correct horse battery"
RIGHTS = {
    "reader": {Right.READ},
    "author": {Right.READ, Right.WRITE, Right.REPORT},
    "reporter": {Right.REPORT},
    "approver": {Right.READ, Right.ANSWER},
    "operator": set(Right) - {Right.NOTHING, Right.ADMINISTER},
    "admin": set(Right) - {Right.NOTHING},
}


#: Routes that require a role in every project.
WHOLE_SERVER = ("//metrics", "/v1/p/stacks/x/x/pin")


def basic(user: str, password: str) -> dict[str, str]:
    encoded = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {encoded}"}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@asynccontextmanager
async def run_with_tokens(
    url: str,
    overrides: Mapping[str, Any] | None = None,
    *,
    types: Sequence[ResourceType] = (),
) -> AsyncIterator[tuple[Program, dict[str, str]]]:
    """A server in mode tokens, and headers of an admin of every project."""
    async with program(url, {"auth.mode": "tokens", **(overrides or {})}, types=types) as run:
        yield run, bearer(await insert_credential(run.database, "*", "root", ["admin"]))


@pytest.fixture(scope="module")
def shared_settings() -> Mapping[str, Any]:
    return {"auth.mode": "tokens"}


@pytest_asyncio.fixture(loop_scope="session")
async def access(in_own_project: Program) -> tuple[Program, dict[str, str]]:
    admin = await insert_credential(in_own_project.database, "*", "root", ["admin"])
    return in_own_project, bearer(admin)


async def token(run: Program, admin: dict[str, str], name: str, *roles: str, **more: Json) -> str:
    body = {"name": name, "roles": list(roles), **more}
    status, response = await run.call("POST", "/tokens", body, headers=admin)
    assert status == 201, response
    return str(response["token"])


async def create_waiting(run: Program, admin: dict[str, str], rule: Json = None) -> tuple[str, str]:
    """The path of a stack that waits at a hook, and the ID of the hook."""
    sent = {
        "stack_name": "s",
        "template": {"heat_template_version": "2018-08-31", "resources": {"a": resource()}},
        "environment": {"hooks": [rule or {"at": "a", "on": ["pre-create"]}]},
    }
    status, created = await run.call("POST", "/stacks", sent, headers=admin)
    assert status == 201, created

    async def waiting() -> str | None:
        _, response = await run.call("GET", "/hooks?state=waiting", headers=admin)
        return response["hooks"][0]["id"] if response["hooks"] else None

    return f"/stacks/s/{created['stack']['id']}", await eventually(waiting)


def paths(project: str) -> list[tuple[str, str, Right]]:
    """Each route with unknown names: method, path, right."""
    found = []
    for route in all_routes():
        path = plain_path(route.path).replace("{project}", project)
        path = path.replace("{id}", str(uuid4()))
        found.append((route.method, "/" + re.sub(r"\{\w+\}", "x", path), route.right))
    return found


async def test_each_role_has_exactly_its_rights_on_every_route(
    access: tuple[Program, dict[str, str]],
) -> None:
    run, admin = access
    tokens = {role: bearer(await token(run, admin, f"a {role}", role)) for role in RIGHTS}
    cross_site = bearer(await insert_credential(run.database, "other", "eve", ["admin"]))
    tried = 0
    for method, path, needs in paths(run.project):
        if needs is Right.NOTHING or path.endswith("/events/stream") or path in WHOLE_SERVER:
            continue
        status, response = await run.call(method, path, headers={})
        assert (status, response["error"]["type"]) == (401, "Unauthorized"), (
            method,
            path,
            response,
        )
        status, response = await run.call(method, path, headers=cross_site)
        assert (status, response["error"]["type"]) == (403, "InvalidTenant"), (
            method,
            path,
            response,
        )
        for role, may in RIGHTS.items():
            status, response = await run.call(
                method, path, headers=tokens[role], allow_redirects=False
            )
            refused = status == 403 and f"no right to {needs}" in response["error"]["message"]
            assert refused == (needs not in may), (method, path, role, response)
            tried += 1
    assert tried > 300


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
async def test_a_reader_cannot_read_a_stored_value_with_a_template_of_their_own(
    access: tuple[Program, dict[str, str]], method: str
) -> None:
    """A preview of an update uses stored values, and its template decides what it shows."""
    run, admin = access
    template = {
        "heat_template_version": "2018-08-31",
        "parameters": {"p": {"type": "string", "hidden": True}},
    }
    sent = {"stack_name": "s", "template": template, "parameters": {"p": "Hidden-Pw!42"}}
    status, created = await run.call("POST", "/stacks", sent, headers=admin)
    assert status == 201, created
    shows = {
        "template": {
            "heat_template_version": "2018-08-31",
            "parameters": {"p": {"type": "string"}},
            "resources": {
                "z": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "p"}}}
            },
        },
        "parameters": {} if method == "PATCH" else {"p": "******"},
        **({} if method == "PATCH" else {"keep_hidden": True}),
    }
    path = f"/stacks/s/{created['stack']['id']}/preview"
    for role in ("reader", "approver"):
        ci_headers = bearer(await token(run, admin, f"a {role}", role))
        status, response = await run.call(method, path, shows, headers=ci_headers)
        assert status == 403 and "Hidden-Pw!42" not in str(response), response
    author = bearer(await token(run, admin, "an author", "author"))
    assert (await run.call(method, path, shows, headers=author))[0] == 200


async def test_unset_hook_requires_the_right_to_answer(
    access: tuple[Program, dict[str, str]],
) -> None:
    """The right that the signal route requires depends on the body."""
    run, admin = access
    stack, _ = await create_waiting(run, admin)
    path, unset = f"{stack}/resources/a/signal", {"unset_hook": "pre-create"}
    for role in ("reader", "author"):
        ci_headers = bearer(await token(run, admin, f"a {role}", role))
        status, response = await run.call("POST", path, unset, headers=ci_headers)
        assert (status, response["error"]["type"]) == (403, "Forbidden")
    approver = bearer(await token(run, admin, "an approver", "approver"))
    status, response = await run.call("POST", path, {"x": 1}, headers=approver)
    assert "no right to write" in response["error"]["message"]
    assert (await run.call("POST", path, unset, headers=approver))[0] == 200


async def test_requester_and_approver_come_from_their_tokens(
    access: tuple[Program, dict[str, str]],
) -> None:
    """X-Auth-User and X-Roles only count in mode none."""
    rule = {"at": "a", "on": ["pre-create"], "answer_by": ["role:dba"], "exclude": "requester"}
    run, admin = access
    ann = bearer(await token(run, admin, "ann", "author", "approver", "dba"))
    _, hook = await create_waiting(run, ann, rule)
    path, go_on = f"/hooks/{hook}/signal", {"decision": "continue"}
    status, response = await run.call("POST", path, go_on, headers=ann)
    assert status == 403, response
    claims = {"X-Roles": "dba", "X-Auth-User": "bob"}
    bob = bearer(await token(run, admin, "bob", "approver"))
    status, response = await run.call("POST", path, go_on, headers=bob | claims)
    assert status == 403, response
    dba = bearer(await token(run, admin, "dana", "approver", "dba"))
    status, response = await run.call("POST", path, go_on, headers=dba | claims)
    assert status == 200, response
    _, trail = await run.call("GET", f"/hooks/{hook}/decisions", headers=dba)
    assert [one["by"] for one in trail["decisions"]] == ["ann", "bob", "dana"], trail
    _, document = await run.call("GET", "/stacks/s", headers=dba)
    assert document["stack"]["stack_owner"] == "ann"


async def test_headers_for_tokens_and_passwords(access: tuple[Program, dict[str, str]]) -> None:
    run, admin = access
    ci_token = await token(run, admin, "ci", "author")
    await insert_credential(run.database, run.project, "ada", ["reader"], password=PASSWORD)
    await insert_credential(run.database, "*", "eva", ["reader"], password=PASSWORD)
    right = [
        {"X-Auth-Token": ci_token}, bearer(ci_token), basic("ci", ci_token),
        {"X-Auth-User": "ci", "X-Auth-Key": ci_token},
        basic("ada", PASSWORD), {"X-Auth-User": "ada", "X-Auth-Key": PASSWORD},
        basic("eva", PASSWORD),
    ]  # fmt: skip
    for headers in right:
        status, response = await run.call("GET", "/session", headers=headers)
        assert status == 200, (headers, response)
        assert response["name"] in ("ci", "ada", "eva")
    invalid = [
        {}, {"X-Auth-Token": ci_token[:-1] + ("A" if ci_token[-1] != "A" else "B")},
        {"X-Auth-Token": "notused"}, bearer(""), bearer("x" * 5000), basic("ada", "wrong"),
        basic("nobody", PASSWORD), basic("ada", "x" * 5000), {"Authorization": "Basic !!"},
        {"Authorization": "Basic " + base64.b64encode(b"\xff:x").decode()},
        {"X-Auth-User": "ada"}, {"X-Auth-Token": f"hgt_{uuid4().hex}_{'A' * 43}"},
    ]  # fmt: skip
    for headers in invalid:
        async with run.session.get(
            f"{run.url}/v1/{run.project}/session", headers=headers
        ) as answer:
            assert answer.status == 401, headers
            assert answer.headers["WWW-Authenticate"] == 'Basic realm="headgate", Bearer'
            response = await answer.json()
            assert "headgate token create" in response["error"]["remedy"]
    stored = await table_text(run.database, "token")
    assert ci_token not in stored and PASSWORD not in stored and ci_token[-43:] not in stored


async def test_a_revoked_token_is_refused_at_once_by_every_process(
    database_url: str,
) -> None:
    """Both processes cache it for an hour, and are notified."""
    long = {"auth.cache_ttl": "1h"}
    async with (
        run_with_tokens(database_url, long) as (one, admin),
        run_with_tokens(database_url, long) as two,
    ):
        status, response = await one.call(
            "POST", "/tokens", {"name": "ci", "roles": ["author"]}, headers=admin
        )
        ci_headers = bearer(response["token"])
        for run in (one, two[0]):
            assert (await run.call("GET", "/stacks", headers=ci_headers))[0] == 200
        status, _ = await one.call("DELETE", f"/tokens/{response['id']}", headers=admin)
        assert status == 204

        async def is_refused() -> bool:
            responses = [
                await run.call("GET", "/stacks", headers=ci_headers) for run in (one, two[0])
            ]
            return [status for status, _ in responses] == [401, 401]

        await eventually(is_refused)
        _, listed = await one.call("GET", "/tokens?all=true", headers=admin)
        [gone] = listed["tokens"]
        assert (gone["revoked_by"], gone["used_at"] is not None) == ("root", True)
        _, listed = await one.call("GET", "/tokens", headers=admin)
        assert listed["tokens"] == []


@pytest.mark.parametrize(
    ("module", "step"), [(tokens, "use"), (passwords, "_compare")], ids=["token", "password"]
)
async def test_what_is_revoked_while_it_is_checked_is_accepted_no_more(
    access: tuple[Program, dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    module: ModuleType,
    step: str,
) -> None:
    """It is not cached, and an equal request that comes meanwhile is checked by itself."""
    run, _ = access
    attempts = PasswordAttempts(run.database, AttemptLimits(5, timedelta(minutes=1)))
    checker = PasswordChecker(run.database, PasswordHasher().queue, attempts, remember=3600)
    authenticator = Tokens(run.database, checker, remember=3600)
    password = "" if module is tokens else PASSWORD
    issued = await insert_credential(run.database, run.project, "ann", ["admin"], password=password)
    sent = RequestCredentials(password=issued, user="ann", block="a test")
    check, later = getattr(module, step), list[asyncio.Task[Any]]()

    async def revoke_after(*args: Any, **more: Any) -> Any:
        found = await check(*args, **more)
        if not later:
            async with run.database.connection() as conn:
                await conn.execute(
                    "update token set revoked_at = now() where project = $1 and name = 'ann'",
                    run.project,
                )
            authenticator.forget()
            later.append(asyncio.create_task(authenticator.identify(sent, run.project)))
            await asyncio.sleep(0)
        return found

    monkeypatch.setattr(module, step, revoke_after)
    assert (await authenticator.identify(sent, run.project)).name == "ann"
    for refused in (later[0], authenticator.identify(sent, run.project)):
        with pytest.raises(HeadgateError, match="invalid, revoked or expired"):
            await refused


async def test_a_token_is_refused_after_its_expiry_even_if_it_is_cached(
    database_url: str,
) -> None:
    async with run_with_tokens(database_url, {"auth.cache_ttl": "1h"}) as (run, admin):
        ci_headers = bearer(await token(run, admin, "ci", "author", expires_in="2s"))
        assert (await run.call("GET", "/stacks", headers=ci_headers))[0] == 200

        async def is_refused() -> bool:
            return (await run.call("GET", "/stacks", headers=ci_headers))[0] == 401

        await eventually(is_refused)


@pytest.mark.parametrize(
    ("body", "place", "remedy"),
    [
        ({"roles": ["author"]}, "name", ""),
        ({"name": " ", "roles": ["author"]}, "name", "1 to 255"),
        ({"name": "a\nb", "roles": ["author"]}, "name", "printable"),
        ({"name": "a", "roles": []}, "roles", "Known: reader, author"),
        ({"name": "a", "roles": ["auther"]}, "roles", 'Did you mean "author"?'),
        ({"name": "a", "roles": ["author", "D B A"]}, "roles[1]", "lower-case letters"),
        ({"name": "a", "roles": ["author"], "expires_in": "soon"}, "expires_in", "90d"),
        ({"name": "a", "roles": ["author"], "password": "short"}, "password", "12 to 1024"),
        ({"name": "a", "roles": ["author"], "colour": "red"}, "colour", "Known: name"),
        ({"name": "a", "roles": "author"}, "roles", ""),
    ],
)
async def test_an_invalid_token_request_names_the_field(
    access: tuple[Program, dict[str, str]], body: Json, place: str, remedy: str
) -> None:
    run, admin = access
    status, response = await run.call("POST", "/tokens", body, headers=admin)
    assert status == 400
    [finding] = response["error"]["findings"]
    assert finding["place"] == place and remedy in finding["remedy"]
    assert "short" not in str(response)
    assert (await run.call("GET", "/tokens", headers=admin))[1]["tokens"] == []


async def test_tokens_for_all_projects_require_an_admin_of_all(
    access: tuple[Program, dict[str, str]],
) -> None:
    run, admin = access
    local = bearer(await token(run, admin, "local", "admin"))
    body = {"name": "x", "roles": ["admin"], "everywhere": True}
    for method, path, sent in (
        ("POST", "/tokens", body),
        ("GET", "/tokens?everywhere=true", None),
        ("DELETE", f"/tokens/{uuid4()}?everywhere=true", None),
    ):
        status, response = await run.call(method, path, sent, headers=local)
        assert (status, response["error"]["type"]) == (403, "Forbidden")
    assert (await run.call("POST", "/tokens", body, headers=admin))[0] == 201
    status, response = await run.call("GET", "/tokens", headers=local)
    assert [one["name"] for one in response["tokens"]] == ["local"]
    body = {"name": "ann", "roles": ["reader"], "password": PASSWORD}
    assert (await run.call("POST", "/tokens", body, headers=local))[0] == 201
    status, response = await run.call("POST", "/tokens", body, headers=local)
    assert (status, response["error"]["type"]) == (409, "PasswordExists")


async def test_a_browser_session_has_the_rights_of_its_token(
    access: tuple[Program, dict[str, str]],
) -> None:
    run, admin = access
    ci_token = await token(run, admin, "ci", "author")
    body = {"name": "x", "roles": ["reader"]}
    status, response = await run.call("POST", "/session", {"token": "hgt_wrong"})
    assert status == 401
    cross_site = {"Sec-Fetch-Site": "cross-site"}
    status, response = await run.call("POST", "/session", {"token": ci_token}, headers=cross_site)
    assert (status, response["error"]["type"]) == (403, "CrossSiteRequest")
    async with run.session.post(
        f"{run.url}/v1/{run.project}/session", json={"token": ci_token}
    ) as answer:
        assert answer.status == 201
        csrf = (await answer.json())["csrf"]
        cookie = answer.cookies[COOKIE]
        assert cookie["httponly"] and cookie["samesite"] == "Strict"
        assert ci_token not in cookie.value
    run.session.cookie_jar.clear()
    create_waiting = {"Cookie": f"{COOKIE}={cookie.value}"}
    own_page = {CSRF_HEADER: csrf, "Sec-Fetch-Site": "same-origin"}
    _, response = await run.call("GET", "/session", headers=create_waiting)
    assert (response["name"], response["csrf"]) == ("ci", csrf)
    sent = {"stack_name": "s", "template": template({})}
    for more in (
        {}, {CSRF_HEADER: "wrong"}, own_page | {"Sec-Fetch-Site": "cross-site"},
        own_page | {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "same-origin"},
    ):  # fmt: skip
        status, response = await run.call("POST", "/stacks", sent, headers=create_waiting | more)
        assert (status, response["error"]["type"]) == (403, "CrossSiteRequest"), more
    assert (await run.call("POST", "/stacks", sent, headers=create_waiting | own_page))[0] == 201
    for broken in ("", "00", cookie.value[:-2] + "00", "x" * 4000):
        headers = {"Cookie": f"{COOKIE}={broken}"}
        assert (await run.call("GET", "/session", headers=headers))[0] == 401
    # The session ends with its token.
    _, listed = await run.call("GET", "/tokens", headers=admin)
    await run.call("DELETE", f"/tokens/{listed['tokens'][0]['id']}", headers=admin)

    async def is_refused() -> bool:
        return (await run.call("GET", "/session", headers=create_waiting))[0] == 401

    await eventually(is_refused)
    assert body


async def test_wrong_tokens_lock_out_and_valid_ones_are_accepted(
    database_url: str,
) -> None:
    few = {"auth.failures": 3, "auth.lockout": "1h"}
    async with run_with_tokens(database_url, few) as (run, admin):
        late = bearer(await token(run, admin, "late", "reader"))
        _, hook = await create_waiting(run, admin)
        for _ in range(2):
            assert (await run.call("GET", "/stacks", headers=bearer("guess")))[0] == 401
        for _ in range(9):  # requests without credentials do not count
            assert (await run.call("GET", "/stacks"))[0] == 401
        # Wrong hook tokens count, too.
        path = f"{run.url}/hooks/{hook}/signal"
        async with run.session.post(path, json={}, headers=bearer("x")) as answer:
            assert answer.status == 401
        for headers in (bearer("guess"), {"X-Auth-Token": "guess"}):
            async with run.session.get(f"{run.url}/v1/p/stacks", headers=headers) as answer:
                assert answer.status == 429
                assert 3500 < int(answer.headers["Retry-After"]) <= 3600
                response = await answer.json()
                assert response["error"]["type"] == "TooManyRequests"
        async with run.session.post(path, json={}, headers=bearer("x")) as answer:
            assert answer.status == 429
        for headers in (admin, late):
            assert (await run.call("GET", "/stacks", headers=headers))[0] == 200


async def test_the_request_rate_is_limited(database_url: str) -> None:
    async with run_with_tokens(database_url, {"server.requests_per_token": 5}) as (run, admin):
        busy = bearer(await token(run, admin, "busy", "reader"))
        statuses = [(await run.call("GET", "/stacks", headers=busy))[0] for _ in range(30)]
        assert statuses[:5] == [200] * 5 and 429 in statuses
        assert (await run.call("GET", "/stacks", headers=admin))[0] == 200
    async with program(database_url, {"server.requests_per_address": 5}) as run:
        statuses = [(await run.call("GET", "//healthz"))[0] for _ in range(30)]
        assert statuses[:5] == [200] * 5 and 429 in statuses


async def test_a_stream_ends_when_its_token_is_revoked(database_url: str) -> None:
    async with run_with_tokens(database_url, {"auth.cache_ttl": "1s"}) as (run, admin):
        _, response = await run.call(
            "POST", "/tokens", {"name": "ci", "roles": ["reader"]}, headers=admin
        )
        url, headers = f"{run.url}/v1/p/events/stream", bearer(response["token"])
        async with run.session.get(url, headers=headers) as stream:
            assert await stream.content.readline() == b": connected\n"
            await run.call("DELETE", f"/tokens/{response['id']}", headers=admin)
            async with asyncio.timeout(PATIENCE):
                while not stream.content.at_eof():
                    await stream.content.readany()


async def test_a_client_that_disconnects_causes_no_error(
    access: tuple[Program, dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    run, admin = access
    stream = await run.session.get(f"{run.url}/v1/{run.project}/events/stream", headers=admin)
    assert await stream.content.readline() == b": connected\n"
    stream.close()
    for number in range(3):
        sent = {"stack_name": f"s{number}", "template": template({"a": resource()})}
        assert (await run.call("POST", "/stacks", sent, headers=admin))[0] == 201

    async def has_disconnected() -> bool:
        return b"headgate_streams 0" in (await text(run)).encode()

    await eventually(has_disconnected)
    assert "request.failed" not in capsys.readouterr().out


async def text(run: Program) -> str:
    reader = bearer(await insert_credential(run.database, "*", uuid4().hex, ["monitor"]))
    _, response = await run.call("GET", "//metrics", headers=reader)
    return str(response)


async def test_a_cloud_credential_can_accompany_the_token(
    database_url: str,
) -> None:
    world = World()
    async with run_with_tokens(database_url, types=[Thing(world)]) as (run, admin):
        ci_token = await token(run, admin, "ci", "author")
        sent = {"template": template({"a": thing(1)})}
        cases: list[tuple[dict[str, str], str]] = [
            ({"X-Auth-Token": ci_token}, ""),
            (bearer(ci_token) | {"X-Auth-Token": "of the cloud"}, "of the cloud"),
            ({"X-Auth-Token": ci_token, "X-Headgate-Credential": "named"}, "named"),
        ]
        for number, (headers, credential) in enumerate(cases):
            name = f"s{number}"
            status, _ = await run.call(
                "POST", "/stacks", {"stack_name": name, **sent}, headers=headers
            )
            assert status == 201

            async def done(name: str = name) -> bool:
                _, response = await run.call("GET", f"/stacks/{name}", headers=admin)
                return bool(response["stack"]["stack_status"] == "CREATE_COMPLETE")

            await eventually(done)
            assert world.calls[-1].credential == credential
