"""Mode tokens with cells: a token of a project is in the cell of the project, and one that is valid
in every project is in all cells."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

import asyncpg
import pytest
from structlog.testing import capture_logs

from engine.cells import CellPlacement
from engine.errors import Conflict
from engine.store.access import token_copies, tokens
from engine.store.access.token_copies import (
    CellDifference,
    InCell,
    TokenState,
    on_connection,
    read_shared,
    share_tokens,
)
from engine.store.access.tokens import EVERYWHERE
from engine.store.connection import Connection, connect
from engine.store.database_errors import PROJECT_MOVED
from engine.store.fault_points import MOVE_POINTS, InjectedFault, inject_fault
from engine.store.maintenance.retention import purge
from engine.store.projects.cells import has_project, identify_cell
from hub.api import admission
from hub.api.cells import Cell, unavailable
from hub.checks.doctor import run_checks
from hub.cli.commands import project_move
from hub.cli.commands.project_move import move_project
from hub.cli.commands.token_creation import create_token
from hub.program.cells.served_cells import ServedCells
from hub.program.cells.token_sharing import TOKENS_TIMEOUT, TokenSharing
from tests.integration.api.test_access import PASSWORD, basic, bearer
from tests.support.admin_command import run_admin
from tests.support.cells import (
    api_of,
    cell,
    cells_settings,
    engine_of,
    new_token,
    of_project,
    projects_of,
    url_of,
    write_api_settings,
)
from tests.support.page_commands import page_command
from tests.support.program import PATIENCE, Http, eventually, resource, template
from tests.support.receiver import running_receiver, until
from tests.support.replication import PostgresNode

Json = Any
pytestmark = pytest.mark.usefixtures("cheap_hashes")
MODE = {"auth.mode": "tokens"}
IN_A, IN_B = (of[0] for of in projects_of("ab").values())
OTHER_IN_A = projects_of("ab", 2)["a"][1]
#: Statements that wait for a lock in this database.
WAITING = """
select count(*) from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock'
"""
T = TypeVar("T")


@dataclass(frozen=True)
class Cells:
    """http: the API. root: headers of an admin of every project."""

    urls: list[str]
    http: Http
    root: dict[str, str]

    @property
    def databases(self) -> list[Json]:
        return [cell(name, url) for name, url in zip("ab", self.urls, strict=False)]

    async def call(
        self, headers: Mapping[str, str], project: str, path: str = "/stacks", method: str = "GET",
        body: Json = None,
    ) -> int:  # fmt: skip
        return (await self.answer(headers, project, path, method, body))[0]

    async def answer(
        self, headers: Mapping[str, str], project: str, path: str, method: str = "GET",
        body: Json = None,
    ) -> tuple[int, Json]:  # fmt: skip
        return await of_project(self.http, project).call(method, path, body, headers=headers)

    async def create(
        self, project: str, name: str = "ann", role: str = "admin", **body: Json
    ) -> tuple[str, dict[str, str]]:
        """The ID of a new token, and headers with it."""
        sent = {"name": name, "roles": [role], **body}
        status, created = await self.answer(self.root, project, "/tokens", "POST", sent)
        assert status == 201, created
        return created["id"], bearer(created["token"]) if created["token"] else {}

    async def revoke(self, project: str, token_id: str, query: str = "") -> int:
        return await self.call(self.root, project, f"/tokens/{token_id}{query}", "DELETE")

    async def move(self) -> None:
        settings = cells_settings(self.databases, MODE)
        await move_project(settings, IN_A, "b", undo=False, wait=5, report=lambda _: None)


async def insert(url: str, project: str, name: str = "root", **more: Json) -> dict[str, str]:
    """A token that is created in one database; headers with it."""
    record, token = new_token(project, name, **more)
    conn = await connect(url)
    try:
        await tokens.create(conn, record)
    finally:
        await conn.close()
    return bearer(token or "")


@pytest.fixture
async def cells(urls: list[str]) -> AsyncIterator[Cells]:
    databases = [cell(name, url) for name, url in zip("ab", urls, strict=False)]
    async with api_of(databases, MODE) as http:
        settings = cells_settings(databases, MODE)
        record, token = new_token(EVERYWHERE)
        await create_token(settings, record)
        yield Cells(urls, http, bearer(token or ""))


async def test_a_token_is_accepted_in_its_project_or_in_all(cells: Cells) -> None:
    _, ann = await cells.create(IN_A)
    assert await cells.call(ann, IN_A) == 200
    assert await cells.call(ann, OTHER_IN_A) == 403
    assert await cells.call(ann, IN_B) == 401
    token_id, eve = await cells.create(IN_B, "eve", everywhere=True)
    for project in (IN_A, IN_B):
        assert await cells.call(eve, project) == 200
        _, found = await cells.answer(cells.root, project, "/tokens?everywhere=true")
        assert [one["name"] for one in found["tokens"]] == ["root", "eve"]
    assert await cells.call(eve, IN_A, "//metrics") == 200
    status, page = await cells.answer(eve, IN_A, "/stacks?global_tenant=true")
    assert (status, page["stacks"]) == (200, [])
    # Revoked in the other cell, at once.
    assert await cells.revoke(IN_A, token_id, "?everywhere=true") == 204
    assert [await cells.call(eve, one) for one in (IN_A, IN_B)] == [401, 401]
    assert await cells.call(cells.root, IN_B) == 200


async def test_a_browser_that_signs_in_with_a_token_is_signed_in_to_all_cells(cells: Cells) -> None:
    """Until the token is revoked."""
    token_id, eve = await cells.create(IN_A, "eve", everywhere=True)
    session = f"{cells.http.url}/v1/{IN_A}/session"
    token = eve["Authorization"].removeprefix("Bearer ")
    async with cells.http.session.post(session, json={"token": token}) as answer:
        assert answer.status == 201, await answer.text()
        sent = {"Cookie": f"headgate_session={answer.cookies['headgate_session'].value}"}
    cells.http.session.cookie_jar.clear()
    assert [await cells.call(sent, one) for one in (IN_A, IN_B)] == [200, 200]
    assert await cells.revoke(IN_B, token_id, "?everywhere=true") == 204
    assert [await cells.call(sent, one) for one in (IN_A, IN_B)] == [401, 401]


async def test_tokens_that_were_created_in_one_database_come_to_all_cells(cells: Cells) -> None:
    """For example by `headgate admin create-token` with the settings of an engine; also to a cell
    that is added, which gets the times of the last use, too."""
    eve = await insert(cells.urls[0], EVERYWHERE, "eve")
    assert [await cells.call(one, IN_A) for one in (eve, cells.root)] == [200, 200]
    await eventually(lambda: _is(200, cells, eve, IN_B))
    databases = [*cells.databases, cell("c", cells.urls[2])]
    conn = await connect(cells.urls[2])
    try:
        async with api_of(databases, MODE, revision=2):
            found = await read_shared(conn)
        assert len(found) == 2
        assert [one.used_at is None for one in found.values()] == [False, False]
    finally:
        await conn.close()


async def _is(status: int, cells: Cells, headers: Mapping[str, str], project: str) -> bool:
    return await cells.call(headers, project) == status


async def test_doctor_compares_the_tokens_of_the_cells(urls: list[str]) -> None:
    databases = [cell("a", urls[0]), cell("b", urls[1])]

    async def result() -> tuple[str, str]:
        found = await run_checks(cells_settings(databases, MODE), None)
        return next((one.state, one.reason) for one in found if one.check == "tokens")

    async with api_of(databases, MODE):
        pass
    assert await result() == ("ok", "2 cells have the same tokens of every project")
    await insert(urls[0], EVERYWHERE)
    state, reason = await result()
    assert (state, reason.rpartition(": ")[2]) == ("warning", "b")
    async with api_of(databases, MODE):
        assert (await result())[0] == "ok"


async def test_a_subscription_answers_with_the_roles_of_a_token_of_every_project(
    cells: Cells,
) -> None:
    """Also if the token was created in another cell; until it is revoked."""
    token_id, eve = await cells.create(IN_A, "eve", everywhere=True)
    http = of_project(cells.http, IN_B)
    async with running_receiver() as receiver, engine_of(cells.urls[1], http.url, **MODE):
        subscription = {"channel": "webhook", "target": receiver.url,
                        "events": ["headgate.hook.waiting"]}  # fmt: skip
        assert await cells.call(eve, IN_B, "/subscriptions", "POST", subscription) == 201
        hooked = {"web": resource(hooks=[{"on": "pre-create"}])}
        body = {"stack_name": "s", "template": template(hooked)}
        assert await cells.call(cells.root, IN_B, "/stacks", "POST", body) == 201
        await until(lambda: len(receiver.events) == 1)
        sent = receiver.events[0]["data"]
        answered = []
        for revoked in (True, False):
            if not revoked:
                path = f"/tokens/{token_id}?everywhere=true"
                assert await cells.call(cells.root, IN_A, path, "DELETE") == 204
            headers, decision = bearer(sent["token"]), {"decision": "progress", "reason": "x"}
            async with http.session.post(
                sent["signal_url"], json=decision, headers=headers
            ) as answer:
                answered.append(answer.status)
        assert answered == [200, 403]


async def test_a_stream_stays_open_when_the_former_cell_deletes_the_tokens(
    cells: Cells, no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it checks its token before it continues in the new cell."""
    monkeypatch.setattr(admission, "MOVE_INTERVAL", 2.0)
    _, ann = await cells.create(IN_A)
    url, conn = f"{cells.http.url}/v1/{IN_A}/events/stream", await connect(cells.urls[0])
    try:
        async with cells.http.session.get(url, headers=ann) as stream:
            assert await stream.content.readline() == b": connected\n"
            await cells.move()
            await conn.execute(tokens.NOTIFY)
            assert await cells.call(ann, IN_A) == 200  # which notices the move
            body = {"stack_name": "s", "template": template({})}
            assert await cells.call(ann, IN_A, "/stacks", "POST", body) == 201
            async with engine_of(cells.urls[1], **MODE), asyncio.timeout(PATIENCE):
                while b"headgate.stack.create" not in (line := await stream.content.readline()):
                    assert line, "the stream has ended"
    finally:
        await conn.close()


