"""`rules`: conditions over several parameters, in templates of Headgate's own version."""

from typing import Any

import pytest

from engine.errors import Finding
from engine.hot.definition.model import StackDefinition
from engine.hot.functions.cost_budget import CostLimits
from engine.hot.syntax.positions import find_positions
from engine.words import Json
from tests.unit.hot.hot_support import defined, faults, thing

PARAMETERS = {
    "tier": {"type": "string", "default": "test"},
    "size": {"type": "number", "default": 1},
    "zones": {"type": "comma_delimited_list", "default": "a,b"},
}
IS_PROD = {"equals": [{"get_param": "tier"}, "prod"]}
ENOUGH = {"not": {"equals": [{"get_param": "size"}, 1]}}
MESSAGE = "A stack of tier ${tier} needs more than ${size} servers."
RULE = {"when": IS_PROD, "assert": ENOUGH, "message": MESSAGE}


def template(rules: Json, **sections: Json) -> dict[str, Json]:
    return {
        "heat_template_version": "2026-12-01",
        "parameters": PARAMETERS,
        "rules": rules,
        "resources": {"a": thing()},
        **sections,
    }


def checked(rules: Json, values: Json = None, **more: Any) -> StackDefinition:
    return defined(template(rules, **more), parameters=values or {})


def wrong(rules: Json, values: Json = None, **more: Any) -> Finding:
    (found,) = faults(template(rules, **more), parameters=values or {})
    return found


def test_a_rule_that_does_not_hold_is_refused_with_its_message() -> None:
    found = wrong([RULE], {"tier": "prod"})
    assert (found.place, found.code) == ("rules[0]", "ConditionFailed")
    assert found.reason == "rule failed: A stack of tier prod needs more than 1 servers."


@pytest.mark.parametrize(
    "values",
    [{"tier": "prod", "size": 2}, {"tier": "test"}, {}],
    ids=["holds", "does not apply", "defaults"],
)
def test_a_rule_that_holds_or_does_not_apply_is_accepted(values: Json) -> None:
    checked([RULE], values)


def test_every_rule_that_fails_is_reported() -> None:
    rules = [
        {"assert": {"contains": [{"get_param": "tier"}, ["a", "b"]]}, "message": "no tier"},
        {"assert": {"equals": [{"length": {"get_param": "zones"}}, 2]}, "message": "no zones"},
        {"assert": "many", "message": "few"},
    ]
    conditions = {"many": ENOUGH}
    found = faults(template(rules, conditions=conditions), parameters={"zones": "x"})
    assert [(one.place, one.reason) for one in found] == [
        ("rules[0]", "rule failed: no tier"),
        ("rules[1]", "rule failed: no zones"),
        ("rules[2]", "rule failed: few"),
    ]


def test_a_rule_that_does_not_apply_is_not_evaluated() -> None:
    first = {"equals": [{"get_param": ["zones", "9"]}, 1]}
    checked([{"when": {"equals": [1, 2]}, "assert": first, "message": "m"}])


def test_locals_and_references_are_available() -> None:
    rule = {"assert": {"equals": ["${name}", "test-1"]}, "message": "not ${name}"}
    checked([rule], locals={"name": "${tier}-${size}"})
    found = wrong([rule], {"size": 3}, locals={"name": "${tier}-${size}"})
    assert found.reason == "rule failed: not test-3"


def test_hidden_values_are_masked_in_messages() -> None:
    hidden = {"p": {"type": "string", "hidden": True, "default": "s3cret"}}
    rule = {"assert": {"equals": ["${p}", ""]}, "message": "not ${p}"}
    found = wrong([rule], parameters=hidden)
    assert found.reason == "rule failed: not ******"


@pytest.mark.parametrize(
    "rule",
    [
        {"assert": {"equals": [{"get_attr": ["a", "output"]}, 1]}, "message": "m"},
        {"assert": {"equals": ["${from_a}", 1]}, "message": "m"},
        {"when": {"equals": [{"get_resource": "a"}, 1]}, "assert": True, "message": "m"},
    ],
    ids=["get_attr", "a local", "when"],
)
def test_resources_cannot_be_read(rule: Json) -> None:
    found = wrong([rule], locals={"from_a": {"get_attr": ["a", "output"]}})
    assert found.place == "rules[0]"
    assert found.reason == 'A rule cannot read the resource "a": rules are about parameters.'
    assert found.remedy == "Write a precondition of a resource."


