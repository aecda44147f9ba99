"""Answers hooks by what a command says of them: exit code 0 lets the change go on.

    SECRET=whsec_... python webhook.py -- ./check.sh

Receives webhooks, checks their signature and says thank you at once; then runs the command with the
notice on its standard input, and answers with the notice's token. The command may take as long as
the hook waits. See README.md beside this file.
"""

import argparse
import asyncio
import json
import os
from typing import Any

import aiohttp
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError


async def judge(command: list[str], event: dict[str, Any]) -> dict[str, str]:
    """The answer: the last line that the command prints is the reason."""
    process = await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    printed, _ = await process.communicate(json.dumps(event["data"]).encode())
    lines = printed.decode(errors="replace").strip().splitlines()
    decision = "continue" if process.returncode == 0 else "reject"
    return {"decision": decision, "reason": lines[-1] if lines else ""}


async def answer(app: web.Application, event: dict[str, Any]) -> None:
    data = event["data"]
    said = await judge(app["command"], event)
    # Refused when something else waits there now.
    said["digest"] = data["hook"]["digest"]
    async with app["session"].post(
        data["signal_url"], json=said, headers={"Authorization": f"Bearer {data['token']}"}
    ) as response:
        told = (await response.json()) if response.status != 200 else said
        print(data["hook"]["path"], data["hook"]["point"], response.status, told, flush=True)


async def notice(request: web.Request) -> web.Response:
    app = request.app
    try:
        event = app["webhook"].verify(await request.read(), dict(request.headers))
    except WebhookVerificationError as error:
        raise web.HTTPUnauthorized(text=str(error)) from None
    # The same notice may come twice: its id is the same, and so is our answer.
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
    parser = argparse.ArgumentParser(description="Answers hooks by a command's exit code.")
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    app = web.Application()
    app["command"], app["webhook"] = options.command, Webhook(os.environ["SECRET"])
    app["seen"], app["tasks"] = set(), []
    app.cleanup_ctx.append(session)
    app.router.add_post("/", notice)
    web.run_app(app, host="127.0.0.1", port=options.port)


if __name__ == "__main__":
    main()
