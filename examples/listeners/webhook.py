"""Answers hooks by the exit code of a command: 0 continues, any other rejects.

    SECRET=whsec_... python webhook.py -- ./check.sh

Receives webhooks, verifies their signatures and acknowledges them at once. Then runs the command
with the notification on standard input, and answers with the token of the notification. The command
can run for as long as the hook waits. See README.md.
"""

import argparse
import asyncio
import json
import os
from typing import Any

import aiohttp
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError


async def run_check(command: list[str], event: dict[str, Any]) -> dict[str, str]:
    """The answer. The last line of the command's output is the reason."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate(json.dumps(event["data"]).encode())
    lines = printed.decode(errors="replace").strip().splitlines()
    decision = "continue" if process.returncode == 0 else "reject"
    return {"decision": decision, "reason": lines[-1] if lines else ""}


async def answer(app: web.Application, event: dict[str, Any]) -> None:
    data = event["data"]
    decision = await run_check(app["command"], event)
    # Headgate refuses the answer if the change differs from the one that the command checked.
    decision["digest"] = data["hook"]["digest"]
    async with app["session"].post(
        data["signal_url"], json=decision, headers={"Authorization": f"Bearer {data['token']}"}
    ) as response:
        shown = (await response.json()) if response.status != 200 else decision
        print(data["hook"]["path"], data["hook"]["point"], response.status, shown, flush=True)


async def receive_notification(request: web.Request) -> web.Response:
    app = request.app
    try:
        event = app["webhook"].verify(await request.read(), dict(request.headers))
    except WebhookVerificationError as error:
        raise web.HTTPUnauthorized(text=str(error)) from None
    # A notification can be delivered twice, with the same ID. Answer it once.
    if event["type"] == "headgate.hook.waiting" and event["id"] not in app["seen"]:
        app["seen"].add(event["id"])
        app["tasks"].append(asyncio.create_task(answer(app, event)))
    return web.Response(status=204)


async def session(app: web.Application):  # type: ignore[no-untyped-def]
    async with aiohttp.ClientSession() as app["session"]:
        yield
        for task in app["tasks"]:
            task.cancel()


def main() -> None:
    parser = argparse.ArgumentParser(description="Answers hooks by the exit code of a command.")
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    app = web.Application()
    app["command"], app["webhook"] = options.command, Webhook(os.environ["SECRET"])
    app["seen"], app["tasks"] = set(), []
    app.cleanup_ctx.append(session)
    app.router.add_post("/", receive_notification)
    web.run_app(app, host="127.0.0.1", port=options.port)


if __name__ == "__main__":
    main()
