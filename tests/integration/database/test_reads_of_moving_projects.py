"""Reads while a project moves between cells: from the cell that has its rows, in each step."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from structlog.testing import capture_logs

from channels.store.records import Cursor
from channels.store.stream import current_cursor
from channels.stream import parse_event_id
from engine.errors import Conflict
from engine.service.reads.stored_state import Reads
from engine.store.connection import Connection, connect
from engine.store.fault_points import MOVE_POINTS, UNDO_POINT, InjectedFault, inject_fault
from engine.store.maintenance import project_moves
from engine.store.maintenance.moving_schemas import open_schema
from engine.store.maintenance.project_moves import MoveRecord, read_state
from engine.store.projects import usage
from hub.api import cells as api_cells
from hub.api.application import all_routes
from hub.api.routes import Route
from hub.cli.commands import project_move
from hub.cli.commands.project_move import move_project
from hub.program.cells import cell_states, moving_readers
from tests.integration.database.test_project_moves import (
    ARRIVED,
    IN_A,
    IN_B,
    OTHER_IN_A,
    TwoCells,
    fill,
    served,
)
from tests.integration.software.test_deployments import SCRIPT, deployment
from tests.support.admin_command import run_admin
from tests.support.agent import OUTPUTS, SERVER, signed_metadata_url
from tests.support.cells import (
    api_of,
    cell,
    cells_settings,
    of_project,
    running_node,
    url_of,
)
from tests.support.keys import key_file
from tests.support.postgres import TestServer
from tests.support.program import Http, eventually, resource, template
from tests.support.receiver import running_receiver, until
from tests.support.replication import USER

Json = Any
READ, CHANGE = "/stacks/done", "/stacks"
SCHEMAS = "select nspname from pg_namespace where nspname like 'headgate!_moving!_%' escape '!'"
#: Reads without rows of the project, and streams.
NOT_COMPARED = {
    "/v1/{project}/events/stream": "it is followed in tests of its own",
    "/v1/{project}/session/oidc": "it needs an OpenID provider",
    "/v1/{project}/stacks/{name:arn:.+}": "as the name, whose route is compared",
    "/v1/{project}/observation-credential": "it needs Keystone",
}
#: Times at which a process was seen, and of the request.
VOLATILE = re.compile(r'"(updated_at|last_seen|seconds_since|report_age|age|now)": [^,}]*')


@pytest.fixture
async def urls(postgres: TestServer) -> AsyncIterator[list[str]]:
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(postgres.new_database()) for _ in range(2)]


@pytest.fixture
async def cells(urls: list[str]) -> AsyncIterator[TwoCells]:
    async with running_receiver() as receiver, served(urls, receiver) as cells:
        yield cells


@pytest.fixture
def short_notice(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """All processes read the moves for each response, so that none has to be waited for."""
    monkeypatch.setattr(project_move, "NOTICE_TIME", 0.0)
    monkeypatch.setattr("hub.program.cells.project_moves.MAX_AGE", 0.0)
    yield


async def move_until(cells: TwoCells, point: str) -> None:
    with inject_fault(f"{point}:1:raise"), pytest.raises(InjectedFault):
        await cells.move()


async def fill_all(cells: TwoCells) -> dict[str, str]:
    """A project with something of each kind; the values of the parameters of its routes."""
    http = cells.http
    await fill(cells)
    nested = {"type": "OS::Heat::ResourceGroup", "properties": {
        "count": 2, "resource_def": resource()}}  # fmt: skip
    await http.create("group", {"g": nested}, tags="red,blue")
    assert await http.until_ended("group") == "CREATE_COMPLETE"
    kept = template({"web": resource()}, outputs={"url": {"value": "x"}})
    assert (await http.call("POST", CHANGE, {"stack_name": "kept", "template": kept}))[0] == 201
    assert await http.until_ended("kept") == "CREATE_COMPLETE"
    snapshot = await http.stack_request("POST", "kept", "/snapshots", {"name": "s"})
    assert await http.until_ended("kept") == "SNAPSHOT_COMPLETE"
    _, config = await http.call("POST", "/software_configs", {"name": "c"})
    sent = {"config_id": config["software_config"]["id"], "server_id": "server"}
    _, deployment = await http.call("POST", "/software_deployments", sent)
    assert (await http.call("POST", "/tokens", {"name": "ann", "roles": ["reader"]}))[0] == 201
    (hook,) = await http.waiting_hooks("waiting")
    stack = await http.stack("kept")
    _, subscriptions = await http.call("GET", "/subscriptions")
    _, events = await http.call("GET", f"/stacks/kept/{stack['id']}/resources/web/events")
    return {
        "project": IN_A, "hook": hook["id"], "name": "kept", "id": stack["id"],
        "resource": "web", "event": events["events"][0]["id"], "key": "url", "version": "1",
        "snapshot": snapshot["snapshot"]["id"] if "snapshot" in snapshot else snapshot["id"],
        "config": config["software_config"]["id"],
        "deployment": deployment["software_deployment"]["id"], "server": "server",
        "subscription": subscriptions["subscriptions"][0]["id"],
        "type": "OS::Heat::TestResource",
    }  # fmt: skip


def read_routes() -> list[Route]:
    return [
        one
        for one in all_routes()
        if one.is_read and "{project}" in one.path and one.path not in NOT_COMPARED
    ]


async def read_everything(http: Http, values: dict[str, str]) -> dict[str, str]:
    """The responses to all requests that change nothing, by method and path."""
    bodies = {"stacks/preview": {"stack_name": "new", "template": template({"a": resource()})},
              "validate": {"template": template({"a": resource()})},
              "preview": {"template": template({"a": resource()})}}  # fmt: skip
    found: dict[str, str] = {}
    for route in read_routes():
        of_functions = "template_versions" in route.path
        own = values | {"version": "2021-04-16" if of_functions else "1"}
        path = re.sub(r"{(\w+):(\w+)}", r"\2", route.path).format(**own)
        body = next((one for end, one in bodies.items() if route.path.endswith(end)), None)
        if route.path == "/v1/{project}/stacks/{name}/{id}/preview" and route.method == "PATCH":
            body = {}
        query = f"?prefix={values['id'][:8]}" if route.path.endswith("/ids") else ""
        async with http.session.request(
            route.method, f"{http.url}{path}{query}", json=body, allow_redirects=False
        ) as response:
            text = await response.text()
            assert response.status in (200, 300, 302), (route.method, path, response.status, text)
            found[f"{route.method} {path}"] = VOLATILE.sub("", text)
    return found


@pytest.fixture
def no_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """The resources of a project are not counted: the next hour can begin during a test."""

    async def count_none(conn: Connection) -> None: ...

    monkeypatch.setattr(usage, "sample_resources", count_none)


async def test_each_read_has_the_same_response_in_every_step(
    no_samples: None, cells: TwoCells, short_notice: None
) -> None:
    values = await fill_all(cells)
    before = await read_everything(cells.http, values)
    for point in MOVE_POINTS:
        await move_until(cells, point)
        during = await read_everything(cells.http, values)
        different = [path for path in before if before[path] != during[path]]
        if point in ARRIVED:
            different.remove(f"GET /v1/{IN_A}/services")  # the processes of the other cell
        assert different == [], (point, different[0], before[different[0]], during[different[0]])


def write_config(cells: TwoCells, folder: Path) -> str:
    config = folder / "api.toml"
    config.write_text(
        f'[credentials]\nkey_file = "{key_file()}"\n'
        + "".join(
            f'[[cells.databases]]\nname = "{one["name"]}"\nurl = "{one["url"]}"\n'
            for one in cells.databases
        )
    )
    return str(config)


async def read(http: Http, path: str, *, status: int = 200) -> Json:
    found, document = await http.call("GET", path)
    assert found == status, (path, found, document)
    return document


async def names_of(http: Http, path: str) -> list[str]:
    return sorted(one["stack_name"] for one in (await read(http, path))["stacks"])


async def test_no_read_fails_or_finds_a_part_during_a_whole_move(
    cells: TwoCells, tmp_path: Path
) -> None:
    """The command is a process, and requests are sent without a pause until it has ended."""
    http = cells.http
    await of_project(http, IN_B).create("other", {})
    await fill(cells)
    await http.create("wide", {f"r{number}": resource() for number in range(40)})
    assert await http.until_ended("wide") == "CREATE_COMPLETE"
    path = f"/stacks/wide/{(await http.stack('wide'))['id']}"
    agent = await create_server(http)

    async def status() -> Json:
        stack = (await read(http, path))["stack"]
        return stack["stack_status"], stack["stack_status_reason"]

    async def resources() -> Json:
        return sorted(
            (one["resource_name"], one["resource_status"])
            for one in (await read(http, f"{path}/resources"))["resources"]
        )

    async def events() -> Json:
        return [one["id"] for one in (await read(http, f"{path}/events"))["events"]]

    async def graph() -> Json:
        return sorted(one["state"] for one in (await read(http, f"{path}/graph"))["nodes"])

    async def hooks() -> Json:
        return [one["id"] for one in (await read(http, "/hooks"))["hooks"]]

    async def metadata() -> Json:
        found, text = await poll(http, agent)
        assert found == 200, text
        return text

    reads: list[Callable[[], Awaitable[Json]]] = [
        status, resources, events, graph, hooks, metadata,
        partial(names_of, http, "/stacks"),
        partial(names_of, http, "/stacks?global_tenant=true"),
        partial(names_of, of_project(http, IN_B), "/stacks?global_tenant=true"),
    ]  # fmt: skip
    expected = [await one() for one in reads]
    assert [len(one) for one in expected[1:4]] == [40, len(expected[2]), len(expected[3])]
    assert expected[-1] == ["done", "other", "server", "waiting", "wide"]
    counts = [0] * len(reads)

    async def repeat(number: int) -> None:
        while not moving.done():
            assert await reads[number]() == expected[number], (number, counts)
            counts[number] += 1

    command = ("move-project", IN_A, "--to", "b", "--config", write_config(cells, tmp_path))
    moving = asyncio.create_task(run_admin(*command))
    await asyncio.gather(*map(repeat, range(len(reads))))
    assert (await moving).code == 0, moving.result()
    assert min(counts) > 10
    assert [await one() for one in reads] == expected


@asynccontextmanager
async def without_new_connections(cells: TwoCells) -> AsyncIterator[None]:
    """The database of the cell a accepts none; those that are open work."""
    first, second = await connect(cells.urls[0]), await connect(cells.urls[1])
    name = await first.fetchval("select quote_ident(current_database())")
    await first.close()
    try:
        await second.execute(f"alter database {name} with allow_connections false")
        yield
    finally:
        await second.execute(f"alter database {name} with allow_connections true")
        await second.close()


async def test_a_moving_project_that_cannot_be_read_makes_no_other_unavailable(
    cells: TwoCells, short_notice: None
) -> None:
    """Lists of all projects have the others, and name the cell."""
    http, other, of_b = cells.http, of_project(cells.http, OTHER_IN_A), of_project(cells.http, IN_B)
    await http.create("moving", {})
    await other.create("beside", {})
    await of_b.create("other", {})
    await move_until(cells, "move.taken")
    async with without_new_connections(cells):
        for client in (other, of_b):
            page = await read(client, "/stacks?global_tenant=true")
            assert sorted(one["stack_name"] for one in page["stacks"]) == ["beside", "other"]
            (warning,) = page["warnings"]
            assert warning["code"] == "CellUnavailable"
            assert "not available: a." in warning["message"]
        refused = await read(http, "/stacks", status=503)
        assert refused["error"]["type"] == "CellUnavailable"
        assert 'the cell "a" is not available' in refused["error"]["message"]
        assert await names_of(other, "/stacks") == ["beside"]
    page = await read(http, "/stacks?global_tenant=true")
    assert len(page["stacks"]) == 3 and "warnings" not in page
    await cells.move()
    assert await names_of(http, "/stacks?global_tenant=true") == ["beside", "moving", "other"]


async def test_a_connection_that_hangs_delays_no_request_but_the_first(
    cells: TwoCells, short_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has the reason once; the project is read as soon as there is a connection."""
    http, other = cells.http, of_project(cells.http, OTHER_IN_A)
    agent = await create_server(http)
    before = await poll(http, agent)
    await move_until(cells, "move.taken")
    attempts, connected = list[str](), asyncio.Event()

    async def hang(connector: Any, schema: str, keyring: Any) -> Any:
        attempts.append(schema)
        await connected.wait()
        return await open_schema(connector, schema, keyring)

    monkeypatch.setattr(moving_readers, "open_schema", hang)
    with capture_logs() as logs:
        await read(other, "/stacks?global_tenant=true")
        for module, name in (
            (moving_readers, "OPEN_WAIT"), (moving_readers, "OPEN_TIMEOUT"),
            (cell_states, "READ_TIMEOUT"),
        ):  # fmt: skip
            monkeypatch.setattr(module, name, 3600.0)
        for _ in range(2):
            page = await read(other, "/stacks?global_tenant=true")
            assert page["stacks"] == [] and "not available: a." in page["warnings"][0]["message"]
            assert (await poll(http, agent))[0] == 503
            await read(http, "/stacks", status=503)
    assert len(attempts) == 1
    (logged,) = [one for one in logs if one["event"] == "cell.moving_project_unread"]
    assert logged["cell"] == "a" and "no connection" in logged["reason"]
    connected.set()

    async def is_read() -> bool:
        return await poll(http, agent) == before

    await eventually(is_read)
    assert await names_of(http, "/stacks?global_tenant=true") == ["server"]
    assert len(attempts) == 1


