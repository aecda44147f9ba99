"""Dialects of the template language: the names of sections and keys in HOT and in CFN."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Dialect:
    """Each field is the name that the dialect uses for this section or key.

    version: the key whose value is the version. sections, resource_keys, output_keys: all that are
    valid. ignores_unknown_keys: unknown keys that do not resemble a valid one are ignored (JSON
    templates use them as comments). ignored_keys: AWS keys that are valid and have no effect.
    conditions_since: the versions with conditions, for messages. missing_type: the error of a
    resource without a type.
    """

    version: str
    description: str
    parameters: str
    resources: str
    outputs: str
    conditions: str
    hooks: str
    type: str
    properties: str
    metadata: str
    depends_on: str
    deletion_policy: str
    update_policy: str
    condition: str
    value: str
    sections: tuple[str, ...]
    resource_keys: tuple[str, ...]
    output_keys: tuple[str, ...]
    conditions_since: str
    missing_type: str
    ignores_unknown_keys: bool = False
    ignored_keys: frozenset[str] = frozenset()


HOT = Dialect(
    version="heat_template_version",
    description="description",
    parameters="parameters",
    resources="resources",
    outputs="outputs",
    conditions="conditions",
    hooks="hooks",
    type="type",
    properties="properties",
    metadata="metadata",
    depends_on="depends_on",
    deletion_policy="deletion_policy",
    update_policy="update_policy",
    condition="condition",
    value="value",
    sections=(
        "heat_template_version", "description", "parameter_groups", "parameters", "resources",
        "outputs", "conditions", "hooks",
    ),
    resource_keys=(
        "type", "properties", "metadata", "depends_on", "deletion_policy", "update_policy",
        "description", "condition", "external_id", "hooks",
    ),
    output_keys=("value", "description", "condition"),
    conditions_since="heat_template_version 2016-10-14 or later",
    missing_type="Each resource must contain a type key.",
)  # fmt: skip

AWS = Dialect(
    version="AWSTemplateFormatVersion",
    description="Description",
    parameters="Parameters",
    resources="Resources",
    outputs="Outputs",
    conditions="Conditions",
    hooks="Hooks",
    type="Type",
    properties="Properties",
    metadata="Metadata",
    depends_on="DependsOn",
    deletion_policy="DeletionPolicy",
    update_policy="UpdatePolicy",
    condition="Condition",
    value="Value",
    sections=(
        "AWSTemplateFormatVersion", "Description", "Parameters", "Mappings", "Conditions",
        "Resources", "Outputs", "Hooks",
    ),
    resource_keys=(
        "Type", "Properties", "Metadata", "DependsOn", "DeletionPolicy", "UpdatePolicy",
        "Description", "Condition", "Hooks",
    ),
    output_keys=("Value", "Description", "Condition"),
    conditions_since="AWSTemplateFormatVersion 2010-09-09",
    missing_type="Each Resource must contain a Type key.",
    ignores_unknown_keys=True,
    ignored_keys=frozenset({"CreationPolicy", "UpdateReplacePolicy"}),
)  # fmt: skip
HEAT = replace(
    AWS,
    version="HeatTemplateFormatVersion",
    sections=("HeatTemplateFormatVersion", *AWS.sections[1:]),
)

DIALECTS = {one.version: one for one in (HOT, HEAT, AWS)}