async def test_a_cell_that_was_away_serves_no_request_before_it_has_the_tokens(
    urls: list[str], node: PostgresNode
) -> None:
    """A token that was revoked meanwhile is not accepted for a moment, and a new one not refused.
    The tokens of the cell that is away are neither accepted nor refused."""
    databases = [cell("a", urls[0]), cell("b", url_of(node))]
    root = await insert(urls[0], EVERYWHERE)
    async with api_of(databases, MODE | {"auth.failures": 1000}) as http:
        cells = Cells([urls[0], url_of(node)], http, root)
        token_id, revoked = await cells.create(IN_A, "eve", everywhere=True)
        _, in_b = await cells.create(IN_B)
        assert await cells.call(revoked, IN_B) == 200
        node.kill()
        await until(lambda: _is(503, cells, in_b, IN_B))
        assert await cells.revoke(IN_A, token_id, "?everywhere=true") == 204
        _, new = await cells.create(IN_A, "new", everywhere=True)
        assert await cells.call(new, IN_A) == 200
        async with http.session.get(f"{http.url}/v1/{IN_B}/stacks", headers=new) as answer:
            assert (answer.status, bool(answer.headers["Retry-After"])) == (503, True)
        await node.start()

        async def statuses() -> tuple[int, int]:
            return await cells.call(revoked, IN_B), await cells.call(new, IN_B)

        seen: list[tuple[int, int]] = []

        async def is_back() -> bool:
            seen.append(await statuses())
            return seen[-1] == (401, 200)

        await eventually(is_back)
        assert {one for one, _ in seen} == {503, 401}
        assert {one for _, one in seen} == {503, 200}
        assert await cells.call(in_b, IN_B) == 200


