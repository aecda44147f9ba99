"""Scenarios: small stacks, the requests for them, and the incidents that may happen."""

from datetime import timedelta

from engine.hooks.rule import Rule
from engine.words import Action, Mode, OnTimeout, Point, point_of, post_stack, pre_stack
from tests.model.system_state import Incidents, Request, ResourceSpec, Scenario


def rule(point: str, mode: Mode = Mode.WAIT, then: OnTimeout = OnTimeout.STOP) -> Rule:
    """A rule with the default timeout of the test engine."""
    return Rule(point, mode, timedelta(minutes=10), then)


def create(*specs: ResourceSpec) -> Request:
    return Request(Action.CREATE, specs)


def stack_rule(point: str, approvals: int = 1) -> Rule:
    return Rule(point, Mode.WAIT, timedelta(minutes=10), approvals=approvals)


def update(*specs: ResourceSpec) -> Request:
    return Request(Action.UPDATE, specs)


DELETE = Request(Action.DELETE)
CHECK = Request(Action.CHECK)
CANCEL, STOP = Request(None, ends="failed"), Request(None, ends="stopped")
CANCEL_WITH_ROLLBACK = Request(None, ends="rolled back")

A, B = ResourceSpec("a"), ResourceSpec("b", ("a",))
HOOKED_B = ResourceSpec("b", ("a",), rules=(rule(Point.PRE_CREATE), rule(Point.POST_CREATE)))
DIAMOND = (A, HOOKED_B, ResourceSpec("c", ("a",)), ResourceSpec("d", ("b", "c")))


C = ResourceSpec("c", ("b",))
A2, B2 = A._replace(value="2"), B._replace(value="2")
#: A change of this value requires a replacement.
NEW_A = A._replace(value="2!")
RETAINED_A = A._replace(policy="Retain")
DELETE_HOOKED_A = ResourceSpec("a", rules=(rule(Point.PRE_DELETE), rule(Point.POST_DELETE)))
NOTIFIED_A = ResourceSpec(
    "a", value="2", rules=(rule(Point.PRE_UPDATE), rule(Point.POST_UPDATE, Mode.NOTIFY))
)

CHAIN = Scenario("chain of 2", (create(A, B),), Incidents(lease=2, duplicate=1, wait=1, fail=1))
HOOKED = Scenario(
    "chain of 2 with hooks",
    (create(A, HOOKED_B),),
    Incidents(lease=1, duplicate=1, fail=1, refusal=1),
)
DIAMOND_OF_4 = Scenario(
    "diamond of 4 with hooks", (create(*DIAMOND),), Incidents(lease=1, refusal=1)
)
UPDATED = Scenario(
    "chain of 2, updated", (create(A, B), update(A2, B2)), Incidents(lease=1, wait=1, fail=1)
)
HOOK_SUPERSEDED = Scenario(
    "hooks of a superseded traversal",
    (create(A, HOOKED_B), update(A2, B2)),
    Incidents(lease=1, refusal=1),
)
UPDATED_TWICE = Scenario(
    "one resource, updated twice",
    (create(A), update(A2), update(A)),
    Incidents(fail=1, replace=1),
)
DELETED = Scenario(
    "chain of 2, deleted", (create(A, B), DELETE), Incidents(lease=1, duplicate=1, fail=1)
)
DELETE_HOOKED = Scenario(
    "a delete with hooks",
    (create(DELETE_HOOKED_A), DELETE, DELETE),
    Incidents(lease=1, fail=1, refusal=2),
)
REPLACED = Scenario(
    "a replacement and its dependent", (create(A, B), update(NEW_A, B2)), Incidents(lease=1, fail=1)
)
REPLACED_BOTH = Scenario(
    "two replacements, one of which uses the other",
    (create(A, B, C), update(NEW_A, B._replace(value="2!"))),
    Incidents(fail=1),
)
REPLACED_AND_GATED = Scenario(
    "a replacement in a stack with a hook at the end",
    (create(A, B), update(NEW_A, B)),
    Incidents(lease=1, refusal=1),
    stack=(stack_rule(post_stack(Action.UPDATE)),),
)
REPLACED_SUPERSEDED = Scenario(
    "a replacement that is superseded",
    (create(A), update(NEW_A), update(A2)),
    Incidents(lease=1),
)
REJECTED = Scenario(
    "an update with hooks, reverted",
    (create(A), update(NOTIFIED_A), update(A)),
    Incidents(fail=1, refusal=1),
)
REMOVED = Scenario(
    "a dependent that is removed",
    (create(A, B), update(A), DELETE),
    Incidents(fail=1),
)
CANCELLED = Scenario(
    "a chain, cancelled and resumed",
    (create(A, HOOKED_B), CANCEL, update(A, B)),
    Incidents(lease=1, wait=1),
)
REPLACED_WITH_DEPENDENTS = Scenario(
    "a replacement with dependents",
    (create(A, B), update(NEW_A, B), update(A._replace(value="3!"), B2)),
    Incidents(lease=1, fail=1),
    sequential=True,
)
REPAIR_REJECTED = Scenario(
    "a tainted resource whose repair is rejected",
    (create(A), update(A2), update(NOTIFIED_A), update(A)),
    Incidents(fail=1, refusal=1),
    sequential=True,
)

