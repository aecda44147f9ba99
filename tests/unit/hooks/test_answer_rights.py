"""The hooks that a subscription may answer with a token, and the principal as whom it counts: as a
table.
"""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from engine.hooks.answer_rights import OPERATOR, Automation, automation_refusal, may_ever_answer
from engine.hooks.rule import Escalation, Rule
from engine.principal import UNKNOWN_PRINCIPAL, Principal, principal_of_name
from engine.words import Point

ANN = Principal("token:ann", "ann")
#: Another principal with the same name.
OTHER_ANN = Principal("token:other", "ann")
OF_ANN = Automation(UUID(int=1), str(UUID(int=1)), owner=ANN, approves=True)
WITHOUT_RIGHTS = replace(OF_ANN, approves=False)
WITHOUT_OWNER = replace(OF_ANN, owner=UNKNOWN_PRINCIPAL)
POLICY = Automation(UUID(int=2), "policy", configured=True, approves=True)
OTHER = replace(POLICY, name="other")


def rule(**fields: object) -> Rule:
    return replace(Rule(Point.PRE_CREATE), **fields)  # type: ignore[arg-type]


PLAIN = rule()
OPERATORS = rule(by_operator=True)


@pytest.mark.parametrize(
    ("held_by", "who", "why"),
    [
        (PLAIN, OF_ANN, None),
        (PLAIN, POLICY, "a rule of the project blocks the node, and its answer_by does not name"),
        (PLAIN, WITHOUT_RIGHTS, "its owner ann has no right to answer hooks"),
        (PLAIN, replace(WITHOUT_RIGHTS, owner=UNKNOWN_PRINCIPAL), "its owner is unknown"),
        (OPERATORS, OF_ANN, "an operator rule blocks"),
        (OPERATORS, POLICY, None),
        (replace(OPERATORS, answer_by=("token",)), OF_ANN, "an operator rule blocks"),
        (replace(OPERATORS, answer_by=("token",)), POLICY, None),
        (replace(OPERATORS, answer_by=("subscription:policy",)), POLICY, None),
        (replace(OPERATORS, answer_by=("subscription:policy",)), OTHER, "only subscription:"),
        # a name of the settings matches subscriptions of the settings only
        (
            rule(answer_by=("subscription:policy",)),
            replace(OF_ANN, name="policy"),
            "only subscription:policy may answer it",
        ),
        (rule(answer_by=("subscription:policy",)), POLICY, None),
        (rule(answer_by=("token",)), POLICY, "only token may answer it"),
        (rule(answer_by=("token",)), OF_ANN, None),
        (rule(answer_by=("role:dba",)), OF_ANN, "only role:dba may answer it"),
        (rule(answer_by=("role:dba",)), POLICY, "only role:dba may answer it"),
        (rule(answer_by=("user:ann",)), OF_ANN, "only user:ann may answer it"),
        (rule(exclude="requester"), OF_ANN, "it acts for ann"),
        (rule(exclude="requester"), replace(OF_ANN, owner=OTHER_ANN), None),
        (rule(exclude="requester"), WITHOUT_OWNER, "it acts for an unknown owner"),
        (rule(exclude="requester"), POLICY, "a rule of the project blocks the node"),
        (rule(approvals=2), OF_ANN, None),
        (rule(approvals=2), WITHOUT_OWNER, "its owner is unknown"),
        (rule(approvals=2), POLICY, "a rule of the project blocks the node"),
    ],
)
def test_hooks_that_a_subscription_may_answer(
    held_by: Rule, who: Automation, why: str | None
) -> None:
    refused = automation_refusal(held_by, who, ANN, escalated=False)
    assert refused is None if why is None else refused is not None and refused.startswith(why)
    assert may_ever_answer(held_by, who, ANN) is (why is None)


def test_a_requester_with_only_a_name_is_excluded_by_name() -> None:
    before = Principal("", "ann")
    assert (
        automation_refusal(rule(exclude="requester"), OF_ANN, before, escalated=False) is not None
    )
    bobs = replace(OF_ANN, owner=Principal("token:bob", "bob"))
    assert automation_refusal(rule(exclude="requester"), bobs, before, escalated=False) is None


def test_a_notification_has_a_token_if_the_hook_escalates_to_tokens() -> None:
    late = rule(answer_by=("role:dba",), escalate=Escalation(timedelta(hours=1), ("token",)))
    assert automation_refusal(late, OF_ANN, principal_of_name("bob"), escalated=False) is not None
    assert automation_refusal(late, OF_ANN, principal_of_name("bob"), escalated=True) is None
    assert may_ever_answer(late, OF_ANN, principal_of_name("bob"))


def test_a_subscription_counts_as_its_owner() -> None:
    assert OF_ANN.principal.id == OF_ANN.person.id == ANN.id
    assert OF_ANN.principal.name == f"subscription {OF_ANN.name} of ann"
    assert OF_ANN.principal.token_id == str(OF_ANN.id)
    assert {POLICY.person.key, OTHER.person.key} == {OPERATOR}
    assert (POLICY.principal.name, OTHER.principal.name) == (
        "subscription policy", "subscription other",
    )  # fmt: skip
