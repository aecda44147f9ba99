"""Queue of steps to write, in batches bounded by count and by bytes.

After the database refuses a batch, its steps are written one at a time, so that only the step at
fault fails.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from engine.store.traversals.advance import BATCH_BYTES, Claim, Work
from engine.words import Json
from engine.work.nodes.internal_error import NodeContext
from engine.work.nodes.job import Job, NodeInput
from engine.work.nodes.runs import LaterStep


class StepOrigin(NamedTuple):
    """A node and the input from which its step was decided."""

    job: Job
    node_input: NodeInput


@dataclass(slots=True)
class WaitingStep:
    """step: document for `advance`. size: its bytes, or those of the documents that the next claim
    returns. context: its node. decided: None for a failure without an input, which is never
    refused. tries: how often it failed in a batch of its own. last: it is a failure without
    documents. later: the other nodes of its run, which are written with it.
    """

    step: Json
    size: int
    context: NodeContext
    decided: StepOrigin | None = None
    tries: int = 0
    last: bool = False
    later: list[LaterStep] = field(default_factory=list)

    @property
    def claim(self) -> Claim:
        return self.context.work.key

    def documents(self) -> Iterator[Json]:
        """Yield the documents of the node and of the later nodes of its run."""
        if not self.later:
            yield self.step
            return
        run = {"run": self.claim.node, "run_size": 1 + len(self.later)}
        yield self.step | run
        for one in self.later:
            yield one.step | run

    def add_later(self, later: list[LaterStep]) -> None:
        self.later = later
        self.size += sum(one.size for one in later)

    def drop_later(self) -> None:
        """Write the node alone; the others become ready."""
        self.size -= sum(one.size for one in self.later)
        self.later = []


class StepQueue:
    def __init__(self, max_steps: int, max_bytes: int = BATCH_BYTES) -> None:
        self._max_steps = max_steps
        self._max_bytes = max_bytes
        self._steps: deque[WaitingStep] = deque()
        self._apart: deque[WaitingStep] = deque()
        self._dropped: dict[Claim, Work | None] = {}  # claims, with the work that has them again

    def __len__(self) -> int:
        return len(self._steps) + len(self._apart)

    def __iter__(self) -> Iterator[WaitingStep]:
        yield from self._steps
        yield from self._apart

    def add(self, one: WaitingStep) -> None:
        self._steps.append(one)

    def take(self) -> tuple[list[WaitingStep], bool]:
        """Return the next batch, and whether it is one step to write in a batch of its own."""
        if self._apart:
            return [self._apart.popleft()], True
        batch: list[WaitingStep] = []
        size = 0
        while self._steps and len(batch) < self._max_steps:
            size += self._steps[0].size
            if batch and size > self._max_bytes:
                break
            batch.append(self._steps.popleft())
        return batch, False

    def put_back(self, batch: Sequence[WaitingStep]) -> None:
        """Put steps back at the front of the queue."""
        self._steps.extendleft(reversed(self._without_dropped(batch)))

    def set_apart(self, batch: Sequence[WaitingStep]) -> None:
        """Write each of these steps in a batch of its own."""
        self._apart.extend(self._without_dropped(batch))

    def drop(self, claims: Collection[Claim]) -> None:
        """Remove the steps of these claims, also of those that are put back later."""
        self._dropped |= dict.fromkeys(claims)
        self._steps = deque(self._without_dropped(self._steps))
        self._apart = deque(self._without_dropped(self._apart))

    def accept(self, work: Work) -> None:
        """Keep the steps of this work, also if its claim was dropped: after a failover, the same
        claim can be taken again."""
        if work.key in self._dropped:
            self._dropped[work.key] = work

    def _without_dropped(self, steps: Iterable[WaitingStep]) -> list[WaitingStep]:
        return [one for one in steps if self._is_kept(one)]

    def _is_kept(self, one: WaitingStep) -> bool:
        return one.claim not in self._dropped or self._dropped[one.claim] is one.context.work
