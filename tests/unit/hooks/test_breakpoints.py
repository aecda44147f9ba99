"""Breakpoints: parsing, errors with the nearest name, which one applies, and hook tokens."""

from datetime import timedelta
from uuid import UUID

import pytest

from engine.errors import Findings
from engine.hooks.derived_tokens import holder_of, hook_token, signal_token
from engine.hooks.durations import parse_duration
from engine.hooks.precedence import Breakpoints
from engine.hooks.rule import Escalation, HookLimits, Rule, decode_rules, encode_rules
from engine.hooks.rule_patterns import LEAF, check_patterns
from engine.hooks.rule_reader import Declaration, Reader
from engine.hot.environment.environment import HookDeclaration
from engine.hot.syntax.document import read_document
from engine.words import Json, Mode, OnTimeout, Point

LIMITS = HookLimits(timedelta(hours=24), timedelta(days=90))


def parse(item: Json, short: bool = False) -> tuple[list[Declaration], list[str]]:
    findings = Findings()
    hook = HookDeclaration("db", item, "hooks[0]", short)
    return Reader(findings, LIMITS).declarations([hook]), [str(one) for one in findings.all]


def test_a_rule_is_parsed_for_each_of_its_points() -> None:
    declarations, wrong = parse(
        {
            "on": ["pre-update", "post-create"],
            "mode": "stop",
            "timeout": "2h",
            "on_timeout": "reject",
        }
    )
    assert not wrong
    assert [one.rule for one in declarations] == [
        Rule(Point.PRE_UPDATE, Mode.STOP, timedelta(hours=2), OnTimeout.REJECT),
        Rule(Point.POST_CREATE, Mode.STOP, timedelta(hours=2), OnTimeout.REJECT),
    ]


def test_a_key_on_that_a_client_parsed_as_true_is_accepted() -> None:
    assert parse({"true": "pre-create"})[0][0].rule == Rule(Point.PRE_CREATE)
    document = read_document("hooks: [{at: db, on: pre-create}]", "environment")
    assert document == {"hooks": [{"at": "db", "on": "pre-create"}]}


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"on": "pre-creat"}, 'Did you mean "pre-create"?'),
        ({"on": None}, "Acceptable hook types"),
        ({"on": "pre-create", "mode": "wiat"}, 'Did you mean "wait"?'),
        ({"on": "pre-create", "timeuot": "1h"}, 'Did you mean "timeout"?'),
        ({"on": "pre-create", "timeout": "-1h"}, "Write 90s, 30m, 2h or 1d."),
        ({"on": "pre-create", "timeout": 5}, "Write 90s"),
        ({"on": "pre-create", "timeout": "0s"}, "Write 90s"),
        ({"on": "pre-create", "timeout": "9999d"}, "more than this server allows"),
        ({"on": "pre-create", "on_timeout": "go"}, "Write one of stop, continue, reject."),
        ("pre-create", "is not a rule"),
    ],
)
def test_an_invalid_rule_is_refused_with_place_and_remedy(item: Json, message: str) -> None:
    _, wrong = parse(item)
    assert len(wrong) == 1 and wrong[0].startswith("hooks[0]") and message in wrong[0]


def test_a_request_names_resource_and_point() -> None:
    findings = Findings()
    declarations = Reader(findings, LIMITS).read_requested(
        ["db:pre-create", {"at": "w*", "on": "post-create"}]
    )
    assert [(one.pattern, one.rule.point) for one in declarations] == [
        ("db", Point.PRE_CREATE),
        ("w*", Point.POST_CREATE),
    ]
    Reader(findings, LIMITS).read_requested([5, "pre-create", {"on": "pre-create"}])
    assert [one.place for one in findings.all] == [
        "hooks.add[0]", "hooks.add[1].at", "hooks.add[2].at",
    ]  # fmt: skip


def test_an_unmatched_pattern_is_refused_in_full_rules_and_a_warning_in_short_ones() -> None:
    findings = Findings()
    full = Declaration("dbb", Rule(Point.PRE_CREATE), "hooks[0]")
    short = Declaration("dbb", Rule(Point.PRE_CREATE, short=True), "hooks[1]")
    warnings = check_patterns([full, short], {"db": LEAF, "web": LEAF}, findings)
    assert [one.place for one in findings.all] == ["hooks[0]"]
    assert 'Did you mean "db"?' in str(findings.all[0])
    assert len(warnings) == 1 and warnings[0].place == "hooks[1]"


