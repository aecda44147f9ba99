"""A template as clients read of it: its parameters in the words of the older language."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import cast

from engine.hot.definition.stack import NestedStackDefinition
from engine.hot.environment.environment import Environment
from engine.hot.expressions.masking import MASK
from engine.hot.schema.parameters import ParameterKind, ParameterSchema
from engine.hot.schema.type_schema import Constraint
from engine.hot.template.cfn_parameters import KINDS
from engine.hot.template.template import Template
from engine.words import Json
from hub.api.orchestration import responses

WORDS: Mapping[ParameterKind, str] = {kind: word for word, kind in KINDS.items()}


def described(
    template: Template,
    environment: Environment,
    given: Mapping[str, Json],
    hidden: Collection[str],
) -> responses.TemplateDescription:
    """A template and its parameters, with the values that are given to them."""
    defaults = environment.parameter_defaults
    shown: responses.TemplateDescription = {
        "Description": template.description,
        "Parameters": {
            name: parameter(
                replace(one, hidden=name in hidden),
                given.get(name),
                defaults.get(name),
            )
            for name, one in template.parameters.items()
        },
    }
    if template.parameter_groups:
        shown["ParameterGroups"] = [dict(group) for group in template.parameter_groups]
    return shown


def nested_parameters(
    nested: Mapping[str, NestedStackDefinition],
) -> dict[str, responses.NestedTemplateDescription]:
    """Nested templates by resource, each with the templates nested in it."""
    shown: dict[str, responses.NestedTemplateDescription] = {}
    for name, one in nested.items():
        inside = described(one.kind.template, one.kind.environment, one.parameters, one.hidden)
        shown[name] = {**inside, "Type": one.type}
        if one.nested:
            shown[name]["NestedParameters"] = nested_parameters(one.nested)
    return shown


def hidden_names(template: Template, environment: Environment) -> frozenset[str]:
    """Of the parameters that the template hides, or its environment."""
    hides = (name for name, one in template.parameters.items() if one.hidden)
    return frozenset(environment.encrypted_param_names).union(hides)


def parameter(schema: ParameterSchema, value: Json, default: Json = None) -> responses.Parameter:
    """A parameter as clients read it: keys of the older language, switches as text.

    default: the environment's, in place of the template's.
    """
    shown: responses.Parameter = {
        "Type": WORDS[schema.kind],
        "Description": schema.description,
        "NoEcho": "true" if schema.hidden else "false",
        "Label": schema.label or schema.name,
    }
    if default is not None:
        shown["Default"] = MASK if schema.hidden else default
    elif schema.default is not None:
        shown["Default"] = schema.default
    if value is not None:
        shown["Value"] = MASK if schema.hidden else value
    if schema.tags:
        shown["Tags"] = list(schema.tags)
    for rule in schema.constraints:
        shown = {**shown, **constraint(rule)}
    if said := [rule.description for rule in schema.constraints if rule.description]:
        shown["ConstraintDescription"] = " ".join(said)
    return shown


def constraint(rule: Constraint) -> responses.ParameterConstraint:
    table: Mapping[str, Mapping[str, Json]] = {
        "length": {"MinLength": rule.min, "MaxLength": rule.max},
        "range": {"MinValue": rule.min, "MaxValue": rule.max},
        "modulo": {"Step": rule.step, "Offset": rule.offset},
        "allowed_values": {"AllowedValues": list(rule.allowed)},
        "allowed_pattern": {"AllowedPattern": rule.pattern},
        "custom_constraint": {"CustomConstraint": rule.name},
    }
    shown = {name: value for name, value in table[rule.kind].items() if value is not None}
    return cast(responses.ParameterConstraint, shown)
