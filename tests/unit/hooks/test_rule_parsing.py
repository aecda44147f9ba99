"""Full rules: every key, its errors and their remedies."""

from datetime import timedelta

import pytest

from engine.errors import Finding, Findings
from engine.hooks.operator import OperatorRule, always, operator_declarations
from engine.hooks.rule import Escalation, HookLimits, Rule, decode_rule, encode_rule
from engine.hooks.rule_reader import (
    KEYS,
    MAX_SCHEMA_LENGTH,
    POINTS,
    Decide,
    Declaration,
    Reader,
    no_conditions,
)
from engine.hot.environment.environment import HookDeclaration
from engine.hot.evaluation.conditions import Conditions
from engine.hot.language.versions import VERSIONS
from engine.words import STACK_POINTS, Json, Mode, OnTimeout, Point

LIMITS = HookLimits(timedelta(hours=24), timedelta(days=90))
STEPS = ("resize", "cut-over")
FULL_RULE: Json = {
    "on": ["pre-update", "confirm-resize"],
    "mode": "wait",
    "timeout": "2h",
    "on_timeout": "reject",
    "approvals": 2,
    "answer_by": ["role:dba", "user:ann", "token"],
    "exclude": "requester",
    "when": {"equals": [{"get_param": "tier"}, "prod"]},
    "ask": {"schema": {"type": "object", "required": ["ticket"]}},
    "remind": "30m",
    "escalate": {"after": "1h", "to": ["role:admin"]},
    "patch": ["size"],
    "at_most": "2d",
    "watch": False,
}


def conditions(tier: str = "prod") -> Decide:
    version = VERSIONS[max(VERSIONS)]
    return Conditions({"big": True}, version, {"tier": tier}, Findings()).decide


def parse(
    item: Json, *, pattern: str = "db", short: bool = False, decide: Decide = no_conditions
) -> tuple[list[Declaration], list[Finding]]:
    findings = Findings()
    hook = HookDeclaration(pattern, item, "hooks[0]", short)
    return Reader(findings, LIMITS, decide, STEPS).declarations([hook]), findings.all


def rule_of(**keys: Json) -> Rule:
    (declaration,), wrong = parse({"on": "pre-create", **keys})
    assert not wrong
    return declaration.rule


def findings_of(**keys: Json) -> list[Finding]:
    declarations, wrong = parse({"on": "pre-create", **keys})
    assert not declarations
    return wrong


def test_a_full_rule_is_parsed_for_each_of_its_points() -> None:
    assert set(FULL_RULE) == set(KEYS)
    declarations, wrong = parse(FULL_RULE, decide=conditions())
    assert not wrong
    assert [(one.pattern, one.place) for one in declarations] == [("db", "hooks[0]")] * 2
    for one, point in zip(declarations, ("pre-update", "confirm-resize"), strict=True):
        assert one.rule == Rule(
            point, Mode.WAIT, timedelta(hours=2), OnTimeout.REJECT, approvals=2,
            answer_by=("role:dba", "user:ann", "token"), exclude="requester",
            ask='{"type":"object","required":["ticket"]}', remind=timedelta(minutes=30),
            escalate=Escalation(timedelta(hours=1), ("role:admin",)), patch=("size",),
            at_most=timedelta(days=2),
        )  # fmt: skip
        assert decode_rule(encode_rule(one.rule)) == one.rule


def test_a_rule_with_a_point_only_waits_for_any_approver() -> None:
    assert rule_of() == Rule(Point.PRE_CREATE)


@pytest.mark.parametrize(
    ("key", "value", "read_as"),
    [
        ("approvals", 1, 1),
        ("approvals", 100, 100),
        ("answer_by", "role:dba", ("role:dba",)),
        ("answer_by", ["user:o'neil@example.org", "token"], ("user:o'neil@example.org", "token")),
        ("answer_by", ["subscription:policy"], ("subscription:policy",)),
        ("answer_by", None, ()),
        ("exclude", None, ""),
        ("exclude", "requester", "requester"),
        ("ask", None, ""),
        ("ask", {"schema": {}}, "{}"),
        ("ask", {"schema": {"$ref": "#/$defs/a", "$defs": {"a": {}}}},
         '{"$ref":"#/$defs/a","$defs":{"a":{}}}'),
        ("remind", "90s", timedelta(seconds=90)),
        ("remind", None, None),
        ("escalate", None, None),
        ("escalate", {"after": "2h", "to": "user:eve"},
         Escalation(timedelta(hours=2), ("user:eve",))),
        ("patch", True, ("*",)),
        ("patch", False, ()),
        ("patch", None, ()),
        ("patch", ["size", "place"], ("size", "place")),
        ("at_most", "24h", timedelta(days=1)),
        ("at_most", "90d", timedelta(days=90)),
    ],
)  # fmt: skip
def test_the_meaning_of_each_key(key: str, value: Json, read_as: object) -> None:
    assert getattr(rule_of(**{key: value}), key) == read_as


