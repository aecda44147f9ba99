"""Subscriptions that answer hooks: for whom they act, and which hooks they may answer. Pure."""

from dataclasses import dataclass
from uuid import UUID

from engine.hooks.rule import REQUESTER, SUBSCRIPTION, TOKEN, Rule, answerers
from engine.principal import NOBODY, Principal

#: The identity of all subscriptions of the server's settings: together they count as one approver.
OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Automation:
    """A subscription as an answerer.

    name: of the settings; the id where it has none. configured: it is of the server's settings.
    owner: the principal who made it; NOBODY where that was never recorded. approves: the owner has
    the right to answer hooks now.
    """

    id: UUID
    name: str
    configured: bool = False
    owner: Principal = NOBODY
    approves: bool = False

    @property
    def principal(self) -> Principal:
        """As whom its answers are recorded: its owner's identity, with a name that says what it
        is."""
        if self.configured:
            return Principal(OPERATOR, f"subscription {self.name}", token_id=str(self.id))
        of = f" of {self.owner.name}" if self.owner.name else ""
        return Principal(self.owner.id, f"subscription {self.name}{of}", token_id=str(self.id))

    @property
    def person(self) -> Principal:
        """The principal that counts for `approvals` and `exclude`."""
        return self.principal if self.configured else self.owner


def refusal(rule: Rule, one: Automation, requester: Principal, *, escalated: bool) -> str | None:
    """Why a subscription's answer does not count; None: it does. requester: of the change."""
    if not one.configured and (why := _of_tenant(rule, one, requester)) is not None:
        return why
    wanted = answerers(rule, escalated=escalated)
    mine = {TOKEN, *([f"{SUBSCRIPTION}:{one.name}"] if one.configured else [])}
    if wanted and not mine & set(wanted):
        return f"it is for {', '.join(wanted)} to answer"
    return None


def may_ever_answer(rule: Rule, one: Automation, requester: Principal) -> bool:
    """Whether its notice carries the hook's token: it may answer now, or once it escalates."""
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