UPDATED_IN_CREATE = Scenario(
    "one resource, updated during its create", (create(A), update(A2)), Incidents(lease=1)
)
DELETED_DURING_REPLACEMENT = Scenario(
    "a replacement in progress, and a delete",
    (create(A), update(NEW_A), DELETE),
    Incidents(),
)
RECREATED_THEN_UPDATED = Scenario(
    "a resource that is being created again, and an update",
    (create(A), update(), update(A2), update(A)),
    Incidents(),
)
POST_HOOK_SUPERSEDED = Scenario(
    "a hook after an operation that is superseded",
    (create(A._replace(rules=(rule(Point.POST_CREATE),))), update(A2)),
    Incidents(lease=1, refusal=1),
)
RECREATED_AT_DELETE_HOOK = Scenario(
    "a deleted resource, its row at a hook, created again",
    (create(DELETE_HOOKED_A), update(), update(A)),
    Incidents(refusal=1),
)
STOPPED = Scenario(
    "a stopped stack, resumed",
    (
        create(A, ResourceSpec("b", ("a",), rules=(rule(Point.PRE_CREATE, Mode.STOP),))),
        update(A, B),
    ),
    Incidents(lease=1),
)
REVERSED = Scenario(
    "a reversed dependency",
    (create(A, B), update(ResourceSpec("b", value="2"), ResourceSpec("a", ("b",), value="2"))),
    Incidents(lease=1),
)
CANCELLED_DELETED = Scenario(
    "a chain, cancelled and deleted",
    (create(A, HOOKED_B), CANCEL, DELETE),
    Incidents(lease=1, wait=1),
)
DIAMOND_UPDATED = Scenario(
    "diamond of 4, of which an update removes one",
    (create(*DIAMOND), update(A, B2, ResourceSpec("d", ("b",)))),
    Incidents(lease=1),
)
DELETED_AND_CREATED = Scenario(
    "a resource, deleted and created again",
    (create(A), update(), update(A2), DELETE),
    Incidents(wait=1),
)
RECREATED_DURING_DELETE = Scenario(
    "a resource, created again during its delete, and a delete",
    (create(A), update(), update(A2), DELETE),
    Incidents(),
)
THREE_WORKERS = Scenario(
    "three workers",
    (create(A, ResourceSpec("b"), ResourceSpec("c", ("a", "b"))),),
    Incidents(lease=2, duplicate=1),
    workers=3,
)

