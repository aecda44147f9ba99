"""When each type of events is recorded: the text of the reference.

A key of the table stands for one or more types: braces list alternatives, as in
``headgate.hook.{answered,expired}``. The texts are Markdown, with links as in docs/reference.
"""

import re
from collections.abc import Mapping
from itertools import product

EVENT_TYPES: Mapping[str, str] = {
    "headgate.stack.{create,update,delete,rollback,adopt,check,suspend,resume,snapshot,"
    "restore}.{started,completed,failed,stopped}": ("an action of a stack starts or ends"),
    "headgate.stack.converge.{completed,failed}": (
        "a converge with several [rounds](../how-to/repair-drift.md#repair-drift) has ended: "
        "nothing differs, or something still does; `reason` says what"
    ),
    "headgate.stack.abandon.completed": (
        "a stack is abandoned. Headgate deletes its records, but no physical resource"
    ),
    "headgate.resource.{create,update,replace,delete,adopt,check,suspend,resume,"
    "snapshot}.{started,progress,completed,failed,retrying,restarted}": (
        "an operation on a resource starts or ends. `progress`: the server of a software "
        "deployment reports progress. `retrying`: the operation failed, and Headgate will "
        "retry it. `restarted`: the process that ran the operation ended, and Headgate calls "
        "the operation again with the same operation key"
    ),
    "headgate.resource.move.completed": (
        "a resource gets another name or moves to another stack. The physical resource does "
        "not change"
    ),
    "headgate.resource.drift.{detected,resolved,unrepaired}": (
        "for a stack whose [convergence policy](environments.md#convergence) says `notify`, "
        "`hold` or `repair`. `detected`: a resource differs from its recorded state, or "
        "differs in another way than before. `resolved`: it no longer differs. `unrepaired`: "
        "Headgate does not repair it; `reason` says why"
    ),
    "headgate.resource.{protect,unprotect}.completed": (
        "protection from deletion and replacement is set or removed"
    ),
    "headgate.resource.signal.completed": ("a resource receives a signal"),
    "headgate.hook.waiting": (
        "a node reaches a breakpoint, or a resource has [drift that is "
        "held](../how-to/repair-drift.md#decide-about-each-drift). This is the hook "
        "notification, with the data needed for a decision"
    ),
    "headgate.hook.{answered,expired,superseded}": (
        "a hook closes: it is answered, its deadline passes, or a newer change supersedes it"
    ),
    "headgate.hook.approved": ("a principal approves a hook that needs more approvals"),
    "headgate.hook.progress": ("a principal answers `progress`, and the deadline moves"),
    "headgate.hook.handed-over": (
        "a hook is handed over to another principal. The event contains the note"
    ),
    "headgate.hook.reminder": ("a hook is still waiting when a reminder is due"),
    "headgate.hook.escalated": (
        "a hook is still waiting when its rule escalates it. More principals may answer from "
        "then on"
    ),
    "headgate.hook.undeliverable": (
        "the notification of a hook cannot be delivered: every delivery is dead or belongs to "
        "a disabled subscription"
    ),
    "headgate.delivery.delivered": (
        "the notification of a waiting hook is delivered. For other events, see the delivery "
        "log of the subscription"
    ),
    "headgate.delivery.dead": ("Headgate stops retrying a delivery"),
    "headgate.subscription.{enabled,disabled}": (
        "a subscription is created, enabled or disabled, by a user or automatically"
    ),
    "headgate.subscription.{changed,rotated,deleted}": (
        "a subscription is changed, gets a new secret or is deleted"
    ),
    "headgate.subscription.redelivered": (
        "deliveries are resent on request. `reason` contains their number"
    ),
    "headgate.subscription.test": (
        "a user tests a subscription. Only that subscription receives the event"
    ),
    "headgate.audit.signed": (
        "Headgate signs the heads of the [audit log](hooks.md#signed-checkpoints) of a "
        "project. `data.checkpoint` has the fields of a line of the checkpoints file"
    ),
    "headgate.usage.recorded": (
        "a day has ended, and Headgate has stored what the project [used](usage.md) on it. "
        "`data.usage` has the values"
    ),
}


def expand(pattern: str) -> set[str]:
    """``a.{b,c}`` -> a.b, a.c."""
    parts = re.split(r"\{([^}]*)\}", pattern)
    choices = [part.split(",") if index % 2 else [part] for index, part in enumerate(parts)]
    return {"".join(chosen) for chosen in product(*choices)}
