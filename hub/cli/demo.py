"""`headgate demo`: everything at work, on this machine, in half a minute.

A server of its own in a temporary folder, a real webhook receiver, and the web service of
examples/. One hook is answered by the receiver in its response, one by a signal with its token,
one by nobody: the stack stops, and a PATCH resumes it. Each step is checked; the exit code is 0
only when all was as it must be.
"""

import asyncio
import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from aiohttp import web
from rich.console import Console
from standardwebhooks import Webhook

from engine.hot.expressions.masking import MASK
from hub.cli.client import Client, Refused
from hub.cli.context import PROJECT
from hub.cli.files import template_body

Json = Any
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "web-service"
STACK = "web"
#: Seconds any one step may take.
PATIENCE = 20.0
out = Console(highlight=False)


class Wrong(Exception):
    """Something was not as it must be."""


def run(instead: Callable[[Client, str], Awaitable[None]] | None = None) -> int:
    """Run the demo, or something instead of its story; return the exit code."""
    if not EXAMPLE.is_dir():
        out.print(f"The demo needs the folder examples/ of the source tree; not found: {EXAMPLE}")
        return 1
    folder = Path(tempfile.mkdtemp(prefix="headgate-demo-"))
    folder.chmod(0o711)  # as root, the database runs as another account
    try:
        asyncio.run(_demo(folder, instead))
    except KeyboardInterrupt:
        out.print("\nInterrupted; everything was removed.")
        return 0
    except (Wrong, Refused, TimeoutError) as error:
        out.print(f"\n[bold red]Check failed:[/] {str(error) or 'a step took too long'}")
        log = folder / "server.log"
        if log.exists():
            out.print(log.read_text()[-2000:], markup=False)
        return 1
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    out.print("\n[bold green]All checks passed.[/] Next: docs/tutorial/first-stack.md")
    return 0


async def _demo(folder: Path, instead: Callable[[Client, str], Awaitable[None]] | None) -> None:
    url = f"http://127.0.0.1:{_free_port()}"
    receiver = Receiver()
    server = await _start_server(folder, url)
    try:
        if instead is not None:
            async with Client(url, PROJECT) as client:
                await instead(client, url)
            return
        async with Client(url, PROJECT) as client, _listening(receiver) as target:
            _say("Server started", f"{url}, with PostgreSQL in {folder / 'data'}")
            made = await client.call(
                "POST",
                "/subscriptions",
                body={"target": target, "events": ["headgate.hook.*"], "stacks": [STACK]},
            )
            receiver.trust(made["secret"])
            _say("Webhook subscribed", target)
            await _story(client, receiver, folder)
    finally:
        await _stop_server(server)
    _say("Server and database stopped", "")


async def _story(client: Client, receiver: "Receiver", folder: Path) -> None:
    files = folder / "service"
    files.mkdir()
    await _made(client, receiver, files)
    first = await _service(client)
    _check(first["release"] == "1", "release 1 responds")
    _say(
        "The service responds",
        f"release {first['release']}, its secret has {first['secret']} characters",
    )
    await _stopped(client, receiver, files)
    _check((await _service(client))["release"] == "1", "release 1 still responds")
    _say("UPDATE_STOPPED: no resource was changed", "release 1 still responds")
    await client.call(
        "PATCH", f"/stacks/{STACK}", body={"hooks": {"clear": ["service:pre-update"]}}
    )
    await _until_status(client, "UPDATE_COMPLETE")
    _check((await _service(client))["release"] == "2", "release 2 responds")
    running = list(files.glob("service-*.state"))
    _check(len(running) == 1, "the old process has ended")
    _say("Resumed by an update", "release 2 responds, the old process has ended")
    await client.call("DELETE", f"/stacks/{STACK}")
    await _until(client, _gone, "the stack to be deleted")
    _check(not list(files.iterdir()), "all files and processes are gone")
    _say("Deleted", "all files and processes are gone")


async def _made(client: Client, receiver: "Receiver", files: Path) -> None:
    body = template_body(EXAMPLE / "web.yaml") | {
        "stack_name": STACK,
        "environment": (EXAMPLE / "env.yaml").read_text(),
        "parameters": _parameters(files, "1"),
    }
    await client.call("POST", "/stacks", body=body)
    _say(
        "Stack create started", "secret -> config -> service, with breakpoints before the last two"
    )
    notice = await receiver.notice("config")
    _check(
        notice["resource"]["properties"]["environment"]["SECRET"] == MASK, "the secret is masked"
    )
    _say("config waits at pre-create", "the webhook receiver approves in its response")
    notice = await receiver.notice("service")
    _say(
        "service waits at pre-create",
        f"until {notice['hook']['deadline']}; a program approves with the hook token",
    )
    await _signal(notice)
    await _until_status(client, "CREATE_COMPLETE")


