"""The vocabulary of Headgate as types.

Every name here is a row of the glossary (docs/reference/glossary.md). This module imports no other
module of Headgate, so that all of them can import it.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, NewType
from uuid import UUID

StackId = NewType("StackId", UUID)
ResourceId = NewType("ResourceId", UUID)


def uuid_or_none(text: str) -> UUID | None:
    """Return the UUID that a text writes; None if it writes none."""
    try:
        return UUID(text)
    except ValueError:
        return None


#: A JSON value: null, a boolean, a number, a text, a list or a map with text keys.
Json = Any


class Action(StrEnum):
    """The kind of a change; the first part of a stack's status."""

    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    ROLLBACK = "ROLLBACK"
    ADOPT = "ADOPT"
    CHECK = "CHECK"
    SUSPEND = "SUSPEND"
    RESUME = "RESUME"
    SNAPSHOT = "SNAPSHOT"
    RESTORE = "RESTORE"


class MoveState(StrEnum):
    """The progress of a project's move to another cell, in the cell that it leaves.

    TAKEN: its rows have left their tables. MOVED: it is in the other cell.
    """

    ANNOUNCED = "announced"
    TAKEN = "taken"
    MOVED = "moved"


class Status(StrEnum):
    """The progress of an action; the second part of the status of a stack or resource."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


class ResourceAction(StrEnum):
    """The first part of a resource's status. INIT: planned and untouched."""

    INIT = "INIT"
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    ADOPT = "ADOPT"
    CHECK = "CHECK"
    SUSPEND = "SUSPEND"
    RESUME = "RESUME"
    SNAPSHOT = "SNAPSHOT"


class FoundBy(StrEnum):
    """What caused an observation.

    REQUEST: of a user, or before a repair that an answer has approved. POLICY: the interval of a
    convergence policy. REPORT: of a change, by a client, a provider or a watched hook.
    """

    REQUEST = "request"
    POLICY = "policy"
    REPORT = "report"


class ObservationSource(StrEnum):
    """How an observed state was found. POLL: by an observation that a user requested or a policy
    scheduled. EVENT: by one after a report of a change. OPERATION: by the last operation: no later
    observation was of the whole stack, or has found a difference."""

    POLL = "poll"
    EVENT = "event"
    OPERATION = "operation"


class ObservedState(StrEnum):
    """What a provider reports about a physical resource.

    PRESENT: as recorded. MISSING: it does not exist. CHANGED: properties differ. DEGRADED: it
    exists, but does not work. UNKNOWN: there was no usable answer.
    """

    PRESENT = "present"
    MISSING = "missing"
    CHANGED = "changed"
    DEGRADED = "degraded"
    UNKNOWN = "unknown"


class OnDrift(StrEnum):
    """What a convergence policy does about drift. HOLD: a hook, whose answer decides. REPAIR: an
    update, after a notification."""

    IGNORE = "ignore"
    NOTIFY = "notify"
    HOLD = "hold"
    REPAIR = "repair"


class ConvergeState(StrEnum):
    """State of a converge with several rounds.

    RUNNING: the update of a round is under way. OBSERVING: it is complete, and the stack is
    observed. COMPLETE: the stack does not differ. INCOMPLETE: it still differs, and no further
    round starts. ENDED: an update failed, or another change has begun.
    """

    RUNNING = "running"
    OBSERVING = "observing"
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    ENDED = "ended"


#: States of a converge that has not ended.
PENDING_CONVERGE = (ConvergeState.RUNNING, ConvergeState.OBSERVING)
#: Maximum number of rounds of a converge.
MAX_ROUNDS = 10


class Direction(StrEnum):
    """Whether a node moves its resource toward the new template or deletes a resource."""

    FORWARD = "forward"
    CLEANUP = "cleanup"


class Operation(StrEnum):
    """What a node does to its resource. ADOPT: manage an existing physical resource.

    BEGIN and FINISH are operations of a stack's gates: the first and the last node of an action.
    """

    CREATE = "create"
    UPDATE = "update"
    REPLACE = "replace"
    DELETE = "delete"
    ADOPT = "adopt"
    CHECK = "check"
    SUSPEND = "suspend"
    RESUME = "resume"
    SNAPSHOT = "snapshot"
    BEGIN = "begin"
    FINISH = "finish"


#: Operations of the stack itself, before and after those of its resources.
GATES = frozenset({Operation.BEGIN, Operation.FINISH})

#: Operations that create a physical resource, whose name derives from the key of the operation.
CREATING = frozenset({Operation.CREATE, Operation.REPLACE})

#: Operations of in-place actions, which do not read the definition.
IN_PLACE_OPERATIONS = frozenset(
    {Operation.CHECK, Operation.SUSPEND, Operation.RESUME, Operation.SNAPSHOT}
)


class DeletionPolicy(StrEnum):
    """What happens to the physical resource when its resource is deleted."""

    DELETE = "Delete"
    RETAIN = "Retain"
    SNAPSHOT = "Snapshot"


class Restriction(StrEnum):
    """What an environment forbids for a resource (Heat's ``restricted_actions``)."""

    UPDATE = "update"
    REPLACE = "replace"


class State(StrEnum):
    """State of a node; engine/node/machine.py decides every change."""

    WAITING = "waiting"
    READY = "ready"
    RUNNING = "running"
    PARKED = "parked"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    DROPPED = "dropped"


class Phase(StrEnum):
    """The current part of a node."""

    PRE = "pre"
    EXECUTE = "execute"
    CONFIRM = "confirm"
    POST = "post"


