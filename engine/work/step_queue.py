"""Steps that wait to be written, in batches bounded by count and by bytes.

A batch that the database refuses is set apart: its steps are written one at a time, so that the
one at fault fails alone.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.store.advance import BATCH_BYTES, Claim
from engine.words import Json
from engine.work.internal_error import Wreck
from engine.work.job import Job, NodeInput


class Decided(NamedTuple):
    """A node, and the input upon which its step was decided."""

    job: Job
    said: NodeInput


@dataclass(slots=True)
class WaitingStep:
    """step: as `advance` takes it. size: bytes of it, or of what comes back for it. of: whose it
    is. decided: upon what; None: it opens no hook, and so is never refused. tries: how often it
    could not be written by itself. last: it is a bare failure already."""

    step: Json
    size: int
    of: Wreck
    decided: Decided | None = None
    tries: int = 0
    last: bool = False

    @property
    def claim(self) -> Claim:
        return self.of.work.key


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
        """The next batch, and whether it is a step set apart, which is to be written alone."""
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
        """They are the first of the next batch."""
        self._steps.extendleft(reversed(taken))

    def set_apart(self, taken: Sequence[WaitingStep]) -> None:
        """Each is written alone."""
        self._apart.extend(taken)