def test_a_request_overrides_the_environment_and_the_environment_the_template() -> None:
    def declared(mode: Mode, pattern: str = "*") -> list[Declaration]:
        return [Declaration(pattern, Rule(Point.PRE_CREATE, mode), "")]

    requested, by_environment, by_template = (
        declared(Mode.STOP, "db"),
        declared(Mode.NOTIFY),
        declared(Mode.WAIT),
    )
    points = Breakpoints(requested, by_environment, by_template)
    assert points.find_rules("db")[0].mode is Mode.STOP
    assert points.find_rules("web")[0].mode is Mode.NOTIFY
    assert Breakpoints([], by_template).find_rules("web")[0].mode is Mode.WAIT


def test_the_later_rule_of_a_source_wins_and_points_are_in_order() -> None:
    source = [
        Declaration("*", Rule(Point.POST_CREATE), ""),
        Declaration("*", Rule(Point.PRE_CREATE, Mode.STOP), ""),
        Declaration("db", Rule(Point.PRE_CREATE, Mode.WAIT), ""),
    ]
    found = Breakpoints(source).find_rules("db")
    assert [rule.point for rule in found] == [Point.PRE_CREATE, Point.POST_CREATE]
    assert found[0].mode is Mode.WAIT


@pytest.mark.parametrize("cleared", ["*", "db", "db:pre-create", "d*:pre-*"])
def test_a_cleared_breakpoint_does_not_apply(cleared: str) -> None:
    source = [Declaration("db", Rule(Point.PRE_CREATE), "")]
    assert Breakpoints(source, cleared_breakpoints=[cleared]).find_rules("db") == ()
    assert Breakpoints(source, cleared_breakpoints=["web:pre-create"]).find_rules("db") != ()


def test_rules_are_restored_from_their_stored_form() -> None:
    rules = (
        Rule(Point.PRE_DELETE, Mode.STOP, timedelta(seconds=90), OnTimeout.CONTINUE, True),
        Rule(
            "confirm-resize", approvals=2, answer_by=("role:dba", "token"), exclude="requester",
            ask='{"type":"object"}', remind=timedelta(minutes=5), patch=("*",), dry=True,
            escalate=Escalation(timedelta(hours=1), ("role:admin",)), at_most=timedelta(days=1),
            by_operator=True, stepped=True,
        ),
    )  # fmt: skip
    assert decode_rules(encode_rules(rules)) == rules
    assert encode_rules(()) is None and decode_rules(None) == ()


@pytest.mark.parametrize("text", ["", "5", "h", "1w", "1.5h", "-3s", "1h30m", None, "9" * 12 + "d"])
def test_an_invalid_duration_is_refused(text: Json) -> None:
    assert parse_duration(text) is None


def test_a_hook_token_is_valid_for_one_hook_subscription_and_key() -> None:
    one, other = UUID(int=1), UUID(int=2)
    token = hook_token(b"k", one, other)
    assert token == hook_token(b"k", one, other)
    others = [
        hook_token(b"k", other, one),
        hook_token(b"k", one, one),
        hook_token(b"l", one, other),
    ]
    assert len({token, *others}) == 4
    assert holder_of(b"k", one, token) == other
    assert [holder_of(b"k", one, each) for each in others] == [None, one, None]
    signals = {signal_token(b"k", one, one), signal_token(b"k", one, other)}
    assert len({*signals, signal_token(b"k", other, one), token}) == 4


@pytest.mark.parametrize("text", ["", ".", "a" * 43, "\u00e9.x", "AAAAAAAAAAAAAAAAAAAAAg", "A.A.A"])
def test_an_invalid_hook_token_has_no_subscription(text: str) -> None:
    assert holder_of(b"k", UUID(int=1), text) is None


def test_a_hook_token_cannot_be_changed_to_another_subscription() -> None:
    """The code covers the ID in front of it."""
    mine, others = UUID(int=7), UUID(int=8)
    _, code = hook_token(b"k", UUID(int=1), mine).split(".")
    name, _ = hook_token(b"k", UUID(int=1), others).split(".")
    assert holder_of(b"k", UUID(int=1), f"{name}.{code}") is None