async def create_server(http: Http) -> Json:
    """A server whose agent polls its metadata, with its deployment; the settings of the agent."""
    resources = {
        "script": SCRIPT, "server": SERVER,
        "dep": deployment(server={"get_resource": "server"}, input_values={"a": "A"}),
    }  # fmt: skip
    body = {"stack_name": "server", "template": template(resources, outputs=OUTPUTS)}
    assert (await http.call("POST", "/stacks", body))[0] == 201
    await http.until_parked("server", 1)

    async def settings() -> Json:
        output = await http.stack_request("GET", "server", "/outputs/agent")
        return output["output"]["output_value"]

    return await eventually(settings)


async def poll(http: Http, agent: Json, **changed: str) -> tuple[int, str]:
    async with http.session.get(signed_metadata_url(agent, **changed)) as response:
        return response.status, await response.text()


async def test_servers_get_their_metadata_in_every_step(
    cells: TwoCells, short_notice: None
) -> None:
    """Their URL has no project. Wrong signatures are refused as without a move."""
    agent = await create_server(cells.http)
    before = await poll(cells.http, agent)
    assert before[0] == 200 and "echo $a" in before[1]
    await move_until(cells, "move.announced")
    await cells.move(undo=True, to="")
    for point in MOVE_POINTS:
        await move_until(cells, point)
        assert await poll(cells.http, agent) == before, point
        status, text = await poll(cells.http, agent, Signature="x")
        assert status == 401 and "is not signed" in text, point