DEPENDENT_OF_REPLACEMENT = Scenario(
    "a new dependent of a replacement, cancelled and deleted",
    (create(A), update(NEW_A, B), CANCEL, DELETE),
    Incidents(fail=1),
)
REPLACED_CANCELLED = Scenario(
    "a replacement and its dependent, rolled back",
    (create(A, B), update(NEW_A, B2), CANCEL_WITH_ROLLBACK),
    Incidents(leave=1),
)
ROLLED_BACK = Scenario(
    "a chain of 2, rolled back", (create(A, B), update(A2, B2)), Incidents(fail=2), rolls_back=True
)
TIMED_OUT = Scenario(
    "a reached time limit, rolled back",
    (create(A, HOOKED_B), update(A2, B2)),
    Incidents(timeout=1, refusal=1),
    rolls_back=True,
)
STOPPED_BY_REQUEST = Scenario(
    "a replacement, stopped and resumed", (create(A, B), update(NEW_A), STOP, update(A2, B2))
)
RETRIED = Scenario("a retried update", (create(A), update(A2)), Incidents(retry=2, replace=1))
LEAVING = Scenario(
    "a replacement that leaves a physical resource",
    (create(A, B), update(NEW_A, B2), update(A, B)),
    Incidents(leave=1),
)
RECREATED_LEAVING_RESOURCE = Scenario(
    "a resource that is being created again and leaves a physical resource",
    (create(A), update(), update(A2), update(A)),
    Incidents(leave=1),
)
RESTRICTED = Scenario(
    "a replacement that an update requires and that is restricted",
    (create(A), update(A2._replace(restricted=("replace",))), update(A)),
    Incidents(replace=1),
)
FORBIDDEN = Scenario(
    "changes that are restricted, then allowed",
    (
        create(A),
        update(NEW_A._replace(restricted=("replace",))),
        update(A2._replace(restricted=("update",))),
        update(A2),
    ),
    Incidents(fail=1),
    sequential=True,
)
RETAINED = Scenario(
    "a replacement of a retained resource",
    (create(RETAINED_A), update(NEW_A._replace(policy="Retain")), DELETE),
    Incidents(leave=1),
)
RETAINED_AGAIN = Scenario(
    "a resource, created again during its delete and retained",
    (create(A), update(), update(RETAINED_A._replace(value="2")), DELETE),
)
HOOKED_LATER = Scenario(
    "a replacement whose old resource gets a hook",
    (create(A), update(NEW_A), update(NEW_A._replace(rules=DELETE_HOOKED_A.rules)), DELETE),
)

CHECKED = Scenario(
    "a chain, cancelled, checked and updated",
    (create(A, B), CANCEL, CHECK, update(A2, B)),
    Incidents(lease=1),
)
CHECKED_TWICE = Scenario(
    "a failed resource, checked twice and updated",
    (create(A), CHECK, CHECK, update(A2)),
    Incidents(fail=2, wait=1),
    sequential=True,
)
CHECK_AFTER_CANCEL = Scenario(
    "a check after an update that was cancelled",
    (create(A), update(A2), CANCEL, CHECK),
    Incidents(lease=1),
)
CHECK_WITH_HOOKS = Scenario(
    "a check with hooks, and a delete",
    (
        create(A._replace(rules=(rule(Point.PRE_CHECK), rule(Point.POST_CHECK)))),
        CHECK,
        DELETE,
    ),
    Incidents(fail=1, refusal=1),
)

SUSPEND, RESUME = Request(Action.SUSPEND), Request(Action.RESUME)