async def _stopped(client: Client, receiver: "Receiver", files: Path) -> None:
    rule = {"at": "service", "on": "pre-update", "mode": "wait", "timeout": "2s"}
    body = template_body(EXAMPLE / "web.yaml") | {
        "environment": {"hooks": [rule]},
        "parameters": _parameters(files, "2"),
    }
    await client.call("PUT", f"/stacks/{STACK}", body=body)
    await receiver.notice("service")
    _say("Update to release 2 waits at pre-update", "for 2 s, without an answer")
    await _until_status(client, "UPDATE_STOPPED")


def _parameters(files: Path, release: str) -> dict[str, str]:
    return {
        "folder": str(files),
        "scripts": str(EXAMPLE),
        "python": sys.executable,
        "release": release,
    }


async def _signal(notice: Json) -> None:
    """What any program does with a notice: POST to its signal_url, with its token."""
    headers = {"Authorization": f"Bearer {notice['token']}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(
            notice["signal_url"], json={"decision": "continue"}, headers=headers
        ) as answer,
    ):
        _check(answer.status == 200, f"the answer is accepted (got {answer.status})")


async def _service(client: Client) -> Json:
    """Ask the real service, at the address the stack's output names."""
    stack = (await client.call("GET", f"/stacks/{STACK}"))["stack"]
    url = next(one["output_value"] for one in stack["outputs"] if one["output_key"] == "url")
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return await answer.json()


class Receiver:
    """A webhook receiver: checks signatures, keeps notices, answers hooks of `config` at once."""

    def __init__(self) -> None:
        self._webhook: Webhook | None = None
        self._notices: asyncio.Queue[Json] = asyncio.Queue()

    def trust(self, secret: str) -> None:
        self._webhook = Webhook(secret)

    async def receive(self, request: web.Request) -> web.Response:
        raw = await request.text()
        if self._webhook is None:
            return web.Response(status=503)
        self._webhook.verify(raw, dict(request.headers))
        event = orjson.loads(raw)
        if event["type"] != "headgate.hook.waiting":
            return web.Response(status=204)
        await self._notices.put(event["data"])
        if event["data"]["hook"]["path"] == "config":
            return web.json_response({"decision": "continue", "reason": "the demo approved it"})
        return web.Response(status=204)

    async def notice(self, resource: str) -> Json:
        """The next notice; it must be of this resource."""
        async with asyncio.timeout(PATIENCE):
            notice = await self._notices.get()
        _check(notice["hook"]["path"] == resource, f"a notification of {resource}")
        return notice


class _listening:
    """A receiver on a port of its own; gives its URL."""

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
arguments = [{json.dumps(str(EXAMPLE / "*.py"))}, "*"]
folders = [{json.dumps(str(folder))}]
"""
    )
    with (folder / "server.log").open("wb") as log:
        server = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "hub.cli.main", "serve", "--config", str(config),
            stdout=log, stderr=log, env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )  # fmt: skip
    async with aiohttp.ClientSession() as session, asyncio.timeout(PATIENCE):
        while not await _is_ready(session, url):
            if server.returncode is not None:
                raise Wrong("the server did not start")
            await asyncio.sleep(0.05)
    return server


async def _is_ready(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(f"{url}/readyz") as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False


async def _stop_server(server: asyncio.subprocess.Process) -> None:
    if server.returncode is None:
        server.terminate()
    async with asyncio.timeout(PATIENCE):
        code = await server.wait()
    _check(code == 0, f"the server shuts down cleanly (it returned {code})")


async def _until_status(client: Client, wanted: str) -> None:
    async def reached(stack: Json) -> bool:
        status = str(stack["stack_status"])
        if status != wanted and not status.endswith("_IN_PROGRESS"):
            raise Wrong(f"the stack is {status}, not {wanted}: {stack['stack_status_reason']}")
        return status == wanted

    await _until(client, reached, wanted)
    _say(wanted, "")


async def _gone(stack: Json) -> bool:
    return str(stack["stack_status"]) == "DELETE_COMPLETE"


async def _until(client: Client, condition: Callable[[Json], Awaitable[bool]], what: str) -> None:
    stack_id = (await client.call("GET", f"/stacks/{STACK}"))["stack"]["id"]
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                stack = (await client.call("GET", f"/stacks/{stack_id}"))["stack"]
                if await condition(stack):
                    return
                await asyncio.sleep(0.05)
    except TimeoutError:
        raise Wrong(f"waited too long for {what}") from None


def _check(true: bool, what: str) -> None:
    if not true:
        raise Wrong(what)


def _say(what: str, more: str) -> None:
    out.print(f"[bold]{what}[/]  [dim]{more}[/]")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
