"""The nested stack of a resource, as its type sees it, without an engine: commands end at once."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from inspect import isawaitable
from typing import Any

from engine.types.contract import (
    Call,
    Child,
    Confirm,
    Confirmation,
    NestedCommand,
    Outcome,
    ResourceType,
    RunNested,
    Wait,
)
from engine.types.groups.member_template import build_template, current_members
from engine.words import Json
from tests.unit.types.calls import a_call
from tests.unit.types.child_stacks import run_command

#: Answers a confirmation: an answer's data, or a rejection's reason.
AnswerConfirmation = Callable[[Confirm], Mapping[str, Json] | str | None]


async def is_finished(outcome: Any) -> Outcome:
    done: Outcome = await outcome
    return done


@dataclass
class NestedStack:
    """goals: the commands so far. broken: members that fail when they are created or changed.
    lost: steps whose call is lost after the command has run, because the worker crashed."""

    child: Child | None = None
    goals: list[RunNested] = field(default_factory=list)
    confirmations: list[Confirm] = field(default_factory=list)
    waits: list[timedelta] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)
    lost: set[str] = field(default_factory=set)

    @property
    def bodies(self) -> dict[str, Any]:
        return dict(current_members(self.child).bodies)

    def members(self, bodies: Mapping[str, Any], failed: tuple[str, ...] = ()) -> "NestedStack":
        """Create the nested stack with these members, one per second."""
        self._run_command("before", build_template(bodies, {}), failed)
        return self

    def run(
        self, type_: ResourceType, operation: str, properties: Mapping[str, Json], *,
        answering: AnswerConfirmation = lambda confirm: None, **more: Any,
    ) -> Outcome:  # fmt: skip
        """Run one operation to its end."""
        if self.child is not None:
            self.child = replace(self.child, step="")
        call = replace(a_call(type_, properties, **more), child=self.child)
        for _ in range(300):
            outcome: Any = getattr(type_, operation)(call)
            if isawaitable(outcome):
                outcome = asyncio.run(is_finished(outcome))
            match outcome:
                case RunNested(step=step, goal=goal, progress=progress):
                    self.goals.append(outcome)
                    self._run_command(step, goal, tuple(self.broken))
                    if step in self.lost:
                        self.lost.remove(step)
                        call = replace(call, child=self.child)
                        continue
                    call = replace(call, progress=progress, child=self.child, confirmation=None)
                case Wait(until=until, progress=progress):
                    assert until is not None
                    self.waits.append(until - call.now)
                    call = replace(call, now=until, progress=progress)
                case Confirm():
                    call = self._answer(call, outcome, answering(outcome))
                case _:
                    assert isinstance(outcome, Outcome)
                    return outcome
        raise AssertionError("the operation does not end")

    def _answer(
        self, call: Call, confirm: Confirm, answer: Mapping[str, Json] | str | None
    ) -> Call:
        self.confirmations.append(confirm)
        accepted = not isinstance(answer, str)
        reason = answer if isinstance(answer, str) else ""
        data = {confirm.step: answer} if isinstance(answer, Mapping) else {}
        return replace(
            call,
            progress=confirm.progress,
            confirmation=Confirmation(confirm.step, accepted, "dba", reason),
            answers={**call.answers, **data},
        )

    def _run_command(self, step: str, goal: NestedCommand, failed: tuple[str, ...]) -> None:
        self.child = run_command(self.child, step, goal, failed=failed)
