"""Several environments become one: files in their order, and additions to what a stack has."""

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


def said(strategies: dict[str, str] | None = None, **parameters: Json) -> dict[str, Json]:
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
        # The same as Heat.
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
        # Heat ends in an error of its own.
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
        # Heat gives "12", and "a,".
        (MERGE, "n", "1", "2", 3),
        (MERGE, "l", "a", "", "a"),
    ],
)
@pytest.mark.parametrize("section", ["parameters", "parameter_defaults"])
def test_two_values_of_a_parameter(
    section: str, strategies: dict[str, str], name: str, first: Json, second: Json, together: Json
) -> None:
    documents = [
        {section: {name: value}}
        | ({"parameter_merge_strategies": strategies} if strategies else {})
        for value in (first, second)
    ]
    assert merged(*documents) == ({section: {name: together}}, [])
    assert [one[section][name] for one in documents] == [first, second]  # left as they were


@pytest.mark.parametrize(
    ("documents", "value"),
    [
        # The first file that has the parameter says how it is merged ...
        ([said(s="a"), said(MERGE, s="b")], "b"),
        ([said({"s": "merge"}, s="a"), said(s="b")], "ab"),
        ([said({"s": "merge"}, s="a"), said({"default": "overwrite"}, s="b")], "ab"),
        ([said({"default": "merge"}, s="a"), said(DEEP, s="b")], "ab"),
        ([said(MERGE, n=1), said(DEEP, s="a"), said(s="b")], "ab"),
        # ... and what is said of one parameter is stronger than the default.
        ([said({"s": "overwrite", "default": "merge"}, s="a"), said(s="b")], "b"),
        ([said(MERGE, s="a"), said(s="b"), said(MERGE, s="c")], "abc"),
        # Strategies of a file that has no such parameter are of no concern.
        ([said(MERGE), said(s="a"), said(s="b")], "b"),
    ],
)
def test_strategies_of_files(documents: list[dict[str, Json]], value: str) -> None:
    document, findings = merged(*documents)
    assert (document["parameters"]["s"], findings) == (value, [])
    assert "parameter_merge_strategies" not in document


@pytest.mark.parametrize(
    ("documents", "place", "code", "reason"),
    [
        (
            [said({"s": "merge"}, s="a"), said({"s": "deep_merge"}, s="b")],
            "1.yaml: parameter_merge_strategies.s",
            "ConflictingMergeStrategyForParam",
            "Conflicting merge strategy 'deep_merge' for parameter 's' in file '1.yaml'.",
        ),
        (
            [said(s="a"), said({"s": "merge"}, s="b")],
            "1.yaml: parameter_merge_strategies.s",
            "ConflictingMergeStrategyForParam",
            "Conflicting merge strategy 'merge' for parameter 's' in file '1.yaml'.",
        ),
        (
            [said(MERGE, b=True), said(b=False)],
            "1.yaml: b",
            "InvalidMergeStrategyForParam",
            "Invalid merge strategy 'merge' for parameter 'b'.",
        ),
        (
            [said(MERGE, n="x"), said(n=1)],
            "1.yaml: n",
            "StackValidationFailed",
            "Cannot be merged: could not convert string to float: 'x'",
        ),
        ([said(MERGE, j="{"), said(j={})], "1.yaml: j", "StackValidationFailed", "valid JSON"),
        ([said(MERGE, n=1e308), said(n=1e308)], "1.yaml: n", "StackValidationFailed", "too large"),
        ([said(MERGE, s=["a"]), said(s="b")], "1.yaml: s", "StackValidationFailed", "a string"),
        (
            [said(DEEP, j='{"a":' * 900 + "1" + "}" * 900)] * 2,
            "1.yaml: j",
            "StackValidationFailed",
            "nested too deeply",
        ),
    ],
)
def test_what_cannot_be_merged(
    documents: list[dict[str, Json]], place: str, code: str, reason: str
) -> None:
    _, (finding,) = merged(*documents)
    assert (finding.place, finding.code) == (place, code) and reason in finding.reason


def test_all_that_cannot_be_merged_is_told_with_a_remedy() -> None:
    _, findings = merged(said(MERGE, b=True, s="a"), said({"s": "overwrite"}, b=True, s="b"))
    assert [one.remedy for one in findings] == [
        "A boolean can only be replaced: use overwrite.",
        "The first file that has it merges it by merge; name one strategy in all.",
    ]


def test_a_hidden_value_that_cannot_be_merged_is_not_shown() -> None:
    _, (finding,) = merged(said(MERGE, n="planted"), said(n=1), schemas=SECRET)
    assert "planted" not in str(finding)


def test_names_that_no_template_has_count_in_the_first_file_only() -> None:
    document, findings = merged(said(x="a"), said(y="b", s="c"))
    assert (document["parameters"], findings) == ({"x": "a", "s": "c"}, [])


def test_the_other_sections() -> None:
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
    # The key `resources` is no type.
    ({"r": "B", "resources": {"a": {"r": "C"}}}, {"r*": None},
     {"resources": {"a": {"r": "C"}}, "r*": None}),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "registry"), NULLS)
def test_null_takes_away_what_an_earlier_one_maps(
    before: dict[str, Json], after: dict[str, Json], registry: dict[str, Json]
) -> None:
    first, second = {"resource_registry": before}, {"resource_registry": after}
    assert merged(first, second)[0] == {"resource_registry": registry}
    assert merge_into_stored(first, second) == {"resource_registry": registry}


def test_what_is_added_to_a_stack_is_added_resource_by_resource() -> None:
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
