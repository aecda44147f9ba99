"""Projects that move between cells, also if the command is killed."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from engine.errors import Conflict, HeadgateError, NotFound, Unavailable
from engine.store.connection import Connection, connect
from engine.store.database_errors import PROJECT_MOVED
from engine.store.fault_points import MOVE_POINTS, InjectedFault, inject_fault
from engine.store.maintenance import project_moves
from engine.store.maintenance.project_moves import (
    COPIED,
    GUARDED,
    MOVED,
    NOT_MOVED,
    MoveRecord,
    announce_move,
    close_project,
    lock_move,
    read_state,
)
from engine.types.contract import Call, Outcome
from engine.types.test_resource import TestResource
from engine.words import MoveState
from hub.api import admission
from hub.api.request_validation import read_body
from hub.cli.commands import project_move
from hub.cli.commands.project_move import ProjectMove, move_project
from hub.program.cells.project_moves import ProjectMoves
from tests.support.admin_command import run_admin
from tests.support.cells import (
    api_of,
    cell,
    cells_settings,
    engine_of,
    of_project,
    projects_of,
    running_node,
    url_of,
    write_api_settings,
)
from tests.support.page_commands import page_command
from tests.support.postgres import TestServer
from tests.support.program import PATIENCE, Http, eventually, resource
from tests.support.receiver import Receiver, running_receiver, until
from tests.support.replication import ReplicatedPair, running_pair
from tests.support.statement_log import statement_log

HOOKED = {"web": resource(hooks=[{"on": "pre-create"}])}
TABLES = """
select table_name, column_name from information_schema.columns
 where table_schema = current_schema()
   and table_name in (select relname from pg_class where relkind = 'r')
