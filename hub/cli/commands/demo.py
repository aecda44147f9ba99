"""headgate demo: creates, approves, updates, stops, resumes and deletes a real service.

It runs a server of its own in a temporary directory, a webhook receiver, and the web service of
examples/. The receiver answers one hook in its response and one with the hook token; one hook gets
no answer, so that the stack stops, and a PATCH resumes it. Each step is checked; the exit code is 0
if all checks pass.
"""

import asyncio
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any

import aiohttp
import orjson
from aiohttp import web
from rich.console import Console

from engine.hot.expressions.masking import MASK
from headgate.connection import PROJECT
from headgate.errors import RequestError
from headgate.signatures import is_signed
from hub.cli.connection.client import ApiClient
from hub.cli.exit_codes import ExitCode
from hub.cli.inputs.template_bodies import template_body
from hub.cli.signals import EndedBySignal, run_until_signal

Json = Any
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
WEB_SERVICE, SHOP = EXAMPLES / "web-service", EXAMPLES / "shop"
STACK = "web"
#: Maximum seconds for one step.
TIMEOUT = 60.0
#: Seconds without output after which the demo prints how long the step has taken.
SILENCE = 4.0
out = Console(highlight=False, emoji=False)


class LastReport:
    """When the demo last reported a step."""

    at = 0.0


class CheckFailed(Exception):
    """A step did not have the expected result."""


def run(instead: Callable[[ApiClient, str], Awaitable[None]] | None = None) -> int:
    """Run the demo, or `instead` with a client and the URL of the server; return the exit code."""
    if not WEB_SERVICE.is_dir():
        out.print(f"The demo needs examples/ of the source tree; not found: {WEB_SERVICE}")
        return 1
    folder = Path(tempfile.mkdtemp(prefix="headgate-demo-"))
    folder.chmod(0o711)  # if root starts the demo, the database runs as another account
    try:
        run_until_signal(lambda: _demo(folder, instead))
    except EndedBySignal as end:
        out.print("\nInterrupted; everything was removed.")
        return end.code if instead is None else ExitCode.COMPLETE
    except (CheckFailed, RequestError, TimeoutError) as error:
        out.print(f"\n[bold red]Check failed:[/] {str(error) or 'a step took too long'}")
        log = folder / "server.log"
        if log.exists():
            out.print(log.read_text()[-2000:], markup=False)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    out.print("\n[bold green]All checks passed.[/] Next: docs/tutorial/first-stack.md")
    return 0


async def _demo(folder: Path, instead: Callable[[ApiClient, str], Awaitable[None]] | None) -> None:
    url = f"http://127.0.0.1:{_free_port()}"
    receiver = Receiver()
    _report("Starting a server with PostgreSQL", f"in {folder}")
    progress = asyncio.create_task(report_progress())
    server = await _start_server(folder, url)
    try:
        if instead is not None:
            progress.cancel()
            async with ApiClient(url, PROJECT) as client:
                await instead(client, url)
            return
        async with ApiClient(url, PROJECT) as client, _ReceiverServer(receiver) as target:
            _report("Server started", f"{url}, with PostgreSQL in {folder / 'data'}")
            created = await client.call(
                "POST",
                "/subscriptions",
                body={"target": target, "events": ["headgate.hook.*"], "stacks": [STACK]},
            )
            receiver.trust(created["secret"])
            _report("Webhook subscribed", target)
            await _run_steps(client, receiver, folder)
    finally:
        await _stop_server(server)
    _report("Server and database stopped", "")


async def report_progress() -> None:
    """Print how long a step has taken whenever nothing was printed for a while."""
    printed = 0.0
    while True:
        await asyncio.sleep(SILENCE / 4)
        now = monotonic()
        if now - max(printed, LastReport.at) >= SILENCE:
            out.print(f"[dim]... {now - LastReport.at:.0f} s[/]")
            printed = now