class TraversalState(StrEnum):
    """State of a traversal. ENDING: all nodes have ended, and the result is not written yet."""

    RUNNING = "running"
    ENDING = "ending"
    COMPLETE = "complete"
    FAILED = "failed"
    STOPPED = "stopped"
    SUPERSEDED = "superseded"


#: States of a traversal that has not ended.
UNDER_WAY = (TraversalState.RUNNING, TraversalState.ENDING)

#: The status of a stack by the state of its current traversal, which is never SUPERSEDED, and of a
#: snapshot by the traversal that took it. `traversal_status` in SQL is the same.
STATUS_OF: Mapping[TraversalState, Status] = {
    TraversalState.RUNNING: Status.IN_PROGRESS,
    TraversalState.ENDING: Status.IN_PROGRESS,
    TraversalState.COMPLETE: Status.COMPLETE,
    TraversalState.FAILED: Status.FAILED,
    TraversalState.STOPPED: Status.STOPPED,
    TraversalState.SUPERSEDED: Status.FAILED,
}


class Point(StrEnum):
    """A place in the life of a node at which a hook can open.

    In addition there is ``confirm-<step>`` for each confirmation step of a resource type.
    """

    PRE_CREATE = "pre-create"
    POST_CREATE = "post-create"
    PRE_UPDATE = "pre-update"
    POST_UPDATE = "post-update"
    PRE_REPLACE = "pre-replace"
    POST_REPLACE = "post-replace"
    PRE_DELETE = "pre-delete"
    POST_DELETE = "post-delete"
    PRE_CHECK = "pre-check"
    POST_CHECK = "post-check"
    PRE_SUSPEND = "pre-suspend"
    POST_SUSPEND = "post-suspend"
    PRE_RESUME = "pre-resume"
    POST_RESUME = "post-resume"
    PRE_BATCH = "pre-batch"
    PRE_SCALE_IN = "pre-scale-in"


#: Points inside operations with names of their own. Their hooks open each time.
REPEATED = frozenset({Point.PRE_BATCH, Point.PRE_SCALE_IN})
#: Who may answer a hook whose rule names no approvers, in words for people.
ANYONE = "anyone in the project"
#: The point of hooks about drift, which belong to no change. No rule of a template has it.
DRIFT = "drift"
#: The prefix of all other points inside operations.
CONFIRM = "confirm-"


def point_of(step: str) -> str:
    """Return the point of a step inside an operation."""
    return step if step in REPEATED else f"{CONFIRM}{step}"


def step_of(point: str) -> str:
    """Return the step inside an operation with this point."""
    return point.removeprefix(CONFIRM)


def pre_stack(action: "Action") -> str:
    """Return the point before a stack's action: ``pre-stack-create``."""
    return f"pre-stack-{action.lower()}"


def post_stack(action: "Action") -> str:
    """Return the point after a stack's action has succeeded: ``post-stack-create``."""
    return f"post-stack-{action.lower()}"


#: The points of stacks as a whole.
STACK_POINTS = tuple(point(action) for action in Action for point in (pre_stack, post_stack))


class Mode(StrEnum):
    """What a hook rule does to a node that reaches its point."""

    NOTIFY = "notify"
    WAIT = "wait"
    STOP = "stop"


class OnTimeout(StrEnum):
    """The decision at the deadline of a hook."""

    STOP = "stop"
    CONTINUE = "continue"
    REJECT = "reject"


class HookState(StrEnum):
    WAITING = "waiting"
    ANSWERED = "answered"
    EXPIRED = "expired"
    SUPERSEDED = "superseded"


class Decision(StrEnum):
    """An answer to a hook.

    STEP: continue, and stop before the next operations. RUN: continue past the other breakpoints of
    this traversal. PATCH: continue with other properties. PROGRESS: extend the deadline without a
    decision. At hooks about drift only: REPAIR: converge the resource, as CONTINUE does there.
    ADOPT: the desired state takes over the observed one. IGNORE: leave all drift of the resource
    for a time.
    """

    CONTINUE = "continue"
    REJECT = "reject"
    STEP = "step"
    RUN = "run"
    PATCH = "patch"
    PROGRESS = "progress"
    ADOPT = "adopt"
    REPAIR = "repair"
    IGNORE = "ignore"


class StepKind(StrEnum):
    """How a step treats nested stacks.

    OVER: a nested stack runs without stops. INTO: it stops before its first operations. OUT: this
    stack continues, and its parent stops before the next operations.
    """

    OVER = "over"
    INTO = "into"
    OUT = "out"


def word_of(decision: Decision, how: StepKind) -> str:
    """Return the decision as stored: ``step-into``; a step over is ``step``."""
    return decision.value if how is StepKind.OVER else f"{decision}-{how}"


#: Decisions that resume the node.
RESUMING_DECISIONS = frozenset({Decision.CONTINUE, Decision.STEP, Decision.RUN, Decision.PATCH})


class StepMode(StrEnum):
    """The step mode of a traversal, if it has one."""

    STEP = "step"
    RUN = "run"


class AnswerChannel(StrEnum):
    """The answer channel."""

    API = "api"
    TOKEN = "token"  # noqa: S105 - the name of a channel, not a secret
    WEBHOOK = "webhook"
    AMQP = "amqp"
    DASHBOARD = "dashboard"
    SLACK = "slack"
    UNSET_HOOK = "unset_hook"
    RULE = "rule"
