"""Drains a server in HAProxy before it is changed, and makes it ready again afterwards.

    SECRET=whsec_... python drain.py --haproxy 127.0.0.1:9999 --backend web

Before a change (`pre-replace`, `pre-update`) it drains the server that has the name of the
resource, and waits until the server has no sessions. After the change (`post-replace`,
`post-update`) it makes the server ready again. It reports progress while it waits. If the hook is
closed meanwhile, the server is made ready again. See README.md.
"""

import argparse
import asyncio
import csv
import os

from headgate import (
    Continue,
    HookAnswer,
    HookClosed,
    HookNotification,
    Listener,
    Reject,
    WebhookServer,
)

app = Listener()
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


@app.hook(*BEFORE)
async def drain(hook: HookNotification) -> HookAnswer:
    server = hook.resource["name"]
    try:
        await balancer.set_state(server, "drain")
        while (left := await balancer.sessions(server)) > 0:
            await hook.progress(f"{left} sessions are left on {server}")
            await asyncio.sleep(options.interval)
    except (HookClosed, asyncio.CancelledError):
        await balancer.set_state(server, "ready")
        raise
    except (OSError, RuntimeError) as error:
        return Reject(str(error) or type(error).__name__)
    return Continue(f"{server} is drained")


@app.hook(*AFTER)
async def enable(hook: HookNotification) -> HookAnswer:
    server = hook.resource["name"]
    try:
        await balancer.set_state(server, "ready")
    except (OSError, RuntimeError) as error:
        return Reject(str(error) or type(error).__name__)
    return Continue(f"{server} is back")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Drains servers before they are changed.")
    parser.add_argument("--port", type=int, default=9003)
    parser.add_argument(
        "--haproxy", default="127.0.0.1:9999", help="address of the runtime API (stats socket)"
    )
    parser.add_argument("--backend", default="web")
    parser.add_argument("--interval", type=float, default=2.0, help="seconds between two checks")
    options = parser.parse_args()
    balancer = Balancer(options.haproxy, options.backend)
    secret = os.environ["SECRET"]
    app.run(webhook=WebhookServer(f"127.0.0.1:{options.port}", secret=secret))