"""
#: Columns for a project or a stack.
OF_PROJECTS = {"project", "stack_id"}
#: Tables with a project that are not guarded, because a transaction that adds rows has locked a row
#: that leaves first, or is refused by another way.
WITH_PARENT: Mapping[str, str] = {
    **dict.fromkeys(
        ("hook", "decision", "delivery", "observation_schedule", "labelled_work", "outbox"),
        "the stack or the subscription",
    ),
    "stack": "accept_change refuses a root stack; nested ones have the lock of their parent",
    "position_shift": "moves alone write it, in the transaction in which the project arrives",
    "idempotency": "the stack that the same transaction creates",
    **dict.fromkeys(
        ("audit_checkpoint", "completion_request", "project_usage", "observer_usage",
         "resource_sample", "provider_failure", "failed_request", "purged_position", "audit_chain", "usage_feed"),
        "background tasks write it for stacks of the cell, and no request",
    ),
}  # fmt: skip
IN_A, IN_B = (of[0] for of in projects_of("ab").values())
OTHER_IN_A = projects_of("ab", 2)["a"][1]
MOVE_COMMAND = "headgate admin move-project 5ad1ebf9a2b64b9db7a4c0f4d7a3a1c2 --to"
#: The steps after which the project is in the new cell.
ARRIVED = ("move.arrived", "move.switched", "move.deleted")


@dataclass(frozen=True)
class TwoCells:
    """urls: of the databases. http: the API, with a project of the cell a."""

    urls: list[str]
    http: Http
    receiver: Receiver

    @property
    def databases(self) -> list[Any]:
        return [cell(name, url) for name, url in zip("ab", self.urls, strict=True)]

    async def move(
        self, to: str = "b", *, project: str = IN_A, undo: bool = False, wait: float = 5
    ) -> ProjectMove:
        settings = cells_settings(self.databases)
        return await move_project(
            settings, project, to, undo=undo, wait=wait, report=lambda _: None
        )

    async def counts(self, number: int) -> dict[str, int]:
        """The rows of the project in one of the databases."""
        conn = await connect(self.urls[number])
        try:
            return {
                table: found
                for table in (*MOVED, "moving_row")
                if (
                    found := await conn.fetchval(
                        f"select count(*) from {table} t where {MOVED.get(table, 'project = $1')}",
                        IN_A,
                    )
                )
            }
        finally:
            await conn.close()


@pytest.fixture
def no_notice(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """For moves without requests in between."""
    monkeypatch.setattr(project_move, "NOTICE_TIME", 0.0)
    yield


@pytest.fixture
async def urls(postgres: TestServer) -> AsyncIterator[list[str]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(postgres.new_database()) for _ in range(2)]


@pytest.fixture
async def cells(urls: list[str]) -> AsyncIterator[TwoCells]:
    async with running_receiver() as receiver, served(urls, receiver) as cells:
        yield cells


@asynccontextmanager
async def served(urls: list[str], receiver: Receiver) -> AsyncIterator[TwoCells]:
    databases = [cell(name, url) for name, url in zip("ab", urls, strict=True)]
    async with (
        api_of(databases) as http,
        engine_of(urls[0], http.url),
        engine_of(urls[1], http.url),
    ):
        yield TwoCells(urls, of_project(http, IN_A), receiver)


async def fill(cells: TwoCells) -> tuple[str, str]:
    """A stack that is complete, one with a waiting hook, and a subscription that was notified;
    returns the URL and the token of its notification."""
    body = {
        "target": cells.receiver.url,
        "channel": "webhook",
        "events": ["headgate.hook.waiting"],
    }
    status, made = await cells.http.call("POST", "/subscriptions", body)
    assert status == 201, made
    await cells.http.create("done", {"web": resource()})
    assert await cells.http.until_ended("done") == "CREATE_COMPLETE"
    await cells.http.create("waiting", HOOKED)
    (hook,) = await cells.http.waiting_hooks("waiting")
    sent = await until(partial(_notification, cells.receiver, hook["id"]))
    await eventually(partial(_is_delivered, cells.urls[0]))
    return sent["signal_url"], sent["token"]


async def _is_delivered(url: str) -> bool:
    """Whether the event about the delivery is stored, which is after the receiver has it."""
    conn = await connect(url)
    try:
        found = "select exists (select from event where type = 'headgate.delivery.delivered')"
        return bool(await conn.fetchval(found))
    finally:
        await conn.close()


def _notification(receiver: Receiver, hook_id: str) -> Any:
    data = [one["data"] for one in receiver.events]
    return next((one for one in data if one["hook"]["id"] == hook_id), None)


async def check_moved(cells: TwoCells, url: str, token: str) -> None:
    """The project works in the cell b: the waiting hook accepts the token that was sent before."""

    async def answers() -> bool:
        headers = {"Authorization": f"Bearer {token}"}
        body = {"decision": "continue"}
        async with cells.http.session.post(url, json=body, headers=headers) as response:
            return response.status == 200

    await eventually(lambda: _succeeds(cells.http))
    await eventually(answers)
    assert await cells.http.until_ended("waiting") == "CREATE_COMPLETE"
    await eventually(lambda: _creates(cells.http))
    assert await cells.http.until_ended("new") == "CREATE_COMPLETE"
    assert await cells.counts(0) == {}
    assert "moving_row" not in await cells.counts(1)
    assert (await cells.counts(1))["stack"] == 3


async def _creates(http: Http) -> bool:
    template = {"heat_template_version": "2021-04-16", "resources": {"web": resource()}}
    body = {"stack_name": "new", "template": template}
    return bool((await http.call("POST", "/stacks", body))[0] == 201)


async def test_every_table_of_projects_moves_or_is_named(urls: list[str], cells: TwoCells) -> None:
    conn = await connect(urls[0])
    try:
        found = {
            row["table_name"]
            for row in await conn.fetch(TABLES)
            if row["column_name"] in OF_PROJECTS
        }
    finally:
        await conn.close()
    assert found == {*MOVED, *NOT_MOVED}
    assert not {*MOVED} & {*NOT_MOVED}


async def test_a_project_moves_with_its_waiting_hooks(cells: TwoCells, no_notice: None) -> None:
    other = of_project(cells.http, IN_B)
    await other.create("other", {})
    url, token = await fill(cells)
    before = await cells.counts(0)
    move = await cells.move()
    assert (move.source, move.target) == ("a", "b")
    after = await cells.counts(1)
    assert {one: after[one] for one in before} == before
    await check_moved(cells, url, token)
    _, page = await cells.http.call("GET", "/stacks?global_tenant=true")
    assert {one["stack_name"] for one in page["stacks"]} == {"other", "done", "waiting", "new"}
    # And back, to the cell where it was before.
    await cells.move("a")

    await eventually(lambda: _succeeds(cells.http))
    assert (await cells.http.stack("new"))["stack_status"] == "CREATE_COMPLETE"
    assert await cells.counts(1) == {}


async def test_a_project_that_has_returned_is_changed_before_its_cell_is_read_again(
    cells: TwoCells, no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that knows only of the departure from the other cell reads where the project is."""
    monkeypatch.setattr("hub.program.cells.project_moves.MAX_AGE", 0.0)
    await cells.http.create("done", {"web": resource()})
    assert await cells.http.until_ended("done") == "CREATE_COMPLETE"
    await cells.move()
    await eventually(lambda: _creates(cells.http))
    note = ProjectMoves.read_moves

    async def note_other(self: ProjectMoves, name: str, conn: Connection) -> None:
        if name != "a":
            await note(self, name, conn)

    monkeypatch.setattr(ProjectMoves, "read_moves", note_other)
    await cells.move("a")
    assert await _succeeds(cells.http)
    assert await _changes(cells.http) == 201