async def _run_steps(client: ApiClient, receiver: "Receiver", folder: Path) -> None:
    files = folder / "service"
    files.mkdir()
    await _create(client, receiver, files)
    first = await _get_service(client)
    _check(first["release"] == "1", "release 1 responds")
    _report(
        "The service responds",
        f"release {first['release']}, its secret has {first['secret']} characters",
    )
    await _update_without_answer(client, receiver, files)
    _check((await _get_service(client))["release"] == "1", "release 1 still responds")
    _report("UPDATE_STOPPED: no resource was changed", "release 1 still responds")
    await client.call(
        "PATCH", f"/stacks/{STACK}", body={"hooks": {"clear": ["service:pre-update"]}}
    )
    await _until_status(client, "UPDATE_COMPLETE")
    _check((await _get_service(client))["release"] == "2", "release 2 responds")
    running = list(files.glob("service-*.state"))
    _check(len(running) == 1, "the old process has ended")
    _report("Resumed by an update", "release 2 responds, the old process has ended")
    await client.call("DELETE", f"/stacks/{STACK}")
    await _until(client, _is_deleted, "the stack to be deleted")
    _check(not list(files.iterdir()), "all files and processes are gone")
    _report("Deleted", "all files and processes are gone")


async def _create(client: ApiClient, receiver: "Receiver", files: Path) -> None:
    body = template_body(WEB_SERVICE / "web.yaml") | {
        "stack_name": STACK,
        "environment": (WEB_SERVICE / "env.yaml").read_text(),
        "parameters": _parameters(files, "1"),
    }
    await client.call("POST", "/stacks", body=body)
    _report(
        "Stack create started", "secret -> config -> service, with breakpoints before the last two"
    )
    notification = await receiver.notification("config")
    _check(
        notification["resource"]["properties"]["environment"]["SECRET"] == MASK,
        "the secret is masked",
    )
    _report("config waits at pre-create", "the webhook receiver approves in its response")
    notification = await receiver.notification("service")
    _report(
        "service waits at pre-create",
        f"until {notification['hook']['deadline']}; a program approves with the hook token",
    )
    await _signal(notification)
    await _until_status(client, "CREATE_COMPLETE")


async def _update_without_answer(client: ApiClient, receiver: "Receiver", files: Path) -> None:
    rule = {"at": "service", "on": "pre-update", "mode": "wait", "timeout": "2s"}
    body = template_body(WEB_SERVICE / "web.yaml") | {
        "environment": {"hooks": [rule]},
        "parameters": _parameters(files, "2"),
    }
    await client.call("PUT", f"/stacks/{STACK}", body=body)
    await receiver.notification("service")
    _report("Update to release 2 waits at pre-update", "for 2 s, without an answer")
    await _until_status(client, "UPDATE_STOPPED")


def _parameters(files: Path, release: str) -> dict[str, str]:
    return {
        "folder": str(files),
        "scripts": str(WEB_SERVICE),
        "python": sys.executable,
        "release": release,
    }


async def _signal(notification: Json) -> None:
    """Answer a hook with its token, as any program can."""
    headers = {"Authorization": f"Bearer {notification['token']}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            notification["signal_url"], json={"decision": "continue"}, headers=headers
        ) as response,
    ):
        _check(response.status == 200, f"the answer is accepted (got {response.status})")


async def _get_service(client: ApiClient) -> Json:
    """The response of the web service, at the URL in the stack's outputs."""
    stack = (await client.call("GET", f"/stacks/{STACK}"))["stack"]
    url = next(one["output_value"] for one in stack["outputs"] if one["output_key"] == "url")
    async with aiohttp.ClientSession() as session, session.get(url) as response:
        return await response.json()


class Receiver:
    """A webhook receiver: verifies signatures, queues hook notifications, and answers the hook of
    `config` in its response."""

    def __init__(self) -> None:
        self._secret: str | None = None
        self._notifications: asyncio.Queue[Json] = asyncio.Queue()

    def trust(self, secret: str) -> None:
        self._secret = secret

    async def receive(self, request: web.Request) -> web.Response:
        raw = await request.read()
        if self._secret is None:
            return web.Response(status=503)
        if not is_signed(request.headers, raw, self._secret, datetime.now(UTC)):
            return web.Response(status=401)
        event = orjson.loads(raw)
        if event["type"] != "headgate.hook.waiting":
            return web.Response(status=204)
        await self._notifications.put(event["data"])
        if event["data"]["hook"]["path"] == "config":
            return web.json_response({"decision": "continue", "reason": "the demo approved it"})
        return web.Response(status=204)

    async def notification(self, resource: str) -> Json:
        """The next hook notification, which must be of this resource."""
        async with asyncio.timeout(TIMEOUT):
            notification = await self._notifications.get()
        _check(notification["hook"]["path"] == resource, f"a notification of {resource}")
        return notification


