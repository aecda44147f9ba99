"""Invalid requests to every route: the responses are documented, and reveal and change nothing."""

import gzip
import io
import json
import reprlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import pytest_asyncio
from yarl import URL

import hub
from hub.api import headgate
from hub.api.application import all_routes
from hub.api.openapi import plain_path
from hub.api.request_validation import UNAUTHENTICATED_BODY
from hub.api.routes import Route
from tests.support.openapi_check import JSON, OpenApiDocument, RecordedResponse
from tests.support.populated_project import (
    SECRET,
    PopulatedProject,
    path_parameters,
    populate_project,
)
from tests.support.program import Json, Program
from tests.support.purging import archive_all_graphs
from tests.support.wire import exchange, request

#: Internals of the server, which no response contains.
#: On the page for people that refuses a sign-in.
REFUSED_PAGE = "Sign-in failed"
INTERNALS = ("Traceback", 'File "', "site-packages", "asyncpg", "select ", "SELECT ",
          str(Path(hub.__file__).parents[1]))  # fmt: skip
#: Routes that are authenticated by the token of a hook or resource.
BY_TOKEN = ("/hooks/", "/signals/")
#: The only routes that read the body of a client that is not authenticated.
SIGN_IN = ("/v1/{project}/session", "/v1/{project}/session/oidc/tokens")
#: Routes that ignore unknown keys, as in Heat.
LENIENT = ("/software_configs", "/software_deployments")
STACK_KEYS = ("stack_name", "template", "environment", "environment_files", "files", "parameters",
              "clear_parameters", "tags", "timeout_mins", "disable_rollback", "only", "except",
              "moved", "plan_digest", "hooks", "adopt_stack_data", "template_url",
              "files_container")  # fmt: skip
#: Known keys of bodies without a model, by the end of the path.
KEYS = {
    "/stacks": STACK_KEYS, "/stacks/preview": STACK_KEYS, "/validate": STACK_KEYS,
    "/{name}/{id}": STACK_KEYS, "/{id}/preview": STACK_KEYS, "/breakpoints": ("breakpoints",),
    "/run-to": ("resource",), "/hand-over": ("to", "note"), "/signal": ("unset_hook",),
    "/resources/{resource}": ("mark_unhealthy", "resource_status_reason", "protect"),
    "/actions": ("suspend", "resume", "check", "stop", "converge"), "/snapshots": ("name",), "/pin": ("reason",),
}  # fmt: skip
#: Valid bodies where an empty one is invalid, by the end of the path.
VALID_BODIES: dict[str, Json] = {
    "/signal": {"decision": "continue"},
    "/hand-over": {"to": "user:x"},
}
#: Takes forms, which Slack signs.
SLACK_FORMS = "/slack/interactions"
#: Every route refuses a body with these keys.
UNKNOWN_KEYS = {"timeout_mins": "soon", "disable_rollback": "perhaps", "no_such_key": 1}
DEEP = b'{"deep": ' + b"[" * 300 + b"]" * 300 + b"}"
BOMB = gzip.compress(b" " * 30_000_000)
WRONG_VALUES: tuple[Json, ...] = (
    True, 7, -1, 1e300, 10**18, "", "\u202e", "x" * 70_000, [], [None], [[{}]], {}, {"x": None},
)  # fmt: skip
NAMES = ("..", "%2e%2e", "a%2fb", "a;b", "x" * 5000, "%ff", "%EF%BD%81", "a%0ab", "%22%3E%3Cb%3E", "%zz",
         "00000000-0000-0000-0000-000000000000")  # fmt: skip
VALUES = ("", "x" * 3000, "-1", "9" * 30, "2147483648", "%ff", "%zz", "%EF%BC%91", "%0a", "(((",
          "(a%2B)%2B$", "%27%3B--", "99999999d", ",", "1e5", "00000000-0000-0000-0000-000000000000")  # fmt: skip
