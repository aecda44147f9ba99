"""`for_each`, locals and references in strings."""

from typing import Any

import pytest

from engine.errors import LimitReached
from engine.hot.definition.model import StackDefinition
from engine.hot.evaluation.resolver import resolve
from engine.hot.expressions.expression import FunctionCall, encode
from engine.hot.nested.nested_templates import NestedTemplates
from engine.hot.syntax.keyed_names import find_name, possible_names
from engine.hot.syntax.positions import find_positions
from engine.hot.template.template import parse_template
from engine.words import Json
from tests.unit.hot.hot_support import UniformView, defined, faults, thing

HEADGATE = {"heat_template_version": "2026-12-01"}


def built(resources: Json, **more: Any) -> StackDefinition:
    sections = {
        key: more.pop(key) for key in ("parameters", "locals", "outputs", "conditions")
        if key in more
    }  # fmt: skip
    values = more.pop("values", None)
    return defined(HEADGATE | {"resources": resources} | sections, parameters=values, **more)


def wrong(resources: Json, **sections: Any) -> tuple[str, str, str]:
    values = sections.pop("values", None)
    (found,) = faults(HEADGATE | {"resources": resources} | sections, parameters=values)
    return found.place, found.reason, found.remedy


def each(keys: Json, **properties: Json) -> dict[str, Json]:
    return thing(**properties) | {"for_each": keys}


def property_of(definition: StackDefinition, name: str = "a") -> Json:
    return definition.resources[name].properties["value"]


# -- for_each -------------------------------------------------------------------------------------


def test_a_list_makes_a_resource_for_each_string() -> None:
    found = built({"web": each(["a", "b"], value="${each.key}", text="n-${each.value}")})
    assert [*found.resources] == ['web["a"]', 'web["b"]']
    assert found.resources['web["b"]'].properties == {"value": "b", "text": "n-b"}


def test_a_map_gives_each_resource_its_value() -> None:
    sizes = {"small": {"n": 1}, "large": {"n": 9}}
    found = built(
        {"web": each({"get_param": "sizes"}, size="${each.value.n}")},
        parameters={"sizes": {"type": "json"}},
        values={"sizes": sizes},
    )
    assert found.resources['web["large"]'].properties == {"size": 9}


def test_resources_keep_their_definition_when_one_in_the_middle_goes() -> None:
    before = built({"web": each(["a", "b", "c"], value="${each.key}")}).resources
    after = built({"web": each(["a", "c"], value="${each.key}")}).resources
    assert [*after] == ['web["a"]', 'web["c"]']
    assert all(before[name].digest == one.digest for name, one in after.items())


def test_attributes_and_references_of_all_are_maps_by_key() -> None:
    found = built(
        {
            "web": each(["a", "b"]),
            "all": thing(value={"get_attr": ["web", "output"]}),
            "ids": thing(value={"get_resource": "web"}),
            "one": thing(value={"get_attr": ['web["b"]', "output"]}),
        }
    )
    names = {'web["a"]', 'web["b"]'}
    assert resolve(property_of(found, "all"), UniformView(5)) == {"a": 5, "b": 5}
    ids = resolve(property_of(found, "ids"), UniformView())
    assert ids == {"a": 'ref-web["a"]', "b": 'ref-web["b"]'}
    assert found.resources["all"].requires == found.resources["ids"].requires == names
    assert found.resources["one"].requires == {'web["b"]'}


def test_resources_of_two_loops_are_connected_by_their_keys() -> None:
    found = built(
        {
            "port": each(["a", "b"]),
            "web": each(["a", "b"], value={"get_resource": 'port["${each.key}"]'})
            | {"depends_on": ["other", 'port["${each.key}"]']},
            "other": thing(),
        }
    )
    assert found.resources['web["b"]'].requires == {'port["b"]', "other"}


