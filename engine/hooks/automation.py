"""Subscriptions that answer hooks: their identity, and which hooks they may answer. Pure."""

from dataclasses import dataclass
from uuid import UUID

from engine.hooks.rule import REQUESTER, SUBSCRIPTION, TOKEN, Rule, answerers
from engine.principal import NOBODY, Principal

#: The identity of all subscriptions in the server's settings, which count as one approver.
OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Automation:
    """A subscription as an answerer.

    name: in the settings; its ID if it has none. configured: it is in the server's settings.
    owner: the principal who created it; NOBODY if not recorded. approves: the owner currently has
    the right to answer hooks.
    """

    id: UUID
    name: str
    configured: bool = False
    owner: Principal = NOBODY
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


def refusal(rule: Rule, one: Automation, requester: Principal, *, escalated: bool) -> str | None:
    """Return why a subscription may not answer, or None. requester: of the change."""
    if not one.configured and (why := _of_tenant(rule, one, requester)) is not None:
        return why
    wanted = answerers(rule, escalated=escalated)
    mine = {TOKEN, *([f"{SUBSCRIPTION}:{one.name}"] if one.configured else [])}
    if wanted and not mine & set(wanted):
        return f"only {', '.join(wanted)} may answer it"
    return None


def may_ever_answer(rule: Rule, one: Automation, requester: Principal) -> bool:
    """Return whether it may answer now or after an escalation; its notice then has the token."""
    return any(
        refusal(rule, one, requester, escalated=escalated) is None for escalated in (False, True)
    )


def _of_tenant(rule: Rule, one: Automation, requester: Principal) -> str | None:
    if rule.by_operator:
        return "the operator's rule holds it: only subscriptions of the server's settings answer it"
    if not one.approves:
        return _powerless(one)
    if rule.exclude == REQUESTER and (not one.owner.id or one.owner.is_in({requester.key})):
        who = one.owner.name or "an unknown owner"
        return f"it acts for {who}, and a principal other than the requester must answer"
    if rule.approvals > 1 and not one.owner.id:
        return "its owner is unknown, and several principals must approve"
    return None


def _powerless(one: Automation) -> str:
    if not one.owner.id:
        return "its owner is unknown: an approver changes it, and owns it from then on"
    return f"its owner {one.owner.name} has no right to answer hooks: that takes the role approver"
