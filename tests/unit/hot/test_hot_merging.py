"""Merging of environments: files in order, and additions to the environment of a stack."""

from typing import Any

import pytest

from engine.errors import Finding, Findings
from engine.hot.environment.merging import merge_files, merge_into_stored
from engine.hot.schema.parameters import ParameterKind, ParameterSchema
from engine.words import Json

KINDS = {
    "s": ParameterKind.STRING,
    "n": ParameterKind.NUMBER,
    "l": ParameterKind.LIST,
    "j": ParameterKind.JSON,
    "b": ParameterKind.BOOLEAN,
}
SCHEMAS = {name: ParameterSchema(name, kind) for name, kind in KINDS.items()}
SECRET = SCHEMAS | {"n": ParameterSchema("n", ParameterKind.NUMBER, hidden=True)}


def environment(strategies: dict[str, str] | None = None, **parameters: Json) -> dict[str, Json]:
    document: dict[str, Json] = {"parameters": parameters}
    return document | ({"parameter_merge_strategies": strategies} if strategies else {})


def merged(*documents: dict[str, Json], schemas: Any = SCHEMAS) -> tuple[Json, list[Finding]]:
    findings = Findings()
    files = [(f"{number}.yaml", one) for number, one in enumerate(documents)]
    return merge_files(files, schemas, findings), findings.all


MERGE, DEEP = {"default": "merge"}, {"default": "deep_merge"}
MAP = {"a": {"x": "1"}, "l": [1], "s": "p", "n": 1}
LATER = {"a": {"y": "2"}, "l": [2], "s": "q", "n": 2, "z": None}


@pytest.mark.parametrize(
    ("strategies", "name", "first", "second", "together"),
    [
        # as in Heat
        (None, "s", "a", "b", "b"),
        (MERGE, "s", "a", "b", "ab"),
        (DEEP, "s", "a", "b", "ab"),
        (MERGE, "l", ["a"], ["b"], ["a", "b"]),
        (MERGE, "l", "a", "b", "a,b"),
        (MERGE, "l", "", "b", "b"),
        (DEEP, "l", ["a"], ["a"], ["a", "a"]),
        (MERGE, "j", MAP, LATER, {"a": {"y": "2"}, "l": [2], "s": "q", "n": 2}),
        (DEEP, "j", MAP, LATER, {"a": {"x": "1", "y": "2"}, "l": [1, 2], "s": "pq", "n": 2}),
        (MERGE, "j", {"a": 1}, '{"b": 2}', {"a": 1, "b": 2}),
        (MERGE, "j", {"a": 1}, {}, {"a": 1}),
        (MERGE, "j", {"a": "x", "b": [1]}, {"a": ["y"], "b": "t"}, {"a": ["y"], "b": "t"}),
        (MERGE, "j", {"a": None}, {"a": "x"}, {"a": "x"}),
        (MERGE, "j", {}, {"a": None}, {"a": None}),
        (MERGE, "s", "a", None, "a"),
        (None, "s", "a", None, "a"),
        # Heat fails with an internal error
        (MERGE, "n", 1, 2, 3),
        (MERGE, "n", 1, "1.5", 2.5),
        (MERGE, "l", ["a"], "b,c", ["a", "b", "c"]),
        (MERGE, "l", "a", ["b"], ["a", "b"]),
        (MERGE, "j", '{"a": 1}', '{"b": 2}', {"a": 1, "b": 2}),
        (MERGE, "j", [1], [2], [1, 2]),
        (MERGE, "j", {"a": 1}, "", {"a": 1}),
        (MERGE, "s", 1, 2, "12"),
        (MERGE, "s", None, "c", "c"),
        (DEEP, "j", {"a": "x", "c": {"d": 1}}, {"a": ["y"], "c": 3}, {"a": ["y"], "c": 3}),
        (DEEP, "j", {"a": None, "b": 1}, {"a": "x", "b": "y"}, {"a": "x", "b": "y"}),
        # Heat returns "12", and "a,"
        (MERGE, "n", "1", "2", 3),
        (MERGE, "l", "a", "", "a"),
    ],
)
@pytest.mark.parametrize("section", ["parameters", "parameter_defaults"])
def test_two_values_of_a_parameter_are_merged(
    section: str, strategies: dict[str, str], name: str, first: Json, second: Json, together: Json
) -> None:
    documents = [
        {section: {name: value}}
        | ({"parameter_merge_strategies": strategies} if strategies else {})
        for value in (first, second)
    ]
    assert merged(*documents) == ({section: {name: together}}, [])
    assert [one[section][name] for one in documents] == [first, second]  # left unchanged