class _ReceiverServer:
    """An async context manager: serves the receiver on a free port; returns its URL."""

    def __init__(self, receiver: Receiver) -> None:
        app = web.Application()
        app.router.add_post("/hook", receiver.receive)
        self._runner = web.AppRunner(app, access_log=None)

    async def __aenter__(self) -> str:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}/hook"

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()


async def _start_server(folder: Path, url: str) -> asyncio.subprocess.Process:
    config = folder / "config.toml"
    config.write_text(
        f"""[server]
listen = "{url.removeprefix("http://")}"
processes = 1
[database]
data_dir = {json.dumps(str(folder / "data"))}
[channels.webhook]
allow = ["127.0.0.0/8"]
[resource_types.command]
enabled = true
run_as = "server"
variables = ["SECRET", "CONFIG", "RELEASE"]
[[resource_types.command.programs]]
path = {json.dumps(sys.executable)}
projects = ["*"]
arguments = [{json.dumps(str(WEB_SERVICE / "*.py"))}, "*"]
folders = [{json.dumps(str(folder))}]
"""
    )
    with (folder / "server.log").open("wb") as log:
        server = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "hub.cli.main", "serve", "--config", str(config),
            stdout=log, stderr=log, env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
    async with aiohttp.ClientSession() as session, asyncio.timeout(TIMEOUT):
        while not await _is_ready(session, url):
            if server.returncode is not None:
                raise CheckFailed("the server did not start")
            await asyncio.sleep(0.05)
    return server


async def _is_ready(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(f"{url}/readyz") as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False


async def _stop_server(server: asyncio.subprocess.Process) -> None:
    if server.returncode is None:
        server.terminate()
    async with asyncio.timeout(TIMEOUT):
        code = await server.wait()
    _check(code == 0, f"the server shuts down cleanly (it returned {code})")


async def _until_status(client: ApiClient, expected: str) -> None:
    async def has_reached(stack: Json) -> bool:
        status = str(stack["stack_status"])
        if status != expected and not status.endswith("_IN_PROGRESS"):
            raise CheckFailed(
                f"the stack is {status}, not {expected}: {stack['stack_status_reason']}"
            )
        return status == expected

    await _until(client, has_reached, expected)
    _report(expected, "")


async def _is_deleted(stack: Json) -> bool:
    return str(stack["stack_status"]) == "DELETE_COMPLETE"


async def _until(
    client: ApiClient, condition: Callable[[Json], Awaitable[bool]], expected: str
) -> None:
    stack_id = (await client.call("GET", f"/stacks/{STACK}"))["stack"]["id"]
    try:
        async with asyncio.timeout(TIMEOUT):
            while True:
                stack = (await client.call("GET", f"/stacks/{stack_id}"))["stack"]
                if await condition(stack):
                    return
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise CheckFailed(f"timeout while waiting for {expected}") from None


def _check(passed: bool, expected: str) -> None:
    if not passed:
        raise CheckFailed(expected)


def _report(step: str, details: str) -> None:
    LastReport.at = monotonic()
    # Addresses and folders are not broken, so that they can be copied.
    out.print(f"[bold]{step}[/]  [dim]{details}[/]", soft_wrap=True)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def look(client: ApiClient, url: str) -> None:
    """Create the shop, print its address, and run until interrupted."""
    body = template_body(SHOP / "shop.yaml") | {
        "stack_name": "shop",
        "environment": (SHOP / "env.yaml").read_text(),
    }
    created = await client.call("POST", "/stacks", body=body)
    out.print("\nAn example shop waits for approval of its database, server and address.")
    page = f"{url}/#/{PROJECT}"
    out.print(f"  The stack: [bold]{page}/stack/shop/{created['stack']['id']}[/]", soft_wrap=True)
    out.print(f"  The inbox: [bold]{page}/inbox[/]", soft_wrap=True)
    out.print("Press Ctrl-C to stop and remove everything.")
    await asyncio.Event().wait()
