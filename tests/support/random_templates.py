"""Random templates over all built-in types. Most are accepted, few are realistic."""

import random
from collections.abc import Mapping, Sequence

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from engine.hot.schema.type_schema import Kind, Property
from engine.types.registry import built_in
from engine.words import Json

#: The value of a hidden parameter.
SECRET = "geheim-8812"
PARAMETERS: Json = {
    "hidden": {"type": "string", "hidden": True, "default": SECRET},
    "hidden_map": {"type": "json", "hidden": True, "default": {"value": SECRET}},
    "text": {"type": "string", "default": "t"},
    "number": {"type": "number", "default": 1},
    "list": {"type": "comma_delimited_list", "default": "a,b"},
    "map": {"type": "json", "default": {"value": "v"}},
}
#: Safe values, by name, for properties that other values would make slow or invalid.
_SAFE_VALUES: Mapping[str, Sequence[Json]] = {
    "wait_secs": (0, 0.01),
    "action_wait_secs": (None, {}, {"create": 0, "delete": 0.01}),
    "constraint_prop_secs": (0,),
    "attr_wait_secs": (0,),
    "client_name": (None,),
    "entity_name": (None,),
    "min_wait": (0, 0.01),
    "max_jitter": (0,),
    "actions": (["CREATE"], ["CREATE", "DELETE"]),
    "timeout": (1,),
    "Timeout": (1,),
    "count": (1, 2),
    "Count": (1,),
    "Size": (0, 1),
    "min_size": (0, 1),
    "max_size": (1, 2),
    "desired_capacity": (1,),
    "MinSize": (0, 1),
    "MaxSize": (1, 2),
    "DesiredCapacity": (None, 1),
    "AvailabilityZones": (["nova"],),
    "AdjustmentType": ("ChangeInCapacity", "ExactCapacity"),
    "length": (1, 8, {"get_param": "number"}),
    "type": ("string", "json", None),
    "sequence": (None, "digits"),
    "character_classes": (None,),
    "character_sequences": (None,),
    "resources": (["OS::Heat::Value", "OS::Heat::TestResource"], ["OS::Heat::None"]),
    "removal_policies": ([], [{"resource_list": ["0"]}]),
    "removal_policies_mode": ("append", "update"),
    "adjustment_type": ("change_in_capacity", "exact_capacity"),
    "signal_transport": (None, "NO_SIGNAL", "HEAT_SIGNAL"),
}
_HANDLES = frozenset(
    {
        "handle",
        "Handle",
        "auto_scaling_group_id",
        "LaunchConfigurationName",
        "AllowedResources",
        "AutoScalingGroupName",
    }
)
_TYPES = built_in(random.Random(0))
#: Without the type whose template is fetched, from a host that exists.
_TYPE_NAMES = [name for name in _TYPES.names() if name != "AWS::CloudFormation::Stack"]
_NAMES = ("a", "b", "c", "d")
_ATTRIBUTES = ("value", "output", "refs", "data")

#: The resources that later ones may read: name -> type.
Earlier = Mapping[str, str]


def _random_value(earlier: Earlier) -> st.SearchStrategy[Json]:
    leaves: list[Json] = [{"get_param": name} for name in PARAMETERS]
    leaves += ["t", "", "\u00e9\U0001f600", *({"get_resource": name} for name in earlier)]
    leaves += [
        {"get_attr": [name, attribute]}
        for name, kind in earlier.items()
        for attribute in _ATTRIBUTES
        if _TYPES.get(kind).schema.has_attribute(attribute)
    ]
    return st.recursive(
        st.sampled_from(leaves),
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.dictionaries(st.sampled_from(("value", "x", "$call")), inner, max_size=2),
            inner.map(lambda one: {"str_replace": {"template": "$a", "params": {"$a": one}}}),
            inner.map(lambda one: {"yaql": {"expression": "$.data", "data": one}}),
            inner.map(lambda one: {"list_join": ["-", ["a", one]]}),
            inner.map(lambda one: {"map_merge": [{"k": one}, {"k": 1}]}),
            inner.map(_repeated),
        ),
        max_leaves=4,
    )


def _repeated(one: Json) -> Json:
    return {"repeat": {"for_each": {"%i%": ["1", "2"]}, "template": {"%i%": one}}}


def _member(earlier: Earlier) -> st.SearchStrategy[Json]:
    return st.fixed_dictionaries(
        {
            "type": st.sampled_from(("OS::Heat::Value", "OS::Heat::TestResource")),
            "properties": st.fixed_dictionaries({"value": _random_value(earlier)}),
        }
    )


def _value(one: Property, name: str, earlier: Earlier) -> st.SearchStrategy[Json]:
    if name in _SAFE_VALUES:
        return st.sampled_from(_SAFE_VALUES[name])
    if name in ("resource_def", "resource"):
        return _member(earlier)
    if name in _HANDLES:
        known: list[Json] = [{"get_resource": other} for other in earlier] or ["h"]
        return st.sampled_from([[other] if one.kind is Kind.LIST else other for other in known])
    match one.kind:
        case Kind.INTEGER | Kind.NUMBER:
            return st.sampled_from((0, 1, 2, {"get_param": "number"}))
        case Kind.BOOLEAN:
            return st.sampled_from((True, False, "true"))
        case Kind.LIST:
            return st.lists(_random_value(earlier), max_size=3) | st.just({"get_param": "list"})
        case Kind.MAP:
            return st.dictionaries(st.just("value"), _random_value(earlier), max_size=1)
        case _:
            return _random_value(earlier)


@st.composite
def _resources(draw: st.DrawFn) -> Json:
    resources: Json = {}
    for name in _NAMES[: draw(st.integers(1, len(_NAMES)))]:
        earlier = {other: str(one["type"]) for other, one in resources.items()}
        schema = _TYPES.get(draw(st.sampled_from(_TYPE_NAMES))).schema
        properties: Json = {
            key: draw(_value(one, key, earlier))
            for key, one in schema.properties.items()
            if one.required or draw(st.integers(0, 3)) == 0
        }
        if "value" in schema.properties and draw(st.integers(0, 5)) == 0:
            properties = {"get_param": "hidden_map"}
        resources[name] = {"type": schema.name, "properties": properties}
        if draw(st.integers(0, 5)) == 0:
            resources[name]["metadata"] = {"m": draw(_random_value(earlier))}
        if earlier and draw(st.integers(0, 5)) == 0:
            resources[name]["depends_on"] = draw(st.sampled_from([*earlier]))
    return resources


def random_templates(count: int, seed: int) -> list[Json]:
    """`count` templates; the same ones for the same seed."""
    found: list[Json] = []

    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=[*HealthCheck],
    )
    @given(_resources())
    def draw(resources: Json) -> None:
        found.append(
            {
                "heat_template_version": "2021-04-16",
                "parameters": PARAMETERS,
                "resources": resources,
            }
        )

    seeded(seed)(draw)()
    return found
