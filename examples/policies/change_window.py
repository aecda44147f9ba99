"""A change window: a change outside the window waits until the window opens, then continues.

    SECRET=whsec_... python change_window.py --days mon-fri --from 08:00 --to 18:00

The program reports progress repeatedly, which extends the deadline. If the program dies, the hook
reaches its deadline. The waiting hooks are stored in a file, and resumed after a restart. See
README.md.
"""

import argparse
import asyncio
import os
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from headgate import Continue, HookAnswer, HookNotification, Listener, WebhookServer

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


def window_of(options: argparse.Namespace) -> Window:
    first, _, last = options.days.partition("-")
    begin, end = DAYS.index(first), DAYS.index(last or first)
    days = frozenset((begin + step) % 7 for step in range((end - begin) % 7 + 1))
    opens, closes = time.fromisoformat(options.opens), time.fromisoformat(options.closes)
    return Window(days, opens, closes, ZoneInfo(options.zone))


def listener(window: Window, interval: float, file: Path) -> Listener:
    app = Listener(journal=file, grace=0)

    @app.hook(operator=True)
    async def wait_for_window(hook: HookNotification) -> HookAnswer:
        while left := window.opens_in(datetime.now(UTC)).total_seconds():
            opens = f"the change window opens in {timedelta(seconds=int(left))}"
            # Extend beyond the next report. Headgate never shortens a deadline.
            await hook.progress(opens, extend=f"{int(3 * interval) + 1}s")
            await asyncio.sleep(min(left, interval))
        return Continue("the change window is open")

    return app


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Allows changes only in a change window.")
    parser.add_argument("--port", type=int, default=9004)
    parser.add_argument("--days", default="mon-fri", help="mon-fri, sat-sun, mon")
    parser.add_argument("--from", dest="opens", default="08:00", help="08:00, or 08:00:30")
    parser.add_argument("--to", dest="closes", default="18:00")
    parser.add_argument("--zone", default="UTC")
    parser.add_argument("--interval", type=float, default=60.0, help="seconds between two reports")
    parser.add_argument("--file", type=Path, default=Path("change-window.json"))
    options = parser.parse_args()
    secret = os.environ["SECRET"]
    app = listener(window_of(options), options.interval, options.file)
    app.run(webhook=WebhookServer(f"127.0.0.1:{options.port}", secret=secret))
