"""Whether an answer is accepted, and whether it decides the hook, as tables."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from engine.errors import AnswerRefused, Conflict, Forbidden, Invalid
from engine.hooks.answer_data import DataCheck, check_data
from engine.hooks.answer_rights import Automation, StoredHook
from engine.hooks.answers import (
    ABOUT_DRIFT,
    PATCHABLE,
    Answer,
    AnswerEffect,
    Approval,
    DeadlineExtension,
    FinalAnswer,
    RepeatedAnswer,
    allowed_decisions,
    judge,
)
from engine.hooks.deadline import HookClock
from engine.hooks.rule import Escalation, HookLimits, Rule
from engine.hooks.rule_reader import POINTS
from engine.principal import Principal, principal_of_name
from engine.words import (
    RESUMING_DECISIONS,
    STACK_POINTS,
    AnswerChannel,
    Decision,
    HookState,
    Json,
    Mode,
    OnTimeout,
    Point,
)

LIMITS = HookLimits(timedelta(hours=24), timedelta(days=90))
NOW = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)


def hook_of(
    state: HookState = HookState.WAITING, rule: Rule | None = None, **changed: Json
) -> StoredHook:
    """A hook that opened an hour ago and expires in one; ann requested the change, and
    bob decided.
    """
    decided = state is not HookState.WAITING
    return replace(
        StoredHook(
            state=state,
            resource_name="db",
            point=Point.PRE_CREATE,
            digest="d1",
            clock=HookClock(NOW - HOUR, 2 * HOUR, NOW + HOUR),
            decision=None,
            decided_by="bob" if decided else None,
            decided_at=NOW if decided else None,
            rule=rule or Rule(Point.PRE_CREATE),
            requested_by=principal_of_name("ann"),
        ),
        **changed,
    )


#: A subscription whose owner may answer hooks.
AUTOMATION = Automation(UUID(int=7), "s", owner=principal_of_name("sue"), approves=True)


def answer_of(decision: Decision, by: str = "eve", **more: Json) -> Answer:
    """By a user; by_token: by `AUTOMATION` instead."""
    roles, by_token = tuple(more.pop("roles", ())), more.pop("by_token", False)
    automation = AUTOMATION if by_token else None
    who = AUTOMATION.principal if by_token else principal_of_name(by, roles)
    return Answer(decision, who, AnswerChannel.API, automation=automation, **more)


def decide(
    hook: StoredHook, decision: Decision = Decision.CONTINUE, by: str = "eve", **more: Json
) -> AnswerEffect | AnswerRefused:
    return judge_answer(hook, answer_of(decision, by, **more))


def judge_answer(hook: StoredHook, answer: Answer) -> AnswerEffect | AnswerRefused:
    """With data that was validated before, as in the engine."""
    check = check_data(hook.rule.ask, answer.data) if hook.rule.ask else None
    return judge(hook, answer, check, NOW, LIMITS)


def error_of(
    hook: StoredHook, decision: Decision = Decision.CONTINUE, **more: Json
) -> tuple[str, str]:
    """Place and code of the error."""
    with pytest.raises(Invalid) as caught:
        decide(hook, decision, **more)
    (finding,) = caught.value.findings
    assert finding.reason and finding.remedy
    return finding.place, finding.code


BATCH = hook_of(point=Point.PRE_BATCH, seen={"members": ["c", "b"], "may_choose": ["c", "b", "a"]})
SCALE_IN = hook_of(
    point=Point.PRE_SCALE_IN, seen={"victims": ["a", "b"], "may_choose": ["a", "b", "c"]}
)


@pytest.mark.parametrize(
    ("hook", "data"),
    [
        (BATCH, None), (BATCH, {"ticket": 1}), (BATCH, {"members": ["a"]}),
        (BATCH, {"members": ["a", "c"]}), (SCALE_IN, {"victims": ["c", "a"]}),
        (hook_of(), {"members": 1}),
        (replace(BATCH, seen={"members": [], "may_choose": []}), {"members": []}),
    ],
)  # fmt: skip
def test_an_answer_can_choose_other_members(hook: StoredHook, data: Json) -> None:
    assert decide(hook, data=data) == FinalAnswer(Decision.CONTINUE)


@pytest.mark.parametrize(
    ("hook", "data"),
    [
        (BATCH, {"members": ["d"]}), (BATCH, {"members": ["a", "b", "c"]}),
        (BATCH, {"members": []}), (BATCH, {"members": ["a", "a"]}), (BATCH, {"members": "ab"}),
        (BATCH, {"members": [1]}), (SCALE_IN, {"victims": ["c"]}),
        (SCALE_IN, {"victims": ["a", "b", "c"]}), (SCALE_IN, {"victims": ["a", "d"]}),
    ],
)  # fmt: skip
def test_an_answer_can_choose_listed_members_only(hook: StoredHook, data: Json) -> None:
    (key,) = data
    assert error_of(hook, data=data) == (f"data.{key}", "AnswerInvalid")
    assert decide(hook, Decision.REJECT, data=data) == FinalAnswer(Decision.REJECT)


def may_answer(
    hook: StoredHook, by: str, roles: Sequence[str] = (), *, by_token: bool = False
) -> bool:
    try:
        decide(hook, by=by, roles=roles, by_token=by_token)
    except Forbidden as error:
        assert error.code == "MayNotAnswer" and error.finding.remedy
        return False
    return True


#: The decisions of hooks of changes.
DECISIONS = [one for one in Decision if one not in ABOUT_DRIFT]
PATCHED = {"size": 2}
OPEN = Rule(Point.PRE_CREATE, patch=("*",))
CODES = {
    HookState.ANSWERED: "HookAlreadyAnswered",
    HookState.EXPIRED: "HookExpired",
    HookState.SUPERSEDED: "HookSuperseded",
}


@pytest.mark.parametrize("state", HookState)
@pytest.mark.parametrize("decision", DECISIONS)
@pytest.mark.parametrize("before", [Decision.CONTINUE, Decision.REJECT, Decision.PATCH])
def test_each_decision_in_each_state(
    decision: Decision, state: HookState, before: Decision
) -> None:
    decided = None if state in (HookState.WAITING, HookState.SUPERSEDED) else before.value
    hook = hook_of(state, OPEN, decision=decided, patched=PATCHED)
    properties = PATCHED if decision is Decision.PATCH else None
    answer = decide(hook, decision, properties=properties, extend=2 * HOUR)
    match state:
        case HookState.WAITING if decision is Decision.PROGRESS:
            assert answer == DeadlineExtension(
                replace(hook.clock, deadline=NOW + 2 * HOUR, notified_at=NOW)
            )
        case HookState.WAITING:
            assert answer == FinalAnswer(decision)
        case HookState.ANSWERED if decision is before:
            assert isinstance(answer, RepeatedAnswer)
        case _:
            assert isinstance(answer, AnswerRefused)
            assert answer.code == CODES[state]
            assert answer.decided.decision == decided
            assert answer.decided.by == "bob" and answer.decided.at == NOW


@pytest.mark.parametrize(
    ("hook", "decision", "digest", "now", "code"),
    [
        (hook_of(HookState.ANSWERED, decision="continue"), Decision.REJECT, "", NOW,
         "HookAlreadyAnswered"),
        (hook_of(HookState.EXPIRED, decision="stop"), Decision.CONTINUE, "", NOW, "StackStopped"),
        (hook_of(HookState.EXPIRED, decision="continue"), Decision.REJECT, "", NOW, "HookExpired"),
        (hook_of(HookState.SUPERSEDED), Decision.CONTINUE, "", NOW, "HookSuperseded"),
        (hook_of(), Decision.CONTINUE, "other", NOW, "DigestChanged"),
        (hook_of(), Decision.CONTINUE, "", NOW + HOUR, "StackStopped"),
    ],
)  # fmt: skip
def test_an_answer_that_is_late_or_for_another_digest_is_refused(
    hook: StoredHook, decision: Decision, digest: str, now: datetime, code: str
) -> None:
    answer = judge(hook, answer_of(decision, "eve", digest=digest), None, now, LIMITS)
    assert isinstance(answer, AnswerRefused)
    assert answer.code == code and answer.finding.remedy
    assert "pre-create of db" in answer.finding.reason
    assert answer.decided.by == hook.decided_by


@pytest.mark.parametrize("decision", Decision)
@pytest.mark.parametrize("late", [timedelta(0), timedelta(microseconds=1), timedelta(days=9)])
def test_an_answer_at_the_deadline_is_refused(decision: Decision, late: timedelta) -> None:
    properties = PATCHED if decision is Decision.PATCH else None
    hook_answer = answer_of(decision, "eve", properties=properties, extend=HOUR)
    answer = judge(hook_of(rule=OPEN), hook_answer, None, NOW + HOUR + late, LIMITS)
    assert isinstance(answer, AnswerRefused)


@pytest.mark.parametrize(
    ("on_timeout", "code", "message"),
    [
        (OnTimeout.STOP, "StackStopped", "its reason says how to continue"),
        (OnTimeout.CONTINUE, "HookExpired", "continue"),
        (OnTimeout.REJECT, "HookExpired", "reject"),
    ],
)
def test_a_late_answer_gets_the_decision_of_the_rule(
    on_timeout: OnTimeout, code: str, message: str
) -> None:
    rule = Rule(Point.PRE_CREATE, on_timeout=on_timeout)
    late = judge(hook_of(rule=rule), answer_of(Decision.CONTINUE), None, NOW + HOUR, LIMITS)
    swept = decide(hook_of(HookState.EXPIRED, rule, decision=on_timeout.value))
    for answer in (late, swept):
        assert isinstance(answer, AnswerRefused)
        assert answer.code == code and message in answer.finding.remedy


@pytest.mark.parametrize("digest", ["", "d1"])
def test_an_answer_with_the_current_digest_or_without_one_counts(digest: str) -> None:
    assert decide(hook_of(), digest=digest) == FinalAnswer(Decision.CONTINUE)


def test_a_repeated_answer_needs_no_current_digest() -> None:
    hook = hook_of(HookState.ANSWERED, decision="continue")
    assert isinstance(decide(hook, digest="other"), RepeatedAnswer)


def test_a_different_patch_is_a_different_answer() -> None:
    hook = hook_of(HookState.ANSWERED, OPEN, decision="patch", patched=PATCHED)
    assert isinstance(decide(hook, Decision.PATCH, properties={"size": 2}), RepeatedAnswer)
    other = decide(hook, Decision.PATCH, properties={"size": 3})
    assert isinstance(other, AnswerRefused) and other.code == "HookAlreadyAnswered"


@pytest.mark.parametrize("decision", [Decision.CONTINUE, Decision.REJECT])
def test_an_answer_with_other_data_is_a_different_answer(decision: Decision) -> None:
    hook = hook_of(HookState.ANSWERED, decision=decision.value, data={"ticket": 1})
    assert isinstance(decide(hook, decision, data={"ticket": 1}), RepeatedAnswer)
    for data in (None, {"ticket": 2}):
        other = decide(hook, decision, data=data)
        assert isinstance(other, AnswerRefused) and other.code == "HookAlreadyAnswered"


@pytest.mark.parametrize(
    ("recorded", "repeated"),
    [
        ({"ok": True}, {"ok": 1}),
        ({"ok": [0]}, {"ok": [False]}),
        ({"a": {"b": 1}}, {"a": {"b": True}}),
    ],
)
def test_data_is_compared_as_json(recorded: Json, repeated: Json) -> None:
    hook = hook_of(HookState.ANSWERED, decision="continue", data=recorded)
    assert isinstance(decide(hook, data=recorded), RepeatedAnswer)
    assert isinstance(decide(hook, data=repeated), AnswerRefused)


def test_a_rejection_with_other_data_is_a_different_answer_also_among_several_approvals() -> None:
    rule = Rule(Point.PRE_CREATE, approvals=2)
    hook = hook_of(HookState.ANSWERED, rule, decision="reject", data={"ticket": 2})
    assert isinstance(decide(hook, Decision.REJECT, data={"ticket": 1}), AnswerRefused)


def test_an_approver_may_repeat_an_approval_after_the_decision_of_another() -> None:
    rule = Rule(Point.PRE_CREATE, approvals=2)
    hook = hook_of(HookState.ANSWERED, rule, decision="continue", data={"ticket": 2})
    assert isinstance(decide(hook, data={"ticket": 1}), RepeatedAnswer)


def approved(
    rule: Rule, principals: Sequence[str], decision: Decision = Decision.CONTINUE
) -> object:
    """The result for the last of several principals who answer in order."""
    hook, answer = hook_of(rule=rule), None
    for name in principals:
        answer = decide(hook, decision, by=name)
        if isinstance(answer, Approval):
            hook = replace(hook, approved_by=(*hook.approved_by, f"name:{name}"))
    return answer


@pytest.mark.parametrize("decision", sorted(RESUMING_DECISIONS - {Decision.PATCH}))
@pytest.mark.parametrize("needed", [1, 2, 3, 7])
def test_the_rules_number_of_different_principals_must_approve(
    needed: int, decision: Decision
) -> None:
    rule = Rule(Point.PRE_CREATE, approvals=needed)
    principals = [f"p{number}" for number in range(needed)]
    for so_far in range(1, needed):
        assert approved(rule, principals[:so_far], decision) == Approval(needed - so_far)
    assert approved(rule, principals, decision) == FinalAnswer(decision)


def test_two_approvals_of_the_same_principal_count_once() -> None:
    assert isinstance(approved(Rule(Point.PRE_CREATE, approvals=2), ["bob", "bob"]), RepeatedAnswer)


def keystone_user(domain: str, user: str = "a" * 32) -> Principal:
    return Principal(f"keystone:{user}@{domain}", "eve", (user,))


def test_a_user_of_keystone_is_one_principal_in_any_domain() -> None:
    """Settings may name a wrong domain, and the ID of the user is unique in all domains."""
    twice = hook_of(
        rule=Rule(Point.PRE_CREATE, approvals=2), approved_by=(keystone_user("d1").key,)
    )
    rule = Rule(Point.PRE_CREATE, exclude="requester", excluded=(keystone_user("d1").key,))
    for domain in ("d1", "default"):
        answer = replace(answer_of(Decision.CONTINUE), by=keystone_user(domain))
        assert isinstance(judge_answer(twice, answer), RepeatedAnswer)
        with pytest.raises(Forbidden):
            judge_answer(hook_of(rule=rule), answer)
    other = replace(answer_of(Decision.CONTINUE), by=keystone_user("d1", "b" * 32))
    for hook in (twice, hook_of(rule=rule)):
        assert judge_answer(hook, other) == FinalAnswer(Decision.CONTINUE)


def test_repeated_approvals_with_a_token_count_once() -> None:
    hook = hook_of(rule=Rule(Point.PRE_CREATE, approvals=2), approved_by=("name:sue",))
    assert isinstance(decide(hook, by_token=True), RepeatedAnswer)
    assert isinstance(decide(hook, by="sue"), RepeatedAnswer)


@pytest.mark.parametrize("approved_by", [(), ("bob",), ("bob", "cyd"), ("eve",)])
def test_one_rejection_decides_at_once(approved_by: tuple[str, ...]) -> None:
    hook = hook_of(rule=Rule(Point.PRE_CREATE, approvals=4), approved_by=approved_by)
    assert decide(hook, Decision.REJECT) == FinalAnswer(Decision.REJECT)


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
def test_principals_that_the_rule_names_may_answer(
    answer_by: tuple[str, ...], by: str, roles: tuple[str, ...], by_token: bool
) -> None:
    named = {f"user:{by}", *(f"role:{role}" for role in roles)}
    mine = {"token"} if by_token else named
    hook = hook_of(rule=Rule(Point.PRE_CREATE, answer_by=answer_by))
    assert may_answer(hook, by, roles, by_token=by_token) is (
        not answer_by or bool(mine & {*answer_by})
    )


def test_a_refusal_names_the_approvers() -> None:
    hook = hook_of(rule=Rule(Point.PRE_CREATE, answer_by=("user:bob", "role:dba")))
    with pytest.raises(Forbidden, match="user:bob, role:dba"):
        decide(hook, Decision.REJECT)


@pytest.mark.parametrize(
    ("answer_by", "assigned", "named"),
    [
        (("user:bob", "role:dba"), None, True),
        (("role:dba",), "user:bob", True),
        (("role:dba",), None, False),
        (("user:eve",), None, False),
    ],
)
def test_a_refusal_of_a_principal_with_anothers_display_name_explains_names_in_rules(
    answer_by: tuple[str, ...], assigned: str | None, named: bool
) -> None:
    hook = hook_of(rule=Rule(Point.PRE_CREATE, answer_by=answer_by), assigned=assigned)
    by_token = replace(answer_of(Decision.REJECT), by=Principal("token:1", "bob", ("1",)))
    with pytest.raises(Forbidden) as error_of:
        judge_answer(hook, by_token)
    hint = (
        '"user:bob" is another principal: rules name you user:1.' in error_of.value.finding.remedy
    )
    assert hint is named


@pytest.mark.parametrize("state", HookState)
@pytest.mark.parametrize("decision", Decision)
def test_a_refusal_reveals_nothing_else_in_any_state(state: HookState, decision: Decision) -> None:
    hook = hook_of(state, Rule(Point.PRE_CREATE, answer_by=("user:bob",)), decision="continue")
    with pytest.raises(Forbidden):
        decide(hook, decision, properties={"odd": 1}, digest="other")


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
def test_the_requester_can_be_excluded(
    answer_by: tuple[str, ...], by: str, by_token: bool, allowed: bool
) -> None:
    rule = Rule(Point.PRE_CREATE, answer_by=answer_by, exclude="requester")
    assert may_answer(hook_of(rule=rule), by, ("dba",), by_token=by_token) is allowed


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
def test_an_assignee_may_answer_in_addition_to_the_rules_approvers(
    assigned: str | None, by: str, roles: tuple[str, ...], allowed: bool
) -> None:
    hook = hook_of(rule=Rule(Point.PRE_CREATE, answer_by=("user:bob",)), assigned=assigned)
    assert may_answer(hook, by, roles) is allowed


@pytest.mark.parametrize("assigned", ["user:ann", "role:dba"])
def test_a_hand_over_to_an_excluded_requester_has_no_effect(assigned: str) -> None:
    rule = Rule(Point.PRE_CREATE, answer_by=("user:bob",), exclude="requester")
    assert not may_answer(hook_of(rule=rule, assigned=assigned), "ann", ("dba",))
    assert may_answer(hook_of(rule=rule, assigned="role:dba"), "eve", ("dba",))


def test_a_token_does_not_act_as_its_assignee() -> None:
    hook = hook_of(rule=Rule(Point.PRE_CREATE, answer_by=("user:bob",)), assigned="user:eve")
    assert not may_answer(hook, "eve", by_token=True)


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
def test_an_escalation_adds_approvers(
    by: str, roles: tuple[str, ...], by_token: bool, escalated: bool, then: tuple[bool, bool]
) -> None:
    escalation = Escalation(HOUR, ("role:admin", "token"))
    rule = Rule(Point.PRE_CREATE, answer_by=("user:bob",), escalate=escalation)
    assert (
        may_answer(hook_of(rule=rule, escalated=escalated), by, roles, by_token=by_token)
        is (then[escalated])
    )


def test_an_escalation_removes_no_approver_and_admits_no_excluded_requester() -> None:
    escalation = Escalation(HOUR, ("role:admin",))
    escalating = Rule(Point.PRE_CREATE, escalate=escalation)
    assert may_answer(hook_of(rule=escalating, escalated=True), "cyd")
    others = replace(escalating, exclude="requester", answer_by=("user:bob",))
    assert not may_answer(hook_of(rule=others, escalated=True), "ann", ("admin",))


SCHEMA = '{"type":"object","required":["ticket"],"properties":{"ticket":{"type":"integer"}}}'


@pytest.mark.parametrize("decision", DECISIONS)
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
def test_an_approving_answer_needs_the_required_data(
    decision: Decision, data: Json, places: list[str]
) -> None:
    hook = hook_of(rule=replace(OPEN, ask=SCHEMA))
    properties = PATCHED if decision is Decision.PATCH else None
    answer = answer_of(decision, "eve", data=data, properties=properties)
    if places and decision in RESUMING_DECISIONS:
        with pytest.raises(Invalid) as caught:
            judge_answer(hook, answer)
        assert [one.place for one in caught.value.findings] == places
        assert {one.code for one in caught.value.findings} == {"DataRefused"}
    else:
        assert isinstance(judge_answer(hook, answer), FinalAnswer | DeadlineExtension)


def test_every_approval_needs_data_and_all_errors_are_reported() -> None:
    schema = '{"properties":{"a":{"type":"integer"},"b":{"items":{"type":"string"}}}}'
    hook = hook_of(rule=Rule(Point.PRE_CREATE, approvals=2, ask=schema))
    with pytest.raises(Invalid) as caught:
        decide(hook, data={"a": "x", "b": ["y", 1]})
    assert {one.place for one in caught.value.findings} == {"data.a", "data.b.1"}
    assert decide(hook, data={"a": 1}) == Approval(1)


@pytest.mark.parametrize("check", [None, DataCheck('{"type":"object"}')])
def test_data_must_be_validated_with_the_hooks_current_schema(
    check: DataCheck | None,
) -> None:
    answer = answer_of(Decision.CONTINUE, "eve", data={"ticket": 5})
    with pytest.raises(Conflict) as caught:
        judge(hook_of(rule=replace(OPEN, ask=SCHEMA)), answer, check, NOW, LIMITS)
    assert caught.value.code == "HookChanged"


def test_data_that_the_rule_does_not_require_is_accepted() -> None:
    assert decide(hook_of(), data={"any": ["thing"]}) == FinalAnswer(Decision.CONTINUE)


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
def test_properties_can_be_patched_at_points_before_the_operation(
    rule: Rule, allowed: bool, point: str
) -> None:
    hook = hook_of(rule=replace(rule, point=point), point=point)
    may_patch = allowed and point in PATCHABLE
    assert (Decision.PATCH in allowed_decisions(hook.rule, point, None)) is may_patch
    if may_patch:
        assert decide(hook, Decision.PATCH, properties=PATCHED) == FinalAnswer(Decision.PATCH)
    else:
        place = error_of(hook, Decision.PATCH, properties=PATCHED)
        assert place == ("decision", "AnswerInvalid")


def test_a_patch_is_not_allowed_after_an_operator_rule_has_approved() -> None:
    hook = hook_of(rule=OPEN, operator_approval="pre-stack-create")
    assert Decision.PATCH not in allowed_decisions(hook.rule, hook.point, hook.operator_approval)
    assert error_of(hook, Decision.PATCH, properties=PATCHED) == ("decision", "AnswerInvalid")


@pytest.mark.parametrize("mode", [Mode.NOTIFY, Mode.STOP])
def test_hooks_that_do_not_wait_cannot_be_answered(mode: Mode) -> None:
    rule = Rule(Point.PRE_CREATE, mode, patch=("*",))
    assert allowed_decisions(rule, Point.PRE_CREATE, None) == []
    assert error_of(hook_of(rule=Rule(Point.PRE_CREATE, mode)))[0] == "decision"


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
def test_a_patch_changes_listed_properties_only(
    patch: tuple[str, ...], properties: Json, place: str | None
) -> None:
    hook = hook_of(rule=Rule(Point.PRE_CREATE, patch=patch))
    if place is None:
        answer = decide(hook, Decision.PATCH, properties=properties)
        assert answer == FinalAnswer(Decision.PATCH)
    else:
        assert error_of(hook, Decision.PATCH, properties=properties) == (place, "AnswerInvalid")


@pytest.mark.parametrize("decision", sorted(set(DECISIONS) - {Decision.PATCH}))
@pytest.mark.parametrize("properties", [{}, PATCHED])
def test_properties_are_accepted_with_a_patch_only(decision: Decision, properties: Json) -> None:
    assert error_of(hook_of(rule=OPEN), decision, properties=properties)[0] == "properties"


def progress(
    extend: timedelta | None, rule: Rule, now: datetime = NOW, **changed: Json
) -> AnswerEffect | AnswerRefused:
    answer = answer_of(Decision.PROGRESS, "eve", extend=extend)
    return judge(hook_of(rule=rule, **changed), answer, None, now, LIMITS)


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
def test_progress_extends_the_deadline_and_never_shortens_it(
    extend: timedelta | None, timeout: timedelta | None, at_most: timedelta | None, until: timedelta
) -> None:
    rule = Rule(Point.PRE_CREATE, timeout=timeout, at_most=at_most)
    answer = progress(extend, rule)
    assert isinstance(answer, DeadlineExtension) and answer.clock.deadline == NOW + until


@pytest.mark.parametrize("at_most", [2 * HOUR, HOUR])
def test_progress_beyond_the_limit_is_refused(at_most: timedelta) -> None:
    with pytest.raises(Invalid, match="latest possible deadline") as caught:
        progress(HOUR, Rule(Point.PRE_CREATE, at_most=at_most))
    assert caught.value.findings[0].place == "extend"


def test_progress_is_no_approval_and_needs_no_data() -> None:
    rule = Rule(Point.PRE_CREATE, approvals=2, ask=SCHEMA)
    assert isinstance(progress(3 * HOUR, rule, approved_by=("eve",)), DeadlineExtension)
