"""A load during which the database fails over or processes are replaced, and its checks.

Stacks are created all the time. Others run complete lives, and some wait for an answer.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import pairwise
from uuid import uuid4

import aiohttp

from tests.fault.load import (
    Effects,
    FaultCounts,
    RetryingClient,
    check,
    new_client,
    new_folder,
    run_stack,
)
from tests.support.keys import key_file
from tests.support.program import PATIENCE, ServerProcess, eventually, resource, template

#: One process for each, as in production.
ROLES = (("api",), ("engine",), ("engine",), ("dispatch", "purge"))
#: Stacks that wait for an answer during the failover.
HELD = 5
HOOK = {"hooks": [{"at": "a", "on": "pre-create"}]}


class FailoverLoad:
    """pace: seconds between two creates."""

    def __init__(
        self, http: RetryingClient, effects: Effects, counts: FaultCounts, *, pace: float = 0
    ) -> None:
        self._pace = pace
        self._http, self._effects, self._counts = http, effects, counts
        self._tasks: list[asyncio.Task[None]] = []
        self._stop = asyncio.Event()
        self.created: set[str] = set()
        self._created_at: list[float] = []  # when creates were acknowledged
        self.refused: Counter[int] = Counter()
        self.lives = 0
        self.held = self.answered = 0
        self.problems: list[str] = []

    def __str__(self) -> str:
        return (
            f"{len(self.created)} creates acknowledged, {self.lives} lives of stacks,"
            f" {self.answered} hooks answered, refused: {dict(self.refused)},"
            f" lost or doubled: {self.problems}"
        )

    async def begin(self) -> None:
        """Return when all parts of the load are under way."""
        for number in range(HELD):
            await self._http.create(f"held{number}", {"a": resource()}, environment=HOOK)
        for number in range(HELD):
            await self._http.waiting_hooks(f"held{number}")
        self.held = HELD
        self._tasks = [asyncio.create_task(self._create()), asyncio.create_task(self._live())]
        await self.wait(lambda: len(self.created) >= 5 and bool(self._effects.workers()))

    async def wait(self, reached: Callable[[], bool]) -> None:
        """Wait for a condition, or for an error of the load."""

        async def check_load() -> bool:
            for task in self._tasks:
                if task.done():
                    task.result()
            return reached()

        await eventually(check_load)

    async def until_next_create(self) -> float:
        """Wait until another create is acknowledged; return the seconds."""
        began, before = time.monotonic(), len(self.created)
        await self.wait(lambda: len(self.created) > before)
        return time.monotonic() - began

    def longest_pause(self, since: float) -> float:
        """The longest time in seconds without an acknowledged create, from a time on."""
        times = [since, *(one for one in self._created_at if one > since)]
        return max(after - before for before, after in pairwise(times))

    async def until_refused(self) -> tuple[int, Mapping[str, str]]:
        """Send requests until one is refused; return its status and headers."""
        async with asyncio.timeout(PATIENCE):
            while True:
                async with self._http.session.get(f"{self._http.url}/v1/p/stacks") as answer:
                    if answer.status >= 500:
                        return answer.status, answer.headers

    async def end(self) -> None:
        """Let the load end, answer the held hooks, and compare."""
        self._stop.set()
        await asyncio.gather(*self._tasks)
        for number in range(HELD):
            name = f"held{number}"
            (hook,) = await self._http.waiting_hooks(name)
            path = f"/hooks/{hook['id']}/signal"
            status, answer = await self._http.request("POST", path, {"decision": "continue"})
            assert status == 200, answer
            await self._http.until_status(name, "CREATE_COMPLETE")
            self.answered += 1
        for name in self.created:
            await self._http.until_status(name, "CREATE_COMPLETE")
        self.compare(await self._names())
        if self._counts.lost or self._counts.doubled:
            self.problems += self._counts.notes

    def compare(self, names: Iterable[str]) -> None:
        """names: of all stacks."""
        count = Counter(names)
        self.problems += [f"{one} was created and is gone" for one in self.created - count.keys()]
        self.problems += [f"{one} exists {n} times" for one, n in count.items() if n > 1]

    async def _names(self) -> list[str]:
        status, response = await self._http.request("GET", "/stacks?limit=1000")
        assert status == 200, response
        return [one["stack_name"] for one in response["stacks"]]

    async def _create(self) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            await self._create_one(f"c{number}")
            await asyncio.sleep(self._pace)

    async def _create_one(self, name: str) -> None:
        """Create a stack; repeat with the same key until it is acknowledged."""
        body = {"stack_name": name, "template": template({"a": resource()})}
        headers = {"Idempotency-Key": uuid4().hex}
        end = time.monotonic() + 2 * PATIENCE
        while True:
            assert time.monotonic() < end, f"{name} was not created"
            try:
                status, response = await self._http.call("POST", "/stacks", body, headers=headers)
            except (aiohttp.ClientError, TimeoutError):
                status, response = 0, None
            if status == 201:
                self.created.add(name)
                self._created_at.append(time.monotonic())
                return
            assert status in (0, 503), response
            self.refused[status] += 1
            await asyncio.sleep(0.1)

    async def _live(self) -> None:
        while not self._stop.is_set() or not self.lives:
            self.lives += 1
            name = f"s{self.lives}"
            await run_stack(self._http, self._effects, name)
            check(self._effects, self._counts, name)


@asynccontextmanager
async def running_servers(database_url: str) -> AsyncIterator[FailoverLoad]:
    """Processes of each role on a database, and a load on them."""
    with new_folder() as folder:
        effects, counts = Effects(folder), FaultCounts()
        settings = f'{effects.settings}\n[credentials]\nkey_file = "{key_file()}"\n'
        servers = [
            ServerProcess(folder, settings=settings, roles=one, database_url=database_url)
            for one in ROLES
        ]
        async with AsyncExitStack() as stack:
            for server in servers:
                stack.callback(server.stop)
                await asyncio.to_thread(server.start)
            http = await stack.enter_async_context(new_client(servers[0].url, counts))
            yield FailoverLoad(http, effects, counts)
            assert all(server.is_running for server in servers)