async def test_the_metadata_of_a_server_needs_the_cells_of_its_move(
    cells: TwoCells, short_notice: None
) -> None:
    agent = await create_server(cells.http)
    before = await poll(cells.http, agent)
    await move_until(cells, "move.taken")
    async with without_new_connections(cells):
        status, text = await poll(cells.http, agent)
        assert status == 503 and "CellUnavailable" in text
        assert 'the cell \\"a\\" is not available' in text
    assert await poll(cells.http, agent) == before


async def pages(http: Http, query: str) -> list[str]:
    """The names in all pages of one stack each."""
    found: list[str] = []
    marker = ""
    while True:
        page = (await read(http, f"/stacks?global_tenant=true&limit=1{query}{marker}"))["stacks"]
        if not page:
            return found
        found += [one["stack_name"] for one in page]
        marker = f"&marker={page[0]['id']}"


async def test_lists_of_all_projects_have_each_stack_once_in_every_step(
    cells: TwoCells, short_notice: None
) -> None:
    """Also while two projects move, and in the pages and counts."""
    http = cells.http
    for project, name in ((IN_A, "a1"), (IN_B, "b1"), (OTHER_IN_A, "o1"), (IN_A, "a2")):
        await of_project(http, project).create(name, {})
        assert await of_project(http, project).until_ended(name) == "CREATE_COMPLETE"
    with inject_fault("move.taken:1:raise"), pytest.raises(InjectedFault):
        await cells.move(project=OTHER_IN_A)
    for point in MOVE_POINTS:
        await move_until(cells, point)
        for client in (http, of_project(http, IN_B), of_project(http, OTHER_IN_A)):
            assert await pages(client, "&sort_dir=asc") == ["a1", "b1", "o1", "a2"], point
            assert await pages(client, "") == ["a2", "o1", "b1", "a1"], point
            found = await read(client, "/stacks?global_tenant=true&with_count=true")
            assert found["count"] == 4, point
    await cells.move(project=OTHER_IN_A)
    assert await pages(http, "&sort_dir=asc") == ["a1", "b1", "o1", "a2"]


