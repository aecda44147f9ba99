"""What a worker tells those who count, from what it was told and has written. Pure."""

from collections.abc import Mapping

from engine.node.inputs import (
    Broke,
    Denied,
    Input,
    MustConfirm,
    MustReplace,
    MustRetry,
    MustStop,
    MustWait,
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
    Broke: "failed",
    Denied: "failed",
}
ENDED = frozenset({State.DONE, State.FAILED, State.STOPPED, State.DROPPED})


def outcome_of(said: Input) -> str:
    return OUTCOMES[type(said)]


def report_step(step: Mapping[str, Json], measures: Measures) -> None:
    """step: as `advance` has taken it."""
    if step["state"] in ENDED:
        measures.node_ended(str(step["operation"]), str(step["state"]))
    for hook in step["hook"] or ():
        measures.hook_opened(point_of(hook["point"]), hook["mode"])


def point_of(point: str) -> str:
    """Without the name of a step, which a type chooses."""
    return CONFIRM.rstrip("-") if point.startswith(CONFIRM) else point
