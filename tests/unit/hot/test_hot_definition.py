"""From a template to a definition: sections, types, properties, references, secrets and digests."""

from dataclasses import replace

import pytest

from engine.errors import Findings, Invalid
from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import decode, encode, is_static
from engine.hot.language.versions import known_versions, template_functions
from engine.hot.schema.properties import check_resolved, fill_defaults
from engine.hot.schema.type_schema import Constraint, Kind, Property, TypeSchema
from engine.hot.template.template import parse_template
from engine.words import Json
from tests.unit.hot.hot_support import UniformView, defined, faults, thing


def one(**body: Json) -> dict[str, Json]:
    return {"resources": {"a": {"type": "Test::Thing", **body}}}


@pytest.mark.parametrize(
    ("template", "place", "part", "code"),
    [
        (
            {"heat_template_version": "2021-04-17"},
            "heat_template_version",
            "The template version is invalid",
            "InvalidTemplateVersion",
        ),
        (
            {"heat_template_version": "2021-04-16", "AWSTemplateFormatVersion": "x"},
            "",
            "Ambiguous versions (heat_template_version, AWSTemplateFormatVersion)",
            "InvalidTemplateVersion",
        ),
        (
            {"resuorces": {}},
            "resuorces",
            "The template section is invalid: resuorces",
            "StackValidationFailed",
        ),
        ({"resources": []}, "resources", "must be a map", ""),
        ({"resources": {"a": None}}, "resources.a", "Each resource must contain a type key.", ""),
        ({"resources": {"a": {}}}, "resources.a", "Each resource must contain a type key.", ""),
        ({"resources": {"a/b": thing()}}, "resources.a/b", 'Resource name may not contain "/"', ""),
        (one(propertys={}), "resources.a", '"propertys" is not a valid keyword', ""),
        (one(depends_on=[1]), "resources.a.depends_on", "must be a list of strings", ""),
        (one(external_id=["x"]), "resources.a.external_id", "type must be string", ""),
        (
            one(external_id="x", depends_on="a"),
            "resources.a.depends_on",
            "Invalid dependency with external",
            "",
        ),
        (one(hooks=[5]), "resources.a.hooks[0]", "is not a hook", "InvalidBreakPointHook"),
        (
            one(hooks=[{"at": "x"}]),
            "resources.a.hooks[0].at",
            "not allowed in a rule of one resource",
            "",
        ),
        (
            {"hooks": [{"at": "", "on": "pre-create"}]},
            "hooks[0].at",
            "must be a pattern of resource names",
            "",
        ),
        ({"outputs": {"o": {}}}, "outputs.o", "must contain a value key", ""),
        (
            {"parameters": {"a": {"type": "string", "default": "x"}}} | one(),
            "",
            "Duplicate names {'a'}",
            "",
        ),
        (
            {"parameter_groups": [{"label": "g", "parameters": ["x"]}]},
            "",
            "Parameter Groups error: parameter_groups.g: ",
            "",
        ),
        (
            one(type="Test::Thign"),
            "resources.a.type",
            "The Resource Type (Test::Thign) could not be found.",
            "",
        ),
        (one(type="x.yaml"), "resources.a.type", "it is not among the files", ""),
        (one(properties={"sise": 1}), "resources.a.properties", "Unknown Property sise", ""),
        (one(properties=5), "resources.a.properties", "type must be object", ""),
        (
            {"resources": {"a": {"type": "Test::Strict"}}},
            "resources.a.properties",
            "Property needed not assigned",
            "",
        ),
        (
            one(properties={"size": 11}),
            "resources.a.properties.size",
            "11 is out of range (min: 1, max: 10)",
            "",
        ),
        (
            one(properties={"size": "x"}),
            "resources.a.properties.size",
            "Value 'x' is not an integer",
            "",
        ),
        (one(properties={"text": [1]}), "resources.a.properties.text", "must be a string", ""),
        (one(properties={"flag": 1}), "resources.a.properties.flag", "not a valid boolean", ""),
        (one(properties={"number": "x"}), "resources.a.properties.number", "is not a number", ""),
        (one(properties={"names": "a"}), "resources.a.properties.names", '"a" is not a list', ""),
        (
            one(properties={"names": ["a", "b"]}),
            "resources.a.properties.names[1]",
            '"b" does not match pattern "a+"',
            "",
        ),
        (
            one(properties={"map": {}}),
            "resources.a.properties.map",
            "Property inner not assigned",
            "",
        ),
        (
            one(properties={"map": {"inner": 1, "innr": 1}}),
            "resources.a.properties.map",
            "Unknown Property innr",
            "",
        ),
        (
            one(depends_on="b"),
            "resources.a.depends_on",
            'The specified reference "b" (in a) is incorrect.',
            "InvalidTemplateReference",
        ),
        (
            one(depends_on="a"),
            "",
            "Circular Dependency Found: a -> a",
            "CircularDependencyException",
        ),
        (one(deletion_policy="Snapshot"), "resources.a.deletion_policy", "not supported", ""),
        (one(deletion_policy="Keep"), "resources.a.deletion_policy", "Invalid deletion", ""),
        (one(deletion_policy="\u017fnapshot"), "resources.a.deletion_policy", "Invalid del", ""),
        (one(condition="nope"), "resources.a.condition", 'Invalid condition "nope"', ""),
        (
            {"conditions": {"x": {"equals": [1]}}},
            "conditions.x.equals",
            '"equals" must be of the form',
            "",
        ),
        (
            {"conditions": {"x": {"and": [True]}}},
            "conditions.x.and",
            'The minimum number of condition arguments to "and" is 2.',
            "",
        ),
        (
            {"conditions": {"x": {"not": "y"}, "y": {"not": "x"}}} | one(condition="x"),
            "conditions.y",
            'Condition validation error: Circular definition for condition "x"',
            "",
        ),
        (
            {"conditions": {"x": {"equals": [{"get_attr": ["a", "b"]}, 1]}}},
            "conditions.x.equals[0].get_attr",
            'The function "get_attr" is invalid in this context',
            "",
        ),
        ({"conditions": {"x": {"yaql": {}}}}, "conditions.x", "is a map with an expression", ""),
    ],
)
def test_invalid_templates_are_reported(
    template: dict[str, Json], place: str, part: str, code: str
) -> None:
    found = faults(template)
    match = [f for f in found if part in f.reason]
    assert match, found
    assert match[0].place == place
    assert match[0].code == (code or match[0].code)


