"""The right to answer a hook: which principals and subscriptions may answer it. Pure.

For a principal, it depends on the rule's `answer_by`, `exclude` and escalation, and on a hand-over
of the hook. For a subscription, which answers with the hook's token, it also depends on whether an
operator rule or a rule of the project blocks the node, and on the rights of the subscription's
owner.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from uuid import UUID

from engine.errors import Forbidden
from engine.hooks.deadline import HookClock
from engine.hooks.rule import REQUESTER, SUBSCRIPTION, TOKEN, Rule
from engine.principal import UNKNOWN_PRINCIPAL, Principal
from engine.words import HookState, Json


@dataclass(frozen=True, slots=True)
class StoredHook:
    """A stored hook. approved_by: keys of the principals who have approved so far. patched: the
    node's properties from an answer. seen: the preview of an operation that must be confirmed.
    operator_approval: the point at which an operator rule has approved the node's properties, so
    that an answer must not patch them; None: none has.
    """

    state: HookState
    resource_name: str
    point: str
    digest: str
    clock: HookClock
    decision: str | None
    decided_by: str | None
    decided_at: datetime | None
    rule: Rule
    requested_by: Principal
    assigned: str | None = None
    escalated: bool = False
    approved_by: Sequence[str] = ()
    data: Json = None
    patched: Json = None
    seen: Mapping[str, Json] = field(default_factory=dict)
    operator_approval: str | None = None


#: The identity of all subscriptions in the server's settings, which count as one approver.
OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Automation:
    """A subscription as an answerer.

    name: in the settings; its ID if it has none. configured: it is in the server's settings.
    owner: the principal who created it; UNKNOWN_PRINCIPAL if not recorded. approves: the owner has
    the right to answer hooks.
    """

    id: UUID
    name: str
    configured: bool = False
    owner: Principal = UNKNOWN_PRINCIPAL
    approves: bool = False

    @property
    def principal(self) -> Principal:
        """The principal recorded for its answers: its owner's identity, named as a subscription."""
        if self.configured:
            return Principal(OPERATOR, f"subscription {self.name}", token_id=str(self.id))
        of = f" of {self.owner.name}" if self.owner.name else ""
        return Principal(self.owner.id, f"subscription {self.name}{of}", token_id=str(self.id))

    @property
    def person(self) -> Principal:
        """The principal that counts for `approvals` and `exclude`."""
        return self.principal if self.configured else self.owner


def check_right(hook: StoredHook, by: Principal, automation: Automation | None) -> None:
    """Check the right to answer. automation: the subscription that authorizes the answer; None: the
    role of `by` does. Raises Forbidden (MayNotAnswer).
    """
    requester = hook.requested_by
    if automation is not None:
        why = automation_refusal(hook.rule, automation, requester, escalated=hook.escalated)
    else:
        # A hand-over does not change the requester.
        handed_over = hook.assigned in by.rule_names
        rule = replace(hook.rule, answer_by=()) if handed_over else hook.rule
        why = principal_refusal(rule, by, requester, escalated=hook.escalated)
    if why is not None:
        of = hook.resource_name or "the stack"
        remedy = "Ask a principal who may answer it, or ask them to hand it over to you."
        wanted = answerers(hook.rule, escalated=hook.escalated)
        if names := own_names(by, (*wanted, hook.assigned or "")):
            remedy += f' "user:{by.name}" is another principal: rules name you {names}.'
        raise Forbidden(
            f"you may not answer hook {hook.point} of {of}: {why}",
            remedy=remedy,
            code="MayNotAnswer",
        )


def principal_refusal(
    rule: Rule, who: Principal, requester: Principal, *, escalated: bool
) -> str | None:
    """Return why a principal may not answer, or None. requester: of the change."""
    if rule.exclude == REQUESTER and who.is_in({requester.key, *rule.excluded}):
        return f"{who} requested this change or its template, and another principal must answer"
    wanted = answerers(rule, escalated=escalated)
    if wanted and not set(who.rule_names) & set(wanted):
        return f"only {', '.join(wanted)} may answer it"
    return None


def automation_refusal(
    rule: Rule, automation: Automation, requester: Principal, *, escalated: bool
) -> str | None:
    """Return why a subscription may not answer, or None. requester: of the change."""
    wanted = answerers(rule, escalated=escalated)
    own = {TOKEN}
    if automation.configured:
        name = f"{SUBSCRIPTION}:{automation.name}"
        own = {TOKEN, name} if rule.by_operator else {name}
        if not (wanted or rule.by_operator):
            return f"a rule of the project blocks the node, and its answer_by does not name {name}"
    elif (why := _rule_refusal(rule, automation, requester)) is not None:
        return why
    if wanted and not own & set(wanted):
        return f"only {', '.join(wanted)} may answer it"
    return None


def may_ever_answer(rule: Rule, automation: Automation, requester: Principal) -> bool:
    """Whether it may answer now or after an escalation; its notification then has the token."""
    return any(
        automation_refusal(rule, automation, requester, escalated=escalated) is None
        for escalated in (False, True)
    )


def _rule_refusal(rule: Rule, automation: Automation, requester: Principal) -> str | None:
    if rule.by_operator:
        return "an operator rule blocks the node: only subscriptions in the settings may answer"
    if not automation.approves:
        return _missing_right(automation)
    if rule.exclude == REQUESTER and (
        not automation.owner.id or automation.owner.is_in({requester.key, *rule.excluded})
    ):
        who = automation.owner.name or "an unknown owner"
        return f"it acts for {who}, and a principal other than the requester must answer"
    if rule.approvals > 1 and not automation.owner.id:
        return "its owner is unknown, and several principals must approve"
    return None


def _missing_right(automation: Automation) -> str:
    if not automation.owner.id:
        return "its owner is unknown; an approver becomes the owner by changing the subscription"
    name = automation.owner.name
    return f"its owner {name} has no right to answer hooks; the role approver is required"


def answerers(rule: Rule, *, escalated: bool) -> tuple[str, ...]:
    """Return who may answer, as in `answer_by`; empty: all who have the right. escalated: whether
    the rule's escalation has happened.
    """
    escalated_to = rule.escalate.to if escalated and rule.escalate is not None else ()
    return (*rule.answer_by, *escalated_to) if rule.answer_by else ()


def own_names(who: Principal, wanted: Collection[str]) -> str:
    """Return the unambiguous names of a principal, if `wanted` has only their display name; else
    "". wanted: as in `answer_by`.
    """
    if f"user:{who.name}" not in wanted or set(who.rule_names) & set(wanted):
        return ""
    return " or ".join(f"user:{one}" for one in who.aliases)
