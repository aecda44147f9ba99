"""What somebody has to be asked about: values under custom constraints, ids of things that are
there already.

Values that are not known before run time are not asked about.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace

from engine.errors import Findings, one_of
from engine.hot.custom_constraints import CUSTOM, OF_SERVICES
from engine.hot.defined import DefinedResource, Definition
from engine.hot.expression import Expression, is_static
from engine.hot.parameters import ParameterSchema
from engine.hot.schema import Property, TypeSchema
from engine.words import Json


@dataclass(frozen=True, slots=True)
class Question:
    """judge: who is asked: a custom constraint by its name, or a type about a thing's id.

    hidden: the value may not be shown. parameter: of which it is the value; "" for what stands at
    ``place``. description: what to say instead of the reason; "" for the reason.
    """

    judge: str
    value: Json = field(repr=False)
    place: str
    hidden: bool = False
    parameter: str = ""
    description: str = ""


def questions(
    definition: Definition, types: Mapping[str, TypeSchema], asked: Collection[str]
) -> list[Question]:
    """What is to be asked. asked: the names of constraints and types that somebody judges for.

    What is the same for several stacks inside is asked about once.
    """
    if not asked:
        return []
    return [*_questions(definition, types, asked, set())]


def _questions(
    definition: Definition, types: Mapping[str, TypeSchema], asked: Collection[str], seen: set[int]
) -> Iterator[Question]:
    yield from _of_stack(definition, types, asked)
    for one in definition.inside:
        if id(one.definition) not in seen:
            seen.add(id(one.definition))
            for question in _questions(one.definition, types, asked, seen):
                if question.parameter not in one.given:
                    yield replace(question, place=one.place(question.place))


def _of_stack(
    definition: Definition, types: Mapping[str, TypeSchema], asked: Collection[str]
) -> list[Question]:
    return [
        *_of_parameters(definition, asked),
        *(
            question
            for name, resource in definition.resources.items()
            if isinstance(resource.properties, dict)
            for question in _of_fields(
                _fields(definition, types, resource),
                resource.properties,
                resource.masked_properties or resource.properties,
                f"resources.{name}.properties",
                asked,
            )
        ),
        *(
            Question(resource.type, resource.external_id, f"resources.{name}.external_id")
            for name, resource in definition.resources.items()
            if resource.external_id is not None and resource.type in asked
        ),
    ]


def _fields(
    definition: Definition, types: Mapping[str, TypeSchema], resource: DefinedResource
) -> Mapping[str, Property]:
    """Of a template that is a type, the properties are the parameters."""
    nested = definition.nested.get(resource.name)
    schema = types.get(resource.type) if nested is None else nested.kind.schema
    return {} if schema is None else schema.properties


def _of_parameters(definition: Definition, asked: Collection[str]) -> Iterator[Question]:
    for name, value in definition.parameters.items():
        schema = definition.schemas[name]
        for rule in schema.constraints:
            if rule.name in asked:
                for item in _items(value):
                    yield Question(rule.name, item, "", schema.hidden, name, rule.description)


def _of_fields(
    fields: Mapping[str, Property],
    given: Mapping[str, Expression],
    shown: Expression,
    place: str,
    asked: Collection[str],
) -> Iterator[Question]:
    """shown: the same as people may see it; a value that differs there is hidden."""
    for name, value in given.items():
        if name in fields:
            seen = shown.get(name) if isinstance(shown, dict) else shown
            yield from _of_value(fields[name], value, seen, f"{place}.{name}", asked)


def _of_value(
    one: Property, value: Expression, shown: Expression, place: str, asked: Collection[str]
) -> Iterator[Question]:
    if one.fields is not None and isinstance(value, dict):
        yield from _of_fields(one.fields, value, shown, place, asked)
    if one.items is not None and isinstance(value, list):
        seen = shown if isinstance(shown, list) else [shown] * len(value)
        for index, (item, also) in enumerate(zip(value, seen, strict=True)):
            yield from _of_value(one.items, item, also, f"{place}[{index}]", asked)
    for rule in one.constraints:
        if rule.name in asked and is_static(value):
            for item in _items(value):
                hidden = value != shown
                yield Question(rule.name, item, place, hidden, description=rule.description)


def _items(value: Json) -> list[Json]:
    """Each item of a list is asked about; what is not there is not."""
    return [one for one in (value if isinstance(value, list) else [value]) if one not in (None, "")]


def check_names(
    schemas: Mapping[str, ParameterSchema], asked: Collection[str], findings: Findings
) -> None:
    """Refuse constraints of parameters that nobody knows."""
    for name, schema in schemas.items():
        for rule in schema.constraints:
            known = rule.name in CUSTOM or rule.name in OF_SERVICES or rule.name in asked
            if rule.kind == "custom_constraint" and not known:
                near = one_of(rule.name, sorted({*CUSTOM, *OF_SERVICES, *asked}), "Known")
                reason = f'There is no custom constraint "{rule.name}"'
                findings.add(f"parameters.{name}.constraints", reason, near)