async def _changes(http: Http) -> int:
    template = {"heat_template_version": "2021-04-16"}
    return (await http.call("POST", "/stacks", {"stack_name": "x", "template": template}))[0]


async def _succeeds(http: Http) -> bool:
    status, page = await http.call("GET", "/stacks")
    return bool(status == 200 and page["stacks"])


async def test_events_keep_their_order_and_no_reader_misses_one(
    cells: TwoCells, no_notice: None
) -> None:
    """Published events get new positions, after those that readers can have."""
    await fill(cells)
    conn_a, conn_b = await connect(cells.urls[0]), await connect(cells.urls[1])
    published = """
    select stack_id, first, last, position from outbox
     where project = $1 and position is not null order by position
    """
    try:
        before = await conn_a.fetch(published, IN_A)
        await cells.move()
        after = await conn_b.fetch(published, IN_A)
        assert [tuple(one)[:3] for one in after][: len(before)] == [
            tuple(one)[:3] for one in before
        ]
        assert after[0]["position"] > before[-1]["position"]
        cursor = await conn_b.fetchval("select position from outbox_cursor")
        assert cursor >= after[-1]["position"]
    finally:
        await conn_a.close()
        await conn_b.close()


async def test_changes_are_refused_and_reads_are_served_before_the_rows_move(
    cells: TwoCells, no_notice: None
) -> None:
    await fill(cells)
    with inject_fault("move.announced:1:raise"), pytest.raises(InjectedFault):
        await cells.move()

    async def refused() -> bool:
        body = {"stack_name": "late", "template": {"heat_template_version": "2021-04-16"}}
        async with cells.http.session.post(
            f"{cells.http.url}/v1/{IN_A}/stacks", json=body
        ) as answer:
            if answer.status == 201:
                return False
            assert answer.status == 503 and answer.headers["Retry-After"]
            assert (await answer.json())["error"]["type"] == "ProjectMoving"
            return True

    body = {"decision": "continue"}
    await eventually(lambda: _is_noticed(cells.http, body))
    assert await refused()
    assert (await cells.http.call("GET", "/stacks/done"))[0] in (200, 302)
    assert (await of_project(cells.http, IN_B).call("GET", "/stacks"))[0] == 200
    with inject_fault("move.taken:1:raise"), pytest.raises(InjectedFault):
        await cells.move()
    status, found = await cells.http.call("GET", "/stacks")
    assert (status, len(found["stacks"])) == (200, 2)
    assert await refused()
    await cells.move(undo=True, to="")
    assert (await cells.http.call("GET", "/stacks/done"))[0] in (200, 302)


@asynccontextmanager
async def locked(url: str, statement: str, *values: Any) -> AsyncIterator[None]:
    """Hold the locks of a statement in a transaction."""
    conn = await connect(url)
    try:
        async with conn.transaction():
            assert await conn.fetch(statement, *values)
            yield
    finally:
        await conn.close()