def test_a_template_without_a_version_is_refused() -> None:
    with pytest.raises(Invalid, match="Template version was not provided") as caught:
        parse_template({"heat_template_versoin": "2021-04-16"})
    assert "heat_template_version" in caught.value.findings[0].remedy


def test_similar_names_are_suggested() -> None:
    assert faults(one(properties={"sise": 1}))[0].remedy == 'Did you mean "size"?'
    assert faults(one(type="Test::Thign"))[0].remedy == 'Did you mean "Test::Thing"?'


def test_all_errors_are_reported_at_once_in_document_order() -> None:
    bodies = {"a": thing(sise=1), "b": {"type": "X"}, "c": thing(size=99)}
    found = faults({"resources": bodies, "parameters": {"p": {"type": "string"}}})
    assert [f.place for f in found] == [
        "",
        "resources.a.properties",
        "resources.b.type",
        "resources.c.properties.size",
    ]


def test_a_cycle_is_shown() -> None:
    bodies = {
        "a": thing(value={"get_resource": "b"}),
        "b": thing() | {"depends_on": "c"},
        "c": thing(value={"get_attr": ["a", "output"]}),
        "d": thing() | {"depends_on": "a"},
    }
    reason = faults({"resources": bodies})[0].reason
    assert reason in {
        f"Circular Dependency Found: {way}"
        for way in ("a -> b -> c -> a", "b -> c -> a -> b", "c -> a -> b -> c")
    }


def test_requires_and_reads_of_a_definition() -> None:
    bodies = {
        "a": thing(),
        "b": thing(),
        "c": thing(value={"get_attr": ["a", "output"]}) | {"depends_on": ["b"]},
        "d": thing() | {"metadata": {"x": {"get_resource": "c"}}},
    }
    resources = defined({"resources": bodies}).resources
    assert resources["c"].requires == {"a", "b"} and resources["c"].reads == {"a"}
    assert resources["d"].requires == resources["d"].reads == {"c"}
    assert is_static(resources["a"].properties) and not is_static(resources["c"].properties)


def test_resources_with_a_false_condition_are_absent() -> None:
    template: dict[str, Json] = {
        "parameters": {"on": {"type": "boolean"}},
        "conditions": {"on": {"equals": [{"get_param": "on"}, True]}},
        "resources": {
            "a": thing() | {"condition": "on"},
            "b": thing(value={"if": ["on", {"get_resource": "a"}]}) | {"depends_on": "a"},
        },
        "outputs": {"o": {"value": {"get_resource": "a"}, "condition": "on"}},
    }
    off = defined(template, parameters={"on": "no"})
    assert list(off.resources) == ["b"]
    assert off.resources["b"].properties == {} and not off.resources["b"].requires
    assert off.outputs["o"].value is None
    on = defined(template, parameters={"on": "yes"})
    assert on.resources["b"].reads == {"a"}
    template["outputs"] = {"o": {"value": {"get_attr": ["a", "output"]}}}
    assert "Its condition is false" in faults(template, parameters={"on": "no"})[0].remedy


