"""The result of a traversal without remaining nodes."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.continuation import stopped_reason
from engine.words import GATES, Action, State, Status, TraversalState

#: A traversal with a node in one of these states is not complete.
UNSUCCESSFUL = (State.FAILED, State.STOPPED)
_MAX_NAMED_NODES = 3


@dataclass(frozen=True, slots=True)
class EndedNode:
    """A node that failed or stopped: its resource, the operation's name and the reason."""

    resource_name: str
    type: str
    operation: str
    state: State
    reason: str


@dataclass(frozen=True, slots=True)
class TraversalResult:
    """state: of the traversal. status: of the stack. shown: status of the last event in the
    Orchestration API, whose clients wait for COMPLETE or FAILED.
    """

    state: TraversalState
    status: Status
    shown: Status
    reason: str


def ended_early(action: Action, reason: str, state: TraversalState) -> TraversalResult:
    """Return the result of a traversal that is ended before all nodes are done: FAILED or
    STOPPED.
    """
    status = Status.STOPPED if state is TraversalState.STOPPED else Status.FAILED
    return TraversalResult(state, status, Status.FAILED, reason)


def result_of(
    action: Action, failed_nodes: Sequence[EndedNode], *, nested: bool = False
) -> TraversalResult:
    """Return the result. failed_nodes: those in UNSUCCESSFUL states; a failure precedes a stop.
    nested: the stack has a parent."""
    failed = [node for node in failed_nodes if node.state is State.FAILED]
    stopped = [node for node in failed_nodes if node.state is State.STOPPED]
    if failed:
        return TraversalResult(
            TraversalState.FAILED, Status.FAILED, Status.FAILED, _why_failed(failed)
        )
    if stopped:
        reason = stopped_reason(_names(stopped), action, nested=nested)
        return TraversalResult(TraversalState.STOPPED, Status.STOPPED, Status.FAILED, reason)
    reason = f"Stack {action} completed successfully"
    return TraversalResult(TraversalState.COMPLETE, Status.COMPLETE, Status.COMPLETE, reason)


def _why_failed(failed: Sequence[EndedNode]) -> str:
    first = failed[0]
    if first.operation in GATES:
        return first.reason
    what = f"Resource {first.operation.upper()} failed: {first.type}: "
    what += f"resources.{first.resource_name}: {first.reason}"
    others = failed[1:]
    return f"{what} (and {len(others)} more)" if others else what


def _names(nodes: Sequence[EndedNode]) -> str:
    shown_nodes = [
        f"{node.resource_name or 'the stack'} ({node.reason})" for node in nodes[:_MAX_NAMED_NODES]
    ]
    more = len(nodes) - len(shown_nodes)
    return ", ".join(shown_nodes) + (f" and {more} more" if more else "")