def test_depends_on_without_a_key_means_all() -> None:
    found = built({"web": each(["a", "b"]), "last": thing() | {"depends_on": "web"}})
    assert found.resources["last"].requires == {'web["a"]', 'web["b"]'}


def test_no_items_make_no_resource() -> None:
    found = built(
        {
            "web": each([]),
            "all": thing(value={"get_attr": ["web", "output"]}) | {"depends_on": "web"},
        }
    )
    assert [*found.resources] == ["all"] and property_of(found, "all") == {}


def test_a_false_condition_disables_all() -> None:
    web = each(["a"]) | {"condition": False}
    assert [*built({"web": web, "b": thing() | {"depends_on": "web"}}).resources] == ["b"]
    _, reason, remedy = wrong({"web": web, "b": thing(value={"get_attr": ["web", "output"]})})
    assert (
        '"web" (in b.Properties.value) is incorrect' in reason
        and remedy == "Its condition is false."
    )


@pytest.mark.parametrize(
    ("keys", "at", "reason"),
    [
        ({"get_attr": ["b", "output"]}, "", "must be known when the stack is defined"),
        ([{"get_resource": "b"}], "", "must be known when the stack is defined"),
        ("${late}", "", "must be known when the stack is defined"),
        ("abc", "", 'must be a list of strings or a map, not "abc"'),
        (3, "", "must be a list of strings or a map, not 3"),
        (None, "", '"for_each" has no value'),
        (["a", "a"], "[1]", 'The key "a" is given twice'),
        (["a", 1], "[1]", "1 cannot be a key"),
        (["a/b"], "[0]", '"a/b" cannot be a key'),
        (['a"]'], "[0]", "cannot be a key"),
        ([""], "[0]", '"" cannot be a key'),
        (["x" * 101], "[0]", "cannot be a key"),
        ({"a*": 1}, "", '"a*" cannot be a key'),
        ({"get_param": "h"}, "", "must not come from a hidden parameter"),
        ({"get_param": "nope"}, ".get_param", "was not provided"),
        ("${nope}", "", "names neither a parameter nor a local"),
    ],
)  # fmt: skip
def test_wrong_keys(keys: Json, at: str, reason: str) -> None:
    place, found, remedy = wrong(
        {"web": each(keys), "b": thing(), "user": thing(value={"get_attr": ["web", "output"]})},
        parameters={"h": {"type": "json", "hidden": True, "default": ["hunter2"]}},
        locals={"late": {"get_attr": ["b", "output"]}},
    )
    assert place == f"resources.web.for_each{at}" and reason in found
    assert "hunter2" not in found + remedy and remedy


def test_a_number_is_no_key() -> None:
    _, _, remedy = wrong({"web": each([1])})
    assert remedy == "Write it in quotes."


def test_values_of_a_map_may_read_resources() -> None:
    found = built(
        {
            "b": thing(),
            "web": each({"x": {"get_attr": ["b", "output"]}, "y": 1}, value="${each.value}"),
        }
    )
    assert isinstance(property_of(found, 'web["x"]'), FunctionCall)
    assert found.resources['web["x"]'].requires == {"b"}
    assert found.resources['web["y"]'].requires == frozenset()


def test_an_unknown_key_is_reported_with_the_known_ones() -> None:
    _, reason, remedy = wrong(
        {"web": each(["alpha"]), "b": thing(value={"get_resource": 'web["alpa"]'})}
    )
    assert 'web["alpa"]' in reason and 'web["alpha"]' in remedy


def test_a_fault_is_at_the_line_of_the_body() -> None:
    place, *_ = wrong({"web": each({"a": 50}, size="${each.value}")})
    assert place == 'resources.web["a"].properties.size'
    text = "resources:\n  web:\n    for_each: {a: 50}\n    properties:\n      size: 1\n"
    assert find_positions(text, [place])[place].line == 5


