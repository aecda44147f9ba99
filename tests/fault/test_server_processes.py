"""The processes of one `headgate serve`: one that is killed is replaced while the others work, and
none survives the supervisor."""

import asyncio
import json
import os
import re
import signal
import socket
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.forks import is_running
from tests.support.ports import free_port
from tests.support.program import Http, ServerProcess, eventually, resource

COUNT = 2
SETTINGS = """
[engine]
lease = "2s"
poll = "1s"
[metrics]
address = "127.0.0.1:{port}"
"""
HOOKS = {"resource_registry": {"resources": {"b": {"hooks": "pre-create"}}}}


@pytest.fixture
def metrics_port() -> int:
    return free_port()


@contextmanager
def running_processes(settings: str) -> Iterator[ServerProcess]:
    with tempfile.TemporaryDirectory(prefix="headgate-fault-") as name:
        folder = Path(name)
        folder.chmod(0o711)  # as root, the database runs as another account
        process = ServerProcess(folder, settings=settings, processes=COUNT)
        process.start()
        try:
            yield process
        finally:
            process.stop()


@pytest.fixture
def server(metrics_port: int) -> Iterator[ServerProcess]:
    with running_processes(SETTINGS.format(port=metrics_port)) as process:
        yield process


def entries(server: ServerProcess, event: str) -> list[dict[str, Any]]:
    """The log lines of an event."""
    lines = server.log.read_text().splitlines()
    found = [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")]
    return [one for one in found if one["event"] == event]


async def pids(server: ServerProcess, count: int = COUNT) -> dict[int, int]:
    """The PID of each process by its number, once `count` of them have been ready."""

    async def ready() -> list[dict[str, Any]] | None:
        found = entries(server, "process.ready")
        return found if len(found) >= count else None

    return {one["process"]: one["pid"] for one in await eventually(ready)}


async def until_ended(*of: int) -> None:
    async def ended() -> bool:
        return not any(map(is_running, of))

    await eventually(ended)


async def scrape(metrics_port: int) -> str:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"http://127.0.0.1:{metrics_port}/metrics") as response,
    ):
        assert response.status == 200
        return await response.text()


def new_session() -> aiohttp.ClientSession:
    """A connection per request, so that any process can answer it."""
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True))


@pytest.mark.parametrize("number", range(1, COUNT + 1))
async def test_others_work_while_a_killed_process_is_replaced(
    server: ServerProcess, number: int
) -> None:
    before = await pids(server)
    async with new_session() as session:
        http = Http(session, server.url)
        await http.create("s", {"a": resource(), "b": resource(depends_on="a")}, environment=HOOKS)
        (hook,) = await http.waiting_hooks("s")
        os.kill(before[number], signal.SIGKILL)
        await until_ended(before[number])
        assert (await http.signal(hook))[0] == 200
        assert await http.until_ended("s") == "CREATE_COMPLETE"
    after = await pids(server, COUNT + 1)
    assert after[number] != before[number]
    assert {n: pid for n, pid in after.items() if n != number} == {
        n: pid for n, pid in before.items() if n != number
    }
    (ended,) = entries(server, "process.ended")
    assert (ended["process"], ended["code"]) == (number, -signal.SIGKILL)
    assert server.is_running


async def test_a_killed_database_process_is_replaced(server: ServerProcess) -> None:
    working = await pids(server)
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    (database,) = set(map(int, children)) - set(working.values())
    os.kill(database, signal.SIGKILL)

    async def replaced() -> bool:
        return bool(entries(server, "process.restarted"))

    await eventually(replaced)
    async with new_session() as session:
        http = Http(session, server.url)

        async def available() -> bool:
            return (await http.call("GET", "//readyz"))[0] == 200

        await eventually(available)
        await http.create("s", {"a": resource()})
        assert await http.until_ended("s") == "CREATE_COMPLETE"
    assert await pids(server) == working


async def test_no_process_survives_a_killed_supervisor(server: ServerProcess) -> None:
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    assert len(children) == COUNT + 1  # and the database's
    server.kill()
    await until_ended(*map(int, children))
    server.start()  # the address and the data directory are free
    async with new_session() as session:
        http = Http(session, server.url)
        await http.create("s", {"a": resource()})
        assert await http.until_ended("s") == "CREATE_COMPLETE"