SECRETS: dict[str, Json] = {
    "parameters": {"pw": {"type": "string", "hidden": True, "default": "tops3cret"}},
    "resources": {
        "plain": thing(value="x"),
        "text": thing(
            value={"str_replace": {"template": "p=$p", "params": {"$p": {"get_param": "pw"}}}}
        ),
        "split": thing(value={"str_split": ["s", {"get_param": "pw"}, 1]}),
        "property": thing(secret="v"),
        "attribute": thing(value={"get_attr": ["plain", "key"]}, text={"get_resource": "plain"}),
    },
}


def test_secrets_are_masked_in_all_expressions() -> None:
    resources = defined(SECRETS).resources
    assert resources["plain"].masked_properties is None
    assert resources["text"].properties == {"value": "p=tops3cret"}
    assert resources["text"].masked_properties == {"value": "p=******"}
    assert resources["split"].properties == {"value": "3cret"}
    assert resources["split"].masked_properties == {"value": "******"}
    assert resources["property"].masked_properties == {"secret": "******"}
    masked = resolve(resources["attribute"].masked_properties, UniformView("k"), masked=True)
    assert masked == {"value": "******", "text": "ref-plain"}


def test_a_hidden_value_is_in_no_finding() -> None:
    for kind, rule in (("number", {}), ("string", {"constraints": [{"length": {"max": 2}}]})):
        template = {"parameters": {"pw": {"type": kind, "hidden": True, **rule}}}
        assert "tops3cret" not in str(faults(template, parameters={"pw": "tops3cret"})[0])
    assert "tops3cret" not in str(faults(one(properties={"secret": ["tops3cret"]})))


def test_different_definitions_have_different_digests() -> None:
    def digest(**body: Json) -> str:
        return defined(one(**body)).resources["a"].digest

    same = digest(properties={"text": "x", "size": 5}, metadata={"m": 1})
    assert same == digest(metadata={"m": 1}, properties={"size": "5", "text": "x"})
    assert same != digest(properties={"text": "x", "size": 5}, metadata={"m": 2})
    assert same != digest(properties={"text": "y", "size": 5}, metadata={"m": 1})
    assert digest(properties={"value": {"get_resouce": "a"}}) != digest(properties={})
    kept = [digest(deletion_policy=one) for one in ("Delete", "Retain", "delete", "retain")]
    assert kept[0] == kept[2] == digest() != kept[1] == kept[3]
    assert len({digest(), digest(external_id="x"), digest(external_id="y")}) == 3
    assert digest(external_id="") == digest()


def test_aliases_of_types_are_resolved() -> None:
    registry = {
        "A": "B",
        "B": "Test::Thing",
        "X::*": "Test::*",
        "resources": {"r": {"A": "Test::Free"}},
    }
    bodies = {"a": {"type": "A"}, "x": {"type": "X::Thing"}, "r": {"type": "A"}}
    resources = defined({"resources": bodies}, {"resource_registry": registry}).resources
    types = {name: one.type for name, one in resources.items()}
    assert types == {"a": "Test::Thing", "x": "Test::Thing", "r": "Test::Free"}


def test_hooks_of_template_and_environment() -> None:
    template = one(hooks=["pre-create"]) | {"hooks": [{"at": "a", "on": ["pre-delete"]}]}
    template["resources"]["w[1]*"] = thing() | {"hooks": {"on": ["pre-update"]}}
    environment = {"resource_registry": {"resources": {"web": {"srv*": {"hooks": "pre-create"}}}}}
    found = defined(template, environment).hook_declarations
    assert [(h.pattern, h.item, h.short) for h in found] == [
        ("a", "pre-create", True),
        ("w[[]1][*]", {"on": ["pre-update"]}, False),
        ("a", {"on": ["pre-delete"]}, False),
        ("web/srv*", "pre-create", True),
    ]


def test_a_types_own_rules_get_the_known_values() -> None:
    seen: list[Json] = []

    def record(kind: str, properties: Json, place: str, findings: Findings) -> None:
        seen.append((kind, dict(properties), place))
        findings.add(place, "no", "")

    bodies = {"a": thing(text="x", value={"get_resource": "b"}), "b": thing()}
    found = faults({"resources": bodies}, check_properties=record)
    assert seen[0] == ("Test::Thing", {"text": "x"}, "resources.a.properties")
    assert [f.reason for f in found] == ["no", "no"]


def test_defaults_and_resolved_properties() -> None:
    from tests.unit.hot.hot_support import THING

    findings = Findings()
    good = check_resolved(THING, {"size": "5", "map": {"inner": "1"}, "text": True}, "p", findings)
    assert good == {"size": 5, "map": {"inner": 1}, "text": "True"} and not findings.all
    filled = fill_defaults(THING, good)
    assert filled == {"size": 5, "map": {"inner": 1, "d": 7}, "text": "True"}
    assert fill_defaults(THING, {"text": None}) == {"text": "none"}
    check_resolved(THING, {"size": 99}, "p", findings)
    assert findings.all[0].place == "p.size"


