"""The vocabulary of Headgate as types.

Every name here is a row of the glossary (docs/reference/glossary.md). This module imports nothing
of ours, so that everybody may import it.
"""

from enum import StrEnum
from typing import Any, NewType
from uuid import UUID

StackId = NewType("StackId", UUID)
ResourceId = NewType("ResourceId", UUID)

#: Anything that JSON can say: null, booleans, numbers, text, lists and maps with text keys.
Json = Any


class Action(StrEnum):
    """What a traversal does to its stack; the first half of a stack's status."""

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


class Status(StrEnum):
    """How far an action has come; the second half of the status of a stack or resource."""

    IN_PROGRESS = "IN_PROGRESS"
    COMPLETE = "COMPLETE"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


class ResourceAction(StrEnum):
    """The first half of a resource's status. INIT: planned, nothing was done yet."""

    INIT = "INIT"
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"
    ADOPT = "ADOPT"
    CHECK = "CHECK"
    SUSPEND = "SUSPEND"
    RESUME = "RESUME"
    SNAPSHOT = "SNAPSHOT"


class Direction(StrEnum):
    """Which way a node walks: toward the new template, or clearing away what it no longer needs."""

    FORWARD = "forward"
    CLEANUP = "cleanup"


class Operation(StrEnum):
    """What a node does to its resource. ADOPT: take over what exists already.

    BEGIN and FINISH are those of the stack as a whole: the gates before and after everything else.
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


#: Operations of the stack itself: whether its action may begin, and whether it may be called done.
GATES = frozenset({Operation.BEGIN, Operation.FINISH})

#: Operations on a resource that stays what it is: its definition has no part in them.
VISITS = frozenset({Operation.CHECK, Operation.SUSPEND, Operation.RESUME, Operation.SNAPSHOT})


class DeletionPolicy(StrEnum):
    """What becomes of the real thing when its resource goes."""

    DELETE = "Delete"
    RETAIN = "Retain"
    SNAPSHOT = "Snapshot"


class Restriction(StrEnum):
    """What an environment forbids for a resource (Heat's ``restricted_actions``)."""

    UPDATE = "update"
    REPLACE = "replace"


class State(StrEnum):
    """State of a node. The machine in engine/node/machine.py is the only one to change it."""

    WAITING = "waiting"
    READY = "ready"
    RUNNING = "running"
    PARKED = "parked"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"
    DROPPED = "dropped"


class Phase(StrEnum):
    """Where a node is inside its step."""

    PRE = "pre"
    ACT = "act"
    CONFIRM = "confirm"
    POST = "post"


class TraversalState(StrEnum):
    """State of a traversal. ENDING: nothing is left to do, the verdict is still to be written."""

    RUNNING = "running"
    ENDING = "ending"
    COMPLETE = "complete"
    FAILED = "failed"
    STOPPED = "stopped"
    SUPERSEDED = "superseded"


class Point(StrEnum):
    """A place in a node's step where a breakpoint can hold it.

    Besides these there is ``confirm-<step>`` for each step that a resource type names.
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


#: Points inside operations that have names of their own, and are asked at whenever the operation
#: comes there.
REPEATED = frozenset({Point.PRE_BATCH, Point.PRE_SCALE_IN})
#: How the name of any other point inside an operation begins.
CONFIRM = "confirm-"


def point_of(step: str) -> str:
    """The point at a step inside an operation."""
    return step if step in REPEATED else f"{CONFIRM}{step}"


def step_of(point: str) -> str:
    """The step inside an operation that has this point."""
    return point.removeprefix(CONFIRM)


def pre_stack(action: "Action") -> str:
    """The point before a stack's action: ``pre-stack-create``."""
    return f"pre-stack-{action.lower()}"


def post_stack(action: "Action") -> str:
    """The point after a stack's action has come to a good end: ``post-stack-create``."""
    return f"post-stack-{action.lower()}"


#: The points of stacks as a whole.
STACK_POINTS = tuple(point(action) for action in Action for point in (pre_stack, post_stack))


class Mode(StrEnum):
    """What a breakpoint does to the node that reaches it."""

    NOTIFY = "notify"
    WAIT = "wait"
    STOP = "stop"


class OnTimeout(StrEnum):
    """What becomes of a hook that nobody answered."""

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

    STEP: continue, and break at whatever becomes ready next. RUN: continue, past the other
    breakpoints of this traversal. PATCH: continue with other properties. PROGRESS: not an answer
    yet, but somebody is at it.
    """

    CONTINUE = "continue"
    REJECT = "reject"
    STEP = "step"
    RUN = "run"
    PATCH = "patch"
    PROGRESS = "progress"


class How(StrEnum):
    """How a step goes on where a resource holds a stack of its own.

    OVER: the stack inside runs whole. INTO: its first nodes break, too. OUT: this stack runs on,
    and the one around steps.
    """

    OVER = "over"
    INTO = "into"
    OUT = "out"


def word_of(decision: Decision, how: How) -> str:
    """What is written down of a decision: ``step-into``; to step is to step over."""
    return decision.value if how is How.OVER else f"{decision}-{how}"


#: Decisions that let the node go on.
GOES_ON = frozenset({Decision.CONTINUE, Decision.STEP, Decision.RUN, Decision.PATCH})


class Pace(StrEnum):
    """How a traversal passes its nodes, when somebody asked for another way than the usual one."""

    STEP = "step"
    RUN = "run"


class Door(StrEnum):
    """Through which door an answer came."""

    API = "api"
    TOKEN = "token"  # noqa: S105 - the name of a door, not a secret
    WEBHOOK = "webhook"
    AMQP = "amqp"
    DASHBOARD = "dashboard"
    UNSET_HOOK = "unset_hook"
    RULE = "rule"
