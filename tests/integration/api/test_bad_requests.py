"""Every route against what nobody should send: refused as documented, nothing told, nothing lost."""

import gzip
import io
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

import hub
from hub.api.application import all_routes
from hub.api.parts import UNAUTHENTICATED_BODY, Route
from tests.support.documented import Document, Seen
from tests.support.furnished import SECRET, Furnished, furnished, names_in
from tests.support.program import Json, Program, program
from tests.support.wire import exchange, request

#: Nothing of the server itself is told.
INSIDE = ("Traceback", 'File "', "site-packages", "asyncpg", "select ", "SELECT ",
          str(Path(hub.__file__).parents[1]))  # fmt: skip
#: Routes where a token of a thing's own is all that counts.
BY_TOKEN = ("/hooks/", "/signals/")
#: The one route that reads the body of a sender who is not authenticated.
SIGN_IN = "/v1/{project}/session"
#: Routes that leave alone the keys of a body that they do not know, as this API does.
LENIENT = ("/software_configs", "/software_deployments")
STACK_KEYS = ("stack_name", "template", "environment", "environment_files", "files", "parameters",
              "clear_parameters", "tags", "timeout_mins", "disable_rollback", "only", "except",
              "moved", "plan_digest", "hooks", "adopt_stack_data", "template_url",
              "files_container")  # fmt: skip
#: What may stand in a body, by the end of the path, where no model says it.
KEYS = {
    "/stacks": STACK_KEYS, "/stacks/preview": STACK_KEYS, "/validate": STACK_KEYS,
    "/{name}/{id}": STACK_KEYS, "/{id}/preview": STACK_KEYS, "/breakpoints": ("breakpoints",),
    "/run-to": ("resource",), "/hand-over": ("to", "note"), "/signal": ("unset_hook",),
    "/resources/{resource}": ("mark_unhealthy", "resource_status_reason", "protect"),
    "/actions": ("suspend", "resume", "check", "stop"), "/snapshots": ("name",), "/pin": ("reason",),
}  # fmt: skip
#: What is right to send, by the end of the path, where nothing is not.
RIGHT: dict[str, Json] = {"/signal": {"decision": "continue"}, "/hand-over": {"to": "user:x"}}
#: No body is right with all of these in it.
SPOILED = {"timeout_mins": "soon", "disable_rollback": "perhaps", "no_such_key": 1}
DEEP = b'{"deep": ' + b"[" * 300 + b"]" * 300 + b"}"
BOMB = gzip.compress(b" " * 30_000_000)
WRONG: tuple[Json, ...] = (
    True, 7, -1, 1e300, 10**18, "", "\u202e", "x" * 70_000, [], [None], [[{}]], {}, {"x": None},
)  # fmt: skip
NAMES = ("..", "%2e%2e", "a%2fb", "a;b", "x" * 5000, "%ff", "%EF%BD%81", "a%0ab", "%22%3E%3Cb%3E", "%zz",
         "00000000-0000-0000-0000-000000000000")  # fmt: skip
VALUES = ("", "x" * 3000, "-1", "9" * 30, "2147483648", "%ff", "%zz", "%EF%BC%91", "%0a", "(((",
          "(a%2B)%2B$", "%27%3B--", "99999999d", ",", "1e5", "00000000-0000-0000-0000-000000000000")  # fmt: skip
