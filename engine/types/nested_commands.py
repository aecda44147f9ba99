"""What types that hold a stack of their own have in common.

Such a type is pure: it says to what the stack inside is to be brought, and is called again when
that has ended. Making the stack, waiting for it without polling, taking it up again after a crash
and ending it early when something newer supersedes it are done around it
(engine/service/traversals/nested.py).
"""

from collections.abc import Callable

from engine.types.contract import Call, Child, Failed, Goal, Nest, Outcome, Stopped
from engine.words import Json, TraversalState


def brought(
    call: Call, step: str, goal: Goal, then: Callable[[Child], Outcome], progress: Json = None
) -> Outcome:
    """The stack inside, brought to a goal and carried on with there; what did not get there ends
    the operation as it ended."""
    child = call.child
    if child is None or child.step != step:
        return Nest(step, goal, call.progress if progress is None else progress)
    match child.state:
        case TraversalState.COMPLETE:
            return then(child)
        case TraversalState.STOPPED:
            return Stopped(child.reason, str(child.id), call.data)
        case _:
            return Failed(child.reason, str(child.id), call.data)