async def test_all_processes_stop_in_order_on_sigterm(server: ServerProcess) -> None:
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    async with new_session() as session:
        http = Http(session, server.url)
        slow = {"type": "OS::Heat::TestResource", "properties": {"wait_secs": 600}}
        await http.create("s", {"slow": slow, "b": resource()}, environment=HOOKS)
        await http.waiting_hooks("s")
    assert server.stop() == 0
    assert not any(map(is_running, map(int, children)))
    assert len(entries(server, "headgate.stopping")) == COUNT + 1
    assert not re.search(r'"level":"error"|Traceback|^headgate: ', server.log.read_text(), re.M)


TOKENS = """
[auth]
mode = "tokens"
failures = 7
lockout = "1h"
"""


async def test_wrong_tokens_are_counted_for_all_processes_together() -> None:
    wrong = {"Authorization": f"Bearer hgt_{'0' * 32}_wrong"}
    with running_processes(TOKENS) as server:
        before = await pids(server)

        async def attempt(session: aiohttp.ClientSession) -> int:
            url = f"{server.url}/v1/default/stacks"
            async with session.get(url, headers=wrong) as response:
                return response.status

        async with new_session() as session:
            attempts = await asyncio.gather(*(attempt(session) for _ in range(60)))
            assert Counter(attempts) == {401: 7, 429: 53}
            # A process that starts later knows the lockout.
            os.kill(before[1], signal.SIGKILL)
            await pids(server, COUNT + 1)
            assert {await attempt(session) for _ in range(20)} == {429}


