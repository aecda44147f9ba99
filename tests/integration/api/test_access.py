"""Mode tokens: who gets in, what they may do, and how they are kept out."""

import asyncio
import base64
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from engine.types.contract import ResourceType
from hub.api.application import all_routes
from hub.api.openapi import plain_path
from hub.auth.roles import Right
from hub.auth.sessions import COOKIE, CSRF_HEADER
from tests.support.access import everything_in, given_directly
from tests.support.changes import thing
from tests.support.program import PATIENCE, Json, Program, eventually, program, resource, template
from tests.support.things import Thing, World

PASSWORD = "correct horse battery"
MAY = {
    "reader": {Right.READ},
    "author": {Right.READ, Right.WRITE},
    "approver": {Right.READ, Right.ANSWER},
    "operator": {Right.READ, Right.WRITE, Right.ANSWER, Right.MONITOR, Right.OPERATE},
    "admin": set(Right) - {Right.NOTHING},
}


#: Routes that take a role in every project.
OF_ALL = ("//metrics", "/v1/p/stacks/x/x/pin")


def basic(user: str, password: str) -> dict[str, str]:
    said = base64.b64encode(f"{user}:{password}".encode()).decode()
    return {"Authorization": f"Basic {said}"}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@asynccontextmanager
async def guarded(
    url: str,
    overrides: Mapping[str, Any] | None = None,
    *,
    types: Sequence[ResourceType] = (),
) -> AsyncIterator[tuple[Program, dict[str, str]]]:
    """A server in mode tokens, and headers of an admin of every project."""
    async with program(url, {"auth.mode": "tokens", **(overrides or {})}, types=types) as run:
        yield run, bearer(await given_directly(run.database, "*", "root", ["admin"]))


@pytest.fixture
async def access(database_url: str) -> AsyncIterator[tuple[Program, dict[str, str]]]:
    async with guarded(database_url) as made:
        yield made


async def token(run: Program, admin: dict[str, str], name: str, *roles: str, **more: Json) -> str:
    body = {"name": name, "roles": list(roles), **more}
    status, made = await run.call("POST", "/tokens", body, headers=admin)
    assert status == 201, made
    return str(made["token"])


async def held(run: Program, admin: dict[str, str], rule: Json = None) -> tuple[str, str]:
    """The path of a stack that waits, and the id of its hook."""
    sent = {
        "stack_name": "s",
        "template": {"heat_template_version": "2018-08-31", "resources": {"a": resource()}},
        "environment": {"hooks": [rule or {"at": "a", "on": ["pre-create"]}]},
    }
    status, made = await run.call("POST", "/stacks", sent, headers=admin)
    assert status == 201, made

    async def waiting() -> str | None:
        _, said = await run.call("GET", "/hooks?state=waiting", headers=admin)
        return said["hooks"][0]["id"] if said["hooks"] else None

    return f"/stacks/s/{made['stack']['id']}", await eventually(waiting)


def paths() -> list[tuple[str, str, Right]]:
    """Each route with names that name nothing: method, path behind the server, what it needs."""
    found = []
    for route in all_routes():
        path = plain_path(route.path).replace("{project}", "p").replace("{id}", str(uuid4()))
        found.append((route.method, "/" + re.sub(r"\{\w+\}", "x", path), route.right))
    return found


