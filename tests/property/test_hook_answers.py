"""Arbitrary sequences of answers to a hook."""

from dataclasses import replace
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from engine.errors import AnswerRefused, Invalid
from engine.hooks.answers import (
    Approval,
    DeadlineExtension,
    FinalAnswer,
    RepeatedAnswer,
    judge,
)
from engine.hooks.rule import Rule
from engine.words import Decision, Point
from tests.unit.hooks.test_answers import HOUR, LIMITS, NOW, answer_of, decide, hook_of


@given(st.integers(1, 5), st.lists(st.sampled_from("abcde"), max_size=12))
def test_repeated_approvals_of_a_principal_count_once(needed: int, people: list[str]) -> None:
    hook = hook_of(rule=Rule(Point.PRE_CREATE, approvals=needed))
    for name in people:
        different = set(hook.approved_by) | {f"name:{name}"}
        match decide(hook, by=name):
            case Approval(missing=missing):
                assert f"name:{name}" not in hook.approved_by
                assert missing == needed - len(different) > 0
                hook = replace(hook, approved_by=(*hook.approved_by, f"name:{name}"))
            case FinalAnswer():
                assert len(different) == needed
                return
            case other:
                assert isinstance(other, RepeatedAnswer) and f"name:{name}" in hook.approved_by
    assert len(set(people)) < needed


@given(
    st.lists(st.tuples(st.timedeltas(), st.timedeltas(timedelta(0), 30 * HOUR)), max_size=20),
    st.none() | st.timedeltas(HOUR, timedelta(days=90)),
)
def test_repeated_progress_extends_the_deadline_up_to_the_limit(
    extensions: list[tuple[timedelta, timedelta]], at_most: timedelta | None
) -> None:
    hook, now = hook_of(rule=Rule(Point.PRE_CREATE, at_most=at_most)), NOW
    maximum = max(hook.clock.opened_at + (at_most or LIMITS.max_timeout), hook.clock.deadline)
    for extend, passed in extensions:
        now += passed
        try:
            answer = judge(
                hook, answer_of(Decision.PROGRESS, "eve", extend=extend), None, now, LIMITS
            )
        except Invalid:
            assert hook.clock.deadline >= maximum
            continue
        if isinstance(answer, AnswerRefused):
            assert now >= hook.clock.deadline
            return
        assert isinstance(answer, DeadlineExtension)
        assert hook.clock.deadline <= answer.clock.deadline <= maximum
        hook = replace(hook, clock=answer.clock)