@pytest.mark.parametrize(
    ("key", "value", "place", "message"),
    [
        ("approvals", 0, "approvals", "from 1 to 100"),
        ("approvals", -3, "approvals", "from 1 to 100"),
        ("approvals", 101, "approvals", "from 1 to 100"),
        ("approvals", 10**40, "approvals", "from 1 to 100"),
        ("approvals", True, "approvals", "from 1 to 100"),
        ("approvals", 2.0, "approvals", "from 1 to 100"),
        ("approvals", "2", "approvals", "from 1 to 100"),
        ("approvals", None, "approvals", "from 1 to 100"),
        ("answer_by", [], "answer_by", "Omit it to allow every approver to answer."),
        (
            "answer_by",
            "dba",
            "answer_by[0]",
            "user:NAME, subscription:NAME, or",
        ),
        ("answer_by", ["user:ann", "role:"], "answer_by[1]", "Write role:NAME"),
        ("answer_by", ["group:dba"], "answer_by[0]", "Write role:NAME"),
        ("answer_by", ["user:a:b"], "answer_by[0]", "Write role:NAME"),
        ("answer_by", [None], "answer_by[0]", "Write role:NAME"),
        ("answer_by", {"role": "dba"}, "answer_by[0]", "Write role:NAME"),
        ("exclude", "approver", "exclude", "Write requester."),
        ("exclude", ["requester"], "exclude", "Write requester."),
        ("ask", "text", "ask", "Write {schema:"),
        ("ask", {}, "ask", "Write {schema:"),
        ("ask", {"type": "object"}, "ask", "Write {schema:"),
        ("ask", {"schema": [1]}, "ask", "Write {schema:"),
        ("ask", {"schema": {}, "more": 1}, "ask", "Write {schema:"),
        ("ask", {"schema": {"type": "objekt"}}, "ask.schema", "json-schema.org"),
        ("ask", {"schema": {"pattern": "("}}, "ask.schema", "json-schema.org"),
        ("ask", {"schema": {"$ref": "#/nowhere"}}, "ask.schema", "json-schema.org"),
        ("ask", {"schema": {"minimum": 2**70}}, "ask.schema", "json-schema.org"),
        (
            "ask",
            {"schema": {"title": "x" * MAX_SCHEMA_LENGTH}},
            "ask.schema",
            "Write a shorter schema.",
        ),
        ("remind", "soon", "remind", "Write 90s, 30m, 2h or 1d."),
        ("remind", 30, "remind", "Write 90s, 30m, 2h or 1d."),
        ("remind", "0m", "remind", "Write 90s, 30m, 2h or 1d."),
        ("remind", "91d", "remind", "[hooks] max_timeout"),
        ("escalate", "1h", "escalate", "Write {after: 1h, to: [role:admin]}."),
        ("escalate", {}, "escalate", "Write {after: 1h"),
        ("escalate", {"to": ["role:admin"]}, "escalate", "Write {after: 1h"),
        ("escalate", {"after": None, "to": "role:admin"}, "escalate", "Write {after: 1h"),
        ("escalate", {"after": "1h", "too": "role:admin"}, "escalate", "Write {after: 1h"),
        ("escalate", {"after": "1x", "to": "role:admin"}, "escalate.after", "Write 90s"),
        ("escalate", {"after": "999999999d", "to": "role:admin"}, "escalate.after", "max_timeout"),
        ("escalate", {"after": "1h", "to": ["admin"]}, "escalate.to[0]", "Write role:NAME"),
        ("escalate", {"after": "1h", "to": []}, "escalate.to", "Omit it"),
        ("patch", [], "patch", "Write true, or a list"),
        ("patch", "size", "patch", "Write true, or a list"),
        ("patch", [5], "patch", "Write true, or a list"),
        ("patch", [""], "patch", "Write true, or a list"),
        ("patch", 1, "patch", "Write true, or a list"),
        ("patch", {"size": 2}, "patch", "Write true, or a list"),
        ("at_most", "never", "at_most", "Write 90s, 30m, 2h or 1d."),
        ("at_most", "999999999d", "at_most", "[hooks] max_timeout"),
        ("at_most", "9" * 40 + "s", "at_most", "Write 90s, 30m, 2h or 1d."),
        ("timeout", "999999999h", "timeout", "[hooks] max_timeout"),
        ("mode", None, "mode", "Write one of notify, wait, stop."),
        ("on_timeout", ["stop"], "on_timeout", "Write one of stop, continue, reject."),
        ("on", [], "on", "Acceptable hook types are"),
        ("on", [["pre-create"]], "on", "Acceptable hook types are"),
        ("on", {"pre-create": 1}, "on", "Acceptable hook types are"),
        ("on", "confirm-", "on", "Did you mean"),
        ("on", "confirm-resise", "on", 'Did you mean "confirm-resize"?'),
        ("on", ["pre-create", "at-night"], "on", "confirm-cut-over, confirm-resize"),
    ],
)
def test_an_invalid_key_is_refused_with_place_and_remedy(
    key: str, value: Json, place: str, message: str
) -> None:
    (wrong,) = findings_of(**{key: value})
    assert wrong.place == f"hooks[0].{place}"
    assert message in wrong.remedy