async def test_each_role_may_do_what_is_its_own_and_nothing_else_on_every_route(
    database_url: str,
) -> None:
    async with guarded(database_url) as (run, admin):
        tokens = {role: bearer(await token(run, admin, f"a {role}", role)) for role in MAY}
        elsewhere = bearer(await given_directly(run.database, "other", "eve", ["admin"]))
        tried = 0
        for method, path, needs in paths():
            if needs is Right.NOTHING or path.endswith("/events/stream") or path in OF_ALL:
                continue
            status, said = await run.call(method, path, headers={})
            assert (status, said["error"]["type"]) == (401, "Unauthorized"), (method, path, said)
            status, said = await run.call(method, path, headers=elsewhere)
            assert (status, said["error"]["type"]) == (403, "InvalidTenant"), (method, path, said)
            for role, may in MAY.items():
                status, said = await run.call(
                    method, path, headers=tokens[role], allow_redirects=False
                )
                refused = status == 403 and f"no right to {needs}" in said["error"]["message"]
                assert refused == (needs not in may), (method, path, role, said)
                tried += 1
        assert tried > 300


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
async def test_a_reader_cannot_read_a_stored_value_with_a_template_of_their_own(
    database_url: str, method: str
) -> None:
    """A preview of an update uses stored values; who writes its template decides what it shows."""
    async with guarded(database_url) as (run, admin):
        template = {
            "heat_template_version": "2018-08-31",
            "parameters": {"p": {"type": "string", "hidden": True}},
        }
        sent = {"stack_name": "s", "template": template, "parameters": {"p": "Hidden-Pw!42"}}
        status, made = await run.call("POST", "/stacks", sent, headers=admin)
        assert status == 201, made
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
        path = f"/stacks/s/{made['stack']['id']}/preview"
        for role in ("reader", "approver"):
            mine = bearer(await token(run, admin, f"a {role}", role))
            status, said = await run.call(method, path, shows, headers=mine)
            assert status == 403 and "Hidden-Pw!42" not in str(said), said
        author = bearer(await token(run, admin, "an author", "author"))
        assert (await run.call(method, path, shows, headers=author))[0] == 200


async def test_a_hook_is_answered_heats_way_by_who_may_answer_alone(database_url: str) -> None:
    """The route is one for all signals, so what it needs depends on what is sent."""
    async with guarded(database_url) as (run, admin):
        stack, _ = await held(run, admin)
        path, unset = f"{stack}/resources/a/signal", {"unset_hook": "pre-create"}
        for role in ("reader", "author"):
            mine = bearer(await token(run, admin, f"a {role}", role))
            status, said = await run.call("POST", path, unset, headers=mine)
            assert (status, said["error"]["type"]) == (403, "Forbidden")
        approver = bearer(await token(run, admin, "an approver", "approver"))
        status, said = await run.call("POST", path, {"x": 1}, headers=approver)
        assert "no right to write" in said["error"]["message"]
        assert (await run.call("POST", path, unset, headers=approver))[0] == 200


async def test_who_answered_and_who_asked_are_those_whom_the_tokens_name(
    database_url: str,
) -> None:
    """What X-Auth-User and X-Roles say is believed in mode none alone."""
    rule = {"at": "a", "on": ["pre-create"], "answer_by": ["role:dba"], "exclude": "requester"}
    async with guarded(database_url) as (run, admin):
        ann = bearer(await token(run, admin, "ann", "author", "approver", "dba"))
        _, hook = await held(run, ann, rule)
        path, go_on = f"/hooks/{hook}/signal", {"decision": "continue"}
        status, said = await run.call("POST", path, go_on, headers=ann)
        assert status == 403, said
        claims = {"X-Roles": "dba", "X-Auth-User": "bob"}
        bob = bearer(await token(run, admin, "bob", "approver"))
        status, said = await run.call("POST", path, go_on, headers=bob | claims)
        assert status == 403, said
        dba = bearer(await token(run, admin, "dana", "approver", "dba"))
        status, said = await run.call("POST", path, go_on, headers=dba | claims)
        assert status == 200, said
        _, trail = await run.call("GET", f"/hooks/{hook}/decisions", headers=dba)
        assert [one["by"] for one in trail["decisions"]] == ["ann", "bob", "dana"], trail
        _, shown = await run.call("GET", "/stacks/s", headers=dba)
        assert shown["stack"]["stack_owner"] == "ann"