@pytest.mark.parametrize(
    ("documents", "value"),
    [
        # The first file that has the parameter determines its strategy ...
        ([environment(s="a"), environment(MERGE, s="b")], "b"),
        ([environment({"s": "merge"}, s="a"), environment(s="b")], "ab"),
        ([environment({"s": "merge"}, s="a"), environment({"default": "overwrite"}, s="b")], "ab"),
        ([environment({"default": "merge"}, s="a"), environment(DEEP, s="b")], "ab"),
        ([environment(MERGE, n=1), environment(DEEP, s="a"), environment(s="b")], "ab"),
        # ... and a strategy of the parameter overrides the default.
        ([environment({"s": "overwrite", "default": "merge"}, s="a"), environment(s="b")], "b"),
        ([environment(MERGE, s="a"), environment(s="b"), environment(MERGE, s="c")], "abc"),
        # Strategies of a file that does not have the parameter are ignored.
        ([environment(MERGE), environment(s="a"), environment(s="b")], "b"),
    ],
)
def test_the_strategy_of_the_first_file_applies(
    documents: list[dict[str, Json]], value: str
) -> None:
    document, findings = merged(*documents)
    assert (document["parameters"]["s"], findings) == (value, [])
    assert "parameter_merge_strategies" not in document


@pytest.mark.parametrize(
    ("documents", "place", "code", "reason"),
    [
        (
            [environment({"s": "merge"}, s="a"), environment({"s": "deep_merge"}, s="b")],
            "1.yaml: parameter_merge_strategies.s",
            "ConflictingMergeStrategyForParam",
            "Conflicting merge strategy 'deep_merge' for parameter 's' in file '1.yaml'.",
        ),
        (
            [environment(s="a"), environment({"s": "merge"}, s="b")],
            "1.yaml: parameter_merge_strategies.s",
            "ConflictingMergeStrategyForParam",
            "Conflicting merge strategy 'merge' for parameter 's' in file '1.yaml'.",
        ),
        (
            [environment(MERGE, b=True), environment(b=False)],
            "1.yaml: parameters.b",
            "InvalidMergeStrategyForParam",
            "Invalid merge strategy 'merge' for parameter 'b'.",
        ),
        (
            [environment(MERGE, n="x"), environment(n=1)],
            "1.yaml: parameters.n",
            "StackValidationFailed",
            'Cannot be merged: "x" is not a number',
        ),
        (
            [environment(MERGE, j="{"), environment(j={})],
            "1.yaml: parameters.j",
            "StackValidationFailed",
            "valid JSON",
        ),
        (
            [environment(MERGE, n=1e308), environment(n=1e308)],
            "1.yaml: parameters.n",
            "StackValidationFailed",
            "too large",
        ),
        (
            [environment(MERGE, s=["a"]), environment(s="b")],
            "1.yaml: parameters.s",
            "StackValidationFailed",
            "a string",
        ),
        (
            [environment(DEEP, j='{"a":' * 900 + "1" + "}" * 900)] * 2,
            "1.yaml: parameters.j",
            "StackValidationFailed",
            "nested too deeply",
        ),
    ],
)
def test_values_that_cannot_be_merged_are_refused(
    documents: list[dict[str, Json]], place: str, code: str, reason: str
) -> None:
    _, (finding,) = merged(*documents)
    assert (finding.place, finding.code) == (place, code) and reason in finding.reason


def test_all_merge_errors_are_reported_with_remedies() -> None:
    _, findings = merged(
        environment(MERGE, b=True, s="a"), environment({"s": "overwrite"}, b=True, s="b")
    )
    assert [one.remedy for one in findings] == [
        "A boolean can only be replaced: use overwrite.",
        "The first file that has it merges it by merge; name one strategy in all.",
    ]