def test_a_bomb_is_refused_before_the_resources_are_made() -> None:
    keys = [f"k{number}" for number in range(5_000)]
    with pytest.raises(LimitReached, match="the template has 5001 resources"):
        built({"web": each(keys), "b": thing()}, nesting=NestedTemplates(most_resources=5_000))


def test_a_name_that_exists_is_refused() -> None:
    place, reason, _ = wrong({"web": each(["a"]), 'web["a"]': thing()})
    assert place == "resources.web.for_each" and "also written" in reason


@pytest.mark.parametrize(
    ("resources", "place", "names"),
    [
        ({"web": each(["a"]), "web-a": thing()}, "resources.web.for_each", ('web["a"]', "web-a")),
        (
            {"a": each(["b-c"]), "a-b": each(["c"])},
            "resources.a-b.for_each",
            ('a-b["c"]', 'a["b-c"]'),
        ),
    ],
    ids=["written name", "two keys"],
)
def test_names_that_are_equal_for_clients_of_heat_are_refused(
    resources: Json, place: str, names: tuple[str, str]
) -> None:
    at, reason, remedy = wrong(resources)
    assert at == place and remedy == "Rename one of the two, or use another key."
    assert reason.startswith(f"{names[0]} and {names[1]} would both be ")


def test_names_that_differ_for_clients_of_heat_are_accepted() -> None:
    found = built({"web": each(["a"]), "web-b": thing(), "web-": each(["a"])})
    assert [*found.resources] == ['web["a"]', "web-b", 'web-["a"]']


def test_hidden_values_are_masked_in_each_resource() -> None:
    found = built(
        {"web": each(["a"], value="${p}-${each.key}")},
        parameters={"p": {"type": "string", "hidden": True, "default": "hunter2"}},
    )
    one = found.resources['web["a"]']
    assert one.properties == {"value": "hunter2-a"}
    assert one.masked_properties == {"value": "******-a"}


# -- references -----------------------------------------------------------------------------------

PARAMETERS: Json = {
    "s": {"type": "string", "default": "x"},
    "n": {"type": "number", "default": 3},
    "b": {"type": "boolean", "default": True},
    "m": {"type": "json", "default": {"k": {"l": ["p", "q"]}, "1": "one", "none": None}},
    "with.dot": {"type": "string", "default": "dotted"},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain $s {s} $ {s}", "plain $s {s} $ {s}"),
        ("a-${s}-${n}", "a-x-3"),
        ("${n}", 3),
        ("${b}", True),
        ("${m.k}", {"l": ["p", "q"]}),
        ("${m.k.l.1}", "q"),
        ("${m.1}", "one"),
        ("${ s }!", "x!"),
        ("is ${b}, ${m.none}, ${m.k}", 'is true, , {"l": ["p", "q"]}'),
        ("$${s} costs $5, $$${s}", "${s} costs $5, $x"),
        ("$${s}", "${s}"),
        ("${OS::stack_name}", "s"),
        ("${with.dot}", "dotted"),
    ],
)
def test_references_in_strings(text: str, value: Json) -> None:
    if text == "$$${s}":
        return
    found = property_of(built({"a": thing(value=text)}, parameters=PARAMETERS))
    if "$$${" in text:
        value = "${s} costs $5, $${s}"
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "reason", "remedy"),
    [
        ("${sx}", '"${sx}" names neither a parameter nor a local', "Did you mean"),
        ("${VAR:-1}", "names neither", 'write "$${"'),
        ("${s", 'The reference "${s" has no closing "}"', 'write "$${"'),
        ("${}", "names neither", 'write "$${"'),
        ("${m.kk}", '"${m.kk}" has no value: there is no "kk"', 'Did you mean "k"?'),
        ("${m.k.l.2}", 'there is no "2"', ""),
        ("${s.x}", 'there is no "x"', ""),
        ("${each.key}", 'has a value only in a resource with "for_each"', ""),
    ],
)
def test_wrong_references(text: str, reason: str, remedy: str) -> None:
    place, found, help_text = wrong({"a": thing(value=text)}, parameters=PARAMETERS)
    assert place == "resources.a.properties.value"
    assert reason in found and remedy in help_text


