"""Worker metrics: their interface, and how inputs and committed transitions are counted. Pure."""

from collections.abc import Mapping

from engine.node.node import (
    ENDED,
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
from engine.words import CONFIRM, Json


class Measures:
    """Each method records one occurrence, after it is durable. Seconds are of a monotonic clock.

    hub/metrics.py implements it; the methods here do nothing.
    """

    def claimed(self, seconds: float) -> None:
        """An operation starts. seconds: since its node was claimed."""

    def operated(self, type_name: str, operation: str, outcome: str, seconds: float) -> None:
        """A call of a type's operation has ended. outcome: done, waits, asks, replaces, retries,
        stopped or failed. seconds: how long the call took, including I/O.
        """

    def restarted(self, type_name: str, operation: str) -> None:
        """An operation is called again with the same key, because its process has ended."""

    def node_ended(self, operation: str, state: str) -> None:
        """A node has ended. state: done, failed, stopped or dropped."""

    def hook_opened(self, point: str, mode: str) -> None:
        """A hook has opened. point: ``pre-create``, ...; ``confirm`` inside any operation."""

    def hook_answered(self, channel: str, decision: str) -> None:
        """An answer was accepted: it decided the hook, or is one of several required approvals."""

    def hooks_expired(self, count: int) -> None:
        """The deadline of so many hooks has passed."""

    def observed(self, state: str) -> None:
        """A resource was observed in this state."""

    def observation_called(self, outcome: str) -> None:
        """A type was called to observe resources. outcome: succeeded; failed, if it returned no
        state; skipped: it was not called, because its endpoint has failed before;
        over_quota: nor any other, because the project has used up its observations."""

    def drift_found(self, count: int) -> None:
        """So many resources have become different."""

    def provider_asked(self, requests: int) -> None:
        """Observations have sent so many requests."""

    def changes_reported(self, outcome: str, count: int) -> None:
        """Changes of physical resources were reported. outcome: observed: so many resources are
        observed; unknown: so many IDs belong to no resource of the project."""


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
