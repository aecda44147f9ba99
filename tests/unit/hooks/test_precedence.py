"""Which rule applies: by source, name and type, and rules that a request clears."""

from collections.abc import Mapping
from datetime import timedelta
from itertools import combinations

import pytest

from engine.errors import Findings
from engine.hooks.operator import (
    OperatorRule,
    always,
    operator_declarations,
    read_operator_rule,
)
from engine.hooks.precedence import Breakpoints
from engine.hooks.rule import HookLimits, Rule
from engine.hooks.rule_patterns import LEAF, reaches
from engine.hooks.rule_reader import POINTS, Declaration
from engine.hot.functions.function import FunctionError
from engine.hot.template.hook_declarations import escape_glob
from engine.words import Action, Json, Mode, Point, post_stack, pre_stack

LIMITS = HookLimits(timedelta(hours=24), timedelta(days=90))
#: The strongest first; rules that are stored with a resource are the weakest.
SOURCES = ("operator", "live", "request", "environment", "template", "stored")


def declared(pattern: str = "*", point: str = Point.PRE_CREATE, **keys: Json) -> Declaration:
    types = keys.pop("types", ())
    return Declaration(pattern, Rule(point, **keys), "", types)


def by_name(name: str, pattern: str, point: str) -> Declaration:
    """A rule whose approver identifies its source."""
    return declared(pattern, point, answer_by=(name,))


def breakpoints(
    declarations: Mapping[str, list[Declaration]], cleared: tuple[str, ...] = ()
) -> Breakpoints:
    return Breakpoints(
        *(declarations.get(name, []) for name in SOURCES[1:-1]),
        cleared_breakpoints=cleared,
        operator=declarations.get("operator", []),
    )


def winner(rules: tuple[Rule, ...]) -> str:
    (rule,) = rules
    return rule.answer_by[0]


@pytest.mark.parametrize(
    "names", [names for size in range(1, 7) for names in combinations(SOURCES, size)]
)
@pytest.mark.parametrize(("pattern", "point"), [("*", "pre-create"), ("", "pre-stack-update")])
def test_the_strongest_source_with_a_rule_for_a_point_applies(
    names: tuple[str, ...], pattern: str, point: str
) -> None:
    declarations = {name: [by_name(name, pattern, point)] for name in names}
    stored = [one.rule for one in declarations.pop("stored", [])]
    asking = breakpoints(declarations)
    found = asking.find_rules("db", stored) if pattern else asking.find_stack_rules(stored)
    assert winner(found) == names[0]
    other = asking.find_stack_rules() if pattern else asking.find_rules("db")
    assert other == ()


def test_a_stronger_source_overrides_at_its_points_only() -> None:
    asking = breakpoints({
        "operator": [by_name("operator", "d*", "pre-delete")],
        "live": [by_name("live", "db", "pre-update")],
        "template": [by_name("template", "*", point) for point in POINTS],
    })  # fmt: skip
    found = {rule.point: rule.answer_by[0] for rule in asking.find_rules("db")}
    assert found == dict.fromkeys(POINTS, "template") | {
        "pre-delete": "operator", "pre-update": "live",
    }  # fmt: skip
    assert {rule.answer_by[0] for rule in asking.find_rules("web")} == {"template"}


TYPES = {"db": "Acme::Database", "web": "Acme::Server", "key": "OS::Heat::RandomString"}


@pytest.mark.parametrize(
    ("types", "held"),
    [
        ((), {"db", "web", "key", "new"}),
        (("Acme::Database",), {"db"}),
        (("Acme::*",), {"db", "web"}),
        (("Acme::Server", "OS::*"), {"web", "key"}),
        (("acme::*",), set()),
        (("*",), {"db", "web", "key"}),
    ],
)
def test_an_operator_rule_applies_to_its_types(types: tuple[str, ...], held: set[str]) -> None:
    asking = Breakpoints([], operator=[declared(types=types)], type_of=TYPES.get)
    assert {name for name in (*TYPES, "new") if asking.find_rules(name)} == held


def test_an_operator_rule_for_another_type_does_not_override() -> None:
    operator_rule = declared(types=("Acme::Database",), mode=Mode.STOP)
    asking = Breakpoints([declared(mode=Mode.NOTIFY)], operator=[operator_rule], type_of=TYPES.get)
    assert asking.find_rules("db")[0].mode is Mode.STOP
    assert asking.find_rules("web")[0].mode is Mode.NOTIFY


