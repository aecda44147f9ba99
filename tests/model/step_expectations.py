"""Where stepping is to stop, as docs/reference/hooks.md says it: from the answers alone.

The model of the tree records the expectation beside the step modes of the product, and an invariant
compares the two. Nothing here reads the product's rules.
"""

from collections.abc import Mapping
from typing import NamedTuple

from engine.words import Decision, StepKind, StepMode


class StepExpectations(NamedTuple):
    """modes: (stack, step mode) of the stacks of the change that have one. into: the nested stacks
    into which an answer steps and whose traversal has not begun."""

    modes: frozenset[tuple[int, StepMode]] = frozenset()
    into: frozenset[int] = frozenset()

    def mode(self, stack: int) -> StepMode | None:
        return dict(self.modes).get(stack)

    def with_mode(self, stack: int, mode: StepMode | None) -> "StepExpectations":
        others = {one for one in self.modes if one[0] != stack}
        return self._replace(modes=frozenset(others | ({(stack, mode)} if mode else set())))

    def after_start(self, parent: int, nested: int) -> "StepExpectations":
        """A nested stack begins as the answer at its resource says; else it runs with its parent,
        or stops at rules."""
        mode = StepMode.RUN if self.mode(parent) is StepMode.RUN else None
        after = self.with_mode(nested, StepMode.STEP if nested in self.into else mode)
        return after._replace(into=self.into - {nested})

    def after_answer(
        self,
        positions: tuple[tuple[int, str], ...],
        levels: Mapping[int, int],
        stack: int,
        nested: int | None,
        decision: Decision,
        how: StepKind,
        *,
        is_stepped: bool,
    ) -> "StepExpectations":
        """After the answer to a hook of a stack. nested: the stack that its resource owns.
        is_stepped: stepping opened it."""
        parents = [one for one, level in levels.items() if level < 0]
        match decision:
            case Decision.STEP if how is StepKind.OUT:
                inside = self._without_stepping(_inside(positions, stack))
                return inside.with_mode(stack, None)._stepping(parents)
            case Decision.STEP:
                into = self.into - {nested} | ({nested} if how is StepKind.INTO else set())
                after = self.with_mode(stack, StepMode.STEP)._stepping(parents)
                return after._replace(into=frozenset(one for one in into if one is not None))
            case Decision.RUN:
                after = self._without_stepping([*parents, *_inside(positions, stack)])
                for one, level in levels.items():
                    after = after.with_mode(one, StepMode.RUN) if level >= 0 else after
                return after._replace(into=self.into - {*_inside(positions, stack)})
            case Decision.CONTINUE | Decision.REJECT if is_stepped:
                after = self._without_stepping(parents, ends_into=False)
                return after.with_mode(stack, None)
            case _:
                return self

    def after_run_to(self) -> "StepExpectations":
        """After running to a resource: no stack steps, and rules block in all of them."""
        return NOTHING_EXPECTED

    def _stepping(self, stacks: list[int]) -> "StepExpectations":
        after = self
        for stack in stacks:
            after = after.with_mode(stack, StepMode.STEP)
        return after

    def _without_stepping(self, stacks: list[int], *, ends_into: bool = True) -> "StepExpectations":
        after = self
        for stack in stacks:
            if after.mode(stack) is StepMode.STEP:
                after = after.with_mode(stack, None)
        return after._replace(into=self.into - set(stacks)) if ends_into else after


def _inside(positions: tuple[tuple[int, str], ...], stack: int) -> list[int]:
    """The nested stacks of a stack, at all levels."""
    inside = {stack}
    for number, (parent, _) in enumerate(positions):
        if parent in inside:
            inside.add(number)
    return sorted(inside - {stack})


NOTHING_EXPECTED = StepExpectations()