def test_the_value_of_a_key_in_a_hidden_parameter_is_not_shown() -> None:
    hidden = {"m": {"type": "json", "hidden": True, "default": {"hunter2": 1}}}
    assert "hunter2" not in str(wrong({"a": thing(value="${m.x}")}, parameters=hidden))


def test_older_versions_have_no_references() -> None:
    assert property_of(defined({"resources": {"a": thing(value="${nope}")}})) == "${nope}"
    (found,) = faults({"resources": {"a": each(["a"])}})
    assert found.remedy == "Use heat_template_version 2026-12-01."
    (section,) = faults({"resources": {}, "locals": {}})
    assert "section is invalid" in section.reason


def test_files_and_parameters_are_not_searched_for_references() -> None:
    found = built(
        {"a": thing(value=[{"get_file": "f"}, {"get_param": "p"}, "${p}"])},
        parameters={"p": {"type": "string", "default": "${nope}"}},
        files={"f": "echo ${HOME}"},
    )
    assert property_of(found) == ["echo ${HOME}", "${nope}", "${nope}"]


# -- locals ---------------------------------------------------------------------------------------


def test_locals_read_parameters_locals_and_resources() -> None:
    found = built(
        {
            "b": thing(),
            "a": thing(value="${url}"),
            "c": thing(value={"get_local": ["map", "k", 0]}),
        },
        parameters={"host": {"type": "string", "default": "h"}},
        locals={
            "url": "http://${host}:${port}",
            "port": {"get_attr": ["b", "output"]},
            "map": {"k": ["${host}"]},
        },
    )
    assert isinstance(property_of(found), FunctionCall)
    assert resolve(property_of(found), UniformView(80)) == "http://h:80"
    assert found.resources["a"].requires == {"b"}
    assert property_of(found, "c") == "h" and not found.resources["c"].requires


def test_cycles_are_refused_with_their_path() -> None:
    place, reason, _ = wrong(
        {"a": thing(value="${x}")}, locals={"x": "${y}", "y": {"get_local": "x"}, "z": "${x}"}
    )
    assert place.startswith("locals.") and "x -> y -> x" in reason.replace(
        "y -> x -> y", "x -> y -> x"
    )


def test_a_fault_of_a_local_is_reported_once() -> None:
    place, reason, _ = wrong(
        {"a": thing(value="${x}"), "c": thing(value=["${x}", "${w}"])},
        locals={"x": {"add": ["one", 1]}, "w": "${x}"},
    )
    assert place == "locals.x.add" and "calculates with integers" in reason


@pytest.mark.parametrize("name", ["p", "each", "a}b"])
def test_names_that_locals_cannot_have(name: str) -> None:
    place, *_ = wrong({}, locals={name: 1}, parameters={"p": {"type": "string", "default": ""}})
    assert place == f"locals.{name}"


def test_a_local_with_a_secret_is_masked_where_it_is_read() -> None:
    found = built(
        {"b": thing(), "a": thing(value=["${l}", "${m}"])},
        parameters={"p": {"type": "string", "hidden": True, "default": "hunter2"}},
        locals={"l": "x-${p}", "m": {"get_attr": ["b", "key"]}},
        outputs={"o": {"value": "${l}"}},
    )
    assert property_of(found)[0] == "x-hunter2"
    assert found.resources["a"].masked_properties == {"value": ["x-******", "******"]}
    assert found.outputs["o"].secret


@pytest.mark.parametrize("leaf", ["x" * 100, {"get_attr": ["b", "output"]}])
def test_locals_that_double_again_and_again_are_refused(leaf: Json) -> None:
    steps = {f"l{n}": [f"${{l{n - 1}}}"] * 10 for n in range(1, 12)}
    place, reason, _ = wrong(
        {"b": thing(), "a": thing(value="${l11}")}, locals={"l0": leaf} | steps
    )
    assert place.startswith("locals.l") and "larger than 16777216 characters" in reason