class HeldReads:
    """Reads of a stack that have found it, and wait before they read the rest."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self.release = asyncio.Event(), asyncio.Event()
        find_stack = Reads.find_stack

        async def held(reads: Reads, project: str, name_or_id: str) -> Any:
            found = await find_stack(reads, project, name_or_id)
            if not self.reached.is_set():
                self.reached.set()
                await self.release.wait()
            return found

        monkeypatch.setattr(Reads, "find_stack", held)


#: The point at which a read begins, and the one at which it continues; "": before the move.
SPANS = [
    ("", "move.taken"), ("", "move.deleted"), ("move.announced", "move.taken"),
    ("move.closed", "move.taken"), ("move.taken", "move.arrived"),
    ("move.taken", "move.deleted"), ("move.arrived", "move.deleted"),
]  # fmt: skip


@pytest.mark.parametrize(("begin", "end"), [("", "move.arrived"), ("move.taken", "move.deleted")])
async def test_a_list_of_all_projects_that_began_before_a_step_is_complete_after_it(
    cells: TwoCells, short_notice: None, monkeypatch: pytest.MonkeyPatch, begin: str, end: str
) -> None:
    """It has read the one cell before the project arrived there, and reads the other one after it
    has left."""
    monkeypatch.setattr(api_cells, "LIST_TIMEOUT", 60.0)
    await cells.http.create("done", {"web": resource()})
    assert await cells.http.until_ended("done") == "CREATE_COMPLETE"
    if begin:
        await move_until(cells, begin)
    reached, release, list_stacks = asyncio.Event(), asyncio.Event(), Reads.list_stacks
    conn = await connect(cells.urls[1])
    in_b = await conn.fetchval("select current_database()")
    await conn.close()

    async def held(reads: Reads, project: str | None, wanted: Any) -> Any:
        async with reads._database.connection() as conn:
            database = await conn.fetchval("select current_database()")
        if database != in_b and not release.is_set():
            reached.set()
            await release.wait()
        return await list_stacks(reads, project, wanted)

    monkeypatch.setattr(Reads, "list_stacks", held)
    # The project in the URL does not move.
    other = of_project(cells.http, IN_B)
    reading = asyncio.create_task(names_of(other, "/stacks?global_tenant=true"))
    await reached.wait()
    await move_until(cells, end)
    release.set()
    assert await reading == ["done"]


@pytest.mark.parametrize(("begin", "end"), SPANS)
async def test_a_read_that_began_before_a_step_is_complete_after_it(
    cells: TwoCells, short_notice: None, monkeypatch: pytest.MonkeyPatch, begin: str, end: str
) -> None:
    await cells.http.create("done", {"web": resource(), "app": resource()})
    assert await cells.http.until_ended("done") == "CREATE_COMPLETE"
    path = f"/stacks/done/{(await cells.http.stack('done'))['id']}/resources"
    if begin:
        await move_until(cells, begin)
        await read(cells.http, path)  # the process notices the step
    held = HeldReads(monkeypatch)
    reading = asyncio.create_task(read(cells.http, path))
    await held.reached.wait()
    await move_until(cells, end)
    held.release.set()
    found = [one["resource_name"] for one in (await reading)["resources"]]
    assert sorted(found) == ["app", "web"]


async def test_a_read_while_the_move_is_put_back_and_begins_again_is_complete(
    cells: TwoCells, short_notice: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project has the same state at the beginning and at the end, and other rows."""
    await cells.http.create("done", {"web": resource(), "app": resource()})
    assert await cells.http.until_ended("done") == "CREATE_COMPLETE"
    path = f"/stacks/done/{(await cells.http.stack('done'))['id']}/resources"
    await move_until(cells, "move.taken")
    await read(cells.http, path)
    held = HeldReads(monkeypatch)
    reading = asyncio.create_task(read(cells.http, path))
    await held.reached.wait()
    await cells.move(undo=True, to="")
    await move_until(cells, "move.taken")
    held.release.set()
    assert len((await reading)["resources"]) == 2