@pytest.mark.parametrize(
    "ref", ["file:///etc/hostname", "http://127.0.0.1:9/schema", "https://example.org/schema"]
)
def test_a_schema_reference_is_never_fetched(ref: str) -> None:
    (wrong,) = findings_of(ask={"schema": {"$ref": ref}})
    assert wrong.place == "hooks[0].ask.schema"
    assert "only" in wrong.reason


def test_a_schema_that_is_too_deep_is_refused() -> None:
    schema: Json = {}
    for _ in range(300):
        schema = {"not": schema}
    assert [one.place for one in findings_of(ask={"schema": schema})] == ["hooks[0].ask.schema"]


def test_all_invalid_keys_are_reported_at_once() -> None:
    wrong = findings_of(approvals=0, exclude="me", remind="x", patch=0.5, colour="red", mode="wiat")
    assert {one.place.removeprefix("hooks[0].") for one in wrong} == {
        "approvals", "exclude", "remind", "patch", "colour", "mode",
    }  # fmt: skip
    assert all(one.remedy for one in wrong)


@pytest.mark.parametrize(
    ("needed", "people", "fits"),
    [
        (2, ["user:ann"], False),
        (2, ["user:ann", "user:ann"], False),
        (3, ["user:ann", "token"], False),
        (2, ["user:ann", "user:bob"], True),
        (2, ["user:ann", "token"], True),
        (9, ["user:ann", "role:dba"], True),
        (9, None, True),
    ],
)
def test_approvals_cannot_exceed_the_named_approvers(needed: int, people: Json, fits: bool) -> None:
    declarations, wrong = parse({"on": "pre-create", "approvals": needed, "answer_by": people})
    assert bool(declarations) is fits
    if not fits:
        assert [one.place for one in wrong] == ["hooks[0].approvals"]
        assert "Name more in answer_by, or a role." in wrong[0].remedy


@pytest.mark.parametrize(
    ("timeout", "at_most", "fits"),
    [
        ("2h", "1h", False),
        ("2h", "2h", True),
        (None, "23h", False),
        (None, "24h", True),
        ("2h", None, True),
    ],
)
def test_the_maximum_wait_is_at_least_the_timeout(timeout: Json, at_most: Json, fits: bool) -> None:
    declarations, wrong = parse({"on": "pre-create", "timeout": timeout, "at_most": at_most})
    assert bool(declarations) is fits
    assert [one.place for one in wrong] == ([] if fits else ["hooks[0].at_most"])


@pytest.mark.parametrize("mode", ["notify", "stop"])
@pytest.mark.parametrize(
    "key",
    ["approvals", "answer_by", "exclude", "ask", "remind", "escalate", "patch", "at_most"],
)
def test_keys_about_answers_are_refused_in_rules_that_do_not_wait(mode: str, key: str) -> None:
    keys = {"mode": mode, key: FULL_RULE[key]}
    if key == "approvals":
        keys[key] = 1
    (wrong,) = findings_of(**keys)
    assert wrong.place == f"hooks[0].{key}"
    assert wrong.reason == f"is not valid with mode {mode}"


def test_an_invalid_mode_is_reported_once() -> None:
    assert [one.place for one in findings_of(mode="wiat", answer_by="user:ann")] == [
        "hooks[0].mode"
    ]


@pytest.mark.parametrize("point", STACK_POINTS)
def test_a_stack_point_is_parsed_without_a_name(point: str) -> None:
    declarations, wrong = parse({"on": point}, pattern="")
    assert not wrong
    assert [(one.pattern, one.rule.point) for one in declarations] == [("", point)]