#: Values of a query that are never right, by its name.
NUMBERS, FLAGS = ("-1", "1e5", "9" * 30, "%EF%BC%91", ""), ("1", "maybe", "")
NEVER = {
    **dict.fromkeys(("limit", "nested_depth", "after", "traversal"), NUMBERS),
    **dict.fromkeys(("show_deleted", "show_nested", "show_hidden", "global_tenant", "with_count",
                     "resolve_outputs", "with_detail", "with_description", "everywhere", "gone",
                     "with_condition_func", "mine", "waiting", "counts", "nested"), FLAGS),
    **dict.fromkeys(("sort_keys", "sort_dir", "state", "template_type"), ("colour",)),
    "marker": ("none",), "older": ("soon", "99999999d"), "point": ("pre-crate",),
    "ignore_errors": ("5",), "support_status": ("FINE",), "timeout_mins": ("soon",),
}  # fmt: skip
RAW_BODIES: dict[str, tuple[bytes, dict[str, str]]] = {
    "an array": (b"[]", {}),
    "a text": (b'"x"', {}),
    "null": (b"null", {}),
    "half of one": (b'{"a":', {}),
    "no number": (b'{"a": NaN}', {}),
    "half a character": (b'{"a": "\\ud800"}', {}),
    "NUL": (b'{"a\\u0000": 1}', {}),
    "too deep": (DEEP, {}),
    "far too deep": (b'{"a":' * 5000 + b"1" + b"}" * 5000, {}),
    "no UTF-8": (b'{"a": "\xff"}', {}),
    "latin-1": ('{"a": "é"}'.encode("latin-1"), {"Content-Type": "text/json; charset=latin-1"}),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), {}),
    "a mark in front": ('{"a": 1}'.encode("utf-8-sig"), {}),
    "a form": (b"a=1", {"Content-Type": "application/x-www-form-urlencoded"}),
    "parts": (b"--x--", {"Content-Type": "multipart/form-data; boundary=x"}),
    "a bomb": (BOMB, {"Content-Encoding": "gzip"}),
    "no gzip": (b'{"a": 1}', {"Content-Encoding": "gzip"}),
    "no deflate": (b'{"a": 1}', {"Content-Encoding": "deflate"}),
    "brotli": (b'{"a": 1}', {"Content-Encoding": "br"}),
    "rot13": (b'{"a": 1}', {"Content-Encoding": "rot13"}),
    "twice": (gzip.compress(b"{}"), {"Content-Encoding": "gzip, gzip"}),
    "too large": (b'{"a": "' + b"#" * 1_100_000 + b'"}', {}),
}  # fmt: skip
STATUSES = {"a bomb": 413, "too large": 413, "brotli": 415, "rot13": 415, "twice": 415}
#: What stands for it: all that was stored; what beats, and what is yet to be told, left out.
STORED = ("stack", "template", "traversal", "node", "resource", "hook", "event", "breakpoint",
          "decision", "subscription", "token", "snapshot")  # fmt: skip


class Prober:
    """Sends as it is told to, on a connection of its own each time, and judges what is refused."""

    def __init__(self, run: Program, document: Document) -> None:
        self.run, self.document = run, document
        self.sent = 0

    async def send(self, method: str, path: str, **more: Any) -> tuple[int, str]:
        """Status and text. What is refused is refused as the document says, and tells nothing."""
        self.sent += 1
        url = URL(self.run.url + path, encoded=True)
        more["headers"] = {"Connection": "close", **more.get("headers", {})}
        what = f"{method} {path[:200]} {str(more)[:200]}"
        asked = self.run.session.request(method, url, allow_redirects=False, **more)
        async with asked as got:
            text, kind = (await got.read()).decode(), got.content_type
            seen = Seen(
                method,
                url.raw_path,
                got.status,
                kind,
                json.loads(text) if kind == "application/json" and text else None,
            )
        assert got.status < 500, f"{what}: {got.status} {text[:500]}"
        if got.status >= 400:
            assert kind == "application/json", f"{what}: {kind} {text[:500]}"
            assert list(self.document.wrong(seen)) == []
            assert seen.body["error"]["message"], what
            told = [one for one in (*INSIDE, SECRET) if one in text]
            assert not told, f"{what}: tells {told}: {text[:500]}"
        return got.status, text


@pytest.fixture
async def probing(database_url: str) -> AsyncIterator[tuple[Prober, Furnished]]:
    async with program(database_url) as run:
        _, said = await run.call("GET", "//openapi.json")
        yield Prober(run, Document(said)), await furnished(run)


def routes() -> list[Route]:
    """All that end."""
    return [route for route in all_routes() if not route.path.endswith("/events/stream")]


async def stored(run: Program) -> dict[str, list[str]]:
    async with run.database.connection() as conn:
        return {
            table: [
                row["row"]
                for row in await conn.fetch(f"select t::text as row from {table} t order by 1")
            ]
            for table in STORED
        }


async def goes_on(run: Program) -> None:
    """The stack that waits still waits, and ends when it is answered."""
    (hook,) = await run.waiting("held")
    assert (await run.signal(hook))[0] == 200
    (hook,) = await run.waiting("held")
    assert hook["point"] == "post-create" and (await run.signal(hook))[0] == 200
    assert await run.until_ended("held") == "CREATE_COMPLETE"


