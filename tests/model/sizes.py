"""What is explored: small stacks, what is asked of them, and how much luck they may lose."""

from datetime import timedelta

from engine.hooks.rule import Rule
from engine.words import Action, Mode, OnTimeout, Point, post_stack, pre_stack
from tests.model.world import Luck, Request, Size, Want


def rule(point: Point, mode: Mode = Mode.WAIT, then: OnTimeout = OnTimeout.STOP) -> Rule:
    """As a request's JSON is read, with the time-out that the tests' engine fills in."""
    return Rule(point, mode, timedelta(minutes=10), then)


def create(*wants: Want) -> Request:
    return Request(Action.CREATE, wants)


def update(*wants: Want) -> Request:
    return Request(Action.UPDATE, wants)


DELETE = Request(Action.DELETE)
CHECK = Request(Action.CHECK)
CANCEL, STOP = Request(None, ends="failed"), Request(None, ends="stopped")
TAKE_BACK = Request(None, ends="rolled back")

A, B = Want("a"), Want("b", ("a",))
ASKED = Want("b", ("a",), rules=(rule(Point.PRE_CREATE), rule(Point.POST_CREATE)))
DIAMOND = (A, ASKED, Want("c", ("a",)), Want("d", ("b", "c")))


A2, B2 = A._replace(value="2"), B._replace(value="2")
#: A change of its value makes a new one.
NEW_A = A._replace(value="2!")
STAYS = A._replace(policy="Retain")
KEPT = Want("a", rules=(rule(Point.PRE_DELETE), rule(Point.POST_DELETE)))
TOLD = Want("a", value="2", rules=(rule(Point.PRE_UPDATE), rule(Point.POST_UPDATE, Mode.NOTIFY)))

CHAIN = Size("chain of 2", (create(A, B),), Luck(lease=2, twice=1, wait=1, fail=1))
HOOKED = Size("chain of 2 with hooks", (create(A, ASKED),), Luck(lease=1, twice=1, fail=1, no=1))
DIAMOND_OF_4 = Size("diamond of 4 with hooks", (create(*DIAMOND),), Luck(lease=1, no=1))
UPDATED = Size("chain of 2, updated", (create(A, B), update(A2, B2)), Luck(lease=1, wait=1, fail=1))
HOOK_GIVEN_UP = Size(
    "hooks of what is superseded", (create(A, ASKED), update(A2, B2)), Luck(lease=1, no=1)
)
UPDATED_TWICE = Size(
    "one resource, updated twice",
    (create(A), update(A2), update(A)),
    Luck(fail=1, replace=1),
)
DELETED = Size("chain of 2, deleted", (create(A, B), DELETE), Luck(lease=1, twice=1, fail=1))
KEPT_BACK = Size("a delete that asks", (create(KEPT), DELETE, DELETE), Luck(lease=1, fail=1, no=2))
REPLACED = Size(
    "a replacement and its user", (create(A, B), update(NEW_A, B2)), Luck(lease=1, fail=1)
)
REPLACED_GIVEN_UP = Size(
    "a replacement that is superseded",
    (create(A), update(NEW_A), update(A2)),
    Luck(lease=1),
)
REJECTED = Size(
    "an update that asks and is taken back",
    (create(A), update(TOLD), update(A)),
    Luck(fail=1, no=1),
)
REMOVED = Size(
    "a user that leaves",
    (create(A, B), update(A), DELETE),
    Luck(fail=1),
)
CANCELLED = Size(
    "a chain, cancelled and resumed",
    (create(A, ASKED), CANCEL, update(A, B)),
    Luck(lease=1, wait=1),
)
REPLACED_BEHIND = Size(
    "a replacement that others only come after",
    (create(A, B), update(NEW_A, B), update(A._replace(value="3!"), B2)),
    Luck(lease=1, fail=1),
    patient=True,
)
RETRY_REJECTED = Size(
    "a broken resource, whose repair is rejected",
    (create(A), update(A2), update(TOLD), update(A)),
    Luck(fail=1, no=1),
    patient=True,
)

TAKEN_OVER = Size("one resource, updated while it is made", (create(A), update(A2)), Luck(lease=1))
LEFT_BEHIND = Size(
    "a replacement under way, and a delete",
    (create(A), update(NEW_A), DELETE),
    Luck(),
)
MADE_TWICE = Size(
    "a resource made again under way, and an update",
    (create(A), update(), update(A2), update(A)),
    Luck(),
)
HOOK_BEHIND = Size(
    "a hook behind what is superseded",
    (create(A._replace(rules=(rule(Point.POST_CREATE),))), update(A2)),
    Luck(lease=1, no=1),
)
GONE_AND_WANTED = Size(
    "a resource that is gone, its row held at a hook, and wanted again",
    (create(KEPT), update(), update(A)),
    Luck(no=1),
)
STOPPED = Size(
    "a stop, and a resume",
    (create(A, Want("b", ("a",), rules=(rule(Point.PRE_CREATE, Mode.STOP),))), update(A, B)),
    Luck(lease=1),
)
TURNED_ROUND = Size(
    "a dependency turned round",
    (create(A, B), update(Want("b", value="2"), Want("a", ("b",), value="2"))),
    Luck(lease=1),
)
CANCELLED_DELETED = Size(
    "a chain, cancelled and deleted",
    (create(A, ASKED), CANCEL, DELETE),
    Luck(lease=1, wait=1),
)
DIAMOND_UPDATED = Size(
    "diamond of 4, one of it taken away by an update",
    (create(*DIAMOND), update(A, B2, Want("d", ("b",)))),
    Luck(lease=1),
)
TAKEN_BACK = Size(
    "a resource that is deleted and wanted again",
    (create(A), update(), update(A2), DELETE),
    Luck(wait=1),
)
MADE_AND_DELETED = Size(
    "a resource made again while it is deleted, and a delete",
    (create(A), update(), update(A2), DELETE),
    Luck(),
)
THREE_WORKERS = Size(
    "three workers", (create(A, Want("b"), Want("c", ("a", "b"))),), Luck(lease=2, twice=1), hands=3
)