async def test_streams_are_counted_for_all_processes_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of a killed process are closed, and count no longer."""
    limit, attempts = 9, range(40)
    monkeypatch.setenv("HEADGATE_SERVER__STREAMS_PER_USER", str(limit))
    with running_processes("") as server:
        before = await pids(server)

        async with new_session() as session, AsyncExitStack() as stack:

            async def open_stream() -> aiohttp.ClientResponse:
                url = f"{server.url}/v1/default/events/stream"
                return await stack.enter_async_context(session.get(url))

            streams = await asyncio.gather(*(open_stream() for _ in attempts))
            opened = [one for one in streams if one.status == 200]
            assert Counter(one.status for one in streams) == {
                200: limit, 429: len(attempts) - limit,
            }  # fmt: skip
            os.kill(before[1], signal.SIGKILL)
            await pids(server, COUNT + 1)
            lost = sum([await is_lost(one) for one in opened])
            streams = await asyncio.gather(*(open_stream() for _ in attempts))
            assert [one.status for one in streams].count(200) == lost


async def is_lost(stream: aiohttp.ClientResponse) -> bool:
    """Whether the process of an event stream has ended."""
    try:
        async with asyncio.timeout(1):
            while await stream.content.readany():
                pass
    except aiohttp.ClientPayloadError:
        return True
    except TimeoutError:
        return False
    return True


def first_entry(server: ServerProcess) -> dict[str, Any]:
    with server.log.open() as lines:
        return dict(json.loads(next(lines)))


async def test_the_first_log_line_names_the_address_and_the_data(server: ServerProcess) -> None:
    line = first_entry(server)
    assert (line["event"], line["processes"]) == ("headgate.starting", COUNT)
    assert line["listen"] == f"127.0.0.1:{server.port}"
    assert (line["database"], line["data_dir"]) == ("embedded", str(server.folder / "data"))


async def test_a_single_process_with_a_database_url_names_no_directory(
    tmp_path: Path, database_url: str
) -> None:
    single = ServerProcess(tmp_path, database_url=database_url)
    single.start()
    try:
        line = first_entry(single)
    finally:
        single.stop()
    assert (line["event"], line["processes"]) == ("headgate.starting", 1)
    assert (line["database"], line["data_dir"]) == ("external", None)
    assert database_url not in single.log.read_text()


async def test_a_terminal_interrupt_of_all_processes_stops_them_in_order(
    server: ServerProcess,
) -> None:
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()
    for pid in map(int, children):
        os.kill(pid, signal.SIGINT)
    server.signal(signal.SIGINT)
    await until_ended(*map(int, children), server.pid)
    assert server.stop() == 0
    assert not re.search(r'"level":"error"|Traceback', server.log.read_text())


async def test_each_process_accepts_connections_of_the_shared_address(
    server: ServerProcess, metrics_port: int
) -> None:
    await pids(server)
    async with new_session() as session:
        http = Http(session, server.url)

        async def all_answered() -> bool:
            await http.call("GET", "/stacks")
            counted = re.findall(
                r'^headgate_requests_total\{.*process="(\d+)".*\} [1-9]',
                await scrape(metrics_port),
                re.M,
            )
            return set(counted) == {str(number + 1) for number in range(COUNT)}

        await eventually(all_answered)


async def test_a_scrape_has_the_metrics_of_all_processes(
    server: ServerProcess, metrics_port: int
) -> None:
    before = await pids(server)

    async def up(expected: dict[str, str]) -> bool:
        found = re.findall(
            r'^headgate_process_up\{process="(\d+)"\} (\S+)', await scrape(metrics_port), re.M
        )
        return dict(found) == expected

    assert await up({"1": "1.0", "2": "1.0"})
    text = await scrape(metrics_port)
    assert len(re.findall(r"^headgate_hooks_waiting ", text, re.M)) == 1
    assert len(re.findall(r"^# TYPE headgate_nodes_total ", text, re.M)) == 1
    os.kill(before[2], signal.SIGSTOP)  # it does not answer
    try:

        async def one_down() -> bool:
            return await up({"1": "1.0", "2": "0.0"})

        await eventually(one_down)
    finally:
        os.kill(before[2], signal.SIGCONT)


async def request_all_the_time(
    url: str, statuses: Counter[int], stop: asyncio.Event, *, keep_alive: bool
) -> None:
    """Send requests one after the other until `stop` is set. A connection that was refused or
    broken raises ClientError.

    keep_alive: on one connection, which the server may close between two requests; clients repeat
    a GET then. Otherwise, each has a connection of its own, and is not repeated.
    """
    connector = aiohttp.TCPConnector(force_close=not keep_alive)
    method, path = ("GET", "/v1/p/stacks") if keep_alive else ("POST", "/v1/p/validate")
    body = None if keep_alive else {"template": {"heat_template_version": "2021-04-16"}}
    async with aiohttp.ClientSession(connector=connector) as session:
        while not stop.is_set():
            async with session.request(method, f"{url}{path}", json=body) as response:
                statuses[response.status] += 1
                await response.read()
            await asyncio.sleep(0.01)


def write_settings(server: ServerProcess, former: str, new: str) -> None:
    text = server.config.read_text()
    assert former in text
    server.config.write_text(text.replace(former, new))


async def until_logged(server: ServerProcess, event: str, count: int = 1) -> dict[str, Any]:
    async def logged() -> list[dict[str, Any]] | None:
        found = entries(server, event)
        return found if len(found) >= count else None

    found: list[dict[str, Any]] = await eventually(logged)
    return found[-1]


QUOTA = "[engine]\nlease = '2s'\npoll = '1s'\n[quotas]\nstacks_per_project = 1\n"


async def test_processes_are_replaced_on_sighup_without_refusing_a_request() -> None:
    """The new ones have the new settings, and a waiting hook and an operation under way go on."""
    with running_processes(QUOTA) as server:
        before = await pids(server)
        statuses, stop = Counter[int](), asyncio.Event()
        clients = [
            asyncio.create_task(
                request_all_the_time(server.url, statuses, stop, keep_alive=bool(number % 2))
            )
            for number in range(2)
        ]
        async with new_session() as session:
            http = Http(session, server.url)
            resources = {"a": resource(), "b": resource(depends_on="a")}
            await http.create("s", resources, environment=HOOKS)
            (hook,) = await http.waiting_hooks("s")
            write_settings(server, "stacks_per_project = 1", "stacks_per_project = 2")
            for count in (1, 2):
                answered = statuses.total()
                server.signal(signal.SIGHUP)
                await until_logged(server, "settings.reloaded", count)
                assert statuses.total() > answered
            after = await pids(server, 3 * COUNT)
            assert after.keys() == before.keys() and not {*after.values()} & {*before.values()}
            await until_ended(*before.values())
            await http.create("t", {"a": resource()})  # the quota was 1
            assert (await http.signal(hook))[0] == 200
            assert await http.until_ended("s") == await http.until_ended("t") == "CREATE_COMPLETE"
        stop.set()
        await asyncio.gather(*clients)
        assert {*statuses} == {200}
        assert entries(server, "process.ended") == entries(server, "process.restarted") == []
        assert server.is_running


@pytest.mark.parametrize(
    ("former", "new", "event", "reason"),
    [
        ("per_project = 1", "per_projct = 1", "settings.not_reloaded", "per_projct"),
        ("per_project = 1", "per_project = many", "settings.not_reloaded", "invalid TOML"),
        ("[engine]", "[credentials]\nkey_file = '/dev/null/k'\n[engine]", "process.kept", "ready"),
    ],
    ids=["unknown", "no TOML", "no start"],
)  # fmt: skip
async def test_wrong_settings_keep_the_processes(
    former: str, new: str, event: str, reason: str
) -> None:
    with running_processes(QUOTA) as server:
        before = await pids(server)
        write_settings(server, former, new)
        server.signal(signal.SIGHUP)
        assert reason in (await until_logged(server, event))["reason"]
        assert all(map(is_running, before.values()))
        assert entries(server, "settings.reloaded") == []
        async with new_session() as session:
            assert (await Http(session, server.url).call("GET", "/stacks"))[0] == 200
        write_settings(server, new, former)
        server.signal(signal.SIGHUP)
        await until_logged(server, "settings.reloaded")
        await until_ended(*before.values())


async def test_a_fifo_in_place_of_the_settings_file_keeps_the_processes(
    server: ServerProcess,
) -> None:
    before, text = await pids(server), server.config.read_text()
    server.config.unlink()
    os.mkfifo(server.config)
    server.signal(signal.SIGHUP)
    assert "not a regular file" in (await until_logged(server, "settings.not_reloaded"))["reason"]
    assert all(map(is_running, before.values()))
    server.config.unlink()
    server.config.write_text(text)
    server.signal(signal.SIGHUP)
    await until_logged(server, "settings.reloaded")


async def test_an_external_database_stays_until_a_restart(
    tmp_path: Path, database_url: str
) -> None:
    server = ServerProcess(tmp_path, database_url=database_url, processes=COUNT)
    server.start()
    try:
        before = await pids(server)
        async with new_session() as session:
            http = Http(session, server.url)
            await http.create("s", {"a": resource()})
            write_settings(server, f'url = "{database_url}"', f'data_dir = "{tmp_path / "data"}"')
            server.signal(signal.SIGHUP)
            assert (await until_logged(server, "settings.reloaded"))["processes"] == COUNT
            await until_ended(*before.values())
            for _ in range(10):
                assert (await http.stack("s"))["stack_name"] == "s"
        assert entries(server, "settings.need_restart")[0]["settings"] == ["[database]"]
        assert not (tmp_path / "data" / "postgres").exists()
    finally:
        server.stop()


METRICS = '[metrics]\naddress = "{host}:{port}"\nneeds = "{needs}"\n'


async def test_settings_that_are_not_allowed_at_the_addresses_of_the_start_keep_the_processes(
    metrics_port: int,
) -> None:
    former = METRICS.format(host="0.0.0.0", port=metrics_port, needs="nothing")
    with running_processes(former) as server:
        before = await pids(server)
        new = METRICS.format(host="127.0.0.1", port=metrics_port, needs="monitor")
        write_settings(server, former, new)
        server.signal(signal.SIGHUP)
        reason = (await until_logged(server, "settings.not_reloaded"))["reason"]
        assert "or restart the server, which keeps [metrics] address" in reason
        assert entries(server, "process.replaced") == []
        assert all(map(is_running, before.values()))


async def test_settings_of_the_start_stay_and_are_named(server: ServerProcess) -> None:
    await pids(server)
    write_settings(server, f"127.0.0.1:{server.port}", "127.0.0.1:1")
    write_settings(server, "data_dir", "pool = 3\ndata_dir")
    server.signal(signal.SIGHUP)
    warning = await until_logged(server, "settings.need_restart")
    assert warning["settings"] == ["[server] listen", "[database]"]
    await until_logged(server, "settings.reloaded")
    async with new_session() as session:
        assert (await Http(session, server.url).call("GET", "/stacks"))[0] == 200


async def test_sigterm_ends_all_processes_while_they_are_replaced(server: ServerProcess) -> None:
    before = await pids(server)
    server.signal(signal.SIGHUP)
    await until_logged(server, "process.replaced")
    assert server.stop() == 0
    every = [one["pid"] for one in entries(server, "process.ready")]
    assert len(every) > COUNT
    assert not any(map(is_running, {*every, *before.values()}))


def test_a_wrong_setting_ends_the_server_before_it_is_ready() -> None:
    with tempfile.TemporaryDirectory(prefix="headgate-fault-") as name, socket.socket() as used:
        used.bind(("127.0.0.1", 0))
        used.listen()
        folder = Path(name)
        folder.chmod(0o711)
        for settings, port, reason in (
            ("", used.getsockname()[1], "cannot listen on"),
            ('[credentials]\nkey_file = "/dev/null/key"\n', None, "/dev/null"),
        ):
            server = ServerProcess(folder, settings=settings, processes=COUNT, port=port)
            with pytest.raises(AssertionError):
                server.start()
            assert server.stop() == 1
            lines = re.findall(r"^headgate: .*", server.log.read_text(), re.M)
            assert len(lines) == 1 and reason in lines[0]
