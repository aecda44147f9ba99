"""A simulation of engines that share databases, from measured costs: what they carry together, and
what limits it.

An engine is one process on a core of its own. Each of its workers repeats: compute the steps of a
batch on the engine's core, write them on one of the cores of the database, and wait for a durable
commit. Commits that wait at the same time are flushed together. Cells share nothing, so one cell
with its part of the engines is simulated.
"""

import heapq
import itertools
import random
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

#: Workers of an engine, as the default of [engine] workers.
WORKERS = 2
#: Part of its time in which a station that limits the rate is busy, at least.
BUSY = 0.95


@dataclass(frozen=True, slots=True)
class Costs:
    """engine, database: seconds of CPU time of one resource, by number of engines on one database.
    batch: resources of one transaction. flush: seconds of a durable commit. idle: of a core of the
    database, for one engine."""

    engine: Mapping[int, float]
    database: Mapping[int, float]
    batch: float
    flush: float
    idle: float = 0.0


@dataclass(frozen=True, slots=True)
class Load:
    """rate: resources per second of all cells. engines, database, log: part of the time in which
    they are busy."""

    rate: float
    engines: float
    database: float
    log: float

    @property
    def limit(self) -> str:
        """What limits the rate."""
        if self.database >= BUSY:
            return "database"
        if self.log >= BUSY:
            return "commits"
        return "engines" if self.engines >= BUSY else "latency"


def cost_at(costs: Mapping[int, float], engines: int) -> float:
    """Interpolated between the numbers that were measured; beyond them, that of the nearest."""
    numbers = sorted(costs)
    if engines <= numbers[0]:
        return costs[numbers[0]]
    for low, high in itertools.pairwise(numbers):
        if engines <= high:
            part = (engines - low) / (high - low)
            return costs[low] + part * (costs[high] - costs[low])
    return costs[numbers[-1]]


def simulate(
    costs: Costs, engines: int, cells: int, cores: int, *, seconds: float = 5.0, seed: int = 1
) -> Load:
    """engines: of all cells; the same number in each, at least one. cores: of each database."""
    each = max(1, engines // cells)
    used = min(0.9, each * costs.idle / cores)
    cell = _Cell(costs, each, cores, 1 - used, random.Random(seed))
    cell.run(seconds)
    active = min(cells, engines)
    return Load(
        active * cell.batches * costs.batch / seconds,
        cell.engine_time / seconds / each,
        used + (1 - used) * cell.database_time / seconds / cores,
        cell.log_time / seconds,
    )


@dataclass(slots=True)
class _Cell:
    """The event simulation of one cell. speed: of the cores of the database, of 1."""

    costs: Costs
    engines: int
    cores: int
    speed: float
    rng: random.Random
    batches: int = 0
    engine_time: float = 0.0
    database_time: float = 0.0
    log_time: float = 0.0
    _events: list[tuple[float, int, str, int]] = field(default_factory=list)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    _at_engine: dict[int, deque[int]] = field(default_factory=dict)
    _computing: set[int] = field(default_factory=set)
    _at_database: deque[int] = field(default_factory=deque)
    _free_cores: int = 0
    _to_flush: list[int] = field(default_factory=list)
    _flushing: list[int] = field(default_factory=list)

    def run(self, seconds: float) -> None:
        self._free_cores = self.cores
        for worker in range(WORKERS * self.engines):
            self._arrive_at_engine(0.0, worker)
        while self._events and self._events[0][0] < seconds:
            now, _, event, worker = heapq.heappop(self._events)
            if event == "computed":
                self._leave_engine(now, worker)
            elif event == "written":
                self._leave_database(now, worker)
            else:
                self._end_flush(now, seconds)

    def _plan(self, at: float, event: str, worker: int) -> None:
        heapq.heappush(self._events, (at, next(self._numbers), event, worker))

    def _service(self, mean: float) -> float:
        return self.rng.expovariate(1 / mean)

    def _arrive_at_engine(self, now: float, worker: int) -> None:
        engine = worker // WORKERS
        if engine in self._computing:
            self._at_engine.setdefault(engine, deque()).append(worker)
            return
        self._computing.add(engine)
        took = self._service(cost_at(self.costs.engine, self.engines) * self.costs.batch)
        self.engine_time += took
        self._plan(now + took, "computed", worker)

    def _leave_engine(self, now: float, worker: int) -> None:
        engine = worker // WORKERS
        self._computing.discard(engine)
        if waiting := self._at_engine.get(engine):
            self._arrive_at_engine(now, waiting.popleft())
        self._at_database.append(worker)
        self._write(now)

    def _write(self, now: float) -> None:
        while self._free_cores and self._at_database:
            worker = self._at_database.popleft()
            self._free_cores -= 1
            cost = cost_at(self.costs.database, self.engines) / self.speed
            took = self._service(cost * self.costs.batch)
            self.database_time += took
            self._plan(now + took, "written", worker)

    def _leave_database(self, now: float, worker: int) -> None:
        self._free_cores += 1
        self._write(now)
        self._to_flush.append(worker)
        self._flush(now)

    def _flush(self, now: float) -> None:
        if self._flushing or not self._to_flush:
            return
        self._flushing, self._to_flush = self._to_flush, []
        self.log_time += self.costs.flush
        self._plan(now + self.costs.flush, "flushed", -1)

    def _end_flush(self, now: float, seconds: float) -> None:
        flushed, self._flushing = self._flushing, []
        if now <= seconds:
            self.batches += len(flushed)
        for worker in flushed:
            self._arrive_at_engine(now, worker)
        self._flush(now)
