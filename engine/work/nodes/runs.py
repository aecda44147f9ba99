"""Executes a claimed node together with the nodes that wait for it, in a run.

If an operation only computes (`ResourceType.computes_only`), its outcome can be discarded and
computed again. So a worker may execute such a node and then, in memory, those that wait for it
alone, before the first one is written. The node machine decides each of them as usual. All of them
are written in one transaction, or only the first one (engine/store/routines/5_advance.sql).

A run has only nodes that end as done, without hooks and without secrets. Any other node stays as it
is, and a worker claims it when the run is written. No I/O.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from inspect import iscoroutine
from uuid import UUID

from engine.node.node import Succeeded
from engine.store.connection import size_of
from engine.store.traversals.advance import Work
from engine.types.registry import TypeRegistry
from engine.words import Json, State
from engine.work.nodes.job import Job, NodeInput, decide_step, prepare_claim
from engine.work.nodes.operation_call import OUTCOMES, RAISED, OperationRetries, judge, start
from engine.work.nodes.prepare import PreparedNode
from engine.work.nodes.resource_size import check_size, check_size_before
from engine.work.nodes.transition_encoder import started_event

#: Seconds that the runs of one claim may take. Meanwhile, the process does nothing else.
RUN_SECONDS = 0.05
#: Bytes of the steps of one run.
RUN_BYTES = 1_000_000


class NotStored(Exception):
    """A value that the database returns in another form, so that it must be read from there."""


def as_stored(value: Json) -> Json:
    """Return a JSON value as it is when it is read from a jsonb column: with its order of keys.

    Raises NotStored for numbers with a fraction or an exponent, which may be read as integers, and
    for values that are encrypted (`Secret`).
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple):
        return [as_stored(item) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: as_stored(value[key]) for key in sorted(value, key=_jsonb_order)}
    raise NotStored(type(value).__name__)


def _jsonb_order(key: str) -> tuple[int, bytes]:
    encoded = key.encode()
    return len(encoded), encoded


class LaterNodes:
    """The nodes that may be executed after claimed ones, as one claim returns them.

    until: when the runs of this claim must end, by the event loop's clock.
    """

    def __init__(self, works: Iterable[Work], until: float) -> None:
        self.until = until
        self._after: dict[tuple[UUID, int, int | None], list[Work]] = {}
        for work in works:
            key = (work.key.stack_id, work.key.traversal, work.run_after)
            self._after.setdefault(key, []).append(work)

    def after(self, work: Work) -> Iterable[Work]:
        """Return the nodes that wait for this one alone."""
        return self._after.get((work.key.stack_id, work.key.traversal, work.key.node), ())


@dataclass(frozen=True, slots=True)
class LaterStep:
    """A later node of a run. began: of its operation, by the event loop's clock; seconds: that it
    took. size: bytes of the step.
    """

    work: Work
    step: Json
    began: float
    seconds: float
    size: int


class Runs:
    """Executes runs with the settings of a worker."""

    def __init__(
        self,
        registry: TypeRegistry,
        retrying: OperationRetries,
        resource_bytes: Callable[[str], int],
        new_id: Callable[[], UUID],
        default_timeout: timedelta,
    ) -> None:
        self._registry = registry
        self._retrying = retrying
        self._resource_bytes = resource_bytes
        self._new_id = new_id
        self._default_timeout = default_timeout

    def execute(self, first: Job, step: Json, later: LaterNodes) -> list[LaterStep]:
        """Execute the nodes after `first`, in their order. step: its step, not written yet.

        A node that cannot be in the run is left out, with all that wait for it.
        """
        if not later.after(first.work) or not _may_continue(first.prepared, step):
            return []
        try:
            return list(self._steps(first.work, step, later))
        except NotStored:
            return []

    def _steps(self, first: Work, step: Json, later: LaterNodes) -> Iterator[LaterStep]:
        clock = asyncio.get_running_loop().time
        values = {first.name: _values_of(step)}
        done, size = deque([first]), 0
        while done:
            for work in later.after(done.popleft()):
                if size > RUN_BYTES or clock() >= later.until:
                    return
                try:
                    one = self._step(work, values, clock)
                    values[work.name] = _values_of(one.step)
                except (_NotInRun, NotStored, *RAISED):
                    continue
                size += one.size
                done.append(work)
                yield one

    def _step(
        self, work: Work, values: Mapping[str, list[Json]], clock: Callable[[], float]
    ) -> LaterStep:
        """Execute one node. Raises if it cannot be in the run."""
        work = replace(work, operation_key=self._new_id(), inputs=_with_values(work, values))
        job, node_input = prepare_claim(work, self._registry)
        began = clock()
        max_bytes = self._resource_bytes(work.project)
        if job.prepared is None or node_input or check_size_before(job.prepared, None, max_bytes):
            raise _NotInRun
        node_input = self._judge_outcome(job.prepared, max_bytes)
        seconds = clock() - began
        step = self._decide(job, node_input)
        size = size_of(step)
        step["resource"]["bytes"] = size
        step["events"] = [started_event(work), *step["events"]]
        step["operation_key"] = work.operation_key
        return LaterStep(work, step, began, seconds, size)

    def _judge_outcome(self, prepared: PreparedNode, max_bytes: int) -> NodeInput:
        outcome = start(prepared)
        if not isinstance(outcome, OUTCOMES):
            if iscoroutine(outcome):
                outcome.close()
            raise _NotInRun
        return check_size(prepared, judge(prepared, outcome, self._retrying), max_bytes)

    def _decide(self, job: Job, node_input: NodeInput) -> Json:
        if not isinstance(node_input.input, Succeeded):
            raise _NotInRun
        step = decide_step(
            job, node_input, new_id=self._new_id, default_timeout=self._default_timeout
        )
        if step is None or not _may_continue(job.prepared, step):
            raise _NotInRun
        return step


class _NotInRun(Exception):
    """The node is not in the run; a worker claims it later."""


def _may_continue(prepared: PreparedNode | None, step: Json) -> bool:
    """Return whether a node ends in a way that can be in a run."""
    return (
        prepared is not None
        and prepared.type.computes_only
        and step["state"] == State.DONE
        and not step["hook"]
        and step["resource"] is not None
        and step["resource"]["write"] == "update"
    )


def _values_of(step: Json) -> list[Json]:
    """Return what other resources read of a resource, as `Work.inputs` has it. Raises NotStored."""
    resource = step["resource"]
    return [as_stored(resource[name]) for name in ("reference", "attributes", "secret_attributes")]


def _with_values(work: Work, values: Mapping[str, list[Json]]) -> Mapping[str, list[Json]] | None:
    if work.inputs is None:
        return None
    return {name: values.get(name, stored) for name, stored in work.inputs.items()}