USER_OF_A_REPLACEMENT = Size(
    "a new user of a replacement, cancelled and deleted",
    (create(A), update(NEW_A, B), CANCEL, DELETE),
    Luck(fail=1),
)
TAKEN_BACK_REPLACED = Size(
    "a replacement and its user, taken back",
    (create(A, B), update(NEW_A, B2), TAKE_BACK),
    Luck(leave=1),
)
ROLLED_BACK = Size(
    "a chain of 2, rolled back", (create(A, B), update(A2, B2)), Luck(fail=2), rolls_back=True
)
TIMED_OUT = Size(
    "a time-out, rolled back",
    (create(A, ASKED), update(A2, B2)),
    Luck(late=1, no=1),
    rolls_back=True,
)
STOPPED_BY_REQUEST = Size(
    "a replacement, stopped and resumed", (create(A, B), update(NEW_A), STOP, update(A2, B2))
)
RETRIED = Size("an update that is tried again", (create(A), update(A2)), Luck(retry=2, replace=1))
LEAVING = Size(
    "a replacement that leaves something behind",
    (create(A, B), update(NEW_A, B2), update(A, B)),
    Luck(leave=1),
)
LEFT_UNSEEN = Size(
    "a resource made again under way, that leaves something behind",
    (create(A), update(), update(A2), update(A)),
    Luck(leave=1),
)
RESTRICTED = Size(
    "a replacement that an update asks for and may not have",
    (create(A), update(A2._replace(restricted=("replace",))), update(A)),
    Luck(replace=1),
)
FORBIDDEN = Size(
    "changes that are restricted, and then are not",
    (
        create(A),
        update(NEW_A._replace(restricted=("replace",))),
        update(A2._replace(restricted=("update",))),
        update(A2),
    ),
    Luck(fail=1),
    patient=True,
)
RETAINED = Size(
    "a replacement of what is retained",
    (create(STAYS), update(NEW_A._replace(policy="Retain")), DELETE),
    Luck(leave=1),
)
RETAINED_AGAIN = Size(
    "a resource made again while it is deleted, to be retained",
    (create(A), update(), update(STAYS._replace(value="2")), DELETE),
)
HOOKED_LATER = Size(
    "a replacement under way, which is to ask before it goes",
    (create(A), update(NEW_A), update(NEW_A._replace(rules=KEPT.rules)), DELETE),
)

CHECKED = Size(
    "a chain, cancelled, checked and updated",
    (create(A, B), CANCEL, CHECK, update(A2, B)),
    Luck(lease=1),
)
CHECKED_TWICE = Size(
    "a resource that is unwell, checked twice and updated",
    (create(A), CHECK, CHECK, update(A2)),
    Luck(fail=2, wait=1),
    patient=True,
)
CHECK_BEHIND = Size(
    "a check behind an update that was cancelled",
    (create(A), update(A2), CANCEL, CHECK),
    Luck(lease=1),
)
CHECK_ASKED = Size(
    "a check that asks, and a delete",
    (
        create(A._replace(rules=(rule(Point.PRE_CHECK), rule(Point.POST_CHECK)))),
        CHECK,
        DELETE,
    ),
    Luck(fail=1, no=1),
)

SUSPEND, RESUME = Request(Action.SUSPEND), Request(Action.RESUME)


def stack_rule(point: str, approvals: int = 1) -> Rule:
    return Rule(point, Mode.WAIT, timedelta(minutes=10), approvals=approvals)


SUSPENDED = Size(
    "a chain, suspended and resumed",
    (create(A, B), SUSPEND, RESUME),
    Luck(lease=1, fail=1),
    patient=True,
)
SUSPEND_CANCELLED = Size(
    "a suspend that is cancelled, and a resume",
    (create(A, B), SUSPEND, CANCEL, RESUME),
    Luck(lease=1),
)
SUSPEND_ASKED = Size(
    "a suspend that asks",
    (
        create(A._replace(rules=(rule(Point.PRE_SUSPEND), rule(Point.POST_RESUME))), B),
        SUSPEND,
        RESUME,
    ),
    Luck(no=1),
    patient=True,
)
STACK_HOOKS = Size(
    "hooks of the whole stack",
    (create(A, Want("b")), update(A2)),
    Luck(lease=1, no=1),
    stack=(
        stack_rule(pre_stack(Action.CREATE)),
        stack_rule(pre_stack(Action.UPDATE)),
        stack_rule(post_stack(Action.UPDATE)),
    ),
)
APPROVED = Size(
    "hooks that need two approvals",
    (create(A._replace(rules=(stack_rule("pre-create", 2),)), B), update(A2)),
    Luck(lease=1, no=1),
    stack=(stack_rule(post_stack(Action.CREATE), 2),),
)

ALL = tuple(one for one in list(vars().values()) if isinstance(one, Size))