async def test_ways_to_present_a_token_or_a_password(database_url: str) -> None:
    async with guarded(database_url) as (run, admin):
        mine = await token(run, admin, "ci", "author")
        await given_directly(run.database, "p", "ada", ["reader"], password=PASSWORD)
        await given_directly(run.database, "*", "eva", ["reader"], password=PASSWORD)
        right = [
            {"X-Auth-Token": mine}, bearer(mine), basic("ci", mine),
            {"X-Auth-User": "ci", "X-Auth-Key": mine},
            basic("ada", PASSWORD), {"X-Auth-User": "ada", "X-Auth-Key": PASSWORD},
            basic("eva", PASSWORD),
        ]  # fmt: skip
        for headers in right:
            status, said = await run.call("GET", "/session", headers=headers)
            assert status == 200, (headers, said)
            assert said["name"] in ("ci", "ada", "eva")
        wrong = [
            {}, {"X-Auth-Token": mine[:-1] + ("A" if mine[-1] != "A" else "B")},
            {"X-Auth-Token": "notused"}, bearer(""), bearer("x" * 5000), basic("ada", "wrong"),
            basic("nobody", PASSWORD), basic("ada", "x" * 5000), {"Authorization": "Basic !!"},
            {"Authorization": "Basic " + base64.b64encode(b"\xff:x").decode()},
            {"X-Auth-User": "ada"}, {"X-Auth-Token": f"hgt_{uuid4().hex}_{'A' * 43}"},
        ]  # fmt: skip
        for headers in wrong:
            async with run.session.get(f"{run.url}/v1/p/session", headers=headers) as answer:
                assert answer.status == 401, headers
                assert answer.headers["WWW-Authenticate"] == 'Basic realm="headgate", Bearer'
                said = await answer.json()
                assert "headgate token create" in said["error"]["remedy"]
        stored = await everything_in(run.database, "token")
        assert mine not in stored and PASSWORD not in stored and mine[-43:] not in stored


async def test_a_revoked_token_is_out_at_once_at_every_process(
    database_url: str,
) -> None:
    """Both remember it for an hour, and are told."""
    long = {"auth.remembered": "1h"}
    async with guarded(database_url, long) as (one, admin), guarded(database_url, long) as two:
        status, made = await one.call(
            "POST", "/tokens", {"name": "ci", "roles": ["author"]}, headers=admin
        )
        mine = bearer(made["token"])
        for run in (one, two[0]):
            assert (await run.call("GET", "/stacks", headers=mine))[0] == 200
        status, _ = await one.call("DELETE", f"/tokens/{made['id']}", headers=admin)
        assert status == 204

        async def out() -> bool:
            said = [await run.call("GET", "/stacks", headers=mine) for run in (one, two[0])]
            return [status for status, _ in said] == [401, 401]

        await eventually(out)
        _, listed = await one.call("GET", "/tokens?gone=true", headers=admin)
        [gone] = listed["tokens"]
        assert (gone["revoked_by"], gone["used_at"] is not None) == ("root", True)
        _, listed = await one.call("GET", "/tokens", headers=admin)
        assert listed["tokens"] == []


async def test_a_token_lets_in_until_it_expires_however_long_it_is_remembered(
    database_url: str,
) -> None:
    async with guarded(database_url, {"auth.remembered": "1h"}) as (run, admin):
        mine = bearer(await token(run, admin, "ci", "author", expires_in="2s"))
        assert (await run.call("GET", "/stacks", headers=mine))[0] == 200

        async def out() -> bool:
            return (await run.call("GET", "/stacks", headers=mine))[0] == 401

        await eventually(out)


