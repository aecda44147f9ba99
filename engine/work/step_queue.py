"""Queue of steps to write, in batches bounded by count and by bytes.

After the database refuses a batch, its steps are written one at a time, so that only the step at
fault fails.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.store.advance import BATCH_BYTES, Claim
from engine.words import Json
from engine.work.internal_error import NodeContext
from engine.work.job import Job, NodeInput


class Decided(NamedTuple):
    """A node and the input from which its step was decided."""

    job: Job
    node_input: NodeInput


@dataclass(slots=True)
class WaitingStep:
    """step: document for `advance`. size: its bytes, or those of the documents that come back for
    it. context: its node. decided: None for a step that opens no hook, which is never refused.
    tries: how often it failed in a batch of its own. last: it is a failure without documents.
    """

    step: Json
    size: int
    context: NodeContext
    decided: Decided | None = None
    tries: int = 0
    last: bool = False

    @property
    def claim(self) -> Claim:
        return self.context.work.key


class StepQueue:
    def __init__(self, most: int, most_bytes: int = BATCH_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._steps: deque[WaitingStep] = deque()
        self._apart: deque[WaitingStep] = deque()

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
        taken: list[WaitingStep] = []
        size = 0
        while self._steps and len(taken) < self._most:
            size += self._steps[0].size
            if taken and size > self._most_bytes:
                break
            taken.append(self._steps.popleft())
        return taken, False

    def put_back(self, taken: Sequence[WaitingStep]) -> None:
        """Put steps back at the front of the queue."""
        self._steps.extendleft(reversed(taken))

    def set_apart(self, taken: Sequence[WaitingStep]) -> None:
        """Write each of these steps in a batch of its own."""
        self._apart.extend(taken)
