"""Functions in `depends_on`, in templates of version 2026-12-01."""

import pytest

from engine.words import Json
from tests.unit.hot.hot_support import defined, faults, thing

PARAMETERS = {
    "names": {"type": "comma_delimited_list", "default": "b,c"},
    "one": {"type": "string", "default": "b"},
    "key": {"type": "string", "hidden": True, "default": "b"},
    "on": {"type": "boolean", "default": False},
}


def template(depends_on: Json, **more: Json) -> Json:
    resources = {"a": thing() | {"depends_on": depends_on}, "b": thing(), "c": thing()}
    return {
        "heat_template_version": "2026-12-01", "parameters": PARAMETERS, "resources": resources,
        "conditions": {"on": {"get_param": "on"}},
    } | more  # fmt: skip


@pytest.mark.parametrize(
    ("depends_on", "names"),
    [
        ("b", "b"),
        ({"get_param": "one"}, "b"),
        ({"get_param": "names"}, "b c"),
        (["c", {"get_param": "one"}], "b c"),
        ([{"get_param": "names"}], "b c"),
        ([{"if": ["on", "b"]}, "c"], "c"),
        ({"if": ["on", ["b", "c"]]}, ""),
        ({"str_split": [" ", "b c"]}, "b c"),
    ],
)
def test_functions_give_names(depends_on: Json, names: str) -> None:
    found = defined(template(depends_on)).resources["a"]
    assert found.requires == {*names.split()} and found.reads == frozenset()


@pytest.mark.parametrize(
    ("depends_on", "part", "remedy"),
    [
        ({"get_param": "nam"}, "Parameter (nam) was not provided", '"names"?'),
        ([{"list_join": ["", ["b", "x"]]}], '"bx" (in a) is incorrect', 'Did you mean "b"?'),
        ({"get_attr": ["b", "output"]}, "known when the stack is defined", "parameters only"),
        ({"x": 1}, "known when the stack is defined", "parameters only"),
        ({"get_param": "key"}, "hidden parameter", "not hidden"),
    ],
)
def test_faults_have_a_remedy(depends_on: Json, part: str, remedy: str) -> None:
    (fault,) = faults(template(depends_on))
    assert fault.place.startswith("resources.a.depends_on")
    assert part in fault.reason and remedy in fault.remedy


def test_earlier_versions_take_names_only() -> None:
    written = template({"get_param": "one"}, heat_template_version="2021-04-16")
    written["resources"]["a"] = thing() | {"depends_on": {"get_param": "one"}}
    found = faults(written)
    assert any("depends_on" in one.reason and "must be" in one.reason for one in found)
