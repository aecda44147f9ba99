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


class WorkerMetrics:
    """Each method records one occurrence, after it is durable. Seconds are of a monotonic clock.

    hub/metrics.py implements it; the methods here do nothing.
    """

    def record_claim(self, seconds: float) -> None:
        """An operation starts. seconds: since its node was claimed."""

    def record_operation(
        self, type_name: str, operation: str, outcome: str, seconds: float
    ) -> None:
        """A call of a type's operation has ended. outcome: done, waits, asks, replaces, retries,
        stopped or failed. seconds: how long the call took, including I/O.
        """

    def record_restart(self, type_name: str, operation: str) -> None:
        """An operation is called again with the same key, because its process has ended."""

    def record_node_end(self, operation: str, state: str) -> None:
        """A node has ended. state: done, failed, stopped or dropped."""

    def record_hook(self, point: str, mode: str) -> None:
        """A hook has opened. point: ``pre-create``, ...; ``confirm`` inside any operation."""

    def record_answer(self, channel: str, decision: str) -> None:
        """An answer was accepted: it decided the hook, or is one of several required approvals."""

    def record_expired_hooks(self, count: int) -> None:
        """The deadline of so many hooks has passed."""

    def record_observation(self, state: str) -> None:
        """A resource was observed in this state."""

    def record_observation_call(self, outcome: str, count: int = 1) -> None:
        """A type was called to observe resources. outcome: succeeded; failed, if it returned no
        state; skipped: it was not called, because its endpoint has failed before; delayed: it is
        called later, because the budget of requests is used up; over_quota: nor any other, because
        the project has used up its observations."""

    def record_drift(self, count: int) -> None:
        """So many resources have become different."""

    def record_provider_requests(self, requests: int) -> None:
        """Observations have sent so many requests."""

    def record_reported_changes(self, outcome: str, count: int) -> None:
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


def report_step(step: Mapping[str, Json], metrics: WorkerMetrics) -> None:
    """Record the end of a node and its new hooks. step: as passed to `advance`."""
    if step["state"] in ENDED:
        metrics.record_node_end(str(step["operation"]), str(step["state"]))
    for hook in step["hook"] or ():
        metrics.record_hook(point_of(hook["point"]), hook["mode"])


def point_of(point: str) -> str:
    """Return the point as a metric label, without the name of a step, which types choose freely."""
    return CONFIRM.rstrip("-") if point.startswith(CONFIRM) else point
