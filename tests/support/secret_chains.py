"""Templates that pass a secret through resource types and functions."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from engine.words import Json

Wrap = Callable[[Json], Json]

#: A nested template that returns its parameter in three ways.
NESTED: Json = {
    "heat_template_version": "2021-04-16",
    "parameters": {"given": {"type": "string"}},
    "resources": {
        "inner": {"type": "OS::Heat::Value", "properties": {"value": {"get_param": "given"}}},
        "after": {
            "type": "OS::Heat::TestResource",
            "properties": {"value": {"list_join": ["", ["<", {"get_attr": ["inner", "value"]}]]}},
        },
    },
    "outputs": {
        "direct": {"value": {"get_param": "given"}},
        "value": {"value": {"get_attr": ["inner", "value"]}},
        "far": {"value": {"str_replace": {
            "template": "far:V", "params": {"V": {"get_attr": ["after", "output"]}}}}},
    },
}  # fmt: skip
OUTER: Json = {
    "heat_template_version": "2021-04-16",
    "parameters": {"given": {"type": "string"}},
    "resources": {
        "within": {"type": "nested.yaml", "properties": {"given": {"get_param": "given"}}}
    },
    "outputs": {"value": {"value": {"get_attr": ["within", "far"]}}},
}
FILES = {"nested.yaml": NESTED, "outer.yaml": OUTER}


def _attr(*path: Json) -> Callable[[str], Json]:
    return lambda name: {"get_attr": [name, *path]}


@dataclass(frozen=True, slots=True)
class Link:
    """A resource that depends on a value. reads: expressions whose text contains the value."""

    type: str
    properties: Callable[[Json], Json]
    reads: tuple[Callable[[str], Json], ...]


def _joined(*path: Json) -> Callable[[str], Json]:
    return lambda name: {"list_join": [",", {"get_attr": [name, *path]}]}


_MEMBER: Callable[[Json], Json] = lambda value: {  # noqa: E731
    "type": "OS::Heat::Value", "properties": {"value": value},
}  # fmt: skip

LINKS: Mapping[str, Link] = {
    "value": Link("OS::Heat::Value", lambda v: {"value": v}, (_attr("value"),)),
    "typed": Link(
        "OS::Heat::Value",
        lambda v: {"type": "json", "value": {"map": {"deep": [v]}}},
        (_attr("value", "map", "deep", 0), _joined("value", "map", "deep")),
    ),
    "test": Link("OS::Heat::TestResource", lambda v: {"value": v}, (_attr("output"),)),
    "config": Link("OS::Heat::SoftwareConfig", lambda v: {"config": v}, (_attr("config"),)),
    "structured": Link(
        "OS::Heat::StructuredConfig", lambda v: {"config": {"k": v}}, (_attr("config", "k"),)
    ),
    "cloud": Link(
        "OS::Heat::CloudConfig", lambda v: {"cloud_config": {"k": v}}, (_attr("config"),)
    ),
    "mime": Link(
        "OS::Heat::MultipartMime",
        lambda v: {"parts": [{"config": {"list_join": ["", ["#!/bin/sh\n", v]]}}]},
        (_attr("config"),),
    ),
    "nested": Link(
        "nested.yaml",
        lambda v: {"given": v},
        (
            _attr("direct"),
            _attr("value"),
            _attr("far"),
            _attr("resource.inner", "value"),
            _attr("resource.after.output"),
        ),
    ),
    "outer": Link(
        "outer.yaml",
        lambda v: {"given": v},
        (_attr("value"), _attr("resource.within", "direct")),
    ),
    "group": Link(
        "OS::Heat::ResourceGroup",
        lambda v: {"count": 2, "resource_def": _MEMBER(v)},
        (
            _attr("resource.1", "value"),
            _joined("value"),
            lambda name: {
                "list_join": ["", {"yaql": {
                    "expression": "$.data.values()",
                    "data": {"get_attr": [name, "attributes", "value"]}}}]
            },
        ),
    ),
    "nested group": Link(
        "OS::Heat::ResourceGroup",
        lambda v: {"count": 1, "resource_def": {"type": "nested.yaml", "properties": {"given": v}}},
        (_joined("far"), _attr("resource.0", "direct")),
    ),
    "scaling": Link(
        "OS::Heat::AutoScalingGroup",
        lambda v: {"min_size": 1, "max_size": 1, "resource": _MEMBER(v)},
        (_joined("outputs_list", "value"),),
    ),
    "chain": Link(
        "OS::Heat::ResourceChain",
        lambda v: {"resources": ["OS::Heat::Value"], "resource_properties": {"value": v}},
        (_attr("resource.0", "value"),),
    ),
}  # fmt: skip

#: Functions from a text to a text that contains it.
WRAPS: Mapping[str, Wrap] = {
    "as it is": lambda v: v,
    "str_replace": lambda v: {"str_replace": {"template": "a:$P", "params": {"$P": v}}},
    "list_join": lambda v: {"list_join": ["-", ["x", v, "y"]]},
    "str_split": lambda v: {"list_join": ["#", {"str_split": ["#", v]}]},
    "upper": lambda v: {"yaql": {"expression": "$.data.toUpper()", "data": v}},
    "yaql": lambda v: {"yaql": {"expression": "$.data.a.b", "data": {"a": {"b": v}}}},
    "map_merge": lambda v: {
        "yaql": {"expression": "$.data.a", "data": {"map_merge": [{"b": 1}, {"a": v}]}}
    },
    "map_replace": lambda v: {
        "yaql": {
            "expression": "$.data.a",
            "data": {"map_replace": [{"a": "x"}, {"values": {"x": v}}]},
        }
    },
    "list_concat": lambda v: {"list_join": ["", {"list_concat": [["a"], [v]]}]},
    "repeat": lambda v: {
        "list_join": ["", {"repeat": {"for_each": {"%i": [v]}, "template": "r%i"}}]
    },
    "if": lambda v: {"if": ["always", v, "no"]},
    "key": lambda v: {
        "list_join": ["", {"yaql": {
            "expression": "$.data[0].keys()",
            "data": {"repeat": {"for_each": {"%i": [v]}, "template": {"%i": 1}}}}}]
    },
}  # fmt: skip
#: Functions that shorten a secret: the result is secret, although it does not contain the secret.
LOSSY: Mapping[str, Wrap] = {
    "digest": lambda v: {"digest": ["sha512", v]},
    "length": lambda v: {"yaql": {"expression": "str($.data.len())", "data": v}},
    "letters": lambda v: {"yaql": {"expression": "$.data.substring(0, 12)", "data": v}},
}

SOURCES: Mapping[str, Json] = {
    "parameter": {"get_param": "hidden"},
    "item": {"get_param": ["listed", 1]},
    "entry": {"get_param": ["mapped", "deep", "k"]},
    "environment": {"get_param": "by_environment"},
    "attribute": {"get_attr": ["safe", "key"]},
    "property": {"get_attr": ["safe", "echo"]},
    "random": {"get_attr": ["random", "value"]},
    "reference": {"get_resource": "random"},
    "all attributes": {"yaql": {
        "expression": "$.data.get(key)", "data": {"get_attr": ["safe"]}}},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Step:
    """link, wrap: names of LINKS and WRAPS. read: the index of a read, modulo their number."""

    link: str
    wrap: str = "as it is"
    read: int = 0


@dataclass(frozen=True, slots=True)
class Chain:
    """source: a name of SOURCES. Each step reads the one before."""

    source: str
    steps: tuple[Step, ...]


def chain_resources(name: str, chain: Chain) -> dict[str, Json]:
    """The resources of a chain. The last one, ``NAME_gate``, is a TestResource that reads the
    result.
    """
    value, resources = SOURCES[chain.source], dict[str, Json]()
    for place, step in enumerate(chain.steps):
        link, own = LINKS[step.link], f"{name}_{place}"
        properties = link.properties(WRAPS[step.wrap](value))
        resources[own] = {"type": link.type, "properties": properties}
        value = link.reads[step.read % len(link.reads)](own)
    resources[f"{name}_gate"] = {
        "type": "OS::Heat::TestResource",
        "properties": {"value": value},
        "metadata": {"also": value},
    }
    return resources