def test_data_in_the_form_of_a_stored_call_stays_data() -> None:
    for data in (
        {"$call": ["get_resource", "x"]},
        {"$$call": [{"$call": 1}]},
        {"$call": 1, "b": 2},
    ):
        assert decode(encode(data), "2021-04-16") == data


def test_parameters_are_shown_with_their_values() -> None:
    kinds = {"s": "string", "n": "number", "l": "comma_delimited_list", "j": "json", "b": "boolean"}
    schemas: dict[str, Json] = {name: {"type": kind} for name, kind in kinds.items()}
    schemas["h"] = {"type": "string", "hidden": True}
    parameters = {"s": 5, "n": "1.0", "l": "x, y", "j": '{"a": 1}', "b": "yes", "h": "secret"}
    definition = defined({"parameters": schemas}, parameters=parameters)
    assert definition.parameters["l"] == ["x", " y"] and definition.parameters["n"] == 1.0
    shown = {name: text for name, text in definition.shown_parameters().items() if "::" not in name}
    expected = {"s": "5", "n": "1.0", "l": "x, y", "j": '{"a": 1}', "b": "True", "h": "******"}
    assert shown == expected
    assert definition.shown_parameters()["OS::stack_name"] == "s"


def test_versions_and_their_functions() -> None:
    known = known_versions("heat_template_version")
    assert known[0] == "2013-05-23" and "wallaby" in known and "2010-09-09" not in known
    assert "repeat" not in template_functions("2014-10-16")
    assert {"contains", "equals"} <= set(template_functions("pike"))
    assert "yaql" in template_functions("newton")
    assert "yaql" not in template_functions("2016-04-08")
    assert parse_template({"heat_template_version": "newton"}).version == "2016-10-14"


@pytest.mark.parametrize("key", ["deletion_policy", "external_id"])
def test_values_that_must_be_known_at_once_cannot_read_a_resource(key: str) -> None:
    late = {"type": "Test::Thing", key: {"get_attr": ["b", "output"]}}
    (found,) = faults({"resources": {"a": late, "b": thing()}})
    assert found.place == f"resources.a.{key}"
    assert found.reason.startswith("This must be known when the stack is defined")


AT_LEAST_ONE = Constraint("range", min=1)
ROLLING_UPDATE = TypeSchema(
    "Test::Rolling",
    any_property=True,
    update_policy={
        "rolling_update": Property(
            Kind.MAP,
            fields={"max_batch_size": Property(Kind.INTEGER, constraints=(AT_LEAST_ONE,))},
        )
    },
)


def rolling(**policy: Json) -> dict[str, Json]:
    body = {"type": "Test::Rolling", "update_policy": policy}
    return {"resources": {"a": body, "b": {"type": "Test::Rolling"}}}


def test_an_update_policy_has_the_schema_of_its_type() -> None:
    definition = defined(
        rolling(rolling_update={"max_batch_size": "2"}), types={"Test::Rolling": ROLLING_UPDATE}
    )
    assert definition.resources["a"].update_policy == {"rolling_update": {"max_batch_size": 2}}
    assert definition.resources["a"].requires == frozenset()


def test_a_resource_depends_on_those_that_its_update_policy_reads() -> None:
    late = rolling(rolling_update={"max_batch_size": {"get_attr": ["b", "size"]}})
    free = replace(ROLLING_UPDATE, any_attribute=True)
    assert defined(late, types={"Test::Rolling": free}).resources["a"].requires == {"b"}


@pytest.mark.parametrize(
    ("policy", "place", "part"),
    [
        ({"rolling_updat": {}}, "", "Unknown Property rolling_updat. Did you mean"),
        ({"rolling_update": 5}, ".rolling_update", "is not a map"),
        ({"rolling_update": {"max_batch_size": 0}}, ".rolling_update.max_batch_size", "range"),
    ],
)
def test_an_update_policy_is_validated(policy: Json, place: str, part: str) -> None:
    (found,) = faults(rolling(**policy), types={"Test::Rolling": ROLLING_UPDATE})
    assert found.place == f"resources.a.update_policy{place}"
    assert part in str(found)


def test_an_unused_update_policy_is_not_validated() -> None:
    body = {"type": "Test::Free", "update_policy": {"anything": 1}}
    assert defined({"resources": {"a": body}}).resources["a"].update_policy == {"anything": 1}
    (found,) = faults({"resources": {"a": body | {"update_policy": "x"}}})
    assert found.place == "resources.a.update_policy"
