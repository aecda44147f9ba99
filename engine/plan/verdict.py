"""What becomes of a traversal of which nothing is left to do."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.words import GATES, Action, State, Status, TraversalState

_AT_MOST = 3


@dataclass(frozen=True, slots=True)
class EndedNode:
    """A node that did not end well: its resource, the operation's name and why."""

    resource_name: str
    type: str
    operation: str
    state: State
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """state: of the traversal. status: of the stack. shown: the status of the closing event in the
    Orchestration API, whose clients end their waiting only at COMPLETE or FAILED."""

    state: TraversalState
    status: Status
    shown: Status
    reason: str


def ended_early(action: Action, reason: str, state: TraversalState) -> Verdict:
    """What becomes of a traversal that is ended before its time: FAILED or STOPPED."""
    status = Status.STOPPED if state is TraversalState.STOPPED else Status.FAILED
    return Verdict(state, status, Status.FAILED, reason)


def verdict(action: Action, unwell: Sequence[EndedNode]) -> Verdict:
    """`unwell`: the nodes that failed or stopped. Failure outweighs a stop."""
    failed = [node for node in unwell if node.state is State.FAILED]
    stopped = [node for node in unwell if node.state is State.STOPPED]
    if failed:
        return Verdict(TraversalState.FAILED, Status.FAILED, Status.FAILED, _why_failed(failed))
    if stopped:
        reason = f"Stopped: {_names(stopped)}; update the stack to resume"
        return Verdict(TraversalState.STOPPED, Status.STOPPED, Status.FAILED, reason)
    reason = f"Stack {action} completed successfully"
    return Verdict(TraversalState.COMPLETE, Status.COMPLETE, Status.COMPLETE, reason)


def _why_failed(failed: Sequence[EndedNode]) -> str:
    first = failed[0]
    if first.operation in GATES:
        return first.reason
    what = f"Resource {first.operation.upper()} failed: {first.type}: "
    what += f"resources.{first.resource_name}: {first.reason}"
    others = failed[1:]
    return f"{what} (and {len(others)} more)" if others else what


def _names(nodes: Sequence[EndedNode]) -> str:
    said = [f"{node.resource_name or 'the stack'} ({node.reason})" for node in nodes[:_AT_MOST]]
    more = len(nodes) - len(said)
    return ", ".join(said) + (f" and {more} more" if more else "")