@pytest.mark.parametrize(
    ("rules", "place", "reason"),
    [
        ({}, "rules", "must be a list of at most 50 rules"),
        ([{"assert": True, "message": "m"}] * 51, "rules", "must be a list of at most 50 rules"),
        ([{"message": "m"}], "rules[0]", "A rule must be a map with assert and message."),
        ([{"assert": True}], "rules[0].message", "The message must be text"),
        ([{"assert": True, "message": "m", "wen": 1}], "rules[0].wen", "not a valid keyword"),
        ([{"assert": 5, "message": "m"}], "rules[0].assert", "neither true nor false"),
        ([{"assert": "missing", "message": "m"}], "rules[0].assert", "missing"),
        ([{"assert": {"equals": ["${no}", 1]}, "message": "m"}], "rules[0].assert.equals[0]",
         '"${no}" names neither a parameter nor a local.'),
    ],
    ids=["map", "too many", "no assert", "no message", "key", "number", "name", "reference"],
)  # fmt: skip
def test_wrong_rules(rules: Json, place: str, reason: str) -> None:
    found = wrong(rules)
    assert found.place == place and reason in found.reason and found.remedy


def test_a_rule_that_fails_is_at_its_line() -> None:
    text = "heat_template_version: headgate\nrules:\n- {assert: false, message: m}\n"
    found = wrong([{"assert": False, "message": "m"}])
    assert find_positions(text, [found.place])[found.place][:2] == (3, 3)


def test_the_cost_of_rules_is_limited() -> None:
    rule = {"assert": {"equals": ["${big}", ""]}, "message": "m"}
    parameters = {"big": {"type": "string", "default": "x" * 1000}}
    found = faults(template([rule] * 50, parameters=parameters), limits=CostLimits(size=20_000))
    assert any("larger than 20000 characters" in one.reason for one in found)


def test_earlier_versions_name_the_version() -> None:
    older = template([RULE]) | {"heat_template_version": "2021-04-16"}
    (found,) = faults(older)
    assert (found.place, found.remedy) == ("rules", "Use heat_template_version 2026-12-01.")


# -- nested templates -----------------------------------------------------------------------------

INNER = """
heat_template_version: headgate
parameters: {p: {type: string}}
rules: [{assert: {equals: [{get_param: p}, good]}, message: "not ${p}"}]
resources: {}
"""


def outer(value: Json) -> dict[str, Any]:
    resources = {"b": thing(), "n": {"type": "inner.yaml", "properties": {"p": value}}}
    return {
        "template": {"heat_template_version": "headgate", "resources": resources},
        "files": {"inner.yaml": INNER},
    }


def test_rules_of_a_nested_template_are_checked_as_far_as_known() -> None:
    defined(**outer("good"))
    defined(**outer({"get_attr": ["b", "output"]}))  # checked when the nested stack is created
    (found,) = faults(**outer("bad"))
    assert found.reason == "rule failed: not bad"
    assert found.place.startswith("resources.n") and found.place.endswith("rules[0]")
    assert (found.file, found.inner_place) == ("inner.yaml", "rules[0]")


def test_a_rule_whose_when_is_known_later_is_decided_later() -> None:
    rule = '[{when: {equals: [{get_param: p}, good]}, assert: false, message: "not ${p}"}]'
    later = outer({"get_attr": ["b", "output"]})
    start = INNER.index("rules: ")
    end = INNER.index("\n", start)
    later["files"]["inner.yaml"] = f"{INNER[:start]}rules: {rule}{INNER[end:]}"
    defined(**later)
    (found,) = faults(**later | {"template": outer("good")["template"]})
    assert found.reason == "rule failed: not good"


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ({"and": [True, False]}, False),
        ({"and": [True, True]}, True),
        ({"or": [False, True]}, True),
        ({"or": [False, False]}, False),
    ],
)
def test_conditions_of_rules_are_combined(condition: Json, holds: bool) -> None:
    found = faults(template([{"assert": condition, "message": "m"}])) if not holds else []
    assert bool(found) is not holds
    if holds:
        checked([{"assert": condition, "message": "m"}])


