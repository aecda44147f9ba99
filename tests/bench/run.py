"""What the parts of a run share."""

import math
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.bench.client import Client
from tests.bench.figures import Figures
from tests.bench.machine import load
from tests.bench.server import ROOT, BenchPostgres, Server, Settings, running_server
from tests.bench.shapes import wide

#: Resources of the stack that a new server creates before anything is measured.
WARM = 1000


@dataclass(slots=True)
class Run:
    """One run of parts against one source tree.

    rounds: how often each figure of a small size is measured. sizes: resources of a stack. largest:
    the size of the stacks that are measured once only. servers: of the stacks on OpenStack. limits:
    whether to measure limits beside.
    """

    postgres: BenchPostgres
    figures: Figures = field(default_factory=Figures)
    source: Path = ROOT
    rounds: int = 5
    sizes: Sequence[int] = (100, 1_000, 10_000)
    largest: int = 100_000
    servers: Sequence[int] = (10, 50)
    limits: bool = True

    def add(self, part: str, case: str, size: int, **values: float) -> None:
        """Record one run's values with the present load."""
        self.figures.add(part, case, size, **values, load=load())
        text = " ".join(f"{name}={value:.4g}" for name, value in values.items())
        print(f"  {part} {case} {size}: {text}", file=sys.stderr, flush=True)

    def rounds_of(self, size: int) -> int:
        """Fewer rounds for large sizes, whose single measurements vary less."""
        return max(1, math.ceil(self.rounds * min(1.0, 2_000 / size)))

    @asynccontextmanager
    async def server(
        self, *, settings: Settings | None = None, roles: Sequence[str] = ()
    ) -> AsyncIterator[tuple[Server, Client]]:
        """A server that has already created one stack, and a client of it."""
        async with (
            running_server(
                self.postgres, source=self.source, settings=settings, roles=roles
            ) as server,
            Client.open(server.url) as client,
        ):
            if not roles or "engine" in roles:
                await client.until_ended(await client.create("warm", wide(WARM)))
            yield server, client
