"""How templates write the names of sections and keys: in the words of HOT or in those of CFN."""

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Spelling:
    """Each word is how a template writes the section or the key of that name.

    version: the key whose value is the version. sections, resource_keys, output_keys: all there
    are. passes_over: whether a key that none of them resembles means nothing, as a remark in JSON.
    meaningless: keys that resemble one, and mean nothing. conditional: what has conditions.
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
    conditional: str
    passes_over: bool = False
    meaningless: frozenset[str] = frozenset()


HOT = Spelling(
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
    conditional="heat_template_version 2016-10-14 or later",
)  # fmt: skip

AWS = Spelling(
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
    conditional="AWSTemplateFormatVersion 2010-09-09",
    passes_over=True,
    meaningless=frozenset({"CreationPolicy", "UpdateReplacePolicy"}),
)  # fmt: skip
HEAT = replace(
    AWS,
    version="HeatTemplateFormatVersion",
    sections=("HeatTemplateFormatVersion", *AWS.sections[1:]),
)

SPELLINGS = {one.version: one for one in (HOT, HEAT, AWS)}