SUSPENDED = Scenario(
    "a chain, suspended and resumed",
    (create(A, B), SUSPEND, RESUME),
    Incidents(lease=1, fail=1),
    sequential=True,
)
SUSPEND_CANCELLED = Scenario(
    "a suspend that is cancelled, and a resume",
    (create(A, B), SUSPEND, CANCEL, RESUME),
    Incidents(lease=1),
)
SUSPEND_WITH_HOOKS = Scenario(
    "a suspend with hooks",
    (
        create(A._replace(rules=(rule(Point.PRE_SUSPEND), rule(Point.POST_RESUME))), B),
        SUSPEND,
        RESUME,
    ),
    Incidents(refusal=1),
    sequential=True,
)
STACK_HOOKS = Scenario(
    "hooks of the whole stack",
    (create(A, ResourceSpec("b")), update(A2)),
    Incidents(lease=1, refusal=1),
    stack=(
        stack_rule(pre_stack(Action.CREATE)),
        stack_rule(pre_stack(Action.UPDATE)),
        stack_rule(post_stack(Action.UPDATE)),
    ),
)
APPROVED = Scenario(
    "hooks that need two approvals",
    (create(A._replace(rules=(stack_rule("pre-create", 2),)), B), update(A2)),
    Incidents(lease=1, refusal=1),
    stack=(stack_rule(post_stack(Action.CREATE), 2),),
)

SNAPSHOT = Request(Action.SNAPSHOT)
SNAPSHOT_TAKEN = Scenario(
    "a snapshot of a chain, and an update",
    (create(A, B), SNAPSHOT, update(A2, B)),
    Incidents(lease=1, fail=1, wait=1),
    sequential=True,
)
SUSPENDED_AND_CHECKED = Scenario(
    "a suspend, a check and a resume",
    (create(A), SUSPEND, CHECK, RESUME),
    Incidents(fail=1),
    sequential=True,
)
SUSPENDED_AND_SNAPSHOT = Scenario(
    "a suspend, a snapshot and an update",
    (create(A), SUSPEND, SNAPSHOT, update(A2)),
    Incidents(fail=1),
    sequential=True,
)

CUT = rule(point_of("cut"))
BATCH = rule(Point.PRE_BATCH)
CONFIRMED = Scenario(
    "an update with two steps to confirm",
    (create(A), update(A2._replace(confirms=("cut", "glue"), rules=(CUT,)))),
    Incidents(lease=1, wait=1, retry=1, refusal=1),
    sequential=True,
)
CONFIRMED_SUPERSEDED = Scenario(
    "a step to confirm in an update that is superseded",
    (create(A), update(A2._replace(confirms=("cut",), rules=(CUT,))), update(A)),
    Incidents(retry=1),
)
CONFIRMED_STOPPED = Scenario(
    "a step to confirm in a create that is stopped and resumed",
    (create(A._replace(confirms=("cut",), rules=(CUT,)), B), STOP, update(A, B)),
    Incidents(retry=1, refusal=1),
)
CONFIRMED_REPLACED = Scenario(
    "a step to confirm in an update that becomes a replacement",
    (create(A), update(NEW_A._replace(value="2", confirms=("cut",), rules=(CUT,))), update(A)),
    Incidents(replace=1, retry=1, refusal=1),
    sequential=True,
)
BATCHES = Scenario(
    "a point that repeats",
    (create(A), update(A2._replace(confirms=("pre-batch", "pre-batch"), rules=(BATCH,)))),
    Incidents(lease=1, retry=1, refusal=1),
    sequential=True,
)

A2_WITH_HOOK = A2._replace(rules=(rule(Point.PRE_UPDATE),))
STEPPED = Scenario(
    "an update in steps",
    (
        create(A, ResourceSpec("b")),
        update(
            A2_WITH_HOOK, ResourceSpec("b", value="2", rules=(rule(Point.PRE_UPDATE, Mode.NOTIFY),))
        ),
    ),
    Incidents(lease=1, step=2),
    sequential=True,
)
STEPPED_CREATE = Scenario(
    "a create in steps",
    (create(A._replace(rules=(rule(Point.PRE_CREATE),)), B, ResourceSpec("c")),),
    Incidents(step=2, refusal=1),
)
STEPPED_REPLACE = Scenario(
    "an update in steps that becomes a replacement",
    (
        create(A, ResourceSpec("b")),
        update(
            A2_WITH_HOOK,
            ResourceSpec("b", value="2", rules=(rule(Point.POST_CREATE), rule(Point.POST_UPDATE))),
        ),
    ),
    Incidents(step=2, replace=1),
    sequential=True,
)

