"""Which hooks a subscription may answer with a token, and as whom it counts: as a table."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from engine.hooks.automation import OPERATOR, Automation, may_ever_answer, refusal
from engine.hooks.rule import Escalation, Rule
from engine.principal import NOBODY, Principal, named
from engine.words import Point

ANN = Principal("token:ann", "ann")
#: Another principal, who is called the same.
NAMESAKE = Principal("token:other", "ann")
OF_ANN = Automation(UUID(int=1), str(UUID(int=1)), owner=ANN, approves=True)
POWERLESS = replace(OF_ANN, approves=False)
OWNERLESS = replace(OF_ANN, owner=NOBODY)
POLICY = Automation(UUID(int=2), "policy", configured=True, approves=True)
OTHER = replace(POLICY, name="other")


def rule(**said: object) -> Rule:
    return replace(Rule(Point.PRE_CREATE), **said)  # type: ignore[arg-type]


PLAIN = rule()
OPERATORS = rule(by_operator=True)


@pytest.mark.parametrize(
    ("held_by", "who", "why"),
    [
        (PLAIN, OF_ANN, None),
        (PLAIN, POLICY, None),
        (PLAIN, POWERLESS, "its owner ann has no right to answer hooks"),
        (PLAIN, replace(POWERLESS, owner=NOBODY), "its owner is unknown"),
        (OPERATORS, OF_ANN, "the operator's rule"),
        (OPERATORS, POLICY, None),
        (replace(OPERATORS, answer_by=("token",)), OF_ANN, "the operator's rule"),
        (replace(OPERATORS, answer_by=("token",)), POLICY, None),
        (replace(OPERATORS, answer_by=("subscription:policy",)), POLICY, None),
        (replace(OPERATORS, answer_by=("subscription:policy",)), OTHER, "only subscription:"),
        # A name of the settings is the settings' alone.
        (
            rule(answer_by=("subscription:policy",)),
            replace(OF_ANN, name="policy"),
            "only subscription:policy may answer it",
        ),
        (rule(answer_by=("token",)), OF_ANN, None),
        (rule(answer_by=("role:dba",)), OF_ANN, "only role:dba may answer it"),
        (rule(answer_by=("role:dba",)), POLICY, "only role:dba may answer it"),
        (rule(answer_by=("user:ann",)), OF_ANN, "only user:ann may answer it"),
        (rule(exclude="requester"), OF_ANN, "it acts for ann"),
        (rule(exclude="requester"), replace(OF_ANN, owner=NAMESAKE), None),
        (rule(exclude="requester"), OWNERLESS, "it acts for an unknown owner"),
        (rule(exclude="requester"), POLICY, None),
        (rule(approvals=2), OF_ANN, None),
        (rule(approvals=2), OWNERLESS, "its owner is unknown"),
        (rule(approvals=2), POLICY, None),
    ],
)
def test_which_hooks_a_subscription_answers(
    held_by: Rule, who: Automation, why: str | None
) -> None:
    said = refusal(held_by, who, ANN, escalated=False)
    assert said is None if why is None else said is not None and said.startswith(why)
    assert may_ever_answer(held_by, who, ANN) is (why is None)


def test_a_requester_of_whom_only_the_name_is_known_is_excluded_by_name() -> None:
    before = Principal("", "ann")
    assert refusal(rule(exclude="requester"), OF_ANN, before, escalated=False) is not None
    bobs = replace(OF_ANN, owner=Principal("token:bob", "bob"))
    assert refusal(rule(exclude="requester"), bobs, before, escalated=False) is None


def test_a_notice_carries_a_token_for_what_escalates_to_tokens() -> None:
    late = rule(answer_by=("role:dba",), escalate=Escalation(timedelta(hours=1), ("token",)))
    assert refusal(late, OF_ANN, named("bob"), escalated=False) is not None
    assert refusal(late, OF_ANN, named("bob"), escalated=True) is None
    assert may_ever_answer(late, OF_ANN, named("bob"))


def test_a_subscription_is_no_other_person_than_its_owner() -> None:
    assert OF_ANN.principal.id == OF_ANN.person.id == ANN.id
    assert OF_ANN.principal.name == f"subscription {OF_ANN.name} of ann"
    assert OF_ANN.principal.token_id == str(OF_ANN.id)
    assert {POLICY.person.key, OTHER.person.key} == {OPERATOR}
    assert (POLICY.principal.name, OTHER.principal.name) == (
        "subscription policy", "subscription other",
    )  # fmt: skip