#: Invalid values of query parameters, by name.
NUMBERS, FLAGS = ("-1", "1e5", "9" * 30, "%EF%BC%91", ""), ("1", "maybe", "")
INVALID_TIMES = {
    **dict.fromkeys(("limit", "nested_depth", "after", "traversal"), NUMBERS),
    **dict.fromkeys(("show_deleted", "show_nested", "show_hidden", "global_tenant", "with_count",
                     "resolve_outputs", "with_detail", "with_description", "everywhere", "all",
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
    "too large": (b'{"a": "' + b"#" * 2_200_000 + b'"}', {}),
}  # fmt: skip
STATUSES = {"a bomb": 413, "too large": 413, "brotli": 415, "rot13": 415, "twice": 415}
#: The stored state, without heartbeats and pending events.
STORED = ("stack", "template", "traversal", "node", "resource", "hook", "event", "breakpoint",
          "decision", "subscription", "token", "snapshot")  # fmt: skip


class Prober:
    """Sends requests, and checks the error responses."""

    def __init__(self, run: Program, document: OpenApiDocument) -> None:
        self.run, self.document = run, document
        self.sent = 0

    async def send(self, method: str, path: str, **more: Any) -> tuple[int, str]:
        """Status and text. Checks that errors match the OpenAPI document and reveal no internals."""
        self.sent += 1
        url = URL(self.run.url + path, encoded=True)
        what = f"{method} {path[:200]} {reprlib.repr(more)}"
        sending = self.run.session.request(method, url, allow_redirects=False, **more)
        async with sending as got:
            text, kind = (await got.read()).decode(), got.content_type
            seen = RecordedResponse(
                method,
                url.raw_path,
                got.status,
                kind,
                json.loads(text) if kind == "application/json" and text else None,
            )
        assert got.status < 500, f"{what}: {got.status} {text[:500]}"
        if got.status >= 400:
            assert list(self.document.differences(seen)) == []  # also the content type
            reason = seen.body["error"]["message"] if kind == JSON else REFUSED_PAGE in text
            assert reason, f"{what}: {kind} {text[:500]}"
            leaked = [one for one in (*INTERNALS, SECRET) if one in text]
            assert not leaked, f"{what}: tells {leaked}: {text[:500]}"
        return got.status, text


@pytest.fixture(scope="module")
def shared_settings() -> Mapping[str, Any]:
    """Wrong tokens of hooks lock out no later request."""
    return {"auth.failures": 10_000}


@pytest.fixture
def running(in_own_project: Program) -> Program:
    return in_own_project


@pytest.fixture(scope="module")
def documents() -> dict[str, OpenApiDocument]:
    """The OpenAPI document of the shared program, by its URL."""
    return {}


@pytest_asyncio.fixture(loop_scope="session")
async def probing(
    running: Program, documents: dict[str, OpenApiDocument]
) -> tuple[Prober, PopulatedProject]:
    if running.url not in documents:
        _, response = await running.call("GET", "//openapi.json")
        documents[running.url] = OpenApiDocument(response)
    project = await populate_project(running)
    await archive_all_graphs(running.database)
    return Prober(running, documents[running.url]), project


def routes_with_json() -> list[Route]:
    """Those that take a JSON document. The forms of Slack are sent in test_slack_answers.py."""
    return [route for route in routes() if route.takes_body and route.path != SLACK_FORMS]


def routes() -> list[Route]:
    """All routes except streams."""
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


async def check_waiting_stack(run: Program) -> None:
    """Check that the waiting stack still waits, and completes after an answer."""
    (hook,) = await run.waiting_hooks("held")
    assert (await run.signal(hook))[0] == 200
    (hook,) = await run.waiting_hooks("held")
    assert hook["point"] == "post-create" and (await run.signal(hook))[0] == 200
    assert await run.until_ended("held") == "CREATE_COMPLETE"


async def test_no_route_accepts_an_invalid_body(probing: tuple[Prober, PopulatedProject]) -> None:
    prober, target = probing
    before = await stored(prober.run)
    for route in routes_with_json():
        for name, (data, headers) in RAW_BODIES.items():
            headers = {"Connection": "close", **headers}  # not all bodies are read to the end
            if route.path.startswith(BY_TOKEN):
                headers["Authorization"] = "Bearer wrong"
            status, text = await prober.send(
                route.method, target.path(route), data=io.BytesIO(data), headers=headers
            )
            wanted = STATUSES.get(name, 400)
            if route.path in SIGN_IN and len(data) > UNAUTHENTICATED_BODY:
                wanted = 413  # the body of a sign-in is read before authentication
            if route.path.startswith(BY_TOKEN) and status in (401, 429):
                continue  # the body is not read before the token is checked
            assert status == wanted, (route.method, route.path, name, text[:300])
    assert await stored(prober.run) == before
    await check_waiting_stack(prober.run)


def wrong_bodies(route: Route) -> Iterator[dict[str, Json]]:
    """Bodies with one invalid value each, and one with an unknown key."""
    keys = list(route.body.model_fields) if route.body else [
        key for end, keys in KEYS.items() if route.path.endswith(end) for key in keys
    ]  # fmt: skip
    assert keys, f"{route.path}: say in KEYS what it takes"
    # Snapshots accept any short name and ignore unknown keys.
    named = list(keys) == ["name"]
    if not named:
        yield dict(UNKNOWN_KEYS)
    for key in keys:
        for value in WRONG_VALUES:
            if not (named and isinstance(value, str) and len(value) < 255):
                yield {**UNKNOWN_KEYS, key: value}


async def test_no_route_accepts_a_wrong_type(probing: tuple[Prober, PopulatedProject]) -> None:
    prober, target = probing
    before = await stored(prober.run)
    for route in routes_with_json():
        if route.path.startswith(BY_TOKEN) or route.path.endswith("/resources/{resource}/signal"):
            continue  # authenticated by token; the data of a signal can be anything
        lenient = any(one in route.path for one in LENIENT)
        for body in wrong_bodies(route):
            status, text = await prober.send(route.method, target.path(route), json=body)
            refused: tuple[int, ...] = (400, 404, 409, 200) if lenient else (400, 404, 409)
            if route.path in SIGN_IN and len(json.dumps(body)) > UNAUTHENTICATED_BODY:
                refused = (413,)
            assert status in refused, (route.path, body, text[:300])
    assert await stored(prober.run) == before
    await check_waiting_stack(prober.run)


async def test_times_outside_of_the_calendar(probing: tuple[Prober, PopulatedProject]) -> None:
    prober, target = probing
    redeliver = f"/subscriptions/{target.path_values['subscription']}/redeliver"
    token = {"name": "x", "roles": ["reader"]}
    for path, body, place in (
        (redeliver, {"since": "0001-01-01T00:00:00+23:59"}, "since"),
        (redeliver, {"since": "9999-12-31T23:59:59-23:59"}, "since"),
        ("/tokens", {**token, "expires_in": "99999999d"}, "expires_in"),
        (f"/hooks/{target.path_values['hook']}/signal", {"decision": "progress", "extend": "9999999d"},
         "extend"),
    ):  # fmt: skip
        status, text = await prober.send(
            "POST", f"/v1/{target.path_values['project']}{path}", json=body
        )
        assert status == 400 and place in text
    await check_waiting_stack(prober.run)


async def test_every_query_is_read_or_refused(probing: tuple[Prober, PopulatedProject]) -> None:
    prober, target = probing
    before = await stored(prober.run)
    for route in routes():
        for name in route.query:
            for value in VALUES:
                await prober.send(route.method, f"{target.path(route)}?{name}={value}")
            # Values of an OpenID provider are checked with those of its other messages.
            for value in () if route.error_page else INVALID_TIMES.get(name, ()):
                status, text = await prober.send(
                    route.method, f"{target.path(route)}?{name}={value}"
                )
                assert status == 400 and name in text, (route.path, name, value, text[:300])
            status, _ = await prober.send(route.method, f"{target.path(route)}?{name}=%00")
            assert status == 400
    assert prober.sent > 1000
    assert await stored(prober.run) == before
    await check_waiting_stack(prober.run)


#: Invalid values of Headgate's own query parameters, by the type in /openapi.json.
INVALID_BY_TYPE = {
    "integer": ("", "x", "-1", "1.5", "1e5", "9" * 30, "%EF%BC%91"),
    "boolean": ("", "1", "maybe"),
}
#: Of those that are strings, by name. The first is no value of an enumeration.
INVALID_STRINGS = {
    "state": ("colour", ""),
    "point": ("pre-crate", ""),
    "older": ("soon", "", "99999999d"),
    "marker": ("none", "1_2_3"),
    "from": ("soon", "2026-13-01", "2026-11-1", "0001-01-01"),
    "to": ("soon", "2026-02-30"),
    "status": ("GREEN", "FAILED,GREEN", "CREATE_GREEN"),
    "last_event_id": ("x", "1-2-3"),
    "kind": ("colour", ""),
    "prefix": ("3f2", "shop", "3f2a1b4c--"),
}
#: Valid values of required query parameters, by name.
REQUIRED = {"prefix": "3f2a"}
#: Strings of any content: names, globs and texts to search for.
ANY_STRING = frozenset({"search", "tags", "by", "path", "types", "stacks", "resources",
                        "resource_types", "points", "page"})  # fmt: skip
#: `stack` is an ID in this route, and a name or an ID in the others.
STACK_IDS = "/v1/{project}/overview"
REPEATABLE = frozenset(
    {"status", "tags", "types", "stacks", "resources", "resource_types", "points"}
)


def documented_query(document: Json, route: Route) -> list[Json]:
    parameters = document["paths"][plain_path(route.path)][route.method.lower()]["parameters"]
    return [one for one in parameters if one["in"] == "query"]


def required_query(document: Json, route: Route) -> list[str]:
    return [one["name"] for one in documented_query(document, route) if one.get("required")]


def invalid_values(route: Route, name: str, kind: str) -> tuple[str, ...]:
    """Of a query parameter with this type."""
    if name == "stack":
        return ("x", f"{UUID(int=9)},x") if route.path == STACK_IDS else ()
    return () if name in ANY_STRING else INVALID_BY_TYPE.get(kind) or INVALID_STRINGS[name]


async def test_every_own_query_parameter_refuses_nonsense_with_its_name(
    probing: tuple[Prober, PopulatedProject],
) -> None:
    """Of all of Headgate's own routes in /openapi.json, and parameters that a route does not have."""
    prober, target = probing
    _, document = await prober.run.call("GET", "//openapi.json")
    tried = 0

    async def refused(route: Route, query: str, name: str) -> None:
        nonlocal tried
        data = json.dumps({}) if route.takes_body else None
        others = [f"&{one}={REQUIRED[one]}" for one in required_query(document, route)]
        others = [one for one in others if not one.startswith(f"&{name}=")]
        path = f"{target.path(route)}?{query}{''.join(others)}"
        status, text = await prober.send(route.method, path, data=data)
        assert status == 400, (route.path, query, text[:300])
        (finding,) = json.loads(text)["error"]["findings"]
        assert finding["place"] == name and finding["reason"] and finding["remedy"], finding
        tried += 1

    before = await stored(prober.run)
    for route in headgate.CHECKED:
        parameters = documented_query(document, route)
        assert [one["name"] for one in parameters] == list(route.query)
        await refused(route, "no_such_parameter=1", "no_such_parameter")
        for name in required_query(document, route):
            await refused(route, "", name)
        for one in parameters:
            name = one["name"]
            for value in invalid_values(route, name, one["schema"]["type"]):
                await refused(route, f"{name}={value}", name)
            if name not in REPEATABLE and not (name == "stack" and route.path == STACK_IDS):
                await refused(route, f"{name}=&{name}=", name)
            await refused(route, f"{name}x=1", f"{name}x")
            if name == "limit":
                await refused(route, "limit=0", name)
    assert tried > 200
    assert await stored(prober.run) == before
    await check_waiting_stack(prober.run)


async def test_all_findings_of_a_query_are_reported(running: Program) -> None:
    status, response = await running.call("GET", "/hooks?limit=0&state=wating&stat=1")
    assert status == 400
    found = {one["place"]: one["remedy"] for one in response["error"]["findings"]}
    assert found == {
        "limit": "Send 1 or more.",
        "state": 'Did you mean "waiting"?',
        "stat": 'Did you mean "state"?',
    }


async def test_heat_routes_ignore_parameters_that_heat_ignores(running: Program) -> None:
    for path in ("/stacks?colour=1", "/resource_types?colour=1", "/build_info?colour=1"):
        status, response = await running.call("GET", path)
        assert status == 200, response


async def test_unknown_names_are_not_found(probing: tuple[Prober, PopulatedProject]) -> None:
    prober, target = probing
    before = await stored(prober.run)
    for route in routes():
        for name in path_parameters(route):
            for value in NAMES:
                path = target.path(route, **{name: value})
                data = json.dumps(UNKNOWN_KEYS) if route.takes_body else None
                status, text = await prober.send(route.method, path, data=data)
                # Any text can be the name of an empty project, or of a server.
                if (
                    status < 300
                    and name not in ("project", "server", "rest")
                    and route.path != "/hooks/{hook}"
                ):
                    pytest.fail(f"{route.method} {path[:200]}: {status} {text[:300]}")
                if name == "project":
                    secrets = [
                        target.path_values[one]
                        for one in ("id", "hook")
                        if target.path_values[one] not in path
                    ]
                    assert not [one for one in secrets if one in text], (path, text)
    assert await stored(prober.run) == before
    await check_waiting_stack(prober.run)


#: Path parameters of which any text is an existing object: an empty project, a server without
#: deployments, the rest of a redirected path. `digest` and `path` are those of files.
NOT_MISSING = frozenset({"project", "server", "rest", "digest", "path"})


async def test_every_object_that_does_not_exist_is_not_found_with_place_and_remedy(
    probing: tuple[Prober, PopulatedProject],
) -> None:
    """For each object in the path of each route, by an ID and by a name. `message` is Heat's
    sentence where it has one."""
    prober, target = probing
    wrong, tried = [], 0
    for route in routes():
        if route.path.startswith(BY_TOKEN):
            continue  # an unknown object is a wrong token
        for name in set(path_parameters(route)) - NOT_MISSING:
            for value in (str(UUID(int=9)), "nope"):
                path = target.path(route, **{name: value})
                body: Json = next(
                    (one for end, one in VALID_BODIES.items() if path.endswith(end)), {}
                )
                more = {"json": body} if route.takes_body else {}
                status, text = await prober.send(route.method, path, **more)
                if status == 400:
                    # The body is checked first.
                    assert route.takes_body, (route.method, route.path, text)
                    continue
                assert status == 404, (route.method, route.path, name, status, text)
                error = json.loads(text)["error"]
                (finding,) = error["findings"]
                if not (finding["place"] and finding["reason"] and finding["remedy"]):
                    wrong.append((route.method, route.path, name, finding))
                if finding["reason"].startswith("The "):
                    assert error["message"] == finding["reason"]
                tried += 1
    assert wrong == []
    assert tried > 100


async def test_projects_are_isolated(probing: tuple[Prober, PopulatedProject]) -> None:
    prober, target = probing
    before = await stored(prober.run)
    ids = {key: value for key, value in target.path_values.items() if len(value) == 36}
    tried = 0
    for route in routes():
        names = set(path_parameters(route)) - {"project"}
        if "{project}" not in route.path or not names & ({*ids} | {"name", "key", "resource"}):
            continue
        path = target.path(route, project="q")
        body: Json = next((one for end, one in VALID_BODIES.items() if path.endswith(end)), {})
        status, text = await prober.send(
            route.method, path, json=body if route.takes_body else None
        )
        assert status == 404, (route.method, path, text)
        # A response may repeat IDs of the request, and no others.
        repeated = [key for key, value in ids.items() if value in text and value not in path]
        assert not repeated, (path, text)
        tried += 1
    assert tried > 40
    assert await stored(prober.run) == before
    await check_waiting_stack(prober.run)


async def test_parts_of_a_stack_are_not_found_below_another(
    probing: tuple[Prober, PopulatedProject],
) -> None:
    """Parts of a stack below the path of another stack of the project."""
    prober, target = probing
    project = f"/v1/{target.path_values['project']}"
    at = {"name": "done", "id": target.path_values["done"]}
    for path, method in (("/breakpoints/{breakpoint}", "DELETE"), ("/resources/b", "GET")):
        end = path.format(**target.path_values)
        status, _ = await prober.send(method, f"{project}/stacks/{at['name']}/{at['id']}{end}")
        assert status == 404
    held = f"{project}/stacks/held/{target.path_values['id']}"
    for end in ("/snapshots/{snapshot}", "/resources/a/events/{event}"):
        status, _ = await prober.send("GET", held + end.format(**target.path_values))
        assert status == 404
    status, _ = await prober.send("GET", f"{project}/stacks/done/{target.path_values['id']}")
    assert status == 404
    await check_waiting_stack(prober.run)


HEADERS = ("X-Auth-User", "X-Auth-Token", "X-Roles", "Idempotency-Key", "X-Headgate-Credential",
           "Last-Event-ID", "Content-Encoding", "Authorization", "Cookie")  # fmt: skip


async def test_headers_that_are_not_text_and_invalid_hosts(
    probing: tuple[Prober, PopulatedProject],
) -> None:
    prober, target = probing
    hook, url = target.path_values["hook"], prober.run.url
    project = f"/v1/{target.path_values['project']}"
    for line in (
        f"POST {project}/stacks", f"POST /hooks/{hook}/signal", f"GET {project}/events/stream"
    ):  # fmt: skip
        for name in HEADERS:
            odd = f"{name}: ".encode() + b"Bearer \xff"
            [(status, response)] = await exchange(url, request(line, odd, "Connection: close"))
            assert status == 400 and name in str(response), (line, name, response)
    for host in ("a b", '"><script>', "a/b", "a:999999", "[::", "", "a@b", "é"):
        sent = request(f"GET {project}/stacks/held", f"Host: {host}", "Connection: close")
        [(status, response)] = await exchange(url, sent)
        assert status == 400 and "Host" in response["error"]["message"], (host, response)
    for host in ("localhost", "a_b.localhost:80", "[::1]:8004", "127.0.0.1"):
        sent = request(f"GET {project}/stacks/held", f"Host: {host}", "Connection: close")
        [(status, response)] = await exchange(url, sent)
        assert status == 302 and response["message"].startswith(f"http://{host}/v1/")
    await check_waiting_stack(prober.run)