@pytest.mark.parametrize(
    ("body", "place", "said"),
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
async def test_what_a_token_cannot_be_is_told(
    access: tuple[Program, dict[str, str]], body: Json, place: str, said: str
) -> None:
    run, admin = access
    status, told = await run.call("POST", "/tokens", body, headers=admin)
    assert status == 400
    [finding] = told["error"]["findings"]
    assert finding["place"] == place and said in finding["remedy"]
    assert "short" not in str(told)
    assert (await run.call("GET", "/tokens", headers=admin))[1]["tokens"] == []


async def test_only_who_holds_everywhere_gives_what_holds_everywhere(
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
        status, said = await run.call(method, path, sent, headers=local)
        assert (status, said["error"]["type"]) == (403, "Forbidden")
    assert (await run.call("POST", "/tokens", body, headers=admin))[0] == 201
    status, said = await run.call("GET", "/tokens", headers=local)
    assert [one["name"] for one in said["tokens"]] == ["local"]
    body = {"name": "ann", "roles": ["reader"], "password": PASSWORD}
    assert (await run.call("POST", "/tokens", body, headers=local))[0] == 201
    status, said = await run.call("POST", "/tokens", body, headers=local)
    assert (status, said["error"]["type"]) == (409, "PasswordExists")


async def test_a_session_of_a_browser(access: tuple[Program, dict[str, str]]) -> None:
    run, admin = access
    mine = await token(run, admin, "ci", "author")
    body = {"name": "x", "roles": ["reader"]}
    status, said = await run.call("POST", "/session", {"token": "hgt_wrong"})
    assert status == 401
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    status, said = await run.call("POST", "/session", {"token": mine}, headers=elsewhere)
    assert (status, said["error"]["type"]) == (403, "CrossSiteRequest")
    async with run.session.post(f"{run.url}/v1/p/session", json={"token": mine}) as answer:
        assert answer.status == 201
        csrf = (await answer.json())["csrf"]
        cookie = answer.cookies[COOKIE]
        assert cookie["httponly"] and cookie["samesite"] == "Strict"
        assert mine not in cookie.value
    run.session.cookie_jar.clear()
    held = {"Cookie": f"{COOKIE}={cookie.value}"}
    own_page = {CSRF_HEADER: csrf, "Sec-Fetch-Site": "same-origin"}
    _, said = await run.call("GET", "/session", headers=held)
    assert (said["name"], said["csrf"]) == ("ci", csrf)
    sent = {"stack_name": "s", "template": template({})}
    for more in (
        {}, {CSRF_HEADER: "wrong"}, own_page | {"Sec-Fetch-Site": "cross-site"},
        own_page | {"Sec-Fetch-Site": "same-site"}, {"Sec-Fetch-Site": "same-origin"},
    ):  # fmt: skip
        status, said = await run.call("POST", "/stacks", sent, headers=held | more)
        assert (status, said["error"]["type"]) == (403, "CrossSiteRequest"), more
    assert (await run.call("POST", "/stacks", sent, headers=held | own_page))[0] == 201
    for broken in ("", "00", cookie.value[:-2] + "00", "x" * 4000):
        headers = {"Cookie": f"{COOKIE}={broken}"}
        assert (await run.call("GET", "/session", headers=headers))[0] == 401
    # It is judged anew each time: with its token it ends.
    _, listed = await run.call("GET", "/tokens", headers=admin)
    await run.call("DELETE", f"/tokens/{listed['tokens'][0]['id']}", headers=admin)

    async def out() -> bool:
        return (await run.call("GET", "/session", headers=held))[0] == 401

    await eventually(out)
    assert body


async def test_wrong_tokens_are_refused_for_a_while_and_right_ones_are_not(
    database_url: str,
) -> None:
    few = {"auth.failures": 3, "auth.lockout": "1h"}
    async with guarded(database_url, few) as (run, admin):
        late = bearer(await token(run, admin, "late", "reader"))
        _, hook = await held(run, admin)
        for _ in range(2):
            assert (await run.call("GET", "/stacks", headers=bearer("guess")))[0] == 401
        for _ in range(9):  # a request that presents nothing is not counted
            assert (await run.call("GET", "/stacks"))[0] == 401
        # Wrong tokens of hooks are counted, too.
        path = f"{run.url}/hooks/{hook}/signal"
        async with run.session.post(path, json={}, headers=bearer("x")) as answer:
            assert answer.status == 401
        for headers in (bearer("guess"), {"X-Auth-Token": "guess"}):
            async with run.session.get(f"{run.url}/v1/p/stacks", headers=headers) as answer:
                assert answer.status == 429
                assert 3500 < int(answer.headers["Retry-After"]) <= 3600
                said = await answer.json()
                assert said["error"]["type"] == "TooManyRequests"
        async with run.session.post(path, json={}, headers=bearer("x")) as answer:
            assert answer.status == 429
        for headers in (admin, late):
            assert (await run.call("GET", "/stacks", headers=headers))[0] == 200


async def test_no_more_requests_than_were_allowed(database_url: str) -> None:
    async with guarded(database_url, {"server.requests_per_token": 5}) as (run, admin):
        busy = bearer(await token(run, admin, "busy", "reader"))
        seen = [(await run.call("GET", "/stacks", headers=busy))[0] for _ in range(30)]
        assert seen[:5] == [200] * 5 and 429 in seen
        assert (await run.call("GET", "/stacks", headers=admin))[0] == 200
    async with program(database_url, {"server.requests_per_address": 5}) as run:
        seen = [(await run.call("GET", "//healthz"))[0] for _ in range(30)]
        assert seen[:5] == [200] * 5 and 429 in seen


async def test_a_stream_ends_when_its_token_is_revoked(database_url: str) -> None:
    async with guarded(database_url, {"auth.remembered": "1s"}) as (run, admin):
        _, made = await run.call(
            "POST", "/tokens", {"name": "ci", "roles": ["reader"]}, headers=admin
        )
        url, headers = f"{run.url}/v1/p/events/stream", bearer(made["token"])
        async with run.session.get(url, headers=headers) as stream:
            assert await stream.content.readline() == b": connected\n"
            await run.call("DELETE", f"/tokens/{made['id']}", headers=admin)
            async with asyncio.timeout(PATIENCE):
                while not stream.content.at_eof():
                    await stream.content.readany()


async def test_a_reader_that_leaves_is_no_fault(
    access: tuple[Program, dict[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    run, admin = access
    stream = await run.session.get(f"{run.url}/v1/p/events/stream", headers=admin)
    assert await stream.content.readline() == b": connected\n"
    stream.close()
    for number in range(3):
        sent = {"stack_name": f"s{number}", "template": template({"a": resource()})}
        assert (await run.call("POST", "/stacks", sent, headers=admin))[0] == 201

    async def left() -> bool:
        return b"headgate_streams 0" in (await text(run)).encode()

    await eventually(left)
    assert "request.bug" not in capsys.readouterr().out


async def text(run: Program) -> str:
    reader = bearer(await given_directly(run.database, "*", uuid4().hex, ["monitor"]))
    _, said = await run.call("GET", "//metrics", headers=reader)
    return str(said)


async def test_what_opens_the_cloud_is_not_what_opens_headgate(
    database_url: str,
) -> None:
    world = World()
    async with guarded(database_url, types=[Thing(world)]) as (run, admin):
        mine = await token(run, admin, "ci", "author")
        sent = {"template": template({"a": thing(1)})}
        cases: list[tuple[dict[str, str], str]] = [
            ({"X-Auth-Token": mine}, ""),
            (bearer(mine) | {"X-Auth-Token": "of the cloud"}, "of the cloud"),
            ({"X-Auth-Token": mine, "X-Headgate-Credential": "named"}, "named"),
        ]
        for number, (headers, credential) in enumerate(cases):
            name = f"s{number}"
            status, _ = await run.call(
                "POST", "/stacks", {"stack_name": name, **sent}, headers=headers
            )
            assert status == 201

            async def done(name: str = name) -> bool:
                _, said = await run.call("GET", f"/stacks/{name}", headers=admin)
                return bool(said["stack"]["stack_status"] == "CREATE_COMPLETE")

            await eventually(done)
            assert world.calls[-1].credential == credential
