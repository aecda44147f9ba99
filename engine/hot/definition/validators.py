"""Values that external validators must check: values with custom constraints, and IDs of existing
physical resources.

Values that are not known before execution are not validated.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from engine.errors import Findings, one_of
from engine.hot.definition.model import ResourceDefinition, StackDefinition
from engine.hot.expressions.expression import Expression, is_static
from engine.hot.nested.template_stack import TEMPLATE_STACK, parameter_fields
from engine.hot.schema.custom_constraints import CUSTOM_CHECKS, SERVICE_CONSTRAINTS
from engine.hot.schema.parameters import ParameterSchema
from engine.hot.schema.type_schema import Property, TypeSchema
from engine.words import Json


@dataclass(frozen=True, slots=True)
class ValidationRequest:
    """validator: name of the custom constraint, or of the type that checks a physical ID. hidden:
    the value is secret. parameter: the parameter with this value; "" for a value at `place`.
    description: message that replaces the validator's reason; "": none.
    """

    validator: str
    value: Json = field(repr=False)
    place: str
    hidden: bool = False
    parameter: str = ""
    description: str = ""


def collect_validations(
    definition: StackDefinition, types: Mapping[str, TypeSchema], validators: Collection[str]
) -> list[ValidationRequest]:
    """Return the requests for a definition. validators: names of the constraints and types with a
    validator.

    Definitions shared by several nested stacks are collected once.
    """
    if not validators:
        return []
    return [*_collect(definition, types, validators, set())]


def _collect(
    definition: StackDefinition,
    types: Mapping[str, TypeSchema],
    validators: Collection[str],
    seen: set[int],
) -> Iterator[ValidationRequest]:
    yield from _stack_requests(definition, types, validators)
    for one in definition.contained:
        if id(one.definition) not in seen:
            seen.add(id(one.definition))
            for question in _collect(one.definition, types, validators, seen):
                if question.parameter not in one.given:
                    hidden = question.hidden or one.secret
                    yield replace(question, place=one.place(question.place), hidden=hidden)


def _stack_requests(
    definition: StackDefinition, types: Mapping[str, TypeSchema], validators: Collection[str]
) -> list[ValidationRequest]:
    validated = _validated_types(definition, types, validators)
    return [
        *_parameter_requests(definition, validators),
        *(
            question
            for name, resource in definition.resources.items()
            if (resource.type in validated or name in definition.nested)
            and isinstance(resource.properties, dict)
            for question in _field_requests(
                _fields(definition, types, resource),
                resource.properties,
                resource.masked_properties or resource.properties,
                f"resources.{name}.properties",
                validators,
            )
        ),
        *(
            ValidationRequest(resource.type, resource.external_id, f"resources.{name}.external_id")
            for name, resource in definition.resources.items()
            if resource.external_id is not None and resource.type in validators
        ),
    ]


def _validated_types(
    definition: StackDefinition, types: Mapping[str, TypeSchema], validators: Collection[str]
) -> set[str]:
    """Return the types of the resources of which a property has a validator. Those of nested
    templates are not among them."""
    return {
        kind
        for kind in {resource.type for resource in definition.resources.values()}
        if (schema := types.get(kind)) is not None
        and any(_has_validator(one, validators) for one in schema.properties.values())
    }


def _has_validator(property_: Property, validators: Collection[str]) -> bool:
    inside = (
        *(property_.fields or {}).values(),
        *(() if property_.items is None else (property_.items,)),
    )
    return any(rule.name in validators for rule in property_.constraints) or any(
        _has_validator(each, validators) for each in inside
    )


def _fields(
    definition: StackDefinition, types: Mapping[str, TypeSchema], resource: ResourceDefinition
) -> Mapping[str, Property]:
    """Return the properties of a resource; of a nested template, its parameters."""
    nested = definition.nested.get(resource.name)
    schema = types.get(resource.type) if nested is None else nested.kind.schema
    if schema is not None and nested is not None and resource.type == TEMPLATE_STACK:
        return parameter_fields(schema.properties)
    return {} if schema is None else schema.properties


def _parameter_requests(
    definition: StackDefinition, validators: Collection[str]
) -> Iterator[ValidationRequest]:
    for name, value in definition.parameters.items():
        schema = definition.schemas[name]
        for rule in schema.constraints:
            if rule.name in validators:
                for item in _items(value):
                    yield ValidationRequest(
                        rule.name, item, "", schema.hidden, name, rule.description
                    )


def _field_requests(
    fields: Mapping[str, Property],
    given: Mapping[str, Expression],
    shown: Expression,
    place: str,
    validators: Collection[str],
) -> Iterator[ValidationRequest]:
    """shown: the same values masked; a value that differs there is hidden."""
    for name, value in given.items():
        if name in fields:
            seen = shown.get(name) if isinstance(shown, dict) else shown
            yield from _value_requests(fields[name], value, seen, f"{place}.{name}", validators)


def _value_requests(
    property_: Property,
    value: Expression,
    shown: Expression,
    place: str,
    validators: Collection[str],
) -> Iterator[ValidationRequest]:
    if property_.fields is not None and isinstance(value, dict):
        yield from _field_requests(property_.fields, value, shown, place, validators)
    if property_.items is not None and isinstance(value, list):
        seen = shown if isinstance(shown, list) else [shown] * len(value)
        for index, (item, also) in enumerate(zip(value, seen, strict=True)):
            yield from _value_requests(property_.items, item, also, f"{place}[{index}]", validators)
    for rule in property_.constraints:
        if rule.name in validators and is_static(value):
            for item in _items(value):
                hidden = value != shown
                yield ValidationRequest(
                    rule.name, item, place, hidden, description=rule.description
                )


def _items(value: Json) -> list[Json]:
    """Return the items of a list, or the value alone, without empty ones."""
    return [one for one in (value if isinstance(value, list) else [value]) if one not in (None, "")]


def check_constraint_names(
    schemas: Mapping[str, ParameterSchema],
    validators: Collection[str],
    values: Mapping[str, Json],
    findings: Findings,
) -> None:
    """Report custom constraints of parameters that do not exist. values: those to be shown."""
    for name, schema in schemas.items():
        for rule in schema.constraints:
            known = (
                rule.name in CUSTOM_CHECKS
                or rule.name in SERVICE_CONSTRAINTS
                or rule.name in validators
            )
            if rule.kind == "custom_constraint" and not known:
                near = one_of(
                    rule.name, sorted({*CUSTOM_CHECKS, *SERVICE_CONSTRAINTS, *validators}), "Known"
                )
                reason = f'There is no custom constraint "{rule.name}"'
                # Heat says that the value is wrong.
                value, sentence = values.get(name), ""
                if isinstance(value, str):
                    why = f'"{value}" does not validate {rule.name} (constraint not found)'
                    sentence = f"Parameter '{name}' is invalid: {why}"
                place = f"parameters.{name}.constraints"
                findings.add(place, reason, near, sentence=sentence)