@pytest.fixture
def no_sharing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens come to the cells with their availability and with changes only."""

    async def wait(cells: ServedCells) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(ServedCells, "keep_tokens_shared", wait)
    monkeypatch.setattr("hub.program.cells.cell_connection.PROBE_INTERVAL", 0.05)


async def test_cells_that_become_available_at_the_same_time_are_compared(
    urls: list[str], no_sharing: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before they serve requests: a token that was revoked in one of them is not accepted."""
    share, together, met = TokenSharing.compare, asyncio.Barrier(2), list[str]()

    async def share_together(sharing: TokenSharing, *reachable: Cell) -> Sequence[str]:
        if reachable[-1].name not in met:
            met.append(reachable[-1].name)
            await together.wait()
        return await share(sharing, *reachable)

    record, token = new_token(EVERYWHERE)
    for url in urls[:2]:
        conn = await connect(url)
        try:
            await tokens.create(conn, record)
            if url == urls[1]:
                await tokens.revoke(conn, EVERYWHERE, record.id, "a test")
        finally:
            await conn.close()
    monkeypatch.setattr(TokenSharing, "compare", share_together)
    async with api_of([cell("a", urls[0]), cell("b", urls[1])], MODE) as http:
        cells = Cells(urls, http, {})
        sent = bearer(token or "")
        assert [await cells.call(sent, one) for one in (IN_A, IN_B)] == [401, 401]