async def test_events_of_other_projects_are_delivered_while_a_project_is_closed(
    cells: TwoCells, no_notice: None
) -> None:
    """Also if the closed project has an unpublished event whose environment declares a sink."""
    other = of_project(cells.http, OTHER_IN_A)
    sink = {"type": "webhook", "target": cells.receiver.url, "events": ["headgate.stack.*"]}
    body = {"target": cells.receiver.url, "channel": "webhook", "events": ["headgate.stack.*"]}
    assert (await other.call("POST", "/subscriptions", body))[0] == 201

    def kinds(name: str) -> list[str]:
        events = [one for one in cells.receiver.events if "stack" in one["data"]]
        return [
            one["type"].removeprefix("headgate.stack.create.")
            for one in events
            if one["data"]["stack"]["name"] == name
        ]

    async with locked(cells.urls[0], "select from outbox_cursor for update"):
        await cells.http.create("sunk", {"web": resource()}, environment={"event_sinks": [sink]})
        assert await cells.http.until_ended("sunk") == "CREATE_COMPLETE"
        with inject_fault("move.closed:1:raise"), pytest.raises(InjectedFault):
            await cells.move()
    await other.create("other", {"web": resource()})
    await until(lambda: kinds("other") == ["started", "completed"])
    await until(lambda: kinds("sunk") == ["started", "completed"])
    await cells.move()
    assert await cells.counts(0) == {}
    assert (await cells.counts(1))["subscription"] == 1


LOCK_STACK = "select id from stack where project = $1 for update"
#: Sessions that have waited for a lock for longer than the timeouts of `impatient`.
LONG_WAITS = """
select pid from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock' and query like $1
   and query_start < clock_timestamp() - interval '500 ms'
"""


async def impatient(url: str) -> Any:
    """A connection whose server limits the time of statements."""
    conn = await connect(url)
    await conn.execute("set lock_timeout = '50 ms'; set statement_timeout = '200 ms'")
    return conn


@pytest.mark.parametrize("statement", ["for share", "for update"])
async def test_the_end_of_a_projects_changes_is_awaited_for_any_time(
    cells: TwoCells, no_notice: None, statement: str
) -> None:
    """A transaction that adds a row has locked the entry of the project."""
    await cells.http.create("done", {"web": resource()})
    lock, move = f"select project from cell_project where project = $1 {statement}", uuid4()
    conn, other = await impatient(cells.urls[0]), await connect(cells.urls[0])
    try:
        await announce_move(other, IN_A, "b", move)
        async with locked(cells.urls[0], lock, IN_A):
            closing = asyncio.create_task(close_project(conn, IN_A, move))

            async def waits() -> bool:
                assert not closing.done(), closing.exception()
                return bool(await other.fetch(LONG_WAITS, "%update cell_project %"))

            await until(waits)
        await closing
        assert (await read_state(other, IN_A)) == MoveRecord("b", MoveState.TAKEN)
    finally:
        await conn.close()
        await other.close()


