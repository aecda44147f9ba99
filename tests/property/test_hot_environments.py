"""What must hold of environments for any input: merging, the registry, nested templates."""

import json
from copy import deepcopy

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.errors import Findings, Invalid
from engine.hot.environment.environment import parse_environment
from engine.hot.environment.merging import merge_files, merge_into_stored
from engine.hot.environment.registry import CircularAlias
from engine.hot.schema.parameters import ParameterKind, ParameterSchema, convert
from engine.words import Json
from tests.unit.hot.hot_support import defined

KINDS = {kind.value[0]: kind for kind in ParameterKind}
SCHEMAS = {name: ParameterSchema(name, kind) for name, kind in KINDS.items()}
LEAVES = st.none() | st.integers(0, 3) | st.sampled_from(["", "x", "y"])
DEEP = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("pq"), inner),
    max_leaves=5,
)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "s": st.sampled_from(["", "a", "b"]),
        "n": st.integers(0, 5),
        "c": st.lists(st.sampled_from("ab"), max_size=2) | st.sampled_from(["", "a", "a,b"]),
        "j": st.dictionaries(st.sampled_from("pq"), DEEP),
    },
)
NAMES = st.sampled_from(["A", "AB", "A::C", "A*", "A::*", "B", "B*"])
TARGETS = st.sampled_from(["T", "U", "A", "AB", "B", "n.yaml", None]) | st.just("B*")
RESOURCES = st.dictionaries(
    st.sampled_from("rs"),
    st.dictionaries(st.sampled_from(["A", "B"]), st.sampled_from(["T", "U"]), max_size=2),
    max_size=2,
)
REGISTRIES = st.builds(
    lambda mapped, resources: mapped | ({"resources": resources} if resources else {}),
    st.dictionaries(NAMES, TARGETS, max_size=4),
    RESOURCES,
)
DOCUMENTS = st.fixed_dictionaries(
    {},
    optional={"parameters": VALUES, "parameter_defaults": VALUES, "resource_registry": REGISTRIES},
)


def merged(*documents: Json, strategy: str = "overwrite") -> Json:
    findings = Findings()
    strategies = {"parameter_merge_strategies": {"default": strategy}}
    files = [(f"{number}.yaml", one | strategies) for number, one in enumerate(documents)]
    found = merge_files(files, SCHEMAS, findings)
    assert findings.all == []
    return found


def removed_by_star(document: Json) -> bool:
    registry = document.get("resource_registry", {})
    return any(name.endswith("*") and target is None for name, target in registry.items())


def plain(document: Json) -> Json:
    """Empty sections say nothing; values as functions see them."""
    shown = {name: value for name, value in document.items() if value}
    for section in ("parameters", "parameter_defaults"):
        if section in shown:
            shown[section] = {
                name: convert(KINDS[name], value) for name, value in shown[section].items()
            }
    return shown


@pytest.mark.parametrize("strategy", ["overwrite", "merge", "deep_merge"])
@given(DOCUMENTS, DOCUMENTS, DOCUMENTS)
def test_merging_is_associative(strategy: str, one: Json, two: Json, three: Json) -> None:
    before = deepcopy([one, two, three])
    # What a star took away is forgotten where a later one maps the same star.
    assume(not any(removed_by_star(document) for document in before))
    left = merged(merged(one, two, strategy=strategy), three, strategy=strategy)
    right = merged(one, merged(two, three, strategy=strategy), strategy=strategy)
    merged_at_once = merged(one, two, three, strategy=strategy)
    if strategy != "deep_merge":  # where kinds differ, it matters which two are joined first
        assert plain(left) == plain(right)
    assert plain(left) == plain(merged_at_once)
    assert [one, two, three] == before


@given(DOCUMENTS)
def test_an_empty_environment_changes_nothing(document: Json) -> None:
    assert plain(merged(document)) == plain(merged(document, {})) == plain(merged({}, document))
    assert merge_into_stored(document, {}) == merge_into_stored({}, document) == document


@given(DOCUMENTS, DOCUMENTS, DOCUMENTS)
def test_additions_are_merged_in_order(one: Json, two: Json, three: Json) -> None:
    assume(not any(removed_by_star(document) for document in (one, two, three)))
    assert merge_into_stored(merge_into_stored(one, two), three) == merge_into_stored(
        one, merge_into_stored(two, three)
    )


@given(DOCUMENTS, DOCUMENTS)
def test_the_later_environment_has_priority(one: Json, two: Json) -> None:
    result = merged(one, two)
    for section in ("parameters", "parameter_defaults"):
        assert two.get(section, {}).items() <= result.get(section, {}).items()
    assert two.get("resource_registry", {}).items() <= result.get("resource_registry", {}).items()


@given(REGISTRIES, REGISTRIES, NAMES, st.sampled_from("rsx"))
def test_the_target_of_a_name_does_not_depend_on_the_order_of_keys(
    user: Json, operator: Json, name: str, resource: str
) -> None:
    ends = []
    for turned in (dict, lambda registry: dict(reversed(registry.items()))):
        try:
            remaining = parse_environment({"resource_registry": turned(operator)}, operator=None)
            document = {"resource_registry": turned(user)}
            registry = parse_environment(document, remaining.registry).registry
            found = registry.find(name, resource, {"T", "U"})
        except (Invalid, CircularAlias):
            ends.append("refused")
            continue
        ends.append(found.type if found else "nowhere")
        # An end is an end.
        if found is not None and found.type in "TU" and found.type not in user | operator:
            again = registry.find(found.type, resource, {"T", "U"})
            assert again is not None and again.type == found.type
    assert ends[0] == ends[1] and ends[0] in ("refused", "nowhere", "T", "U", "n.yaml")


TEMPLATES = st.builds(
    lambda types, version: json.dumps(
        {
            "heat_template_version": version,
            "resources": {f"r{number}": {"type": one} for number, one in enumerate(types)},
        }
    ),
    st.lists(st.sampled_from(["a.yaml", "b.yaml", "c.yaml", "Test::Thing"]), max_size=3),
    st.sampled_from(["2018-08-31"] * 9 + ["nonsense"]),
)


@given(TEMPLATES, TEMPLATES)
def test_recursive_templates_end(one: str, two: str) -> None:
    """They are accepted, or refused with places that lead into the files, as far as one looks."""
    files = {"a.yaml": one, "b.yaml": two}
    try:
        stack = defined({"resources": {"top": {"type": "a.yaml"}}}, files=files)
    except Invalid as error:
        *found, last = error.findings
        found += [] if "the check stopped there" in last.reason else [last]
        assert all(one.place.startswith("resources.top") for one in found)
    else:
        assert stack.nested["top"].kind.file == "a.yaml"