async def test_no_route_takes_a_body_that_is_none(probing: tuple[Prober, Furnished]) -> None:
    prober, there = probing
    before = await stored(prober.run)
    for route in (one for one in routes() if one.takes_body):
        for name, (data, headers) in RAW_BODIES.items():
            if route.path.startswith(BY_TOKEN):
                headers = headers | {"Authorization": "Bearer wrong"}
            got, text = await prober.send(
                route.method, there.path(route), data=io.BytesIO(data), headers=headers
            )
            wanted = STATUSES.get(name, 400)
            if route.path == SIGN_IN and len(data) > UNAUTHENTICATED_BODY:
                wanted = 413  # signing in comes before authentication
            if route.path.startswith(BY_TOKEN) and got in (401, 429):
                continue  # it learns nothing before its token is right
            assert got == wanted, (route.method, route.path, name, text[:300])
    assert await stored(prober.run) == before
    await goes_on(prober.run)


def wrong_bodies(route: Route) -> Iterator[dict[str, Json]]:
    """One key wrong in each; and one that nobody knows."""
    keys = list(route.body.model_fields) if route.body else [
        key for end, keys in KEYS.items() if route.path.endswith(end) for key in keys
    ]  # fmt: skip
    assert keys, f"{route.path}: say in KEYS what it takes"
    # Of a snapshot any short name is right, and other keys are left alone.
    named = list(keys) == ["name"]
    if not named:
        yield dict(SPOILED)
    for key in keys:
        for value in WRONG:
            if not (named and isinstance(value, str) and len(value) < 255):
                yield {**SPOILED, key: value}


async def test_no_route_takes_what_is_of_the_wrong_kind(probing: tuple[Prober, Furnished]) -> None:
    prober, there = probing
    before = await stored(prober.run)
    for route in (one for one in routes() if one.takes_body):
        if route.path.startswith(BY_TOKEN) or route.path.endswith("/resources/{resource}/signal"):
            continue  # behind a token; data for a resource may be anything
        lenient = any(one in route.path for one in LENIENT)
        for body in wrong_bodies(route):
            got, text = await prober.send(route.method, there.path(route), json=body)
            refused: tuple[int, ...] = (400, 404, 409, 200) if lenient else (400, 404, 409)
            if route.path == SIGN_IN and len(json.dumps(body)) > UNAUTHENTICATED_BODY:
                refused = (413,)
            assert got in refused, (route.path, body, text[:300])
    assert await stored(prober.run) == before
    await goes_on(prober.run)


async def test_times_that_no_calendar_has(probing: tuple[Prober, Furnished]) -> None:
    prober, there = probing
    redeliver = f"/subscriptions/{there.said['subscription']}/redeliver"
    token = {"name": "x", "roles": ["reader"]}
    for path, body, place in (
        (redeliver, {"since": "0001-01-01T00:00:00+23:59"}, "since"),
        (redeliver, {"since": "9999-12-31T23:59:59-23:59"}, "since"),
        ("/tokens", {**token, "expires_in": "99999999d"}, "expires_in"),
        (f"/hooks/{there.said['hook']}/signal", {"decision": "progress", "extend": "9999999d"},
         "extend"),
    ):  # fmt: skip
        got, text = await prober.send("POST", f"/v1/p{path}", json=body)
        assert got == 400 and place in text
    await goes_on(prober.run)


async def test_every_query_is_read_or_refused(probing: tuple[Prober, Furnished]) -> None:
    prober, there = probing
    before = await stored(prober.run)
    for route in routes():
        for name in route.query:
            for value in VALUES:
                await prober.send(route.method, f"{there.path(route)}?{name}={value}")
            for value in NEVER.get(name, ()):
                got, text = await prober.send(route.method, f"{there.path(route)}?{name}={value}")
                assert got == 400 and name in text, (route.path, name, value, text[:300])
            got, _ = await prober.send(route.method, f"{there.path(route)}?{name}=%00")
            assert got == 400
    assert prober.sent > 1000
    assert await stored(prober.run) == before
    await goes_on(prober.run)


