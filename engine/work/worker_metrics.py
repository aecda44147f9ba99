"""Worker metrics, derived from inputs and committed transitions. Pure."""

from collections.abc import Mapping

from engine.node.inputs import (
    Input,
    MustConfirm,
    MustReplace,
    MustRetry,
    MustStop,
    MustWait,
    OperationFailed,
    OperationForbidden,
    Succeeded,
)
from engine.words import CONFIRM, Json, State
from engine.work.measures import Measures

OUTCOMES: Mapping[type[Input], str] = {
    Succeeded: "done",
    MustWait: "waits",
    MustConfirm: "asks",
    MustReplace: "replaces",
    MustRetry: "retries",
    MustStop: "stopped",
    OperationFailed: "failed",
    OperationForbidden: "failed",
}
ENDED = frozenset({State.DONE, State.FAILED, State.STOPPED, State.DROPPED})


def outcome_of(node_input: Input) -> str:
    return OUTCOMES[type(node_input)]


def report_step(step: Mapping[str, Json], measures: Measures) -> None:
    """Record the end of a node and its new hooks. step: as passed to `advance`."""
    if step["state"] in ENDED:
        measures.node_ended(str(step["operation"]), str(step["state"]))
    for hook in step["hook"] or ():
        measures.hook_opened(point_of(hook["point"]), hook["mode"])


def point_of(point: str) -> str:
    """Return the point as a metric label, without the name of a step, which types choose freely."""
    return CONFIRM.rstrip("-") if point.startswith(CONFIRM) else point