async def revoke_in(url: str, token_id: str) -> None:
    """As another process does."""
    conn = await connect(url)
    try:
        await tokens.revoke(conn, EVERYWHERE, UUID(token_id), "another process")
    finally:
        await conn.close()


@pytest.mark.parametrize("by_another_process", [False, True])
async def test_a_cell_that_returns_knows_what_was_revoked_meanwhile(
    urls: list[str], no_sharing: None, monkeypatch: pytest.MonkeyPatch, by_another_process: bool
) -> None:
    """After the tokens of the cells were read, and before the cell serves requests."""
    share, served = TokenSharing.compare, list[TokenSharing]()
    revoke: list[Callable[[], Awaitable[None]]] = []

    async def revoke_after(sharing: TokenSharing, *reachable: Cell) -> Sequence[str]:
        served.append(sharing)
        failed = await share(sharing, *reachable)
        if revoke and len(reachable) > len(sharing.cells.reachable()):
            await revoke.pop()()
        return failed

    monkeypatch.setattr(TokenSharing, "compare", revoke_after)
    root = await insert(urls[0], EVERYWHERE)
    async with api_of([cell("a", urls[0]), cell("b", urls[1])], MODE) as http:
        cells = Cells(urls, http, root)
        token_id, eve = await cells.create(IN_A, "eve", everywhere=True)
        assert [await cells.call(eve, one) for one in (IN_A, IN_B)] == [200, 200]

        async def revoke_eve() -> None:
            if by_another_process:
                await revoke_in(urls[0], token_id)
                await eventually(lambda: _is(401, cells, eve, IN_A))
            else:
                assert await cells.revoke(IN_A, token_id, "?everywhere=true") == 204

        revoke.append(revoke_eve)
        served[0].cells.states["b"].record(unavailable(["b"]))
        await eventually(lambda: _is(200, cells, root, IN_B))
        assert not revoke
        assert await cells.call(eve, IN_B) == 401