@pytest.mark.parametrize(
    ("cleared", "left"),
    [
        ("*", set()),
        ("db", set()),
        ("db:*", set()),
        ("d?:pre-*", {"post-create"}),
        ("db:pre-create", {"pre-delete", "post-create"}),
        ("*:pre-delete", {"pre-create", "post-create"}),
        ("DB", {"pre-create", "pre-delete", "post-create"}),
        ("web", {"pre-create", "pre-delete", "post-create"}),
        ("db:", {"pre-create", "pre-delete", "post-create"}),
        (":pre-create", {"pre-create", "pre-delete", "post-create"}),
    ],
)
def test_cleared_rules_do_not_apply_except_operator_rules(cleared: str, left: set[str]) -> None:
    points = ("pre-create", "pre-delete", "post-create")
    for source in SOURCES[1:]:
        declarations = {source: [by_name(source, "d*", point) for point in points]}
        stored = [one.rule for one in declarations.pop("stored", [])]
        assert {
            rule.point for rule in breakpoints(declarations, (cleared,)).find_rules("db", stored)
        } == left
    guards = {"operator": [by_name("operator", "d*", point) for point in points]}
    assert {rule.point for rule in breakpoints(guards, (cleared,)).find_rules("db")} == {*points}


def test_clearing_does_not_replace_an_operator_rule_by_a_weaker_one() -> None:
    declarations = {name: [by_name(name, "db", "pre-create")] for name in SOURCES[:-1]}
    assert winner(breakpoints(declarations, ("db:pre-create", "*")).find_rules("db")) == "operator"


@pytest.mark.parametrize(
    ("cleared", "left"), [("*", 0), (":pre-stack-*", 0), ("db", 1), ("db:pre-stack-create", 1)]
)
def test_stack_points_are_cleared_without_a_name(cleared: str, left: int) -> None:
    point = pre_stack(Action.CREATE)
    request = {"request": [declared("", point)]}
    assert len(breakpoints(request, (cleared,)).find_stack_rules()) == left
    operator_rule = {"operator": [declared("", point)]}
    assert len(breakpoints(operator_rule, (cleared,)).find_stack_rules()) == 1


def test_the_stack_has_one_rule_per_point() -> None:
    stored = [Rule(pre_stack(Action.DELETE), answer_by=("stored",))]
    asking = breakpoints({
        "operator": [by_name("operator", "", pre_stack(Action.UPDATE))],
        "environment": [by_name("environment", "", post_stack(Action.UPDATE))],
        "template": [by_name("template", "", pre_stack(Action.UPDATE)),
                     by_name("template", "*", "pre-update")],
    })  # fmt: skip
    found = {rule.point: rule.answer_by[0] for rule in asking.find_stack_rules(stored)}
    assert found == {
        "pre-stack-delete": "stored",
        "pre-stack-update": "operator",
        "post-stack-update": "environment",
    }


def test_a_removed_operator_rule_does_not_stay_with_a_resource() -> None:
    theirs, own = Rule(Point.PRE_DELETE, by_operator=True), Rule(Point.POST_DELETE)
    assert Breakpoints([]).find_rules("db", (theirs, own)) == (own,)
    of_stack = Rule(pre_stack(Action.DELETE), by_operator=True)
    assert Breakpoints([]).find_stack_rules((of_stack,)) == ()
    tried = Declaration("*", Rule(Point.PRE_DELETE, by_operator=True, dry=True), "")
    (now, _) = Breakpoints([], operator=[tried]).find_rules("db", (theirs, own))
    assert now.dry


def test_an_escaped_pattern_matches_its_name_only() -> None:
    asking = Breakpoints([declared(escape_glob("web[1]*"))])
    assert asking.find_rules("web[1]*")
    assert not asking.find_rules("web1x")
    assert not asking.find_rules("web1")