REMOVED_BESIDE = Scenario(
    "a resource that is removed beside an update and a create",
    (create(A, ResourceSpec("b")), update(A2, ResourceSpec("c"))),
    Incidents(lease=1, fail=1),
)

WAITING_DELETED = Scenario(
    "an operation that waits and is retried, and a delete",
    (create(A, B), DELETE),
    Incidents(lease=1, wait=2, retry=1),
)
WAITING_UPDATED_AND_DELETED = Scenario(
    "an operation that outlasts an update, and a delete",
    (create(A), update(A2), DELETE),
    Incidents(wait=1, retry=1, replace=1),
)
WAITING_REPLACED = Scenario(
    "an update that waits before it turns into a replacement, cancelled",
    (create(A), update(A2), CANCEL_WITH_ROLLBACK),
    Incidents(wait=1, retry=1, replace=1),
)

#: Resources whose create only computes: a chain, and one that requires two of them.
X = ResourceSpec("x", computes=True)
Y = ResourceSpec("y", ("x",), computes=True)
Z = ResourceSpec("z", ("y",), computes=True)
RUN = Scenario("a run of 3", (create(X, Y, Z),), Incidents(lease=1, duplicate=1, fail=1))
RUN_SUPERSEDED = Scenario(
    "a run that is superseded",
    (create(X, Y), update(X._replace(value="2"), Y._replace(value="2"))),
    Incidents(lease=1),
)
RUN_AT_BREAKPOINT = Scenario(
    "a run, and a breakpoint that is set meanwhile",
    (create(X, Y, Z), Request(None, breakpoint="z")),
    Incidents(lease=1, refusal=1),
)
BREAKPOINT_AT_CLAIMED = Scenario(
    "a breakpoint before a create that a worker has claimed and not begun",
    (
        create(A._replace(rules=(rule(Point.PRE_CREATE, Mode.NOTIFY),)), B),
        Request(None, breakpoint="a"),
    ),
    Incidents(lease=1, duplicate=1, refusal=1),
)
BREAKPOINT_AT_REPLACED = Scenario(
    "a breakpoint before the create of a replacement, while a worker has claimed the update",
    (create(A), update(NEW_A), Request(None, breakpoint="a")),
    Incidents(lease=1, refusal=1),
)
RUN_TO_HOOK = Scenario(
    "a run that ends before a resource with a hook",
    (create(X, Y, Z._replace(rules=(rule(Point.POST_CREATE),))),),
    Incidents(lease=1, refusal=1),
)
RUN_STEPPED = Scenario(
    "a run, and stepping that begins meanwhile",
    (create(A._replace(rules=(rule(Point.PRE_CREATE),)), X, Y),),
    Incidents(step=2),
)
RUN_TO_A_JOIN = Scenario(
    "runs that end at a resource that requires both",
    (create(A, X, Y, ResourceSpec("z", ("a", "y"), computes=True)), CANCEL),
    Incidents(lease=1),
)

#: Data, and a resource that requires it.
D = ResourceSpec("data.d", policy="Retain", data=True)
READER = ResourceSpec("r", ("data.d",))
DATA = Scenario(
    "data that every update reads again",
    (create(D, READER), update(D, READER), update(ResourceSpec("r", value="2"))),
    Incidents(fail=1),
)
DATA_STEPPED = Scenario(
    "data in an update in steps",
    (
        create(D, A),
        update(D, A2_WITH_HOOK, READER),
    ),
    Incidents(step=2),
    sequential=True,
)
DATA_SUSPENDED = Scenario(
    "data in a stack that is suspended, resumed and deleted",
    (create(D, READER), SUSPEND, RESUME, DELETE),
    sequential=True,
)

ALL = tuple(one for one in list(vars().values()) if isinstance(one, Scenario))
