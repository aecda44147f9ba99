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
    """A resource that depends on a value. reads: expressions whose text contains the value.
    sections: other keys of the resource."""

    type: str
    properties: Callable[[Json], Json]
    reads: tuple[Callable[[str], Json], ...]
    sections: Callable[[Json], Json] = lambda value: {}


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
#: Functions of version 2026-12-01, as WRAPS.
EXTENDED_WRAPS: Mapping[str, Wrap] = {
    "to_json": lambda v: {"to_json": {"b": [v]}},
    "from_json": lambda v: {"lookup": [{"from_json": {"to_json": {"a": v}}}, "a"]},
    "first": lambda v: {"first": [v, "x"]},
    "distinct": lambda v: {"list_join": ["", {"distinct": ["x", v, "x", v]}]},
    "coalesce": lambda v: {"coalesce": [None, "", v, "x"]},
    "lookup": lambda v: {"lookup": [{"a": v}, "a", "x"]},
    "lookup default": lambda v: {"lookup": [{"a": "x"}, "b", v]},
    "lookup item": lambda v: {"lookup": [["x", v], -1]},
    "lower": lambda v: {"lower": v},
    "upper letters": lambda v: {"upper": v},
}
#: Integers from an integer: the result has the same digits.
ARITHMETIC: Mapping[str, Wrap] = {
    "add": lambda v: {"add": [v, 0]},
    "subtract": lambda v: {"subtract": [v, "0"]},
    "multiply": lambda v: {"multiply": [1, v]},
    "divide": lambda v: {"divide": [v, 1]},
    "modulo": lambda v: {"modulo": [v, 9_000_000_000_000_000_000]},
}
#: Expressions that read a local with the value, from the name of the local.
LOCAL_WRAPS: Mapping[str, Callable[[str], Json]] = {
    "local": lambda name: {"get_local": name},
    "local in text": lambda name: f"x-${{{name}}}-y",
    "local in locals": lambda name: {"get_local": [f"{name}_map", "deep", 0]},
    "local in a list": lambda name: {"list_join": ["", [f"${{{name}_map.deep.0}}", "<"]]},
}

#: Links of version 2026-12-01.
EXTENDED_LINKS: Mapping[str, Link] = {
    "each": Link(
        "OS::Heat::Value",
        lambda v: {"value": v},
        (
            lambda name: {"get_attr": [f'{name}["k"]', "value"]},
            lambda name: {"lookup": [{"get_attr": [name, "value"]}, "k"]},
            lambda name: {"to_json": {"get_attr": [name, "value"]}},
            lambda name: f"${{{name}_all}}",
        ),
        lambda v: {"for_each": ["k", "l"]},
    ),
    "value of each": Link(
        "OS::Heat::Value",
        lambda v: {"value": "<${each.value}>"},
        (lambda name: {"get_attr": [f'{name}["k"]', "value"]},),
        lambda v: {"for_each": {"k": v, "l": "x"}},
    ),
    "conditions": Link(
        "OS::Heat::Value",
        lambda v: {"value": v},
        (_attr("value"),),
        lambda v: {
            "lifecycle": {"replace_when": [v]},
            "preconditions": [
                {"assert": {"not": {"equals": [v, "x"]}}, "message": "The value is wrong."}
            ],
            "postconditions": [
                {"assert": {"not": {"equals": [v, "y"]}}, "message": "The value is wrong."}
            ],
        },
    ),
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
#: Sources of version 2026-12-01: of a template with `data`, beside the stack `source`.
EXTENDED_SOURCES: Mapping[str, Json] = {
    "reference in text": "<${hidden}>",
    "path in text": "<${mapped.deep.k}>",
    "stack output": {"stack_output": ["source", "secret"]},
    "item of a stack output": {"stack_output": ["source", "map", "k"]},
    "data": {"get_attr": ["data.known", "key"]},
    "data of each": {"lookup": [{"get_attr": ["data.every", "key"]}, "n"]},
}
#: The integer source.
NUMBER: Json = {"get_param": "number"}
EVERY_SOURCE = {**SOURCES, **EXTENDED_SOURCES, "number": NUMBER}
TYPED_NUMBER = Link("OS::Heat::Value", lambda v: {"type": "number", "value": v}, (_attr("value"),))
EVERY_LINK = {**LINKS, **EXTENDED_LINKS, "typed number": TYPED_NUMBER}
EVERY_WRAP = {**WRAPS, **EXTENDED_WRAPS, **ARITHMETIC}
#: A stack with secret outputs.
SOURCE_STACK: Json = {
    "heat_template_version": "2026-12-01",
    "parameters": {"given": {"type": "string", "hidden": True}},
    "outputs": {
        "secret": {"value": {"get_param": "given"}},
        "map": {"value": {"k": "${given}"}},
    },
}


@dataclass(frozen=True, slots=True)
class Step:
    """link, wrap: names of links, and of functions or LOCAL_WRAPS. read: the index of a read,
    modulo their number."""

    link: str
    wrap: str = "as it is"
    read: int = 0


@dataclass(frozen=True, slots=True)
class Chain:
    """source: a name of EVERY_SOURCE. Each step reads the one before."""

    source: str
    steps: tuple[Step, ...]


def chain_resources(name: str, chain: Chain) -> dict[str, Json]:
    """The resources of a chain; see `chain_sections`."""
    resources: dict[str, Json] = chain_sections(name, chain)["resources"]
    return resources


def chain_sections(name: str, chain: Chain) -> dict[str, Json]:
    """The resources and the locals of a chain. The last resource, ``NAME_gate``, is a TestResource
    that reads the result.
    """
    value, resources, local = EVERY_SOURCE[chain.source], dict[str, Json](), dict[str, Json]()
    for place, step in enumerate(chain.steps):
        link, own = EVERY_LINK[step.link], f"{name}_{place}"
        if step.wrap in LOCAL_WRAPS:
            local |= {own: value, f"{own}_map": {"deep": [f"${{{own}}}"]}}
            value = LOCAL_WRAPS[step.wrap](own)
        else:
            value = EVERY_WRAP[step.wrap](value)
        properties, sections = link.properties(value), link.sections(value)
        resources[own] = {"type": link.type, "properties": properties, **sections}
        value = link.reads[step.read % len(link.reads)](own)
        if value == f"${{{own}_all}}":
            local[f"{own}_all"] = {"to_json": {"get_attr": [own, "value"]}}
    resources[f"{name}_gate"] = {
        "type": "OS::Heat::TestResource",
        "properties": {"value": value},
        "metadata": {"also": value},
    }
    return {"resources": resources, "locals": local}
