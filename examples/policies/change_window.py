"""A change window: a change outside the window waits until the window opens, then continues.

    SECRET=whsec_... python change_window.py --days mon-fri --from 08:00 --to 18:00

Inside the window, the response is `continue`. Outside the window, the program sends `progress`
repeatedly to extend the deadline. If the program dies, the hook reaches its deadline. The waiting
hooks are stored in a file, and resumed after a restart. See README.md.
"""

import argparse
import asyncio
import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import aiohttp
from aiohttp import web
from standardwebhooks import Webhook, WebhookVerificationError

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True)
class Window:
    """A time span on some weekdays. It ends on the next day if `closes` is before `opens`."""

    days: frozenset[int]
    opens: time
    closes: time
    zone: ZoneInfo

    def opens_in(self, now: datetime) -> timedelta:
        """Time until the window opens; zero while it is open."""
        today = now.astimezone(self.zone).date()
        for ahead in range(-1, 8):
            day = today + timedelta(days=ahead)
            last = day if self.closes > self.opens else day + timedelta(days=1)
            start = datetime.combine(day, self.opens, self.zone).astimezone(UTC)
            end = datetime.combine(last, self.closes, self.zone).astimezone(UTC)
            if day.weekday() in self.days and now < end:
                return max(start - now, timedelta(0))
        raise ValueError("the window never opens")


class Waiting:
    """Waiting hooks: (signal_url, token) by hook ID, in a file that only its owner can read."""

    def __init__(self, path: Path, window: Window, interval: float) -> None:
        self.path, self.window, self.interval = path, window, interval
        self.hooks: dict[str, list[str]] = json.loads(path.read_text()) if path.exists() else {}
        self.tasks: set[asyncio.Task[None]] = set()

    def add(self, hook_id: str, signal_url: str, token: str) -> None:
        if hook_id not in self.hooks:
            self.hooks[hook_id] = [signal_url, token]
            self.save()
            self.start(hook_id)

    def start(self, hook_id: str) -> None:
        task = asyncio.create_task(self.until_open(hook_id))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def until_open(self, hook_id: str) -> None:
        while hook_id in self.hooks:
            left = self.window.opens_in(datetime.now(UTC)).total_seconds()
            if left:
                await asyncio.sleep(min(left, self.interval))
                # Extend beyond the next `progress`. Headgate never shortens a deadline.
                await self.answer(hook_id, "progress", extend=f"{int(3 * self.interval) + 1}s")
            elif not await self.answer(hook_id, "continue"):
                await asyncio.sleep(self.interval)

    async def answer(self, hook_id: str, decision: str, **more: str) -> bool:
        """Whether Headgate accepted the answer. Forgets a hook that can no longer be answered."""
        signal_url, token = self.hooks[hook_id]
        sent = {"decision": decision, "reason": "the change window", **more}
        headers = {"Authorization": f"Bearer {token}"}
        try:
            async with (
                aiohttp.ClientSession() as session,
                session.post(signal_url, json=sent, headers=headers) as response,
            ):
                status, text = response.status, await response.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            print(hook_id, decision, f"not sent: {error!r}", flush=True)
            return False
        print(hook_id, decision, status, "" if status == 200 else text, flush=True)
        if status < 500 and (status != 200 or decision == "continue"):
            del self.hooks[hook_id]
            self.save()
        return status == 200

    def save(self) -> None:
        new_file = self.path.with_suffix(".new")
        with os.fdopen(
            os.open(new_file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w"
        ) as file:
            json.dump(self.hooks, file)
        new_file.replace(self.path)


async def receive_notification(request: web.Request) -> web.Response:
    waiting = request.app["waiting"]
    try:
        event = request.app["webhook"].verify(await request.read(), dict(request.headers))
    except WebhookVerificationError as error:
        raise web.HTTPUnauthorized(text=str(error)) from None
    if event["type"] != "headgate.hook.waiting":
        return web.Response(status=204)
    data: dict[str, Any] = event["data"]
    if not data["hook"]["by_operator"]:
        return web.Response(status=204)  # a rule of the project, which others answer
    left = waiting.window.opens_in(datetime.now(UTC))
    if not left:
        return web.json_response({"decision": "continue", "reason": "the change window is open"})
    if not data["hook"]["dry"]:
        waiting.add(data["hook"]["id"], data["signal_url"], data["token"])
    opens = f"the change window opens in {timedelta(seconds=int(left.total_seconds()))}"
    return web.json_response({"decision": "progress", "reason": opens})


async def application(options: argparse.Namespace) -> web.Application:
    first, _, last = options.days.partition("-")
    begin, end = DAYS.index(first), DAYS.index(last or first)
    days = frozenset((begin + step) % 7 for step in range((end - begin) % 7 + 1))
    opens, closes = time.fromisoformat(options.opens), time.fromisoformat(options.closes)
    app = web.Application()
    window = Window(days, opens, closes, ZoneInfo(options.zone))
    app["waiting"] = waiting = Waiting(options.file, window, options.interval)
    app["webhook"] = Webhook(os.environ["SECRET"])
    app.router.add_post("/", receive_notification)
    for hook_id in waiting.hooks:
        waiting.start(hook_id)
    return app


def main() -> None:
    parser = argparse.ArgumentParser(description="Allows changes only in a change window.")
    parser.add_argument("--port", type=int, default=9004)
    parser.add_argument("--days", default="mon-fri", help="mon-fri, sat-sun, mon")
    parser.add_argument("--from", dest="opens", default="08:00", help="08:00, or 08:00:30")
    parser.add_argument("--to", dest="closes", default="18:00")
    parser.add_argument("--zone", default="UTC")
    parser.add_argument(
        "--interval", type=float, default=60.0, help="seconds between two `progress`"
    )
    parser.add_argument("--file", type=Path, default=Path("change-window.json"))
    options = parser.parse_args()
    web.run_app(application(options), host="127.0.0.1", port=options.port)


if __name__ == "__main__":
    main()
