"""Outputs of other stacks that templates read with `stack_output`."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar
from uuid import UUID

from engine.errors import Conflict, Finding, Invalid, nearest, without_value
from engine.hot.evaluation.stack_outputs import (
    OutputName,
    StackOutput,
    StackOutputs,
    sources_of,
)
from engine.hot.functions.cost_budget import CostBudget, resolution_budget
from engine.service.reads.stored_state import evaluate_outputs
from engine.store.connection import Connection
from engine.store.records import StackRecord, TemplateRecord
from engine.store.stacks import stack_dependencies, stack_lists, templates
from engine.words import Action, Status, uuid_or_none

T = TypeVar("T")
#: Maximum number of stacks whose outputs one stack reads, and of rounds: an output may contain the
#: name of the next stack.
MAX_STACKS = 50
MAX_ROUNDS = 5
#: A stack has no outputs that count before one of these is complete.
FIRST_ACTIONS = (Action.CREATE, Action.ADOPT)
WITHHELD = "the reason is not shown because it depends on a secret"

Read = Callable[[Collection[OutputName]], Awaitable[Mapping[OutputName, StackOutput]]]


async def with_stack_outputs(
    define: Callable[[StackOutputs], Awaitable[T]],
    read: Read,
    known: Mapping[OutputName, StackOutput],
) -> T:
    """Call `define` with the outputs that it needs: again, as long as some are missing.

    known: values to use. read: returns others. Raises Invalid.
    """
    outputs = StackOutputs(known)
    for _ in range(MAX_ROUNDS):
        try:
            found = await define(outputs)
        except Invalid:
            if not outputs.missing:
                raise
        else:
            if not outputs.missing:
                return found
        outputs = StackOutputs({**outputs.known, **await read(outputs.missing)})
    reason = "The names of stacks in stack_output come from too many outputs of other stacks."
    raise Invalid([Finding("", reason, "Write the names, or take them from parameters.")])


async def read_stack_outputs(
    conn: Connection, project: str, wanted: Collection[OutputName], reader: UUID | None
) -> dict[OutputName, StackOutput]:
    """Read outputs of root stacks of a project. reader: the stack that reads; None: a new one.

    Together, the outputs may cost what those of one stack may.
    """
    found: dict[OutputName, StackOutput] = {}
    budget = resolution_budget()
    grouped = groupby(sorted(wanted), key=lambda one: one.stack)
    for number, (stack, names) in enumerate(grouped):
        if number >= MAX_STACKS:
            reason = f"The stack reads outputs of more than {MAX_STACKS} stacks."
            found |= {name: StackOutput(error=reason) for name in names}
        else:
            found |= await _read_of_stack(conn, project, stack, list(names), reader, budget)
    return found


async def _read_of_stack(
    conn: Connection,
    project: str,
    name: str,
    wanted: Sequence[OutputName],
    reader: UUID | None,
    budget: CostBudget,
) -> dict[OutputName, StackOutput]:
    stack = await stack_lists.find_stack(conn, project, uuid_or_none(name), name)
    error, remedy = _refusal(stack, name, reader)
    if stack is None or error:
        return dict.fromkeys(wanted, StackOutput(error=error, remedy=remedy))
    shown = await templates.read_template_summary(conn, stack.id, stack.version)
    if shown.undecryptable:
        return dict.fromkeys(wanted, StackOutput(error=shown.undecryptable))
    values, secret = await evaluate_outputs(
        conn, stack, shown, frozenset(one.output for one in wanted), budget
    )
    known = [one["key"] for one in shown.outputs]
    found = {}
    for one in wanted:
        if one.output not in values:
            reason = f'The stack "{stack.name}" has no output "{one.output}".'
            near = nearest(one.output, known) or f"Outputs: {', '.join(known[:8]) or 'none'}."
            found[one] = StackOutput(error=reason, remedy=near)
            continue
        value, wrong = values[one.output]
        is_secret = one.output in secret
        if wrong is not None:
            shown_reason = without_value(wrong, WITHHELD) if is_secret else wrong
            reason = f'The output "{one.output}" of the stack "{stack.name}" has no value'
            found[one] = StackOutput(error=f"{reason}: {shown_reason}", remedy="Correct it there.")
        elif is_secret and stack.private_outputs:
            reason = f'The output "{one.output}" of the stack "{stack.name}" is secret'
            found[one] = StackOutput(
                error=f"{reason}, and the stack was nested: only its former parent reads it.",
                remedy="Update that stack with a template whose output is not secret.",
            )
        else:
            found[one] = StackOutput(value, is_secret, str(stack.id))
    return found


def _refusal(stack: StackRecord | None, name: str, reader: UUID | None) -> tuple[str, str]:
    """Return why the outputs of a stack cannot be read, and what to do; empty texts if they can."""
    if stack is None or stack.deleted_at is not None:
        return (
            f'There is no stack "{name}" in this project.',
            "Create it first, or correct the name.",
        )
    if stack.id == reader:
        return "A stack cannot read its own outputs.", "Read the resource with get_attr."
    if stack.root_id is not None:
        return (
            f'"{name}" is a nested stack: its outputs are for its parent stack.',
            "Read an output of its root stack.",
        )
    incomplete = stack.action in FIRST_ACTIONS and stack.status != Status.COMPLETE
    if incomplete or stack.action == Action.DELETE:
        state = f"{stack.action}_{stack.status}"
        return (
            f'The stack "{name}" has no outputs to read: it is in {state}.',
            "Wait until it is complete." if incomplete else "Read another stack.",
        )
    return "", ""


async def check_sources(
    conn: Connection,
    stack_id: UUID,
    outputs: Mapping[OutputName, StackOutput],
    *,
    lock: str | None = None,
) -> None:
    """Check the stacks that a new version of a stack reads, once more under the stack's lock.

    lock: the project, if the version will be stored: until the end of the transaction, none of the
    stacks is deleted, and none begins to read this stack. Raises Conflict if one has been deleted
    since, or reads this stack itself.
    """
    if not outputs:
        return
    if lock is not None:
        await stack_dependencies.lock_to_read(conn, lock)
    sources = [UUID(one) for one in sources_of(outputs.values())]
    state = await stack_dependencies.check_sources(conn, stack_id, sources)
    if state.deleted:
        reason = "A stack whose output this stack reads has been deleted meanwhile."
        raise Conflict(
            reason, place="stack_output", remedy="Send the request again.", code="StackOutputGone"
        )
    if state.circular:
        raise Conflict(
            f'the stacks would read each other: "{state.circular}" reads this stack, directly or'
            " through others, so neither could be deleted",
            place="stack_output",
            remedy="Remove one of the two references.",
            code="CircularDependencyException",
        )


async def refuse_if_read(
    conn: Connection, project: str, stack_id: UUID, name: str, done: str
) -> None:
    """Raise Conflict (StackInUse) if other stacks read outputs of a stack, also those of changes
    that are being accepted. done: `deleted`."""
    await stack_dependencies.lock_to_delete(conn, project)
    dependents = await stack_dependencies.read_dependents(conn, stack_id)
    if not dependents:
        return
    shown = ", ".join(one.name for one in dependents[:8])
    more = f" and {len(dependents) - 8} more" if len(dependents) > 8 else ""
    raise Conflict(
        f"Stack {name} cannot be {done}: its outputs are read by {shown}{more}.",
        place="stack",
        remedy="Delete these stacks first, or update them so that they do not read it.",
        code="StackInUse",
    )


@dataclass(frozen=True, slots=True)
class ReadOutput:
    """An output that a stack reads. stack_name: None: the stack does not exist any more. changed:
    its value differs from the one that was read."""

    stack_name: str | None
    stack_id: str
    output: str
    secret: bool
    changed: bool


@dataclass(frozen=True, slots=True)
class Dependencies:
    """reads: outputs of other stacks. read_by: other stacks, with the outputs that they read."""

    reads: Sequence[ReadOutput]
    read_by: Sequence[stack_dependencies.Dependent]


async def read_dependencies(conn: Connection, stack: StackRecord) -> Dependencies:
    """The stacks that a root stack depends on, and those that depend on it."""
    stored = [
        (record, used)
        for record in await _current_versions(conn, stack)
        for used in record.read_outputs().items()
    ]
    recorded = {(one.source, name.output): one for _, (name, one) in stored}
    wanted = [OutputName(source, output) for source, output in recorded]
    current = await read_stack_outputs(conn, stack.project, wanted, None)
    names = await stack_dependencies.read_names(conn, [UUID(one.stack) for one in wanted])
    reads = [
        ReadOutput(
            names.get(UUID(source)),
            source,
            output,
            one.secret,
            _differs(one, current[OutputName(source, output)]),
        )
        for (source, output), one in sorted(recorded.items())
    ]
    return Dependencies(reads, await stack_dependencies.read_dependents(conn, stack.id))


async def _current_versions(conn: Connection, stack: StackRecord) -> list[TemplateRecord]:
    """The versions of a stack and its nested stacks that read outputs."""
    found = await stack_dependencies.read_reading_versions(conn, stack.id)
    return [await templates.read_template(conn, *one) for one in found]


def _differs(before: StackOutput, now: StackOutput) -> bool:
    return bool(now.error) or before.value != now.value
