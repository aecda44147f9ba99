"""Steps of claims that the database does not know are written neither now nor later."""

from itertools import count
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from engine.store.traversals.advance import Claim
from engine.work.nodes.step_queue import StepQueue, WaitingStep

#: Makes steps of one claim unequal.
COUNTER = count()


def step(node: int) -> WaitingStep:
    work = SimpleNamespace(key=Claim(UUID(int=1), 1, node, 1), nth=next(COUNTER))
    return WaitingStep({}, 1, cast(Any, SimpleNamespace(work=work)))


def test_dropped_steps_are_removed_and_do_not_return() -> None:
    queue = StepQueue(max_steps=2)
    steps = [step(node) for node in range(6)]
    for one in steps[:4]:
        queue.add(one)
    queue.set_apart(steps[4:])
    first, _ = queue.take()  # apart
    batch = [queue.take()[0][0], *queue.take()[0]]
    assert [one.claim.node for one in [*first, *batch]] == [4, 5, 0, 1]
    queue.drop([one.claim for one in (steps[1], steps[2], steps[4])])
    queue.put_back(batch)
    queue.set_apart(first)
    assert sorted(one.claim.node for one in queue) == [0, 3, 5]


def test_steps_of_a_dropped_claim_that_was_taken_again_are_kept() -> None:
    queue = StepQueue(max_steps=2)
    before, again = step(1), step(1)
    queue.drop([before.claim])
    queue.accept(again.context.work)
    queue.put_back([before, again])
    assert [*queue] == [again]
    queue.take()
    queue.set_apart([before, again])
    assert [*queue] == [again]
    queue.drop([again.claim])
    queue.put_back([before, again])
    assert [*queue] == []


def test_steps_of_a_failed_batch_are_written_one_at_a_time() -> None:
    queue = StepQueue(max_steps=10)
    steps = [step(node) for node in range(3)]
    for one in steps:
        queue.add(one)
    batch, _ = queue.take()
    queue.set_apart(batch)
    assert [queue.take() for _ in steps] == [([one], True) for one in steps]
