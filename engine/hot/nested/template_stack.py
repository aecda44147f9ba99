"""The resource type AWS::CloudFormation::Stack: a nested stack whose template is at a URL. Pure.

The template is among the files, by its URL; the program that receives a request adds those that are
missing. The parameters of the nested stack are in one property, and its outputs are attributes with
a prefix.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from engine.hot.environment.registry import ADDRESSES
from engine.hot.expressions.expression import Expression
from engine.hot.schema.type_schema import (
    Attribute,
    Kind,
    Property,
    TypeSchema,
    updatable,
    without_required,
)
from engine.words import Json

TEMPLATE_STACK: Final = "AWS::CloudFormation::Stack"
TEMPLATE_URL: Final = "TemplateURL"
PARAMETERS: Final = "Parameters"
TIMEOUT: Final = "TimeoutInMinutes"
#: The prefix of the attributes: `Outputs.NAME`.
OUTPUTS: Final = "Outputs."

#: The schema as far as it is known without the template.
SCHEMA: Final = TypeSchema(
    TEMPLATE_STACK,
    description="A nested stack from a template at a URL.",
    properties={
        TEMPLATE_URL: updatable(
            Kind.STRING, "The URL of the template.", required=True, public=True
        ),
        PARAMETERS: updatable(Kind.MAP, "The parameters of the nested stack."),
        TIMEOUT: updatable(
            Kind.INTEGER, "Has no effect: the time limit of the stack applies to its nested stacks."
        ),
    },
    any_attribute=True,
)


def is_template_address(text: Json) -> bool:
    """Return whether a value can be the URL of a template."""
    return isinstance(text, str) and text.startswith(ADDRESSES)


def literal_address(properties: Json) -> str | None:
    """Return the URL if it is written in the properties."""
    url = properties.get(TEMPLATE_URL) if isinstance(properties, dict) else None
    return url if isinstance(url, str) and is_template_address(url) else None


def template_stack_schema(inside: TypeSchema, *, values_later: bool = False) -> TypeSchema:
    """Return the schema of a resource with this template. inside: of the template as a type.
    values_later: its parameters may be missing."""
    fields = (without_required(inside) if values_later else inside).properties
    parameters = replace(
        SCHEMA.properties[PARAMETERS],
        fields=fields,
        required=any(one.required for one in fields.values()),
    )
    return replace(
        SCHEMA,
        properties={**SCHEMA.properties, PARAMETERS: parameters},
        attributes=_add_prefix(inside.attributes),
        any_attribute=False,
        of_template=True,
    )


#: The schema of a resource whose template is not known: any of its attributes may be a secret.
UNKNOWN_TEMPLATE: Final = replace(SCHEMA, has_secret_members=True)


def _add_prefix(attributes: Mapping[str, Attribute]) -> dict[str, Attribute]:
    return {f"{OUTPUTS}{name}": one for name, one in attributes.items() if "::" not in name}


def stack_parameters(properties: Expression) -> Expression:
    """Return the parameters of the nested stack; an empty map for none."""
    if not isinstance(properties, Mapping):
        return properties
    given = properties.get(PARAMETERS)
    return {} if given is None else given


def parameter_fields(fields: Mapping[str, Property]) -> dict[str, Property]:
    """Return the properties of a resource whose template has these parameters."""
    return {PARAMETERS: replace(SCHEMA.properties[PARAMETERS], fields=fields)}
