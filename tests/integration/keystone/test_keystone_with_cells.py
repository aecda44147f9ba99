"""Tokens of a real Keystone on a server with two cells."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from engine.store.fault_points import MOVE_POINTS, InjectedFault, inject_fault
from hub.cli.commands import project_move
from hub.cli.commands.project_move import move_project
from tests.support.cells import (
    api_of,
    cell,
    cells_settings,
    of_project,
    running_node,
    url_of,
)
from tests.support.keystone import PASSWORD, Keystone, Project
from tests.support.postgres import TestServer
from tests.support.program import Http, eventually
from tests.support.replication import PostgresNode

Json = Any
STACK = {"stack_name": "s", "template": {"heat_template_version": "2021-04-16"}}


@dataclass(frozen=True)
class KeystoneCells:
    """first, second: projects, one in each cell. Each has users named by their role."""

    http: Http
    keystone: Keystone
    node: PostgresNode
    databases: list[Json]
    settings: dict[str, Json]
    first: Project
    second: Project

    async def token(self, user: str, project: Project) -> dict[str, str]:
        return {"X-Auth-Token": await self.keystone.token(f"{user}-{project.name}", project.name)}

    async def call(
        self, headers: dict[str, str], project: Project, path: str = "/stacks",
        method: str = "GET", body: Json = None,
    ) -> tuple[int, Json]:  # fmt: skip
        return await of_project(self.http, project.id).call(method, path, body, headers=headers)

    async def statuses(self, headers: dict[str, str], path: str = "/stacks") -> list[int]:
        """In both projects."""
        return [(await self.call(headers, one, path))[0] for one in (self.first, self.second)]

    async def create(self, headers: dict[str, str], project: Project) -> int:
        return (await self.call(headers, project, method="POST", body=STACK))[0]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def projects(keystone: Keystone) -> tuple[Project, Project, Project]:
    """Two with users, and the one of the operators."""
    number = uuid4().hex[:6]
    names = (f"first-{number}", f"second-{number}", f"service-{number}")
    first, second, service = [await keystone.project(name) for name in names]
    for project in (first, second):
        for role in ("reader", "member"):
            await keystone.user(f"{role}-{project.name}", project, [role])
    await keystone.user(f"admin-{service.name}", service, ["admin"])
    return first, second, service


@pytest.fixture
async def cells(
    postgres: TestServer, keystone: Keystone, projects: tuple[Project, Project, Project]
) -> AsyncIterator[KeystoneCells]:
    """The second cell is a server of its own."""
    first, second, service = projects
    settings = {
        "auth.mode": "keystone",
        "auth.keystone.url": keystone.url,
        "auth.keystone.username": f"admin-{service.name}",
        "auth.keystone.password": PASSWORD,
        "auth.keystone.project": service.name,
        "auth.keystone.operator_project": service.id,
    }
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(postgres.new_database())
        node = await stack.enter_async_context(running_node("b"))
        databases = [
            cell("a", url, projects=[first.id]),
            cell("b", url_of(node), projects=[second.id]),
        ]
        http = await stack.enter_async_context(api_of(databases, settings))
        yield KeystoneCells(http, keystone, node, databases, settings, first, second)


async def test_tokens_have_their_rights_in_the_cell_of_their_project(cells: KeystoneCells) -> None:
    """Those of operators have them in all cells, also in a browser."""
    for project, other in ((cells.first, cells.second), (cells.second, cells.first)):
        member = await cells.token("member", project)
        reader = await cells.token("reader", project)
        assert await cells.create(reader, project) == 403
        assert await cells.create(member, project) == 201
        assert await cells.create(member, other) == 403
        status, page = await cells.call(reader, project)
        assert (status, [one["stack_name"] for one in page["stacks"]]) == (200, ["s"])
    assert await cells.statuses({"X-Auth-Token": "gAAAAA" + "b" * 200}) == [401, 401]

    service = Project(cells.settings["auth.keystone.operator_project"],
                      cells.settings["auth.keystone.project"])  # fmt: skip
    operator = await cells.token("admin", service)
    assert await cells.statuses(operator) == [200, 200]
    _, page = await cells.call(operator, cells.first, "/stacks?global_tenant=true")
    projects = {one["project"] for one in page["stacks"]}
    assert projects == {cells.first.id, cells.second.id}
    session = f"{cells.http.url}/v1/{cells.first.id}/session"
    sent = {"token": operator["X-Auth-Token"]}
    async with cells.http.session.post(session, json=sent) as answer:
        assert answer.status == 201, await answer.text()
        cookie = {"Cookie": f"headgate_session={answer.cookies['headgate_session'].value}"}
    cells.http.session.cookie_jar.clear()
    assert await cells.statuses(cookie) == [200, 200]
    await cells.keystone.revoke(operator["X-Auth-Token"])


async def test_a_project_moves_with_its_users(
    cells: KeystoneCells, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_move, "NOTICE_TIME", 0.0)
    monkeypatch.setattr("hub.program.cells.project_moves.MAX_AGE", 0.0)
    member = await cells.token("member", cells.first)
    assert await cells.create(member, cells.first) == 201
    settings = cells_settings(cells.databases, cells.settings)
    for point in MOVE_POINTS:
        with inject_fault(f"{point}:1:raise"), pytest.raises(InjectedFault):
            await move_project(
                settings, cells.first.id, "b", undo=False, wait=5, report=lambda _: None
            )
        if point == "move.taken":  # a token that no cell has cached
            member = await cells.token("member", cells.first)
        status, page = await cells.call(member, cells.first)
        assert (status, len(page["stacks"])) == (200, 1), point
    body = {**STACK, "stack_name": "new"}

    async def creates() -> bool:
        return (await cells.call(member, cells.first, method="POST", body=body))[0] == 201

    await eventually(creates)
    other = await cells.token("member", cells.second)
    assert (await cells.call(other, cells.first))[0] == 403


async def test_a_cell_that_is_away_refuses_no_token(cells: KeystoneCells) -> None:
    first, second = [await cells.token("member", one) for one in (cells.first, cells.second)]
    assert [await cells.create(first, cells.first), await cells.create(second, cells.second)] == [
        201, 201
    ]  # fmt: skip
    cells.node.kill()
    url = f"{cells.http.url}/v1/{cells.second.id}/stacks"
    async with cells.http.session.get(url, headers=second) as answer:
        assert (answer.status, "Retry-After" in answer.headers) == (503, True)
        assert (await answer.json())["error"]["type"] == "CellUnavailable"
    assert (await cells.call(first, cells.first))[0] == 200
    await cells.node.start()

    async def is_back() -> bool:
        return (await cells.call(second, cells.second))[0] == 200

    await eventually(is_back)