@pytest.mark.parametrize(
    ("pattern", "matching"),
    [
        ("web", 'web["a"] web["b-c"]'),
        ("web-a", 'web["a"]'),
        ('web["a"]', 'web["a"]'),
        ("web-*", 'web["a"] web["b-c"]'),
        ("*-c", 'web["b-c"]'),
        ('w*["a"]', 'web["a"]'),
        ("web-d", ""),
        ("web-b", ""),
    ],
)
def test_names_and_patterns_of_resources_with_keys(pattern: str, matching: str) -> None:
    names = ['web["a"]', 'web["b-c"]', "weba", "other"]
    found = Breakpoints([declared(pattern)])
    assert " ".join(one for one in names if found.find_rules(one)) == matching
    everything = Breakpoints([declared("*")], cleared_breakpoints=[f"{pattern}:*"])
    assert " ".join(one for one in names if not everything.find_rules(one)) == matching
    tree = dict.fromkeys([*names, "web"], LEAF)
    assert reaches(pattern, tree) is bool(matching)
    assert reaches(f"n/{pattern}", {'n["x"]': tree}) is False
    assert reaches(f"n-x/{pattern}", {'n["x"]': tree}) is bool(matching)


def operator_rule(**changed: Json) -> OperatorRule:
    fields: dict[str, Json] = {
        "projects": ["prod-*"], "pattern": "*", "types": ("Acme::*",),
        "item": {"on": ["pre-delete", "pre-replace"]}, "place": "[[hooks.rules]] 1",
    }  # fmt: skip
    return OperatorRule(**fields | changed)


@pytest.mark.parametrize(
    ("project", "held"), [("prod-1", True), ("prod-", True), ("test-1", False), ("PROD-1", False)]
)
def test_an_operator_rule_applies_in_its_projects(project: str, held: bool) -> None:
    declarations = operator_declarations([operator_rule()], project, LIMITS, always)
    assert [one.rule.point for one in declarations] == (
        ["pre-delete", "pre-replace"] if held else []
    )
    assert all(one.rule.by_operator and one.types == ("Acme::*",) for one in declarations)


@pytest.mark.parametrize("dry", [False, True])
def test_a_dry_run_rule_does_not_block(dry: bool) -> None:
    declarations = operator_declarations([operator_rule(dry=dry)], "prod-1", LIMITS, always)
    assert {(one.rule.dry, one.rule.blocks) for one in declarations} == {(dry, not dry)}


def test_an_operator_rule_whose_condition_cannot_be_evaluated_does_not_apply() -> None:
    def unknown(condition: Json, place: str) -> bool:
        raise FunctionError("The Parameter (tier) was not provided.", "")

    conditional = operator_rule(item={"on": "pre-delete", "when": {"get_param": "tier"}})
    assert operator_declarations([conditional], "prod-1", LIMITS, unknown) == []
    assert len(operator_declarations([conditional], "prod-1", LIMITS, always)) == 1


@pytest.mark.parametrize(
    ("pattern", "path", "there"),
    [
        ("", [], ""), ("", ["web"], None),
        ("db", [], "db"), ("d*", ["web"], "d*"), ("db", ["web", "a"], "db"),
        ("web/db", [], "web/db"), ("web/db", ["web"], "db"), ("w*/*", ["web"], "*"),
        ("web/db", ["app"], None), ("web/db", ["web", "db"], None),
        ("*/a/db", ["web", "a"], "db"),
    ],
)  # fmt: skip
def test_an_operator_rule_matches_names_at_every_level_paths_and_root_stacks(
    pattern: str, path: list[str], there: str | None
) -> None:
    item = {"on": "pre-delete" if pattern else "pre-stack-delete"}
    declarations = operator_declarations(
        [operator_rule(pattern=pattern, item=item)],
        "prod-1",
        LIMITS,
        always,
        path,
        by_parent=bool(path),
    )
    assert [one.pattern for one in declarations] == ([] if there is None else [there])


def test_a_guard_of_the_stack_is_for_the_stack_in_which_the_change_begins() -> None:
    """A signal changes a nested stack by itself."""
    rules = [operator_rule(pattern="", item={"on": "pre-stack-update"})]
    assert len(operator_declarations(rules, "prod-1", LIMITS, always, ["web"])) == 1


def test_an_invalid_operator_rule_is_refused_when_it_is_parsed() -> None:
    findings = Findings()
    assert not read_operator_rule(
        operator_rule(item={"on": "pre-x"}), findings, LIMITS, None, always
    )
    assert [one.place for one in findings.all] == ["[[hooks.rules]] 1.on"]
