"""Environments: sections, the registry, hooks, merging."""

import pytest

from engine.errors import Findings, Invalid
from engine.hot.environment.environment import parse_environment
from engine.hot.environment.event_sinks import read_event_sinks
from engine.hot.environment.merging import merge_files
from engine.words import Json

SINK = {"type": "webhook", "target": "https://a.test/"}


@pytest.mark.parametrize(
    ("document", "place", "part"),
    [
        ({"paramters": {}}, "paramters", 'environment has wrong section "paramters"'),
        ({"parameters": None}, "parameters", 'environment has empty section "parameters"'),
        ({"parameters": [1]}, "parameters", "must be a map"),
        ({"event_sinks": {}}, "event_sinks", "must be a list"),
        ({"event_sinks": ["x"]}, "event_sinks[0]", "is not an event sink"),
        ({"event_sinks": [{"type": "x"}]}, "event_sinks[0].target", "must be a string"),
        ({"event_sinks": [{"target": "x"}]}, "event_sinks[0].type", "must be a string"),
        ({"event_sinks": [SINK | {"ttl": 3600}]}, "event_sinks[0].ttl", "is not a known key"),
        ({"event_sinks": [SINK | {"events": [1]}]}, "event_sinks[0].events", "a list of globs"),
        ({"event_sinks": [SINK | {"ordered": 1}]}, "event_sinks[0].ordered", "true or false"),
        ({"event_sinks": [SINK] * 21}, "event_sinks", "at most 20 are allowed"),
        ({"parameter_merge_strategies": "merge"}, "parameter_merge_strategies", "must be a map"),
        ({"encrypted_param_names": "x"}, "encrypted_param_names", "list of names"),
        ({"hooks": {}}, "hooks", "must be a list of rules"),
        ({"hooks": ["x"]}, "hooks[0]", "is not a rule"),
        ({"hooks": [{"at": 5, "on": []}]}, "hooks[0].at", "must be a pattern of resource names"),
        (
            {"resource_registry": {"A::*": "a.yaml"}},
            "resource_registry.A::*",
            "be mapped to a template",
        ),
        (
            {"resource_registry": {"resources": {"a": {"label": 5}}}},
            "resource_registry.resources.a.label",
            "must be a label",
        ),
        (
            {"resource_registry": {"resources": {"a": {"b": {"label": "eu"}}}}},
            "resource_registry.resources.a.b.label",
            '"eu" is not a label: it has no =.',
        ),
        ({"resource_registry": {"A": "B::*"}}, "resource_registry.A", "only at the end"),
        (
            {"resource_registry": {"resources": {"a": {"b": {"A": 5}}}}},
            "resource_registry.resources.a.b.A",
            "name of a resource type",
        ),
        ({"resource_registry": {"A": 5}}, "resource_registry.A", "name of a resource type"),
        ({"resource_registry": {"A": "B", "B": "A"}}, "resource_registry.A", "A -> B -> A"),
        ({"resource_registry": {"A*B": "C"}}, "resource_registry.A*B", "only at the end"),
        ({"resource_registry": {"resources": []}}, "resource_registry.resources", "must be a map"),
        ({"resource_registry": {"resources": {"a": 1}}}, "resource_registry.resources.a", "a map"),
        (
            {"resource_registry": {"resources": {"a": {"restricted_actions": "updat"}}}},
            "resource_registry.resources.a.restricted_actions",
            'Invalid restricted_action type "updat"',
        ),
        (
            {"resource_registry": {"resources": {"a": {"hooks": [1]}}}},
            "resource_registry.resources.a.hooks[0]",
            "is not a hook",
        ),
    ],
)
def test_invalid_environments_are_reported(
    document: dict[str, Json], place: str, part: str
) -> None:
    with pytest.raises(Invalid) as caught:
        parse_environment(document)
    finding = caught.value.findings[0]
    assert finding.place == place and part in finding.reason


def test_hooks_in_every_notation() -> None:
    rule = {"on": ["pre-update"], "mode": "wait"}
    resources = {
        "db_*": {"hooks": ["pre-delete", rule]},
        "web": {"*": {"srv": {"hooks": "pre-create"}}},
    }
    found = parse_environment(
        {"resource_registry": {"resources": resources}, "hooks": [{"at": "a/*", **rule}]}
    ).hook_declarations
    assert [(h.pattern, h.item, h.short, h.place) for h in found] == [
        ("db_*", "pre-delete", True, "resource_registry.resources.db_*.hooks[0]"),
        ("db_*", rule, False, "resource_registry.resources.db_*.hooks[1]"),
        ("web/*/srv", "pre-create", True, "resource_registry.resources.web.*.srv.hooks"),
        ("a/*", rule, False, "hooks[0]"),
    ]


def test_event_sinks_are_collected_without_duplicates() -> None:
    first = {"event_sinks": [SINK]}
    second = {"event_sinks": [SINK | {"events": "headgate.hook.*", "points": ["pre-*"]}, SINK]}
    findings = Findings()
    merged = merge_files([("a.yaml", first), ("b.yaml", second)], {}, findings)
    sinks = read_event_sinks(merged["event_sinks"], findings)
    assert findings.all == []
    assert [(sink.target, sink.filters, sink.ordered) for sink in sinks] == [
        ("https://a.test/", {}, True),
        ("https://a.test/", {"events": ("headgate.hook.*",), "points": ("pre-*",)}, True),
    ]