def test_a_message_has_a_maximum_length() -> None:
    assert wrong([{"assert": False, "message": "m" * 1000}]).code == "ConditionFailed"
    found, *_ = faults(template([{"assert": True, "message": "m" * 1001}]))
    assert found.place == "rules[0].message"


@pytest.mark.parametrize(
    ("sections", "place", "remedy"),
    [
        ({"conditions": {"c": {"equals": ["${tier}", "test"]}}}, "conditions.c.equals[0]",
         'Write {get_param: tier}; for the text "${" itself, write "$${".'),
        ({"conditions": {"c": "${tier}"}}, "conditions.c", "{get_param: tier}"),
        ({"resources": {"a": thing() | {"condition": "${tier}"}}}, "resources.a.condition",
         "{get_param: tier}"),
        ({"resources": {"a": thing() | {"condition": {"not": {"equals": ["x${zones.0}", 1]}}}}},
         "resources.a.condition.not.equals[0]", "Write {get_param: [zones, 0]}."),
        ({"resources": {"a": thing() | {"for_each": ["k"], "condition": "${each.key}"}}},
         'resources.a["k"].condition', "the same for all resources of a for_each"),
        ({"resources": {"a": thing(value={"if": [{"equals": ["${tier}", 1]}, 1, 2]})}},
         "resources.a.properties.value.if", "{get_param: tier}"),
        ({"outputs": {"o": {"value": 1, "condition": "${tier}"}}}, "outputs.o.condition",
         "{get_param: tier}"),
    ],
)  # fmt: skip
def test_references_in_conditions_are_refused(sections: Json, place: str, remedy: str) -> None:
    found = wrong([], **sections)
    assert found.place == place
    assert found.reason == "References are not replaced in conditions."
    assert remedy in found.remedy


def test_conditions_of_heat_and_escaped_texts_are_compared_as_they_are() -> None:
    def exists(text: str, version: str) -> bool:
        condition = {"equals": [text, {"get_param": "tier"}]}
        written = template([], resources={"a": thing() | {"condition": condition}})
        del written["rules"]
        written |= {"heat_template_version": version}
        return "a" in defined(written, parameters={"tier": "${x}"}).resources

    assert exists("${x}", "2021-04-16")
    assert exists("$${x}", "2026-12-01") and not exists("$${y}", "2026-12-01")


@pytest.mark.parametrize("condition", ["${on}", {"not": {"not": "${on}"}}])
def test_a_reference_alone_is_a_condition_of_a_rule(condition: Json) -> None:
    parameters = PARAMETERS | {"on": {"type": "boolean", "default": True}}
    rules = [{"assert": condition, "message": "off"}]
    checked(rules, parameters=parameters)
    assert wrong(rules, {"on": False}, parameters=parameters).reason == "rule failed: off"


@pytest.mark.parametrize("holds", [True, False])
def test_the_message_of_a_rule_is_checked_also_while_the_rule_holds(holds: bool) -> None:
    found = faults(template([{"assert": holds, "message": "need ${teir} in ${zones.7}"}]))
    assert found[0].place == "rules[0].message" and '"${teir}" names neither' in found[0].reason
    assert "******" not in "".join(one.reason for one in found)


def test_a_misspelt_key_of_a_rule_is_answered_with_the_right_one() -> None:
    found = wrong([{"asert": True, "message": "x"}])
    assert (found.place, found.remedy) == ("rules[0].asert", 'Did you mean "assert"?')
    both = faults(template([{"when": True, "msg": "x"}]))
    assert [one.place for one in both] == ["rules[0].msg", "rules[0]"]


def test_references_in_conditions_of_hooks_are_refused() -> None:
    rule = {"on": ["pre-create"], "when": {"not": [{"equals": ["${tier}", "x"]}]}}
    sections: Json = {
        "resources": {"a": thing() | {"hooks": rule}},
        "hooks": [rule | {"at": "a"}, rule | {"at": "a", "when": {"equals": ["$${tier}", "x"]}}],
    }
    found = faults(template([], **sections))
    assert [one.place for one in found] == ["resources.a.hooks.when", "hooks[0].when"]
    assert {one.remedy for one in found} == {"Write {get_param: NAME}."}
    heat = template([], **sections) | {"heat_template_version": "2021-04-16"}
    del heat["rules"]
    assert len(defined(heat).hook_declarations) == 3
