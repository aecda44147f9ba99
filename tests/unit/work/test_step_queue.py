"""Steps of claims that the database does not know are written neither now nor later."""

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

from engine.store.traversals.advance import Claim
from engine.work.step_queue import StepQueue, WaitingStep


def step(node: int) -> WaitingStep:
    context: Any = SimpleNamespace(work=SimpleNamespace(key=Claim(UUID(int=1), 1, node, 1)))
    return WaitingStep({}, 1, cast(Any, context))


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