def test_a_hidden_value_that_cannot_be_merged_is_not_shown() -> None:
    _, (finding,) = merged(environment(MERGE, n="planted"), environment(n=1), schemas=SECRET)
    assert "planted" not in str(finding)


def test_unknown_parameters_are_reported_for_the_first_file_only() -> None:
    document, findings = merged(environment(x="a"), environment(y="b", s="c"))
    assert (document["parameters"], findings) == ({"x": "a", "s": "c"}, [])


def test_other_sections_are_merged() -> None:
    first = {
        "parameters": {"s": "a"},
        "hooks": [{"at": "a"}],
        "encrypted_param_names": ["a"],
        "event_sinks": [1],
        "resource_registry": {"A": "B", "C": "D", "resources": {"r": {"hooks": "pre-create"}}},
    }
    second = {
        "hooks": [{"at": "b"}],
        "encrypted_param_names": ["b"],
        "event_sinks": [2],
        "resource_registry": {"A": "X", "resources": {"s": {}}},
    }
    assert merged(first, second) == (
        {
            "parameters": {"s": "a"},
            "hooks": [{"at": "a"}, {"at": "b"}],
            "encrypted_param_names": ["a", "b"],
            "event_sinks": [1, 2],
            "resource_registry": {"A": "X", "C": "D", "resources": {"s": {}}},
        },
        [],
    )


NULLS: list[tuple[dict[str, Json], ...]] = [
    ({"A": "B"}, {"A": None}, {"A": None}),
    ({"A::B": "X", "A::C*": "Y", "B": "Z"}, {"A::*": None}, {"B": "Z", "A::*": None}),
    ({"A": None}, {"A": "B"}, {"A": "B"}),
    ({"A*": None}, {"AB": "C"}, {"A*": None, "AB": "C"}),
    # the key `resources` is not a type
    ({"r": "B", "resources": {"a": {"r": "C"}}}, {"r*": None},
     {"resources": {"a": {"r": "C"}}, "r*": None}),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "registry"), NULLS)
def test_null_removes_an_earlier_mapping(
    before: dict[str, Json], after: dict[str, Json], registry: dict[str, Json]
) -> None:
    first, second = {"resource_registry": before}, {"resource_registry": after}
    assert merged(first, second)[0] == {"resource_registry": registry}
    assert merge_into_stored(first, second) == {"resource_registry": registry}


def test_additions_to_a_stack_are_merged_per_resource() -> None:
    stored = {
        "parameters": {"a": 1, "b": {"x": 1}},
        "event_sinks": [1],
        "resource_registry": {
            "resources": {
                "db": {"hooks": {"on": "pre-update"}, "OS::A": "X", "in": {"hooks": "pre-create"}},
                "web": {"hooks": "pre-create"},
            }
        },
    }
    sent = {
        "parameters": {"b": {"y": 2}},
        "parameter_defaults": {"c": 3},
        "parameter_merge_strategies": {"b": "merge"},
        "event_sinks": [2],
        "resource_registry": {
            "resources": {"db": {"hooks": {"mode": "wait"}, "OS::A": None, "in": {"OS::B": "Y"}}}
        },
    }
    assert merge_into_stored(stored, sent) == {
        "parameters": {"a": 1, "b": {"y": 2}},
        "parameter_defaults": {"c": 3},
        "event_sinks": [1, 2],
        "resource_registry": {
            "resources": {
                "db": {
                    "hooks": {"mode": "wait"},
                    "OS::A": None,
                    "in": {"hooks": "pre-create", "OS::B": "Y"},
                },
                "web": {"hooks": "pre-create"},
            }
        },
    }


def test_later_keys_of_convergence_win() -> None:
    first = {"convergence": {"observe": "never", "ignore": {"a": ["b"]}}}
    second = {"convergence": {"observe": {"every": "1h"}}}
    both = {"convergence": {"observe": {"every": "1h"}, "ignore": {"a": ["b"]}}}
    assert merged(first, second) == (both, [])
    assert merge_into_stored(first, second) == both
    assert merge_into_stored(first, {}) == first