async def test_a_move_waits_for_a_locked_row_and_events_are_published_meanwhile(
    cells: TwoCells, no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(project_move, "LOCK_INTERVAL", 0.1)
    monkeypatch.setattr(project_moves, "LOCK_TIMEOUT", "50 ms")
    await cells.http.create("done", {"web": resource()})
    assert await cells.http.until_ended("done") == "CREATE_COMPLETE"
    other = of_project(cells.http, OTHER_IN_A)
    body = {"target": cells.receiver.url, "channel": "webhook", "events": ["headgate.stack.*"]}
    assert (await other.call("POST", "/subscriptions", body))[0] == 201
    lines: list[str] = []
    settings = cells_settings(cells.databases)
    async with locked(cells.urls[0], LOCK_STACK, IN_A):
        moving = asyncio.create_task(
            move_project(settings, IN_A, "b", undo=False, wait=5, report=lines.append)
        )

        def waits() -> bool:
            assert not moving.done(), moving.exception()
            return any("another transaction has locked rows" in one for one in lines)

        await until(waits)
        await other.create("other", {"web": resource()})
        await until(lambda: len(cells.receiver.events) == 2)
        assert not moving.done()
    await moving
    assert await cells.counts(0) == {}
    assert (await cells.counts(1))["stack"] == 1


async def test_the_error_of_a_move_says_that_the_project_is_closed(
    cells: TwoCells, no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Here, an operator ends the session of the command, which waits for a locked row."""
    monkeypatch.setattr(project_moves, "LOCK_TIMEOUT", "0")
    url, token = await fill(cells)
    conn = await connect(cells.urls[0])
    try:
        async with locked(cells.urls[0], LOCK_STACK, IN_A):
            moving = asyncio.create_task(cells.move())

            async def ended() -> bool:
                assert not moving.done(), moving.exception()
                waiting = await conn.fetch(LONG_WAITS, "select id from stack where project%")
                for row in waiting:
                    await conn.execute("select pg_terminate_backend($1)", row["pid"])
                return bool(waiting)

            await until(ended)
            error = await refusal(moving)
    finally:
        await conn.close()
    assert f'changes of the project "{IN_A}" are refused now' in str(error)
    assert "Run the same command again" in error.finding.remedy
    assert "--undo" in error.finding.remedy
    await cells.move(undo=True, to="")
    assert await _succeeds(cells.http)
    await cells.move()
    await check_moved(cells, url, token)


@dataclass(frozen=True)
class HeldRequest:
    """A request whose body the client sends later: it was routed to the cell a before the move."""

    response: "asyncio.Task[tuple[int, Any]]"
    release: asyncio.Event


async def hold_request(http: Http, path: str, body: Any) -> HeldRequest:
    """Send the headers of a POST request, and return when the server has routed it."""
    routed, release = asyncio.Event(), asyncio.Event()

    async def content() -> AsyncIterator[bytes]:
        text = json.dumps(body).encode()
        yield text[:1]
        routed.set()
        await release.wait()
        yield text[1:]

    async def send() -> tuple[int, Any]:
        headers = {"Content-Type": "application/json"}
        async with http.session.post(
            f"{http.url}/v1/{http.project}{path}", data=content(), headers=headers
        ) as response:
            return response.status, await response.json()

    held = HeldRequest(asyncio.create_task(send()), release)
    await routed.wait()
    return held


async def test_a_request_from_before_the_move_writes_nothing_in_the_former_cell(
    cells: TwoCells, no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mover would delete its rows. The client sends the request again."""
    await fill(cells)
    status, made = await cells.http.call("POST", "/software_configs", {"name": "first"})
    assert status == 200
    config = made["software_config"]["id"]
    requests = {
        "/software_configs": {"name": "late"},
        "/software_deployments": {"config_id": config, "server_id": "late"},
        "/subscriptions": {
            "target": cells.receiver.url, "channel": "webhook", "events": ["headgate.stack.*"],
        },
        "/stacks": {"stack_name": "late", "template": {"heat_template_version": "2021-04-16"}},
    }  # fmt: skip
    reading = asyncio.Semaphore(0)

    async def observed(request: Any) -> None:
        reading.release()
        await read_body(request)

    monkeypatch.setattr(admission, "read_body", observed)
    held = [await hold_request(cells.http, path, body) for path, body in requests.items()]
    for _ in held:
        await reading.acquire()
    with inject_fault("move.announced:1:raise"), pytest.raises(InjectedFault):
        await cells.move()
    await eventually(lambda: _is_noticed(cells.http, {"decision": "continue"}))
    await cells.move()
    before = await cells.counts(1)
    for one in held:
        one.release.set()
        status, answer = await one.response
        assert (status, answer["error"]["type"]) == (503, "ProjectMoving"), answer
    assert await cells.counts(0) == {}
    after = await cells.counts(1)  # with samples that the usage takes meanwhile
    assert {one: after[one] for one in before} == before
    await eventually(lambda: _succeeds(cells.http))
    for path, body in requests.items():
        assert (await cells.http.call("POST", path, body))[0] in (200, 201), path
    assert await cells.counts(0) == {}


async def test_a_request_that_finds_nothing_costs_no_statement_if_its_project_does_not_move(
    urls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    databases = [cell(name, url) for name, url in zip("ab", urls, strict=True)]
    with statement_log(monkeypatch) as log:
        async with api_of(databases) as http:
            project = of_project(http, IN_A)
            await project.create("s", {})
            assert (await project.call("GET", "/stacks/none"))[0] == 404
            assert (await project.call("GET", "/stacks/s/none/events"))[0] == 404
    texts = log.texts()
    assert any("from stack" in one for one in texts)
    assert " ".join(project_moves.READ_STATE.split()) not in texts


async def test_an_engine_starts_with_subscriptions_of_a_project_that_has_left(
    cells: TwoCells, no_notice: None
) -> None:
    """Those of its settings; it stores the ones of other projects."""
    await cells.http.create("done", {"web": resource()})
    await cells.move()
    subscriptions = [
        {"project": one, "channel": "webhook", "target": cells.receiver.url, "events": ["*"]}
        for one in (IN_A, OTHER_IN_A)
    ]
    async with engine_of(cells.urls[0], cells.http.url, subscriptions=subscriptions):
        conn = await connect(cells.urls[0])
        try:
            stored = await conn.fetch("select project from subscription")
        finally:
            await conn.close()
    assert [row["project"] for row in stored] == [OTHER_IN_A]
    assert await cells.counts(0) == {}


@pytest.mark.parametrize("table", sorted(GUARDED))
async def test_the_database_refuses_rows_of_a_project_that_has_left(
    cells: TwoCells, no_notice: None, table: str
) -> None:
    """From any transaction, also of a process that does not know where the project is."""
    await cells.http.create("done", {"web": resource()})
    conn = await connect(cells.urls[0])
    insert = f"insert into {table} select * from jsonb_populate_record(null::{table}, $1)"
    values = {"project": IN_A, "id": str(UUID(int=1)), "origin": "api"}
    try:
        with pytest.raises(asyncpg.NotNullViolationError):  # not refused
            await conn.execute(insert, values)
        with inject_fault("move.taken:1:raise"), pytest.raises(InjectedFault):
            await cells.move()
        for state in ("taken", "moved"):
            with pytest.raises(asyncpg.PostgresError) as caught:
                await conn.execute(insert, values)
            assert caught.value.sqlstate == PROJECT_MOVED
            if state == "taken":
                await cells.move()
    finally:
        await conn.close()


async def test_each_table_with_a_project_is_guarded_or_its_rows_have_a_row_that_left(
    urls: list[str], cells: TwoCells
) -> None:
    conn = await connect(urls[0])
    try:
        found = {
            row["table"]
            for row in await conn.fetch(
                "select tgrelid::regclass::text as table from pg_trigger"
                " where tgfoid = 'refuse_moved_project'::regproc"
            )
        }
    finally:
        await conn.close()
    assert found == {*GUARDED}
    own = {table for table, condition in MOVED.items() if condition == MOVED["stack"]}
    assert own | {*COPIED} == {*GUARDED, *WITH_PARENT}


async def _is_noticed(http: Http, body: Any) -> bool:
    """A change of a hook that does not exist."""
    path = "/hooks/00000000-0000-0000-0000-000000000000/signal"
    return bool((await http.call("POST", path, body))[0] == 503)


async def test_a_killed_command_continues(cells: TwoCells, tmp_path: Path) -> None:
    """Killed after each of its steps."""
    url, token = await fill(cells)
    config = tmp_path / "api.toml"
    write_api_settings(config, cells.databases)
    written = page_command("docs/how-to/run-at-scale.md", MOVE_COMMAND)
    words = {"5ad1ebf9a2b64b9db7a4c0f4d7a3a1c2": IN_A, "api.toml": str(config)}
    command = [words.get(word, word) for word in written.split()[2:]]
    for point in MOVE_POINTS:
        killed = await run_admin(*command, FAULT=f"{point}:1:kill")
        assert killed.code not in (0, 1), (point, killed)
        for path in ("/stacks", "/stacks?global_tenant=true"):
            status, found = await cells.http.call("GET", path)
            assert status == 200, (point, found)
            names = [one["stack_name"] for one in found["stacks"]]
            assert sorted(names) == ["done", "waiting"], (point, path)
    done = await run_admin(*command)
    assert (done.code, "already in the cell" in done.err) == (1, True), done
    await check_moved(cells, url, token)


@pytest.mark.parametrize("point", MOVE_POINTS)
async def test_a_failed_move_is_undone_until_it_has_arrived(
    cells: TwoCells, no_notice: None, point: str
) -> None:
    url, token = await fill(cells)
    before = await cells.counts(0)
    with inject_fault(f"{point}:1:raise"), pytest.raises(InjectedFault):
        await cells.move()
    if point in ARRIVED:
        with pytest.raises(Conflict, match=r'has arrived in the cell "b"|it is in the cell "b"'):
            await cells.move(undo=True, to="")
        if point != "move.deleted":
            await cells.move()
        await check_moved(cells, url, token)
        return
    await cells.move(undo=True, to="")
    assert await cells.counts(1) == {}
    after = await cells.counts(0)
    assert {one: after[one] for one in before} == before
    assert await _succeeds(cells.http)
    await cells.move()
    await check_moved(cells, url, token)


async def test_a_row_that_changed_on_the_way_is_found(cells: TwoCells, no_notice: None) -> None:
    await fill(cells)
    with inject_fault("move.copied:1:raise"), pytest.raises(InjectedFault):
        await cells.move()
    conn = await connect(cells.urls[1])
    try:
        await conn.execute(
            "update moving_row set content = replace(content, 'done', 'gone')"
            " where source_table = 'stack'"
        )
    finally:
        await conn.close()
    with pytest.raises(Conflict, match='rows of the table "stack" are not the same'):
        await cells.move()
    await cells.move(undo=True, to="")
    assert await _succeeds(cells.http)


async def refusal(moving: Any) -> HeadgateError:
    with pytest.raises(HeadgateError) as raised:
        await moving
    assert raised.value.finding.remedy
    return raised.value


async def test_moves_that_cannot_begin_are_refused(cells: TwoCells, no_notice: None) -> None:
    await cells.http.create("s", {})
    error = await refusal(cells.move("c"))
    assert isinstance(error, NotFound) and 'no cell "c"; the cells are a, b' in str(error)
    assert (await refusal(cells.move("a"))).code == "SameCell"
    assert (await refusal(cells.move(undo=True, to=""))).code == "NoMove"
    unknown = move_project(
        cells_settings(cells.databases), "unknown", "b", undo=False, wait=1, report=print
    )
    assert 'no cell has the project "unknown"' in str(await refusal(unknown))
    conn = await connect(cells.urls[0])
    try:
        async with conn.transaction():
            assert await lock_move(conn, IN_A)
            assert (await refusal(cells.move())).code == "MoveUnderWay"
        await conn.execute("alter table stack add column later integer")
        assert "different schemas" in str(await refusal(cells.move()))
        await conn.execute("alter table stack drop column later")
        key = await conn.fetchval("update instance set key_check = 'x' returning 1")
        assert key == 1
        assert (await refusal(cells.move())).code == "OtherKey"
    finally:
        await conn.close()


async def test_a_move_to_a_cell_that_is_away_is_refused(urls: list[str], no_notice: None) -> None:
    async with running_node("b") as node:
        databases = [cell("a", urls[0]), cell("b", url_of(node))]
        async with api_of(databases) as http:
            await of_project(http, IN_A).create("s", {})
            node.kill()
            with pytest.raises(Unavailable, match='the cell "b" is not available'):
                await move_project(
                    cells_settings(databases), IN_A, "b", undo=False, wait=1, report=print
                )
            assert await _succeeds(of_project(http, IN_A))


class HeldCreate:
    """The first call of a create, which lasts until it is released. keys: of all calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.keys: list[UUID] = []
        self.begun, self.release, self.ended = (asyncio.Event() for _ in range(3))
        create = TestResource.create

        async def held(of_type: TestResource, call: Call) -> Outcome:
            self.keys.append(call.operation_key)
            if len(self.keys) == 1:
                self.begun.set()
                try:
                    await self.release.wait()
                finally:
                    self.ended.set()
            return create(of_type, call)

        monkeypatch.setattr(TestResource, "create", held)


async def test_a_move_waits_for_an_operation_under_way(
    cells: TwoCells, no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, settings, lines = HeldCreate(monkeypatch), cells_settings(cells.databases), list[str]()
    await cells.http.create("slow", {"web": resource()})
    await until(held.begun.is_set)
    moving = asyncio.create_task(
        move_project(settings, IN_A, "b", undo=False, wait=60, report=lines.append)
    )
    await until(lambda: any("waiting for operations" in one for one in lines))
    held.release.set()
    await moving
    await eventually(lambda: _succeeds(cells.http))
    assert await cells.http.until_ended("slow") == "CREATE_COMPLETE"
    assert len(held.keys) == 1
    assert not any("are under way" in one for one in lines)


async def test_an_operation_that_the_move_does_not_wait_for_is_named_and_has_one_result(
    urls: list[str], no_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new cell calls it again with the same key, after its lease. What the former cell returns
    later is not written."""
    held, lines = HeldCreate(monkeypatch), list[str]()
    databases = [cell(name, url) for name, url in zip("ab", urls, strict=True)]
    settings = cells_settings(databases)
    async with (
        api_of(databases) as http,
        engine_of(urls[0], http.url, **{"engine.lease": "5s"}),
        engine_of(urls[1], http.url),
        running_receiver() as receiver,
    ):
        cells = TwoCells(urls, of_project(http, IN_A), receiver)
        await cells.http.create("slow", {"web": resource()})
        await until(held.begun.is_set)
        await move_project(settings, IN_A, "b", undo=False, wait=0, report=lines.append)
        assert [one for one in lines if "are under way" in one] == [
            "operations are under way, which the new cell calls again with the same operation keys:"
            " create of slow/web"
        ]
        await eventually(lambda: _succeeds(cells.http))
        assert await cells.http.until_ended("slow") == "CREATE_COMPLETE"
        held.release.set()
        await until(held.ended.is_set)
        assert len(held.keys) == 2 and len({*held.keys}) == 1
        events = [one["resource_status"] for one in await cells.http.events("slow")
                  if one["resource_name"] == "web"]  # fmt: skip
        assert events.count("CREATE_COMPLETE") == 1  # and one IN_PROGRESS for each call
        assert await cells.counts(0) == {}
        assert (await cells.counts(1))["resource"] == 1


async def test_two_commands_move_a_project_once(cells: TwoCells, no_notice: None) -> None:
    url, token = await fill(cells)
    results = await asyncio.gather(cells.move(), cells.move(), return_exceptions=True)
    errors = [one for one in results if isinstance(one, BaseException)]
    assert len(errors) == 1, results
    assert isinstance(errors[0], Conflict)
    await check_moved(cells, url, token)


CAUGHT_UP = """
select count(*) > 0 and bool_and(replay_lsn >= pg_current_wal_lsn()) from pg_stat_replication
"""


@asynccontextmanager
async def moved_to_a_lagging_pair(
    postgres: TestServer, receiver: Receiver
) -> AsyncIterator[tuple[TwoCells, ReplicatedPair]]:
    """A project that has moved to a database whose asynchronous replica has received nothing of it.
    The move has failed because of it."""
    async with (
        postgres.new_database() as first,
        running_pair(synchronous=False) as pair,
        served([first, pair.url], receiver) as cells,
    ):
        await eventually(lambda: _creates(cells.http))
        await cells.http.create("waiting", HOOKED)
        await cells.http.waiting_hooks("waiting")
        await eventually(lambda: pair.first.execute(CAUGHT_UP))
        pair.link.silence()
        with pytest.raises(Unavailable) as caught:
            await cells.move(wait=0.5)
        assert caught.value.code == "StandbysBehind" and "second" in str(caught.value)
        assert set(await cells.counts(0)) == {"moving_row"}
        await eventually(lambda: _succeeds(cells.http))
        yield cells, pair


async def test_rows_are_deleted_when_the_standbys_of_the_new_cell_have_them(
    postgres: TestServer, no_notice: None
) -> None:
    async with (
        running_receiver() as receiver,
        moved_to_a_lagging_pair(postgres, receiver) as (cells, pair),
    ):
        assert len(await cells.http.waiting_hooks("waiting")) == 1
        pair.link.restore()
        await cells.move(wait=PATIENCE)
        assert await cells.counts(0) == {}
        assert len(await cells.http.waiting_hooks("waiting")) == 1


async def test_a_project_that_the_new_cell_lost_in_a_failover_is_put_back(
    postgres: TestServer, no_notice: None
) -> None:
    async with (
        running_receiver() as receiver,
        moved_to_a_lagging_pair(postgres, receiver) as (cells, pair),
    ):
        pair.first.kill()
        await pair.second.promote()

        async def is_lost() -> bool:
            try:
                await cells.move()
            except HeadgateError as error:
                return error.code == "MoveLost"
            raise AssertionError("the project has moved again")

        await eventually(is_lost)
        await cells.move(undo=True)
        assert "moving_row" not in await cells.counts(0)
        await eventually(lambda: _succeeds(cells.http))
        (hook,) = await cells.http.waiting_hooks("waiting")

        async def answers() -> bool:
            path, body = f"/hooks/{hook['id']}/signal", {"decision": "continue"}
            return bool((await cells.http.call("POST", path, body))[0] == 200)

        await eventually(answers)
        assert await cells.http.until_ended("waiting") == "CREATE_COMPLETE"