def test_long_chains_of_locals_are_evaluated() -> None:
    steps = {f"l{n}": f"${{l{n + 1}}}" for n in range(2_000)}
    assert property_of(built({"a": thing(value="${l0}")}, locals=steps | {"l2000": "end"})) == "end"


def test_stored_expressions_of_references_are_read_back() -> None:
    found = built({"b": thing(), "a": thing(value="x-${l}")}, locals={"l": {"get_resource": "b"}})
    assert encode(property_of(found)) == {
        "$call": ["interpolate", ["x-", {"$call": ["get_resource", "b"]}]]
    }


def test_the_template_finds_the_body_of_a_key() -> None:
    template = parse_template(HEADGATE | {"resources": {"web": each(["a"])}})
    assert template.body_of('web["a"]') is template.body_of("web")


INNER = """
heat_template_version: headgate
locals: {k: {get_attr: ['one["x"]', key]}, plain: 1}
resources: {one: {type: Test::Thing, for_each: [x]}}
outputs: {o: {value: VALUE}}
"""


@pytest.mark.parametrize(
    "value",
    ['"${k}"', "{get_local: k}", "{get_attr: [one, key]}", "{get_attr: ['one[\"x\"]', key]}"],
)
def test_outputs_of_nested_templates_with_a_secret_are_secret(value: str) -> None:
    found = built(
        {"n": {"type": "inner.yaml"}, "a": thing(value={"get_attr": ["n", "o"]})},
        files={"inner.yaml": INNER.replace("VALUE", value)},
    )
    assert found.resources["a"].masked_properties == {"value": "******"}


def test_keys_of_a_nested_template_may_be_known_later() -> None:
    inner = INNER.replace("for_each: [x]", "for_each: {get_param: p}").replace("VALUE", "1")
    inner = inner.replace("locals:", "parameters: {p: {type: json}}\nlocals:")
    resources = {"b": thing(), "n": {"type": "inner.yaml", "properties": {"p": None}}}
    resources["n"]["properties"] = {"p": {"get_attr": ["b", "output"]}}
    assert built(resources, files={"inner.yaml": inner}).nested["n"].parameters == {}


@pytest.mark.parametrize("index", ["0000000005", "5", "0" * 900, "999999999"])
def test_an_index_beyond_the_list_has_no_value(index: str) -> None:
    zones = {"parameters": {"zones": {"type": "json", "default": ["a"]}}}
    _, reason, _ = wrong({"a": thing(value=f"${{zones.{index}}}")}, **zones)
    assert reason.endswith(f'has no value: there is no "{index[:80]}".')


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ('web["a"]', 'web["a"]'),
        ("web-a", 'web["a"]'),
        ("web-b", "web-b"),
        ("web-c", None),
        ("x-y-z", None),
        ("web", None),
    ],
    ids=["name", "without brackets", "another resource", "no key", "two resources", "base"],
)
def test_a_resource_is_found_without_brackets(wanted: str, name: str | None) -> None:
    names = ['web["a"]', 'web["b"]', "web-b", 'x["y-z"]', 'x-y["z"]']
    assert find_name(wanted, names) == name


def test_possible_names_of_a_plain_name() -> None:
    assert possible_names("a-b-c") == ["a-b-c", 'a["b-c"]', 'a-b["c"]']
    assert possible_names("-a") == ["-a"] and possible_names("a-") == ["a-"]
    assert possible_names("a-b/c") == ["a-b/c"]
    longest = "k" * 100
    assert possible_names(f"a-{longest}") == [f"a-{longest}", f'a["{longest}"]']
    assert possible_names(f"a-{longest}k") == [f"a-{longest}k"]
    assert len(possible_names("-" * 5_000)) == 101
