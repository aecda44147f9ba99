"""May this answer decide this hook, and does it? As tables: who, what, when, and how many."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import AnswerRefused, Conflict, Forbidden, Invalid
from engine.hooks.answer_data import DataCheck, check_data
from engine.hooks.answers import (
    PATCHABLE,
    Accepted,
    Asked,
    Counted,
    Extended,
    Given,
    Judgement,
    Same,
    decisions,
    judge,
)
from engine.hooks.automation import Automation
from engine.hooks.deadline import HookClock
from engine.hooks.rule import Escalation, Limits, Rule
from engine.hooks.rule_reader import POINTS
from engine.principal import Principal, named
from engine.words import GOES_ON, STACK_POINTS, Decision, HookState, Json, Mode, OnTimeout, Point

LIMITS = Limits(timedelta(hours=24), timedelta(days=90))
NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def asked(state: HookState = HookState.WAITING, rule: Rule | None = None, **changed: Json) -> Asked:
    """Opened an hour ago, due in one; ann asked for the change, and bob decided, if anybody."""
    decided = state is not HookState.WAITING
    return replace(
        Asked(
            state=state,
            resource_name="db",
            point=Point.PRE_CREATE,
            digest="d1",
            clock=HookClock(NOW - HOUR, 2 * HOUR, NOW + HOUR),
            decision=None,
            decided_by="bob" if decided else None,
            decided_at=NOW if decided else None,
            rule=rule or Rule(Point.PRE_CREATE),
            requested_by=named("ann"),
        ),
        **changed,
    )


#: A subscription of somebody who may answer hooks.
AUTOMATION = Automation(UUID(int=7), "s", owner=named("sue"), approves=True)


def answer_of(decision: Decision, by: str = "eve", **more: Json) -> Given:
    """By a person; by_token: by `AUTOMATION` instead."""
    roles, by_token = tuple(more.pop("roles", ())), more.pop("by_token", False)
    automation = AUTOMATION if by_token else None
    who = AUTOMATION.principal if by_token else named(by, roles)
    return Given(decision, who, automation, **more)


def said(
    hook: Asked, decision: Decision = Decision.CONTINUE, by: str = "eve", **more: Json
) -> Judgement | AnswerRefused:
    return judged(hook, answer_of(decision, by, **more))


def judged(hook: Asked, given: Given) -> Judgement | AnswerRefused:
    """With the data checked before, as the engine does."""
    check = check_data(hook.rule.ask, given.data) if hook.rule.ask else None
    return judge(hook, replace(given, check=check), NOW, LIMITS)


def refused(hook: Asked, decision: Decision = Decision.CONTINUE, **more: Json) -> tuple[str, str]:
    """The place and the code of what is wrong with the answer."""
    with pytest.raises(Invalid) as caught:
        said(hook, decision, **more)
    (finding,) = caught.value.findings
    assert finding.reason and finding.remedy
    return finding.place, finding.code


BATCH = asked(point=Point.PRE_BATCH, seen={"members": ["c", "b"], "may_choose": ["c", "b", "a"]})
SCALE_IN = asked(
    point=Point.PRE_SCALE_IN, seen={"victims": ["a", "b"], "may_choose": ["a", "b", "c"]}
)


@pytest.mark.parametrize(
    ("hook", "data"),
    [
        (BATCH, None), (BATCH, {"ticket": 1}), (BATCH, {"members": ["a"]}),
        (BATCH, {"members": ["a", "c"]}), (SCALE_IN, {"victims": ["c", "a"]}),
        (asked(), {"members": 1}),
        (replace(BATCH, seen={"members": [], "may_choose": []}), {"members": []}),
    ],
)  # fmt: skip
def test_an_answer_may_choose_others(hook: Asked, data: Json) -> None:
    assert said(hook, data=data) == Accepted(Decision.CONTINUE)


@pytest.mark.parametrize(
    ("hook", "data"),
    [
        (BATCH, {"members": ["d"]}), (BATCH, {"members": ["a", "b", "c"]}),
        (BATCH, {"members": []}), (BATCH, {"members": ["a", "a"]}), (BATCH, {"members": "ab"}),
        (BATCH, {"members": [1]}), (SCALE_IN, {"victims": ["c"]}),
        (SCALE_IN, {"victims": ["a", "b", "c"]}), (SCALE_IN, {"victims": ["a", "d"]}),
    ],
)  # fmt: skip
def test_an_answer_chooses_among_those_who_can_be_chosen(hook: Asked, data: Json) -> None:
    (key,) = data
    assert refused(hook, data=data) == (f"data.{key}", "AnswerInvalid")
    assert said(hook, Decision.REJECT, data=data) == Accepted(Decision.REJECT)


def may(hook: Asked, by: str, roles: Sequence[str] = (), *, by_token: bool = False) -> bool:
    try:
        said(hook, by=by, roles=roles, by_token=by_token)
    except Forbidden as error:
        assert error.code == "MayNotAnswer" and error.finding.remedy
        return False
    return True


PATCHED = {"size": 2}
OPEN = Rule(Point.PRE_CREATE, patch=("*",))
CODES = {
    HookState.ANSWERED: "HookAlreadyAnswered",
    HookState.EXPIRED: "HookExpired",
    HookState.SUPERSEDED: "HookSuperseded",
}


@pytest.mark.parametrize("state", HookState)
@pytest.mark.parametrize("decision", Decision)
@pytest.mark.parametrize("before", [Decision.CONTINUE, Decision.REJECT, Decision.PATCH])
def test_each_decision_in_each_state(
    decision: Decision, state: HookState, before: Decision
) -> None:
    decided = None if state in (HookState.WAITING, HookState.SUPERSEDED) else before.value
    hook = asked(state, OPEN, decision=decided, properties=PATCHED)
    properties = PATCHED if decision is Decision.PATCH else None
    answer = said(hook, decision, properties=properties, extend=2 * HOUR)
    match state:
        case HookState.WAITING if decision is Decision.PROGRESS:
            assert answer == Extended(replace(hook.clock, deadline=NOW + 2 * HOUR, notified_at=NOW))
        case HookState.WAITING:
            assert answer == Accepted(decision)
        case HookState.ANSWERED if decision is before:
            assert isinstance(answer, Same)
        case _:
            assert isinstance(answer, AnswerRefused)
            assert answer.code == CODES[state]
            assert answer.decided.decision == decided
            assert answer.decided.by == "bob" and answer.decided.at == NOW


@pytest.mark.parametrize(
    ("hook", "decision", "digest", "now", "code"),
    [
        (asked(HookState.ANSWERED, decision="continue"), Decision.REJECT, "", NOW,
         "HookAlreadyAnswered"),
        (asked(HookState.EXPIRED, decision="stop"), Decision.CONTINUE, "", NOW, "StackStopped"),
        (asked(HookState.EXPIRED, decision="continue"), Decision.REJECT, "", NOW, "HookExpired"),
        (asked(HookState.SUPERSEDED), Decision.CONTINUE, "", NOW, "HookSuperseded"),
        (asked(), Decision.CONTINUE, "other", NOW, "DigestChanged"),
        (asked(), Decision.CONTINUE, "", NOW + HOUR, "StackStopped"),
    ],
)  # fmt: skip
def test_an_answer_that_comes_too_late_or_for_something_else_is_refused(
    hook: Asked, decision: Decision, digest: str, now: datetime, code: str
) -> None:
    answer = judge(hook, answer_of(decision, "eve", digest=digest), now, LIMITS)
    assert isinstance(answer, AnswerRefused)
    assert answer.code == code and answer.finding.remedy
    assert "pre-create of db" in answer.finding.reason
    assert answer.decided.by == hook.decided_by


@pytest.mark.parametrize("decision", Decision)
@pytest.mark.parametrize("late", [timedelta(0), timedelta(microseconds=1), timedelta(days=9)])
def test_no_answer_counts_from_the_deadline_on(decision: Decision, late: timedelta) -> None:
    properties = PATCHED if decision is Decision.PATCH else None
    given = answer_of(decision, "eve", properties=properties, extend=HOUR)
    answer = judge(asked(rule=OPEN), given, NOW + HOUR + late, LIMITS)
    assert isinstance(answer, AnswerRefused)


@pytest.mark.parametrize(
    ("on_timeout", "code", "told"),
    [
        (OnTimeout.STOP, "StackStopped", "update the stack"),
        (OnTimeout.CONTINUE, "HookExpired", "continue"),
        (OnTimeout.REJECT, "HookExpired", "reject"),
    ],
)
def test_who_is_late_is_told_what_its_rule_decides(
    on_timeout: OnTimeout, code: str, told: str
) -> None:
    rule = Rule(Point.PRE_CREATE, on_timeout=on_timeout)
    late = judge(asked(rule=rule), answer_of(Decision.CONTINUE), NOW + HOUR, LIMITS)
    swept = said(asked(HookState.EXPIRED, rule, decision=on_timeout.value))
    for answer in (late, swept):
        assert isinstance(answer, AnswerRefused)
        assert answer.code == code and told in answer.finding.remedy


@pytest.mark.parametrize("digest", ["", "d1"])
def test_an_answer_to_what_was_seen_counts_and_so_does_one_that_does_not_say(digest: str) -> None:
    assert said(asked(), digest=digest) == Accepted(Decision.CONTINUE)


def test_the_digest_is_of_no_matter_where_the_same_was_said_already() -> None:
    hook = asked(HookState.ANSWERED, decision="continue")
    assert isinstance(said(hook, digest="other"), Same)


def test_a_patch_to_something_else_is_another_answer() -> None:
    hook = asked(HookState.ANSWERED, OPEN, decision="patch", properties=PATCHED)
    assert isinstance(said(hook, Decision.PATCH, properties={"size": 2}), Same)
    other = said(hook, Decision.PATCH, properties={"size": 3})
    assert isinstance(other, AnswerRefused) and other.code == "HookAlreadyAnswered"


def approved(rule: Rule, people: Sequence[str], decision: Decision = Decision.CONTINUE) -> object:
    """What is said to the last of them, when they answer one after the other."""
    hook, answer = asked(rule=rule), None
    for name in people:
        answer = said(hook, decision, by=name)
        if isinstance(answer, Counted):
            hook = replace(hook, approved_by=(*hook.approved_by, f"name:{name}"))
    return answer


@pytest.mark.parametrize("decision", sorted(GOES_ON - {Decision.PATCH}))
@pytest.mark.parametrize("needed", [1, 2, 3, 7])
def test_as_many_different_people_approve_as_the_rule_says(needed: int, decision: Decision) -> None:
    rule = Rule(Point.PRE_CREATE, approvals=needed)
    people = [f"p{number}" for number in range(needed)]
    for so_far in range(1, needed):
        assert approved(rule, people[:so_far], decision) == Counted(needed - so_far)
    assert approved(rule, people, decision) == Accepted(decision)


@given(st.integers(1, 5), st.lists(st.sampled_from("abcde"), max_size=12))
def test_one_person_counts_once_however_often_they_say_it(needed: int, people: list[str]) -> None:
    hook = asked(rule=Rule(Point.PRE_CREATE, approvals=needed))
    for name in people:
        different = set(hook.approved_by) | {f"name:{name}"}
        match said(hook, by=name):
            case Counted(missing=missing):
                assert f"name:{name}" not in hook.approved_by
                assert missing == needed - len(different) > 0
                hook = replace(hook, approved_by=(*hook.approved_by, f"name:{name}"))
            case Accepted():
                assert len(different) == needed
                return
            case other:
                assert isinstance(other, Same) and f"name:{name}" in hook.approved_by
    assert len(set(people)) < needed


def test_the_same_person_twice_is_one_of_two() -> None:
    assert isinstance(approved(Rule(Point.PRE_CREATE, approvals=2), ["bob", "bob"]), Same)


def test_a_token_is_one_of_two_however_often_it_is_shown() -> None:
    hook = asked(rule=Rule(Point.PRE_CREATE, approvals=2), approved_by=("name:sue",))
    assert isinstance(said(hook, by_token=True), Same)
    assert isinstance(said(hook, by="sue"), Same)


@pytest.mark.parametrize("approved_by", [(), ("bob",), ("bob", "cyd"), ("eve",)])
def test_one_rejection_decides_at_once(approved_by: tuple[str, ...]) -> None:
    hook = asked(rule=Rule(Point.PRE_CREATE, approvals=4), approved_by=approved_by)
    assert said(hook, Decision.REJECT) == Accepted(Decision.REJECT)


@pytest.mark.parametrize("answer_by", [(), ("user:eve",), ("role:dba",), ("token",),
                                       ("user:bob", "role:dba", "token")])  # fmt: skip
@pytest.mark.parametrize(
    ("by", "roles", "by_token"),
    [
        ("eve", (), False),
        ("bob", ("member",), False),
        ("cyd", ("member", "dba"), False),
        ("token", (), True),
        ("eve", ("dba",), True),
    ],
)
def test_who_may_answer_is_who_the_rule_names(
    answer_by: tuple[str, ...], by: str, roles: tuple[str, ...], by_token: bool
) -> None:
    named = {f"user:{by}", *(f"role:{role}" for role in roles)}
    mine = {"token"} if by_token else named
    hook = asked(rule=Rule(Point.PRE_CREATE, answer_by=answer_by))
    assert may(hook, by, roles, by_token=by_token) is (not answer_by or bool(mine & {*answer_by}))


def test_who_may_not_answer_is_told_who_may() -> None:
    hook = asked(rule=Rule(Point.PRE_CREATE, answer_by=("user:bob", "role:dba")))
    with pytest.raises(Forbidden, match="user:bob, role:dba"):
        said(hook, Decision.REJECT)


@pytest.mark.parametrize(
    ("answer_by", "assigned", "named"),
    [
        (("user:bob", "role:dba"), None, True),
        (("role:dba",), "user:bob", True),
        (("role:dba",), None, False),
        (("user:eve",), None, False),
    ],
)
def test_a_principal_with_the_display_name_of_another_learns_how_rules_name_it(
    answer_by: tuple[str, ...], assigned: str | None, named: bool
) -> None:
    hook = asked(rule=Rule(Point.PRE_CREATE, answer_by=answer_by), assigned=assigned)
    by_token = replace(answer_of(Decision.REJECT), by=Principal("token:1", "bob", ("1",)))
    with pytest.raises(Forbidden) as refused:
        judged(hook, by_token)
    told = '"user:bob" is another principal: rules name you user:1.' in refused.value.finding.remedy
    assert told is named


@pytest.mark.parametrize("state", HookState)
@pytest.mark.parametrize("decision", Decision)
def test_whoever_may_not_answer_learns_nothing_else_in_any_state(
    state: HookState, decision: Decision
) -> None:
    hook = asked(state, Rule(Point.PRE_CREATE, answer_by=("user:bob",)), decision="continue")
    with pytest.raises(Forbidden):
        said(hook, decision, properties={"odd": 1}, digest="other")


@pytest.mark.parametrize(
    ("answer_by", "by", "by_token", "allowed"),
    [
        ((), "ann", False, False),
        ((), "eve", False, True),
        ((), "token", True, True),
        (("user:ann", "role:dba"), "ann", False, False),
        (("role:dba",), "eve", False, True),
        (("role:dba",), "token", True, False),
        (("role:dba", "token"), "token", True, True),
    ],
)
def test_who_asked_for_the_change_may_be_kept_from_answering(
    answer_by: tuple[str, ...], by: str, by_token: bool, allowed: bool
) -> None:
    rule = Rule(Point.PRE_CREATE, answer_by=answer_by, exclude="requester")
    assert may(asked(rule=rule), by, ("dba",), by_token=by_token) is allowed


@pytest.mark.parametrize(
    ("assigned", "by", "roles", "allowed"),
    [
        ("user:eve", "eve", (), True),
        ("role:night", "eve", ("night",), True),
        ("role:night", "eve", ("day",), False),
        ("user:night", "eve", ("night",), False),
        ("user:eve", "bob", (), True),
        (None, "eve", (), False),
    ],
)
def test_whom_it_was_handed_to_may_answer_besides_whom_the_rule_names(
    assigned: str | None, by: str, roles: tuple[str, ...], allowed: bool
) -> None:
    hook = asked(rule=Rule(Point.PRE_CREATE, answer_by=("user:bob",)), assigned=assigned)
    assert may(hook, by, roles) is allowed


@pytest.mark.parametrize("assigned", ["user:ann", "role:dba"])
def test_handing_it_over_does_not_make_its_requester_somebody_else(assigned: str) -> None:
    rule = Rule(Point.PRE_CREATE, answer_by=("user:bob",), exclude="requester")
    assert not may(asked(rule=rule, assigned=assigned), "ann", ("dba",))
    assert may(asked(rule=rule, assigned="role:dba"), "eve", ("dba",))


def test_a_token_is_nobody_that_it_was_handed_to() -> None:
    hook = asked(rule=Rule(Point.PRE_CREATE, answer_by=("user:bob",)), assigned="user:eve")
    assert not may(hook, "eve", by_token=True)


@pytest.mark.parametrize("escalated", [False, True])
@pytest.mark.parametrize(
    ("by", "roles", "by_token", "then"),
    [
        ("bob", (), False, (True, True)),
        ("eve", ("admin",), False, (False, True)),
        ("token", (), True, (False, True)),
        ("cyd", ("member",), False, (False, False)),
    ],
)
def test_others_may_answer_once_it_has_been_escalated_to_them(
    by: str, roles: tuple[str, ...], by_token: bool, escalated: bool, then: tuple[bool, bool]
) -> None:
    escalation = Escalation(HOUR, ("role:admin", "token"))
    rule = Rule(Point.PRE_CREATE, answer_by=("user:bob",), escalate=escalation)
    assert (
        may(asked(rule=rule, escalated=escalated), by, roles, by_token=by_token)
        is (then[escalated])
    )


def test_an_escalation_narrows_nothing_and_lets_no_requester_in() -> None:
    escalation = Escalation(HOUR, ("role:admin",))
    anybody = Rule(Point.PRE_CREATE, escalate=escalation)
    assert may(asked(rule=anybody, escalated=True), "cyd")
    others = replace(anybody, exclude="requester", answer_by=("user:bob",))
    assert not may(asked(rule=others, escalated=True), "ann", ("admin",))


SCHEMA = '{"type":"object","required":["ticket"],"properties":{"ticket":{"type":"integer"}}}'


@pytest.mark.parametrize("decision", Decision)
@pytest.mark.parametrize(
    ("data", "places"),
    [
        ({"ticket": 5}, []),
        (None, ["data"]),
        ({}, ["data"]),
        ({"ticket": "five"}, ["data.ticket"]),
        ([], ["data"]),
    ],
)
def test_who_lets_it_go_on_brings_the_data_that_is_asked_for(
    decision: Decision, data: Json, places: list[str]
) -> None:
    hook = asked(rule=replace(OPEN, ask=SCHEMA))
    properties = PATCHED if decision is Decision.PATCH else None
    given = answer_of(decision, "eve", data=data, properties=properties)
    if places and decision in GOES_ON:
        with pytest.raises(Invalid) as caught:
            judged(hook, given)
        assert [one.place for one in caught.value.findings] == places
        assert {one.code for one in caught.value.findings} == {"DataRefused"}
    else:
        assert isinstance(judged(hook, given), Accepted | Extended)


def test_every_approval_brings_its_data_and_each_fault_is_told() -> None:
    schema = '{"properties":{"a":{"type":"integer"},"b":{"items":{"type":"string"}}}}'
    hook = asked(rule=Rule(Point.PRE_CREATE, approvals=2, ask=schema))
    with pytest.raises(Invalid) as caught:
        said(hook, data={"a": "x", "b": ["y", 1]})
    assert {one.place for one in caught.value.findings} == {"data.a", "data.b.1"}
    assert said(hook, data={"a": 1}) == Counted(1)


@pytest.mark.parametrize("check", [None, DataCheck('{"type":"object"}')])
def test_data_counts_only_when_it_was_checked_against_what_the_hook_asks_for_now(
    check: DataCheck | None,
) -> None:
    given = answer_of(Decision.CONTINUE, "eve", data={"ticket": 5}, check=check)
    with pytest.raises(Conflict) as caught:
        judge(asked(rule=replace(OPEN, ask=SCHEMA)), given, NOW, LIMITS)
    assert caught.value.code == "HookChanged"


def test_data_that_nobody_asked_for_does_no_harm() -> None:
    assert said(asked(), data={"any": ["thing"]}) == Accepted(Decision.CONTINUE)


@pytest.mark.parametrize("point", [*POINTS, *STACK_POINTS, "confirm-resize"])
@pytest.mark.parametrize(
    ("rule", "allowed"),
    [
        (Rule("", patch=("*",)), True),
        (Rule("", patch=("size",)), True),
        (Rule(""), False),
        (Rule("", patch=("*",), approvals=2), False),
    ],
)
def test_properties_may_be_changed_before_something_is_done_with_them(
    rule: Rule, allowed: bool, point: str
) -> None:
    hook = asked(rule=replace(rule, point=point), point=point)
    may_patch = allowed and point in PATCHABLE
    assert (Decision.PATCH in decisions(hook.rule, point)) is may_patch
    if may_patch:
        assert said(hook, Decision.PATCH, properties=PATCHED) == Accepted(Decision.PATCH)
    else:
        place = refused(hook, Decision.PATCH, properties=PATCHED)
        assert place == ("decision", "AnswerInvalid")


@pytest.mark.parametrize("mode", [Mode.NOTIFY, Mode.STOP])
def test_where_nobody_waits_nothing_may_be_answered(mode: Mode) -> None:
    assert decisions(Rule(Point.PRE_CREATE, mode, patch=("*",)), Point.PRE_CREATE) == []
    assert refused(asked(rule=Rule(Point.PRE_CREATE, mode)))[0] == "decision"


@pytest.mark.parametrize(
    ("patch", "properties", "place"),
    [
        (("size",), {"size": 2}, None),
        (("size", "place"), {"place": None, "size": 2}, None),
        (("*",), {"anything": 1}, None),
        (("size",), {"size": 2, "place": "x"}, "properties.place"),
        (("size",), {"Size": 2}, "properties.Size"),
        (("*",), {}, "properties"),
        (("*",), None, "properties"),
    ],
)
def test_a_patch_changes_what_the_rule_lists(
    patch: tuple[str, ...], properties: Json, place: str | None
) -> None:
    hook = asked(rule=Rule(Point.PRE_CREATE, patch=patch))
    if place is None:
        answer = said(hook, Decision.PATCH, properties=properties)
        assert answer == Accepted(Decision.PATCH)
    else:
        assert refused(hook, Decision.PATCH, properties=properties) == (place, "AnswerInvalid")


@pytest.mark.parametrize("decision", sorted(set(Decision) - {Decision.PATCH}))
@pytest.mark.parametrize("properties", [{}, PATCHED])
def test_properties_come_with_a_patch_alone(decision: Decision, properties: Json) -> None:
    assert refused(asked(rule=OPEN), decision, properties=properties)[0] == "properties"


def progress(
    extend: timedelta | None, rule: Rule, now: datetime = NOW, **changed: Json
) -> Judgement | AnswerRefused:
    given = answer_of(Decision.PROGRESS, "eve", extend=extend)
    return judge(asked(rule=rule, **changed), given, now, LIMITS)


@pytest.mark.parametrize(
    ("extend", "timeout", "at_most", "until"),
    [
        (3 * HOUR, None, None, 3 * HOUR),
        (None, None, None, 24 * HOUR),
        (None, 5 * HOUR, None, 5 * HOUR),
        (timedelta(minutes=5), None, None, HOUR),
        (timedelta(0), 5 * HOUR, None, 5 * HOUR),
        (timedelta(days=-5), None, None, HOUR),
        (9 * HOUR, None, 4 * HOUR, 3 * HOUR),
        (timedelta(days=400), None, None, timedelta(days=90) - HOUR),
        (timedelta(days=999_999_999), None, 4 * HOUR, 3 * HOUR),
        (timedelta.max, None, None, timedelta(days=90) - HOUR),
    ],
)
def test_progress_lets_it_wait_longer_and_never_shorter(
    extend: timedelta | None, timeout: timedelta | None, at_most: timedelta | None, until: timedelta
) -> None:
    rule = Rule(Point.PRE_CREATE, timeout=timeout, at_most=at_most)
    answer = progress(extend, rule)
    assert isinstance(answer, Extended) and answer.clock.deadline == NOW + until


@pytest.mark.parametrize("at_most", [2 * HOUR, HOUR])
def test_progress_is_refused_where_it_waits_as_long_as_it_may(at_most: timedelta) -> None:
    with pytest.raises(Invalid, match="not longer") as caught:
        progress(HOUR, Rule(Point.PRE_CREATE, at_most=at_most))
    assert caught.value.findings[0].place == "extend"


def test_progress_is_no_approval_and_needs_no_data() -> None:
    rule = Rule(Point.PRE_CREATE, approvals=2, ask=SCHEMA)
    assert isinstance(progress(3 * HOUR, rule, approved_by=("eve",)), Extended)


@given(
    st.lists(st.tuples(st.timedeltas(), st.timedeltas(timedelta(0), 30 * HOUR)), max_size=20),
    st.none() | st.timedeltas(HOUR, timedelta(days=90)),
)
def test_however_often_somebody_is_at_it_the_deadline_moves_on_and_not_beyond_the_most(
    said_so: list[tuple[timedelta, timedelta]], at_most: timedelta | None
) -> None:
    hook, now = asked(rule=Rule(Point.PRE_CREATE, at_most=at_most)), NOW
    most = max(hook.clock.opened_at + (at_most or LIMITS.max_timeout), hook.clock.deadline)
    for extend, passed in said_so:
        now += passed
        try:
            answer = judge(hook, answer_of(Decision.PROGRESS, "eve", extend=extend), now, LIMITS)
        except Invalid:
            assert hook.clock.deadline >= most
            continue
        if isinstance(answer, AnswerRefused):
            assert now >= hook.clock.deadline
            return
        assert isinstance(answer, Extended)
        assert hook.clock.deadline <= answer.clock.deadline <= most
        hook = replace(hook, clock=answer.clock)