async def test_a_process_that_has_not_noticed_the_move_reads_the_rows_where_they_are(
    urls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It reads the moves of the cell before it responds, because it read them long ago."""
    async with running_receiver() as receiver, served(urls, receiver) as cells:
        await cells.http.create("done", {"web": resource()})
        assert await cells.http.until_ended("done") == "CREATE_COMPLETE"
        monkeypatch.setattr("hub.program.cells.periodic_step.RETRY_INTERVAL", 3600.0)
        monkeypatch.setattr("hub.program.cells.project_moves.MAX_AGE", 0.5)
        async with api_of(cells.databases) as stale:
            http = of_project(stale, IN_A)
            assert await names_of(http, "/stacks") == ["done"]
            monkeypatch.setattr(project_move, "NOTICE_TIME", 1.0)
            await move_until(cells, "move.taken")
            assert await names_of(http, "/stacks") == ["done"]
            assert await names_of(http, "/stacks?global_tenant=true") == ["done"]
            await cells.move()
            assert await names_of(http, "/stacks") == ["done"]
            assert await names_of(http, "/stacks?global_tenant=true") == ["done"]


async def changes(http: Http) -> None:
    """Each change is refused, and names the time after which to send it again."""
    stack = await http.stack("done")
    path = f"/stacks/done/{stack['id']}"
    (hook,) = await http.waiting_hooks("waiting")
    answer = f"/hooks/{hook['id']}/signal"
    new = {"stack_name": "new", "template": template({"a": resource()})}
    for method, rest, body in (
        ("POST", "/stacks", new), ("PATCH", path, {}), ("DELETE", path, None),
        ("POST", f"{path}/actions", {"check": None}), ("POST", f"{path}/snapshots", {}),
        ("POST", "/software_configs", {"name": "c"}), ("POST", answer, {"decision": "continue"}),
    ):  # fmt: skip
        url = f"{http.url}/v1/{http.project}{rest}"
        async with http.session.request(method, url, json=body) as response:
            found = await response.json()
            assert response.status == 503, (method, rest, found)
            assert found["error"]["type"] == "ProjectMoving", (method, rest)
            assert response.headers["Retry-After"], (method, rest)


async def test_changes_are_refused_in_every_step_and_nothing_is_left_of_the_move(
    cells: TwoCells, short_notice: None
) -> None:
    await fill(cells)
    conn = await connect(cells.urls[0])
    try:
        for point in MOVE_POINTS:
            await move_until(cells, point)
            if point in ARRIVED:
                break
            await eventually(partial(_is_noticed, cells.http))
            await changes(cells.http)
            assert len(await conn.fetch(SCHEMAS)) == (point != "move.announced")
        await cells.move()
        assert await conn.fetch(SCHEMAS) == []
        assert await conn.fetch("select project from moving_schema") == []
    finally:
        await conn.close()
    assert await names_of(cells.http, "/stacks") == ["done", "waiting"]


async def _is_noticed(http: Http) -> bool:
    return (await http.call("POST", "/software_configs", {"name": "c"}))[0] == 503


@dataclass
class Stream:
    """An event stream that a client reads. received: the places and IDs of the events so far."""

    received: list[tuple[str, str]] = field(default_factory=list)
    ended: bool = False

    @property
    def places(self) -> list[str]:
        return [place for place, _ in self.received]

    @property
    def ids(self) -> list[str]:
        return [event for _, event in self.received]

    async def read(self, response: aiohttp.ClientResponse) -> None:
        place = ""
        async for line in response.content:
            name, _, value = line.decode().strip().partition(": ")
            if name == "id":
                place = value
            elif name == "data":
                self.received.append((place, json.loads(value)["id"]))
        self.ended = True


class Streams:
    """The open streams of one project."""

    def __init__(self, http: Http, stack: AsyncExitStack) -> None:
        self._http, self._stack = http, stack
        self._url = f"{http.url}/v1/{http.project}/events/stream"

    async def open(self, last: str | None = None, *, query: str = "") -> Stream:
        headers = {} if last is None else {"Last-Event-ID": last}
        stream = Stream()
        request = self._http.session.get(f"{self._url}{query}", headers=headers)
        response = await self._stack.enter_async_context(request)
        assert response.status == 200, await response.text()
        assert await response.content.readline() == b": connected\n"
        task = asyncio.create_task(stream.read(response))
        self._stack.callback(task.cancel)
        return stream

    async def refusal(self, last: str) -> tuple[int, str]:
        async with self._http.session.get(self._url, headers={"Last-Event-ID": last}) as response:
            assert response.status >= 400, last
            return response.status, (await response.json())["error"]["type"]


@pytest.fixture
async def streams(cells: TwoCells) -> AsyncIterator[Streams]:
    async with AsyncExitStack() as stack:
        yield Streams(cells.http, stack)


async def has_events(http: Http, stream: Stream, stack: str, count: int = 2) -> None:
    """Wait until the stream has all events of a stack that is complete."""
    path = f"/stacks/{stack}/{(await http.stack(stack))['id']}/history"
    expected = [one["id"] for one in (await read(http, path))["events"]]
    assert len(expected) >= count
    await until(lambda: {*expected} <= {*stream.ids})


async def test_streams_stay_open_in_every_step_and_have_each_event_once(
    cells: TwoCells, short_notice: None, streams: Streams
) -> None:
    """Those that were open before, and those that are opened in each step, with the place of an
    event or without, and with a filter."""
    http = cells.http
    for name in ("first", "second"):
        await http.create(name, {"web": resource(), "app": resource()})
        assert await http.until_ended(name) == "CREATE_COMPLETE"
    of_others = of_project(http, OTHER_IN_A)
    everything = await streams.open("0-0")
    await has_events(http, everything, "second")
    await of_others.create("other", {"web": resource()})  # positions in between
    await http.create("third", {"web": resource()})
    assert await http.until_ended("third") == "CREATE_COMPLETE"
    await has_events(http, everything, "third")
    before = list(everything.received)
    assert len(before) > 10
    known = len(before) // 2
    opened: list[tuple[str, int, Stream]] = [
        ("", len(before), await streams.open()),
        ("", known, await streams.open(before[known - 1][0])),
    ]
    chosen = [("", await streams.open(query="?stacks=last"))]
    for point in MOVE_POINTS:
        await move_until(cells, point)
        await of_others.call("GET", "/stacks")
        opened += [
            (point, 0, await streams.open("0-0")),
            (point, known, await streams.open(before[known - 1][0])),
            (point, len(before), await streams.open(before[-1][0])),
            (point, len(before), await streams.open()),
        ]
        chosen.append((point, await streams.open(query="?stacks=last")))
        for _, skipped, stream in opened:
            # Also what was published before is sent during the move.
            await until(lambda stream=stream, skipped=skipped: (
                len(stream.received) >= len(before) - skipped))  # fmt: skip
    await http.create("last", {"web": resource()})
    assert await http.until_ended("last") == "CREATE_COMPLETE"
    await has_events(http, everything, "last")
    total = everything.ids
    assert len(total) == len({*total}) and total[: len(before)] == [one for _, one in before]
    for point, skipped, stream in opened:
        await until(lambda stream=stream, skipped=skipped: len(stream.ids) >= len(total) - skipped)
        assert stream.ids == total[skipped:], (point, skipped)
        assert not stream.ended, (point, skipped)
    for point, stream in chosen:
        await until(lambda stream=stream: len(stream.ids) >= len(total) - len(before))
        assert stream.ids == total[len(before) :], point
    # Every place that any client has got is valid, and leads to exactly the following events.
    for number, (place, _) in enumerate(everything.received):
        resumed = await streams.open(place)
        rest = total[number + 1 :]
        await until(lambda resumed=resumed, rest=rest: len(resumed.ids) >= len(rest))
        assert resumed.ids == rest, place


async def test_places_of_a_stream_are_valid_after_several_moves(
    cells: TwoCells, short_notice: None, streams: Streams
) -> None:
    """And back again, with events in each cell, and events that were purged before."""
    http, of_b = cells.http, of_project(cells.http, IN_B)
    others = of_project(http, OTHER_IN_A)
    for name in ("before", "also"):  # the project has not the first positions
        await others.create(name, {})
        assert await others.until_ended(name) == "CREATE_COMPLETE"
    everything = await streams.open("0-0")
    for number, target in enumerate("baba"):
        await of_b.create(f"other-{number}", {"web": resource()})
        await http.create(f"s{number}", {"web": resource()})
        assert await http.until_ended(f"s{number}") == "CREATE_COMPLETE"
        await has_events(http, everything, f"s{number}")
        if number == 1:
            await purge_until(cells.urls[1], everything.places[2])
        await cells.move(target)
        await eventually(partial(_is_changed, http))
    total, received, places = everything.ids, everything.received, everything.places
    assert len(total) == len({*total}) and not everything.ended
    for number, (place, _) in enumerate(received):
        if number < 2:
            assert await streams.refusal(place) == (410, "EventsGone"), place
            continue
        resumed, rest = await streams.open(place), total[number + 1 :]
        await until(lambda resumed=resumed, rest=rest: len(resumed.ids) >= len(rest))
        assert resumed.ids == rest, (number, place)
    await check_translation(cells.urls[0], max(parse_event_id(one).position for one in places))


async def test_a_filtered_stream_stays_open_although_what_it_skipped_was_purged(
    cells: TwoCells, short_notice: None, streams: Streams
) -> None:
    http = cells.http
    everything, chosen = await streams.open(), await streams.open(query="?stacks=last")
    await http.create("first", {"web": resource()})
    assert await http.until_ended("first") == "CREATE_COMPLETE"
    await has_events(http, everything, "first")
    await purge_until(cells.urls[0], everything.places[-1])
    await cells.move()
    await eventually(partial(_is_changed, http))
    await http.create("last", {"web": resource()})
    assert await http.until_ended("last") == "CREATE_COMPLETE"
    await until(lambda: chosen.ended or len(chosen.ids) >= 2)
    assert not chosen.ended


async def test_a_stream_of_one_stack_stays_open_although_what_it_skipped_was_purged(
    cells: TwoCells, short_notice: None, streams: Streams
) -> None:
    """The events of other stacks after those that it read from the database when it began. In each
    step of the move, a stream that begins there gets each later event once, too."""
    http, query = cells.http, "?stack=chosen"
    everything = await streams.open()
    for name in ("chosen", "other"):
        await http.create(name, {"web": resource()})
        assert await http.until_ended(name) == "CREATE_COMPLETE"
        await has_events(http, everything, name)
    opened = [("", 0, await streams.open("0-0", query=query))]
    before = opened[0][2]
    await has_events(http, before, "chosen")
    known, place = list(before.ids), before.places[-1]
    opened.append(("", len(known), await streams.open(place, query=query)))
    assert len(known) < len(everything.ids)
    of_others, conn = of_project(http, OTHER_IN_A), await connect(cells.urls[0])
    try:
        position = await project_moves.read_position(conn)
        for number, point in enumerate(MOVE_POINTS):
            await move_until(cells, point)
            # The former cell continues to publish events of other projects.
            await of_others.create(f"other-{number}", {})
            assert await of_others.until_ended(f"other-{number}") == "CREATE_COMPLETE"
            opened += [
                (point, 0, await streams.open("0-0", query=query)),
                (point, len(known), await streams.open(place, query=query)),
                (point, len(known), await streams.open(query=query)),
            ]
            for _, skipped, stream in opened:
                await until(lambda stream=stream, skipped=skipped: (
                    len(stream.ids) >= len(known) - skipped))  # fmt: skip
        assert await project_moves.read_position(conn) > position
    finally:
        await conn.close()
    await http.update("chosen", template=template({"web": resource("y")}))
    assert await http.until_ended("chosen") == "UPDATE_COMPLETE"
    path = f"/stacks/chosen/{(await http.stack('chosen'))['id']}/history"
    total = [one["id"] for one in (await read(http, path))["events"]]
    for point, skipped, stream in opened:
        await until(lambda stream=stream, skipped=skipped: (
            stream.ended or len(stream.ids) >= len(total) - skipped))  # fmt: skip
        assert (stream.ended, stream.ids) == (False, total[skipped:]), point


async def test_a_stream_of_one_stack_knows_which_purged_events_it_needed_not(
    cells: TwoCells, short_notice: None, streams: Streams
) -> None:
    """Those of other stacks after the events that it read from the database when it began."""
    http = cells.http
    everything = await streams.open()
    for name in ("chosen", "other"):
        await http.create(name, {"web": resource()})
        assert await http.until_ended(name) == "CREATE_COMPLETE"
        await has_events(http, everything, name)
    chosen = await streams.open("0-0", query="?stack=chosen")
    await has_events(http, chosen, "chosen")
    known = len(chosen.ids)
    await purge_until(cells.urls[0], everything.places[-1])
    await cells.move()
    await eventually(partial(_is_changed, http))
    await http.update("chosen", template=template({"web": resource("y")}))
    assert await http.until_ended("chosen") == "UPDATE_COMPLETE"
    await until(lambda: chosen.ended or len(chosen.ids) >= known + 2)
    assert not chosen.ended


async def check_translation(url: str, highest: int) -> None:
    """Each position, also one that no client has got, is translated once."""
    conn = await connect(url)
    try:
        last = await conn.fetchval("select max(boundary) from position_shift")
        for position in range(highest + 1):
            found = await current_cursor(conn, IN_A, Cursor(position, 1))
            assert found.position > last, position
            assert await current_cursor(conn, IN_A, found) == found, position
    finally:
        await conn.close()


async def purge_until(url: str, place: str) -> None:
    """Record that the events up to a place were purged, as the purge does. place: of the cell a,
    from which the project has moved."""
    conn = await connect(url)
    try:
        cursor = await current_cursor(conn, IN_A, parse_event_id(place))
        await conn.execute(
            "insert into purged_position values ($1, $2, $3)",
            IN_A, cursor.position, cursor.sequence,
        )  # fmt: skip
    finally:
        await conn.close()


async def test_a_stream_that_begins_while_the_project_arrives_gets_what_happens_there(
    cells: TwoCells, short_notice: None, streams: Streams, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Meanwhile, the former cell publishes events of other projects: the stream begins at a later
    place than the one with which the project arrives."""
    http, others, opened = cells.http, of_project(cells.http, OTHER_IN_A), list[Stream]()
    await http.create("first", {})
    assert await http.until_ended("first") == "CREATE_COMPLETE"
    read_position = project_moves.read_position

    async def held(conn: Any) -> int:
        position = await read_position(conn)
        for number in range(8):
            await others.create(f"other-{number}", {})
            assert await others.until_ended(f"other-{number}") == "CREATE_COMPLETE"

        async def has_grown() -> bool:
            return await read_position(conn) > position + 10

        await until(has_grown)
        opened.append(await streams.open())
        opened.append(await streams.open("0-0", query="?stack=first"))
        await until(lambda: opened[1].ids)
        return position

    monkeypatch.setattr(project_moves, "read_position", held)
    await cells.move()
    await eventually(partial(_is_changed, http))
    await http.create("second", {})
    assert await http.until_ended("second") == "CREATE_COMPLETE"
    await has_events(http, opened[0], "second")
    assert len(opened[0].ids) == len({*opened[0].ids})
    await http.update("first", template=template({"web": resource()}))
    assert await http.until_ended("first") == "UPDATE_COMPLETE"
    await has_events(http, opened[1], "first")
    assert len(opened[1].ids) == len({*opened[1].ids})


async def test_a_stream_stays_open_when_a_move_is_put_back(
    cells: TwoCells, short_notice: None, streams: Streams
) -> None:
    http = cells.http
    await http.create("first", {"web": resource()})
    assert await http.until_ended("first") == "CREATE_COMPLETE"
    everything = await streams.open("0-0")
    await has_events(http, everything, "first")
    before = len(everything.received)
    await move_until(cells, "move.copied")
    during = [await streams.open(), await streams.open(everything.places[0])]
    await until(lambda: len(during[1].received) == before - 1)
    await cells.move(undo=True, to="")
    await eventually(partial(_is_changed, http))
    await http.create("second", {"web": resource()})
    assert await http.until_ended("second") == "CREATE_COMPLETE"
    await has_events(http, everything, "second")
    total = everything.ids
    assert len(total) == len({*total}) and not everything.ended
    for stream, skipped in zip(during, (before, 1), strict=True):
        await until(lambda stream=stream, skipped=skipped: len(stream.ids) >= len(total) - skipped)
        assert stream.ids == total[skipped:] and not stream.ended


async def test_a_move_is_refused_if_the_account_may_create_no_schema(
    urls: list[str], short_notice: None
) -> None:
    """The project can be changed again."""
    async with running_node("a") as node:
        url = url_of(node)
        async with api_of([cell("a", url), cell("b", urls[1])]) as http:
            project = of_project(http, IN_A)
            assert await _is_changed(project)
            for statement in (
                "create role limited login",
                "grant all on all tables in schema public to limited",
            ):
                await node.execute(statement, database="headgate")
            limited = [cell("a", url.replace(USER, "limited", 1)), cell("b", urls[1])]
            with pytest.raises(Conflict, match="permission denied for database") as caught:
                await move_project(
                    cells_settings(limited), IN_A, "b", undo=False, wait=1, report=lambda _: None
                )
            assert caught.value.code == "NoRightToMove"
            assert "grant create on database" in caught.value.finding.remedy
            conn = await connect(url)
            try:
                assert await read_state(conn, IN_A) == MoveRecord("", None)
            finally:
                await conn.close()


async def _is_changed(http: Http) -> bool:
    return (await http.call("POST", "/software_configs", {"name": "c"}))[0] == 200


async def test_the_schema_of_a_move_that_was_undone_is_not_read_by_the_next_one(
    cells: TwoCells, short_notice: None
) -> None:
    """The command ends after it has put the rows back: the schema, with rows of that time, is
    left."""
    http = cells.http
    await http.create("old", {"web": resource()})
    assert await http.until_ended("old") == "CREATE_COMPLETE"
    await move_until(cells, "move.taken")
    with inject_fault(f"{UNDO_POINT}:1:raise"), pytest.raises(InjectedFault):
        await cells.move(undo=True, to="")
    await eventually(partial(_is_changed, http))
    await http.create("new", {"web": resource()})
    assert await http.until_ended("new") == "CREATE_COMPLETE"
    for point in ("move.announced", "move.closed", "move.taken"):
        await move_until(cells, point)
        for path in ("/stacks", "/stacks?global_tenant=true"):
            assert await names_of(http, path) == ["new", "old"], (point, path)


async def test_an_undo_that_was_interrupted_is_finished_by_the_same_command(
    cells: TwoCells, short_notice: None
) -> None:
    await fill(cells)
    await move_until(cells, "move.taken")
    with inject_fault(f"{UNDO_POINT}:1:raise"), pytest.raises(InjectedFault):
        await cells.move(undo=True, to="")
    conn = await connect(cells.urls[0])
    try:
        assert len(await conn.fetch(SCHEMAS)) == 1
        await cells.move(undo=True, to="")
        assert await conn.fetch(SCHEMAS) == []
        assert await conn.fetch("select project from moving_schema") == []
    finally:
        await conn.close()
    with pytest.raises(Conflict, match="is not being moved") as caught:
        await cells.move(undo=True, to="")
    assert caught.value.code == "NoMove"