async def test_no_name_leads_to_what_it_does_not_name(probing: tuple[Prober, Furnished]) -> None:
    prober, there = probing
    before = await stored(prober.run)
    for route in routes():
        for name in names_in(route):
            for value in NAMES:
                path = there.path(route, **{name: value})
                data = json.dumps(SPOILED) if route.takes_body else None
                got, text = await prober.send(route.method, path, data=data)
                # Any text may be the name of a project in which there is nothing, or of a server.
                if (
                    got < 300
                    and name not in ("project", "server", "rest")
                    and route.path != "/hooks/{hook}"
                ):
                    pytest.fail(f"{route.method} {path[:200]}: {got} {text[:300]}")
                if name == "project":
                    told = [
                        there.said[one] for one in ("id", "hook") if there.said[one] not in path
                    ]
                    assert not [one for one in told if one in text], (path, text)
    assert await stored(prober.run) == before
    await goes_on(prober.run)


async def test_nothing_of_a_project_is_in_another(probing: tuple[Prober, Furnished]) -> None:
    prober, there = probing
    before = await stored(prober.run)
    ids = {key: value for key, value in there.said.items() if len(value) == 36}
    tried = 0
    for route in routes():
        names = set(names_in(route)) - {"project"}
        if "{project}" not in route.path or not names & ({*ids} | {"name", "key", "resource"}):
            continue
        path = there.path(route, project="q")
        body: Json = next((one for end, one in RIGHT.items() if path.endswith(end)), {})
        got, text = await prober.send(route.method, path, json=body if route.takes_body else None)
        assert got == 404, (route.method, path, text)
        # What was asked for may be said again, and nothing else.
        said = [key for key, value in ids.items() if value in text and value not in path]
        assert not said, (path, text)
        tried += 1
    assert tried > 40
    assert await stored(prober.run) == before
    await goes_on(prober.run)


async def test_another_stack_has_nothing_of_this_one(probing: tuple[Prober, Furnished]) -> None:
    """Parts of a stack by the path of another stack of the same project."""
    prober, there = probing
    at = {"name": "done", "id": there.said["done"]}
    for path, method in (("/breakpoints/{breakpoint}", "DELETE"), ("/resources/b", "GET")):
        end = path.format(**there.said)
        got, _ = await prober.send(method, f"/v1/p/stacks/{at['name']}/{at['id']}{end}")
        assert got == 404
    held = f"/v1/p/stacks/held/{there.said['id']}"
    for end in ("/snapshots/{snapshot}", "/resources/a/events/{event}"):
        got, _ = await prober.send("GET", held + end.format(**there.said))
        assert got == 404
    got, _ = await prober.send("GET", f"/v1/p/stacks/done/{there.said['id']}")
    assert got == 404
    await goes_on(prober.run)


HEADERS = ("X-Auth-User", "X-Auth-Token", "X-Roles", "Idempotency-Key", "X-Headgate-Credential",
           "Last-Event-ID", "Content-Encoding", "Authorization", "Cookie")  # fmt: skip


async def test_headers_that_are_no_text_and_hosts_that_are_none(
    probing: tuple[Prober, Furnished],
) -> None:
    prober, there = probing
    hook, url = there.said["hook"], prober.run.url
    for line in ("POST /v1/p/stacks", f"POST /hooks/{hook}/signal", "GET /v1/p/events/stream"):
        for name in HEADERS:
            odd = f"{name}: ".encode() + b"Bearer \xff"
            [(status, said)] = await exchange(url, request(line, odd, "Connection: close"))
            assert status == 400 and name in str(said), (line, name, said)
    for host in ("a b", '"><script>', "a/b", "a:999999", "[::", "", "a@b", "é"):
        sent = request("GET /v1/p/stacks/held", f"Host: {host}", "Connection: close")
        [(status, said)] = await exchange(url, sent)
        assert status == 400 and "Host" in said["error"]["message"], (host, said)
    for host in ("localhost", "a_b.localhost:80", "[::1]:8004", "127.0.0.1"):
        sent = request("GET /v1/p/stacks/held", f"Host: {host}", "Connection: close")
        [(status, said)] = await exchange(url, sent)
        assert status == 302 and said["message"].startswith(f"http://{host}/v1/")
    await goes_on(prober.run)
