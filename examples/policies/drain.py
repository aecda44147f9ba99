"""Drains a server in HAProxy before it is changed, and makes it ready again afterwards.

    SECRET=whsec_... python drain.py --haproxy 127.0.0.1:9999 --backend web

Before a change (`pre-replace`, `pre-update`) it drains the server that has the name of the
resource, and waits until the server has no sessions. After the change (`post-replace`,
`post-update`) it makes the server ready again. Draining takes longer than a webhook allows, so the
program acknowledges the notification, sends `progress` while it waits, and answers with the token.
See README.md.
"""

import argparse
import asyncio
import csv
import os
from typing import Any

import aiohttp
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

BEFORE = ("pre-replace", "pre-update")
AFTER = ("post-replace", "post-update")


class Balancer:
    """HAProxy's runtime API, with one connection for each command."""

    def __init__(self, address: str, backend: str) -> None:
        self.host, _, self.port = address.rpartition(":")
        self.backend = backend

    async def execute(self, line: str) -> str:
        async with asyncio.timeout(10):
            reader, writer = await asyncio.open_connection(self.host, int(self.port))
            try:
                writer.write(f"{line}\n".encode())
                return (await reader.read()).decode().strip()
            finally:
                writer.close()

    async def set_state(self, server: str, state: str) -> None:
        error = await self.execute(f"set server {self.backend}/{server} state {state}")
        if error:
            raise RuntimeError(f"haproxy: {error}")

    async def sessions(self, server: str) -> int:
        table = (await self.execute("show stat")).removeprefix("# ")
        for row in csv.DictReader(table.splitlines()):
            if (row["pxname"], row["svname"]) == (self.backend, server):
                return int(row["scur"])
        raise RuntimeError(f"haproxy: no server {server} in {self.backend}")


class Drainer:
    def __init__(self, balancer: Balancer, interval: float) -> None:
        self.balancer, self.interval = balancer, interval
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def begin(self, data: dict[str, Any]) -> None:
        """Starts the work for a hook once, even if its notification is delivered twice."""
        hook_id = data["hook"]["id"]
        if hook_id not in self.tasks:
            self.tasks[hook_id] = task = asyncio.create_task(self.work(data))
            task.add_done_callback(lambda _: self.tasks.pop(hook_id))

    async def work(self, data: dict[str, Any]) -> None:
        server, point = data["resource"]["name"], data["hook"]["point"]
        try:
            if point in BEFORE:
                await self.drain(server, data)
                answer = {"decision": "continue", "reason": f"{server} is drained"}
            else:
                await self.balancer.set_state(server, "ready")
                answer = {"decision": "continue", "reason": f"{server} is back"}
        except (OSError, RuntimeError) as error:
            answer = {"decision": "reject", "reason": str(error) or type(error).__name__}
        if not await send_answer(data, answer) and point in BEFORE:
            await self.balancer.set_state(server, "ready")

    async def drain(self, server: str, data: dict[str, Any]) -> None:
        await self.balancer.set_state(server, "drain")
        while (left := await self.balancer.sessions(server)) > 0:
            reason = f"{left} sessions are left on {server}"
            if not await send_answer(data, {"decision": "progress", "reason": reason}):
                return  # the hook is decided or superseded; the last answer is refused, too
            await asyncio.sleep(self.interval)


async def send_answer(data: dict[str, Any], answer: dict[str, str]) -> bool:
    """Whether Headgate accepted the answer. False if the hook is already decided or superseded."""
    headers = {"Authorization": f"Bearer {data['token']}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(data["signal_url"], json=answer, headers=headers) as response,
    ):
        print(data["hook"]["path"], data["hook"]["point"], answer, response.status, flush=True)
        return response.status == 200


async def receive_notification(request: web.Request) -> web.Response:
    try:
        event = request.app["webhook"].verify(await request.read(), dict(request.headers))
    except WebhookVerificationError as error:
        raise web.HTTPUnauthorized(text=str(error)) from None
    if event["type"] == "headgate.hook.waiting":
        hook = event["data"]["hook"]
        if hook["mode"] == "wait" and hook["point"] in (*BEFORE, *AFTER):
            request.app["drainer"].begin(event["data"])
            return web.Response(status=202)
    return web.Response(status=204)


def main() -> None:
    parser = argparse.ArgumentParser(description="Drains servers before they are changed.")
    parser.add_argument("--port", type=int, default=9003)
    parser.add_argument(
        "--haproxy", default="127.0.0.1:9999", help="address of the runtime API (stats socket)"
    )
    parser.add_argument("--backend", default="web")
    parser.add_argument("--interval", type=float, default=2.0, help="seconds between two checks")
    options = parser.parse_args()
    app = web.Application()
    app["drainer"] = Drainer(Balancer(options.haproxy, options.backend), options.interval)
    app["webhook"] = Webhook(os.environ["SECRET"])
    app.router.add_post("/", receive_notification)
    web.run_app(app, host="127.0.0.1", port=options.port)


if __name__ == "__main__":
    main()
