"""Nested stacks of resources without an engine: each command ends at once."""

from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from engine.types.contract import Child, Member, NestedCommand, ReconcileNested
from engine.words import StackId, TraversalState

CHILD = StackId(UUID(int=9))
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


def run_command(
    child: Child | None,
    step: str,
    goal: NestedCommand,
    *,
    failed: Collection[str] = (),
    id_: UUID = CHILD,
) -> Child:
    """The stack when the step has ended. failed: members that have. id_: of a new one.

    Members are made one a second, in the order of their names.
    """
    there = child or Child(StackId(id_), "inside", "", TraversalState.COMPLETE, "")
    if not isinstance(goal, ReconcileNested):
        return replace(there, step=step)
    if goal.template is None:  # of a file
        assert goal.file
        return replace(there, step=step, outputs={"Address": "10.0.0.1"})
    created_at = {one.name: one.created_at for one in there.members}
    last = max(created_at.values(), default=BEGINNING)
    names = [*goal.template["resources"]]
    new = (name for name in names if name not in created_at)
    created_at |= {name: last + timedelta(seconds=place) for place, name in enumerate(new, start=1)}
    members = [
        Member(
            name, "T", "CREATE", "FAILED" if name in failed else "COMPLETE", f"id-{name}",
            f"ref-{name}", {"output": f"of {name}"}, created_at[name],
        )
        for name in sorted(names, key=lambda name: created_at[name])
    ]  # fmt: skip
    failing = bool({*failed} & {*names})
    return Child(
        there.id,
        there.name,
        step,
        TraversalState.FAILED if failing else TraversalState.COMPLETE,
        "a member failed" if failing else "",
        members,
        {},
        goal.template,
        goal.parameters,
    )
