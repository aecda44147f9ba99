"""Scenarios of stack trees: small trees, the requests for them, and steps through them."""

from dataclasses import replace

from engine.words import Mode, OnTimeout, Point
from tests.model.scenarios import CANCEL, DELETE, STOP, create, rule, update
from tests.model.stack_tree import TreeScenario
from tests.model.system_state import Incidents, Request, ResourceSpec

PRE_CREATE, PRE_DELETE = (rule(Point.PRE_CREATE),), (rule(Point.PRE_DELETE),)
RESTRICTED = (replace(rule(Point.PRE_CREATE), answer_by=("user:ann",)),)
CONTINUES = (rule(Point.PRE_CREATE, then=OnTimeout.CONTINUE),)
X, Y = ResourceSpec("x"), ResourceSpec("y", ("x",))
HOOKED_X = X._replace(rules=PRE_CREATE)
WEB = ResourceSpec("web", rules=PRE_CREATE, nested=(X,))
AFTER = ResourceSpec("after", ("web",))
X2, WEB2 = X._replace(value="2"), WEB._replace(value="2", rules=(), nested=(X._replace(value="2"),))
DB = ResourceSpec("db", nested=(ResourceSpec("d"),))

STEPPED = TreeScenario(
    "stepping into, over and out of a nested stack",
    (create(WEB._replace(nested=(X, Y)), AFTER),),
    Incidents(step=3),
)
STEPPED_BESIDE = TreeScenario(
    "stepping into a nested stack, and an answer beside it",
    (create(WEB, ResourceSpec("side", rules=PRE_CREATE)),),
    Incidents(step=2),
    workers=2,
)
STEPPED_TWO_LEVELS = TreeScenario(
    "stepping through two levels of nested stacks",
    (create(WEB._replace(nested=(DB, ResourceSpec("z", ("db",)))), AFTER),),
    Incidents(step=3),
)
STEPPED_BESIDE_INSIDE = TreeScenario(
    "stepping into a nested stack beside a step out of its parent",
    (
        create(
            WEB._replace(nested=(DB, ResourceSpec("z"))),
        ),
    ),
    Incidents(step=4),
)
STEPPED_FROM_INSIDE = TreeScenario(
    "stepping that begins at a rule in a nested stack",
    (create(ResourceSpec("web", nested=(HOOKED_X, Y)), ResourceSpec("side"), AFTER),),
    Incidents(step=2, refusal=1),
)
STEPPED_WITH_RULES = TreeScenario(
    "a step at a rule in a nested stack, beside an operation with a hook that does not block",
    (
        create(
            ResourceSpec("web", nested=(HOOKED_X,)),
            ResourceSpec("side", rules=(rule(Point.PRE_CREATE, Mode.NOTIFY),)),
        ),
    ),
    Incidents(step=1),
    workers=2,
)
RUN = TreeScenario(
    "run at two levels with rules",
    (create(WEB._replace(nested=(HOOKED_X,)), ResourceSpec("side", rules=PRE_CREATE)),),
    Incidents(step=2),
)
RUN_THEN_STEPPED = TreeScenario(
    "steps at a rule in a nested stack that run does not skip",
    (create(WEB._replace(nested=(X._replace(rules=RESTRICTED),)), AFTER),),
    Incidents(step=2),
)
EXPIRED = TreeScenario(
    "deadlines of hooks at two levels, which continue",
    (create(WEB._replace(rules=CONTINUES, nested=(X._replace(rules=CONTINUES),)), AFTER),),
    Incidents(step=1, refusal=2),
)
STEPPED_SUPERSEDED = TreeScenario(
    "stepping into a nested stack, and an update",
    (create(WEB), update(WEB2, ResourceSpec("side", rules=PRE_CREATE))),
    Incidents(step=2),
)
STEPPED_CANCELLED = TreeScenario(
    "stepping into a nested stack, cancelled and updated",
    (create(WEB, AFTER), CANCEL, update(WEB2, AFTER)),
    Incidents(step=2),
)
STEPPED_STOPPED = TreeScenario(
    "stepping through two levels, stopped and updated",
    (
        create(WEB._replace(nested=(DB,))),
        STOP,
        update(WEB._replace(nested=(DB,))),
    ),
    Incidents(step=2),
)
STEPPED_DELETE = TreeScenario(
    "stepping through a delete",
    (create(WEB._replace(rules=PRE_DELETE, nested=(X, Y))), DELETE),
    Incidents(step=3),
    sequential=True,
)
STEPPED_THEN_DELETED = TreeScenario(
    "stepping into a nested stack, and a delete",
    (create(WEB, AFTER), DELETE),
    Incidents(step=2),
)
STEPPED_FAILING = TreeScenario(
    "stepping into a nested stack that fails",
    (create(WEB._replace(nested=(X, Y)), AFTER),),
    Incidents(step=2, fail=1, refusal=1),
)
TWICE = (replace(rule(Point.PRE_CREATE), approvals=2),)
APPROVED = TreeScenario(
    "hooks at two levels that need two approvals, one of which run does not skip",
    (create(WEB._replace(nested=(X._replace(rules=TWICE),)), ResourceSpec("side", rules=TWICE)),),
    Incidents(step=1, refusal=1),
)
#: Two members, which an update changes one after the other.
MEMBERS = (ResourceSpec("0"), ResourceSpec("1"))
GROUP = ResourceSpec("web", rules=(rule(Point.PRE_BATCH),), nested=MEMBERS, batch=1)
GROUP2, GROUP3 = GROUP._replace(value="2"), GROUP._replace(value="3")
BATCHES = TreeScenario(
    "a group that changes in two batches, each after a hook",
    (create(GROUP), update(GROUP2)),
    Incidents(refusal=1),
    sequential=True,
)
#: The worker may have started a batch on the nested stack, and not stored that.
BATCHES_AND_CRASH = TreeScenario(
    "a group that changes in two batches, and a worker that crashes",
    (create(GROUP), update(GROUP2)),
    Incidents(refusal=1, lease=1),
    sequential=True,
)
BATCHES_OF_HOOKED_MEMBERS = TreeScenario(
    "a group that changes in batches, and a hook of a member",
    (
        create(GROUP._replace(rules=())),
        update(
            GROUP2._replace(
                nested=(MEMBERS[0]._replace(rules=(rule(Point.PRE_UPDATE),)), MEMBERS[1])
            )
        ),
    ),
    Incidents(refusal=1, step=1),
    sequential=True,
)
BATCHES_SUPERSEDED = TreeScenario(
    "a group that changes in batches, updated meanwhile",
    (create(GROUP), update(GROUP2), update(GROUP3)),
    Incidents(),
)
#: Members may still be changed by the larger batch of the superseded change.
SMALLER_BATCHES = TreeScenario(
    "a group whose batches become smaller, by two workers",
    (
        create(GROUP._replace(rules=())),
        update(GROUP2._replace(rules=(), batch=2)),
        update(GROUP3._replace(rules=())),
    ),
    Incidents(),
    workers=2,
)
BATCHES_FAILING = TreeScenario(
    "a batch that fails or is cancelled",
    (create(GROUP._replace(rules=())), update(GROUP2._replace(rules=())), CANCEL),
    Incidents(fail=1),
)
RUN_TO = TreeScenario(
    "running to a resource in a nested stack, at any time of stepping",
    (create(WEB._replace(nested=(X, Y)), AFTER), Request(None, run_to="web/y")),
    Incidents(step=2),
)

ALL = tuple(one for one in list(vars().values()) if isinstance(one, TreeScenario))
