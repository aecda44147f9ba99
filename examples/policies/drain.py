"""Takes a server out of HAProxy before it is changed, and puts it back afterwards.

    SECRET=whsec_... python drain.py --haproxy 127.0.0.1:9999 --backend web

Before a change (`pre-replace`, `pre-update`) it drains the server of the resource's name and waits
until nobody uses it; after it (`post-replace`, `post-update`) it makes it ready again. That takes
longer than a webhook may, so the notice is only taken; the answer is a signal with the notice's
token, and until then the hook is told that it is in progress. See README.md beside this file.
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
    """HAProxy's runtime API: a connection for each line."""

    def __init__(self, address: str, backend: str) -> None:
        self.host, _, self.port = address.rpartition(":")
        self.backend = backend

    async def say(self, line: str) -> str:
        async with asyncio.timeout(10):
            reader, writer = await asyncio.open_connection(self.host, int(self.port))
            try:
                writer.write(f"{line}\n".encode())
                return (await reader.read()).decode().strip()
            finally:
                writer.close()

    async def set_state(self, server: str, state: str) -> None:
        complaint = await self.say(f"set server {self.backend}/{server} state {state}")
        if complaint:
            raise RuntimeError(f"haproxy: {complaint}")

    async def sessions(self, server: str) -> int:
        table = (await self.say("show stat")).removeprefix("# ")
        for row in csv.DictReader(table.splitlines()):
            if (row["pxname"], row["svname"]) == (self.backend, server):
                return int(row["scur"])
        raise RuntimeError(f"haproxy: no server {server} in {self.backend}")


class Drainer:
    def __init__(self, balancer: Balancer, beat: float) -> None:
        self.balancer, self.beat = balancer, beat
        self.at_work: dict[str, asyncio.Task[None]] = {}

    def begin(self, data: dict[str, Any]) -> None:
        """The same notice may come twice."""
        hook_id = data["hook"]["id"]
        if hook_id not in self.at_work:
            self.at_work[hook_id] = task = asyncio.create_task(self.work(data))
            task.add_done_callback(lambda _: self.at_work.pop(hook_id))

    async def work(self, data: dict[str, Any]) -> None:
        server, point = data["resource"]["name"], data["hook"]["point"]
        try:
            if point in BEFORE:
                await self.drain(server, data)
                said = {"decision": "continue", "reason": f"{server} is drained"}
            else:
                await self.balancer.set_state(server, "ready")
                said = {"decision": "continue", "reason": f"{server} is back"}
        except (OSError, RuntimeError) as error:
            said = {"decision": "reject", "reason": str(error) or type(error).__name__}
        if not await signal(data, said) and point in BEFORE:
            await self.balancer.set_state(server, "ready")

    async def drain(self, server: str, data: dict[str, Any]) -> None:
        await self.balancer.set_state(server, "drain")
        while (left := await self.balancer.sessions(server)) > 0:
            reason = f"{left} sessions are left on {server}"
            if not await signal(data, {"decision": "progress", "reason": reason}):
                return  # it is nobody's to answer any more, which the last signal will be told, too
            await asyncio.sleep(self.beat)


async def signal(data: dict[str, Any], said: dict[str, str]) -> bool:
    """Whether it was taken. Not, when somebody else decided, or a newer change took over."""
    headers = {"Authorization": f"Bearer {data['token']}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(data["signal_url"], json=said, headers=headers) as answer,
    ):
        print(data["hook"]["path"], data["hook"]["point"], said, answer.status, flush=True)
        return answer.status == 200


async def notice(request: web.Request) -> web.Response:
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
        "--haproxy", default="127.0.0.1:9999", help="its runtime API (stats socket)"
    )
    parser.add_argument("--backend", default="web")
    parser.add_argument("--beat", type=float, default=2.0, help="seconds between looks")
    options = parser.parse_args()
    app = web.Application()
    app["drainer"] = Drainer(Balancer(options.haproxy, options.backend), options.beat)
    app["webhook"] = Webhook(os.environ["SECRET"])
    app.router.add_post("/", notice)
    web.run_app(app, host="127.0.0.1", port=options.port)


if __name__ == "__main__":
    main()