@pytest.mark.parametrize("limit", [TOKENS_TIMEOUT, 0.0])
async def test_a_cell_that_returns_waits_for_the_tokens_of_the_others(
    urls: list[str], no_sharing: None, monkeypatch: pytest.MonkeyPatch, limit: float
) -> None:
    """If one does not respond in time: for a limited time."""
    share, served, late = TokenSharing.compare, list[TokenSharing](), list[str]()

    async def read_late(sharing: TokenSharing, *reachable: Cell) -> Sequence[str]:
        served.append(sharing)
        if late and len(reachable) > len(sharing.cells.reachable()):
            conn = await connect(urls[0])
            try:
                async with conn.transaction():
                    await conn.execute("lock table token")
                    failed = await share(sharing, *reachable)
            finally:
                await conn.close()
            assert failed == [late.pop()]
            return failed
        return await share(sharing, *reachable)

    monkeypatch.setattr(TokenSharing, "compare", read_late)
    monkeypatch.setattr("hub.program.cells.cell_states.READ_TIMEOUT", 1.0)
    root = await insert(urls[0], EVERYWHERE)
    async with api_of([cell("a", urls[0]), cell("b", urls[1])], MODE) as http:
        cells = Cells(urls, http, root)
        token_id, eve = await cells.create(IN_A, "eve", everywhere=True)
        assert await cells.call(eve, IN_B) == 200
        monkeypatch.setattr("hub.program.cells.token_sharing.TOKENS_TIMEOUT", limit)
        with capture_logs() as logs:
            served[0].cells.states["b"].record(unavailable(["b"]))
            late.append("a")
            await revoke_in(urls[0], token_id)
            await eventually(lambda: _is(200, cells, root, IN_B))
        assert not late
        assert await cells.call(eve, IN_B) == (401 if limit else 200)
        found = [one["not_read"] for one in logs if one["event"] == "cell.tokens_incomplete"]
        assert found == ([] if limit else [["a"]])


@pytest.fixture
def no_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    """All processes read the moves for each response, so that none has to be waited for."""
    monkeypatch.setattr(project_move, "NOTICE_TIME", 0.0)
    monkeypatch.setattr("hub.program.cells.project_moves.MAX_AGE", 0.0)


async def test_tokens_move_with_their_project(cells: Cells, no_notice: None) -> None:
    """Reads are authenticated in each step, also if the command was interrupted."""
    _, ann = await cells.create(IN_A)
    revoked_id, revoked = await cells.create(IN_A, "revoked")
    assert await cells.revoke(IN_A, revoked_id) == 204
    await cells.create(IN_A, "bob", password=PASSWORD)
    bob = basic("bob", PASSWORD)
    assert await cells.call(ann, IN_A) == 200
    path = "/tokens?all=true"
    _, before = await cells.answer(cells.root, IN_A, path)
    for point in MOVE_POINTS:
        with inject_fault(f"{point}:1:raise"), pytest.raises(InjectedFault):
            await cells.move()
        assert [await cells.call(one, IN_A) for one in (ann, bob, revoked)] == [200, 200, 401]
        _, after = await cells.answer(ann, IN_A, path)
        assert _without_use(after) == _without_use(before)
    with pytest.raises(Conflict, match="already in the cell"):
        await cells.move()
    assert await cells.revoke(IN_A, before["tokens"][0]["id"]) == 204
    await eventually(lambda: _is(401, cells, ann, IN_A))
    conn = await connect(cells.urls[0])
    try:
        assert await tokens.list_tokens(conn, IN_A, all_tokens=True) == []
    finally:
        await conn.close()


def _without_use(page: Json) -> list[Json]:
    return [{**one, "used_at": None} for one in page["tokens"]]