def test_a_stack_point_with_at_is_refused() -> None:
    declarations, wrong = parse({"on": ["pre-create", "pre-stack-delete"]})
    assert not declarations
    (one,) = wrong
    assert one.place == "hooks[0].on"
    assert "pre-stack-delete is a point of the whole stack" in one.reason
    assert "Leave out `at`" in one.remedy


@pytest.mark.parametrize("on", [*POINTS, "confirm-resize", ["pre-stack-create", "pre-create"]])
def test_a_resource_point_without_a_name_is_refused(on: Json) -> None:
    declarations, wrong = parse({"on": on}, pattern="")
    assert not declarations
    assert [one.place for one in wrong] == ["hooks[0].at"]
    assert "at:" in wrong[0].remedy


@pytest.mark.parametrize("point", [*POINTS, "confirm-cut-over"])
def test_the_short_form_accepts_every_resource_point(point: str) -> None:
    declarations, wrong = parse(point, short=True)
    assert not wrong
    assert [one.rule for one in declarations] == [Rule(point, short=True)]


@pytest.mark.parametrize(
    ("point", "place", "message"),
    [
        ("pre-stack-update", "hooks[0]", "Write it in the top-level list `hooks`"),
        ("pre-udpate", "hooks[0]", 'Did you mean "pre-update"?'),
        ("at-night", "hooks[0]", "Acceptable hook types are"),
    ],
)
def test_the_short_form_refuses_other_points(point: str, place: str, message: str) -> None:
    declarations, (wrong,) = parse(point, short=True)
    assert not declarations
    assert wrong.place == place
    assert message in wrong.remedy


def test_any_step_is_accepted_if_the_steps_are_unknown() -> None:
    findings = Findings()
    hook = HookDeclaration("db", {"on": "confirm-whatever"}, "hooks[0]", short=False)
    (declarations,) = Reader(findings, LIMITS, steps=None).declarations([hook])
    assert declarations.rule.point == "confirm-whatever"
    bare = HookDeclaration("db", {"on": "confirm-"}, "hooks[0]", short=False)
    assert not Reader(findings, LIMITS, steps=None).declarations([bare])
    assert [one.place for one in findings.all] == ["hooks[0].on"]


@pytest.mark.parametrize(
    ("when", "holds"),
    [
        (True, True),
        (False, False),
        ("big", True),
        ({"equals": [{"get_param": "tier"}, "prod"]}, True),
        ({"equals": [{"get_param": "tier"}, "test"]}, False),
        ({"not": "big"}, False),
    ],
)
def test_a_rule_exists_if_its_condition_holds(when: Json, holds: bool) -> None:
    declarations, wrong = parse({"on": "pre-create", "when": when}, decide=conditions())
    assert not wrong
    assert len(declarations) == holds


@pytest.mark.parametrize(
    ("when", "reason", "remedy"),
    [
        ({"equals": [{"get_param": "teir"}, "x"]}, "teir", 'Did you mean "tier"?'),
        ("bigg", "bigg", 'Did you mean "big"?'),
        ("", "Invalid condition", "Write the name of a condition"),
        (None, "Invalid condition", "Write the name of a condition"),
        (7, "Invalid condition", "Write the name of a condition"),
        ({"get_resource": "db"}, "invalid in this context", "Conditions can call and, "),
    ],
)
def test_a_condition_that_cannot_be_evaluated_is_refused(
    when: Json, reason: str, remedy: str
) -> None:
    declarations, (wrong,) = parse({"on": "pre-create", "when": when}, decide=conditions())
    assert not declarations
    assert wrong.place == "hooks[0].when"
    assert reason in wrong.reason
    assert remedy in wrong.remedy


def test_a_condition_in_a_request_is_refused() -> None:
    findings = Findings()
    items = [{"at": "db", "on": "pre-create", "when": True}]
    assert not Reader(findings, LIMITS).read_requested(items)
    assert [one.place for one in findings.all] == ["hooks.add[0].when"]


def test_a_request_can_name_a_stack_point() -> None:
    findings = Findings()
    declarations = Reader(findings, LIMITS).read_requested(
        ["pre-stack-update", {"on": ["post-stack-update"]}, {"at": None, "on": "pre-stack-delete"}]
    )
    assert not findings.all
    assert {one.pattern for one in declarations} == {""}
    assert len(declarations) == 3


def test_an_operator_rule_with_an_unknown_step_holds_at_its_other_points() -> None:
    guard = OperatorRule(["*"], "*", (), {"on": ["pre-delete", "confirm-melt"]}, "rule 1")
    declarations = operator_declarations([guard], "any", LIMITS, always)
    assert [one.rule.point for one in declarations] == ["pre-delete", "confirm-melt"]
