"""The inbox of an operator of all projects: the hooks of all projects, also of several cells."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from engine.store.fault_points import MOVE_POINTS
from tests.integration.api.test_access import bearer, run_with_tokens, token
from tests.integration.database.test_project_moves import IN_A, IN_B, OTHER_IN_A, TwoCells, served
from tests.integration.database.test_reads_of_moving_projects import move_until, short_notice
from tests.support.cells import (
    api_of,
    cell,
    engine_of,
    of_project,
    projects_of,
    running_node,
    url_of,
)
from tests.support.postgres import TestServer
from tests.support.program import Http, program, resource
from tests.support.receiver import running_receiver

Json = Any
ALL = "/hooks?global_tenant=true"
HOOKED = {"web": resource(hooks=[{"on": "pre-create"}])}
__all__ = ["short_notice"]


@pytest.fixture
async def urls(postgres: TestServer) -> AsyncIterator[list[str]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(postgres.new_database()) for _ in range(2)]


async def wait_at_hook(http: Http, project: str, name: str, resources: Json = HOOKED) -> str:
    """Create a stack that waits at a hook; the ID of the hook."""
    client = of_project(http, quote(project, safe=""))
    await client.create(name, resources)
    (hook,) = await client.waiting_hooks(name)
    return str(hook["id"])


async def read_pages(http: Http, limit: int = 1, query: str = "") -> list[Json]:
    """The hooks of all pages of this size."""
    found: list[Json] = []
    path = f"{ALL}{query}&limit={limit}"
    while path:
        status, page = await http.call("GET", path)
        assert status == 200, page
        assert "warnings" not in page
        assert len(page["hooks"]) <= limit
        found += page["hooks"]
        path = f"{ALL}{query}&limit={limit}&marker={page['next']}" if page["next"] else ""
    return found


async def answer_at_url(http: Http, hook: Json) -> tuple[int, Json]:
    """Send an answer to the URL in the list."""
    body = {"decision": "continue", "reason": "", "digest": hook["digest"]}
    return await http.call("POST", f"/{urlsplit(hook['answer_url']).path}", body)


async def test_hooks_of_all_projects_have_filters_pages_and_urls(database_url: str) -> None:
    async with program(database_url) as run:
        projects = ("p", "q", "team a/b", "z")
        for number, project in enumerate(projects):
            await wait_at_hook(run, project, f"s{number}")
        other = {"db": resource(hooks=[{"on": "pre-create", "answer_by": ["user:ada"]}])}
        await wait_at_hook(run, "q", "last", other)
        listed: list[Json] = []
        for limit in (1, 2, 3, 10):
            listed = await read_pages(run, limit)
            assert [one["project"] for one in listed] == [*projects, "q"], limit
        status, own = await run.call("GET", "/hooks")
        assert [one["id"] for one in own["hooks"]] == [listed[0]["id"]]
        assert "project" not in own["hooks"][0]

        async def paths(query: str) -> list[str]:
            return [f"{one['project']}:{one['path']}" for one in await read_pages(run, 2, query)]

        assert await paths("&path=db") == ["q:db"]
        assert await paths("&point=pre-delete") == await paths("&state=answered") == []
        assert await paths("&dry=true") == await paths("&older=1h") == []
        assert await paths("&mine=true&point=pre-*") == [f"{one}:web" for one in projects]
        # The URL leads to the project of the hook.
        status, answered = await answer_at_url(run, listed[2])
        assert (status, answered["state"]) == (200, "answered"), answered
        assert (
            await of_project(run, quote("team a/b", safe="")).until_ended("s2") == "CREATE_COMPLETE"
        )
        assert await paths("&state=waiting") == ["p:web", "q:web", "z:web", "q:db"]
        assert await paths("&state=answered") == ["team a/b:web"]
        status, refused = await run.call("GET", f"{ALL}&stack=s1")
        assert (status, refused["error"]["findings"][0]["place"]) == (400, "stack")
        assert "cannot be those of one stack" in refused["error"]["message"]
        unknown = await run.call("GET", f"{ALL}&marker=00000000-0000-4000-8000-000000000000")
        assert unknown == (200, {"hooks": [], "next": None})


async def test_hooks_of_all_projects_require_a_role_in_all(database_url: str) -> None:
    async with run_with_tokens(database_url) as (run, admin):
        headers = bearer(await token(run, admin, "local", "admin"))
        status, refused = await run.call("GET", ALL, headers=headers)
        assert (status, refused["error"]["type"]) == (403, "Forbidden")
        assert "hooks:global_index" in refused["error"]["message"]
        # A role in every project is enough to list, and not to answer.
        reader = bearer(await token(run, admin, "auditor", "reader", everywhere=True))
        created = {"stack_name": "s", "template": {
            "heat_template_version": "2026-12-01", "resources": HOOKED}}  # fmt: skip
        status, response = await run.call("POST", "/stacks", created, headers=admin)
        assert status == 201, response
        for who, expected in ((reader, 403), (admin, 200)):
            hooks: list[Json] = []
            while not hooks:
                status, page = await run.call("GET", ALL, headers=who)
                hooks = page["hooks"]
            path = f"/hooks/{hooks[0]['id']}/signal"
            body = {"decision": "continue", "digest": hooks[0]["digest"]}
            assert (await run.call("POST", path, body, headers=who))[0] == expected


async def test_hooks_of_all_projects_merge_the_pages_of_the_cells(urls: list[str]) -> None:
    projects = projects_of("ab", 2)
    order = [("a", 0), ("b", 0), ("b", 1), ("a", 1), ("b", 0), ("a", 0)]
    async with (
        engine_of(urls[0]),
        engine_of(urls[1]),
        api_of([cell("a", urls[0]), cell("b", urls[1])]) as http,
    ):
        for number, (name, nth) in enumerate(order):
            await wait_at_hook(http, projects[name][nth], f"s{number}")
        expected = [(projects[name][nth], f"s{number}") for number, (name, nth) in enumerate(order)]
        listed: list[Json] = []
        for project in (projects["a"][0], projects["b"][1]):
            for limit in (1, 2, 4, 6, 7):
                listed = await read_pages(of_project(http, project), limit)
                assert [(one["project"], one["stack_name"]) for one in listed] == expected, limit
        for hook in listed:
            assert (await answer_at_url(http, hook))[0] == 200
        for project, name in expected:
            assert await of_project(http, project).until_ended(name) == "CREATE_COMPLETE"
        waiting = await read_pages(of_project(http, projects["a"][0]), 2, "&state=waiting")
        assert waiting == []


async def test_a_cell_that_is_away_is_named(urls: list[str]) -> None:
    in_a, in_b = (of[0] for of in projects_of("ab").values())
    async with running_node("b") as node:
        databases = [cell("a", urls[0]), cell("b", url_of(node))]
        async with engine_of(urls[0]), engine_of(url_of(node)), api_of(databases) as http:
            first = await wait_at_hook(http, in_a, "one")
            second = await wait_at_hook(http, in_b, "two")
            client = of_project(http, in_a)
            assert [one["id"] for one in await read_pages(client)] == [first, second]
            node.kill()
            status, page = await client.call("GET", ALL)
            assert status == 200, page
            assert [one["id"] for one in page["hooks"]] == [first]
            (warning,) = page["warnings"]
            assert warning["code"] == "CellUnavailable"
            assert "lacks hooks of these cells, which are not available: b" in warning["message"]
            # The position of this marker is not known now.
            status, refused = await client.call("GET", f"{ALL}&marker={second}")
            assert (status, refused["error"]["type"]) == (503, "CellUnavailable")


async def test_hooks_of_all_projects_are_listed_once_in_every_step_of_a_move(
    urls: list[str], short_notice: None
) -> None:
    async with running_receiver() as receiver, served(urls, receiver) as cells:
        await check_every_step(cells)


async def check_every_step(cells: TwoCells) -> None:
    http = cells.http
    expected = [
        await wait_at_hook(http, project, name)
        for project, name in ((IN_A, "a1"), (IN_B, "b1"), (OTHER_IN_A, "o1"), (IN_A, "a2"))
    ]
    for point in MOVE_POINTS:
        await move_until(cells, point)
        for project in (IN_A, IN_B):
            listed = await read_pages(of_project(http, project))
            assert [one["id"] for one in listed] == expected, point