async def test_a_read_that_finds_the_tokens_deleted_is_served_again(
    cells: Cells, no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project moves between the choice of its cell and the authentication."""
    _, ann = await cells.create(IN_A)
    admit, moved = admission._admit_to, False

    async def move_before(*args: Json) -> None:
        nonlocal moved
        if not moved:
            moved = True
            await cells.move()
        await admit(*args)

    monkeypatch.setattr(admission, "_admit_to", move_before)
    assert await cells.call(ann, IN_A) == 200


async def test_a_change_that_finds_the_tokens_deleted_is_to_be_sent_again(
    cells: Cells, no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, ann = await cells.create(IN_A)
    admit, moved = admission._admit_to, False

    async def move_before(*args: Json) -> None:
        nonlocal moved
        if not moved:
            moved = True
            await cells.move()
            await eventually(lambda: _is_noticed(cells, ann))
        await admit(*args)

    monkeypatch.setattr(admission, "_admit_to", move_before)
    body = {"stack_name": "s", "template": {"heat_template_version": "2021-04-16"}}
    status, refused = await cells.answer(ann, IN_A, "/stacks", "POST", body)
    assert (status, refused["error"]["type"]) == (503, "ProjectMoving")
    assert await cells.call(ann, IN_A, "/stacks", "POST", body) == 201


async def _is_noticed(cells: Cells, headers: Mapping[str, str]) -> bool:
    return await cells.call(headers, IN_A) == 200


async def test_the_database_refuses_to_revoke_tokens_of_a_project_that_has_left(
    cells: Cells, no_notice: None
) -> None:
    """The revocation would be lost with the rows. Another change of the row is harmless."""
    token_id, _ = await cells.create(IN_A)
    with inject_fault("move.taken:1:raise"), pytest.raises(InjectedFault):
        await cells.move()
    conn = await connect(cells.urls[0])
    try:
        with pytest.raises(asyncpg.PostgresError) as caught:
            await tokens.revoke(conn, IN_A, UUID(token_id), "late")
        assert caught.value.sqlstate == PROJECT_MOVED
        assert await tokens.use(conn, UUID(token_id)) is not None
    finally:
        await conn.close()


async def test_wrong_passwords_are_counted_in_all_cells(urls: list[str]) -> None:
    """One that is valid in every project could be guessed at the projects of each cell."""
    databases = [cell("a", urls[0]), cell("b", urls[1])]
    root = await insert(urls[0], EVERYWHERE)
    async with api_of(databases, MODE | {"auth.failures": 3}) as http:
        cells = Cells(urls, http, root)
        await cells.create(IN_A, "bob", everywhere=True, password=PASSWORD)
        right, wrong = basic("bob", PASSWORD), basic("bob", "a wrong password")
        assert [await cells.call(right, one) for one in (IN_A, IN_B)] == [200, 200]
        assert await cells.call(wrong, IN_A) == 401
        assert await cells.call(wrong, IN_B) == 401
        assert await cells.call(wrong, IN_A) == 401
        assert [await cells.call(wrong, one) for one in (IN_A, IN_B)] == [429, 429]
        assert await cells.call(cells.root, IN_B) == 200


async def recorded(cells: Cells, project: str) -> int:
    """The number of cells that have a project."""
    count = 0
    for one in cells.databases:
        conn = await connect(one["url"])
        try:
            count += await has_project(conn, project)
        finally:
            await conn.close()
    return count


async def test_tokens_are_created_with_the_settings_of_an_api_process(cells: Cells) -> None:
    """Without a server: in the cell of the project, which is recorded."""
    settings = cells_settings(cells.databases, MODE)
    for project in ("unheard-of", IN_B):
        record, token = new_token(project, "ann")
        await create_token(settings, record)
        assert await cells.call(bearer(token or ""), project) == 200
        assert await recorded(cells, project) == 1
    of_engine = settings.model_copy(
        update={"cells": type(settings.cells)(), "database": settings.database.model_copy(
            update={"url": settings.cells.databases[0].url})}
    )  # fmt: skip
    record, _ = new_token(IN_B, "late")
    with pytest.raises(Conflict, match=f'"{IN_B}" is not in this database, the cell "a"'):
        await create_token(of_engine, record)
    await cells.create(IN_A)
    record, token = new_token(IN_A, "in a")
    await create_token(of_engine, record)
    assert await cells.call(bearer(token or ""), IN_A) == 200


async def test_the_command_of_the_page_creates_a_token_for_both_cells(
    cells: Cells, tmp_path: Path
) -> None:
    write_api_settings(config := tmp_path / "api.toml", cells.databases, mode="tokens")
    written = page_command("docs/how-to/run-at-scale.md", "headgate admin create-token")
    names = {"api.toml": str(config)}
    done = await run_admin(*(names.get(word, word) for word in written.split()[2:]))
    assert done.code == 0, done
    for project in (IN_A, IN_B):
        assert await cells.call(bearer(done.out.strip()), project) == 200


async def test_the_projects_of_tokens_become_those_of_the_first_cell(urls: list[str]) -> None:
    """Those that have nothing else."""
    root, ann = await insert(urls[0], EVERYWHERE), await insert(urls[0], IN_B, "ann")
    async with api_of([cell("a", urls[0])], MODE) as http:
        cells = Cells(urls[:1], http, root)
        assert await cells.call(ann, IN_B) == 200
        assert await recorded(cells, IN_B) == 1
    async with api_of([cell("a", urls[0]), cell("b", urls[1])], MODE, revision=2) as http:
        cells = Cells(urls, http, root)
        assert [await cells.call(ann, IN_B), await cells.call(root, IN_A)] == [200, 200]


@pytest.fixture
async def three(urls: list[str]) -> AsyncIterator[list[Connection]]:
    conns = [await connect(url) for url in urls]
    yield conns
    for conn in conns:
        await conn.close()


async def test_cells_keep_the_earlier_one_of_two_passwords_of_a_name(
    three: list[Connection],
) -> None:
    """That two processes have created at the same time in two cells."""
    ids = []
    for conn in three:
        record, _ = new_token(EVERYWHERE, "bob", password=PASSWORD)
        await tokens.create(conn, record)
        ids.append(record.id)
    runs = {str(number): on_connection(conn) for number, conn in enumerate(three)}
    for _ in range(2):
        assert await share_tokens(runs) == []
    for conn in three:
        listed = await tokens.list_tokens(conn, EVERYWHERE, all_tokens=True)
        assert [(one.id, one.revoked_at is None) for one in listed] == [
            (ids[0], True), (ids[1], False), (ids[2], False)
        ]  # fmt: skip


async def test_a_cell_lacks_tokens_that_another_one_does_not_return(
    three: list[Connection],
) -> None:
    """Both are away then: the one would refuse valid tokens."""
    record, _ = new_token(EVERYWHERE)
    await tokens.create(three[0], record)
    asked: list[object] = []

    async def in_first(work: Callable[[Connection], Awaitable[T]]) -> T | None:
        asked.append(work)
        return await work(three[0]) if len(asked) == 1 else None

    cells: dict[str, InCell] = {"a": in_first, "b": on_connection(three[1])}
    assert await share_tokens(cells) == ["a", "b"]


async def test_two_processes_copy_to_a_cell_in_one_order(urls: list[str]) -> None:
    """Otherwise, each could wait for the other, and the cell would count as away."""
    conns = [await connect(urls[0]) for _ in range(3)]
    try:
        records = [new_token(EVERYWHERE)[0] for _ in range(2)]
        for record in records:
            await tokens.create(conns[0], record)
        now = datetime.now(UTC)
        low, high = (TokenState(one, now, now, "x") for one in sorted(one.id for one in records))
        differences = [CellDifference(used=[low, high]), CellDifference(revoked=[high], used=[low])]
        writes: list[asyncio.Task[bool]] = []
        async with conns[0].transaction():
            await conns[0].execute("select from token where id = $1 for update", low.id)
            for number, (conn, one) in enumerate(zip(conns[1:], differences, strict=True), 1):
                writes.append(asyncio.create_task(token_copies._Writing([], one)(conn)))

                async def is_waiting(count: int = number) -> bool:
                    found: int = await conns[0].fetchval(WAITING)
                    return found == count

                await eventually(is_waiting)
        assert await asyncio.gather(*writes) == [True, True]
    finally:
        for conn in conns:
            await conn.close()


async def test_a_cell_keeps_revoked_tokens_of_every_project_until_they_expire(
    three: list[Connection],
) -> None:
    """A cell that was away would bring back one that was purged here."""
    conn = three[0]
    placement = CellPlacement(1, ("a",), ("a",), {})
    ids = {}
    for project, expires in ((EVERYWHERE, ""), (EVERYWHERE, "1s"), ("p", "")):
        record, _ = new_token(project, expires_in=expires)
        await tokens.create(conn, record)
        await tokens.revoke(conn, project, record.id, "a test")
        ids[project, expires] = record.id
    await conn.execute(
        "update token set expires_at = now() - interval '1 hour' where expires_at is not null"
    )
    await identify_cell(conn, "a", uuid4(), placement)
    page = await purge(conn, "tokens", timedelta(0), None, 10)
    left = await conn.fetch("select id from token")
    assert (page.deleted, [row["id"] for row in left]) == (2, [ids[EVERYWHERE, ""]])
