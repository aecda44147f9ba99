"""How a type with a nested stack runs commands on it.

Such a type is pure: it returns the command for its nested stack and is called again when the
command has ended. engine/service/traversals/nested.py creates the stack, waits without polling,
continues after a crash, and ends the command early when a newer change supersedes it.
"""

from collections.abc import Callable

from engine.types.contract import Call, Child, Failed, NestedCommand, Outcome, RunNested, Stopped
from engine.words import Json, TraversalState


def run_nested(
    call: Call,
    step: str,
    goal: NestedCommand,
    then: Callable[[Child], Outcome],
    progress: Json = None,
) -> Outcome:
    """Run one step on the nested stack, then return `then` of the stack. A step that fails or is
    stopped ends the operation in the same way."""
    child = call.child
    if child is None or child.step != step:
        return RunNested(step, goal, call.progress if progress is None else progress)
    match child.state:
        case TraversalState.COMPLETE:
            return then(child)
        case TraversalState.STOPPED:
            return Stopped(child.reason, str(child.id), call.data, public_reason=child.reason)
        case _:
            return Failed(child.reason, str(child.id), call.data, public_reason=child.reason)
